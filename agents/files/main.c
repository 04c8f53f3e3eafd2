#include "agents/files/files.h"

static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    struct files *f = NULL;
    enum bt_code code = files_new(bt_agent_settings_json(in), &f, err);

    if (code == BT_OK) {
        *ret_self = f;
    }
    return code;
}

static void done(void *self)
{
    files_free(self);
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "files",
        .name = "Files",
        .icon = "folder",
        .color = "#8a6d3b",
        .description = "Reads, lists, searches and writes files below the directories that its "
                       "settings name; nothing else.",
        .version = BATON_VERSION,
        .skills = files_skills,
        .skill_count = files_skill_count,
        .capacity = 4,
        .init = init,
        .done = done,
    };

    return bt_agent_main(&def, argc, argv);
}
