/*
 * orchestrator-log: "Monitor task execution" (S004): the log events task_started, task_completed,
 * task_failed. The document names no members, so these are the members of its tasks (task_id,
 * description, agent, result). Also its interrupts, with their three members: "ERROR_RECOVERY" of
 * the planner, when no plan could be made and a person is asked; "APPROVAL_REQUIRED", when a step,
 * or the plan before it starts, waits for a person. The decision is no interrupt of the document.
 */
#include "protocol/compat/compat_internal.h"

static void log_task(struct bt_vocabulary *v, const char *type, const struct compat_event *ev,
                     struct str error)
{
    struct compat_map m = {0};

    compat_add(&m, "event", str_from(type));
    compat_add(&m, "timestamp", ev->timestamp);
    compat_add(&m, "planId", ev->plan_id);
    compat_copy(&m, "task_id", ev, "stepId");
    compat_copy(&m, "description", ev, "task");
    compat_add(&m, "agent", compat_or_default(compat_text(ev, "agentId"), (struct str){NULL, 0}));
    compat_copy(&m, "result", ev, "result");
    compat_add(&m, "error", error);
    compat_emit(v, type, &m);
}

/* InterruptData: {type, context, metadata}. */
static void interrupt(struct bt_vocabulary *v, const char *type, const struct compat_map *context,
                      const struct compat_map *metadata)
{
    struct compat_map m = {0};
    size_t cut;

    compat_reset_buf(v, &v->list);
    compat_put(&v->list, context);
    cut = v->list.len;
    compat_put(&v->list, metadata);
    if (v->list.bad != BT_OK) {
        v->bad = v->list.bad;
        return;
    }
    compat_add(&m, "type", str_from(type));
    compat_add_doc(&m, "context", (struct doc){v->list.at, cut});
    compat_add_doc(&m, "metadata", (struct doc){v->list.at + cut, v->list.len - cut});
    compat_emit(v, type, &m);
}

/* The plan waits for a person, who may have it planned again or bring a plan; so it is recoverable.
 */
static void planning_failed(struct bt_vocabulary *v, const struct compat_event *ev)
{
    static const uint8_t yes[] = {0xc3};
    struct compat_map metadata = {0};
    struct compat_map context = {0};

    compat_add(&context, "error", compat_or_default(compat_text(ev, "comment"), STR_LIT("")));
    compat_add(&context, "node", STR_LIT("planner"));
    compat_add_doc(&metadata, "recoverable", (struct doc){yes, sizeof yes});
    interrupt(v, "ERROR_RECOVERY", &context, &metadata);
}

/* A step, or the whole plan before it starts, waits for a person's decision. */
static void approval_required(struct bt_vocabulary *v, const struct compat_event *ev, bool plan)
{
    struct compat_map metadata = {0};
    struct compat_map context = {0};

    compat_copy(&context, "task_id", ev, "stepId");
    compat_copy(&context, "agent", ev, "agentId");
    compat_copy(&context, "prompt", ev, "prompt");
    compat_add(&context, "node", plan ? STR_LIT("planner") : STR_LIT("agent"));
    compat_add(&metadata, "kind", plan ? STR_LIT("plan") : compat_text(ev, "kind"));
    compat_copy(&metadata, "review_id", ev, "reviewId");
    interrupt(v, "APPROVAL_REQUIRED", &context, &metadata);
}

static void take_orchestrator_log(struct bt_vocabulary *v, struct compat_plan *p,
                                  const struct compat_event *ev)
{
    const struct str status = compat_text(ev, "status");

    if (p == NULL) {
        return;
    }
    if (str_is(ev->type, "plan_step_started")) {
        struct compat_step *s = compat_step_keep(v, p, compat_number(ev, "stepIndex", UINT64_MAX),
                                                 STR_LIT(""), STR_LIT(""), (struct str){NULL, 0});
        if (s != NULL) {
            s->open = true;
        }
        log_task(v, "task_started", ev, (struct str){NULL, 0});
    } else if (str_is(ev->type, "plan_step_completed")) {
        const bool began = compat_step_began(p, ev);
        const struct str error = compat_error(p, ev);
        compat_step_drop(v, p, compat_number(ev, "stepIndex", UINT64_MAX));
        if (str_is(status, "completed") &&
            !str_is(compat_text(ev, "reason"), "already_completed")) {
            log_task(v, "task_completed", ev, (struct str){NULL, 0});
        } else if (began && (error.len > 0 || !str_is(status, "skipped"))) {
            log_task(v, "task_failed", ev, error);
        }
    } else if (str_is(ev->type, "plan_step_waiting")) {
        approval_required(v, ev, false);
    } else if (str_is(ev->type, "plan_paused") && str_is(compat_text(ev, "reason"), "signoff")) {
        approval_required(v, ev, true);
    } else if (str_is(ev->type, "plan_paused") && str_is(compat_text(ev, "reason"), "planning")) {
        planning_failed(v, ev);
    }
}

const struct compat_vocabulary vocabulary_orchestrator_log = {
    .name = "orchestrator-log", .alias = "s004", .take = take_orchestrator_log};
