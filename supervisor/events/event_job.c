/* Records about jobs of a plan and turns of a session, to messages and back. */
#include "supervisor/events/record_internal.h"

enum msg_type event_encode_planning_started(struct encoding *e, union payload *p)
{
    p->planning_started = (struct msg_ev_planning_started){
        .goal = record_cut(e, e->x->plan->goal, REASON_ROOM),
        .planner = e->x->plan->planner,
        .agent_id = record_agent_id(e, e->rec->agent),
        .timeout_ms = REC(e->rec, timed)->delay_ms,
        .attempt = e->rec->attempt,
    };
    return MSG_ev_planning_started;
}

enum plan_failure record_failure(struct decoding *d, struct str name)
{
    enum plan_failure f = PLAN_FAILURE_NONE;

    while (f < PLAN_FAILURE_COUNT && !str_is(name, plan_failure_name(f))) {
        f++;
    }
    record_expect(d, f != PLAN_FAILURE_COUNT);
    return f;
}

void event_decode_planning_started(struct decoding *d, const union payload *p)
{
    d->rec->attempt = (uint32_t)p->planning_started.attempt;
    REC(d->rec, timed)->delay_ms = p->planning_started.timeout_ms;
}

enum msg_type event_encode_planning_retry(struct encoding *e, union payload *p)
{
    const struct rec_planning_retry *retry = REC(e->rec, planning_retry);

    p->planning_retry = (struct msg_ev_planning_retry){
        .attempt = e->rec->attempt,
        .validation_errors = retry->n,
        .text = record_text(e, e->rec->text),
        .result_ref = retry->result.id,
        .result_len = retry->result.len,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_planning_retry;
}

void event_decode_planning_retry(struct decoding *d, const union payload *p)
{
    d->rec->attempt = (uint32_t)p->planning_retry.attempt;
    d->rec->text = p->planning_retry.text;
    *REC(d->rec, planning_retry) = (struct rec_planning_retry){
        .n = p->planning_retry.validation_errors,
        .result = {p->planning_retry.result_ref, p->planning_retry.result_len},
    };
    event_decode_usage(d, &p->planning_retry.usage);
}

enum msg_type event_encode_planning_failed(struct encoding *e, union payload *p)
{
    p->planning_failed = (struct msg_ev_planning_failed){
        .attempt = e->rec->attempt,
        .reason = record_text(e, e->rec->text),
        .failure_kind = str_from(plan_failure_name(REC(e->rec, planning_failed)->failure)),
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_planning_failed;
}

void event_decode_planning_failed(struct decoding *d, const union payload *p)
{
    d->rec->attempt = (uint32_t)p->planning_failed.attempt;
    d->rec->text = p->planning_failed.reason;
    REC(d->rec, planning_failed)->failure = record_failure(d, p->planning_failed.failure_kind);
    event_decode_usage(d, &p->planning_failed.usage);
}

enum msg_type event_encode_synthesis_started(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_synthesis_started *end = REC(rec, synthesis_started);
    struct msg_ev_synthesis_started *m = &p->synthesis_started;

    *m = (struct msg_ev_synthesis_started){
        .agent_id = record_agent_id(e, rec->agent),
        .timeout_ms = end->delay_ms,
        .status = str_from(plan_status_name(end->status)),
        .outcome = str_from(plan_outcome_name(end->outcome)),
        .failure_reason = record_text(e, rec->text),
    };
    if (end->failure != PLAN_FAILURE_NONE) {
        m->failure_kind = str_from(plan_failure_name(end->failure));
    }
    if (rec->step < e->x->plan->n_steps) {
        m->failed_step_id = record_step(e)->step_id;
        m->failed_step_index = rec->step;
        msg_set(m, ev_synthesis_started, failed_step_index);
    }
    return MSG_ev_synthesis_started;
}

/* How the plan will end, of a record that comes before its end. */
static void decode_end(struct decoding *d, struct str status, struct str outcome, struct str kind,
                       struct str reason)
{
    struct rec_synthesis_started *end = REC(d->rec, synthesis_started);

    end->status = plan_status_from_name(status);
    end->outcome = plan_outcome_from_name(outcome);
    end->failure = record_failure(d, kind);
    d->rec->text = reason;
    record_expect(d, end->status != PLAN_STATUS_COUNT && end->outcome != PLAN_OUTCOME_COUNT);
}

void event_decode_synthesis_started(struct decoding *d, const union payload *p)
{
    const struct msg_ev_synthesis_started *m = &p->synthesis_started;

    REC(d->rec, synthesis_started)->delay_ms = m->timeout_ms;
    decode_end(d, m->status, m->outcome, m->failure_kind, m->failure_reason);
    if (msg_has(m, ev_synthesis_started, failed_step_index)) {
        event_decode_step(d, m->failed_step_index, m->failed_step_id);
    }
}

enum msg_type event_encode_text_delta(struct encoding *e, union payload *p)
{
    p->text_delta = (struct msg_ev_text_delta){
        .index = REC(e->rec, text_delta)->n,
        .text = record_text(e, e->rec->text),
    };
    return MSG_ev_text_delta;
}

void event_decode_text_delta(struct decoding *d, const union payload *p)
{
    REC(d->rec, text_delta)->n = p->text_delta.index;
    d->rec->text = p->text_delta.text;
}

enum msg_type event_encode_synthesis_retry(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_revision *revision = REC(rec, revision);
    struct msg_ev_synthesis_retry *m = &p->synthesis_retry;

    *m = (struct msg_ev_synthesis_retry){
        .agent_id = record_agent_id(e, rec->agent),
        .steps = e->steps,
        .revision = revision->revision,
        .reason = record_text(e, rec->text),
        .plan_ref = revision->result.id,
        .plan_len = revision->result.len,
        .usage = record_usage(&rec->usage),
    };
    if (e->x->revised != NULL) {
        uint32_t all;
        m->steps_n =
            record_list_steps(e, e->x->revised, revision->revision, &all, &m->steps_truncated);
        m->new_steps = all;
    }
    return MSG_ev_synthesis_retry;
}

void event_decode_synthesis_retry(struct decoding *d, const union payload *p)
{
    const struct msg_ev_synthesis_retry *m = &p->synthesis_retry;

    d->rec->text = m->reason;
    REC(d->rec, revision)->revision = (uint32_t)m->revision;
    REC(d->rec, revision)->result = (struct blob_ref){.id = m->plan_ref, .len = m->plan_len};
    event_decode_usage(d, &m->usage);
}

enum msg_type event_encode_synthesis_finished(struct encoding *e, union payload *p)
{
    const struct rec_synthesis_finished *end = REC(e->rec, synthesis_finished);

