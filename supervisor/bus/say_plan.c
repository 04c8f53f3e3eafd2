/* Words become a plan of the session. */
#include "supervisor/bus/draft.h"
#include "supervisor/bus/session.h"

enum { PROBLEMS_TOLD = 5 };

static void tell_problems(struct talk *t, struct draft *d, const struct bt_error *why)
{
    const uint32_t n = draft_problems(d);

    say_only(t, "No plan could be made: %s", why->msg);
    for (uint32_t i = 0; d->problem_views != NULL && i < n && i < PROBLEMS_TOLD; i++) {
        const struct msg_plan_problem *p = &d->problem_views[i];
        if (str_is(p->severity, "error") && !str_is(p->message, why->msg)) {
            buf_printf(&t->reply, "\n- %.*s", STR_ARG(p->message));
        }
    }
}

enum bt_code say_draft(struct talk *t, struct str goal, struct draft *d)
{
    const struct wish w = {
        .goal = goal, .session_id = t->turn.session_id, .planner = t->planner, .policy = t->policy};
    struct bt_error err;
    enum bt_code code = draft_init(d, &err);

    if (code == BT_OK) {
        code = draft_make(t->b, &w, d, &err);
    }
    if (code != BT_OK) {
        tell_problems(t, d, &err);
    }
    return code;
}

void say_start(struct talk *t, struct draft *d)
{
    const struct draft_start how = {.body_hash = t->turn.body_hash};
    char id[UUID_TEXT_LEN + 1];
    struct bt_error err;

    if (draft_start(t->b, &how, d, id, &err) != BT_OK) {
        say_only(t, "No plan could be begun: %s", err.msg);
        return;
    }
    (void)uuid_parse(str_from(id), &t->turn.plan);
    t->action = STR_LIT("new_plan");
    t->waits = true;
}
