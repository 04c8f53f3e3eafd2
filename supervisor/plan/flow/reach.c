#include "supervisor/plan/flow/reach.h"

#include <string.h>

#include "supervisor/plan/flow/exclude.h"

enum { NEVER = 1, MAY_FAIL = 2 };

struct reaching {
    const struct plan *plan;
    uint32_t *marks;
    struct problems *problems;
    uint32_t budget;
};

static uint32_t n_deps(const struct plan *p, uint32_t step)
{
    return p->chain ? (step > 0 ? 1 : 0) : p->steps[step].deps_n;
}

static uint32_t dep_at(const struct plan *p, uint32_t step, uint32_t i)
{
    return p->chain ? step - 1 : p->deps[p->steps[step].deps_at + i];
}

static void warn(const struct reaching *r, uint32_t ix, const char *field, const struct str *parts,
                 uint32_t n)
{
    problem_put(r->problems, PROBLEM_STYLE, true, &r->plan->steps[ix], ix, field, parts, n);
    r->marks[ix] |= NEVER;
}

/* ---- failures ---- */

/* The step may fail, and the plan goes on. */
static bool lets_go_on(const struct plan_step *s)
{
    const struct step_policy *p = &s->rules->policy;
    return p->on_failure == ON_FAILURE_CONTINUE || p->on_failure == ON_FAILURE_REPLAN ||
           p->on_verify == ON_FAILURE_CONTINUE || p->on_verify == ON_FAILURE_REPLAN;
}

static bool has_mark(const struct reaching *r, uint32_t step, uint32_t mark)
{
    for (uint32_t i = 0; i < n_deps(r->plan, step); i++) {
        if ((r->marks[dep_at(r->plan, step, i)] & mark) != 0) {
            return true;
        }
    }
    return false;
}

/* A step that is skipped because one before it failed counts as failed, too. */
static void mark_failures(const struct reaching *r)
{
    bool more = true;
    for (uint32_t i = 0; i < r->plan->n_steps; i++) {
        r->marks[i] |=
            lets_go_on(&r->plan->steps[i]) || r->plan->steps[i].superseded ? MAY_FAIL : 0;
    }
    while (more) {
        more = false;
        for (uint32_t i = 0; i < r->plan->n_steps; i++) {
            if ((r->marks[i] & MAY_FAIL) == 0 && step_needs_success(r->plan, i) &&
                has_mark(r, i, MAY_FAIL)) {
                r->marks[i] |= MAY_FAIL;
                more = true;
            }
        }
    }
}

static void without_failures(const struct reaching *r, uint32_t ix)
{
    const struct str parts[] = {
        STR_LIT("failure: it never runs, because no step before it can fail and let the plan go "
                "on; give one of them onFailure: continue")};
    if (r->plan->steps[ix].rules->policy.run_if == RUN_IF_FAILURE && n_deps(r->plan, ix) > 0 &&
        !has_mark(r, ix, MAY_FAIL)) {
        warn(r, ix, "runIf", parts, 1);
    }
}

/* ---- conditions ---- */

static bool excludes_itself(struct reaching *r, uint32_t ix)
{
    struct exclusion why;
    if (!conditions_exclude(r->plan, &ix, 1, &r->budget, &why)) {
        return false;
    }
    if (why.failed.len > 0) {
        const struct str parts[] = {STR_LIT("is never true: the step runs only after \""),
                                    why.failed,
                                    STR_LIT("\" did not fail; give it runIf: always or failure")};
        warn(r, ix, "when", parts, 3);
    } else {
        const struct str parts[] = {STR_LIT("is never true: "), str_from(why.why)};
        warn(r, ix, "when", parts, 2);
    }
    return true;
}

/* The step, one before it, and those before that one that have to complete, too. */
static uint32_t line_of(const struct plan *p, uint32_t ix, uint32_t dep, uint32_t *ret)
{
    uint32_t n = 0;
    ret[n++] = ix;
    for (uint32_t at = dep; n < EXCLUDE_CHAIN_MAX; at = dep_at(p, at, 0)) {
        const struct plan_step *s = &p->steps[at];
        if (s->superseded || s->rules->policy.on_failure == ON_FAILURE_SKIP) {
            break; /* counts as completed without its condition */
        }
        ret[n++] = at;
        if (!step_needs_success(p, at) || n_deps(p, at) != 1) {
            break;
        }
    }
    return n;
}

/* Each step before it excludes its condition: one of them has to complete. */
static void excluded_before(struct reaching *r, uint32_t ix)
{
    const struct plan *p = r->plan;
    struct exclusion why = {0};
    uint32_t line[EXCLUDE_CHAIN_MAX];
    uint32_t before = 0;
    if (!step_needs_success(p, ix) || n_deps(p, ix) == 0) {
        return;
    }
    for (uint32_t i = 0; i < n_deps(p, ix); i++) {
        struct exclusion one;
        const uint32_t n = line_of(p, ix, dep_at(p, ix, i), line);
        if (n == 1 || !conditions_exclude(p, line, n, &r->budget, &one)) {
            return;
        }
        why = i == 0 ? one : why;
        before = i == 0 ? line[1] : before;
    }
    const struct str parts[] = {STR_LIT("is never true after step \""), p->steps[before].step_id,
                                STR_LIT("\", before which it does not run"),
                                str_from(why.why[0] != '\0' ? ": " : ""), str_from(why.why)};
    warn(r, ix, "when", parts, 5);
}

/* ---- what comes after ---- */

static bool comes_after_never(const struct reaching *r, uint32_t ix)
{
    const uint32_t n = n_deps(r->plan, ix);
    uint32_t never = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t dep = dep_at(r->plan, ix, i);
        const bool passes = r->plan->steps[dep].rules->policy.on_failure == ON_FAILURE_SKIP;
        never += (r->marks[dep] & NEVER) != 0 && !passes ? 1 : 0;
    }
    return n > 0 && never == n;
}

static void mark_dependents(const struct reaching *r)
{
    bool more = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < r->plan->n_steps; i++) {
            if (r->plan->steps[i].superseded || (r->marks[i] & NEVER) != 0 ||
                !step_needs_success(r->plan, i) || !comes_after_never(r, i)) {
                continue;
            }
            const struct str parts[] = {STR_LIT("it never runs, because \""),
                                        r->plan->steps[dep_at(r->plan, i, 0)].step_id,
                                        STR_LIT("\" before it never runs")};
            warn(r, i, "dependsOn", parts, 3);
            more = true;
        }
    }
}

void plan_lint_reach(const struct plan *plan, uint32_t *marks, struct problems *problems)
{
    struct reaching r = {
        .plan = plan, .marks = marks, .problems = problems, .budget = EXCLUDE_PLAN_STEPS};
    mark_failures(&r);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].superseded) {
            continue;
        }
        without_failures(&r, i);
        if (plan->steps[i].rules->when.ptr != NULL && (marks[i] & NEVER) == 0 &&
            !excludes_itself(&r, i)) {
            excluded_before(&r, i);
        }
    }
    mark_dependents(&r);
    memset(marks, 0, plan->n_steps * sizeof marks[0]);
}
