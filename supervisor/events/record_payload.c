/* From records to their messages: the common part, and records about plans, agents and the
 * supervisor. Steps: event_encode_step.c, event_encode_ask.c. */
#include "protocol/base/utf8.h"
#include "supervisor/events/record_internal.h"

enum { QUERY_ROOM = 512, STEP_TASK_ROOM = 120, FEW_STEPS = 6, FEW_TASK_ROOM = 320 };

struct str record_cut(struct encoding *e, struct str s, size_t cap)
{
    char *at;
    size_t max = cap < e->room ? cap : e->room;

    s.len = s.ptr == NULL ? 0 : utf8_cut(s.ptr, s.len, max);
    if (s.len == 0 || (utf8_valid(s.ptr, s.len) && memchr(s.ptr, 0, s.len) == NULL)) {
        return s;
    }
    at = arena_alloc(&e->repaired, s.len);
    if (at == NULL) {
        return STR_LIT("(unreadable)");
    }
    for (size_t i = 0; i < s.len; i++) {
        at[i] = s.ptr[i] == 0 || ((uint8_t)s.ptr[i] & 0x80) != 0 ? '?' : s.ptr[i];
    }
    return (struct str){at, s.len};
}

const struct plan_step *record_step(const struct encoding *e)
{
    return &e->x->plan->steps[e->rec->step];
}

struct str record_agent_id(const struct encoding *e, uint32_t agent)
{
    const struct plan *plan = e->x->plan;
    uint32_t at = plan_agent_find(plan, agent);

    if (e->rec->step < plan->n_steps && record_step(e)->agent == agent) {
        return record_step(e)->agent_id;
    }
    if (at < plan->agents.n) {
        return plan->agents.ids[at];
    }
    if (e->reg != NULL && agent < registry_agents(e->reg)) {
        return registry_agent_view(e->reg, agent).id;
    }
    return (struct str){NULL, 0};
}

struct str record_agent_name(const struct encoding *e, uint32_t agent, struct str id)
{
    if (e->reg != NULL && agent < registry_agents(e->reg)) {
        const struct msg_card *card = registry_agent_view(e->reg, agent).card;
        if (card != NULL && card->name.len > 0) {
            return card->name;
        }
    }
    return id;
}

struct str record_from_id(const struct encoding *e)
{
    const uint32_t from = REC(e->rec, handoff)->from_agent;
    struct str id;

    if (from == AGENT_SUPERVISOR) {
        return STR_LIT("supervisor");
    }
    id = record_agent_id(e, from);
    return id.len > 0 ? id : STR_LIT("unknown");
}

struct str record_instance(struct encoding *e, struct uuid instance)
{
    if (uuid_is_nil(instance)) {
        return (struct str){NULL, 0};
    }
    uuid_format(instance, e->instance);
    return (struct str){e->instance, UUID_TEXT_LEN};
}

struct str record_class(enum err_class class)
{
    return class == CLASS_NONE ? (struct str){NULL, 0} : str_from(err_class_name(class));
}

struct str record_review(struct encoding *e)
{
    const bool step = e->rec->step < e->x->plan->n_steps;

    buf_clear(&e->review);
    review_id_format(e->x->plan->plan_id, step ? record_step(e)->step_id : (struct str){NULL, 0},
                     e->rec->attempt, &e->review);
    return buf_str(&e->review);
}

struct msg_usage record_usage(const struct usage *u)
{
    return (struct msg_usage){.input_tokens = u->input_tokens,
                              .output_tokens = u->output_tokens,
                              .cached_tokens = u->cached_tokens,
                              .cost_micros = u->cost_micros};
}

uint32_t record_list_steps(struct encoding *e, const struct plan *plan, uint32_t since,
                           uint32_t *ret_all, bool *ret_cut)
{
    uint32_t all = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < plan->n_steps; i++) {
        all += plan->steps[i].revision >= since ? 1 : 0;
    }
    const size_t room = all <= FEW_STEPS ? FEW_TASK_ROOM : STEP_TASK_ROOM;
    const uint32_t most = all < e->steps_room ? all : e->steps_room;

    *ret_all = all;
    *ret_cut = most < all;
    for (uint32_t i = 0; i < plan->n_steps && n < most; i++) {
        const struct plan_step *s = &plan->steps[i];
        if (s->revision < since) {
            continue;
        }
        e->steps[n] = (struct msg_ev_step_summary){
            .step_id = s->step_id,
            .step_index = i,
            .agent_id = s->agent_id,
            .agent_name = record_agent_name(e, s->agent, s->agent_id),
            .task = record_cut(e, s->task, room),
        };
        *ret_cut |= e->steps[n].task.len < s->task.len;
        n++;
    }
    return n;
}

/* ---- plans ---- */

