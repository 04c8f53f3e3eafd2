#include <string.h>

#include "agents/calc/calc.h"
#include "protocol/base/err.h"

/* A setting that would have no effect is a mistake. */
static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    const char *settings = bt_agent_settings_json(in);

    (void)ret_self;
    return strcmp(settings, "{}") == 0
               ? BT_OK
               : err_set(err, BT_INVALID, "this agent has no settings, got %.200s", settings);
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "calc",
        .name = "Calculator",
        .icon = "calculator",
        .color = "#2f7ed8",
        .description = "Calculates: expressions, statistics, counts, shares and dates. Reads "
                       "nothing but its step.",
        .version = BATON_VERSION,
        .skills = calc_skills,
        .skill_count = calc_skill_count,
        .capacity = 4,
        .init = init,
    };

    return bt_agent_main(&def, argc, argv);
}
