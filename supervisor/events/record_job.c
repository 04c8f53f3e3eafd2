/* Records about what a plan as a whole asks of an agent, and about the turns of a session; both
 * ways. */
#include "supervisor/events/record_internal.h"

/* ---- to messages ---- */

enum msg_type event_encode_planning_started(struct encoding *e, union payload *p)
{
    p->planning_started = (struct msg_ev_planning_started){
        .goal = record_cut(e, e->x->plan->goal, 512),
        .planner = e->x->plan->planner,
        .agent_id = record_agent_id(e, e->rec->agent),
        .timeout_ms = e->rec->delay_ms,
        .attempt = e->rec->attempt,
    };
    return MSG_ev_planning_started;
}

enum msg_type event_encode_planning_retry(struct encoding *e, union payload *p)
{
    p->planning_retry = (struct msg_ev_planning_retry){
        .attempt = e->rec->attempt,
        .validation_errors = e->rec->n,
        .text = record_cut(e, e->rec->text, 2048),
        .result_ref = e->rec->result.id,
        .result_len = e->rec->result.len,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_planning_retry;
}

enum msg_type event_encode_planning_failed(struct encoding *e, union payload *p)
{
    p->planning_failed = (struct msg_ev_planning_failed){
        .attempt = e->rec->attempt,
        .reason = record_cut(e, e->rec->text, 2048),
        .failure_kind = str_from(plan_failure_name(e->rec->failure)),
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_planning_failed;
}

enum msg_type event_encode_synthesis_started(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    struct msg_ev_synthesis_started *m = &p->synthesis_started;

    *m = (struct msg_ev_synthesis_started){
        .agent_id = record_agent_id(e, rec->agent),
        .timeout_ms = rec->delay_ms,
        .status = str_from(plan_status_name(rec->plan_status)),
        .outcome = str_from(plan_outcome_name(rec->outcome)),
        .failure_reason = record_cut(e, rec->text, 2048),
    };
    if (rec->failure != PLAN_FAILURE_NONE) {
        m->failure_kind = str_from(plan_failure_name(rec->failure));
    }
    if (rec->step < e->x->plan->n_steps) {
        m->failed_step_id = record_step(e)->step_id;
        m->failed_step_index = rec->step;
        msg_set(m, ev_synthesis_started, failed_step_index);
    }
    return MSG_ev_synthesis_started;
}

enum msg_type event_encode_text_delta(struct encoding *e, union payload *p)
{
    p->text_delta = (struct msg_ev_text_delta){
        .index = e->rec->n,
        .text = record_cut(e, e->rec->text, 2048),
    };
    return MSG_ev_text_delta;
}

enum msg_type event_encode_synthesis_retry(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    struct msg_ev_synthesis_retry *m = &p->synthesis_retry;

    *m = (struct msg_ev_synthesis_retry){
        .agent_id = record_agent_id(e, rec->agent),
        .steps = e->steps,
        .revision = rec->revision,
        .reason = record_cut(e, rec->text, 2048),
        .plan_ref = rec->result.id,
        .plan_len = rec->result.len,
        .usage = record_usage(&rec->usage),
    };
    if (e->x->revised != NULL) {
        uint32_t all;
        m->steps_n = record_list_steps(e, e->x->revised, rec->revision, &all, &m->steps_truncated);
        m->new_steps = all;
    }
    return MSG_ev_synthesis_retry;
}

enum msg_type event_encode_synthesis_finished(struct encoding *e, union payload *p)
{
    p->synthesis_finished = (struct msg_ev_synthesis_finished){
        .ok = e->rec->ok,
        .agent_id = record_agent_id(e, e->rec->agent),
        .reason = record_cut(e, e->rec->text, 2048),
        .result_ref = e->rec->result.id,
        .result_len = e->rec->result.len,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_synthesis_finished;
}

enum msg_type event_encode_turn_start(struct encoding *e, union payload *p)
{
    p->turn_start = (struct msg_ev_turn_start){
        .turn_id = e->x->turn_id,
        .message = record_cut(e, e->rec->text, 2048),
    };
    return MSG_ev_turn_start;
}

enum msg_type event_encode_turn_end(struct encoding *e, union payload *p)
{
    p->turn_end = (struct msg_ev_turn_end){
        .turn_id = e->x->turn_id,
        .message = record_cut(e, e->rec->text, 2048),
        .action = e->x->action,
        .turn_plan_id = e->x->turn_plan_id,
        .duration_ms = e->rec->duration_ms,
    };
    return MSG_ev_turn_end;
}

/* ---- and back ---- */

enum plan_failure record_failure(struct decoding *d, struct str name)
{
    enum plan_failure f = PLAN_FAILURE_NONE;

    while (f < PLAN_FAILURE_COUNT && name.len > 0 && !str_is(name, plan_failure_name(f))) {
        f++;
    }
    record_expect(d, f != PLAN_FAILURE_COUNT);
    return f;
}

void event_decode_planning_started(struct decoding *d, const union payload *p)
{
    d->rec->attempt = (uint32_t)p->planning_started.attempt;
    d->rec->delay_ms = p->planning_started.timeout_ms;
}

void event_decode_planning_retry(struct decoding *d, const union payload *p)
{
    d->rec->attempt = (uint32_t)p->planning_retry.attempt;
    d->rec->n = p->planning_retry.validation_errors;
    d->rec->text = p->planning_retry.text;
    d->rec->result.id = p->planning_retry.result_ref;
    d->rec->result.len = p->planning_retry.result_len;
    event_decode_usage(d, &p->planning_retry.usage);
}

void event_decode_planning_failed(struct decoding *d, const union payload *p)
{
    d->rec->attempt = (uint32_t)p->planning_failed.attempt;
    d->rec->text = p->planning_failed.reason;
    d->rec->failure = record_failure(d, p->planning_failed.failure_kind);
    event_decode_usage(d, &p->planning_failed.usage);
}

void event_decode_synthesis_started(struct decoding *d, const union payload *p)
{
    const struct msg_ev_synthesis_started *m = &p->synthesis_started;

    d->rec->plan_status = plan_status_from_name(m->status);
    d->rec->outcome = plan_outcome_from_name(m->outcome);
    d->rec->failure = record_failure(d, m->failure_kind);
    d->rec->text = m->failure_reason;
    d->rec->delay_ms = m->timeout_ms;
    if (msg_has(m, ev_synthesis_started, failed_step_index)) {
        event_decode_step(d, m->failed_step_index, m->failed_step_id);
    }
    record_expect(d, d->rec->plan_status != PLAN_STATUS_COUNT &&
                         d->rec->outcome != PLAN_OUTCOME_COUNT);
}

void event_decode_text_delta(struct decoding *d, const union payload *p)
{
    d->rec->n = p->text_delta.index;
    d->rec->text = p->text_delta.text;
}

void event_decode_synthesis_retry(struct decoding *d, const union payload *p)
{
    const struct msg_ev_synthesis_retry *m = &p->synthesis_retry;

    d->rec->revision = (uint32_t)m->revision;
    d->rec->text = m->reason;
    d->rec->result = (struct blob_ref){m->plan_ref, m->plan_len};
    event_decode_usage(d, &m->usage);
}

void event_decode_synthesis_finished(struct decoding *d, const union payload *p)
{
    const struct msg_ev_synthesis_finished *m = &p->synthesis_finished;

    d->rec->ok = m->ok;
    d->rec->text = m->reason;
    d->rec->result = (struct blob_ref){m->result_ref, m->result_len};
    event_decode_usage(d, &m->usage);
}
