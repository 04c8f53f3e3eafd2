/* Rules about plans, checked from outside the core: from records, commands and what the agents
 * really did. Rules about one step: sim_step_rules.c; limits and turns: sim_limits.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "supervisor/core/run/run_apply.h"
#include "tests/sim/sim.h"

enum { CHECK_ALL_TURNS = 300, CHECK_EVERY = 16, WAITS_EVERY = 8 };

void sim_mix(struct sim *s, uint64_t v)
{
    s->hash = (s->hash ^ v) * UINT64_C(1099511628211);
    s->hash ^= s->hash >> 31;
}

void sim_told_grow(struct sim_plan *p, uint32_t from, uint32_t to)
{
    p->told = realloc(p->told, to * sizeof *p->told);
    ASSERT(p->told != NULL);
    memset(p->told + from, 0, (to - from) * sizeof *p->told);
    for (uint32_t i = from; i < to; i++) {
        p->told[i].sent = UINT32_MAX;
    }
}

/* ---- records ---- */

/* C07: a step that a person skipped, or that was superseded, is no failure. */
static bool went_well(const struct sim_plan *p, const struct plan *plan)
{
    bool well = true;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct run_step *step = &p->shadow->steps[i];
        well = well && (plan->steps[i].superseded || step->status == STEP_COMPLETED ||
                        (step->status == STEP_SKIPPED &&
                         (step->reason == REASON_USER_SKIP || step->reason == REASON_CONDITION)));
    }
    return well;
}

static bool some_bypassed(const struct sim_plan *p)
{
    bool some = false;
    for (uint32_t i = 0; i < p->shadow->n_steps; i++) {
        some = some || p->shadow->steps[i].reason == REASON_CONDITION;
    }
    return some;
}

static void check_plan_end(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const struct plan *plan = sim_plan_now(p);
    const bool success = REC(rec, plan_completed)->outcome == OUTCOME_SUCCESS;
    const bool ran = p->started && plan->n_steps > 0;
    SIM_RULE(success == (REC(rec, plan_completed)->status == PLAN_COMPLETED &&
                         (ran ? p->shadow->open == 0 && went_well(p, plan) : plan->dry_run)),
             "the outcome is not what the steps say");
    SIM_RULE(REC(rec, plan_completed)->status != PLAN_COMPLETED || !ran ||
                 p->shadow->completed > 0 || some_bypassed(p),
             "completed with nothing completed");
    SIM_RULE(!plan->dry_run || !p->started, "a dry run ran");
    sim_check_answered(s, p, rec);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        SIM_RULE(!p->told[i].started || p->told[i].completed, "a step started and never ended");
        if (!step_is_final(p->shadow->steps[i].status)) {
            sometimes->moves[p->shadow->steps[i].status][STEP_CANCELLED]++;
        }
    }
    p->over = true;
    p->nest.ends = REC(rec, plan_completed)->failure;
    sometimes->nests[p->nest.kind][p->nest.depth]++;
    sometimes->ends[REC(rec, plan_completed)->status][REC(rec, plan_completed)->outcome]++;
    sometimes->failures[REC(rec, plan_completed)->failure]++;
}

static void count(const struct record *rec)
{
    if (rec->type == REC_PLAN_PAUSED) {
        sometimes->pauses[REC(rec, pause)->reason]++;
    } else if (rec->type == REC_PLAN_MODIFIED) {
        sometimes->modifies[REC(rec, revision)->modify]++;
    } else if (rec->type == REC_HANDOFF) {
        sometimes->handoffs[REC(rec, handoff)->kind]++;
    } else if (rec->type == REC_FALLBACK_USED) {
        sometimes->fallbacks[REC(rec, fallback)->action]++;
    } else if (rec->type == REC_REVIEW_DECIDED) {
        sometimes->reviews[REC(rec, decided)->review][REC(rec, decided)->decision]++;
    } else if (rec->type == REC_STEP_COMPLETED) {
        sometimes->reasons[REC(rec, step_completed)->reason]++;
        sometimes->stops[REC(rec, step_completed)->stop]++;
    }
}

/* A new step under an old id continues its counters. */
static uint32_t replans_of_name(const struct sim_plan *p, const struct plan *plan, uint32_t step)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        n += str_eq(plan->steps[i].step_id, plan->steps[step].step_id) ? p->told[i].replans : 0;
    }
    return n;
}

