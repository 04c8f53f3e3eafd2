/* From a row to the record that run_apply needs, checked against the plan: the common part, and
 * records about plans. Steps: event_decode_step.c, event_decode_ask.c. */
#include <inttypes.h>

#include "protocol/wire/mp_validate.h"
#include "supervisor/events/record_internal.h"

void record_expect(struct decoding *d, bool ok)
{
    d->fits = d->fits && ok;
}

void event_decode_step(struct decoding *d, uint64_t ix, struct str step_id)
{
    record_expect(d, ix < d->plan->n_steps);
    if (!d->fits) {
        return;
    }
    d->rec->step = (uint32_t)ix;
    d->rec->agent = d->plan->steps[ix].agent;
    record_expect(d, step_id.ptr == NULL || str_eq(step_id, d->plan->steps[ix].step_id));
}

/* AGENT_NONE when the plan has no agent of that id. */
static uint32_t agent_of(const struct plan *plan, struct str id)
{
    for (uint32_t i = 0; i < plan->agents.n; i++) {
        if (str_eq(id, plan->agents.ids[i])) {
            return plan->agents.at[i];
        }
    }
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (str_eq(id, plan->steps[i].agent_id)) {
            return plan->steps[i].agent;
        }
    }
    return AGENT_NONE;
}

void event_decode_agent(struct decoding *d, struct str agent_id)
{
    if (!d->fits || agent_id.len == 0) {
        return;
    }
    d->rec->agent = agent_of(d->plan, agent_id);
    record_expect(d, d->rec->agent != AGENT_NONE);
}

uint32_t event_decode_from(const struct decoding *d, struct str from)
{
    const uint32_t agent = agent_of(d->plan, from);

    return agent == AGENT_NONE ? AGENT_SUPERVISOR : agent;
}

struct uuid event_decode_instance(struct decoding *d, struct str id)
{
    struct uuid instance = {{0}};

    record_expect(d, id.len == 0 || uuid_parse(id, &instance));
    return instance;
}

enum err_class event_decode_class(struct decoding *d, struct str name)
{
    enum err_class class = CLASS_NONE;

    if (name.len > 0) {
        class = err_class_from_name(name.ptr, name.len);
        record_expect(d, str_is(name, err_class_name(class)));
    }
    return class;
}

enum step_phase event_decode_phase(struct decoding *d, struct str name)
{
    const enum step_phase phase = name.len == 0 ? PHASE_EXECUTE : step_phase_from_name(name);

    record_expect(d, phase != STEP_PHASE_COUNT);
    return phase;
}

void event_decode_usage(struct decoding *d, const struct msg_usage *u)
{
    d->rec->usage =
        (struct usage){u->input_tokens, u->output_tokens, u->cached_tokens, u->cost_micros};
}

/* ---- plans ---- */

static void get_nothing(struct decoding *d, const union payload *p)
{
    (void)d;
    (void)p;
}

static void get_generated(struct decoding *d, const union payload *p)
{
    event_decode_usage(d, &p->generated.usage);
    REC(d->rec, revision)->revision = (uint32_t)p->generated.revision;
    REC(d->rec, revision)->result = (struct blob_ref){p->generated.plan_ref, p->generated.plan_len};
}

static void get_modified(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_modified *m = &p->modified;
    struct rec_revision *revision = REC(d->rec, revision);

    if (msg_has(m, ev_plan_modified, step_index)) {
        event_decode_step(d, m->step_index, m->step_id);
    }
    d->rec->attempt = (uint32_t)m->attempt;
    revision->modify = modify_kind_from_name(m->kind);
    revision->revision = (uint32_t)m->revision;
    revision->result = (struct blob_ref){m->plan_ref, m->plan_len};
    d->rec->text = m->reasoning;
    event_decode_usage(d, &m->usage);
    record_expect(d, revision->modify != MODIFY_KIND_COUNT);
}

static void get_paused(struct decoding *d, const union payload *p)
{
    struct rec_pause *pause = REC(d->rec, pause);

    pause->reason = pause_reason_from_name(p->paused.reason);
    pause->delay_ms = p->paused.timeout_ms;
    d->rec->text = p->paused.comment;
    record_expect(d, pause->reason != PAUSE_REASON_COUNT);
}

static void get_resumed(struct decoding *d, const union payload *p)
{
    struct rec_pause *pause = REC(d->rec, pause);

    pause->reason = pause_reason_from_name(p->resumed.reason);
    d->rec->text = p->resumed.comment;
    record_expect(d, pause->reason != PAUSE_REASON_COUNT);
}

static void get_cancelling(struct decoding *d, const union payload *p)
{
    d->rec->text = p->cancelling.reason;
    REC(d->rec, timed)->delay_ms = p->cancelling.grace_ms;
}

