/* The next revision of a plan, as replanner and people make it: entries keep their index, some are
 * superseded, new ones follow. Some revisions are invalid. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"
#include "tests/unit/core/plan/plan_text.h"

enum { NEW_ROWS_MAX = 3, NEW_DEPS_MAX = 2 };

/* A new plan with everything of the old one except the edges. */
static struct plan *copy_of(const struct plan *old, uint32_t n_new, uint32_t agent)
{
    const uint32_t n = old->n_steps + n_new;
    const uint32_t edges = (old->chain ? old->n_steps : old->n_edges) + n * (NEW_DEPS_MAX + 1);
    struct plan *plan = plan_text_blank(n, edges, agent, "a");
    const struct plan blank = *plan;
    *plan = *old;
    plan->agents = blank.agents;
    plan->alternatives = blank.alternatives;
    plan->steps = blank.steps;
    plan->deps = blank.deps;
    plan->dependents = blank.dependents;
    plan->n_steps = n;
    plan->n_edges = 0;
    plan->chain = false;
    plan->agents.n = old->agents.n;
    for (uint32_t i = 0; i < old->agents.n; i++) {
        plan->agents.ids[i] = old->agents.ids[i];
        plan->agents.at[i] = old->agents.at[i];
        plan->alternatives[i] = i;
    }
    for (uint32_t i = 0; i < old->n_steps; i++) {
        const struct str id = plan->steps[i].step_id;
        struct step_rules *rules = plan->steps[i].rules;
        *rules = *old->steps[i].rules;
        plan->steps[i] = old->steps[i];
        plan->steps[i].rules = rules;
        plan->steps[i].step_id = id;
        plan->steps[i].after_any_end = old->chain || old->steps[i].after_any_end;
    }
    return plan;
}

static void add_dep(struct plan *plan, uint32_t step, uint32_t dep)
{
    struct plan_step *row = &plan->steps[step];
    for (uint32_t i = 0; i < row->deps_n; i++) {
        if (plan->deps[row->deps_at + i] == dep) {
            return;
        }
    }
    ASSERT(row->deps_at + row->deps_n == plan->n_edges);
    plan->deps[plan->n_edges++] = dep;
    row->deps_n++;
}

static bool begun(const struct run *run, uint32_t step)
{
    return run->steps[step].status > STEP_READY;
}

static bool is_revise(const struct core_event *ev, enum modify_kind kind)
{
    return ev->type == CORE_REVISE && CORE_EV(ev, revise)->kind == kind;
}

/* Superseded entries: for a replan most that are not reused; for a person's REPLACE one step. */
static void supersede(struct sim *s, const struct run *run, struct plan *plan,
                      const struct core_event *ev)
{
    const bool replan = ev->type == CORE_RESULT;
    const bool again = ev->type == CORE_RECTIFY;
    const uint32_t keep = sim_chance(s, 700) ? 0 : 500; /* a planner that reuses open steps */
    const uint32_t victim = sim_range(s, 0, run->n_steps - 1);
    for (uint32_t i = 0; i < run->n_steps; i++) {
        struct plan_step *row = &plan->steps[i];
        const bool done = run->steps[i].status == STEP_COMPLETED;
        const bool reuse = sim_chance(s, done ? 750 : keep);
        row->superseded = row->superseded || (replan && (i == ev->step || !reuse)) ||
                          (is_revise(ev, MODIFY_REPLACE) && i == victim) ||
                          (again && !done && sim_chance(s, 700));
    }
}

/* New entries depend on begun ones and on earlier new ones, so there is no cycle. */
static void new_rows(struct sim *s, const struct run *run, struct plan *plan)
{
    for (uint32_t i = run->n_steps; i < plan->n_steps; i++) {
        struct plan_step *row = &plan->steps[i];
        sim_make_step(s, plan, i);
        if (plan->agents.n == 0) { /* no step had an agent: a person grants those of the new ones */
            const bool fits = plan_agents_collect(plan);
            ASSERT(fits);
        }
        row->alternatives_n = row->alternatives_n > 0 ? plan->agents.n : 0;
        row->revision = plan->revision;
        row->deps_at = plan->n_edges;
        for (uint32_t k = sim_range(s, 0, NEW_DEPS_MAX); k > 0; k--) {
            const uint32_t dep = sim_range(s, 0, i - 1);
            const bool fits = dep >= run->n_steps || begun(run, dep);
            if (fits && !plan->steps[dep].superseded) {
                add_dep(plan, i, dep);
            }
        }
        const uint32_t like = sim_range(s, 0, run->n_steps - 1);
        if (plan->steps[like].superseded && sim_chance(s, 500)) {
            row->step_id = plan->steps[like].step_id; /* new work under an old id */
        }
    }
}

