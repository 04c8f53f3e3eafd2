/* From a row back to the record: what run_apply needs, checked against the plan. */
#include <inttypes.h>

#include "protocol/wire/guard.h"
#include "supervisor/journal/record_internal.h"

struct decoding {
    const struct journal_row *row;
    const struct plan *plan;
    struct record *rec;
    bool fits; /* false: a value is none of ours */
};

static void expect(struct decoding *d, bool ok)
{
    d->fits = d->fits && ok;
}

static void read_step(struct decoding *d, uint64_t ix, struct str step_id)
{
    expect(d, ix < d->plan->n_steps);
    if (!d->fits) {
        return;
    }
    d->rec->step = (uint32_t)ix;
    d->rec->agent = d->plan->steps[ix].agent;
    expect(d, step_id.ptr == NULL || str_eq(step_id, d->plan->steps[ix].step_id));
}

static void read_instance(struct decoding *d, struct str id, uint64_t epoch)
{
    expect(d, id.len == 0 || uuid_parse(id, &d->rec->instance));
    d->rec->epoch = epoch;
}

static void read_class(struct decoding *d, struct str name)
{
    if (name.len > 0) {
        d->rec->error_class = err_class_from_name(name.ptr, name.len);
        expect(d, str_is(name, err_class_name(d->rec->error_class)));
    }
}

static struct usage read_usage(const struct msg_usage *u)
{
    return (struct usage){u->input_tokens, u->output_tokens, u->cached_tokens, u->cost_micros};
}

static void read_review(struct decoding *d, struct str review_id)
{
    struct uuid plan_id;
    struct str step_id;

    expect(d, review_id_parse(review_id, &plan_id, &step_id, &d->rec->attempt) &&
                  uuid_eq(plan_id, d->plan->plan_id));
}

/* ---- one function per kind ---- */

static void get_nothing(struct decoding *d, const union payload *p)
{
    (void)d;
    (void)p;
}

static void get_step_started(struct decoding *d, const union payload *p)
{
    read_step(d, p->step_started.step_index, p->step_started.step_id);
    d->rec->attempt = (uint32_t)p->step_started.attempt;
    read_instance(d, p->step_started.instance_id, p->step_started.epoch);
}

static void get_handoff(struct decoding *d, const union payload *p)
{
    struct str from = p->handoff.from_agent.agent_id;

    read_step(d, p->handoff.step_index, p->handoff.plan_step_id);
    d->rec->from_agent = AGENT_SUPERVISOR;
    for (uint32_t i = 0; i < d->plan->n_steps; i++) {
        if (str_eq(from, d->plan->steps[i].agent_id)) {
            d->rec->from_agent = d->plan->steps[i].agent;
            break;
        }
    }
}

static void get_progress(struct decoding *d, const union payload *p)
{
    read_step(d, p->progress.step_index, p->progress.step_id);
    d->rec->attempt = (uint32_t)p->progress.attempt;
    d->rec->n = p->progress.n;
    d->rec->percent = p->progress.percent;
    d->rec->text = p->progress.text;
    d->rec->data = p->progress.data;
}

static void get_retry(struct decoding *d, const union payload *p)
{
    read_step(d, p->retry.step_index, p->retry.step_id);
    d->rec->attempt = (uint32_t)p->retry.attempt;
    d->rec->delay_ms = p->retry.delay_ms;
    d->rec->text = p->retry.error;
    read_class(d, p->retry.error_class);
}

static void get_waiting(struct decoding *d, const union payload *p)
{
    read_step(d, p->waiting.step_index, p->waiting.step_id);
    d->rec->attempt = (uint32_t)p->waiting.attempt;
    d->rec->review = review_kind_from_name(p->waiting.kind);
    d->rec->text = p->waiting.prompt;
    expect(d, d->rec->review != REVIEW_KIND_COUNT);
    read_class(d, p->waiting.error_class);
}

static void get_decided(struct decoding *d, const union payload *p)
{
    read_step(d, p->decided.step_index, p->decided.step_id);
    read_review(d, p->decided.review_id);
    d->rec->decision = review_decision_from_name(p->decided.decision);
    d->rec->text = p->decided.comment;
    expect(d, d->rec->decision != DECISION_COUNT);
}

static void get_step_completed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_step_completed *m = &p->step_completed;

    read_step(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempts;
    d->rec->status = step_status_from_name(m->status);
    d->rec->reason = m->reason.len == 0 ? REASON_NONE : step_reason_from_name(m->reason);
    d->rec->text = m->error;
    d->rec->result = (struct blob_ref){m->result_ref, m->result_len};
    d->rec->duration_ms = m->duration_ms;
    d->rec->usage = read_usage(&m->usage);
    read_class(d, m->error_class);
    read_instance(d, m->instance_id, m->epoch);
    expect(d, d->rec->status != STEP_STATUS_COUNT && d->rec->reason != STEP_REASON_COUNT);
}

