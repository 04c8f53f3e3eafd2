#include "agents/report/report.h"

static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    struct report *r = NULL;
    enum bt_code code = report_new(bt_agent_settings_json(in), &r, err);

    page_start();
    if (code == BT_OK) {
        *ret_self = r;
    }
    return code;
}

static void done(void *self)
{
    report_free(self);
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "report",
        .name = "Report",
        .icon = "chart",
        .color = "#0072b2",
        .description = "Draws charts as SVG and makes documents: Markdown, HTML, PDF.",
        .version = BATON_VERSION,
        .skills = report_skills,
        .skill_count = report_skill_count,
        .capacity = 2,
        .init = init,
        .done = done,
    };

    return bt_agent_main(&def, argc, argv);
}
