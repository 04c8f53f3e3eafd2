/* Cycles. Kahn's algorithm removes the steps that can run. In the rest every walk along
 * dependencies reaches a cycle; each disjoint cycle is reported once. It also sorts the
 * dependencies of each step. */
#include "supervisor/core/mutant.h"
#include "supervisor/core/plan/plan_check_internal.h"

/* Fills rev and rev_at with the dependents of each step, then ret_deps from them. Transposing twice
 * sorts it. */
static void transpose(struct plan_checker *k)
{
    const struct plan *p = k->plan;
    uint32_t *deps = k->in->ret_deps;
    memset(k->rev_at, 0, (p->n_steps + 1) * sizeof k->rev_at[0]);
    for (uint32_t e = 0; e < p->n_edges; e++) {
        if (deps[e] != UINT32_MAX) {
            k->rev_at[deps[e] + 1]++;
        }
    }
    for (uint32_t s = 0; s < p->n_steps; s++) {
        k->rev_at[s + 1] += k->rev_at[s];
        k->open[s] = 0;
    }
    memcpy(k->list, k->rev_at, p->n_steps * sizeof k->list[0]);
    for (uint32_t s = 0; s < p->n_steps; s++) {
        const struct plan_step *step = &p->steps[s];
        for (uint32_t e = step->deps_at; e < step->deps_at + step->deps_n; e++) {
            if (deps[e] != UINT32_MAX) {
                k->rev[k->list[deps[e]]++] = s;
                deps[e] = UINT32_MAX;
            }
        }
    }
    for (uint32_t d = 0; d < p->n_steps; d++) {
        for (uint32_t i = k->rev_at[d]; i < k->rev_at[d + 1]; i++) {
            const uint32_t s = k->rev[i];
            deps[p->steps[s].deps_at + k->open[s]++] = d;
        }
    }
}

/* A dependency of the step that is not removed. There is one, or the step would have been removed.
 */
static uint32_t open_dep(const struct plan_checker *k, uint32_t s)
{
    const struct plan_step *step = &k->plan->steps[s];
    for (uint32_t e = step->deps_at; e < step->deps_at + step->deps_n; e++) {
        const uint32_t d = k->in->ret_deps[e];
        if (d != UINT32_MAX && k->open[d] != 0) {
            return d;
        }
    }
    return UINT32_MAX;
}

enum { PATH_HEAD = 6, PATH_TAIL = 1, PATH_SHORT = 8 };

static void put_cycle(struct plan_checker *k, uint32_t on_it)
{
    uint32_t first = on_it;
    uint32_t length = 1;
    for (uint32_t s = open_dep(k, on_it); s != on_it; s = open_dep(k, s)) {
        first = s < first ? s : first;
        length++;
    }
    struct str parts[2 * PATH_SHORT + 8];
    char number[21];
    uint32_t n = 0;
    uint32_t s = first;
    parts[n++] = STR_LIT("the steps wait for each other: ");
    for (uint32_t i = 0; i < length; i++, s = open_dep(k, s)) {
        if (length > PATH_SHORT && i >= PATH_HEAD && i < length - PATH_TAIL) {
            if (i == PATH_HEAD) {
                parts[n++] = STR_LIT("... ");
                parts[n++] = plan_check_number(number, length - PATH_HEAD - PATH_TAIL);
                parts[n++] = STR_LIT(" more ... -> ");
            }
            continue;
        }
        parts[n++] = k->plan->steps[s].step_id;
        parts[n++] = STR_LIT(" -> ");
    }
    parts[n++] = k->plan->steps[first].step_id;
    problem_put(k->out, PROBLEM_CYCLE_DETECTED, false, &k->plan->steps[first], first, "dependsOn",
                parts, n);
}

void plan_check_cycles(struct plan_checker *k)
{
    const struct plan *p = k->plan;
    transpose(k);
    uint32_t head = 0;
    uint32_t tail = 0;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        if (k->open[s] == 0) {
            k->list[tail++] = s;
        }
    }
    while (head < tail) {
        const uint32_t done = k->list[head++];
        for (uint32_t i = k->rev_at[done]; i < k->rev_at[done + 1]; i++) {
            if (--k->open[k->rev[i]] == 0) {
                k->list[tail++] = k->rev[i];
            }
        }
    }
    for (uint32_t start = 0; start < p->n_steps && tail < p->n_steps && !MUTANT(CYCLIC_PLAN);
         start++) {
        uint32_t s = start;
        while (k->open[s] != 0 && k->mark[s] == 0) {
            k->mark[s] = start + 1;
            s = open_dep(k, s);
        }
        if (k->open[s] != 0 && k->mark[s] == start + 1) {
            put_cycle(k, s);
        }
    }
    memset(k->mark, 0, p->n_steps * sizeof k->mark[0]);
}