static void check_about_plan(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const struct plan *plan = sim_plan_now(p);
    SIM_RULE(p->submitted ||
                 rec->type == (plan->planning.pending ? REC_PLANNING_STARTED : REC_PLAN_GENERATED),
             "a record before plan_generated");
    p->submitted = true;
    sim_check_asking(s, p, rec);
    if (rec->type == REC_PLAN_GENERATED) {
        SIM_RULE(!p->generated, "generated twice");
        p->generated = true;
    } else if (rec->type == REC_PLAN_STARTED) {
        const bool alone = plan->planning.pending &&
                           plan->planning.on_invalid == ON_INVALID_SYNTHESIZE &&
                           s->turn->ev.type == CORE_JOB_FAILED;
        SIM_RULE((p->generated || alone) && !p->started, "plan_started out of order");
        SIM_RULE(!plan->signoff || p->signed_off || alone, "started without its sign-off");
        sim_keys_started(s, p, rec);
        p->started = true;
    } else if (rec->type == REC_REVIEW_DECIDED) {
        p->signed_off =
            p->signed_off || (REC(rec, decided)->review == REVIEW_PLAN && rec->step == STEP_NONE &&
                              REC(rec, decided)->decision == DECISION_APPROVE);
    } else if (rec->type == REC_PLAN_MODIFIED || rec->type == REC_REPLAN_FINISHED) {
        const bool note = rec->type == REC_PLAN_MODIFIED &&
                          REC(rec, revision)->modify == MODIFY_CONVERSATION_ONLY;
        const bool none = rec->type == REC_REPLAN_FINISHED && !REC(rec, revision)->ok;
        p->signed_off = p->signed_off && (note || none);
    } else if (rec->type == REC_PLAN_COMPLETED) {
        check_plan_end(s, p, rec);
    } else if (rec->type == REC_FALLBACK_USED) {
        p->fallbacks++;
        SIM_RULE(p->fallbacks <= plan->max_fallbacks, "more fallbacks than the plan may have");
    } else if (rec->type == REC_REPLAN_STARTED) {
        p->replans++;
        p->replan_from = rec->now + REC(rec, replan_started)->delay_ms;
        p->told[rec->step].replans++;
        SIM_RULE(replans_of_name(p, plan, rec->step) <= plan->replan.max_step,
                 "more replans than the step may have");
        SIM_RULE(p->replans <= plan->replan.max_total, "more replans than the plan may have");
        SIM_RULE(p->shadow->replanning == 0, "two replans at the same time");
    }
}

static bool same_deps(const struct plan *a, const struct plan *b, uint32_t step)
{
    bool same = run_deps(a, step) == run_deps(b, step);
    for (uint32_t i = 0; same && i < run_deps(a, step); i++) {
        same = run_dep(a, step, i) == run_dep(b, step, i);
    }
    return same;
}

/* C32: what has completed does not run again, and unsafe work only when a person approves it. */
static void check_repeats(struct sim *s, const struct sim_plan *p, const struct plan *from,
                          const struct record *rec, const struct plan_step *row)
{
    for (uint32_t i = 0; i < from->n_steps; i++) {
        const struct plan_step *old = &from->steps[i];
        const bool same_id = str_eq(old->step_id, row->step_id);
        const bool same_work = plan_step_same_work(old, row);
        if (p->shadow->steps[i].status != STEP_COMPLETED) {
            continue;
        }
        SIM_RULE(old->superseded || !same_id || !same_work, "a completed step is run again");
        SIM_RULE(old->rules->policy.effects != EFFECTS_UNSAFE ||
                     row->rules->policy.requires_approval ||
                     !(same_work || (same_id && row->rules->policy.effects == EFFECTS_UNSAFE)),
                 "an unsafe step is run again and nobody is asked");
    }
}

