/*
 * S003's telemetry, as {event, planId, measurements, metadata}: the event's list of atoms and the
 * two maps that a handler gets. Durations are native time, which is nanoseconds on the machines
 * that BEAM runs on. The document knows the states ok and error of an execution only, so waiting
 * for people neither stops nor starts one, and `attempt` of an execution is always 1.
 */
#include "protocol/client/compat.h"

enum { NATIVE_PER_MS = 1000000 };

static void tell(struct bt_vocabulary *v, const char *what, const char *verb,
                 const struct compat_event *ev, bool timed, const struct compat_map *metadata)
{
    static const struct {
        const char *what, *verb, *type;
    } types[] = {
        {"plan", "generated", "plan.generated"}, {"execution", "start", "execution.start"},
        {"execution", "stop", "execution.stop"}, {"task", "start", "task.start"},
        {"task", "stop", "task.stop"},           {"replan", "start", "replan.start"},
        {"replan", "stop", "replan.stop"},
    };
    const uint64_t ms = compat_number(ev, "durationMs", 0);
    struct compat_map measurements = {0};
    struct compat_map m = {0};
    const char *type = "";
    size_t cuts[2];

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (str_is(str_from(what), types[i].what) && str_is(str_from(verb), types[i].verb)) {
            type = types[i].type;
        }
    }
    if (timed) {
        compat_add_u64(&measurements, "duration",
                       ms > UINT64_MAX / NATIVE_PER_MS ? UINT64_MAX : ms * NATIVE_PER_MS);
    }
    compat_renew(v, &v->parts);
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
    compat_tell(v, type, &m);
}

static void generated(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    buf_clear(&p->shape);
    doc_put_doc(&p->shape, compat_shape(v, ev));
    if (v->list.bad != BT_OK || p->shape.bad != BT_OK) {
        v->bad = BT_NOMEM;
        buf_clear(&p->shape);
    }
    if (p->shape.len > 0) {
        compat_add_doc(&m, "plan", doc_from_buf(&p->shape));
    }
    compat_add(&m, "mission", p->mission);
    tell(v, "plan", "generated", ev, false, &m);
}

static void execution(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    if (str_is(ev->type, "plan_started")) {
        p->started = true;
        if (p->shape.len > 0) {
            compat_add_doc(&m, "plan", doc_from_buf(&p->shape));
        }
        compat_add(&m, "mission", p->mission);
        compat_add_u64(&m, "attempt", 1);
        tell(v, "execution", "start", ev, false, &m);
        buf_done(&p->shape);
        buf_clear(&p->shape);
    } else if (p->started || !p->whole) {
        const bool ok = str_is(compat_text(ev, "status"), "completed");
        compat_add(&m, "status", ok ? STR_LIT("ok") : STR_LIT("error"));
        compat_add_doc(&m, "results", compat_results(v, p));
        tell(v, "execution", "stop", ev, true, &m);
    }
}

static void started(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_step *s = compat_step_keep(v, p, compat_number(ev, "stepIndex", UINT64_MAX),
                                             STR_LIT(""), STR_LIT(""), (struct str){NULL, 0});
    struct compat_map task = {0};
    struct compat_map m = {0};

    if (s != NULL) {
        s->open = true;
    }
    compat_copy(&task, "id", ev, "stepId");
    compat_copy(&task, "agent", ev, "agentId");
    compat_copy(&task, "input", ev, "task");
    compat_renew(v, &v->list);
    compat_put(&v->list, &task);
    compat_copy(&m, "task_id", ev, "stepId");
    compat_add_doc(&m, "task", doc_from_buf(&v->list));
    compat_add_u64(&m, "attempt", compat_number(ev, "attempt", 1));
    tell(v, "task", "start", ev, false, &m);
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
    if (!began) {
        return; /* its result is in those of the execution */
    }
    compat_copy(&m, "task_id", ev, "stepId");
    compat_add(&m, "status", ok ? STR_LIT("ok") : skipped ? STR_LIT("skipped") : STR_LIT("error"));
    compat_add(&m, "result",
               ok ? compat_text(ev, "result")
                  : compat_or(compat_error(p, ev), compat_text(ev, "reason")));
    tell(v, "task", "stop", ev, true, &m);
}

static void replan(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    if (str_is(ev->type, "replan_started")) {
        const uint32_t n = compat_replanned(v, p, compat_text(ev, "stepId"));
        compat_copy(&m, "task_id", ev, "stepId");
        compat_add(&m, "diagnosis", compat_or(compat_text(ev, "diagnosis"), STR_LIT("")));
        if (n > 0 && p->whole) {
            compat_add_u64(&m, "attempt", n);
        }
        tell(v, "replan", "start", ev, false, &m);
    } else if (compat_yes(ev, "ok")) {
        compat_add_u64(&m, "new_task_count", compat_number(ev, "newSteps", 0));
        tell(v, "replan", "stop", ev, false, &m);
    }
}

static void take(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    if (p == NULL) {
        return;
    }
    if (str_is(ev->type, "plan_generated")) {
        generated(v, p, ev);
    } else if (str_is(ev->type, "plan_started") || str_is(ev->type, "plan_completed")) {
        execution(v, p, ev);
    } else if (str_is(ev->type, "plan_step_started")) {
        started(v, p, ev);
    } else if (str_is(ev->type, "plan_step_completed")) {
        completed(v, p, ev);
    } else if (str_is(ev->type, "replan_started") || str_is(ev->type, "replan_finished")) {
        replan(v, p, ev);
    }
}

const struct compat_words compat_telemetry = {.name = "s003-telemetry", .take = take};
