/* After a failed attempt: another attempt, a fallback, or the step's on_failure. This is decided
 * before any record of the step's end (C18). */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

/* Random numbers for the jitter: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom
 * number generators, 2014). */
static uint32_t next_random(struct core *c)
{
    c->random += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = c->random;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ z >> 31) >> 32);
}

/* The agent asks for a longer pause than the plan grants: no attempt of this agent follows. */
static bool asks_too_much(const struct core_run *entry, const struct failure *f)
{
    return f->retry_after_ms > entry->plan->max_pause_ms && !MUTANT(PAUSE_UNLIMITED);
}

/* A pause beyond the limit of the step or the plan would end in a timeout. Then the failure is
 * final at once, with its own error. */
static bool outlasts(const struct core *c, const struct core_run *entry, uint32_t step, msec pause)
{
    const msec limit = entry->run->steps[step].limit;
    const msec deadline = core_entry_deadline(c, entry);
    return pause > 0 && msec_add(c->now, pause) >= (limit < deadline ? limit : deadline);
}

static void retry(struct core *c, struct core_run *entry, uint32_t step, const struct failure *f)
{
    const struct run_step *state = &entry->run->steps[step];
    const struct backoff *backoff = &entry->plan->steps[step].rules->policy.backoff;
    const struct holder who = core_holder(c, entry, step);
    const msec ours = backoff_delay(backoff, state->attempt, next_random(c));
    const bool asked = f->retry_after_ms > ours;
    core_unlink(c, entry, step);
    core_record(
        c, entry,
        (struct record){REC_INIT(STEP_RETRY, retry, .error_class = f->error_class,
                                 .delay_ms = asked ? f->retry_after_ms : ours, .asked = asked),
                        .step = step, .attempt = state->attempt, .agent = state->agent,
                        .usage = f->usage, .text = f->text});
    core_set_due(c, entry, step, state->deadline);
    if (f->cancel) {
        core_emit_cancel(c, entry, step, &who, f->text);
    }
}

static bool may_retry(const struct core *c, const struct core_run *entry, uint32_t step,
                      const struct failure *f)
{
    const struct run_step *state = &entry->run->steps[step];
    const struct step_policy *policy = &entry->plan->steps[step].rules->policy;
    const uint32_t counted = (uint32_t)state->attempt - state->granted;
    const bool named =
        policy->on_failure == ON_FAILURE_RETRY ||
        ((policy->retry_on & 1u << f->error_class) != 0 && !MUTANT(RETRY_ON_IGNORED));
    const bool any = named && policy->effects != EFFECTS_UNSAFE;
    return (f->retryable || any) && (policy->no_retry & 1u << f->error_class) == 0 &&
           state->limit > c->now && !asks_too_much(entry, f) &&
           !outlasts(c, entry, step, f->retry_after_ms) &&
           counted <= policy->max_retries + (MUTANT(ONE_RETRY_MORE) ? 1 : 0) &&
           state->attempt < LIMIT_ATTEMPTS;
}

void core_attempt_failed(struct core *c, struct core_run *entry, uint32_t step,
                         const struct failure *f)
{
    struct failure refused;
    if (entry->run->cancelling) {
        core_stopped(c, entry, step, STOP_ACKNOWLEDGED, f);
    } else if (asks_too_much(entry, f)) {
        refused = *f;
        refused.text = core_text_pause(c, f->retry_after_ms, entry->plan->max_pause_ms, f->text);
        core_give_up(c, entry, step, &refused);
    } else if (!may_retry(c, entry, step, f)) {
        core_give_up(c, entry, step, f);
    } else if (f->may_have_run &&
               entry->plan->steps[step].rules->policy.effects == EFFECTS_UNSAFE &&
               !MUTANT(UNSAFE_AGAIN)) {
        core_step_waits(c, entry, step, REVIEW_UNKNOWN_OUTCOME, f, (struct doc){0});
    } else {
        retry(c, entry, step, f);
    }
}

/* ---- fallbacks (M042, M043, C17) ---- */

/* The first alternative agent that has not had the step. */
static uint32_t alternative(const struct core_run *entry, uint32_t step)
{
    const struct plan *plan = entry->plan;
    const struct plan_step *about = &plan->steps[step];
    const struct run_step *state = &entry->run->steps[step];
    const uint64_t had = run_visit(plan, state->visited, state->agent);
    for (uint32_t i = 0; i < about->alternatives_n; i++) {
        const uint32_t at = plan->alternatives[about->alternatives_at + i];
        if ((had & UINT64_C(1) << at) == 0) {
            return plan->agents.at[at];
        }
    }
    return AGENT_NONE;
}

