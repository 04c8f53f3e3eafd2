/* The rules of the order of records, by a second opinion that is kept apart from the run. */
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/explore/world.h"
#include "tests/unit/core/run/flat_record.h"

static void bump(uint8_t *counter, bool when)
{
    if (when) {
        ++*counter;
    }
}

static const struct plan_step *about_of(const struct world *w, const struct record *rec)
{
    return &world_plan(w)->steps[rec->step];
}

static bool is_unsafe(const struct world *w, const struct record *rec)
{
    return about_of(w, rec)->rules->policy.effects == EFFECTS_UNSAFE;
}

/* Nothing may begin. */
static bool on_hold(const struct world *w)
{
    const uint32_t told = 1u << PAUSE_REQUESTED | 1u << PAUSE_SIGNOFF;
    return (w->at.paused & told) != 0 || w->at.replanning != 0 || w->at.cancelling ||
           w->at.job.kind != JOB_NONE;
}

/* Whoever had the last attempt in a chain; else whose result came last among those that the step
 * needs. */
static uint8_t hands_over(const struct world *w, uint32_t step)
{
    const struct plan *plan = world_plan(w);
    uint8_t from = WORLD_SUPERVISOR;
    uint8_t nth = 0;
    if (plan->chain) {
        return w->at.last_agent;
    }
    for (uint32_t i = 0; i < run_deps(plan, step); i++) {
        const struct told *dep = &w->at.told[run_dep(plan, step, i)];
        if (dep->status == STEP_COMPLETED && dep->nth > nth) {
            nth = dep->nth;
            from = dep->agent == WORLD_NOBODY ? WORLD_SUPERVISOR : dep->agent;
        }
    }
    return from;
}

static bool gets_attempt(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const struct plan_step *about = about_of(w, rec);
    const uint32_t gate_deps = run_deps(world_plan(w), rec->step);
    RULE(about->type != STEP_TYPE_WAIT, "a step that waits was given to an agent");
    RULE(about->type != STEP_TYPE_REVIEW, "a step for people was given to an agent");
    RULE(!about->superseded, "a superseded step goes on");
    RULE(about->rules->gate_with.len == 0 || gate_deps == 0 || told->gate,
         "begun without its gate");
    RULE(!about->rules->policy.requires_approval || told->approved, "begun without its approval");
    RULE(!told->again, "an approval for another agent");
    if (rec->attempt > told->attempts) {
        RULE(rec->attempt == told->attempts + 1u, "attempts are not numbered one by one");
        RULE(told->out == 0, "the next attempt before the end of the last");
        told->attempts++;
        RULE(told->attempts <= 1 + about->rules->policy.max_retries + told->granted,
             "more attempts than retries and permissions");
        told->from = rec->attempt == 1 ? hands_over(w, rec->step) : told->from;
    }
    RULE(rec->attempt == told->attempts, "an attempt of the past");
    RULE(told->agent == WORLD_NOBODY || told->agent == rec->agent, "given to another agent");
    told->agent = (uint8_t)rec->agent;
    told->visited |= (uint8_t)(1u << rec->agent);
    told->body = REC(rec, assigned)->instance.b[15];
    told->out = 1;
    told->adopted = w->doing.kind == WORLD_STATE && w->doing.step == rec->step;
    told->ran = told->adopted;
    told->asked = 0;
    told->clock = told->adopted ? told->clock : w->at.now;
    told->process = w->at.bodies[told->body - 1].process;
    told->sent = told->sign = w->at.now;
    told->begun = told->begun == 0 ? w->at.now + 1 : told->begun;
    w->at.last_agent = told->agent;
    return true;
}

/* Why a step that is open can never begin, from the ends of what comes before it. */
static enum step_reason never(const struct world *w, uint32_t step)
{
    const struct plan *plan = world_plan(w);
    const enum run_if rule = plan->steps[step].rules->policy.run_if;
    const bool loose = plan->chain || plan->steps[step].after_any_end;
    const uint32_t n = run_deps(plan, step);
    uint32_t open = 0;
    uint32_t bad = 0;
    uint32_t bypassed = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct run_step *d = &w->shadow->steps[run_dep(plan, step, i)];
        open += step_is_final(d->status) ? 0 : 1;
        bad += d->status == STEP_FAILED || d->status == STEP_CANCELLED ||
               (d->status == STEP_SKIPPED && d->reason == REASON_DEPENDENCY_FAILED);
        bypassed += d->status == STEP_SKIPPED && d->reason == REASON_CONDITION;
    }
    if (rule == RUN_IF_FAILURE) {
        return n > 0 && open == 0 && bad == 0 ? REASON_CONDITION : REASON_NONE;
    }
    if (rule == RUN_IF_ALWAYS || loose) {
        return REASON_NONE;
    }
    return bad > 0                  ? REASON_DEPENDENCY_FAILED
           : n > 0 && bypassed == n ? REASON_CONDITION
                                    : REASON_NONE;
}

