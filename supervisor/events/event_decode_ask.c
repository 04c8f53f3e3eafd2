/* From messages to records about reviews, checks and replans. */
#include "supervisor/events/record_internal.h"

void event_decode_waiting(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_step_waiting *m = &p->waiting;
    struct rec_waiting *asks = REC(d->rec, waiting);

    event_decode_step(d, m->step_index, m->step_id);
    event_decode_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->prompt;
    asks->review = review_kind_from_name(m->kind);
    asks->data = m->schema;
    asks->delay_ms = m->timeout_ms;
    asks->error_class = event_decode_class(d, m->error_class);
    event_decode_usage(d, &m->usage);
    record_expect(d, asks->review != REVIEW_KIND_COUNT);
}

void event_decode_decided(struct decoding *d, const union payload *p)
{
    const struct msg_ev_review_decided *m = &p->decided;
    const bool about_step = msg_has(m, ev_review_decided, step_index);
    struct rec_decided *decided = REC(d->rec, decided);
    struct uuid plan_id;
    struct str step_id = {NULL, 0};

    if (about_step) {
        event_decode_step(d, m->step_index, m->step_id);
    }
    record_expect(d, review_id_parse(m->review_id, &plan_id, &step_id, &d->rec->attempt) &&
                         uuid_eq(plan_id, d->plan->plan_id) && about_step == (step_id.len > 0));
    decided->decision = review_decision_from_name(m->decision);
    decided->review = m->kind.len == 0 ? REVIEW_UNKNOWN_OUTCOME : review_kind_from_name(m->kind);
    d->rec->text = m->comment;
    decided->result = (struct blob_ref){m->edit_ref, m->edit_len};
    record_expect(d, decided->decision != DECISION_COUNT && decided->review != REVIEW_KIND_COUNT);
}

void event_decode_verification(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_step_verification_failed *m = &p->verification;

    event_decode_step(d, m->step_index, m->step_id);
    event_decode_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->diagnosis;
    event_decode_usage(d, &m->usage);
}

/* ---- gates ---- */

static void get_gate(struct decoding *d, uint64_t step_index, struct str step_id)
{
    event_decode_step(d, step_index, step_id);
    if (d->fits) {
        d->rec->agent = d->plan->steps[step_index].gate_agent;
    }
}

void event_decode_gate_started(struct decoding *d, const union payload *p)
{
    const struct msg_ev_quality_gate_started *m = &p->gate_started;

    get_gate(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempt;
    REC(d->rec, timed)->delay_ms = m->timeout_ms;
}

void event_decode_gate_passed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_quality_gate_passed *m = &p->gate_passed;

    get_gate(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->reason;
    event_decode_usage(d, &m->usage);
}

void event_decode_gate_failed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_quality_gate_failed *m = &p->gate_failed;

    get_gate(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->reason;
    event_decode_usage(d, &m->usage);
}

void event_decode_gate_error(struct decoding *d, const union payload *p)
{
    const struct msg_ev_quality_gate_error *m = &p->gate_error;

    get_gate(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->error;
    event_decode_usage(d, &m->usage);
}

/* ---- replans ---- */

void event_decode_replan_started(struct decoding *d, const union payload *p)
{
    const struct msg_ev_replan_started *m = &p->replan_started;
    struct rec_replan_started *starts = REC(d->rec, replan_started);

    event_decode_step(d, m->step_index, m->step_id);
    d->rec->agent = d->plan->replan.agent;
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->diagnosis;
    starts->delay_ms = m->delay_ms;
    starts->revision = (uint32_t)m->revision;
    starts->error_class = event_decode_class(d, m->error_class);
    event_decode_usage(d, &m->usage);
}

void event_decode_replan_finished(struct decoding *d, const union payload *p)
{
    const struct msg_ev_replan_finished *m = &p->replan_finished;
    struct rec_revision *revision = REC(d->rec, revision);

    event_decode_step(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->reason;
    revision->ok = m->ok;
    revision->revision = (uint32_t)m->revision;
    revision->result = (struct blob_ref){m->plan_ref, m->plan_len};
    event_decode_usage(d, &m->usage);
}
