#include "supervisor/core/run/context.h"

#include "supervisor/core/mutant.h"

struct chooser {
    const struct plan *plan;
    const struct run *run;
    struct context_pick *picks; /* newest first while choosing */
    uint32_t cap;
    uint32_t n;
    uint32_t seen; /* completed steps examined and not left out */
    uint64_t left; /* of the budget */
};

/* False when the budget is spent: everything older is left out. */
static bool consider(struct chooser *c, uint32_t step)
{
    const struct run_step *s = &c->run->steps[step];
    if (s->status != STEP_COMPLETED) {
        return true;
    }
    if (s->result.id == 0 || s->result.len == 0) {
        c->seen++;
        return true;
    }
    const uint64_t most = c->plan->context_result;
    const uint64_t want = s->result.len < most ? s->result.len : most;
    const uint64_t bytes = want < c->left ? want : c->left;
    if (c->n == c->cap || bytes == 0 || (bytes < want && bytes < CONTEXT_CUT_MIN)) {
        return false;
    }
    c->picks[c->n++] = (struct context_pick){step, s->result, (uint32_t)bytes};
    c->left -= bytes;
    c->seen++;
    return true;
}

static void reverse(struct context_pick *picks, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        const struct context_pick swap = picks[i];
        picks[i] = picks[n - 1 - i];
        picks[n - 1 - i] = swap;
    }
}

static uint32_t completed_deps(const struct chooser *c, const struct plan_step *of)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < of->deps_n; i++) {
        n += c->run->steps[c->plan->deps[of->deps_at + i]].status == STEP_COMPLETED;
    }
    return n;
}

struct context_choice context_choose(const struct plan *plan, const struct run *run, uint32_t step,
                                     struct context_pick *picks, uint32_t cap)
{
    const struct plan_step *of = &plan->steps[step];
    struct chooser c = {plan, run, picks, cap, .left = plan->context_budget};
    uint32_t in_scope = 0;
    if (of->policy.scope == SCOPE_ALL || MUTANT(UNDECLARED_CONTEXT)) {
        for (uint32_t i = plan->n_steps; i > 0; i--) {
            if (!plan->steps[i - 1].superseded && !consider(&c, i - 1)) {
                break;
            }
        }
        in_scope = run->completed;
    } else if (of->policy.scope == SCOPE_DEPS) {
        for (uint32_t i = of->deps_n; i > 0; i--) {
            if (!consider(&c, plan->deps[of->deps_at + i - 1])) {
                break;
            }
        }
        in_scope = completed_deps(&c, of);
    }
    reverse(picks, c.n);
    return (struct context_choice){.n = c.n, .omitted = in_scope > c.seen ? in_scope - c.seen : 0};
}
