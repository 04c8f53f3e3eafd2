/* Records about people, checks and replans: to the fields of their messages, and back. */
#include "supervisor/events/record_internal.h"

enum { MISSING_ROOM = 256, BY_ROOM = 64 };
enum { SCHEMA_MAX = 1024 }; /* fits beside any text, when that is cut */

enum msg_type event_encode_waiting(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_waiting *asks = REC(rec, waiting);

    p->waiting = (struct msg_ev_plan_step_waiting){
        .step_id = record_step(e)->step_id,
        .step_index = rec->step,
        .attempt = rec->attempt,
        .review_id = record_review(e, asks->serial),
        .kind = str_from(review_kind_name(asks->review)),
        .prompt = record_text(e, rec->text),
        .error_class = record_class(asks->error_class),
        .agent_id = record_agent_id(e, rec->agent),
        .timeout_ms = asks->delay_ms,
        .usage = record_usage(&rec->usage),
        .details_ref = e->x->details.id,
        .details_len = e->x->details.len,
    };
    if (asks->data.len <= SCHEMA_MAX) {
        p->waiting.schema = asks->data; /* a document cannot be cut, only left out */
    }
    return MSG_ev_plan_step_waiting;
}

void event_decode_waiting(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_step_waiting *m = &p->waiting;
    struct rec_waiting *asks = REC(d->rec, waiting);

    event_decode_step(d, m->step_index, m->step_id);
    event_decode_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->prompt;
    asks->review = review_kind_from_name(m->kind);
    asks->serial = event_decode_review(d, m->review_id);
    asks->data = m->schema;
    asks->delay_ms = m->timeout_ms;
    asks->error_class = event_decode_class(d, m->error_class);
    event_decode_usage(d, &m->usage);
    record_expect(d, asks->review != REVIEW_KIND_COUNT);
}

enum msg_type event_encode_decided(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_decided *decided = REC(rec, decided);

    p->decided = (struct msg_ev_review_decided){
        .review_id = record_review(e, decided->serial),
        .attempt = rec->attempt,
        .decision = str_from(review_decision_name(decided->decision)),
        .comment = record_text(e, rec->text),
        .kind = str_from(review_kind_name(decided->review)),
        .edit_ref = decided->result.id,
        .edit_len = decided->result.len,
        .digest = decided->digest,
    };
    if (rec->step < e->x->plan->n_steps) {
        p->decided.step_id = record_step(e)->step_id;
        p->decided.step_index = rec->step;
        msg_set(&p->decided, ev_review_decided, step_index);
    }
    p->decided.by = (struct msg_decided_by){.user = record_cut(e, decided->by.user, BY_ROOM),
                                            .host = record_cut(e, decided->by.host, BY_ROOM),
                                            .via = record_cut(e, decided->by.via, BY_ROOM),
                                            .address = record_cut(e, decided->by.address, BY_ROOM),
                                            .id = record_cut(e, decided->by.id, BY_ROOM)};
    p->decided.revision = decided->revision;
    p->decided.shown_ref = decided->shown.id;
    p->decided.shown_len = decided->shown.len;
    return MSG_ev_review_decided;
}

void event_decode_decided(struct decoding *d, const union payload *p)
{
    const struct msg_ev_review_decided *m = &p->decided;
    const bool about_step = msg_has(m, ev_review_decided, step_index);
    struct rec_decided *decided = REC(d->rec, decided);
    struct review_id id;

    if (about_step) {
        event_decode_step(d, m->step_index, m->step_id);
    }
    decided->serial = event_decode_review(d, m->review_id);
    decided->revision = (uint32_t)m->revision;
    decided->shown = (struct blob_ref){.id = m->shown_ref, .len = m->shown_len};
    d->rec->attempt = (uint32_t)m->attempt;
    if (review_id_parse(m->review_id, &id) && id.serial == 0) {
        d->rec->attempt = id.attempt;
    }
    decided->decision = review_decision_from_name(m->decision);
    decided->review = m->kind.len == 0 ? REVIEW_UNKNOWN_OUTCOME : review_kind_from_name(m->kind);
    d->rec->text = m->comment;
    decided->result = (struct blob_ref){.id = m->edit_ref, .len = m->edit_len};
    decided->digest = m->digest;
    decided->by = (struct actor){m->by.user, m->by.host, m->by.via, m->by.address, m->by.id};
    record_expect(d, decided->decision != DECISION_COUNT && decided->review != REVIEW_KIND_COUNT);
}