static bool take_started(struct world *w, const struct record *rec, const char **ret_why)
{
    const struct plan *plan = world_plan(w);
    struct told *told = &w->at.told[rec->step];
    RULE(told->started++ == 0, "a step started twice");
    RULE(!on_hold(w), "a step started while the plan is on hold");
    for (uint32_t i = 0; i < run_deps(plan, rec->step); i++) {
        const uint32_t dep = run_dep(plan, rec->step, i);
        RULE(w->at.told[dep].completed == 1, "started before a dependency was over");
    }
    RULE(never(w, rec->step) == REASON_NONE, "started although it never may");
    RULE(about_of(w, rec)->rules->when.ptr == NULL || told->judged != 0,
         "started before the verdict about its condition");
    return uuid_is_nil(REC(rec, assigned)->instance) || gets_attempt(w, rec, ret_why);
}

static bool take_assigned(struct world *w, const struct record *rec, const char **ret_why)
{
    const struct told *told = &w->at.told[rec->step];
    RULE(!on_hold(w) || w->doing.kind == WORLD_STATE, "an attempt while the plan is on hold");
    const bool search = told->searched && told->agent == world_plan(w)->search_agent;
    RULE((REC(rec, assigned)->phase == PHASE_SEARCH) == search,
         "a search that is no fallback, or none that is");
    return gets_attempt(w, rec, ret_why);
}

/* An approval is for one agent. */
static void change_agent(struct told *told, uint32_t agent)
{
    if (told->approved && told->agent != agent) {
        told->approved = 0;
        told->again = 1;
    }
    told->agent = (uint8_t)agent;
    told->visited |= (uint8_t)(1u << agent);
}

static bool take_handoff(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const struct plan *plan = world_plan(w);
    const bool asked = w->doing.kind == WORLD_RESULT && w->doing.step == rec->step &&
                       w->doing.variant >= ANSWER_HAND_X;
    w->seen->handoffs[REC(rec, handoff)->kind]++;
    switch (REC(rec, handoff)->kind) {
    case HANDOFF_PLAN_STEP:
        RULE(told->handed++ == 0, "handed over twice");
        RULE(told->executions == 0 || w->at.left.unsent < w->scenario->left.unsent,
             "handed over after it was sent");
        RULE(rec->agent == told->agent, "handed over to who does not have it");
        RULE(w->at.plan != 0 || (uint8_t)REC(rec, handoff)->from_agent == told->from,
             "handed over by another");
        break;
    case HANDOFF_AGENT:
        RULE(asked, "nobody asked for the handoff");
        RULE(plan_agent_find(plan, rec->agent) != UINT32_MAX, "handed to who was not granted");
        RULE((told->visited & 1u << rec->agent) == 0, "handed to who has had it");
        RULE(told->hops < plan->max_handoffs, "handed over too often");
        told->hops++;
        told->granted++;
        told->allowed++;
        change_agent(told, rec->agent);
        told->out = 0;
        break;
    case HANDOFF_FALLBACK:
        RULE(rec->agent == told->agent, "a fallback to who does not have it");
        break;
    case HANDOFF_BACK:
        RULE(plan->handback && told->completed && told->hops > 0, "nothing to hand back");
        w->at.last_agent = (uint8_t)rec->agent;
        break;
    case HANDOFF_KIND_COUNT:
        RULE(false, "no kind of handoff");
    }
    return true;
}

bool world_told_to_stop(const struct world *w, uint32_t step)
{
    const struct told *told = &w->at.told[step];
    const bool there = told->body > 0 && w->at.bodies[told->body - 1].epoch != 0;
    bool said = !told->out || !there || w->shadow->steps[step].status != STEP_IN_PROGRESS;
    for (uint32_t i = 0; i < w->out.n; i++) {
        said |= (w->out.at[i].type == CMD_CANCEL_STEP || w->out.at[i].type == CMD_CHILD_STOP) &&
                w->out.at[i].step == step;
    }
    return said;
}

