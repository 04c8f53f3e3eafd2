#include "supervisor/plan/flow/reach.h"

#include "supervisor/plan/flow/condition_internal.h"

/* Whether the plan goes on after the failure of some step. */
static bool goes_on(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct step_policy *p = &plan->steps[i].policy;
        if (p->on_failure == ON_FAILURE_CONTINUE || p->on_verify == ON_FAILURE_CONTINUE) {
            return true;
        }
    }
    return false;
}

static bool is_bad_end(struct str status)
{
    return str_is(status, "failed") || str_is(status, "cancelled");
}

/* A member of the condition wants that the step failed. */
static bool wants_failure(struct doc tests)
{
    const struct doc eq = doc_head(tests).kind == DOC_MAP ? doc_get(tests, STR_LIT("eq")) : tests;
    return is_bad_end(doc_string(eq));
}

static struct str find_in(struct doc when)
{
    struct members m = members_of(when);
    struct str key;
    struct doc value;
    struct condition_ref ref;
    while (member_next(&m, &key, &value)) {
        if (condition_ref_read(key, &ref) && ref.kind == CONDITION_STATUS && wants_failure(value)) {
            return ref.name;
        }
    }
    return (struct str){NULL, 0};
}

/* The step that has to have failed for the condition to be true; empty = none. Alternatives and
 * negations are not looked into. */
static struct str failed_step(struct doc when)
{
    const struct doc all = doc_get(when, STR_LIT("all"));
    struct str found = find_in(when);
    for (uint32_t i = 0; found.ptr == NULL && i < doc_head(all).n && all.ptr != NULL; i++) {
        found = find_in(doc_at(all, i));
    }
    return found;
}

static void warn(struct problems *problems, const struct plan_step *step, uint32_t ix,
                 const char *field, const struct str *parts, uint32_t n)
{
    problem_put(problems, PROBLEM_STYLE, true, step, ix, field, parts, n);
}

void plan_lint_reach(const struct plan *plan, struct problems *problems)
{
    const bool continues = goes_on(plan);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct plan_step *s = &plan->steps[i];
        const bool loose = plan->chain || s->after_any_end;
        if (s->superseded) {
            continue;
        }
        if (s->policy.run_if == RUN_IF_FAILURE && !continues) {
            const struct str parts[] = {
                STR_LIT("failure: it never runs, because a step that fails stops this plan; give "
                        "the steps before it onFailure: continue")};
            warn(problems, s, i, "runIf", parts, 1);
        }
        if (s->when.ptr != NULL && s->policy.run_if == RUN_IF_SUCCESS && !loose) {
            const struct str failed = failed_step(s->when);
            const struct str parts[] = {
                STR_LIT("is never true: the step runs only after \""), failed,
                STR_LIT("\" did not fail; give it runIf: always or failure")};
            if (failed.ptr != NULL) {
                warn(problems, s, i, "when", parts, 3);
            }
        }
    }
}