/* The record brings a revision: the entries before it are still there. */
static void take_revision(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const struct plan *from = sim_plan_now(p);
    const struct plan *to = p->revisions[p->n_revisions];
    SIM_RULE(p->offer != NULL && to != NULL, "a revision that nobody offered");
    SIM_RULE((rec->type != REC_REPLAN_FINISHED && rec->type != REC_SYNTHESIS_RETRY) ||
                 to->agents.n == from->agents.n,
             "a replan took agents that were not granted");
    SIM_RULE(REC(rec, revision)->result.id == event_document(&s->turn->ev).id,
             "another revision than the one offered");
    for (uint32_t i = from->n_steps; rec->type == REC_REPLAN_FINISHED && i < to->n_steps; i++) {
        check_repeats(s, p, from, rec, &to->steps[i]);
    }
    struct run *next = run_revise(sim_need(1, run_size(to)), to, p->shadow, from, rec);
    SIM_RULE(next != NULL, "a revision does not fit on replay");
    for (uint32_t i = 0; i < from->n_steps; i++) {
        const enum step_status was = p->shadow->steps[i].status;
        SIM_RULE(next->steps[i].status == was || was == STEP_READY || was == STEP_PENDING,
                 "a revision moved a step that had begun");
        SIM_RULE(!run_step_is_active(was) || to->steps[i].superseded || same_deps(from, to, i),
                 "a revision changed what comes before a step that had begun");
    }
    free(p->shadow);
    p->shadow = next;
    p->n_revisions++;
    sim_told_grow(p, from->n_steps, to->n_steps);
    sometimes->revised++;
}

/* A request that could not be sent during the pause has its full time again. */
static void check_renewed(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct plan *plan = sim_plan_now(p);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct run_step *step = &p->shadow->steps[i];
        const msec time = step->phase == PHASE_REPLAN
                              ? plan->replan.timeout_ms
                              : plan->steps[i].rules->policy.check_timeout_ms;
        SIM_RULE(step->status != STEP_CHECKING || time == 0 || step->deadline >= rec->now + time,
                 "a question lost its time during a pause");
    }
}

static void take_record(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const struct plan *plan = sim_plan_now(p);
    if (record_revises(rec)) {
        take_revision(s, p, rec);
        return;
    }
    const bool about_step = rec->step < plan->n_steps && rec->type != REC_PLAN_COMPLETED &&
                            rec->type != REC_SYNTHESIS_STARTED &&
                            rec->type != REC_COMPENSATION_STARTED;
    const enum step_status from = about_step ? p->shadow->steps[rec->step].status : STEP_PENDING;
    SIM_RULE(run_apply(p->shadow, plan, rec), "a record does not fit on replay");
    const enum step_status to = about_step ? p->shadow->steps[rec->step].status : STEP_PENDING;
    if (from != to || rec->type == REC_STEP_ASSIGNED || rec->type == REC_STEP_UNKNOWN ||
        rec->type == REC_FALLBACK_USED || rec->type == REC_REPLAN_STARTED) {
        sometimes->moves[from][to]++;
    }
    SIM_RULE(run_places(p->shadow) <= run_concurrency(plan), "more under way than max_concurrency");
    if (rec->type == REC_PLAN_RESUMED && REC(rec, pause)->reason == PAUSE_REQUESTED) {
        check_renewed(s, p, rec);
    }
}

/* The revision that the change was asked for; 0 = any. */
static uint32_t expected(const struct core_event *ev)
{
    return ev->type == CORE_MODIFY   ? CORE_EV(ev, modify)->expect
           : ev->type == CORE_REVISE ? CORE_EV(ev, revise)->expect
                                     : 0;
}

void sim_check_record(struct sim *s, const struct record *rec, const struct record *back)
{
    struct sim_plan *p = sim_plan_of(s, rec->run);
    if (p == NULL || p->over) {
        sim_fail(s, "a record of a plan that is over or unknown", 0, rec->step);
        return;
    }
    const uint32_t expect = expected(&s->turn->ev);
    count(rec);
    check_about_plan(s, p, rec);
    if (rec->type == REC_PLAN_MODIFIED && expect != 0 && expect != p->shadow->revision) {
        sim_fail(s, "changed by somebody who knew another revision", 0, rec->step);
    }
    if (rec->step < sim_plan_now(p)->n_steps && rec->type != REC_PLAN_COMPLETED &&
        rec->type != REC_SYNTHESIS_STARTED && rec->type != REC_COMPENSATION_STARTED && !s->failed) {
        sim_check_step(s, p, rec);
    }
    if (!s->failed) {
        sim_check_nest_record(s, p, rec);
    }
    const enum plan_life was = plan_life(p->shadow);
    if (!s->failed) {
        take_record(s, p, back);
    }
    const enum plan_life is = plan_life(p->shadow);
    sometimes->lives[was][is]++;
    if (!s->failed && was != is && !plan_life_may(was, is)) {
        sim_fail(s, "a plan does not live like that", 0, rec->step);
    }
    run_usage_add(&p->spent, &rec->usage);
    if (!s->failed && memcmp(&p->spent, &p->shadow->usage, sizeof p->spent) != 0) {
        sim_fail(s, "what a record says was used is not counted", 0, rec->step);
    }
}

