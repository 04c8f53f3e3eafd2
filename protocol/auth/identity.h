/* An identity: the sender of a request, as the credential that proved it says. Pure. */
#ifndef AUTH_IDENTITY_H
#define AUTH_IDENTITY_H

#include "protocol/base/str.h"
#include "protocol/limits.h"

/* In the order of their words on the wire and in files: observer, submitter, reviewer, agent,
 * admin. */
enum role { ROLE_OBSERVER, ROLE_SUBMITTER, ROLE_REVIEWER, ROLE_AGENT, ROLE_ADMIN, ROLE_COUNT };

enum { IDENTITY_AGENTS_MAX = 16 };

struct identity {
    char id[LIMIT_ID_BYTES + 1];
    enum role role;
    uint32_t agents_n;
    char agents[IDENTITY_AGENTS_MAX][LIMIT_ID_BYTES + 1]; /* globs of agentIds */
};

/* The sender of a request with the token of the state directory: "local", ROLE_ADMIN. Valid for
 * ever. */
const struct identity *identity_local(void);

/* The sender of auth.begin, which has proved nothing: no id, ROLE_OBSERVER. Valid for ever. */
const struct identity *identity_nobody(void);

/* Whether it may register as this agent and act for it: an admin as any, an agent as those that
 * one of its globs fits, others as none. */
bool identity_may_be_agent(const struct identity *who, struct str agent_id);

const char *role_name(enum role role);
/* False: no role has this name. */
bool role_parse(struct str name, enum role *ret);
#endif
