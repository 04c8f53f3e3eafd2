/* An identity: the sender of a request, as the credential that proved it says. Pure. */
#ifndef AUTH_IDENTITY_H
#define AUTH_IDENTITY_H

#include "protocol/base/str.h"
#include "protocol/limits.h"

/* In the order of their words on the wire and in files: observer, submitter, reviewer, agent,
 * admin. */
enum role { ROLE_OBSERVER, ROLE_SUBMITTER, ROLE_REVIEWER, ROLE_AGENT, ROLE_ADMIN, ROLE_COUNT };

enum { IDENTITY_AGENTS_MAX = 16, IDENTITY_SEES_MAX = 16 };

/* What a credential may use at once, or in a minute; words of files and of refusals in this
 * order: connections, plans (open), requests, bytes and events of its plans (a minute). */
enum quota {
    QUOTA_CONNECTIONS,
    QUOTA_PLANS,
    QUOTA_REQUESTS,
    QUOTA_BYTES,
    QUOTA_EVENTS,
    QUOTA_COUNT
};
#define QUOTA_BY_ROLE UINT64_MAX /* nothing was set: identity_quota decides */

struct identity {
    char id[LIMIT_ID_BYTES + 1];
    enum role role;
    uint32_t agents_n;
    char agents[IDENTITY_AGENTS_MAX][LIMIT_ID_BYTES + 1]; /* globs of agentIds */
    uint32_t sees_n;
    char sees[IDENTITY_SEES_MAX][LIMIT_ID_BYTES + 1]; /* globs of credentials: it sees what is
                                                         theirs, as a grant */
    uint64_t quotas[QUOTA_COUNT];                     /* 0 = none, or QUOTA_BY_ROLE */
};

/* The sender of a request with the token of the state directory: "local", ROLE_ADMIN. Valid for
 * ever. */
const struct identity *identity_local(void);

/* The sender of auth.begin, which has proved nothing: no id, ROLE_OBSERVER. Valid for ever. */
const struct identity *identity_nobody(void);

/* Whether it may register as this agent and act for it: an admin as any, an agent as those that
 * one of its globs fits, others as none. */
bool identity_may_be_agent(const struct identity *who, struct str agent_id);

/* Whether a grant lets it see what belongs to this credential ("local": the token). */
bool identity_is_granted(const struct identity *who, struct str owner);
/* 0: none. By role, submitters and reviewers have a quarter of plans_max, at least one. */
uint64_t identity_quota(const struct identity *who, enum quota quota, uint64_t plans_max);
const char *quota_name(enum quota quota);
/* False: no quota has this name. */
bool quota_parse(struct str name, enum quota *ret);

const char *role_name(enum role role);
/* False: no role has this name. */
bool role_parse(struct str name, enum role *ret);
#endif