    p->synthesis_finished = (struct msg_ev_synthesis_finished){
        .ok = end->ok,
        .agent_id = record_agent_id(e, e->rec->agent),
        .reason = record_text(e, e->rec->text),
        .result_ref = end->result.id,
        .result_len = end->result.len,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_synthesis_finished;
}

void event_decode_synthesis_finished(struct decoding *d, const union payload *p)
{
    const struct msg_ev_synthesis_finished *m = &p->synthesis_finished;

    d->rec->text = m->reason;
    REC(d->rec, synthesis_finished)->ok = m->ok;
    REC(d->rec, synthesis_finished)->result =
        (struct blob_ref){.id = m->result_ref, .len = m->result_len};
    event_decode_usage(d, &m->usage);
}

enum msg_type event_encode_compensation_started(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_synthesis_started *end = REC(rec, synthesis_started);
    struct msg_ev_compensation_started *m = &p->compensation_started;

    *m = (struct msg_ev_compensation_started){
        .status = str_from(plan_status_name(end->status)),
        .outcome = str_from(plan_outcome_name(end->outcome)),
        .failure_reason = record_text(e, rec->text),
    };
    if (end->failure != PLAN_FAILURE_NONE) {
        m->failure_kind = str_from(plan_failure_name(end->failure));
    }
    if (rec->step < e->x->plan->n_steps) {
        m->failed_step_id = record_step(e)->step_id;
        m->failed_step_index = rec->step;
        msg_set(m, ev_compensation_started, failed_step_index);
    }
    return MSG_ev_compensation_started;
}

void event_decode_compensation_started(struct decoding *d, const union payload *p)
{
    const struct msg_ev_compensation_started *m = &p->compensation_started;

    decode_end(d, m->status, m->outcome, m->failure_kind, m->failure_reason);
    if (msg_has(m, ev_compensation_started, failed_step_index)) {
        event_decode_step(d, m->failed_step_index, m->failed_step_id);
    }
}

enum msg_type event_encode_compensation_finished(struct encoding *e, union payload *p)
{
    const struct rec_compensated *end = REC(e->rec, compensated);

    p->compensation_finished = (struct msg_ev_compensation_finished){
        .status = str_from(compensation_name(end->ok)),
        .compensated = end->done,
        .failed = end->failed,
        .reason = record_text(e, e->rec->text),
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_compensation_finished;
}

void event_decode_compensation_finished(struct decoding *d, const union payload *p)
{
    const struct msg_ev_compensation_finished *m = &p->compensation_finished;

    d->rec->text = m->reason;
    *REC(d->rec, compensated) =
        (struct rec_compensated){.ok = str_is(m->status, compensation_name(true)),
                                 .done = (uint32_t)m->compensated,
                                 .failed = (uint32_t)m->failed};
    event_decode_usage(d, &m->usage);
}

enum msg_type event_encode_turn_start(struct encoding *e, union payload *p)
{
    p->turn_start = (struct msg_ev_turn_start){
        .turn_id = e->x->turn_id,
        .message = record_text(e, e->rec->text),
    };
    return MSG_ev_turn_start;
}

enum msg_type event_encode_schedule_event(struct encoding *e, union payload *p)
{
    p->schedule_event = (struct msg_ev_schedule){
        .name = e->x->schedule.name,
        .scheduled_for = e->x->schedule.scheduled_for,
        .until = e->x->schedule.until,
        .count = e->x->schedule.count,
        .fired_plan_id = e->x->schedule.plan_id,
        .kind = e->x->schedule.kind,
        .reason = record_cut(e, e->rec->text, REASON_ROOM),
    };
    return MSG_ev_schedule;
}

enum msg_type event_encode_turn_end(struct encoding *e, union payload *p)
{
    p->turn_end = (struct msg_ev_turn_end){
        .turn_id = e->x->turn_id,
        .message = record_text(e, e->rec->text),
        .action = e->x->action,
        .turn_plan_id = e->x->turn_plan_id,
        .outcome = e->x->outcome,
        .duration_ms = REC(e->rec, turn_end)->duration_ms,
    };
    return MSG_ev_turn_end;
}