/* Whether the time of an attempt that is said to be over is. */
static bool time_is_over(const struct world *w, const struct record *rec)
{
    const struct told *told = &w->at.told[rec->step];
    const struct step_policy *policy = &about_of(w, rec)->rules->policy;
    const msec sign = told->sign > told->sent ? told->sign : told->sent;
    const msec now = w->at.now;
    const bool heard = !told->adopted || told->asked || w->doing.kind == WORLD_STATE ||
                       !w->at.bodies[told->body - 1].control;
    const bool limit =
        policy->limit_ms > 0 && told->begun > 0 && now >= told->begun - 1 + policy->limit_ms;
    const enum step_status status = w->shadow->steps[rec->step].status;
    if (flat_record(rec).error_class != CLASS_TIMEOUT || status == STEP_WAITING ||
        status == STEP_CHECKING) {
        return true; /* or it is the class of a failure of before */
    }
    if (status == STEP_SLEEPING) {
        const struct plan_wait *wait = about_of(w, rec)->wait;
        return wait->what == WAIT_FOR_SIGNAL && wait->ms > 0 && now >= told->sent + wait->ms;
    }
    const bool child =
        told->child != 0 && policy->timeout_ms > 0 && now >= told->clock + policy->timeout_ms;
    return (heard || !told->out) &&
           (limit || child ||
            (told->out ? (policy->timeout_ms > 0 && now >= told->clock + policy->timeout_ms) ||
                             (policy->idle_ms > 0 && now >= sign + policy->idle_ms)
                       : policy->queue_timeout_ms > 0));
}

static bool take_retry(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const struct step_policy *policy = &about_of(w, rec)->rules->policy;
    const bool again = (w->doing.kind == WORLD_RESULT || w->doing.kind == WORLD_STRAY) &&
                       w->doing.variant == ANSWER_AGAIN && w->doing.step == rec->step;
    RULE(rec->attempt == told->attempts, "a retry of another attempt");
    RULE(policy->limit_ms == 0 || told->begun == 0 ||
             w->at.now < told->begun - 1 + policy->limit_ms,
         "a retry after the step's time");
    RULE(w->doing.kind != WORLD_TICK || world_told_to_stop(w, rec->step),
         "not told that its time is over");
    RULE((policy->no_retry & 1u << REC(rec, retry)->error_class) == 0,
         "a retry of what is never retried");
    bump(&told->allowed, again);
    told->out = 0;
    return true;
}

static bool take_waiting(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const bool first =
        REC(rec, waiting)->review == REVIEW_BEFORE || REC(rec, waiting)->review == REVIEW_STEP;
    RULE(!first || told->executions == 0 || told->again, "asks before the beginning after it");
    RULE(REC(rec, waiting)->review != REVIEW_BEFORE || !told->approved,
         "asks for what was approved");
    const bool unknown = REC(rec, waiting)->review == REVIEW_UNKNOWN_OUTCOME;
    RULE(!unknown || is_unsafe(w, rec), "asks about a safe step");
    RULE(!unknown || told->attempts > 0 || told->doubt, "asks about what was never tried");
    told->doubt = unknown ? 1 : told->doubt;
    w->seen->reviews[REC(rec, waiting)->review]++;
    const msec limit = about_of(w, rec)->rules->policy.limit_ms;
    const bool left = told->begun > 0 && w->at.now < told->begun - 1 + limit;
    told->out = 0;
    told->sent = w->at.now;
    told->used = left ? w->at.now - (told->begun - 1) : limit; /* the limit stands still */
    told->begun = 0;
    return true;
}

static bool take_decided(struct world *w, const struct record *rec, const char **ret_why)
{
    const bool person = w->doing.kind == WORLD_DECIDE || w->doing.kind == WORLD_SIGNOFF ||
                        w->doing.kind == WORLD_BRING;
    RULE(person || REC(rec, decided)->decision == DECISION_REJECT, "decided without a person");
    RULE(!person || w->doing.variant == REC(rec, decided)->decision, "decided otherwise");
    RULE(!person || w->doing.kind == WORLD_BRING || w->doing.attempt == REC(rec, decided)->serial,
         "decided about another review");
    w->seen->decisions[REC(rec, decided)->decision]++;
    if (rec->step == STEP_NONE) {
        const bool planning = (w->at.paused & 1u << PAUSE_PLANNING) != 0;
        RULE(REC(rec, decided)->review == (planning ? REVIEW_PLANNING : REVIEW_PLAN),
             "decided about another");
        RULE(planning || w->doing.kind != WORLD_BRING, "a plan in place of a sign-off");
        w->seen->reviews[REC(rec, decided)->review]++;
        w->at.paused &= (uint8_t) ~(1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING);
        w->at.signed_off = !planning && REC(rec, decided)->decision == DECISION_APPROVE;
        w->at.job.may_plan = planning && REC(rec, decided)->decision == DECISION_APPROVE;
        return true;
    }
    struct told *told = &w->at.told[rec->step];
    RULE(!person || w->doing.step == rec->step, "decided about another step");
    if (REC(rec, decided)->decision == DECISION_APPROVE) {
        const bool left = told->used < world_plan(w)->steps[rec->step].rules->policy.limit_ms;
        bump(&told->granted, told->attempts > 0);
        bump(&told->allowed, told->attempts > 0);
        told->approvals++;
        told->doubt = 0;
        told->begun = left ? w->at.now + 1 - told->used : 0;
        const enum review_kind review = REC(rec, decided)->review;
        if (review == REVIEW_BEFORE || review == REVIEW_UNKNOWN_OUTCOME ||
            (review != REVIEW_INPUT && told->attempts > 0)) {
            told->approved = 1;
            told->again = 0;
        }
    }
    return true;
}

