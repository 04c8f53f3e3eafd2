/* Records about plans, agents and the supervisor: to the fields of their messages, and back. */
#include "supervisor/core/run/aggregate.h"
#include "supervisor/events/record_internal.h"

/* ---- plans ---- */

/* The credential whose request it is. */
static struct msg_decided_by record_by(struct encoding *e)
{
    return (struct msg_decided_by){.id = record_cut(e, e->x->by, LIMIT_ID_BYTES)};
}

enum msg_type event_encode_generated(struct encoding *e, union payload *p)
{
    const struct plan *plan = e->x->revised != NULL ? e->x->revised : e->x->plan;

    p->generated = (struct msg_ev_plan_generated){
        .query = record_cut(e, plan->goal, REASON_ROOM),
        .planner = plan->planner,
        .steps = e->steps,
        .estimated_steps = plan->n_steps,
        .revision = plan->revision,
        .usage = record_usage(&e->rec->usage),
        .plan_ref = REC(e->rec, revision)->result.id,
        .plan_len = REC(e->rec, revision)->result.len,
        .description = record_cut(e, e->x->description, REASON_ROOM),
        .success_criteria = record_cut(e, e->x->success_criteria, REASON_ROOM),
        .estimated_tokens = e->x->estimated_tokens,
        .normalised = record_cut(e, e->rec->text, LONG_ROOM),
    };
    if (!uuid_is_nil(e->x->parent)) {
        uuid_format(e->x->parent, e->id);
        p->generated.parent_plan_id = (struct str){e->id, UUID_TEXT_LEN};
    }
    if (e->x->trace.span != 0) {
        trace_write(&e->x->trace, e->traceparent);
        p->generated.traceparent = str_from(e->traceparent);
    }
    uint32_t all;
    p->generated.by = record_by(e);
    p->generated.steps_n = record_list_steps(e, plan, 0, &all, &p->generated.steps_truncated);
    return MSG_ev_plan_generated;
}

void event_decode_generated(struct decoding *d, const union payload *p)
{
    event_decode_usage(d, &p->generated.usage);
    REC(d->rec, revision)->revision = (uint32_t)p->generated.revision;
    REC(d->rec, revision)->result =
        (struct blob_ref){.id = p->generated.plan_ref, .len = p->generated.plan_len};
}

enum msg_type event_encode_started(struct encoding *e, union payload *p)
{
    p->started = (struct msg_ev_plan_started){.step_count = e->x->plan->n_steps};
    return MSG_ev_plan_started;
}

void event_decode_started(struct decoding *d, const union payload *p)
{
    (void)d;
    (void)p;
}

enum msg_type event_encode_modified(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_revision *revision = REC(rec, revision);

    p->modified = (struct msg_ev_plan_modified){
        .kind = str_from(modify_kind_name(revision->modify)),
        .revision = revision->revision,
        .reasoning = record_text(e, rec->text),
        .attempt = rec->attempt,
        .steps = e->steps,
        .plan_ref = revision->result.id,
        .plan_len = revision->result.len,
        .usage = record_usage(&rec->usage),
    };
    if (rec->step < e->x->plan->n_steps) {
        p->modified.step_id = record_step(e)->step_id;
        p->modified.step_index = rec->step;
        msg_set(&p->modified, ev_plan_modified, step_index);
    }
    p->modified.by = record_by(e);
    if (e->x->revised != NULL && record_revises(rec)) {
        uint32_t all;
        p->modified.steps_n = record_list_steps(e, e->x->revised, revision->revision, &all,
                                                &p->modified.steps_truncated);
        p->modified.new_steps = all;
    }
    return MSG_ev_plan_modified;
}

void event_decode_modified(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_modified *m = &p->modified;
    struct rec_revision *revision = REC(d->rec, revision);

    if (msg_has(m, ev_plan_modified, step_index)) {
        event_decode_step(d, m->step_index, m->step_id);
    }
    d->rec->attempt = (uint32_t)m->attempt;
    revision->modify = modify_kind_from_name(m->kind);
    revision->revision = (uint32_t)m->revision;
    revision->result = (struct blob_ref){.id = m->plan_ref, .len = m->plan_len};
    d->rec->text = m->reasoning;
    event_decode_usage(d, &m->usage);
    record_expect(d, revision->modify != MODIFY_KIND_COUNT);
}

enum msg_type event_encode_paused(struct encoding *e, union payload *p)
{
    const struct rec_pause *pause = REC(e->rec, pause);

