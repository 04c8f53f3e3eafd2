/* Records about attempts, read back. */
#include "supervisor/events/record_internal.h"

void record_get_step_started(struct decoding *d, const union payload *p)
{
    record_get_step(d, p->step_started.step_index, p->step_started.step_id);
    record_get_agent(d, p->step_started.agent_id);
    d->rec->attempt = (uint32_t)p->step_started.attempt;
    record_get_instance(d, p->step_started.instance_id, p->step_started.epoch);
}

void record_get_handoff(struct decoding *d, const union payload *p)
{
    record_get_step(d, p->handoff.step_index, p->handoff.plan_step_id);
    record_get_agent(d, p->handoff.to_agent.agent_id);
    record_get_from(d, p->handoff.from_agent.agent_id);
    d->rec->attempt = (uint32_t)p->handoff.attempt;
    d->rec->handoff = handoff_kind_from_name(p->handoff.reason);
    if (d->rec->handoff == HANDOFF_AGENT) { /* the others' sentences were made here */
        d->rec->text = p->handoff.explanation;
    }
    record_get_usage(d, &p->handoff.usage);
    record_expect(d, d->rec->handoff != HANDOFF_KIND_COUNT);
}

void record_get_progress(struct decoding *d, const union payload *p)
{
    record_get_step(d, p->progress.step_index, p->progress.step_id);
    d->rec->attempt = (uint32_t)p->progress.attempt;
    d->rec->n = p->progress.n;
    d->rec->percent = p->progress.percent;
    d->rec->text = p->progress.text;
    d->rec->data = p->progress.data;
}

void record_get_retry(struct decoding *d, const union payload *p)
{
    record_get_step(d, p->retry.step_index, p->retry.step_id);
    record_get_agent(d, p->retry.agent_id);
    d->rec->attempt = (uint32_t)p->retry.attempt;
    d->rec->delay_ms = p->retry.delay_ms;
    d->rec->text = p->retry.error;
    record_get_class(d, p->retry.error_class);
    record_get_usage(d, &p->retry.usage);
}

void record_get_fallback(struct decoding *d, const union payload *p)
{
    const struct msg_ev_fallback_used *m = &p->fallback;

    record_get_step(d, m->step_index, m->step_id);
    record_get_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->fallback = fallback_action_from_name(m->action);
    d->rec->delay_ms = m->delay_ms;
    d->rec->text = m->error;
    record_get_class(d, m->class_);
    record_get_usage(d, &m->usage);
    record_expect(d, d->rec->fallback != FALLBACK_ACTION_COUNT);
}

void record_get_step_completed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_step_completed *m = &p->step_completed;

    record_get_step(d, m->step_index, m->step_id);
    record_get_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempts;
    d->rec->status = step_status_from_name(m->status);
    d->rec->reason = m->reason.len == 0 ? REASON_NONE : step_reason_from_name(m->reason);
    d->rec->text = m->error;
    d->rec->result = (struct blob_ref){m->result_ref, m->result_len};
    d->rec->duration_ms = m->duration_ms;
    d->rec->stop = m->stop.len == 0 ? STOP_NONE : step_stop_from_name(m->stop);
    record_get_usage(d, &m->usage);
    record_get_class(d, m->error_class);
    record_get_instance(d, m->instance_id, m->epoch);
    record_expect(d, d->rec->status != STEP_STATUS_COUNT && d->rec->reason != STEP_REASON_COUNT &&
                         d->rec->stop != STEP_STOP_COUNT);
}

/* ---- bookkeeping ---- */

void record_get_internal(struct decoding *d, const union payload *p)
{
    record_get_step(d, p->step.step_index, (struct str){NULL, 0});
    record_get_agent(d, p->step.agent_id);
    d->rec->attempt = (uint32_t)p->step.attempt;
    d->rec->delay_ms = p->step.delay_ms;
    record_get_instance(d, p->step.instance_id, p->step.epoch);
    record_get_phase(d, p->step.phase);
}

void record_get_checking(struct decoding *d, const union payload *p)
{
    const struct msg_rec_checking *m = &p->checking;

    record_get_step(d, m->step_index, (struct str){NULL, 0});
    record_get_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->delay_ms = m->delay_ms;
    d->rec->result = (struct blob_ref){m->result_ref, m->result_len};
    record_get_phase(d, m->phase);
    record_get_usage(d, &m->usage);
}

void record_get_rejected(struct decoding *d, const union payload *p)
{
    const struct msg_rec_rejected *m = &p->rejected;

    if (msg_has(m, rec_rejected, step_index)) {
        record_get_step(d, m->step_index, (struct str){NULL, 0});
        record_get_agent(d, m->agent_id);
    }
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->text;
    record_get_instance(d, m->instance_id, m->epoch);
    record_get_phase(d, m->phase);
    record_get_usage(d, &m->usage);
}
