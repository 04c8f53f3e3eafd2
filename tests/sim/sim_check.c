/* The promises, checked from outside the core: from records, commands and what the agents really
 * did. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

struct sometimes sometimes;

void sim_mix(struct sim *s, uint64_t v)
{
    s->hash = (s->hash ^ v) * UINT64_C(1099511628211);
    s->hash ^= s->hash >> 31;
}

#define RULE(cond, why)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            sim_fail(s, (why), ix, rec->step);                                                     \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* G10: a step begins only after its dependencies are settled in its favour. */
static void check_dependencies(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const uint32_t ix = (uint32_t)(p - s->plans);
    for (uint32_t i = 0; i < run_deps(p->plan, rec->step); i++) {
        const uint32_t dep = run_dep(p->plan, rec->step, i);
        const struct run_step *d = &p->shadow->steps[dep];
        RULE(p->told[dep].completed, "started before a dependency was over");
        const bool bad = d->status == STEP_FAILED || d->status == STEP_CANCELLED ||
                         (d->status == STEP_SKIPPED && d->reason == REASON_DEPENDENCY_FAILED);
        RULE(!bad || p->plan->chain || p->plan->steps[rec->step].policy.run_if_always,
             "started although a dependency failed");
    }
}

/* G4: a result is applied once, for the current attempt, from the instance that has it. */
static void check_result(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const uint32_t ix = (uint32_t)(p - s->plans);
    const struct run_step *state = &p->shadow->steps[rec->step];
    if (rec->status != STEP_COMPLETED) {
        return;
    }
    RULE(s->turn->type == CORE_RESULT && s->turn->step == rec->step, "completed by no result");
    RULE(s->turn->attempt == state->attempt, "completed by a result of another attempt");
    RULE(uuid_eq(s->sender, state->instance), "completed by an instance that did not have it");
    RULE(s->turn->result.id == rec->result.id, "another result than the one that came");
}

static void check_step_record(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const uint32_t ix = (uint32_t)(p - s->plans);
    struct told *told = &p->told[rec->step];
    RULE(p->started, "a step before plan_started");
    RULE(!told->completed, "a record about a step that has ended");
    if (rec->type == REC_STEP_STARTED) {
        RULE(!told->started, "a step started twice");
        RULE(rec->attempt == 1, "started with another attempt than the first");
        told->started = true;
        check_dependencies(s, p, rec);
    } else if (rec->type == REC_STEP_COMPLETED) {
        RULE(told->started || rec->status != STEP_COMPLETED, "completed before it started");
        check_result(s, p, rec);
        told->completed = true;
    } else {
        RULE(told->started, "a record about a step that has not started");
    }
    if (rec->type == REC_REVIEW_DECIDED && rec->decision == DECISION_APPROVE) {
        told->allowed++;
    }
    if (rec->type == REC_STEP_RETRY && s->turn->type == CORE_RESULT && s->turn->retryable_given &&
        s->turn->retryable) {
        told->allowed++; /* the agent itself said that it may run again */
    }
}

static void check_plan_end(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const uint32_t ix = (uint32_t)(p - s->plans);
    for (uint32_t i = 0; i < p->plan->n_steps; i++) {
        RULE(!p->told[i].started || p->told[i].completed, "a step started and never ended");
        if (!step_is_final(p->shadow->steps[i].status)) {
            sometimes.moves[p->shadow->steps[i].status][STEP_CANCELLED]++;
        }
    }
    p->over = true;
    sometimes.ends[rec->plan_status][rec->outcome]++;
}

void sim_check_record(struct sim *s, const struct record *rec)
{
    struct sim_plan *p = sim_plan_of(s, rec->run);
    const uint32_t ix = p == NULL ? 0 : (uint32_t)(p - s->plans);
    RULE(p != NULL, "a record of a plan that is over or unknown");
    if (rec->type == REC_PLAN_GENERATED) {
        RULE(!p->generated, "generated twice");
        p->generated = true;
    } else if (rec->type == REC_PLAN_STARTED) {
        RULE(p->generated && !p->started, "plan_started out of order");
        p->started = true;
    } else if (rec->type == REC_PLAN_COMPLETED) {
        check_plan_end(s, p, rec);
    } else if (rec->step < p->plan->n_steps) {
        check_step_record(s, p, rec);
    }
    if (s->failed) {
        return;
    }
    const bool about_step = rec->step < p->plan->n_steps && rec->type != REC_PLAN_COMPLETED;
    const enum step_status from = about_step ? p->shadow->steps[rec->step].status : STEP_PENDING;
    RULE(run_apply(p->shadow, p->plan, rec), "a record does not fit on replay");
    if (about_step) {
        sometimes.moves[from][p->shadow->steps[rec->step].status]++;
    }
    RULE(p->shadow->active <= run_concurrency(p->plan), "more under way than max_concurrency");
}

void sim_check_dispatch(struct sim *s, const struct core_cmd *cmd)
{
    const struct sim_plan *p = sim_plan_of(s, cmd->run);
    if (p == NULL) {
        sim_fail(s, "dispatch for a plan that is over", 0, cmd->step);
        return;
    }
    const struct run_step *state = &p->shadow->steps[cmd->step];
    if (state->status != STEP_IN_PROGRESS || state->attempt != cmd->attempt ||
        state->epoch != cmd->epoch) {
        sim_fail(s, "dispatch of an attempt that is not journaled", (uint32_t)(p - s->plans),
                 cmd->step);
    }
}

/* G5: every execution is a journaled attempt, none runs twice, unsafe steps run again only when
 * somebody allowed it. */