static bool take_gate(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const bool answer =
        w->doing.kind == WORLD_RESULT && w->doing.phase == PHASE_GATE && w->doing.step == rec->step;
    if (rec->type == REC_GATE_STARTED) {
        RULE(about_of(w, rec)->rules->gate_with.len > 0 && !told->gate,
             "a gate that nobody asked for");
        RULE(told->executions == 0, "a gate behind the step");
    } else if (rec->type == REC_GATE_PASSED) {
        RULE(answer && w->doing.variant == ANSWER_OK, "a gate passed by itself");
        told->gate = 1;
    } else if (rec->type == REC_GATE_FAILED) {
        RULE(answer && w->doing.variant == ANSWER_NO, "a gate failed by itself");
        told->refused = 1;
    } else {
        RULE(!answer || w->doing.variant == ANSWER_FAIL, "an answer taken for an error");
        told->gate = !about_of(w, rec)->rules->policy.gate_closed;
        told->refused = !told->gate;
    }
    return true;
}

static bool take_fallback(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const struct plan *plan = world_plan(w);
    const struct plan_step *about = about_of(w, rec);
    bool listed = false;
    RULE(w->at.fallbacks++ < plan->max_fallbacks, "more fallbacks than the plan may use");
    RULE(!is_unsafe(w, rec) || told->attempts == 0, "an unsafe step has a fallback");
    for (uint32_t i = 0; i < about->alternatives_n; i++) {
        listed |= plan->agents.at[plan->alternatives[about->alternatives_at + i]] == rec->agent;
    }
    switch (REC(rec, fallback)->action) {
    case FALLBACK_WAIT:
        RULE(told->waited++ == 0, "waited twice");
        break;
    case FALLBACK_SEARCH:
        RULE(told->searched++ == 0, "searched twice");
        RULE(rec->agent == plan->search_agent, "searched by another");
        break;
    case FALLBACK_AGENT:
        RULE(listed && (told->visited & 1u << rec->agent) == 0, "no alternative agent");
        break;
    case FALLBACK_ACTION_COUNT:
        RULE(false, "no fallback");
    }
    w->seen->fallbacks[REC(rec, fallback)->action]++;
    bump(&told->granted, told->attempts > 0);
    change_agent(told, rec->agent);
    told->out = 0;
    return true;
}

/* New work under an old name counts the name's replans. */
static uint32_t replans_of_name(const struct world *w, uint32_t step)
{
    const struct plan *plan = world_plan(w);
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        n += str_eq(plan->steps[i].step_id, plan->steps[step].step_id) ? w->at.told[i].replans : 0;
    }
    return n;
}

/* Its work may have been done: the failure does not say. */
static bool is_unanswered(const struct world *w, const struct record *rec)
{
    const enum err_class why = REC(rec, replan_started)->error_class;
    return is_unsafe(w, rec) && w->at.told[rec->step].attempts > 0 &&
           (why == CLASS_TIMEOUT || why == CLASS_REPLY_LOST || why == CLASS_AGENT_CRASHED ||
            why == CLASS_VERIFICATION_FAILED);
}

