/* Words become a plan of the session. */
#include "supervisor/conversation/conversation.h"
#include "supervisor/engine/submission.h"

enum { PROBLEMS_TOLD = 5 };

/* What was understood is a new plan, also when none is made of it: then there is no planId. */
static void reply_no_plan(struct turn_ctx *t, const char *what, const char *why)
{
    reply_only(t, "No plan could be %s:%s%s", what, why[0] != 0 ? " " : "", why);
    t->action = STR_LIT("new_plan");
}

/* `why` names the first problem, which may be the only one. */
static void reply_problems(struct turn_ctx *t, struct submission *d, const struct bt_error *why)
{
    const uint32_t n = submission_problems(d);
    uint32_t errors = 0;
    uint32_t told = 0;

    for (uint32_t i = 0; d->problem_views != NULL && i < n; i++) {
        errors += str_is(d->problem_views[i].severity, "error");
    }
    reply_no_plan(t, "made", errors > 1 ? "" : why->msg);
    for (uint32_t i = 0; errors > 1 && i < n && told < PROBLEMS_TOLD; i++) {
        const struct msg_plan_problem *p = &d->problem_views[i];
        if (str_is(p->severity, "error")) {
            buf_printf(&t->reply, "\n- %.*s%s%.*s", STR_ARG(p->step_id),
                       p->step_id.len > 0 ? ": " : "", STR_ARG(p->message));
            told++;
        }
    }
    if (errors > 1 && errors > told) {
        buf_printf(&t->reply, "\n- and %u more", errors - told);
    }
}

enum bt_code intent_submission(struct turn_ctx *t, struct str goal, struct submission *d)
{
    const struct submit_request w = {
        .goal = goal, .session_id = t->turn.session_id, .planner = t->planner, .policy = t->policy};
    struct bt_error err;
    enum bt_code code = submission_init(d, &err);

    if (code == BT_OK) {
        code = submission_make(t->engine, &w, d, &err);
    }
    if (code != BT_OK) {
        reply_problems(t, d, &err);
    }
    return code;
}

void intent_start(struct turn_ctx *t, struct submission *d)
{
    const struct submission_start how = {.body_hash = t->turn.body_hash};
    char id[UUID_TEXT_LEN + 1];
    struct bt_error err;

    if (submission_start(t->engine, &how, d, id, &err) != BT_OK) {
        reply_no_plan(t, "begun", err.msg);
        return;
    }
    (void)uuid_parse(str_from(id), &t->turn.plan);
    t->action = STR_LIT("new_plan");
    t->waits = true;
}
