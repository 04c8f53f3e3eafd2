/* What secrets_ask_first of agents/web wants, which knows no agents: the secrets that the
 * supervisor handed over with this process. */
#ifndef SDK_SECRET_H
#define SDK_SECRET_H

#include "baton/agent.h"

/* `init` is the struct bt_agent_init. NULL when it has none of that name. */
static inline const char *agent_find_secret(void *init, const char *name)
{
    return bt_agent_secret(init, name);
}
#endif
