#include "supervisor/core/run/context.h"

#include "supervisor/core/mutant.h"

struct chooser {
    const struct plan *plan;
    const struct run *run;
    const struct context_measure *measure;
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
    const uint64_t whole = s->result.id == 0 || s->result.len == 0
                               ? 0
                               : c->measure->text_bytes(c->measure->self, s->result);
    if (whole == 0) {
        c->seen++;
        return true;
    }
    const uint64_t most = c->plan->context_result;
    const uint64_t want = whole < most ? whole : most;
    const uint64_t bytes = want < c->left ? want : c->left;
    if (c->n == c->cap || bytes == 0 || (bytes < want && bytes < CONTEXT_CUT_MIN)) {
        return false;
    }
    c->picks[c->n++] = (struct context_pick){step, s->result, (uint32_t)bytes, whole};
    c->left -= bytes;
    c->seen++;
    return true;
}

static void reverse_picks(struct context_pick *picks, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        const struct context_pick swap = picks[i];
        picks[i] = picks[n - 1 - i];
        picks[n - 1 - i] = swap;
    }
}

uint32_t context_deps(const struct plan *plan, uint32_t step, uint32_t *before,
                      const uint32_t **ret)
{
    const struct plan_step *of = &plan->steps[step];

    *before = step - 1;
    *ret = plan->chain ? before : plan->deps + of->deps_at;
    return plan->chain ? step > 0 : of->deps_n;
}

static uint32_t completed_of(const struct chooser *c, const uint32_t *deps, uint32_t deps_n)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < deps_n; i++) {
        n += c->run->steps[deps[i]].status == STEP_COMPLETED;
    }
    return n;
}

struct context_choice context_choose(const struct plan *plan, const struct run *run, uint32_t step,
                                     const struct context_measure *measure,
                                     struct context_pick *picks, uint32_t cap)
{
    const struct plan_step *of = &plan->steps[step];
    struct chooser c = {plan, run, measure, picks, cap, .left = plan->context_budget};
    uint32_t in_scope = 0;
    uint32_t before;
    const uint32_t *deps;
    const uint32_t deps_n = context_deps(plan, step, &before, &deps);
    if (of->rules->policy.scope == SCOPE_ALL || MUTANT(UNDECLARED_CONTEXT)) {
        for (uint32_t i = plan->n_steps; i > 0; i--) {
            if (!plan->steps[i - 1].superseded && !consider(&c, i - 1)) {
                break;
            }
        }
        in_scope = run->completed;
    } else if (of->rules->policy.scope == SCOPE_DEPS) {
        for (uint32_t i = deps_n; i > 0; i--) {
            if (!consider(&c, deps[i - 1])) {
                break;
            }
        }
        in_scope = completed_of(&c, deps, deps_n);
    }
    reverse_picks(picks, c.n);
    return (struct context_choice){.n = c.n, .omitted = in_scope > c.seen ? in_scope - c.seen : 0};
}

struct finder {
    const struct plan *plan;
    const struct run *run;
    uint32_t *to; /* newest first while finding */
    uint32_t cap, n, all;
};

static void add_not_completed(struct finder *f, uint32_t step)
{
    const enum step_status status = (enum step_status)f->run->steps[step].status;

    if (f->plan->steps[step].superseded || !step_is_final(status) || status == STEP_COMPLETED) {
        return;
    }
    f->all++;
    if (f->n < f->cap) {
        f->to[f->n++] = step;
    }
}

uint32_t context_not_completed(const struct plan *plan, const struct run *run, uint32_t step,
                               uint32_t *ret, uint32_t cap, uint32_t *ret_all)
{
    const struct plan_step *of = &plan->steps[step];
    struct finder f = {plan, run, ret, cap, 0, 0};
    uint32_t before;
    const uint32_t *deps;
    const uint32_t deps_n = context_deps(plan, step, &before, &deps);

    if (run->failed + run->skipped + run->cancelled == 0) {
        /* the usual case costs nothing */
    } else if (of->rules->policy.scope == SCOPE_ALL) {
        for (uint32_t i = plan->n_steps; i > 0; i--) {
            add_not_completed(&f, i - 1);
        }
    } else if (of->rules->policy.scope == SCOPE_DEPS) {
        for (uint32_t i = deps_n; i > 0; i--) {
            add_not_completed(&f, deps[i - 1]);
        }
    }
    for (uint32_t i = 0; i < f.n / 2; i++) {
        const uint32_t swap = ret[i];
        ret[i] = ret[f.n - 1 - i];
        ret[f.n - 1 - i] = swap;
    }
    *ret_all = f.all;
    return f.n;
}
