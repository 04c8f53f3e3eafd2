/* One function per kind of event: from the record to the fields of its message. */
#include <math.h>

#include "protocol/base/utf8.h"
#include "supervisor/journal/record_internal.h"

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
    if (e->rec->from_agent == AGENT_SUPERVISOR) {
        return STR_LIT("supervisor");
    }
    if (e->reg != NULL && e->rec->from_agent < registry_agents(e->reg)) {
        return registry_agent_view(e->reg, e->rec->from_agent).id;
    }
    return STR_LIT("unknown");
}

static const struct plan_step *step_of(const struct encoding *e)
{
    return &e->x->plan->steps[e->rec->step];
}

static struct str instance_of(struct encoding *e)
{
    if (uuid_is_nil(e->rec->instance)) {
        return (struct str){NULL, 0};
    }
    uuid_format(e->rec->instance, e->instance);
    return (struct str){e->instance, UUID_TEXT_LEN};
}

static struct str class_of(const struct record *rec)
{
    return rec->error_class == CLASS_NONE ? (struct str){NULL, 0}
                                          : str_from(err_class_name(rec->error_class));
}

static struct msg_usage usage_of(const struct usage *u)
{
    return (struct msg_usage){.input_tokens = u->input_tokens,
                              .output_tokens = u->output_tokens,
                              .cached_tokens = u->cached_tokens,
                              .cost_micros = u->cost_micros};
}

static enum msg_type put_generated(struct encoding *e, union payload *p)
{
    const struct plan *plan = e->x->plan;
    size_t room = plan->n_steps <= FEW_STEPS ? FEW_TASK_ROOM : STEP_TASK_ROOM;
    uint32_t n = plan->n_steps < e->steps_room ? plan->n_steps : e->steps_room;

    p->generated = (struct msg_ev_plan_generated){
        .query = record_cut(e, plan->goal, QUERY_ROOM),
        .planner = plan->planner,
        .steps = e->steps,
        .steps_n = n,
        .steps_truncated = n < plan->n_steps,
        .estimated_steps = plan->n_steps,
        .revision = plan->revision,
    };
    for (uint32_t i = 0; i < n; i++) {
        const struct plan_step *s = &plan->steps[i];
        e->steps[i] = (struct msg_ev_step_summary){
            .step_id = s->step_id,
            .step_index = i,
            .agent_id = s->agent_id,
            .agent_name = record_agent_name(e, s->agent, s->agent_id),
            .task = record_cut(e, s->task, room),
        };
        p->generated.steps_truncated |= e->steps[i].task.len < s->task.len;
    }
    return MSG_ev_plan_generated;
}

static enum msg_type put_started(struct encoding *e, union payload *p)
{
    p->started = (struct msg_ev_plan_started){.step_count = e->x->plan->n_steps};
    return MSG_ev_plan_started;
}

static enum msg_type put_step_started(struct encoding *e, union payload *p)
{
    const struct plan_step *s = step_of(e);

    p->step_started = (struct msg_ev_plan_step_started){
        .step_id = s->step_id,
        .step_index = e->rec->step,
        .agent_id = s->agent_id,
        .agent_name = record_agent_name(e, s->agent, s->agent_id),
        .task = record_cut(e, s->task, LIMIT_TASK_BYTES),
        .attempt = e->rec->attempt,
        .instance_id = instance_of(e),
        .epoch = e->rec->epoch,
    };
    return MSG_ev_plan_step_started;
}

static enum msg_type put_handoff(struct encoding *e, union payload *p)
{
    const struct plan_step *s = step_of(e);
    struct str from = record_from_id(e);

