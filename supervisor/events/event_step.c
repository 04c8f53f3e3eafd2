/* Records about attempts: to the fields of their messages, and back. */
#include <math.h>

#include "supervisor/events/record_internal.h"

enum { DATA_MAX = 1024 }; /* fits beside any text, when that is cut */

/* What the agent will not see of the results before the step. */
static void put_cuts(struct encoding *e, struct msg_ev_plan_step_started *m)
{
    const struct record_extra *x = e->x;

    m->context_truncated = e->cuts;
    m->context_left_out = x->context_left_out;
    for (uint32_t i = 0; i < x->context_n; i++) {
        const struct context_pick *pick = &x->context[i];
        if (pick->bytes >= pick->whole) {
            continue;
        }
        if (m->context_truncated_n < CUTS_SHOWN) {
            e->cuts[m->context_truncated_n++] =
                (struct msg_ev_context_cut){.step_id = x->plan->steps[pick->step].step_id,
                                            .bytes = pick->bytes,
                                            .of = pick->whole};
        }
        m->context_cuts++;
    }
}

bool record_context_truncated(const struct record_extra *x)
{
    bool cut = x->context_left_out > 0;

    for (uint32_t i = 0; i < x->context_n; i++) {
        cut = cut || x->context[i].bytes < x->context[i].whole;
    }
    return cut;
}

static struct str sent_task(const struct encoding *e)
{
    return e->x->task.ptr != NULL ? e->x->task : record_step(e)->task;
}

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
        .skill = s->skill,
        .task = record_text(e, sent_task(e)),
        .attempt = e->rec->attempt,
        .instance_id = record_instance(e, to->instance),
        .process_id = record_process(e, to->process),
        .epoch = to->epoch,
    };
    put_cuts(e, &p->step_started);
    return MSG_ev_plan_step_started;
}

void event_decode_step_started(struct decoding *d, const union payload *p)
{
    struct rec_assigned *assigned = REC(d->rec, assigned);

    event_decode_step(d, p->step_started.step_index, p->step_started.step_id);
    event_decode_agent(d, p->step_started.agent_id);
    d->rec->attempt = (uint32_t)p->step_started.attempt;
    assigned->instance = event_decode_instance(d, p->step_started.instance_id);
    assigned->process = event_decode_instance(d, p->step_started.process_id);
    assigned->epoch = p->step_started.epoch;
    assigned->context_truncated =
        p->step_started.context_cuts > 0 || p->step_started.context_left_out > 0;
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

    buf_add_cstr(&e->made, INTRO[kind]);
    buf_add_str(&e->made, kind == HANDOFF_AGENT ? record_text(e, e->rec->text)
                                                : record_text(e, sent_task(e)));
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

void event_decode_handoff(struct decoding *d, const union payload *p)
{
    struct rec_handoff *handoff = REC(d->rec, handoff);

    event_decode_step(d, p->handoff.step_index, p->handoff.plan_step_id);
    event_decode_agent(d, p->handoff.to_agent.agent_id);
    handoff->from_agent = event_decode_from(d, p->handoff.from_agent.agent_id);
    d->rec->attempt = (uint32_t)p->handoff.attempt;
    handoff->kind = handoff_kind_from_name(p->handoff.reason);
    if (handoff->kind == HANDOFF_AGENT) { /* the other explanations were made by the encoder */
        d->rec->text = p->handoff.explanation;
    }
    event_decode_usage(d, &p->handoff.usage);
    record_expect(d, handoff->kind != HANDOFF_KIND_COUNT);
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
        .text = record_cut(e, rec->text, LONG_ROOM),
        .percent = isfinite(news->percent) ? news->percent : 0,
    };
    if (news->data.len <= DATA_MAX) {
        p->progress.data = news->data; /* a document cannot be cut, only left out */
    }
    return MSG_ev_plan_step_progress;
}

void event_decode_progress(struct decoding *d, const union payload *p)
{
    event_decode_step(d, p->progress.step_index, p->progress.step_id);
    d->rec->attempt = (uint32_t)p->progress.attempt;
    d->rec->text = p->progress.text;
    *REC(d->rec, progress) = (struct rec_progress){
        .n = p->progress.n, .percent = p->progress.percent, .data = p->progress.data};
}

static struct str timeout_hint(struct encoding *e, enum err_class class)
{
    return class == CLASS_TIMEOUT ? record_timeout_hint(e, record_step(e)) : no_text;
}