enum msg_type event_encode_verification(struct encoding *e, union payload *p)
{
    p->verification = (struct msg_ev_plan_step_verification_failed){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .agent_id = record_agent_id(e, e->rec->agent),
        .diagnosis = record_text(e, e->rec->text),
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_plan_step_verification_failed;
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

enum msg_type event_encode_gate_started(struct encoding *e, union payload *p)
{
    p->gate_started = (struct msg_ev_quality_gate_started){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .agent_id = record_step(e)->rules->gate_with,
        .timeout_ms = REC(e->rec, timed)->delay_ms,
        .attempt = e->rec->attempt,
    };
    return MSG_ev_quality_gate_started;
}

static void get_gate(struct decoding *d, uint64_t step_index, struct str step_id)
{
    event_decode_step(d, step_index, step_id);
    if (d->fits) {
        d->rec->agent = d->plan->steps[step_index].rules->gate_agent;
    }
}

void event_decode_gate_started(struct decoding *d, const union payload *p)
{
    const struct msg_ev_quality_gate_started *m = &p->gate_started;

    get_gate(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempt;
    REC(d->rec, timed)->delay_ms = m->timeout_ms;
}

enum msg_type event_encode_gate_passed(struct encoding *e, union payload *p)
{
    p->gate_passed = (struct msg_ev_quality_gate_passed){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .agent_id = record_step(e)->rules->gate_with,
        .reason = record_text(e, e->rec->text),
        .usage = record_usage(&e->rec->usage),
        .attempt = e->rec->attempt,
    };
    return MSG_ev_quality_gate_passed;
}

void event_decode_gate_passed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_quality_gate_passed *m = &p->gate_passed;

    get_gate(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->reason;
    event_decode_usage(d, &m->usage);
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
        .agent_id = record_step(e)->rules->gate_with,
        .missing = e->missing,
        .missing_n = list_missing(e),
        .reason = record_text(e, e->rec->text),
        .usage = record_usage(&e->rec->usage),
        .attempt = e->rec->attempt,
    };
    return MSG_ev_quality_gate_failed;
}

void event_decode_gate_failed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_quality_gate_failed *m = &p->gate_failed;

    get_gate(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->reason;
    event_decode_usage(d, &m->usage);
}

enum msg_type event_encode_gate_error(struct encoding *e, union payload *p)
{
    p->gate_error = (struct msg_ev_quality_gate_error){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .agent_id = record_step(e)->rules->gate_with,
        .error = record_text(e, e->rec->text),
        .fail_closed = record_step(e)->rules->policy.gate_closed,
        .usage = record_usage(&e->rec->usage),
        .attempt = e->rec->attempt,
    };
    return MSG_ev_quality_gate_error;
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

enum msg_type event_encode_replan_started(struct encoding *e, union payload *p)
{
    const struct rec_replan_started *starts = REC(e->rec, replan_started);

    p->replan_started = (struct msg_ev_replan_started){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .agent_id = e->x->plan->replan.agent_id,
        .diagnosis = record_text(e, e->rec->text),
        .error_class = record_class(starts->error_class),
        .total_replans = starts->n,
        .delay_ms = starts->delay_ms,
        .revision = starts->revision,
        .usage = record_usage(&e->rec->usage),
        .details_ref = e->x->details.id,
        .details_len = e->x->details.len,
    };
    return MSG_ev_replan_started;
}

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
        .reason = record_text(e, rec->text),
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

void event_decode_replan_finished(struct decoding *d, const union payload *p)
{
    const struct msg_ev_replan_finished *m = &p->replan_finished;
    struct rec_revision *revision = REC(d->rec, revision);

    event_decode_step(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->reason;
    revision->ok = m->ok;
    revision->revision = (uint32_t)m->revision;
    revision->result = (struct blob_ref){.id = m->plan_ref, .len = m->plan_len};
    event_decode_usage(d, &m->usage);
}
