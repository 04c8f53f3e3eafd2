/* From records about attempts to their messages. */
#include <math.h>

#include "supervisor/events/record_internal.h"

enum { DATA_MAX = 1024 };

enum msg_type event_encode_step_started(struct encoding *e, union payload *p)
{
    const struct plan_step *s = record_step(e);
    const struct str agent = record_agent_id(e, e->rec->agent);
    const struct rec_assigned *to = REC(e->rec, assigned);

    p->step_started = (struct msg_ev_plan_step_started){
        .step_id = s->step_id,
        .step_index = e->rec->step,
        .agent_id = agent,
        .agent_name = record_agent_name(e, e->rec->agent, agent),
        .task = record_cut(e, s->task, LIMIT_TASK_BYTES),
        .attempt = e->rec->attempt,
        .instance_id = record_instance(e, to->instance),
        .epoch = to->epoch,
    };
    return MSG_ev_plan_step_started;
}

/* M090; an agent that hands over gives its own reason. */
static struct str explanation(struct encoding *e)
{
    static const char *const INTRO[HANDOFF_KIND_COUNT] = {
        [HANDOFF_PLAN_STEP] = "Executing plan step: ",
        [HANDOFF_AGENT] = "",
        [HANDOFF_BACK] = "Returning control after step: ",
        [HANDOFF_FALLBACK] = "Falling back to another agent for step: ",
    };
    const enum handoff_kind kind = REC(e->rec, handoff)->kind;

    buf_clear(&e->made);
    buf_add_cstr(&e->made, INTRO[kind]);
    buf_add_str(&e->made, kind == HANDOFF_AGENT
                              ? record_cut(e, e->rec->text, 2048)
                              : record_cut(e, record_step(e)->task, LIMIT_TASK_BYTES));
    return buf_str(&e->made);
}

enum msg_type event_encode_handoff(struct encoding *e, union payload *p)
{
    const struct str from = record_from_id(e);
    const struct str to = record_agent_id(e, e->rec->agent);
    const struct rec_handoff *handoff = REC(e->rec, handoff);

    if ((unsigned)handoff->kind >= HANDOFF_KIND_COUNT) {
        return MSG_TYPE_COUNT;
    }
    uuid_format(e->x->handoff_id, e->id);
    p->handoff = (struct msg_ev_agent_handoff){
        .handoff_id = {e->id, UUID_TEXT_LEN},
        .from_agent = {.agent_id = from,
                       .agent_name = record_agent_name(e, handoff->from_agent, from)},
        .to_agent = {.agent_id = to, .agent_name = record_agent_name(e, e->rec->agent, to)},
        .reason = str_from(handoff_kind_name(handoff->kind)),
        .explanation = explanation(e),
        .plan_step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_agent_handoff;
}

enum msg_type event_encode_progress(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_progress *news = REC(rec, progress);

    p->progress = (struct msg_ev_plan_step_progress){
        .step_id = record_step(e)->step_id,
        .step_index = rec->step,
        .attempt = rec->attempt,
        .n = news->n,
        .text = record_cut(e, rec->text, 1024),
        .percent = isfinite(news->percent) ? news->percent : 0,
    };
    if (news->data.len <= DATA_MAX && e->room >= DATA_MAX) {
        p->progress.data = news->data; /* a document cannot be cut, only left out */
    }
    return MSG_ev_plan_step_progress;
}

enum msg_type event_encode_retry(struct encoding *e, union payload *p)
{
    p->retry = (struct msg_ev_plan_step_retry){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .delay_ms = REC(e->rec, retry)->delay_ms,
        .error = record_cut(e, e->rec->text, 2048),
        .error_class = record_class(REC(e->rec, retry)->error_class),
        .agent_id = record_agent_id(e, e->rec->agent),
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_plan_step_retry;
}

enum msg_type event_encode_fallback(struct encoding *e, union payload *p)
{
    const struct rec_fallback *instead = REC(e->rec, fallback);

    p->fallback = (struct msg_ev_fallback_used){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .class_ = record_class(instead->error_class),
        .action = str_from(fallback_action_name(instead->action)),
        .agent_id = record_agent_id(e, e->rec->agent),
        .delay_ms = instead->delay_ms,
        .error = record_cut(e, e->rec->text, 2048),
        .fallbacks_used = e->x->run != NULL ? e->x->run->fallbacks : 0,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_fallback_used;
}

enum msg_type event_encode_step_completed(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_step_completed *end = REC(rec, step_completed);

    p->step_completed = (struct msg_ev_plan_step_completed){
        .step_id = record_step(e)->step_id,
        .step_index = rec->step,
        .agent_id = record_agent_id(e, rec->agent),
        .status = str_from(step_status_name(end->status)),
        .reason = str_from(step_reason_name(end->reason)),
        .result_ref = end->result.id,
        .result_len = end->result.len,
        .error = record_cut(e, rec->text, 2048),
        .error_class = record_class(end->error_class),
        .instance_id = record_instance(e, end->instance),
        .epoch = end->epoch,
        .attempts = rec->attempt,
        .duration_ms = end->duration_ms,
        .usage = record_usage(&rec->usage),
        .stop = str_from(step_stop_name(end->stop)),
    };
    if (end->result.id != 0) {
        p->step_completed.result = record_cut(e, e->x->preview, LIMIT_PREVIEW_BYTES);
    }
    return MSG_ev_plan_step_completed;
}

/* ---- bookkeeping ---- */

enum msg_type event_encode_internal(struct encoding *e, union payload *p)
{
    const struct rec_assigned *to = REC(e->rec, assigned);

    p->step = (struct msg_rec_step){
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .instance_id = record_instance(e, to->instance),
        .epoch = to->epoch,
        .delay_ms = to->delay_ms,
        .agent_id = record_agent_id(e, e->rec->agent),
        .phase = str_from(step_phase_name(to->phase)),
    };
    return MSG_rec_step;
}

enum msg_type event_encode_checking(struct encoding *e, union payload *p)
{
    const struct rec_checking *checking = REC(e->rec, checking);

    p->checking = (struct msg_rec_checking){
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .phase = str_from(step_phase_name(checking->phase)),
        .agent_id = record_agent_id(e, e->rec->agent),
        .delay_ms = checking->delay_ms,
        .result_ref = checking->result.id,
        .result_len = checking->result.len,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_rec_checking;
}

enum msg_type event_encode_rejected(struct encoding *e, union payload *p)
{
    const struct rec_assigned *sender = REC(e->rec, assigned);

    p->rejected = (struct msg_rec_rejected){
        .attempt = e->rec->attempt,
        .phase = str_from(step_phase_name(sender->phase)),
        .agent_id = record_agent_id(e, e->rec->agent),
        .instance_id = record_instance(e, sender->instance),
        .epoch = sender->epoch,
        .text = record_cut(e, e->rec->text, 2048),
        .usage = record_usage(&e->rec->usage),
    };
    if (e->rec->step < e->x->plan->n_steps) {
        p->rejected.step_index = e->rec->step;
        msg_set(&p->rejected, rec_rejected, step_index);
    }
    return MSG_rec_rejected;
}
