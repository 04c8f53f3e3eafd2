/*
 * ptc-runner: PtcRunner.PlanExecutor (S003): the events of its callback (type event/0) as {type,
 * payload}: the atom and its map. A plan made by a planner is run/2. A submitted plan is execute/3
 * and has no planning events.
 *
 * When all open steps wait for people, the execution finishes as `waiting`. What follows is the
 * next execution, which begins with task_skipped{already_completed} for completed steps. The
 * execution after a replan begins the same way ("re-execute with repair plan"). The one before it
 * has no execution_finished, because the document has no status for it (ok, error, waiting). The
 * task that causes a replan fails before replan_started. Retries emit nothing. A skipped step is
 * not task_skipped: with an error it has failed, without one it emits nothing.
 */
#include "protocol/compat/compat_internal.h"

static void emit(struct bt_vocabulary *v, const char *type, const struct compat_map *m)
{
    compat_emit_payload(v, type, "", m);
}

static void emit_text(struct bt_vocabulary *v, const char *type, const char *key, struct str text)
{
    struct compat_map m = {0};

    compat_add(&m, key, text);
    emit(v, type, &m);
}

/* ---- planning ---- */

static void generated(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    if (!p->by_planner) {
        return;
    }
    if (!p->begin_emitted) {
        emit_text(v, "planning_started", "mission", p->mission);
    }
    p->begin_emitted = true;
    p->planning = false;
    compat_add_u64(&m, "task_count", p->total);
    compat_add_doc(&m, "plan", compat_plan_map(v, (struct doc){NULL, 0}, STR_LIT(""), ev));
    emit(v, "planning_finished", &m);
}

static void planning(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    if (str_is(ev->type, "planning_started")) {
        p->begin_emitted = p->planning = true;
        emit_text(v, "planning_started", "mission", p->mission);
    } else if (str_is(ev->type, "planning_retry")) {
        compat_add_u64(&m, "validation_errors", compat_number(ev, "validationErrors", 0));
        emit(v, "planning_retry", &m);
    } else if (str_is(ev->type, "planning_failed")) {
        p->planning = false;
        emit_text(v, "planning_failed", "reason",
                  compat_or_default(compat_text(ev, "reason"), compat_text(ev, "failureKind")));
    } else {
        generated(v, p, ev);
    }
}

/* ---- the execution ---- */

static void begin(struct bt_vocabulary *v, struct compat_plan *p)
{
    struct compat_map m = {0};

    p->running = p->started = true;
    compat_add(&m, "mission", p->mission);
    if (p->has_total) {
        compat_add_u64(&m, "task_count", p->current);
    }
    emit(v, "execution_started", &m);
}

/* Starts the next execution when the last one was finished to wait for people, or ended by a
 * replan. */
static void continue_execution(struct bt_vocabulary *v, struct compat_plan *p)
{
    if (p->running || !p->started) {
        return;
    }
    begin(v, p);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        struct compat_map m = {0};
        if (p->steps[i]->completed && compat_has_step(p, p->steps[i])) {
            compat_add(&m, "task_id", p->steps[i]->id);
            compat_add(&m, "reason", STR_LIT("already_completed"));
            emit(v, "task_skipped", &m);
        }
    }
}

static void finish(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev,
                   const char *status)
{
    struct compat_map m = {0};

    p->running = false;
    compat_add(&m, "status", str_from(status));
    if (str_is(ev->type, "plan_completed")) {
        compat_add_u64(&m, "duration_ms", compat_number(ev, "durationMs", 0));
    } else if (p->has_start && ev->ts_ms >= p->started_ms) {
        compat_add_u64(&m, "duration_ms", ev->ts_ms - p->started_ms);
    }
    emit(v, "execution_finished", &m);
}

static void execution(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    if (str_is(ev->type, "plan_started")) {
        begin(v, p);
    } else if (str_is(ev->type, "plan_paused")) {
        if ((p->running || !p->seen_from_start) && str_is(compat_text(ev, "reason"), "review")) {
            p->started = true;
            finish(v, p, ev, "waiting");
        }
    } else if (str_is(ev->type, "plan_resumed")) {
        if (str_is(compat_text(ev, "reason"), "review")) {
            continue_execution(v, p);
        }
    } else if (p->started ||
               !p->seen_from_start) { /* else nothing was executed: no plan, or a dry run */
        continue_execution(v, p);
        finish(v, p, ev, str_is(compat_text(ev, "status"), "completed") ? "ok" : "error");
    } else if (p->planning) { /* cancelled while planning */
        emit_text(v, "planning_failed", "reason",
                  compat_or_default(compat_text(ev, "failureReason"), compat_text(ev, "status")));
    }
}

/* ---- tasks ---- */

static void started(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};
    struct compat_step *s = compat_step_keep(v, p, compat_number(ev, "stepIndex", UINT64_MAX),
                                             STR_LIT(""), STR_LIT(""), (struct str){NULL, 0});
    if (s != NULL) {
        s->open = true;
    }
    compat_copy(&m, "task_id", ev, "stepId");
    compat_add_u64(&m, "attempt", compat_number(ev, "attempt", 1));
    emit(v, "task_started", &m);
}