enum msg_type event_encode_retry(struct encoding *e, union payload *p)
{
    p->retry = (struct msg_ev_plan_step_retry){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .delay_ms = REC(e->rec, retry)->delay_ms,
        .until = record_until(e, REC(e->rec, retry)->delay_ms),
        .asked_by = REC(e->rec, retry)->asked ? record_agent_id(e, e->rec->agent) : no_text,
        .error = record_text(e, e->rec->text),
        .error_class = record_class(REC(e->rec, retry)->error_class),
        .hint = timeout_hint(e, REC(e->rec, retry)->error_class),
        .agent_id = record_agent_id(e, e->rec->agent),
        .usage = record_usage(&e->rec->usage),
        .details_ref = e->x->details.id,
        .details_len = e->x->details.len,
    };
    return MSG_ev_plan_step_retry;
}

void event_decode_retry(struct decoding *d, const union payload *p)
{
    event_decode_step(d, p->retry.step_index, p->retry.step_id);
    event_decode_agent(d, p->retry.agent_id);
    d->rec->attempt = (uint32_t)p->retry.attempt;
    d->rec->text = p->retry.error;
    REC(d->rec, retry)->delay_ms = p->retry.delay_ms;
    REC(d->rec, retry)->asked = p->retry.asked_by.len > 0;
    REC(d->rec, retry)->error_class = event_decode_class(d, p->retry.error_class);
    event_decode_usage(d, &p->retry.usage);
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
        .until = instead->action == FALLBACK_WAIT ? record_until(e, instead->delay_ms) : no_text,
        .asked_by = instead->asked ? record_agent_id(e, e->rec->agent) : no_text,
        .error = record_text(e, e->rec->text),
        .fallbacks_used = e->x->run != NULL ? e->x->run->fallbacks : 0,
        .usage = record_usage(&e->rec->usage),
        .details_ref = e->x->details.id,
        .details_len = e->x->details.len,
    };
    return MSG_ev_fallback_used;
}

void event_decode_fallback(struct decoding *d, const union payload *p)
{
    const struct msg_ev_fallback_used *m = &p->fallback;
    struct rec_fallback *instead = REC(d->rec, fallback);

    event_decode_step(d, m->step_index, m->step_id);
    event_decode_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->error;
    instead->action = fallback_action_from_name(m->action);
    instead->delay_ms = m->delay_ms;
    instead->asked = m->asked_by.len > 0;
    instead->error_class = event_decode_class(d, m->class_);
    event_decode_usage(d, &m->usage);
    record_expect(d, instead->action != FALLBACK_ACTION_COUNT);
}

enum msg_type event_encode_step_completed(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_step_completed *end = REC(rec, step_completed);
    const bool by_condition = end->reason == REASON_CONDITION;

    p->step_completed = (struct msg_ev_plan_step_completed){
        .step_id = record_step(e)->step_id,
        .step_index = rec->step,
        .agent_id = record_agent_id(e, rec->agent),
        .skill = record_step(e)->skill,
        .status = str_from(step_status_name(end->status)),
        .reason = str_from(step_reason_name(end->reason)),
        .result_ref = end->result.id,
        .result_len = end->result.len,
        .truncated = end->result.truncated != 0,
        .result_text_len = end->result.text_len,
        .state_ref = e->x->state.id,
        .state_len = e->x->state.len,
        .error = by_condition ? no_text : record_text(e, rec->text),
        .condition = by_condition ? record_cut(e, rec->text, LONG_ROOM) : no_text,
        .error_class = record_class(end->error_class),
        .hint = timeout_hint(e, end->error_class),
        .instance_id = record_instance(e, end->instance),
        .epoch = end->epoch,
        .attempts = rec->attempt,
        .signal = end->signal,
        .duration_ms = end->duration_ms,
        .usage = record_usage(&rec->usage),
        .stop = str_from(step_stop_name(end->stop)),
        .outcome_unknown = end->doubt,
        .details_ref = e->x->details.id,
        .details_len = e->x->details.len,
    };
    if (end->result.id != 0) {
        p->step_completed.result = record_cut(e, e->x->preview, LIMIT_PREVIEW_BYTES);
    }
    return MSG_ev_plan_step_completed;
}

void event_decode_step_completed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_step_completed *m = &p->step_completed;
    struct rec_step_completed *end = REC(d->rec, step_completed);

    event_decode_step(d, m->step_index, m->step_id);
    event_decode_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempts;
    d->rec->text = m->condition.len > 0 ? m->condition : m->error;
    end->status = step_status_from_name(m->status);
    end->reason = m->reason.len == 0 ? REASON_NONE : step_reason_from_name(m->reason);
    end->result =
        (struct blob_ref){m->result_ref, m->result_len, m->truncated, (uint32_t)m->result_text_len};
    end->state = (struct blob_ref){m->state_ref, m->state_len, 0, 0};
    end->signal = (uint32_t)m->signal;
    end->duration_ms = m->duration_ms;
    end->doubt = m->outcome_unknown;
    end->stop = m->stop.len == 0 ? STOP_NONE : step_stop_from_name(m->stop);
    event_decode_usage(d, &m->usage);
    end->error_class = event_decode_class(d, m->error_class);
    end->instance = event_decode_instance(d, m->instance_id);
    end->epoch = m->epoch;
    record_expect(d, end->status != STEP_STATUS_COUNT && end->reason != STEP_REASON_COUNT &&
                         end->stop != STEP_STOP_COUNT);
}

