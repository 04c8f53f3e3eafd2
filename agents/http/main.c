#include "agents/http/call.h"
#include "agents/sdk/secret.h"

static enum bt_code add_skill(struct bt_agent_init *init, const struct http_settings *s,
                              const struct http_action *action, struct bt_error *err)
{
    const struct bt_skill skill = {.id = action->id,
                                   .name = action->name,
                                   .description = action->description,
                                   .tags = action->tags,
                                   .examples = action->examples,
                                   .input_schema = action->input_schema,
                                   .effects = action->effects,
                                   .run = http_run,
                                   .max_ms =
                                       action->timeout_ms > 0 ? action->timeout_ms : s->timeout_ms};

    return bt_agent_add_skill(init, &skill, err);
}

static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    struct http_settings *s = NULL;
    enum bt_code code = web_start(err);

    secrets_ask_first(agent_find_secret, in);
    if (code == BT_OK) {
        code = http_settings_read(bt_agent_settings_json(in), &s, err);
    }
    secrets_ask_first(NULL, NULL);
    if (code == BT_OK && s->agent_id != NULL) {
        code = bt_agent_set_id(in, s->agent_id, err);
    }
    for (uint32_t i = 0; code == BT_OK && i < s->n; i++) {
        code = add_skill(in, s, &s->actions[i], err);
        if (code != BT_OK) {
            (void)err_wrap(err, "action %s", s->actions[i].id);
        }
    }
    if (code != BT_OK) {
        http_settings_free(s);
        return code;
    }
    *ret_self = s;
    return BT_OK;
}

static void done(void *self)
{
    http_settings_free(self);
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "http",
        .name = "HTTP services",
        .icon = "globe",
        .color = "#16a085",
        .description = "Calls the actions of an HTTP API that its settings allow, each as a skill.",
        .version = BATON_VERSION,
        .capacity = 4,
        .init = init,
        .done = done,
    };

    return bt_agent_main(&def, argc, argv);
}
