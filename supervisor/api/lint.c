/* plan.lint: what a goal or a document would become, and the worst that may come of it. */
#include "supervisor/plan/lint.h"
#include "supervisor/api/api.h"
#include "supervisor/engine/submission.h"

/* The document of a large plan needs the room that names would take. */
static bool has_room(const struct submission *d)
{
    size_t bytes = d->normalised.len + d->problems.n * sizeof(struct problem);
    for (uint32_t i = 0; i < d->made->n_steps; i++) {
        bytes += 2 * (d->made->steps[i].step_id.len + 4);
    }
    return bytes < LIMIT_CONTROL_BYTES / 2;
}

/* Steps by their level: a counting sort of the rows. */
static enum bt_code view_levels(struct submission *d, const struct plan_lint *lint,
                                struct msg_plan_lint_ok *ok)
{
    const struct plan *p = d->made;
    struct arena *a = &d->arena;
    struct str *ids = arena_alloc(a, (p->n_steps + 1) * sizeof *ids);
    struct str *path = arena_alloc(a, (lint->n_path + 1) * sizeof *path);
    struct msg_plan_level *levels = arena_alloc(a, (lint->n_levels + 1) * sizeof *levels);
    if (ids == NULL || path == NULL || levels == NULL) {
        return BT_NOMEM;
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        levels[lint->steps[i].level].steps_n++;
    }
    for (uint32_t level = 0; level < lint->n_levels; level++) {
        levels[level].steps = ids;
        ids += levels[level].steps_n;
        levels[level].steps_n = 0;
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        struct msg_plan_level *level = &levels[lint->steps[i].level];
        level->steps[level->steps_n++] = p->steps[i].step_id;
    }
    for (uint32_t i = 0; i < lint->n_path; i++) {
        path[i] = p->steps[lint->path[i]].step_id;
    }
    ok->levels = levels;
    ok->levels_n = lint->n_levels;
    ok->critical_path = path;
    ok->critical_path_n = lint->n_path;
    return BT_OK;
}

/* Times without a bound and sums without an estimate are left out. */
static enum bt_code look_ahead(struct engine *engine, struct submission *d,
                               struct msg_plan_lint_ok *ok, struct bt_error *err)
{
    struct plan_lint lint;
    enum bt_code code = plan_lint(d->made, &d->arena, &lint, err);

    if (code == BT_OK) {
        code =
            plan_lint_style(d->made, &lint, engine_registry(engine), &d->arena, &d->problems, err);
    }
    if (code != BT_OK) {
        return code;
    }
    if (lint.worst_ms != LINT_NO_BOUND) {
        ok->worst_case_ms = lint.worst_ms;
    }
    if (lint.undo_ms != LINT_NO_BOUND) {
        ok->worst_case_undo_ms = lint.undo_ms;
    }
    if (lint.unestimated == 0) {
        ok->worst_case_tokens = lint.worst_tokens < INT64_MAX ? lint.worst_tokens : INT64_MAX;
        ok->worst_case_cost_micros = lint.worst_micros < INT64_MAX ? lint.worst_micros : INT64_MAX;
    }
    return has_room(d) ? view_levels(d, &lint, ok) : BT_OK;
}

void on_plan_lint(struct engine *engine, struct request *rq)
{
    struct msg_plan_lint_ok ok = {0};
    struct msg_plan_lint m;
    struct submission d;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_plan_lint, &m)) {
        return;
    }
    if (m.plan.ptr == NULL && submission_is_asked(engine, m.planner)) {
        request_refuse_text(
            engine, rq, BT_INVALID,
            "planner: this one is asked, which takes time; use plan.submit with dryRun "
            "and plan.get with document");
        return;
    }
    const struct submit_request w = {.goal = m.goal,
                                     .planner = m.planner,
                                     .plan = m.plan,
                                     .policy = m.policy,
                                     .lenient = m.lenient};
    ok.valid = submission_init(&d, &err) == BT_OK && submission_make(engine, &w, &d, &err) == BT_OK;
    if (!ok.valid && d.problems.errors == 0 && d.planned.n_unrouted == 0) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
    } else if (ok.valid && look_ahead(engine, &d, &ok, &err) != BT_OK) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for the worst case of a plan");
    } else {
        ok.problems_n = submission_problems(&d);
        ok.problems = d.problem_views;
        ok.routes_n = submission_routes(&d);
        ok.routes = d.route_views;
        ok.plan = ok.valid ? doc_from_buf(&d.normalised) : (struct doc){NULL, 0};
        msg_set(&ok, plan_lint_ok, valid);
        request_answer(engine, rq, MSG_plan_lint_ok, &ok);
    }
    submission_done(&d);
}