    buf_clear(&e->made);
    buf_add_cstr(&e->made, "Executing plan step: ");
    buf_add_str(&e->made, record_cut(e, s->task, LIMIT_TASK_BYTES));
    uuid_format(e->x->handoff_id, e->handoff);
    p->handoff = (struct msg_ev_agent_handoff){
        .handoff_id = {e->handoff, UUID_TEXT_LEN},
        .from_agent = {.agent_id = from,
                       .agent_name = record_agent_name(e, e->rec->from_agent, from)},
        .to_agent = {.agent_id = s->agent_id,
                     .agent_name = record_agent_name(e, s->agent, s->agent_id)},
        .reason = STR_LIT("plan_step"),
        .explanation = buf_str(&e->made),
        .plan_step_id = s->step_id,
        .step_index = e->rec->step,
    };
    return MSG_ev_agent_handoff;
}

static enum msg_type put_progress(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;

    p->progress = (struct msg_ev_plan_step_progress){
        .step_id = step_of(e)->step_id,
        .step_index = rec->step,
        .attempt = rec->attempt,
        .n = rec->n,
        .text = record_cut(e, rec->text, 1024),
        .percent = isfinite(rec->percent) ? rec->percent : 0,
    };
    if (rec->data.len <= 1024 && e->room >= 1024) {
        p->progress.data = rec->data; /* a document cannot be cut, only left out */
    }
    return MSG_ev_plan_step_progress;
}

static enum msg_type put_retry(struct encoding *e, union payload *p)
{
    p->retry = (struct msg_ev_plan_step_retry){
        .step_id = step_of(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .delay_ms = e->rec->delay_ms,
        .error = record_cut(e, e->rec->text, 2048),
        .error_class = class_of(e->rec),
    };
    return MSG_ev_plan_step_retry;
}

static struct str review_of(struct encoding *e)
{
    buf_clear(&e->review);
    review_id_format(e->x->plan->plan_id, step_of(e)->step_id, e->rec->attempt, &e->review);
    return buf_str(&e->review);
}

static enum msg_type put_waiting(struct encoding *e, union payload *p)
{
    p->waiting = (struct msg_ev_plan_step_waiting){
        .step_id = step_of(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .review_id = review_of(e),
        .kind = str_from(review_kind_name(e->rec->review)),
        .prompt = record_cut(e, e->rec->text, 2048),
        .error_class = class_of(e->rec),
    };
    return MSG_ev_plan_step_waiting;
}

static enum msg_type put_decided(struct encoding *e, union payload *p)
{
    p->decided = (struct msg_ev_review_decided){
        .step_id = step_of(e)->step_id,
        .step_index = e->rec->step,
        .review_id = review_of(e),
        .decision = str_from(review_decision_name(e->rec->decision)),
        .comment = record_cut(e, e->rec->text, 2048),
    };
    return MSG_ev_review_decided;
}

static enum msg_type put_step_completed(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;

    p->step_completed = (struct msg_ev_plan_step_completed){
        .step_id = step_of(e)->step_id,
        .step_index = rec->step,
        .agent_id = step_of(e)->agent_id,
        .status = str_from(step_status_name(rec->status)),
        .reason = str_from(step_reason_name(rec->reason)),
        .result_ref = rec->result.id,
        .result_len = rec->result.len,
        .error = record_cut(e, rec->text, 2048),
        .error_class = class_of(rec),
        .instance_id = instance_of(e),
        .epoch = rec->epoch,
        .attempts = rec->attempt,
        .duration_ms = rec->duration_ms,
        .usage = usage_of(&rec->usage),
    };
    if (rec->result.id != 0) {
        p->step_completed.result = record_cut(e, e->x->preview, LIMIT_PREVIEW_BYTES);
    }
    return MSG_ev_plan_step_completed;
}

static enum msg_type put_cancelling(struct encoding *e, union payload *p)
{
    p->cancelling = (struct msg_ev_plan_cancelling){.reason = record_cut(e, e->rec->text, 512)};
    return MSG_ev_plan_cancelling;
}

static enum msg_type put_completed(struct encoding *e, union payload *p)
{
    const struct record *rec = e->rec;
    const struct record_extra *x = e->x;