/* The n-th fallback of a run waits 2^n seconds, at most 30: the count is raised first (M042). */
static msec rate_limited_wait(const struct run *run)
{
    const uint32_t used = run->fallbacks + (MUTANT(WAIT_TOO_SHORT) ? 0 : 1);
    return used < 5 ? (msec)1000 << used : 30000;
}

/* Chooses the fallback; false when there is none. */
static bool choose_fallback(const struct core *c, const struct core_run *entry, uint32_t step,
                            const struct failure *f, struct record *rec)
{
    const struct run_step *state = &entry->run->steps[step];
    const bool waited = (state->did & STEP_DID_WAIT) != 0;
    struct rec_fallback *instead = REC(rec, fallback);
    rec->agent = state->agent;
    if (f->error_class == CLASS_RATE_LIMITED || f->error_class == CLASS_SERVICE_UNAVAILABLE) {
        const msec ours =
            f->error_class == CLASS_RATE_LIMITED ? rate_limited_wait(entry->run) : 2000;
        const bool asked = f->retry_after_ms > ours;
        const msec wait = asked ? f->retry_after_ms : ours;
        if (!waited && state->attempt > 0 && !asks_too_much(entry, f) &&
            !outlasts(c, entry, step, wait)) {
            instead->action = FALLBACK_WAIT;
            instead->delay_ms = wait;
            instead->asked = asked;
            return true;
        }
    }
    if (f->error_class == CLASS_RESOURCE_NOT_FOUND) {
        instead->action = FALLBACK_SEARCH;
        rec->agent = entry->plan->search_agent;
        return entry->plan->search_with.len > 0 && state->attempt > 0 &&
               (state->did & STEP_DID_SEARCH) == 0 && run_may_search(entry->run);
    }
    if (f->error_class != CLASS_SERVICE_UNAVAILABLE && f->error_class != CLASS_AGENT_UNAVAILABLE &&
        f->error_class != CLASS_AGENT_CRASHED && f->error_class != CLASS_TOOL_NOT_FOUND) {
        return false;
    }
    instead->action = FALLBACK_AGENT;
    rec->agent = alternative(entry, step);
    return rec->agent != AGENT_NONE;
}

static bool fall_back(struct core *c, struct core_run *entry, uint32_t step,
                      const struct failure *f)
{
    const struct run_step *state = &entry->run->steps[step];
    const bool unsafe = entry->plan->steps[step].rules->policy.effects == EFFECTS_UNSAFE;
    struct record rec = {REC_INIT(FALLBACK_USED, fallback, .error_class = f->error_class),
                         .step = step, .usage = f->usage, .text = f->text};
    if (f->reason != REASON_NONE || entry->plan->steps[step].type == STEP_TYPE_PLAN ||
        (entry->run->fallbacks >= entry->plan->max_fallbacks && !MUTANT(FALLBACKS_UNLIMITED)) ||
        state->attempt >= LIMIT_ATTEMPTS || state->limit <= c->now ||
        (unsafe && state->attempt > 0 && !MUTANT(UNSAFE_FALLBACK)) ||
        state->status == STEP_WAITING || !choose_fallback(c, entry, step, f, &rec)) {
        return false;
    }
    const struct holder who = core_holder(c, entry, step);
    const uint32_t from = state->agent;
    core_begin_without_attempt(c, entry, step);
    core_unlink(c, entry, step);
    rec.attempt = state->attempt;
    core_record(c, entry, rec);
    if (rec.agent != from &&
        state->attempt > 0) { /* otherwise HANDOFF_PLAN_STEP follows with the first attempt */
        core_record(c, entry,
                    (struct record){
                        REC_INIT(HANDOFF, handoff, .kind = HANDOFF_FALLBACK, .from_agent = from),
                        .step = step, .attempt = state->attempt, .agent = rec.agent});
    }
    if (f->cancel) {
        core_emit_cancel(c, entry, step, &who, f->text);
    }
    if (REC(&rec, fallback)->delay_ms > 0) {
        core_set_due(c, entry, step, state->deadline);
    } else {
        core_continue(c, entry, step);
    }
    return true;
}

/* ---- on_failure ---- */

/* A compensation that failed for good does not keep those before it from being undone. */
static bool is_undo(const struct core_run *entry)
{
    return entry->plan->child.kind == CHILD_OF_UNDO;
}

