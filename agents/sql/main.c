#include <sqlite3.h>

#include "agents/sql/sql.h"

/* Heap of all statements together. */
#define HEAP_MAX (INT64_C(512) * 1024 * 1024)

static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    struct sql_settings *s = NULL;
    size_t n = 0;
    const struct bt_skill *skills = sql_skills(&n);
    enum bt_code code = sql_settings_read(bt_agent_settings_json(in), &s, err);

    for (size_t i = 0; code == BT_OK && i < n; i++) {
        if (sql_skill_offered(&skills[i], s)) {
            code = bt_agent_add_skill(in, &skills[i], err);
        }
    }
    if (code != BT_OK) {
        sql_settings_free(s);
        return code;
    }
    (void)sqlite3_hard_heap_limit64(HEAP_MAX);
    sqlite3_temp_directory = sqlite3_mprintf("%s", s->dir);
    *ret_self = s;
    return BT_OK;
}

static void done(void *self)
{
    sql_settings_free(self);
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "sql",
        .name = "SQL databases",
        .icon = "database",
        .color = "#8e44ad",
        .description = "Loads tables into SQLite databases and queries them.",
        .version = BATON_VERSION,
        .capacity = 3,
        .init = init,
        .done = done,
    };

    return bt_agent_main(&def, argc, argv);
}