    p->paused = (struct msg_ev_plan_paused){
        .reason = str_from(pause_reason_name(pause->reason)),
        .comment = record_cut(e, e->rec->text, REASON_ROOM),
        .timeout_ms = pause->delay_ms,
    };
    if (pause->reason == PAUSE_REQUESTED) {
        p->paused.by = record_by(e);
    }
    if (pause->reason == PAUSE_SIGNOFF || pause->reason == PAUSE_PLANNING) {
        p->paused.review_id = record_review(e, pause->serial);
        p->paused.revision = pause->revision;
    }
    return MSG_ev_plan_paused;
}

void event_decode_paused(struct decoding *d, const union payload *p)
{
    struct rec_pause *pause = REC(d->rec, pause);

    pause->reason = pause_reason_from_name(p->paused.reason);
    pause->delay_ms = p->paused.timeout_ms;
    pause->revision = (uint32_t)p->paused.revision;
    if (p->paused.review_id.len > 0) {
        pause->serial = event_decode_review(d, p->paused.review_id);
    }
    d->rec->text = p->paused.comment;
    record_expect(d, pause->reason != PAUSE_REASON_COUNT);
}

enum msg_type event_encode_resumed(struct encoding *e, union payload *p)
{
    p->resumed = (struct msg_ev_plan_resumed){
        .reason = str_from(pause_reason_name(REC(e->rec, pause)->reason)),
        .comment = record_cut(e, e->rec->text, REASON_ROOM),
    };
    if (REC(e->rec, pause)->reason == PAUSE_REQUESTED) {
        p->resumed.by = record_by(e);
    }
    return MSG_ev_plan_resumed;
}

void event_decode_resumed(struct decoding *d, const union payload *p)
{
    struct rec_pause *pause = REC(d->rec, pause);

    pause->reason = pause_reason_from_name(p->resumed.reason);
    d->rec->text = p->resumed.comment;
    record_expect(d, pause->reason != PAUSE_REASON_COUNT);
}

enum msg_type event_encode_voided(struct encoding *e, union payload *p)
{
    const struct rec_pause *pause = REC(e->rec, pause);

    p->voided = (struct msg_ev_review_voided){.review_id = record_review(e, pause->serial),
                                              .revision = pause->revision};
    return MSG_ev_review_voided;
}

void event_decode_voided(struct decoding *d, const union payload *p)
{
    *REC(d->rec, pause) = (struct rec_pause){.reason = PAUSE_SIGNOFF,
                                             .serial = event_decode_review(d, p->voided.review_id),
                                             .revision = (uint32_t)p->voided.revision};
}

enum msg_type event_encode_cancelling(struct encoding *e, union payload *p)
{
    p->cancelling =
        (struct msg_ev_plan_cancelling){.reason = record_cut(e, e->rec->text, REASON_ROOM),
                                        .grace_ms = REC(e->rec, timed)->delay_ms,
                                        .by = record_by(e)};
    return MSG_ev_plan_cancelling;
}

void event_decode_cancelling(struct decoding *d, const union payload *p)
{
    d->rec->text = p->cancelling.reason;
    REC(d->rec, timed)->delay_ms = p->cancelling.grace_ms;
}

static void put_sums(const struct run *run, struct msg_ev_plan_completed *m)
{
    m->counts = (struct msg_plan_counts){.total = run->n_steps - run->superseded,
                                         .completed = run->completed,
                                         .failed = run->failed,
                                         .skipped = run->skipped,
                                         .cancelled = run->cancelled,
                                         .superseded = run->superseded};
    m->usage = record_usage(&run->usage);
    m->usage_replanning = record_usage(&run_phases(run)->replanning);
    m->usage_planning = record_usage(&run->planning_usage);
    m->usage_synthesis = record_usage(&run_phases(run)->synthesis);
    m->revision = run->revision;
    m->replans = run->replans;
    m->fallbacks = run->fallbacks;
}

/* The ids of the steps of which `what` is not whole, as many as fit; returns how many there are. */
static uint32_t list_not_whole(const struct record_extra *x, unsigned what,
                               struct str ids[NOT_WHOLE_SHOWN])
{
    struct aggregate_lack lacks[NOT_WHOLE_SHOWN];
    const uint32_t n =
        aggregate_not_whole(x->plan, x->run, &x->readers, what, lacks, NOT_WHOLE_SHOWN);

    for (uint32_t i = 0; i < n && i < NOT_WHOLE_SHOWN; i++) {
        ids[i] = x->plan->steps[lacks[i].step].step_id;
    }
    return n;
}

