#include "agents/exec/run.h"

static enum bt_code add_skill(struct bt_agent_init *init, const struct exec_command *cmd,
                              struct bt_error *err)
{
    const struct bt_skill skill = {.id = cmd->id,
                                   .name = cmd->name,
                                   .description = cmd->description,
                                   .tags = cmd->tags,
                                   .examples = cmd->examples,
                                   .input_schema = cmd->input_schema,
                                   .effects = cmd->effects,
                                   .run = exec_run,
                                   .max_ms = cmd->timeout_ms};

    return bt_agent_add_skill(init, &skill, err);
}

static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    struct exec_settings *s = NULL;
    enum bt_code code = exec_settings_read(bt_agent_settings_json(in), &s, err);

    if (code == BT_OK) {
        code = exec_settings_check(s, err);
    }
    if (code == BT_OK && s->agent_id != NULL) {
        code = bt_agent_set_id(in, s->agent_id, err);
    }
    for (uint32_t i = 0; code == BT_OK && i < s->n; i++) {
        code = add_skill(in, &s->commands[i], err);
    }
    if (code != BT_OK) {
        exec_settings_free(s);
        return code;
    }
    *ret_self = s;
    return BT_OK;
}

static void done(void *self)
{
    exec_settings_free(self);
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "exec",
        .name = "Commands",
        .icon = "terminal",
        .color = "#444444",
        .description = "Runs the programs that its settings allow, each as a skill: no shell, one "
                       "argument per parameter.",
        .version = BATON_VERSION,
        .capacity = 4,
        .init = init,
        .done = done,
    };

    return bt_agent_main(&def, argc, argv);
}
