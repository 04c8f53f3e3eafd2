/*
 * orchestrator-log: "Monitor task execution" (S004): the log events task_started, task_completed,
 * task_failed. The document names no members, so these are the members of its tasks (task_id,
 * description, agent, result). Also the interrupt of its planner ("ERROR_RECOVERY") with its three
 * members, when no plan could be made and a person is asked.
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

/* The plan waits for a person, who may have it planned again or bring a plan; so it is recoverable.
 */
static void interrupt(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_map m = {0};
    struct compat_map context = {0};
    size_t cut;

    compat_add(&context, "error", compat_or_default(compat_text(ev, "comment"), STR_LIT("")));
    compat_add(&context, "node", STR_LIT("planner"));
    compat_reset_buf(v, &v->list);
    compat_put(&v->list, &context);
    cut = v->list.len;
    doc_put_map(&v->list, 1);
    doc_put_cstr(&v->list, "recoverable");
    doc_put_bool(&v->list, true);
    if (v->list.bad != BT_OK) {
        v->bad = v->list.bad;
        return;
    }
    compat_add(&m, "type", STR_LIT("ERROR_RECOVERY"));
    compat_add_doc(&m, "context", (struct doc){v->list.at, cut});
    compat_add_doc(&m, "metadata", (struct doc){v->list.at + cut, v->list.len - cut});
    compat_emit(v, "ERROR_RECOVERY", &m);
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
    } else if (str_is(ev->type, "plan_paused") && str_is(compat_text(ev, "reason"), "planning")) {
        interrupt(v, ev);
    }
}

const struct compat_vocabulary vocabulary_orchestrator_log = {
    .name = "orchestrator-log", .alias = "s004", .take = take_orchestrator_log};