static void put_not_whole(struct encoding *e, struct msg_ev_plan_completed *m)
{
    uint32_t n = list_not_whole(e->x, AGGREGATE_RESULT, e->not_whole);

    m->truncated_steps = e->not_whole;
    m->truncated_steps_n = n < NOT_WHOLE_SHOWN ? n : NOT_WHOLE_SHOWN;
    m->truncated_steps_total = n > NOT_WHOLE_SHOWN ? n : 0;
    n = list_not_whole(e->x, AGGREGATE_CONTEXT, e->readers);
    m->context_truncated_steps = e->readers;
    m->context_truncated_steps_n = n < NOT_WHOLE_SHOWN ? n : NOT_WHOLE_SHOWN;
    m->context_truncated_steps_total = n > NOT_WHOLE_SHOWN ? n : 0;
}

enum msg_type event_encode_completed(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct record_extra *x = e->x;
    const struct rec_plan_completed *end = REC(rec, plan_completed);

    plan_failure_reason(rec, x->plan, &e->made);
    p->completed = (struct msg_ev_plan_completed){
        .status = str_from(plan_status_name(end->status)),
        .outcome = str_from(plan_outcome_name(end->outcome)),
        .summary = record_cut(e, x->preview, LIMIT_PREVIEW_BYTES),
        .summary_ref = x->summary.id,
        .summary_len = x->summary.len,
        .failure_reason = record_text(e, buf_str(&e->made)),
        .duration_ms = end->duration_ms,
    };
    p->completed.dry_run = x->plan->dry_run;
    if (end->result.id != 0) {
        p->completed.synthesis = STR_LIT("agent");
    }
    if (end->failure != PLAN_FAILURE_NONE) {
        p->completed.failure_kind = str_from(plan_failure_name(end->failure));
    }
    if (rec->step < x->plan->n_steps) {
        if (end->failure == PLAN_FAILURE_STEP) {
            p->completed.hint = record_timeout_hint(e, record_step(e));
        }
        p->completed.failed_step_id = record_step(e)->step_id;
        p->completed.failed_step_index = rec->step;
        msg_set(&p->completed, ev_plan_completed, failed_step_index);
    }
    if (x->run != NULL) {
        put_sums(x->run, &p->completed);
        put_not_whole(e, &p->completed);
    }
    return MSG_ev_plan_completed;
}

void event_decode_completed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_completed *m = &p->completed;
    struct rec_plan_completed *end = REC(d->rec, plan_completed);

    end->status = plan_status_from_name(m->status);
    end->outcome = plan_outcome_from_name(m->outcome);
    d->rec->text = m->failure_reason;
    end->duration_ms = m->duration_ms;
    event_decode_usage(d, &m->usage);
    end->result = (struct blob_ref){.id = m->summary_ref, .len = m->summary_len};
    if (msg_has(m, ev_plan_completed, failed_step_index)) {
        event_decode_step(d, m->failed_step_index, m->failed_step_id);
    } else if (m->failed_step_id.len > 0) {
        d->rec->step = plan_step_find(d->plan, m->failed_step_id);
    }
    end->failure = record_failure(d, m->failure_kind);
    record_expect(d, end->status != PLAN_STATUS_COUNT && end->outcome != PLAN_OUTCOME_COUNT);
}

/* ---- agents and the supervisor ---- */

enum msg_type event_encode_agent_event(struct encoding *e, union payload *p)
{
    const struct rec_agent *of = REC(e->rec, agent);

    p->agent_event = (struct msg_ev_agent){
        .agent_id = e->x->agent_id,
        .agent_name = e->x->agent_name.len > 0 ? e->x->agent_name : e->x->agent_id,
        .instance_id = record_instance(e, of->instance),
        .epoch = of->epoch,
        .reason = record_cut(e, e->rec->text, NOTE_ROOM),
        .pid = of->pid,
        .capacity = of->capacity,
        .version = e->x->version,
    };
    return MSG_ev_agent;
}

enum msg_type event_encode_system_event(struct encoding *e, union payload *p)
{
    p->system_event = (struct msg_ev_system){
        .version = record_cut(e, e->x->version, 32),
        .reason = record_cut(e, e->rec->text, NOTE_ROOM),
        .pid = REC(e->rec, supervisor)->pid,
        .plans_recovered = e->x->plans_recovered,
    };
    return MSG_ev_system;
}

enum msg_type event_encode_damaged(struct encoding *e, union payload *p)
{
    p->damaged = (struct msg_ev_damaged){.reason = record_cut(e, e->rec->text, NOTE_ROOM),
                                         .last_seq = REC(e->rec, damaged)->last_seq};
    return MSG_ev_damaged;
}

enum msg_type event_encode_rewound(struct encoding *e, union payload *p)
{
    p->rewound = (struct msg_ev_rewound){.reason = record_cut(e, e->rec->text, NOTE_ROOM),
                                         .kept_seq = REC(e->rec, rewound)->kept_seq,
                                         .lost_seq = REC(e->rec, rewound)->lost_seq};
    return MSG_ev_rewound;
}