    buf_clear(&e->made);
    plan_failure_reason(rec, x->plan, &e->made);
    p->completed = (struct msg_ev_plan_completed){
        .status = str_from(plan_status_name(rec->plan_status)),
        .outcome = str_from(plan_outcome_name(rec->outcome)),
        .summary = record_cut(e, x->preview, LIMIT_PREVIEW_BYTES),
        .summary_ref = x->summary.id,
        .summary_len = x->summary.len,
        .failure_reason = record_cut(e, buf_str(&e->made), 2048),
        .duration_ms = rec->duration_ms,
    };
    if (rec->failure != PLAN_FAILURE_NONE) {
        p->completed.failure_kind = str_from(plan_failure_name(rec->failure));
    }
    if (rec->step < x->plan->n_steps) {
        p->completed.failed_step_id = x->plan->steps[rec->step].step_id;
    }
    if (x->run != NULL) {
        p->completed.counts = (struct msg_plan_counts){.total = x->run->n_steps,
                                                       .completed = x->run->completed,
                                                       .failed = x->run->failed,
                                                       .skipped = x->run->skipped,
                                                       .cancelled = x->run->cancelled};
        p->completed.usage = usage_of(&x->run->usage);
    }
    return MSG_ev_plan_completed;
}

static enum msg_type put_agent(struct encoding *e, union payload *p)
{
    p->agent = (struct msg_ev_agent){
        .agent_id = e->x->agent_id,
        .agent_name = e->x->agent_name.len > 0 ? e->x->agent_name : e->x->agent_id,
        .instance_id = instance_of(e),
        .epoch = e->rec->epoch,
        .reason = record_cut(e, e->rec->text, 256),
        .pid = e->rec->pid,
        .capacity = e->rec->capacity,
        .version = e->x->version,
    };
    return MSG_ev_agent;
}

static enum msg_type put_system(struct encoding *e, union payload *p)
{
    p->system = (struct msg_ev_system){
        .version = record_cut(e, e->x->version, 32),
        .reason = record_cut(e, e->rec->text, 256),
        .pid = e->rec->pid,
        .plans_recovered = e->x->plans_recovered,
    };
    return MSG_ev_system;
}

static enum msg_type put_internal(struct encoding *e, union payload *p)
{
    p->step = (struct msg_rec_step){
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .instance_id = instance_of(e),
        .epoch = e->rec->epoch,
        .delay_ms = e->rec->delay_ms,
    };
    return MSG_rec_step;
}

static const struct {
    enum msg_type (*put)(struct encoding *e, union payload *p);
    bool about_step;
} PUTS[REC_COUNT] = {
    [REC_PLAN_GENERATED] = {put_generated, false},
    [REC_PLAN_STARTED] = {put_started, false},
    [REC_STEP_STARTED] = {put_step_started, true},
    [REC_HANDOFF] = {put_handoff, true},
    [REC_STEP_PROGRESS] = {put_progress, true},
    [REC_STEP_RETRY] = {put_retry, true},
    [REC_STEP_WAITING] = {put_waiting, true},
    [REC_REVIEW_DECIDED] = {put_decided, true},
    [REC_STEP_COMPLETED] = {put_step_completed, true},
    [REC_PLAN_CANCELLING] = {put_cancelling, false},
    [REC_PLAN_COMPLETED] = {put_completed, false},
    [REC_AGENT_REGISTERED] = {put_agent, false},
    [REC_AGENT_UP] = {put_agent, false},
    [REC_AGENT_DOWN] = {put_agent, false},
    [REC_AGENT_DRAINING] = {put_agent, false},
    [REC_AGENT_RESTARTED] = {put_agent, false},
    [REC_SUPERVISOR_STARTED] = {put_system, false},
    [REC_SUPERVISOR_STOPPING] = {put_system, false},
    [REC_STEP_ASSIGNED] = {put_internal, true},
    [REC_STEP_UNKNOWN] = {put_internal, true},
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