static void get_cancelling(struct decoding *d, const union payload *p)
{
    d->rec->text = p->cancelling.reason;
}

static void get_completed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_completed *m = &p->completed;

    d->rec->plan_status = plan_status_from_name(m->status);
    d->rec->outcome = plan_outcome_from_name(m->outcome);
    d->rec->text = m->failure_reason;
    d->rec->duration_ms = m->duration_ms;
    d->rec->usage = read_usage(&m->usage);
    d->rec->result = (struct blob_ref){m->summary_ref, m->summary_len};
    if (m->failed_step_id.len > 0) {
        d->rec->step = plan_step_find(d->plan, m->failed_step_id);
    }
    while (d->rec->failure < PLAN_FAILURE_COUNT && m->failure_kind.len > 0 &&
           !str_is(m->failure_kind, plan_failure_name(d->rec->failure))) {
        d->rec->failure++;
    }
    expect(d, d->rec->plan_status != PLAN_STATUS_COUNT && d->rec->outcome != PLAN_OUTCOME_COUNT &&
                  d->rec->failure != PLAN_FAILURE_COUNT);
}

static void get_internal(struct decoding *d, const union payload *p)
{
    read_step(d, p->step.step_index, (struct str){NULL, 0});
    d->rec->attempt = (uint32_t)p->step.attempt;
    d->rec->delay_ms = p->step.delay_ms;
    read_instance(d, p->step.instance_id, p->step.epoch);
}

static const struct {
    enum msg_type type;
    void (*get)(struct decoding *d, const union payload *p); /* NULL: no record about a plan */
} GETS[REC_COUNT] = {
    [REC_PLAN_GENERATED] = {MSG_event, get_nothing},
    [REC_PLAN_STARTED] = {MSG_event, get_nothing},
    [REC_STEP_STARTED] = {MSG_ev_plan_step_started, get_step_started},
    [REC_HANDOFF] = {MSG_ev_agent_handoff, get_handoff},
    [REC_STEP_PROGRESS] = {MSG_ev_plan_step_progress, get_progress},
    [REC_STEP_RETRY] = {MSG_ev_plan_step_retry, get_retry},
    [REC_STEP_WAITING] = {MSG_ev_plan_step_waiting, get_waiting},
    [REC_REVIEW_DECIDED] = {MSG_ev_review_decided, get_decided},
    [REC_STEP_COMPLETED] = {MSG_ev_plan_step_completed, get_step_completed},
    [REC_PLAN_CANCELLING] = {MSG_ev_plan_cancelling, get_cancelling},
    [REC_PLAN_COMPLETED] = {MSG_ev_plan_completed, get_completed},
    [REC_STEP_ASSIGNED] = {MSG_rec_step, get_internal},
    [REC_STEP_UNKNOWN] = {MSG_rec_step, get_internal},
};

static enum bt_code wrong(const struct journal_row *row, const char *what, struct bt_error *err)
{
    return err_set(err, BT_PROTOCOL, "row of seq %" PRIu64 " (%.*s): %.350s", row->seq,
                   STR_ARG(row->type), what);
}

/* The numbers stand twice, in the row and in the body; they must agree. */
static bool base_agrees(const struct journal_row *row, struct doc body)
{
    return !row->is_public || (doc_head(doc_get(body, STR_LIT("seq"))).u == row->seq &&
                               str_eq(doc_string(doc_get(body, STR_LIT("type"))), row->type));
}

enum bt_code record_decode(const struct journal_row *row, const struct plan *plan, msec now_mono,
                           msec now_wall, struct arena *arena, struct record *ret,
                           struct bt_error *err)
{
    enum record_type type = record_type_from_wire(row->type);
    msec age = now_wall > row->wall ? now_wall - row->wall : 0;
    struct doc body = {row->body, row->body_len};
    struct decoding d = {row, plan, ret, true};
    union {
        union payload payload;
        struct msg_event base;
    } m;
    struct bt_error why;

    if (type == REC_COUNT || GETS[type].get == NULL || record_is_public(type) != row->is_public) {
        return wrong(row, "no record about a plan", err);
    }
    if (guard_check(row->body, row->body_len, NULL, &why) != BT_OK ||
        msg_read_doc(arena, body, GETS[type].type, &m, &why) != BT_OK) {
        return wrong(row, why.msg, err);
    }
    *ret = (struct record){
        .type = type,
        .now = now_mono > age ? now_mono - age : 0,
        .wall = row->wall,
        .step = STEP_NONE,
        .agent = REGISTRY_NONE,
    };
    GETS[type].get(&d, &m.payload);
    if (!d.fits || !base_agrees(row, body)) {
        return wrong(row, "does not fit its plan", err);
    }
    return BT_OK;
}
