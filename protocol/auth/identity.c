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

bool identity_may_be_agent(const struct identity *who, struct str agent_id)
{
    if (who->role != ROLE_AGENT) {
        return who->role == ROLE_ADMIN;
    }
    for (uint32_t i = 0; i < who->agents_n; i++) {
        if (glob_fits(str_from(who->agents[i]), agent_id)) {
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
