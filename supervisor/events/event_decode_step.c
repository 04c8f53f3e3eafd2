/* From messages to records about attempts. */
#include "supervisor/events/record_internal.h"

void event_decode_step_started(struct decoding *d, const union payload *p)
{
    struct rec_assigned *assigned = REC(d->rec, assigned);

    event_decode_step(d, p->step_started.step_index, p->step_started.step_id);
    event_decode_agent(d, p->step_started.agent_id);
    d->rec->attempt = (uint32_t)p->step_started.attempt;
    assigned->instance = event_decode_instance(d, p->step_started.instance_id);
    assigned->epoch = p->step_started.epoch;
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

void event_decode_progress(struct decoding *d, const union payload *p)
{
    event_decode_step(d, p->progress.step_index, p->progress.step_id);
    d->rec->attempt = (uint32_t)p->progress.attempt;
    d->rec->text = p->progress.text;
    *REC(d->rec, progress) = (struct rec_progress){
        .n = p->progress.n, .percent = p->progress.percent, .data = p->progress.data};
}

void event_decode_retry(struct decoding *d, const union payload *p)
{
    event_decode_step(d, p->retry.step_index, p->retry.step_id);
    event_decode_agent(d, p->retry.agent_id);
    d->rec->attempt = (uint32_t)p->retry.attempt;
    d->rec->text = p->retry.error;
    REC(d->rec, retry)->delay_ms = p->retry.delay_ms;
    REC(d->rec, retry)->error_class = event_decode_class(d, p->retry.error_class);
    event_decode_usage(d, &p->retry.usage);
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
    instead->error_class = event_decode_class(d, m->class_);
    event_decode_usage(d, &m->usage);
    record_expect(d, instead->action != FALLBACK_ACTION_COUNT);
}

void event_decode_step_completed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_step_completed *m = &p->step_completed;
    struct rec_step_completed *end = REC(d->rec, step_completed);

    event_decode_step(d, m->step_index, m->step_id);
    event_decode_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempts;
    d->rec->text = m->error;
    end->status = step_status_from_name(m->status);
    end->reason = m->reason.len == 0 ? REASON_NONE : step_reason_from_name(m->reason);
    end->result = (struct blob_ref){m->result_ref, m->result_len};
    end->duration_ms = m->duration_ms;
    end->stop = m->stop.len == 0 ? STOP_NONE : step_stop_from_name(m->stop);
    event_decode_usage(d, &m->usage);
    end->error_class = event_decode_class(d, m->error_class);
    end->instance = event_decode_instance(d, m->instance_id);
    end->epoch = m->epoch;
    record_expect(d, end->status != STEP_STATUS_COUNT && end->reason != STEP_REASON_COUNT &&
                         end->stop != STEP_STOP_COUNT);
}

/* ---- bookkeeping ---- */

void event_decode_internal(struct decoding *d, const union payload *p)
{
    struct rec_assigned *assigned = REC(d->rec, assigned);

    event_decode_step(d, p->step.step_index, (struct str){NULL, 0});
    event_decode_agent(d, p->step.agent_id);
    d->rec->attempt = (uint32_t)p->step.attempt;
    assigned->delay_ms = p->step.delay_ms;
    assigned->instance = event_decode_instance(d, p->step.instance_id);
    assigned->epoch = p->step.epoch;
    assigned->phase = event_decode_phase(d, p->step.phase);
}

void event_decode_checking(struct decoding *d, const union payload *p)
{
    const struct msg_rec_checking *m = &p->checking;
    struct rec_checking *checking = REC(d->rec, checking);

    event_decode_step(d, m->step_index, (struct str){NULL, 0});
    event_decode_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempt;
    checking->delay_ms = m->delay_ms;
    checking->result = (struct blob_ref){m->result_ref, m->result_len};
    checking->phase = event_decode_phase(d, m->phase);
    event_decode_usage(d, &m->usage);
}

void event_decode_rejected(struct decoding *d, const union payload *p)
{
    const struct msg_rec_rejected *m = &p->rejected;
    struct rec_assigned *sender = REC(d->rec, assigned);

    if (msg_has(m, rec_rejected, step_index)) {
        event_decode_step(d, m->step_index, (struct str){NULL, 0});
        event_decode_agent(d, m->agent_id);
    }
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->text;
    sender->instance = event_decode_instance(d, m->instance_id);
    sender->epoch = m->epoch;
    sender->phase = event_decode_phase(d, m->phase);
    event_decode_usage(d, &m->usage);
}