void sim_check_execution(struct sim *s, uint32_t plan, uint32_t step, uint32_t attempt)
{
    const struct sim_plan *p = &s->plans[plan];
    struct told *told = &p->told[step];
    const uint64_t bit = UINT64_C(1) << attempt % 64;
    sometimes.executions++;
    ASSERT(attempt < 128);
    if (attempt == 0 || attempt > p->shadow->steps[step].attempt) {
        sim_fail(s, "an execution that is not journaled", plan, step);
    }
    if ((told->executed[attempt / 64] & bit) != 0) {
        sim_fail(s, "one attempt was executed twice", plan, step);
    }
    if (p->plan->steps[step].policy.effects == EFFECTS_UNSAFE && told->executions > told->allowed) {
        sim_fail(s, "an unsafe step was executed again without a decision", plan, step);
    }
    told->executed[attempt / 64] |= bit;
    told->executions++;
}

static void check_plan(struct sim *s, const struct sim_plan *p)
{
    const uint32_t ix = (uint32_t)(p - s->plans);
    const char *why = "";
    if (!run_invariant(p->shadow, p->plan, &why)) {
        sim_fail(s, why, ix, STEP_NONE);
    } else if (memcmp(core_block_run(p->block), p->shadow, run_size(p->plan->n_steps)) != 0) {
        sim_fail(s, "the replayed run differs from the live one", ix, STEP_NONE);
    } else if (p->over != (core_run(s->core, p->handle, NULL) == NULL)) {
        sim_fail(s, "the core and the records disagree about the end", ix, STEP_NONE);
    }
}

void sim_check_turn(struct sim *s)
{
    const char *why = "";
    if (!core_invariant(s->core, &why)) {
        sim_fail(s, why, 0, STEP_NONE);
    }
    for (uint32_t i = 0; i < s->n_plans; i++) {
        if (s->plans[i].submitted && !s->plans[i].over) {
            check_plan(s, &s->plans[i]);
        }
    }
}

void sim_check_end(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_plans && !s->failed; i++) {
        const struct sim_plan *p = &s->plans[i];
        const struct record *rec = &(struct record){.step = STEP_NONE};
        const uint32_t ix = i;
        RULE(p->over, "the plan never ended");
        /* Once more from nothing: the whole journal gives the final state. */
        (void)run_init(p->block, p->plan);
        for (uint32_t k = 0; k < p->n_journal; k++) {
            RULE(run_apply(p->block, p->plan, &p->journal[k]), "the journal does not replay");
        }
        RULE(memcmp(p->block, p->shadow, run_size(p->plan->n_steps)) == 0,
             "the journal gives another state");
        sim_mix(s, run_hash(p->shadow));
    }
}
#undef RULE

/* ---- over all seeds ---- */

static const char *const fault_names[] = {
    [FAULT_FAILURE] = "failure",
    [FAULT_NEEDS_PERSON] = "needs a person",
    [FAULT_UNSENT] = "unsent",
    [FAULT_REQUEST_LOST] = "request lost",
    [FAULT_REPLY_LOST] = "reply lost",
    [FAULT_LATE] = "late",
    [FAULT_HANG] = "hang",
    [FAULT_DUPLICATE] = "duplicate",
    [FAULT_LIE] = "lie",
    [FAULT_CRASH] = "crash",
    [FAULT_CRASH_UNSEEN] = "crash unseen",
    [FAULT_SILENCE] = "silence",
    [FAULT_REREGISTER] = "registered again",
    [FAULT_LANE_DOWN] = "lane down",
    [FAULT_DRAIN] = "drain",
    [FAULT_QUERY_LOST] = "query lost",
    [FAULT_FLOOD] = "flood",
    [FAULT_CANCEL] = "cancel",
    [FAULT_RESTART] = "restart",
    [FAULT_BEFORE_COMMIT] = "killed before the commit",
    [FAULT_AFTER_COMMIT] = "killed after the commit",
    [FAULT_ABSENT] = "agent absent",
};
_Static_assert(sizeof fault_names / sizeof fault_names[0] == FAULT_COUNT, "a name per fault");

static int never(const char *what, const char *which, uint64_t n)
{
    if (n == 0) {
        (void)fprintf(stderr, "never happened: %s %s\n", what, which);
    }
    return n == 0 ? 1 : 0;
}

int sim_check_sometimes(void)
{
    int missing = 0;
    for (int f = 0; f < FAULT_COUNT; f++) {
        missing += never("fault", fault_names[f], sometimes.faults[f]);
    }
    /* PENDING -> READY happens inside the record of another step. */
    for (int from = 0; from < STEP_COMPLETED; from++) {
        for (int to = 0; to < STEP_STATUS_COUNT; to++) {
            char move[64];
            (void)snprintf(move, sizeof move, "%s -> %s", step_status_state_name(from),
                           step_status_state_name(to));
            if (run_move_allowed(from, to) && !(from == STEP_PENDING && to == STEP_READY)) {
                missing += never("move", move, sometimes.moves[from][to]);
            }
        }
    }
    for (int r = REJECT_NONE + 1; r < CORE_REJECT_COUNT; r++) {
        const bool impossible = r == REJECT_TOO_MANY_INSTANCES; /* the bodies are fewer */
        missing += impossible ? 0 : never("rejection", core_reject_text(r), sometimes.rejects[r]);
    }
    missing += never("end", "success", sometimes.ends[PLAN_COMPLETED][OUTCOME_SUCCESS]);
    missing += never("end", "partial", sometimes.ends[PLAN_COMPLETED][OUTCOME_PARTIAL]);
    missing += never("end", "failed", sometimes.ends[PLAN_FAILED][OUTCOME_FAILED]);
    missing += never("end", "cancelled", sometimes.ends[PLAN_CANCELLED][OUTCOME_FAILED]);
    return missing;
}