static void completed(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    const struct str status = compat_text(ev, "status");
    const struct str error = compat_error(p, ev);
    const bool began = compat_step_began(p, ev);
    struct compat_map m = {0};

    compat_copy(&m, "task_id", ev, "stepId");
    compat_step_drop(v, p, compat_number(ev, "stepIndex", UINT64_MAX));
    if (str_is(status, "completed")) {
        continue_execution(v, p);
        compat_step_complete(v, p, ev);
        if (str_is(compat_text(ev, "reason"), "already_completed")) {
            compat_copy(&m, "reason", ev, "reason");
            emit(v, "task_skipped", &m);
            return;
        }
        compat_add_u64(&m, "duration_ms", compat_number(ev, "durationMs", 0));
        emit(v, "task_succeeded", &m);
    } else if (began && (error.len > 0 || !str_is(status, "skipped"))) {
        continue_execution(v, p);
        compat_add(&m, "reason",
                   compat_or_default(error, compat_or_default(compat_text(ev, "reason"), status)));
        emit(v, "task_failed", &m);
    }
}

/* Emits the progress of an agent, with the members that it has. */
static void task_step(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_map step = {0};
    struct compat_map m = {0};

    compat_copy(&step, "attempt", ev, "attempt");
    compat_copy(&step, "n", ev, "n");
    compat_copy(&step, "text", ev, "text");
    compat_copy(&step, "data", ev, "data");
    compat_copy(&step, "percent", ev, "percent");
    compat_reset_buf(v, &v->list);
    compat_put(&v->list, &step);
    compat_copy(&m, "task_id", ev, "stepId");
    compat_add_doc(&m, "step", doc_from_buf(&v->list));
    emit(v, "task_step", &m);
}

static void task(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    if (str_is(ev->type, "plan_step_started")) {
        continue_execution(v, p);
        started(v, p, ev);
    } else if (str_is(ev->type, "plan_step_completed")) {
        completed(v, p, ev);
    } else {
        continue_execution(v, p);
        task_step(v, ev);
    }
}

/* ---- checks and replans: the same members by other names ---- */

static void check(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    static const struct {
        const char *from, *type, *key, *member;
    } table[] = {
        {"plan_step_verification_failed", "verification_failed", "diagnosis", "diagnosis"},
        {"quality_gate_started", "quality_gate_started", NULL, NULL},
        {"quality_gate_passed", "quality_gate_passed", NULL, NULL},
        {"quality_gate_failed", "quality_gate_failed", "missing", "missing"},
        {"quality_gate_error", "quality_gate_error", "reason", "error"},
    };
    struct compat_map m = {0};

    continue_execution(v, p);
    compat_copy(&m, "task_id", ev, "stepId");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (str_is(ev->type, table[i].from)) {
            if (table[i].key != NULL) {
                compat_copy(&m, table[i].key, ev, table[i].member);
            }
            if (i == 3 && compat_member(ev, "missing").ptr == NULL) {
                compat_reset_buf(v, &v->list);
                doc_put_array(&v->list, 0);
                compat_add_doc(&m, "missing", doc_from_buf(&v->list));
            }
            emit(v, table[i].type, &m);
        }
    }
}

/* Emits the failure now, because Baton ends the step only with the revision that drops it. */
static void fail_replanned_step(struct bt_vocabulary *v, struct compat_plan *p,
                                const struct compat_event *ev)
{
    const struct compat_step *s = compat_step_find(p, p->replanning);
    struct compat_map m = {0};

    if (s != NULL ? !s->open : p->seen_from_start || compat_number(ev, "attempt", 0) == 0) {
        return;
    }
    compat_copy(&m, "task_id", ev, "stepId");
    compat_add(&m, "reason", compat_or_default(compat_text(ev, "diagnosis"), STR_LIT("")));
    emit(v, "task_failed", &m);
    compat_step_drop(v, p, p->replanning);
    p->failure_emitted = true;
}

static void replan(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    continue_execution(v, p);
    if (str_is(ev->type, "replan_started")) {
        fail_replanned_step(v, p, ev);
        compat_copy(&m, "task_id", ev, "stepId");
        compat_add(&m, "diagnosis", compat_or_default(compat_text(ev, "diagnosis"), STR_LIT("")));
        compat_copy(&m, "total_replans", ev, "totalReplans");
        emit(v, "replan_started", &m);
    } else if (compat_bool(
                   ev, "ok")) { /* in the document, too, a failed replan only ends the execution */
        compat_add_u64(&m, "new_tasks", compat_number(ev, "newSteps", 0));
        emit(v, "replan_finished", &m);
        p->started = true;
        p->running = false;
        continue_execution(v, p);
    }
}

static void take(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    static const struct {
        const char *type;
        void (*take)(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev);
    } table[] = {
        {"planning_started", planning},  {"planning_retry", planning},
        {"planning_failed", planning},   {"plan_generated", planning},
        {"plan_started", execution},     {"plan_paused", execution},
        {"plan_resumed", execution},     {"plan_completed", execution},
        {"plan_step_started", task},     {"plan_step_completed", task},
        {"plan_step_progress", task},    {"plan_step_verification_failed", check},
        {"quality_gate_started", check}, {"quality_gate_passed", check},
        {"quality_gate_failed", check},  {"quality_gate_error", check},
        {"replan_started", replan},      {"replan_finished", replan},
    };

    for (size_t i = 0; p != NULL && i < sizeof table / sizeof table[0]; i++) {
        if (str_is(ev->type, table[i].type)) {
            table[i].take(v, p, ev);
            return;
        }
    }
}

const struct compat_vocabulary vocabulary_ptc_runner = {
    .name = "ptc-runner", .alias = "s003", .take = take, .wants_revision = true};