static enum msg_type put_generated(struct encoding *e, union payload *p)
{
    const struct plan *plan = e->x->revised != NULL ? e->x->revised : e->x->plan;

    p->generated = (struct msg_ev_plan_generated){
        .query = record_cut(e, plan->goal, QUERY_ROOM),
        .planner = plan->planner,
        .steps = e->steps,
        .estimated_steps = plan->n_steps,
        .revision = plan->revision,
        .usage = record_usage(&e->rec->usage),
        .plan_ref = REC(e->rec, revision)->result.id,
        .plan_len = REC(e->rec, revision)->result.len,
        .description = record_cut(e, e->x->description, 512),
        .success_criteria = record_cut(e, e->x->success_criteria, 512),
        .estimated_tokens = e->x->estimated_tokens,
        .normalised = record_cut(e, e->rec->text, 1024),
    };
    if (!uuid_is_nil(e->x->parent)) {
        uuid_format(e->x->parent, e->id);
        p->generated.parent_plan_id = (struct str){e->id, UUID_TEXT_LEN};
    }
    uint32_t all;
    p->generated.steps_n = record_list_steps(e, plan, 0, &all, &p->generated.steps_truncated);
    return MSG_ev_plan_generated;
}

static enum msg_type put_started(struct encoding *e, union payload *p)
{
    p->started = (struct msg_ev_plan_started){.step_count = e->x->plan->n_steps};
    return MSG_ev_plan_started;
}