static bool take_replan(struct world *w, const struct record *rec, const char **ret_why)
{
    const struct replan_policy *policy = &world_plan(w)->replan;
    struct situation *at = &w->at;
    const uint8_t step = (uint8_t)(rec->step + 1);
    if (rec->type == REC_REPLAN_STARTED) {
        RULE(at->replanning == 0, "two replans at once");
        RULE(!at->cancelling, "replanned while it is cancelled");
        RULE(at->replans++ < policy->max_total, "more replans than the plan may have");
        RULE(replans_of_name(w, rec->step) < policy->max_step,
             "more replans than the step may have");
        at->told[rec->step].replans++;
        at->told[rec->step].out = 0;
        at->told[rec->step].doubt |= is_unanswered(w, rec) ? 1 : 0;
        at->replanning = step;
        at->replan_at = at->now + REC(rec, replan_started)->delay_ms;
        return true;
    }
    const bool answer = w->doing.kind == WORLD_RESULT && w->doing.phase == PHASE_REPLAN &&
                        w->doing.step == rec->step;
    const bool unasked = is_unsafe(w, rec) && at->told[rec->step].doubt &&
                         !about_of(w, rec)->rules->policy.requires_approval;
    const bool good = answer && !unasked &&
                      (w->doing.variant == ANSWER_OK || w->doing.variant == ANSWER_PLAN_KEEP);
    RULE(at->replanning == step || at->replanned == step, "a replan ended that had not begun");
    RULE(REC(rec, revision)->ok == good, "a replan came to something else than the replanner said");
    at->replanning = 0;
    if (good) {
        RULE((at->paused & 1u << PAUSE_SIGNOFF) == 0, "a replan during a sign-off");
        world_changed(w);
    }
    return true;
}

/* Whether the result that came, or somebody's word, may complete the step, or have it verified. */
static bool completed_rightly(struct world *w, const struct record *rec, const char **ret_why)
{
    const struct world_event *ev = &w->doing;
    const struct run_step *state = &w->shadow->steps[rec->step];
    struct told *told = &w->at.told[rec->step];
    const bool over_lane = ev->kind == WORLD_RESULT || ev->kind == WORLD_RESULT_OLD;
    const bool word = over_lane || ev->kind == WORLD_STRAY;
    if (rec->type == REC_STEP_COMPLETED && REC(rec, step_completed)->reason == REASON_REUSED) {
        RULE(ev->kind == WORLD_KIND_COUNT && told->started == 0, "taken over while it runs");
        return true;
    }
    if (state->status == STEP_WAITING && state->review == REVIEW_STEP) {
        RULE(ev->kind == WORLD_DECIDE && ev->variant == DECISION_APPROVE, "completed by nobody");
        return true;
    }
    if (state->status == STEP_SLEEPING) {
        return world_slept_rightly(w, rec, ret_why);
    }
    if (state->status == STEP_CHECKING) {
        const bool yes = ev->kind == WORLD_RESULT && ev->phase == PHASE_VERIFY &&
                         ev->variant == ANSWER_OK && ev->step == rec->step;
        const bool no = ev->kind == WORLD_RESULT && ev->variant == ANSWER_NO;
        RULE(rec->type == REC_STEP_COMPLETED && state->phase == PHASE_VERIFY,
             "a result while something is asked about it");
        RULE(yes || (about_of(w, rec)->rules->policy.verify_open && !no),
             "completed without its verifier");
        return true;
    }
    if (about_of(w, rec)->type == STEP_TYPE_PLAN) {
        return world_child_completes(w, rec, ret_why);
    }
    RULE(word && ev->variant == ANSWER_OK && ev->step == rec->step && ev->phase <= PHASE_SEARCH,
         "completed without a result");
    RULE(ev->attempt <= told->attempts && ev->attempt >= told->finished,
         "the result of an attempt that is older than one that finished");
    const bool current = ev->attempt == told->attempts && told->out;
    RULE(!current || told->body == ev->body + 1, "completed by who does not have the attempt");
    RULE(current || ev->kind == WORLD_RESULT, "a late result over no lane");
    RULE(current || !w->at.cancelling, "a late result while the plan is called off");
    RULE(rec->type == REC_STEP_CHECKING || about_of(w, rec)->rules->verify_with.len == 0 ||
             w->at.cancelling,
         "completed without being verified");
    RULE(ev->kind != WORLD_RESULT_OLD || w->about.epoch == state->epoch,
         "an incarnation answers for another");
    RULE(current || state->status == STEP_BACKOFF || state->status == STEP_IN_PROGRESS ||
             state->status == STEP_UNKNOWN ||
             (state->status == STEP_WAITING &&
              (state->review == REVIEW_UNKNOWN_OUTCOME || state->review == REVIEW_FAILURE)),
         "a late result for a step that does not wait for one");
    told->finished = (uint8_t)ev->attempt;
    return true;
}

static bool take_checking(struct world *w, const struct record *rec, const char **ret_why)
{
    RULE(about_of(w, rec)->rules->verify_with.len > 0 && REC(rec, checking)->phase == PHASE_VERIFY,
         "verified unasked");
    if (!completed_rightly(w, rec, ret_why)) {
        return false;
    }
    w->at.told[rec->step].out = 0;
    return true;
}

