#include "supervisor/auth/processes.h"

#include <stdio.h>
#include <string.h>

#include "protocol/client/state.h"

enum bt_code process_keys_open(const char *state_dir, struct process_keys *ret,
                               struct bt_error *err)
{
    char text[STATE_TOKEN_LEN + 1];
    enum bt_code code = state_processes_make(state_dir, text, err);

    if (code == BT_OK) {
        (void)auth_unhex(str_from(text), ret->secret, sizeof ret->secret); /* its digits only */
    }
    explicit_bzero(text, sizeof text);
    return code;
}

bool process_credential(const struct process_keys *keys, struct str instance_id,
                        struct str agent_id, struct credential *ret)
{
    const struct str parts[] = {STR_LIT("baton process 1|"), instance_id, STR_LIT("|"), agent_id};

    if (agent_id.len > LIMIT_ID_BYTES || instance_id.len > LIMIT_ID_BYTES - sizeof "process:") {
        return false;
    }
    *ret = (struct credential){.who = {.role = ROLE_AGENT, .agents_n = 1}};
    (void)snprintf(ret->who.id, sizeof ret->who.id, "process:%.*s", STR_ARG(instance_id));
    memcpy(ret->who.agents[0], agent_id.ptr, agent_id.len);
    return auth_hmac(keys->secret, parts, sizeof parts / sizeof parts[0], ret->key);
}

bool process_prove(void *self, struct str instance_id, struct str agent_id,
                   char ret_id[PROCESS_TEXT_BYTES], char ret_key[PROCESS_TEXT_BYTES])
{
    struct credential c;

    _Static_assert(2 * AUTH_KEY_BYTES < PROCESS_TEXT_BYTES, "a key fits");
    _Static_assert(sizeof c.who.id <= PROCESS_TEXT_BYTES, "an id fits");
    if (!process_credential(self, instance_id, agent_id, &c)) {
        return false;
    }
    (void)snprintf(ret_id, PROCESS_TEXT_BYTES, "%s", c.who.id);
    auth_hex(c.key, sizeof c.key, ret_key);
    explicit_bzero(&c, sizeof c);
    return true;
}