static void fail_step(struct core *c, struct core_run *entry, uint32_t step,
                      const struct failure *f, enum on_failure policy)
{
    const struct holder who = core_holder(c, entry, step);
    struct record rec = {REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_FAILED,
                                  .reason = f->reason, .error_class = f->error_class),
                         .step = step, .usage = f->usage, .text = f->text};
    if (policy == ON_FAILURE_SKIP) {
        REC(&rec, step_completed)->status = STEP_SKIPPED;
        REC(&rec, step_completed)->reason =
            f->reason == REASON_NONE ? REASON_ON_FAILURE_SKIP : f->reason;
    }
    if (f->cancel) {
        REC(&rec, step_completed)->stop = STOP_FENCED;
    }
    const bool goes_on = is_undo(entry) && !MUTANT(UNDO_STOPS);
    if (policy == ON_FAILURE_SKIP || policy == ON_FAILURE_CONTINUE || goes_on) {
        core_end_step(c, entry, rec);
        if (f->cancel) {
            core_emit_cancel(c, entry, step, &who, rec.text);
        }
        core_settle(c, entry, step);
        core_advance(c, entry);
        return;
    }
    c->quiet = true;
    core_end_step(c, entry, rec);
    if (f->cancel) {
        core_emit_cancel(c, entry, step, &who, rec.text);
    }
    core_step_fails_plan(c, entry, step, PLAN_FAILURE_STEP, rec.text);
}

void core_fail_by(struct core *c, struct core_run *entry, uint32_t step, const struct failure *f,
                  enum on_failure policy)
{
    struct failure known = *f;
    if (known.text.len == 0) {
        known.text = STR_LIT("Unknown error after retries");
    }
    switch (policy) {
    case ON_FAILURE_REPLAN:
        core_replan(c, entry, step, &known);
        return;
    case ON_FAILURE_ASK:
        /* After a rejection no person is asked again. */
        if (known.reason == REASON_NONE || known.reason == REASON_GATE_FAILED) {
            core_begin_without_attempt(c, entry, step);
            core_step_waits(c, entry, step, REVIEW_FAILURE, &known, (struct doc){0});
            return;
        }
        break;
    case ON_FAILURE_ABORT:
    case ON_FAILURE_SKIP:
    case ON_FAILURE_CONTINUE:
    case ON_FAILURE_RETRY:
    case ON_FAILURE_COUNT:
        break;
    }
    fail_step(c, entry, step, &known, policy);
}

/* A search that fails leaves the step's own error (M042). */
static struct failure own_failure(struct core *c, const struct core_run *entry, uint32_t step,
                                  const struct failure *f)
{
    const struct run_step *state = &entry->run->steps[step];
    struct failure own = *f;
    if (state->phase != PHASE_SEARCH || f->reason != REASON_NONE ||
        f->error_class == CLASS_VERIFICATION_FAILED || MUTANT(SEARCH_ERROR_TAKEN)) {
        return own;
    }
    own.error_class = CLASS_RESOURCE_NOT_FOUND;
    const struct str text = run_own_text(entry->run, step);
    if (text.len > 0) {
        own.text = core_text_pair(c, "", text);
    }
    return own;
}

void core_give_up(struct core *c, struct core_run *entry, uint32_t step, const struct failure *f)
{
    if (entry->run->cancelling) {
        core_stopped(c, entry, step, STOP_NONE, f);
    } else if (!fall_back(c, entry, step, f)) {
        const struct failure own = own_failure(c, entry, step, f);
        core_fail_by(c, entry, step, &own, entry->plan->steps[step].rules->policy.on_failure);
    }
}

void core_verification_failed(struct core *c, struct core_run *entry, uint32_t step,
                              const struct failure *f)
{
    const struct step_policy *policy = &entry->plan->steps[step].rules->policy;
    struct failure verified = *f;
    verified.error_class = CLASS_VERIFICATION_FAILED;
    /* The attempt was carried out, so an unsafe step is not repeated. */
    verified.retryable = f->retryable && policy->effects != EFFECTS_UNSAFE;
    core_record(c, entry,
                (struct record){.type = REC_VERIFICATION_FAILED,
                                .step = step,
                                .attempt = entry->run->steps[step].attempt,
                                .agent = entry->run->steps[step].agent,
                                .usage = f->usage,
                                .text = f->text});
    verified.usage = (struct usage){0};
    if (entry->run->cancelling || policy->on_verify == ON_FAILURE_RETRY) {
        core_attempt_failed(c, entry, step, &verified);
    } else {
        core_fail_by(c, entry, step, &verified, policy->on_verify);
    }
}