/* What became of an attempt that was called off. */
static bool stopped_rightly(const struct world *w, const struct record *rec, const char **ret_why)
{
    const struct told *told = &w->at.told[rec->step];
    const bool spoke = w->doing.kind == WORLD_RESULT || w->doing.kind == WORLD_RESULT_OLD ||
                       w->doing.kind == WORLD_STRAY;
    bool kill = false;
    for (uint32_t i = 0; i < w->out.n; i++) {
        kill |= w->out.at[i].type == CMD_KILL;
    }
    RULE(REC(rec, step_completed)->stop != STOP_NONE || told->out == 0 || !w->at.cancelling,
         "called off without a word");
    RULE(REC(rec, step_completed)->stop != STOP_ACKNOWLEDGED ||
             ((spoke || world_child_ends(w, &w->doing)) && w->doing.step == rec->step),
         "nobody acknowledged the end");
    RULE(REC(rec, step_completed)->stop != STOP_KILLED || kill, "not killed");
    RULE(REC(rec, step_completed)->stop != STOP_GONE || w->doing.kind == WORLD_GONE, "not gone");
    RULE(REC(rec, step_completed)->stop != STOP_FENCED || world_told_to_stop(w, rec->step) ||
             w->at.cancelling,
         "fenced, but not told to stop");
    RULE(REC(rec, step_completed)->stop != STOP_FENCED || told->out || told->child != 0 ||
             w->shadow->steps[rec->step].status == STEP_CHECKING,
         "fenced what nobody has");
    return true;
}

/* Of an unsafe step whose last attempt has no answer; whoever ends it when an answer came has one.
 */
static bool doubted_rightly(const struct world *w, const struct record *rec, const char **ret_why)
{
    const struct told *told = &w->at.told[rec->step];
    const struct rec_step_completed *end = REC(rec, step_completed);
    const bool answer = w->doing.kind == WORLD_RESULT || w->doing.kind == WORLD_STRAY ||
                        w->doing.kind == WORLD_LOST || w->doing.kind == WORLD_BUSY ||
                        w->doing.kind == WORLD_STATE;
    const bool about = answer && w->doing.step == rec->step;
    RULE(!end->doubt || (is_unsafe(w, rec) && (told->attempts > 0 || told->doubt)),
         "may be done, though it was never tried");
    RULE(!end->doubt || end->status != STEP_COMPLETED, "completed, and may be done");
    RULE(end->doubt || !told->doubt || end->status == STEP_COMPLETED,
         "what may be done is forgotten");
    RULE(end->doubt || !told->out || about || !is_unsafe(w, rec) || end->status == STEP_COMPLETED,
         "an attempt without an answer is forgotten");
    return true;
}

static bool take_doubted(struct world *w, const struct record *rec, const char **ret_why)
{
    RULE((w->scenario->doubts & 1u << rec->step) != 0, "doubted by nobody");
    w->at.told[rec->step].doubt = 1;
    return true;
}

static bool take_completed(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const struct run_step *state = &w->shadow->steps[rec->step];
    const enum step_reason doom = never(w, rec->step);
    const bool doomed = doom != REASON_NONE;
    const bool person = w->doing.kind == WORLD_MODIFY || w->doing.kind == WORLD_DECIDE;
    RULE(REC(rec, step_completed)->status != STEP_COMPLETED || completed_rightly(w, rec, ret_why),
         *ret_why);
    const bool verdict = w->doing.kind == WORLD_CONDITION && w->doing.step == rec->step;
    RULE(REC(rec, step_completed)->reason != REASON_DEPENDENCY_FAILED ||
             doom == REASON_DEPENDENCY_FAILED,
         "skipped although it could begin");
    RULE(REC(rec, step_completed)->reason != REASON_CONDITION ||
             (state->status == STEP_PENDING && doom == REASON_CONDITION) ||
             (state->status == STEP_READY && verdict && w->doing.variant == CONDITION_FALSE &&
              w->doing.attempt == told->wanted && !on_hold(w)),
         "skipped by no condition");
    RULE(!verdict || w->doing.variant != CONDITION_FAILED || told->judged == 2,
         "a condition without a verdict did not fail its step");
    RULE((doomed && REC(rec, step_completed)->reason == doom) || !doomed ||
             state->status != STEP_PENDING || person || w->doing.kind == WORLD_REVISE ||
             REC(rec, step_completed)->reason == REASON_SUPERSEDED ||
             REC(rec, step_completed)->reason == REASON_REUSED,
         "doomed and not skipped");
    RULE(!w->at.cancelling || told->started, "a step that never began ends on its own");
    RULE(REC(rec, step_completed)->reason != REASON_USER_SKIP || person, "skipped by nobody");
    RULE(REC(rec, step_completed)->reason != REASON_REJECTED ||
             (person && w->doing.variant == DECISION_REJECT),
         "rejected by nobody");
    RULE(REC(rec, step_completed)->reason != REASON_CANCELLED || w->at.cancelling,
         "cancelled by nobody");
    RULE(REC(rec, step_completed)->status != STEP_FAILED || state->status != STEP_CHECKING ||
             state->phase != PHASE_GATE || told->refused ||
             REC(rec, step_completed)->error_class == CLASS_BUDGET_EXCEEDED,
         "failed before its gate had a word");
    if (!stopped_rightly(w, rec, ret_why) || !doubted_rightly(w, rec, ret_why)) {
        return false;
    }
    w->seen->reasons[REC(rec, step_completed)->reason]++;
    w->seen->stops[REC(rec, step_completed)->stop]++;
    if (w->at.replanning == rec->step + 1) { /* somebody ended it, or REPLAN_FINISHED follows */
        w->at.replanned = w->at.replanning;
        w->at.replanning = 0;
    }
    if (REC(rec, step_completed)->status == STEP_COMPLETED) {
        told->agent = (uint8_t)rec->agent;
        told->nth = ++w->at.done;
    }
    told->completed = 1;
    told->out = 0;
    return true;
}

