#include "agents/rag/rag.h"
#include "agents/sdk/secret.h"

static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    struct rag *r = NULL;
    enum bt_code code = web_start(err);

    secrets_ask_first(agent_find_secret, in);
    code = code == BT_OK ? rag_new(bt_agent_settings_json(in), &r, err) : code;
    secrets_ask_first(NULL, NULL);
    if (code == BT_OK) {
        *ret_self = r;
    }
    return code;
}

static void done(void *self)
{
    rag_free(self);
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "rag",
        .name = "Retrieval",
        .icon = "search",
        .color = "#6f42c1",
        .description = "Finds passages in the documents of a folder, and names file and lines.",
        .version = BATON_VERSION,
        .skills = rag_skills,
        .skill_count = rag_skill_count,
        .capacity = 2,
        .init = init,
        .done = done,
    };

    return bt_agent_main(&def, argc, argv);
}