/* ---- bookkeeping ---- */

enum msg_type event_encode_assigned(struct encoding *e, union payload *p)
{
    const struct rec_assigned *to = REC(e->rec, assigned);

    p->assigned = (struct msg_rec_step){
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .instance_id = record_instance(e, to->instance),
        .process_id = record_process(e, to->process),
        .epoch = to->epoch,
        .delay_ms = to->delay_ms,
        .agent_id = record_agent_id(e, e->rec->agent),
        .phase = str_from(step_phase_name(to->phase)),
        .context_truncated = record_context_truncated(e->x),
    };
    return MSG_rec_step;
}

void event_decode_assigned(struct decoding *d, const union payload *p)
{
    struct rec_assigned *assigned = REC(d->rec, assigned);

    event_decode_step(d, p->assigned.step_index, no_text);
    event_decode_agent(d, p->assigned.agent_id);
    d->rec->attempt = (uint32_t)p->assigned.attempt;
    assigned->delay_ms = p->assigned.delay_ms;
    assigned->instance = event_decode_instance(d, p->assigned.instance_id);
    assigned->process = event_decode_instance(d, p->assigned.process_id);
    assigned->epoch = p->assigned.epoch;
    assigned->context_truncated = p->assigned.context_truncated;
    assigned->phase = event_decode_phase(d, p->assigned.phase);
}

enum msg_type event_encode_unknown(struct encoding *e, union payload *p)
{
    return event_encode_assigned(e, p);
}

void event_decode_unknown(struct decoding *d, const union payload *p)
{
    event_decode_assigned(d, p);
}

enum msg_type event_encode_doubted(struct encoding *e, union payload *p)
{
    p->doubted = (struct msg_rec_step){.step_index = e->rec->step};
    return MSG_rec_step;
}

void event_decode_doubted(struct decoding *d, const union payload *p)
{
    event_decode_step(d, p->doubted.step_index, no_text);
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
        .truncated = checking->result.truncated != 0,
        .result_text_len = checking->result.text_len,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_rec_checking;
}

enum msg_type event_encode_condition(struct encoding *e, union payload *p)
{
    p->condition = (struct msg_rec_condition){.step_index = e->rec->step,
                                              .failed = REC(e->rec, condition)->failed,
                                              .condition = record_cut(e, e->rec->text, LONG_ROOM)};
    return MSG_rec_condition;
}

void event_decode_condition(struct decoding *d, const union payload *p)
{
    event_decode_step(d, p->condition.step_index, no_text);
    d->rec->text = p->condition.condition;
    REC(d->rec, condition)->failed = p->condition.failed;
}

void event_decode_checking(struct decoding *d, const union payload *p)
{
    const struct msg_rec_checking *m = &p->checking;
    struct rec_checking *checking = REC(d->rec, checking);

    event_decode_step(d, m->step_index, no_text);
    event_decode_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempt;
    checking->delay_ms = m->delay_ms;
    checking->result =
        (struct blob_ref){m->result_ref, m->result_len, m->truncated, (uint32_t)m->result_text_len};
    checking->phase = event_decode_phase(d, m->phase);
    event_decode_usage(d, &m->usage);
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
        .text = record_text(e, e->rec->text),
        .usage = record_usage(&e->rec->usage),
    };
    if (e->rec->step < e->x->plan->n_steps) {
        p->rejected.step_index = e->rec->step;
        msg_set(&p->rejected, rec_rejected, step_index);
    }
    return MSG_rec_rejected;
}

void event_decode_rejected(struct decoding *d, const union payload *p)
{
    const struct msg_rec_rejected *m = &p->rejected;
    struct rec_assigned *sender = REC(d->rec, assigned);

    if (msg_has(m, rec_rejected, step_index)) {
        event_decode_step(d, m->step_index, no_text);
        event_decode_agent(d, m->agent_id);
    }
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->text;
    sender->instance = event_decode_instance(d, m->instance_id);
    sender->epoch = m->epoch;
    sender->phase = event_decode_phase(d, m->phase);
    event_decode_usage(d, &m->usage);
}
