#include "agents/llm/llm_agent.h"
#include "agents/sdk/secret.h"
#include "agents/web/secret.h"

static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    struct llm_agent *a = NULL;
    enum bt_code code;

    secrets_ask_first(agent_find_secret, in);
    code = llm_agent_new(bt_agent_settings_json(in), &a, err);
    secrets_ask_first(NULL, NULL);
    if (code == BT_OK && a->agent_id != NULL) {
        code = bt_agent_set_id(in, a->agent_id, err);
    }
    if (code != BT_OK) {
        llm_agent_free(a);
        return code;
    }
    *ret_self = a;
    return BT_OK;
}

static void done(void *self)
{
    llm_agent_free(self);
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "llm",
        .name = "Language model",
        .icon = "message",
        .color = "#6b4fbb",
        .description = "Answers, summarises, judges and plans with a language model.",
        .version = BATON_VERSION,
        .skills = llm_skills,
        .skill_count = llm_skill_count,
        .capacity = 4,
        .init = init,
        .done = done,
    };

    return bt_agent_main(&def, argc, argv);
}
