/*
 * ai-sdk: "Streaming plan execution" (S000): {type: progress, completed, total, lastStep}, {type:
 * replan, reason, newSteps}, {type: complete, results}, {type: error, message}. `reason` is the
 * error that caused the replan. `lastStep` is the task of the last completed step, which the
 * document calls its action.
 */
#include "protocol/compat/compat_internal.h"

static void progress(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    const struct compat_step *s = compat_step_find(p, compat_number(ev, "stepIndex", UINT64_MAX));
    struct compat_map m = {0};

    p->completed++;
    compat_add(&m, "type", STR_LIT("progress"));
    if (p->seen_from_start) {
        compat_add_u64(&m, "completed", p->completed);
    }
    if (p->has_total && (p->seen_from_start || p->current >= p->completed)) {
        compat_add_u64(&m, "total", p->current);
    }
    compat_add(&m, "lastStep", s != NULL ? s->tool : (struct str){NULL, 0});
    compat_emit(v, "progress", &m);
    compat_step_complete(v, p, ev);
}

static void replan(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    compat_add(&m, "type", STR_LIT("replan"));
    compat_add(&m, "reason", p->reason.ptr != NULL ? p->reason : compat_text(ev, "reason"));
    compat_add_u64(&m, "newSteps", compat_number(ev, "newSteps", 0));
    compat_emit(v, "replan", &m);
}

static void complete(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = {0};

    if (str_is(compat_text(ev, "status"), "completed")) {
        compat_add(&m, "type", STR_LIT("complete"));
        compat_add_doc(&m, "results", compat_results(v, p));
        compat_emit(v, "complete", &m);
    } else {
        compat_add(&m, "type", STR_LIT("error"));
        compat_add(&m, "message",
                   compat_or_default(compat_text(ev, "failureReason"), compat_text(ev, "status")));
        compat_emit(v, "error", &m);
    }
}

/* Keeps the task of a step; only the start event has it. */
static void remember(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    const struct str task = compat_text(ev, "task");
    struct compat_step *s =
        compat_step_keep(v, p, compat_number(ev, "stepIndex", UINT64_MAX),
                         compat_text(ev, "stepId"), task, (struct str){NULL, 0});
    if (s != NULL) {
        s->open = str_is(ev->type, "plan_step_started");
    }
}

static void take_ai_sdk(struct bt_vocabulary *v, struct compat_plan *p,
                        const struct compat_event *ev)
{
    if (p == NULL) {
        return;
    }
    if (str_is(ev->type, "plan_step_started")) {
        remember(v, p, ev);
    } else if (str_is(ev->type, "plan_step_completed")) {
        if (str_is(compat_text(ev, "status"), "completed")) {
            progress(v, p, ev);
        } else {
            compat_step_drop(v, p, compat_number(ev, "stepIndex", UINT64_MAX));
        }
    } else if (str_is(ev->type, "replan_finished") && compat_bool(ev, "ok")) {
        replan(v, p, ev);
    } else if (str_is(ev->type, "plan_completed")) {
        complete(v, p, ev);
    }
}

const struct compat_vocabulary vocabulary_ai_sdk = {
    .name = "ai-sdk", .alias = "s000", .take = take_ai_sdk};
