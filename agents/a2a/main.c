#include <stdlib.h>

#include "agents/a2a/a2a.h"
#include "agents/sdk/secret.h"

static void agent_free(struct a2a_agent *a)
{
    (void)pthread_mutex_destroy(&a->lock);
    arena_done(&a->arena);
    a2a_settings_free(a->settings);
    free(a);
}

static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    struct a2a_agent *a = calloc(1, sizeof *a);
    enum bt_code code = a == NULL ? err_set(err, BT_NOMEM, "out of memory") : web_start(err);

    if (code != BT_OK) {
        free(a);
        return code;
    }
    (void)pthread_mutex_init(&a->lock, NULL);
    secrets_ask_first(agent_find_secret, in);
    code = a2a_settings_read(bt_agent_settings_json(in), &a->settings, err);
    secrets_ask_first(NULL, NULL);
    if (code == BT_OK && a->settings->agent_id != NULL) {
        code = bt_agent_set_id(in, a->settings->agent_id, err);
    }
    code = code == BT_OK ? a2a_card_read(a, in, err) : code;
    if (code != BT_OK) {
        agent_free(a);
        return code;
    }
    *ret_self = a;
    return BT_OK;
}

static void done(void *self)
{
    if (self != NULL) {
        agent_free(self);
    }
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "a2a",
        .name = "A2A",
        .icon = "link",
        .color = "#cc79a7",
        .description = "Passes steps on to an agent that speaks A2A.",
        .version = BATON_VERSION,
        .capacity = 8,
        .init = init,
        .done = done,
    };

    return bt_agent_main(&def, argc, argv);
}