/* The engine is asked once, and again after what made it forget. */
bool world_take_condition_asked(struct world *w, const struct core_cmd *cmd, const char **ret_why)
{
    const struct run_step *state = &w->shadow->steps[cmd->step];
    RULE(state->status == STEP_READY && state->judged == 0 && !on_hold(w),
         "asked about a condition that decides nothing");
    RULE(cmd->attempt == w->at.revision, "asked about another revision");
    w->at.told[cmd->step].wanted = (uint8_t)cmd->attempt;
    return true;
}

static bool take_condition(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const bool failed = REC(rec, condition)->failed;
    RULE(w->doing.kind == WORLD_CONDITION && w->doing.step == rec->step &&
             w->doing.attempt == told->wanted,
         "a verdict that nobody gave");
    RULE(w->doing.variant == (failed ? CONDITION_FAILED : CONDITION_TRUE), "another verdict");
    RULE(!on_hold(w), "a verdict while the plan is on hold");
    told->judged = failed ? 2 : 1;
    return true;
}

static bool take_verification(struct world *w, const struct record *rec, const char **ret_why)
{
    RULE(w->at.told[rec->step].attempts > 0, "verified before it ran");
    return true;
}

static bool take_progress(struct world *w, const struct record *rec, const char **ret_why)
{
    RULE(w->doing.kind == WORLD_PROGRESS && w->doing.step == rec->step, "progress by itself");
    w->at.told[rec->step].sign = w->at.now;
    return true;
}

static bool take_rejected(struct world *w, const struct record *rec, const char **ret_why)
{
    (void)rec;
    RULE(w->doing.kind == WORLD_RESULT || w->doing.kind == WORLD_RESULT_OLD ||
             w->doing.kind == WORLD_CHILD,
         "refused nothing");
    return true;
}

static bool take_unknown(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    RULE(told->attempts > 0 && told->attempts == rec->attempt, "unknown, but never sent");
    told->adopted = 0;
    told->out = 1;
    return true;
}