static void get_completed(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_completed *m = &p->completed;
    struct rec_plan_completed *end = REC(d->rec, plan_completed);

    end->status = plan_status_from_name(m->status);
    end->outcome = plan_outcome_from_name(m->outcome);
    d->rec->text = m->failure_reason;
    end->duration_ms = m->duration_ms;
    event_decode_usage(d, &m->usage);
    end->result = (struct blob_ref){m->summary_ref, m->summary_len};
    if (msg_has(m, ev_plan_completed, failed_step_index)) {
        event_decode_step(d, m->failed_step_index, m->failed_step_id);
    } else if (m->failed_step_id.len > 0) {
        d->rec->step = plan_step_find(d->plan, m->failed_step_id);
    }
    end->failure = record_failure(d, m->failure_kind);
    record_expect(d, end->status != PLAN_STATUS_COUNT && end->outcome != PLAN_OUTCOME_COUNT);
}

/* ---- all ---- */

static const struct {
    enum msg_type type;
    record_get *get; /* NULL: not about a plan */
} GETS[REC_COUNT] = {
    [REC_PLANNING_STARTED] = {MSG_ev_planning_started, event_decode_planning_started},
    [REC_PLANNING_RETRY] = {MSG_ev_planning_retry, event_decode_planning_retry},
    [REC_PLANNING_FAILED] = {MSG_ev_planning_failed, event_decode_planning_failed},
    [REC_SYNTHESIS_STARTED] = {MSG_ev_synthesis_started, event_decode_synthesis_started},
    [REC_TEXT_DELTA] = {MSG_ev_text_delta, event_decode_text_delta},
    [REC_SYNTHESIS_RETRY] = {MSG_ev_synthesis_retry, event_decode_synthesis_retry},
    [REC_SYNTHESIS_FINISHED] = {MSG_ev_synthesis_finished, event_decode_synthesis_finished},
    [REC_PLAN_GENERATED] = {MSG_ev_plan_generated, get_generated},
    [REC_PLAN_STARTED] = {MSG_ev_plan_started, get_nothing},
    [REC_STEP_STARTED] = {MSG_ev_plan_step_started, event_decode_step_started},
    [REC_HANDOFF] = {MSG_ev_agent_handoff, event_decode_handoff},
    [REC_STEP_PROGRESS] = {MSG_ev_plan_step_progress, event_decode_progress},
    [REC_STEP_RETRY] = {MSG_ev_plan_step_retry, event_decode_retry},
    [REC_STEP_WAITING] = {MSG_ev_plan_step_waiting, event_decode_waiting},
    [REC_REVIEW_DECIDED] = {MSG_ev_review_decided, event_decode_decided},
    [REC_VERIFICATION_FAILED] = {MSG_ev_plan_step_verification_failed, event_decode_verification},
    [REC_GATE_STARTED] = {MSG_ev_quality_gate_started, event_decode_gate_started},
    [REC_GATE_PASSED] = {MSG_ev_quality_gate_passed, event_decode_gate_passed},
    [REC_GATE_FAILED] = {MSG_ev_quality_gate_failed, event_decode_gate_failed},
    [REC_GATE_ERROR] = {MSG_ev_quality_gate_error, event_decode_gate_error},
    [REC_FALLBACK_USED] = {MSG_ev_fallback_used, event_decode_fallback},
    [REC_REPLAN_STARTED] = {MSG_ev_replan_started, event_decode_replan_started},
    [REC_REPLAN_FINISHED] = {MSG_ev_replan_finished, event_decode_replan_finished},
    [REC_STEP_COMPLETED] = {MSG_ev_plan_step_completed, event_decode_step_completed},
    [REC_PLAN_MODIFIED] = {MSG_ev_plan_modified, get_modified},
    [REC_PLAN_PAUSED] = {MSG_ev_plan_paused, get_paused},
    [REC_PLAN_RESUMED] = {MSG_ev_plan_resumed, get_resumed},
    [REC_PLAN_CANCELLING] = {MSG_ev_plan_cancelling, get_cancelling},
    [REC_PLAN_COMPLETED] = {MSG_ev_plan_completed, get_completed},
    [REC_STEP_ASSIGNED] = {MSG_rec_step, event_decode_internal},
    [REC_STEP_CHECKING] = {MSG_rec_checking, event_decode_checking},
    [REC_RESULT_REJECTED] = {MSG_rec_rejected, event_decode_rejected},
    [REC_STEP_UNKNOWN] = {MSG_rec_step, event_decode_internal},
};

static enum bt_code wrong(const struct journal_row *row, const char *what, struct bt_error *err)
{
    return err_set(err, BT_PROTOCOL, "row of seq %" PRIu64 " (%.*s): %.350s", row->seq,
                   STR_ARG(row->type), what);
}

/* Sequence and type are in the row and in the body; they must be equal. */
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

    if (type == REC_COUNT || GETS[type].get == NULL ||
        (record_is_public(type) && plan->job == JOB_NONE) != row->is_public) {
        return wrong(row, "no record about a plan", err);
    }
    if (mp_validate(row->body, row->body_len, NULL, &why) != BT_OK ||
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