/* A replanner that plans completed work again: under its id, or under another one. */
static void repeat_row(struct sim *s, const struct run *run, struct plan *plan)
{
    const uint32_t like = sim_range(s, 0, run->n_steps - 1);
    struct plan_step *old = &plan->steps[like];
    struct plan_step *row = &plan->steps[plan->n_steps - 1];
    if (run->steps[like].status != STEP_COMPLETED || old->type != STEP_TYPE_TASK) {
        return;
    }
    row->type = old->type;
    row->agent = old->agent;
    row->agent_id = old->agent_id;
    row->task = old->task;
    row->rules->policy.effects = old->rules->policy.effects;
    row->rules->policy.requires_approval = sim_chance(s, 500);
    if (old->superseded || sim_chance(s, 500)) {
        row->step_id = old->step_id;
        old->superseded = true;
    }
}

/* Entries that have not begun may depend on new ones; others stay unchanged. */
static void old_edges(struct sim *s, const struct run *run, const struct plan *old,
                      struct plan *plan)
{
    const uint32_t n_new = plan->n_steps - run->n_steps;
    for (uint32_t i = 0; i < run->n_steps; i++) {
        struct plan_step *row = &plan->steps[i];
        row->deps_at = plan->n_edges;
        row->deps_n = 0;
        for (uint32_t k = 0; k < run_deps(old, i); k++) {
            add_dep(plan, i, run_dep(old, i, k));
        }
        if (n_new > 0 && !begun(run, i) && !row->superseded && sim_chance(s, 250)) {
            add_dep(plan, i, sim_range(s, run->n_steps, plan->n_steps - 1));
        }
    }
}

/* A person may name agents that the plan did not have. */
static void grant_more(struct sim *s, struct plan *plan)
{
    for (uint32_t a = 0; a < s->n_agents; a++) {
        if (plan_agent_find(plan, a) == UINT32_MAX && sim_chance(s, 300)) {
            plan->alternatives[plan->agents.n] = plan->agents.n;
            plan->agents.ids[plan->agents.n] = sim_agent_names[a];
            plan->agents.at[plan->agents.n++] = a;
            sometimes->granted_later++;
        }
    }
    plan->n_alternatives = plan->agents.n;
}

/* Makes the revision invalid in one way, where that way applies. */
static void spoil(struct sim *s, const struct run *run, const struct plan *old, struct plan *plan)
{
    const uint32_t at = sim_range(s, 0, run->n_steps - 1);
    switch (sim_range(s, 0, 4)) {
    case 0:
        plan->revision += sim_chance(s, 500) ? 1 : UINT32_MAX;
        break;
    case 1:
        plan->agents.n -= plan->agents.n == old->agents.n ? 1 : 0; /* a granted agent is missing */
        break;
    case 2:
        for (uint32_t i = 0; i < run->n_steps; i++) { /* a superseded step is back */
            plan->steps[i].superseded = false;
        }
        break;
    case 3:
        plan->steps[at].superseded = old->steps[at].superseded;
        plan->steps[at].deps_n = 0; /* a begun step has other dependencies */
        break;
    default:
        plan->n_steps = old->n_steps - 1;
        break;
    }
}

bool sim_offer(struct sim *s, struct sim_plan *p, struct core_event *ev, bool bad)
{
    sim_flush(s);
    if (s->failed || s->down || p->over || p->n_revisions == SIM_REVISIONS_MAX) {
        return false;
    }
    const struct plan *old = sim_plan_now(p);
    const struct run *run = p->shadow;
    const bool replan = ev->type == CORE_RESULT || ev->type == CORE_RECTIFY;
    const uint32_t n_new =
        sim_range(s, replan || is_revise(ev, MODIFY_INSERT) ? 1 : 0, NEW_ROWS_MAX);
    struct plan *plan = copy_of(old, n_new, old->agents.at[0]);
    plan->revision = run->revision + 1;
    if (!replan || bad) {
        grant_more(s, plan);
    }
    supersede(s, run, plan, ev);
    old_edges(s, run, old, plan);
    new_rows(s, run, plan);
    if (ev->type == CORE_RESULT && sim_chance(s, 200)) {
        repeat_row(s, run, plan);
    }
    if (bad) {
        spoil(s, run, old, plan);
    }
    const size_t size = core_run_size(plan);
    if (plan->n_steps >= old->n_steps) {
        plan_link(plan);
    }
    p->revisions[p->n_revisions] = plan;
    p->offer = sim_need(1, size);
    *event_plan(ev) =
        (struct core_new_plan){.plan = plan,
                               .block = p->offer,
                               .document = {.id = SIM_RESULT_OTHER + ++s->tokens, .len = 9}};
    return true;
}

void sim_withdraw(struct sim_plan *p)
{
    if (p->offer == NULL) {
        return;
    }
    plan_text_free(p->revisions[p->n_revisions]);
    p->revisions[p->n_revisions] = NULL;
    free(p->offer);
    p->offer = NULL;
}
