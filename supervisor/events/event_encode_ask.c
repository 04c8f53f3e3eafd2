/* From records about reviews, checks and replans to their messages. */
#include "supervisor/events/record_internal.h"

enum { SCHEMA_MAX = 1024, MISSING_ROOM = 256 };

enum msg_type event_encode_waiting(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_waiting *asks = REC(rec, waiting);

    p->waiting = (struct msg_ev_plan_step_waiting){
        .step_id = record_step(e)->step_id,
        .step_index = rec->step,
        .attempt = rec->attempt,
        .review_id = record_review(e),
        .kind = str_from(review_kind_name(asks->review)),
        .prompt = record_cut(e, rec->text, 2048),
        .error_class = record_class(asks->error_class),
        .agent_id = record_agent_id(e, rec->agent),
        .timeout_ms = asks->delay_ms,
        .usage = record_usage(&rec->usage),
    };
    if (asks->data.len <= SCHEMA_MAX && e->room >= SCHEMA_MAX) {
        p->waiting.schema = asks->data; /* a document cannot be cut, only left out */
    }
    return MSG_ev_plan_step_waiting;
}

enum msg_type event_encode_decided(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_decided *decided = REC(rec, decided);

    p->decided = (struct msg_ev_review_decided){
        .review_id = record_review(e),
        .decision = str_from(review_decision_name(decided->decision)),
        .comment = record_cut(e, rec->text, 2048),
        .kind = str_from(review_kind_name(decided->review)),
        .edit_ref = decided->result.id,
        .edit_len = decided->result.len,
    };
    if (rec->step < e->x->plan->n_steps) {
        p->decided.step_id = record_step(e)->step_id;
        p->decided.step_index = rec->step;
        msg_set(&p->decided, ev_review_decided, step_index);
    }
    return MSG_ev_review_decided;
}

enum msg_type event_encode_verification(struct encoding *e, union payload *p)
{
    p->verification = (struct msg_ev_plan_step_verification_failed){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .agent_id = record_agent_id(e, e->rec->agent),
        .diagnosis = record_cut(e, e->rec->text, 2048),
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_plan_step_verification_failed;
}

/* ---- gates ---- */

enum msg_type event_encode_gate_started(struct encoding *e, union payload *p)
{
    p->gate_started = (struct msg_ev_quality_gate_started){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .agent_id = record_step(e)->gate_with,
        .timeout_ms = REC(e->rec, timed)->delay_ms,
        .attempt = e->rec->attempt,
    };
    return MSG_ev_quality_gate_started;
}

enum msg_type event_encode_gate_passed(struct encoding *e, union payload *p)
{
    p->gate_passed = (struct msg_ev_quality_gate_passed){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .agent_id = record_step(e)->gate_with,
        .reason = record_cut(e, e->rec->text, 2048),
        .usage = record_usage(&e->rec->usage),
        .attempt = e->rec->attempt,
    };
    return MSG_ev_quality_gate_passed;
}

/* The texts in the gate's list of what is missing. */
static uint32_t list_missing(struct encoding *e)
{
    uint32_t n = 0;

    for (uint32_t i = 0; n < MISSING_SHOWN; i++) {
        const struct doc one = doc_at(REC(e->rec, gate)->data, i);
        if (one.ptr == NULL) {
            break;
        }
        e->missing[n] = record_cut(e, doc_string(one), MISSING_ROOM);
        n += e->missing[n].len > 0 ? 1 : 0;
    }
    return n;
}

enum msg_type event_encode_gate_failed(struct encoding *e, union payload *p)
{
    p->gate_failed = (struct msg_ev_quality_gate_failed){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .agent_id = record_step(e)->gate_with,
        .missing = e->missing,
        .missing_n = list_missing(e),
        .reason = record_cut(e, e->rec->text, 2048),
        .usage = record_usage(&e->rec->usage),
        .attempt = e->rec->attempt,
    };
    return MSG_ev_quality_gate_failed;
}

enum msg_type event_encode_gate_error(struct encoding *e, union payload *p)
{
    p->gate_error = (struct msg_ev_quality_gate_error){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .agent_id = record_step(e)->gate_with,
        .error = record_cut(e, e->rec->text, 2048),
        .fail_closed = record_step(e)->policy.gate_closed,
        .usage = record_usage(&e->rec->usage),
        .attempt = e->rec->attempt,
    };
    return MSG_ev_quality_gate_error;
}

/* ---- replans ---- */

enum msg_type event_encode_replan_started(struct encoding *e, union payload *p)
{
    const struct rec_replan_started *starts = REC(e->rec, replan_started);

    p->replan_started = (struct msg_ev_replan_started){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .agent_id = e->x->plan->replan.agent_id,
        .diagnosis = record_cut(e, e->rec->text, 2048),
        .error_class = record_class(starts->error_class),
        .total_replans = starts->n,
        .delay_ms = starts->delay_ms,
        .revision = starts->revision,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_replan_started;
}

enum msg_type event_encode_replan_finished(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_revision *revision = REC(rec, revision);

    p->replan_finished = (struct msg_ev_replan_finished){
        .step_id = record_step(e)->step_id,
        .step_index = rec->step,
        .attempt = rec->attempt,
        .ok = revision->ok,
        .steps = e->steps,
        .revision = revision->revision,
        .reason = record_cut(e, rec->text, 2048),
        .plan_ref = revision->result.id,
        .plan_len = revision->result.len,
        .usage = record_usage(&rec->usage),
    };
    if (e->x->revised != NULL && record_revises(rec)) {
        uint32_t all;
        p->replan_finished.steps_n = record_list_steps(e, e->x->revised, revision->revision, &all,
                                                       &p->replan_finished.steps_truncated);
        p->replan_finished.new_steps = all;
    }
    return MSG_ev_replan_finished;
}
