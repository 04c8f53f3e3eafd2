/* Revisions: what a replanner or a person makes of the plan in force. Each is made once. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/explore/world.h"

enum { EDGES_MAX = WORLD_STEPS * WORLD_STEPS };

struct made_plan {
    struct plan plan;
    struct plan_step steps[WORLD_STEPS];
    uint32_t deps[EDGES_MAX], dependents[EDGES_MAX];
    struct str ids[LIMIT_PLAN_AGENTS];
    uint32_t agents[LIMIT_PLAN_AGENTS];
    struct made_plan *next;
    uint32_t index;
    /* of what it was made */
    uint32_t parent, revision, step, begun, completed;
    enum world_change change;
};

static uint32_t set_of(const struct world *w, bool completed)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < w->shadow->n_steps; i++) {
        const enum step_status s = w->shadow->steps[i].status;
        const bool in = completed ? s == STEP_COMPLETED : s != STEP_PENDING && s != STEP_READY;
        set |= in ? 1u << i : 0;
    }
    return set;
}

/* The dependencies of a row, with `of` in place of `was`. */
static void copy_deps(struct made_plan *m, const struct plan *from, uint32_t row, uint32_t like,
                      uint32_t was, uint32_t of, uint32_t among)
{
    struct plan_step *step = &m->steps[row];
    step->deps_at = m->plan.n_edges;
    step->deps_n = 0;
    for (uint32_t i = 0; i < run_deps(from, like); i++) {
        const uint32_t dep = run_dep(from, like, i);
        if ((among & 1u << dep) != 0) {
            m->deps[m->plan.n_edges++] = dep == was ? of : dep;
            step->deps_n++;
        }
    }
}

static void one_dep(struct made_plan *m, uint32_t row, uint32_t dep)
{
    m->steps[row].deps_at = m->plan.n_edges;
    m->steps[row].deps_n = 1;
    m->deps[m->plan.n_edges++] = dep;
}

/* What CHANGE_REPEAT repeats: the first completed step that is in force; the failed one when there
 * is none, and then nothing goes. */
static uint32_t repeated(const struct made_plan *m, const struct plan *from)
{
    for (uint32_t i = 0; i < from->n_steps; i++) {
        if ((m->completed & 1u << i) != 0 && !from->steps[i].superseded) {
            return i;
        }
    }
    return m->step;
}

static bool is_gone(const struct made_plan *m, const struct plan *from, uint32_t i)
{
    const uint32_t bit = 1u << i;
    if (from->steps[i].superseded) {
        return true;
    }
    switch (m->change) {
    case CHANGE_FRESH:
        return (m->completed & bit) == 0;
    case CHANGE_KEEP:
    case CHANGE_STRANGER:
    case CHANGE_REPLACE:
        return i == m->step;
    case CHANGE_REPEAT:
        return repeated(m, from) != m->step &&
               (i == m->step ||
                (i == repeated(m, from) && from->steps[i].rules->policy.effects != EFFECTS_UNSAFE));
    case CHANGE_MISFIT:
    case CHANGE_BEFORE:
    case CHANGE_FREE:
    case CHANGE_COUNT:
        break;
    }
    return false;
}

static void add_stranger(struct made_plan *m)
{
    struct plan_agents *a = &m->plan.agents;
    for (uint32_t i = 0; i < a->n; i++) {
        m->ids[i] = a->ids[i];
        m->agents[i] = a->at[i];
    }
    m->ids[a->n] = STR_LIT("stranger");
    m->agents[a->n] = 0;
    while (plan_agent_find(&m->plan, m->agents[a->n]) != UINT32_MAX) {
        m->agents[a->n]++;
    }
    *a = (struct plan_agents){.ids = m->ids, .at = m->agents, .n = a->n + 1};
}

static void fill(struct made_plan *m, const struct plan *from)
{
    static const char *const names[WORLD_STEPS] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"};
    const uint32_t row = from->n_steps;
    const bool takes_place = m->change != CHANGE_BEFORE && m->change != CHANGE_FREE;
    m->plan = *from;
    m->plan.revision = m->revision;
    m->plan.steps = m->steps;
    m->plan.deps = m->deps;
    m->plan.dependents = m->dependents;
    m->plan.n_edges = 0;
    m->plan.n_steps = row + 1;
    m->plan.chain = false;
    for (uint32_t i = 0; i < row; i++) {
        const bool begun = (m->begun & 1u << i) != 0;
        m->steps[i] = from->steps[i];
        m->steps[i].after_any_end |= from->chain;
        m->steps[i].superseded = is_gone(m, from, i);
        if (m->change == CHANGE_BEFORE && i == m->step) {
            one_dep(m, i, row);
        } else {
            const bool moves = takes_place && m->change != CHANGE_FRESH && !begun;
            copy_deps(m, from, i, i, moves ? m->step : UINT32_MAX, row, UINT32_MAX);
        }
    }
    if (m->change == CHANGE_STRANGER) {
        add_stranger(m);
    }
    struct plan_step *new = &m->steps[row];
    const uint32_t like = m->change == CHANGE_REPEAT ? repeated(m, from) : m->step;
    *new = from->steps[like];
    new->after_any_end |= from->chain;
    new->revision = m->revision;
    new->superseded = false;
    if (!takes_place ||
        (m->change == CHANGE_REPEAT && new->rules->policy.effects == EFFECTS_UNSAFE)) {
        new->step_id = str_from(names[row]);
    }
    if (m->change == CHANGE_FREE) {
        new->deps_at = m->plan.n_edges;
        new->deps_n = 0;
    } else {
        copy_deps(m, from, row, like, UINT32_MAX, 0,
                  m->change == CHANGE_FRESH ? m->completed : UINT32_MAX);
    }
    plan_link(&m->plan);
}

uint32_t world_change(struct world *w, enum world_change change, uint32_t step)
{
    const struct plan *from = world_plan(w);
    const struct made_plan like = {.parent = w->at.plan,
                                   .revision = w->shadow->revision + 1,
                                   .step = step,
                                   .begun = set_of(w, false),
                                   .completed = set_of(w, true),
                                   .change = change};
    if (from->n_steps == WORLD_STEPS) {
        return UINT32_MAX;
    }
    for (const struct made_plan *m = w->made; m != NULL; m = m->next) {
        if (m->parent == like.parent && m->revision == like.revision && m->step == step &&
            m->begun == like.begun && m->completed == like.completed && m->change == change) {
            return m->index;
        }
    }
    struct made_plan *m = malloc(sizeof *m);
    ASSERT(m != NULL && w->n_plans < WORLD_PLANS);
    *m = like;
    fill(m, from);
    m->next = w->made;
    m->index = w->n_plans;
    w->made = m;
    w->plans[w->n_plans++] = &m->plan;
    return m->index;
}

void world_plans_free(struct world *w)
{
    while (w->made != NULL) {
        struct made_plan *next = w->made->next;
        free(w->made);
        w->made = next;
    }
}
