/*
 * ptc-runner-telemetry: the telemetry of PtcRunner (S003) as {event, planId, measurements,
 * metadata}: the list of atoms and the two maps that a handler gets. Durations are native time,
 * which is nanoseconds on the machines that BEAM supports. The document has only the states ok and
 * error, so waiting for people neither stops nor starts an execution. A replan starts the next
 * execution, and `attempt` counts them. The one before has no stop (see ptc_runner.c). The duration
 * of a task excludes its replan.
 */
#include "protocol/compat/compat_internal.h"

enum { NATIVE_PER_MS = 1000000 };
#define NO_DURATION UINT64_MAX

static void emit(struct bt_vocabulary *v, const char *what, const char *verb,
                 const struct compat_event *ev, uint64_t ms, const struct compat_map *metadata)
{
    static const struct {
        const char *what, *verb, *type;
    } types[] = {
        {"plan", "generated", "plan.generated"}, {"execution", "start", "execution.start"},
        {"execution", "stop", "execution.stop"}, {"task", "start", "task.start"},
        {"task", "stop", "task.stop"},           {"replan", "start", "replan.start"},
        {"replan", "stop", "replan.stop"},
    };
    struct compat_map measurements = {0};
    struct compat_map m = {0};
    const char *type = "";
    size_t cuts[2];

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (str_is(str_from(what), types[i].what) && str_is(str_from(verb), types[i].verb)) {
            type = types[i].type;
        }
    }
    if (ms != NO_DURATION) {
        compat_add_u64(&measurements, "duration",
                       ms > UINT64_MAX / NATIVE_PER_MS ? UINT64_MAX : ms * NATIVE_PER_MS);
    }
    compat_reset_buf(v, &v->parts);
    doc_put_array(&v->parts, 4);
    doc_put_cstr(&v->parts, "ptc_runner");
    doc_put_cstr(&v->parts, "plan_executor");
    doc_put_cstr(&v->parts, what);
    doc_put_cstr(&v->parts, verb);
    cuts[0] = v->parts.len;
    compat_put(&v->parts, &measurements);
    cuts[1] = v->parts.len;
    compat_put(&v->parts, metadata);
    if (v->parts.bad != BT_OK) {
        v->bad = v->parts.bad;
        return;
    }
    compat_add_doc(&m, "event", (struct doc){v->parts.at, cuts[0]});
    compat_add(&m, "planId", ev->plan_id);
    compat_add_doc(&m, "measurements", (struct doc){v->parts.at + cuts[0], cuts[1] - cuts[0]});
    compat_add_doc(&m, "metadata", (struct doc){v->parts.at + cuts[1], v->parts.len - cuts[1]});
    compat_emit(v, type, &m);
}

/* Updates the plan that the next execution.start has. */
static void update_plan_map(struct bt_vocabulary *v, struct compat_plan *p, struct doc before,
                            struct str removed, const struct compat_event *ev)
{
    const struct doc after = compat_plan_map(v, before, removed, ev);
    const size_t was = p->plan_map.len;

    buf_clear(&p->plan_map);
    if (v->list.bad == BT_OK) {
        doc_put_doc(&p->plan_map, after);
    }
    if (v->list.bad == BT_NOMEM || p->plan_map.bad == BT_NOMEM) {
        v->bad = BT_NOMEM;
    }
    if (v->list.bad != BT_OK || p->plan_map.bad != BT_OK) {
        buf_clear(&p->plan_map); /* too many tasks: the plan is omitted */
    }
    compat_make_room(v, p, p->plan_map.len);
    v->bytes += p->plan_map.len - was;
    p->bytes += p->plan_map.len - was;
}

static void change_plan_map(struct bt_vocabulary *v, struct compat_plan *p, struct str removed,
                            const struct compat_event *ev)
{
    if (p->plan_map.len > 0) {
        update_plan_map(v, p, doc_from_buf(&p->plan_map), removed, ev);
    }
}

static void generated(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    update_plan_map(v, p, (struct doc){NULL, 0}, STR_LIT(""), ev);
    if (!p->by_planner) {
        return;
    }
    if (p->plan_map.len > 0) {
        compat_add_doc(&m, "plan", doc_from_buf(&p->plan_map));
    }
    compat_add(&m, "mission", p->mission);
    emit(v, "plan", "generated", ev, NO_DURATION, &m);
}

static void start(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    p->started = true;
    if (p->plan_map.len > 0) {
        compat_add_doc(&m, "plan", doc_from_buf(&p->plan_map));
    }
    compat_add(&m, "mission", p->mission);
    if (p->seen_from_start) {
        compat_add_u64(&m, "attempt", 1 + p->replans);
    }
    emit(v, "execution", "start", ev, NO_DURATION, &m);
}

static void stop(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    const bool ok = str_is(compat_text(ev, "status"), "completed");
    struct compat_map m = {0};

    if (p->started || !p->seen_from_start) {
        compat_add(&m, "status", ok ? STR_LIT("ok") : STR_LIT("error"));
        compat_add_doc(&m, "results", compat_results(v, p));
        emit(v, "execution", "stop", ev, compat_number(ev, "durationMs", 0), &m);
    }
}

/* ---- tasks ---- */