/* ---- between turns ---- */

static void check_plan(struct sim *s, const struct sim_plan *p, bool thorough)
{
    const uint32_t ix = (uint32_t)(p - s->plans);
    const char *why = "";
    const struct run *live = core_block_run(p->block);
    if (thorough && !run_invariant(p->shadow, sim_plan_now(p), &why)) {
        sim_fail(s, why, ix, STEP_NONE);
    } else if (live->n_steps != p->shadow->n_steps ||
               memcmp(live, p->shadow, run_bytes(live)) != 0) {
        sim_fail(s, "the replayed run differs from the live one", ix, STEP_NONE);
    } else if (core_run(s->core, p->handle, NULL) == NULL) {
        sim_fail(s, "the core has forgotten a plan that is not over", ix, STEP_NONE);
    } else if (core_revision(s->core, p->handle) != p->shadow->revision) {
        sim_fail(s, "the core tells clients another revision", ix, STEP_NONE);
    }
}

static void look_at_waits(struct sim *s, const struct sim_plan *p)
{
    const uint32_t n = p->shadow->n_steps;
    const uint32_t from = n == 0 ? 0 : (uint32_t)(s->turns % n);
    for (uint32_t i = from; i < n && i < from + 8; i++) {
        const struct step_wait w = core_step_wait(s->core, p->handle, i);
        const bool out =
            p->shadow->steps[i].status == STEP_IN_PROGRESS ||
            p->shadow->steps[i].status == STEP_CHECKING ||
            step_is_final(p->shadow->steps[i].status) ||
            (p->shadow->steps[i].status == STEP_READY && p->shadow->steps[i].judged == 0 &&
             sim_plan_now(p)->steps[i].rules->when.ptr != NULL);
        sometimes->waits[w.kind]++;
        if (w.kind == WAIT_NOTHING && !out && !p->shadow->cancelling) {
            sim_fail(s, "an open step waits for nothing", (uint32_t)(p - s->plans), i);
        }
    }
}

void sim_check_turn(struct sim *s)
{
    const bool thorough = s->turns < CHECK_ALL_TURNS || s->turns % CHECK_EVERY == 0;
    const char *why = "";
    uint32_t open = 0;
    if (s->n_batch > 0) {
        return;
    }
    if (thorough && !core_invariant(s->core, &why)) {
        sim_fail(s, why, 0, STEP_NONE);
    }
    for (uint32_t i = 0; i < s->n_plans && !s->failed; i++) {
        struct sim_plan *p = &s->plans[i];
        if (p->submitted && !p->over) {
            open++;
            check_plan(s, p, thorough);
            sim_check_asked(s, p);
            if (s->turns % WAITS_EVERY == 0 && p->shadow->status != PLAN_PENDING) {
                look_at_waits(s, p);
            }
        }
    }
    if (!s->failed && open != core_runs_open(s->core)) {
        sim_fail(s, "the core and the records disagree about what is open", 0, STEP_NONE);
    }
    if (!s->failed) {
        sim_check_nests(s);
    }
    if (!s->failed) {
        sim_limits_turn(s);
        sim_full_turn(s);
    }
}

void sim_check_end(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_plans && !s->failed; i++) {
        const struct sim_plan *p = &s->plans[i];
        const struct record *rec = &(struct record){.step = STEP_NONE};
        const struct plan *plan = sim_plan_now(p);
        const char *why = "";
        SIM_RULE(p->over, "the plan never ended");
        SIM_RULE(run_invariant(p->shadow, plan, &why), why);
        free(sim_replay(s, p));
        for (uint32_t k = 0; k < plan->n_steps; k++) {
            sometimes->types[plan->steps[k].type] +=
                p->shadow->steps[k].status == STEP_COMPLETED ? 1 : 0;
        }
        sim_mix(s, run_hash(p->shadow));
    }
    sim_full_end(s);
}
