#include "agents/calc/calc.h"

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
    };

    return bt_agent_main(&def, argc, argv);
}
