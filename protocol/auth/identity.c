#include "protocol/auth/identity.h"

#include "protocol/base/glob.h"

static const char *const names[ROLE_COUNT] = {[ROLE_OBSERVER] = "observer",
                                              [ROLE_SUBMITTER] = "submitter",
                                              [ROLE_REVIEWER] = "reviewer",
                                              [ROLE_AGENT] = "agent",
                                              [ROLE_ADMIN] = "admin"};

const struct identity *identity_local(void)
{
    static const struct identity local = {.id = "local", .role = ROLE_ADMIN};

    return &local;
}

const struct identity *identity_nobody(void)
{
    static const struct identity nobody = {.id = "", .role = ROLE_OBSERVER};

    return &nobody;
}

static bool any_fits(const char globs[][LIMIT_ID_BYTES + 1], uint32_t n, struct str id)
{
    for (uint32_t i = 0; i < n; i++) {
        if (glob_fits(str_from(globs[i]), id)) {
            return true;
        }
    }
    return false;
}

bool identity_may_be_agent(const struct identity *who, struct str agent_id)
{
    return who->role == ROLE_ADMIN ||
           (who->role == ROLE_AGENT && any_fits(who->agents, who->agents_n, agent_id));
}

bool identity_is_granted(const struct identity *who, struct str owner)
{
    return any_fits(who->sees, who->sees_n, owner);
}

static const char *const quota_names[QUOTA_COUNT] = {[QUOTA_CONNECTIONS] = "connections",
                                                     [QUOTA_PLANS] = "plans",
                                                     [QUOTA_REQUESTS] = "requests",
                                                     [QUOTA_BYTES] = "bytes",
                                                     [QUOTA_EVENTS] = "events"};

uint64_t identity_quota(const struct identity *who, enum quota quota, uint64_t plans_max)
{
    if (who->quotas[quota] != QUOTA_BY_ROLE) {
        return who->quotas[quota];
    }
    if (quota != QUOTA_PLANS || (who->role != ROLE_SUBMITTER && who->role != ROLE_REVIEWER)) {
        return 0;
    }
    return plans_max < 8 ? 1 : plans_max / 4;
}

const char *quota_name(enum quota quota)
{
    return (unsigned)quota < QUOTA_COUNT ? quota_names[quota] : "unknown";
}

bool quota_parse(struct str name, enum quota *ret)
{
    for (int i = 0; i < QUOTA_COUNT; i++) {
        if (str_is(name, quota_names[i])) {
            *ret = (enum quota)i;
            return true;
        }
    }
    return false;
}

const char *role_name(enum role role)
{
    return (unsigned)role < ROLE_COUNT ? names[role] : "unknown";
}

bool role_parse(struct str name, enum role *ret)
{
    for (int i = 0; i < ROLE_COUNT; i++) {
        if (str_is(name, names[i])) {
            *ret = (enum role)i;
            return true;
        }
    }
    return false;
}