static taker *const takers[REC_COUNT] = {
    [REC_PLANNING_STARTED] = world_take_planning,
    [REC_PLANNING_RETRY] = world_take_planning,
    [REC_PLANNING_FAILED] = world_take_planning,
    [REC_SYNTHESIS_STARTED] = world_take_synthesis_started,
    [REC_TEXT_DELTA] = world_take_text,
    [REC_SYNTHESIS_RETRY] = world_take_synthesis_ended,
    [REC_SYNTHESIS_FINISHED] = world_take_synthesis_ended,
    [REC_COMPENSATION_STARTED] = world_take_undo,
    [REC_COMPENSATION_FINISHED] = world_take_undone,
    [REC_PLAN_GENERATED] = world_take_generated,
    [REC_PLAN_STARTED] = world_take_plan_started,
    [REC_STEP_STARTED] = take_started,
    [REC_HANDOFF] = take_handoff,
    [REC_STEP_PROGRESS] = take_progress,
    [REC_STEP_RETRY] = take_retry,
    [REC_STEP_WAITING] = take_waiting,
    [REC_REVIEW_DECIDED] = take_decided,
    [REC_REVIEW_VOIDED] = world_take_voided,
    [REC_VERIFICATION_FAILED] = take_verification,
    [REC_GATE_STARTED] = take_gate,
    [REC_GATE_PASSED] = take_gate,
    [REC_GATE_FAILED] = take_gate,
    [REC_GATE_ERROR] = take_gate,
    [REC_FALLBACK_USED] = take_fallback,
    [REC_REPLAN_STARTED] = take_replan,
    [REC_REPLAN_FINISHED] = take_replan,
    [REC_STEP_COMPLETED] = take_completed,
    [REC_PLAN_MODIFIED] = world_take_modified,
    [REC_PLAN_PAUSED] = world_take_paused,
    [REC_PLAN_RESUMED] = world_take_resumed,
    [REC_PLAN_CANCELLING] = world_take_cancelling,
    [REC_PLAN_COMPLETED] = world_take_plan_completed,
    [REC_STEP_ASSIGNED] = take_assigned,
    [REC_STEP_CHECKING] = take_checking,
    [REC_STEP_CONDITION] = take_condition,
    [REC_STEP_DOUBTED] = take_doubted,
    [REC_STEP_CHILD] = world_take_child,
    [REC_STEP_ROUND] = world_take_round,
    [REC_STEP_CALLS] = world_take_turn,
    [REC_STEP_TURN] = world_take_turn,
    [REC_WAIT_STARTED] = world_take_wait_started,
    [REC_SIGNAL_RECEIVED] = world_take_signal,
    [REC_RESULT_REJECTED] = take_rejected,
    [REC_STEP_UNKNOWN] = take_unknown,
};

/* ---- all ---- */

/* Each record about a step stands between its beginning and its end, with these exceptions. */
static bool in_its_time(const struct world *w, const struct record *rec, const char **ret_why)
{
    const struct told *told = &w->at.told[rec->step];
    const bool after = rec->type == REC_RESULT_REJECTED || rec->type == REC_REPLAN_FINISHED ||
                       (rec->type == REC_HANDOFF && REC(rec, handoff)->kind == HANDOFF_BACK);
    const bool before = rec->type == REC_STEP_STARTED || rec->type == REC_STEP_COMPLETED ||
                        rec->type == REC_RESULT_REJECTED || rec->type == REC_PLAN_MODIFIED ||
                        rec->type == REC_STEP_CONDITION || rec->type == REC_STEP_DOUBTED;
    RULE(told->completed == 0 || after, "a record about a step that has ended");
    RULE(told->started == 1 || before, "a record about a step that has not started");
    RULE(w->at.begun || rec->type == REC_STEP_DOUBTED || flat_record(rec).reason == REASON_REUSED,
         "a step before the plan has started");
    RULE(w->at.job.kind == JOB_NONE || rec->type == REC_RESULT_REJECTED,
         "a step while the answer is being written");
    return true;
}

bool world_take_record(struct world *w, const struct record *rec, const char **ret_why)
{
    const bool step = rec->step != STEP_NONE && rec->type != REC_PLAN_COMPLETED &&
                      rec->type != REC_SYNTHESIS_STARTED && rec->type != REC_COMPENSATION_STARTED;
    const bool ends = rec->type == REC_STEP_RETRY || rec->type == REC_STEP_COMPLETED ||
                      rec->type == REC_FALLBACK_USED || rec->type == REC_STEP_WAITING ||
                      rec->type == REC_REPLAN_STARTED;
    w->seen->records[rec->type]++;
    if (record_about(rec->type) != ABOUT_PLAN) {
        return true;
    }
    RULE(!w->at.over, "a record of the plan after its end");
    RULE(rec->run != 0 && takers[rec->type] != NULL, "a record of no plan");
    RULE(!step || rec->step < world_plan(w)->n_steps, "a record of no step");
    RULE(!step || !ends || time_is_over(w, rec), "a timeout before its time");
    const enum step_status from = step ? w->shadow->steps[rec->step].status : STEP_PENDING;
    const enum plan_life was = plan_life(w->shadow);
    if ((step && !in_its_time(w, rec, ret_why)) || !takers[rec->type](w, rec, ret_why) ||
        !world_replay(w, rec, ret_why)) {
        return false;
    }
    w->at.spent += rec->usage.input_tokens + rec->usage.output_tokens;
    w->usage += rec->usage.input_tokens + rec->usage.output_tokens;
    if (step) {
        const enum step_status to = w->shadow->steps[rec->step].status;
        w->at.told[rec->step].status = (uint8_t)to;
        w->seen->moves[from][to]++;
    }
    const enum plan_life is = plan_life(w->shadow);
    RULE(was == is || plan_life_may(was, is), "a plan does not live like that");
    w->seen->lives[was][is]++;
    return true;
}