static void started(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_step *s = compat_step_keep(v, p, compat_number(ev, "stepIndex", UINT64_MAX),
                                             STR_LIT(""), STR_LIT(""), (struct str){NULL, 0});
    struct compat_map task = {0};
    struct compat_map m = {0};

    if (s != NULL) {
        s->open = true;
        s->started_ms = ev->ts_ms;
    }
    compat_copy(&task, "id", ev, "stepId");
    compat_copy(&task, "agent", ev, "agentId");
    compat_copy(&task, "input", ev, "task");
    compat_reset_buf(v, &v->list);
    compat_put(&v->list, &task);
    compat_copy(&m, "task_id", ev, "stepId");
    compat_add_doc(&m, "task", doc_from_buf(&v->list));
    compat_add_u64(&m, "attempt", compat_number(ev, "attempt", 1));
    emit(v, "task", "start", ev, NO_DURATION, &m);
}

/* Returns the duration of a step without its replan. */
static uint64_t worked_ms(const struct compat_plan *p, const struct compat_event *ev)
{
    const uint64_t ms = compat_number(ev, "durationMs", 0);
    const bool replanned = p->reason.ptr != NULL && p->replan_ms != 0 &&
                           p->replan_ms <= ev->ts_ms &&
                           p->replanning == compat_number(ev, "stepIndex", UINT64_MAX);
    const uint64_t waited = replanned ? ev->ts_ms - p->replan_ms : 0;

    return ms > waited ? ms - waited : 0;
}

static void completed(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    const struct str status = compat_text(ev, "status");
    const bool ok = str_is(status, "completed");
    const bool skipped = str_is(status, "skipped");
    const bool began = compat_step_began(p, ev);
    struct compat_map m = {0};

    compat_step_drop(v, p, compat_number(ev, "stepIndex", UINT64_MAX));
    if (ok) {
        compat_step_complete(v, p, ev);
    }
    if (str_is(compat_text(ev, "reason"), "superseded")) {
        change_plan_map(v, p, compat_text(ev, "stepId"), NULL);
    }
    if (!began) {
        return; /* the results of the execution include it */
    }
    compat_copy(&m, "task_id", ev, "stepId");
    compat_add(&m, "status", ok ? STR_LIT("ok") : skipped ? STR_LIT("skipped") : STR_LIT("error"));
    if (ok) {
        compat_add_result(v, &m, "result", compat_text(ev, "result"));
    } else {
        compat_add(&m, "result", compat_or_default(compat_error(p, ev), compat_text(ev, "reason")));
    }
    emit(v, "task", "stop", ev, worked_ms(p, ev), &m);
}

/* Emits the failure now, because Baton ends the step only with the revision that drops it. */
static void fail_replanned_step(struct bt_vocabulary *v, struct compat_plan *p,
                                const struct compat_event *ev)
{
    const struct compat_step *s = compat_step_find(p, p->replanning);
    struct compat_map m = {0};

    if (s == NULL || !s->open || s->started_ms == 0 || s->started_ms > ev->ts_ms) {
        return; /* the duration is unknown until its end */
    }
    compat_copy(&m, "task_id", ev, "stepId");
    compat_add(&m, "status", STR_LIT("error"));
    compat_copy(&m, "result", ev, "diagnosis");
    emit(v, "task", "stop", ev, ev->ts_ms - s->started_ms, &m);
    compat_step_drop(v, p, p->replanning);
    p->failure_emitted = true;
}

static void replan(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    if (str_is(ev->type, "replan_started")) {
        const uint32_t n = compat_replanned(v, p, compat_text(ev, "stepId"));
        fail_replanned_step(v, p, ev);
        compat_copy(&m, "task_id", ev, "stepId");
        compat_add(&m, "diagnosis", compat_or_default(compat_text(ev, "diagnosis"), STR_LIT("")));
        if (n > 0 && p->seen_from_start) {
            compat_add_u64(&m, "attempt", n);
        }
        emit(v, "replan", "start", ev, NO_DURATION, &m);
    } else if (compat_bool(ev, "ok")) {
        compat_add_u64(&m, "new_task_count", compat_number(ev, "newSteps", 0));
        emit(v, "replan", "stop", ev, NO_DURATION, &m);
        for (uint32_t i = 0; i < p->n_steps; i++) {
            if (p->steps[i]->completed && !compat_has_step(p, p->steps[i])) {
                change_plan_map(v, p, p->steps[i]->id, NULL);
            }
        }
        change_plan_map(v, p, STR_LIT(""), ev);
        start(v, p, ev);
    }
}

static void take(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    if (p == NULL) {
        return;
    }
    if (str_is(ev->type, "plan_generated")) {
        generated(v, p, ev);
    } else if (str_is(ev->type, "plan_started")) {
        start(v, p, ev);
    } else if (str_is(ev->type, "plan_completed")) {
        stop(v, p, ev);
    } else if (str_is(ev->type, "plan_step_started")) {
        started(v, p, ev);
    } else if (str_is(ev->type, "plan_step_completed")) {
        completed(v, p, ev);
    } else if (str_is(ev->type, "replan_started") || str_is(ev->type, "replan_finished")) {
        replan(v, p, ev);
    } else if (str_is(ev->type, "plan_modified") || str_is(ev->type, "synthesis_retry")) {
        change_plan_map(v, p, STR_LIT(""), ev);
    }
}

const struct compat_vocabulary vocabulary_ptc_runner_telemetry = {.name = "ptc-runner-telemetry",
                                                                  .alias = "s003-telemetry",
                                                                  .take = take,
                                                                  .wants_revision = true};