static enum msg_type put_modified(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct rec_revision *revision = REC(rec, revision);

    p->modified = (struct msg_ev_plan_modified){
        .kind = str_from(modify_kind_name(revision->modify)),
        .revision = revision->revision,
        .reasoning = record_cut(e, rec->text, 2048),
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
    if (e->x->revised != NULL && record_revises(rec)) {
        uint32_t all;
        p->modified.steps_n = record_list_steps(e, e->x->revised, revision->revision, &all,
                                                &p->modified.steps_truncated);
        p->modified.new_steps = all;
    }
    return MSG_ev_plan_modified;
}

static enum msg_type put_paused(struct encoding *e, union payload *p)
{
    const struct rec_pause *pause = REC(e->rec, pause);

    p->paused = (struct msg_ev_plan_paused){
        .reason = str_from(pause_reason_name(pause->reason)),
        .comment = record_cut(e, e->rec->text, 512),
        .timeout_ms = pause->delay_ms,
    };
    if (pause->reason == PAUSE_SIGNOFF || pause->reason == PAUSE_PLANNING) {
        p->paused.review_id = record_review(e);
    }
    return MSG_ev_plan_paused;
}

static enum msg_type put_resumed(struct encoding *e, union payload *p)
{
    p->resumed = (struct msg_ev_plan_resumed){
        .reason = str_from(pause_reason_name(REC(e->rec, pause)->reason)),
        .comment = record_cut(e, e->rec->text, 512),
    };
    return MSG_ev_plan_resumed;
}

static enum msg_type put_cancelling(struct encoding *e, union payload *p)
{
    p->cancelling = (struct msg_ev_plan_cancelling){.reason = record_cut(e, e->rec->text, 512),
                                                    .grace_ms = REC(e->rec, timed)->delay_ms};
    return MSG_ev_plan_cancelling;
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
    m->usage_replanning = record_usage(&run->replan_usage);
    m->usage_planning = record_usage(&run->planning_usage);
    m->usage_synthesis = record_usage(&run->synthesis_usage);
    m->revision = run->revision;
    m->replans = run->replans;
    m->fallbacks = run->fallbacks;
}

static enum msg_type put_completed(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct record_extra *x = e->x;
    const struct rec_plan_completed *end = REC(rec, plan_completed);

    buf_clear(&e->made);
    plan_failure_reason(rec, x->plan, &e->made);
    p->completed = (struct msg_ev_plan_completed){
        .status = str_from(plan_status_name(end->status)),
        .outcome = str_from(plan_outcome_name(end->outcome)),
        .summary = record_cut(e, x->preview, LIMIT_PREVIEW_BYTES),
        .summary_ref = x->summary.id,
        .summary_len = x->summary.len,
        .failure_reason = record_cut(e, buf_str(&e->made), 2048),
        .duration_ms = end->duration_ms,
    };
    if (end->result.id != 0) {
        p->completed.synthesis = STR_LIT("agent");
    }
    if (end->failure != PLAN_FAILURE_NONE) {
        p->completed.failure_kind = str_from(plan_failure_name(end->failure));
    }
    if (rec->step < x->plan->n_steps) {
        p->completed.failed_step_id = record_step(e)->step_id;
        p->completed.failed_step_index = rec->step;
        msg_set(&p->completed, ev_plan_completed, failed_step_index);
    }
    if (x->run != NULL) {
        put_sums(x->run, &p->completed);
    }
    return MSG_ev_plan_completed;
}

/* ---- agents and the supervisor ---- */

static enum msg_type put_agent(struct encoding *e, union payload *p)
{
    const struct rec_agent *of = REC(e->rec, agent);

    p->agent = (struct msg_ev_agent){
        .agent_id = e->x->agent_id,
        .agent_name = e->x->agent_name.len > 0 ? e->x->agent_name : e->x->agent_id,
        .instance_id = record_instance(e, of->instance),
        .epoch = of->epoch,
        .reason = record_cut(e, e->rec->text, 256),
        .pid = of->pid,
        .capacity = of->capacity,
        .version = e->x->version,
    };
    return MSG_ev_agent;
}

static enum msg_type put_system(struct encoding *e, union payload *p)
{
    p->system = (struct msg_ev_system){
        .version = record_cut(e, e->x->version, 32),
        .reason = record_cut(e, e->rec->text, 256),
        .pid = REC(e->rec, supervisor)->pid,
        .plans_recovered = e->x->plans_recovered,
    };
    return MSG_ev_system;
}

/* ---- all ---- */

static const struct {
    record_put *put;
    bool about_step;
} PUTS[REC_COUNT] = {
    [REC_PLANNING_STARTED] = {event_encode_planning_started, false},
    [REC_PLANNING_RETRY] = {event_encode_planning_retry, false},
    [REC_PLANNING_FAILED] = {event_encode_planning_failed, false},
    [REC_SYNTHESIS_STARTED] = {event_encode_synthesis_started, false},
    [REC_TEXT_DELTA] = {event_encode_text_delta, false},
    [REC_SYNTHESIS_RETRY] = {event_encode_synthesis_retry, false},
    [REC_SYNTHESIS_FINISHED] = {event_encode_synthesis_finished, false},
    [REC_TURN_START] = {event_encode_turn_start, false},
    [REC_TURN_END] = {event_encode_turn_end, false},
    [REC_PLAN_GENERATED] = {put_generated, false},
    [REC_PLAN_STARTED] = {put_started, false},
    [REC_STEP_STARTED] = {event_encode_step_started, true},
    [REC_HANDOFF] = {event_encode_handoff, true},
    [REC_STEP_PROGRESS] = {event_encode_progress, true},
    [REC_STEP_RETRY] = {event_encode_retry, true},
    [REC_STEP_WAITING] = {event_encode_waiting, true},
    [REC_REVIEW_DECIDED] = {event_encode_decided, false},
    [REC_VERIFICATION_FAILED] = {event_encode_verification, true},
    [REC_GATE_STARTED] = {event_encode_gate_started, true},
    [REC_GATE_PASSED] = {event_encode_gate_passed, true},
    [REC_GATE_FAILED] = {event_encode_gate_failed, true},
    [REC_GATE_ERROR] = {event_encode_gate_error, true},
    [REC_FALLBACK_USED] = {event_encode_fallback, true},
    [REC_REPLAN_STARTED] = {event_encode_replan_started, true},
    [REC_REPLAN_FINISHED] = {event_encode_replan_finished, true},
    [REC_STEP_COMPLETED] = {event_encode_step_completed, true},
    [REC_PLAN_MODIFIED] = {put_modified, false},
    [REC_PLAN_PAUSED] = {put_paused, false},
    [REC_PLAN_RESUMED] = {put_resumed, false},
    [REC_PLAN_CANCELLING] = {put_cancelling, false},
    [REC_PLAN_COMPLETED] = {put_completed, false},
    [REC_AGENT_REGISTERED] = {put_agent, false},
    [REC_AGENT_UP] = {put_agent, false},
    [REC_AGENT_DOWN] = {put_agent, false},
    [REC_AGENT_DRAINING] = {put_agent, false},
    [REC_AGENT_RESTARTED] = {put_agent, false},
    [REC_SUPERVISOR_STARTED] = {put_system, false},
    [REC_SUPERVISOR_STOPPING] = {put_system, false},
    [REC_STEP_ASSIGNED] = {event_encode_internal, true},
    [REC_STEP_CHECKING] = {event_encode_checking, true},
    [REC_RESULT_REJECTED] = {event_encode_rejected, false},
    [REC_STEP_UNKNOWN] = {event_encode_internal, true},
};

enum msg_type record_payload(struct encoding *e, union payload *p)
{
    const struct plan *plan = e->x->plan;

    if ((unsigned)e->rec->type >= REC_COUNT ||
        (record_about(e->rec->type) == ABOUT_PLAN && plan == NULL) ||
        (PUTS[e->rec->type].about_step && e->rec->step >= plan->n_steps)) {
        return MSG_TYPE_COUNT;
    }
    return PUTS[e->rec->type].put(e, p);
}
