#include "agents/graph/graph.h"

static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    struct graph *g = NULL;
    enum bt_code code = graph_new(bt_agent_settings_json(in), &g, err);

    if (code == BT_OK) {
        *ret_self = g;
    }
    return code;
}

static void done(void *self)
{
    graph_free(self);
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "graph",
        .name = "Graph",
        .icon = "share",
        .color = "#009e73",
        .description = "Remembers entities and their relations, and finds neighbours and paths.",
        .version = BATON_VERSION,
        .skills = graph_skills,
        .skill_count = graph_skill_count,
        .capacity = 4,
        .init = init,
        .done = done,
    };

    return bt_agent_main(&def, argc, argv);
}
