/* Names, delays and the reverse edges of a plan. */
#include "supervisor/core/plan/plan.h"

#include "protocol/base/assert.h"

const char *on_failure_name(enum on_failure v)
{
    static const char *const names[] = {
        [ON_FAILURE_ABORT] = "abort",       [ON_FAILURE_SKIP] = "skip",
        [ON_FAILURE_CONTINUE] = "continue", [ON_FAILURE_RETRY] = "retry",
        [ON_FAILURE_REPLAN] = "replan",     [ON_FAILURE_ASK] = "ask",
    };
    _Static_assert(sizeof names / sizeof names[0] == ON_FAILURE_COUNT, "a name for each");
    ASSERT((unsigned)v < ON_FAILURE_COUNT);
    return names[v];
}

const char *step_type_name(enum step_type v)
{
    static const char *const names[] = {
        [STEP_TYPE_TASK] = "task", [STEP_TYPE_REVIEW] = "human_review",
        [STEP_TYPE_WAIT] = "wait", [STEP_TYPE_SYNTHESIS] = "synthesis_gate",
        [STEP_TYPE_PLAN] = "plan",
    };
    _Static_assert(sizeof names / sizeof names[0] == STEP_TYPE_COUNT, "a name for each");
    ASSERT((unsigned)v < STEP_TYPE_COUNT);
    return names[v];
}

const char *effects_name(enum effects v)
{
    static const char *const names[] = {
        [EFFECTS_NONE] = "none",
        [EFFECTS_IDEMPOTENT] = "idempotent",
        [EFFECTS_UNSAFE] = "unsafe",
    };
    _Static_assert(sizeof names / sizeof names[0] == EFFECTS_COUNT, "a name for each");
    ASSERT((unsigned)v < EFFECTS_COUNT);
    return names[v];
}

const char *context_scope_name(enum context_scope v)
{
    static const char *const names[] = {
        [SCOPE_ALL] = "all",
        [SCOPE_DEPS] = "deps",
        [SCOPE_NONE] = "none",
    };
    _Static_assert(sizeof names / sizeof names[0] == SCOPE_COUNT, "a name for each");
    ASSERT((unsigned)v < SCOPE_COUNT);
    return names[v];
}

const char *run_if_name(enum run_if v)
{
    static const char *const names[] = {
        [RUN_IF_SUCCESS] = "success",
        [RUN_IF_ALWAYS] = "always",
        [RUN_IF_FAILURE] = "failure",
    };
    _Static_assert(sizeof names / sizeof names[0] == RUN_IF_COUNT, "a name for each");
    ASSERT((unsigned)v < RUN_IF_COUNT);
    return names[v];
}

const char *key_overlap_name(enum key_overlap v)
{
    static const char *const names[] = {
        [KEY_QUEUE] = "queue",
        [KEY_SKIP] = "skip",
        [KEY_CANCEL] = "cancel",
    };
    _Static_assert(sizeof names / sizeof names[0] == KEY_OVERLAP_COUNT, "a name for each");
    ASSERT((unsigned)v < KEY_OVERLAP_COUNT);
    return names[v];
}

const char *wait_for_name(enum wait_for v)
{
    static const char *const names[] = {
        [WAIT_FOR_TIME] = "timer",
        [WAIT_FOR_DATE] = "until",
        [WAIT_FOR_SIGNAL] = "signal",
    };
    _Static_assert(sizeof names / sizeof names[0] == WAIT_FOR_COUNT, "a name for each");
    ASSERT((unsigned)v < WAIT_FOR_COUNT);
    return names[v];
}

const char *backoff_kind_name(enum backoff_kind v)
{
    static const char *const names[] = {
        [BACKOFF_LINEAR] = "linear",
        [BACKOFF_EXPONENTIAL] = "exponential",
        [BACKOFF_FIXED] = "fixed",
    };
    _Static_assert(sizeof names / sizeof names[0] == BACKOFF_COUNT, "a name for each");
    ASSERT((unsigned)v < BACKOFF_COUNT);
    return names[v];
}

const char *job_kind_name(enum job_kind v)
{
    static const char *const names[] = {
        [JOB_NONE] = "",
        [JOB_PLANNING] = "planning",
        [JOB_SYNTHESIS] = "synthesis",
        [JOB_COMPENSATION] = "compensation",
        [JOB_CONVERSE] = "converse",
        [JOB_SUMMARY] = "digest",
    };
    _Static_assert(sizeof names / sizeof names[0] == JOB_KIND_COUNT, "a name for each");
    ASSERT((unsigned)v < JOB_KIND_COUNT);
    return names[v];
}

const char *on_invalid_name(enum on_invalid v)
{
    static const char *const names[] = {
        [ON_INVALID_FAIL] = "fail",
        [ON_INVALID_SYNTHESIZE] = "synthesize",
        [ON_INVALID_INTERRUPT] = "interrupt",
    };
    _Static_assert(sizeof names / sizeof names[0] == ON_INVALID_COUNT, "a name for each");
    ASSERT((unsigned)v < ON_INVALID_COUNT);
    return names[v];
}

/* v * permille / 1000, at most cap; no product overflows. */
static msec scale(msec v, uint32_t permille, msec cap)
{
    const msec whole = v / 1000;
    if (permille != 0 && whole > (MSEC_NEVER / 2) / permille) {
        return cap;
    }
    const msec scaled = whole * permille + v % 1000 * permille / 1000;
    return scaled < cap ? scaled : cap;
}

static msec delay_without_jitter(const struct backoff *b, uint32_t n)
{
    switch (b->kind) {
    case BACKOFF_LINEAR:
        return b->initial_ms != 0 && n > b->max_ms / b->initial_ms ? b->max_ms : b->initial_ms * n;
    case BACKOFF_EXPONENTIAL: {
        msec delay = b->initial_ms < b->max_ms ? b->initial_ms : b->max_ms;
        for (uint32_t i = 1; i < n && delay < b->max_ms; i++) {
            const msec next = scale(delay, b->multiplier_permille, b->max_ms);
            if (next == delay) {
                break;
            }
            delay = next;
        }
        return delay;
    }
    case BACKOFF_FIXED:
        return b->initial_ms;
    case BACKOFF_COUNT:
        break;
    }
    ASSERT(!"a backoff kind");
    return 0;
}

msec backoff_delay(const struct backoff *b, uint32_t failed_attempt, uint32_t random)
{
    ASSERT(failed_attempt >= 1);
    msec delay = delay_without_jitter(b, failed_attempt);
    delay = delay < b->max_ms ? delay : b->max_ms;
    if (b->jitter_permille != 0) {
        const msec most = scale(delay, b->jitter_permille, MSEC_NEVER / 4);
        delay = msec_add(delay, random % (most + 1));
    }
    return delay;
}

void plan_link(struct plan *p)
{
    /* Counting sort by dependency: the dependents of a step are in step order. */
    for (uint32_t s = 0; s < p->n_steps; s++) {
        p->steps[s].dependents_n = 0;
    }
    for (uint32_t e = 0; e < p->n_edges; e++) {
        ASSERT(p->deps[e] < p->n_steps);
        p->steps[p->deps[e]].dependents_n++;
    }
    uint32_t at = 0;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        p->steps[s].dependents_at = at;
        at += p->steps[s].dependents_n;
        p->steps[s].dependents_n = 0;
    }
    ASSERT(at == p->n_edges);
    for (uint32_t s = 0; s < p->n_steps; s++) {
        for (uint32_t d = 0; d < p->steps[s].deps_n; d++) {
            struct plan_step *dep = &p->steps[p->deps[p->steps[s].deps_at + d]];
            p->dependents[dep->dependents_at + dep->dependents_n++] = s;
        }
    }
}

static bool agents_add(struct plan_agents *a, struct str id, uint32_t agent)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i] == agent) {
            return true;
        }
    }
    if (a->n == LIMIT_PLAN_AGENTS) {
        return false;
    }
    a->ids[a->n] = id;
    a->at[a->n++] = agent;
    return true;
}

bool plan_agents_collect(struct plan *p)
{
    struct plan_agents *a = &p->agents;
    bool fits = true;
    for (uint32_t i = 0; i < p->n_steps && fits; i++) {
        const struct plan_step *s = &p->steps[i];
        fits = (s->agent == AGENT_NONE || agents_add(a, s->agent_id, s->agent)) &&
               (s->rules->gate_with.len == 0 ||
                agents_add(a, s->rules->gate_with, s->rules->gate_agent)) &&
               (s->rules->verify_with.len == 0 ||
                agents_add(a, s->rules->verify_with, s->rules->verify_agent));
    }
    return fits &&
           (p->replan.agent_id.len == 0 || agents_add(a, p->replan.agent_id, p->replan.agent)) &&
           (p->search_with.len == 0 || agents_add(a, p->search_with, p->search_agent));
}

uint32_t plan_agent_find(const struct plan *p, uint32_t agent)
{
    for (uint32_t i = 0; i < p->agents.n; i++) {
        if (p->agents.at[i] == agent) {
            return i;
        }
    }
    return UINT32_MAX;
}

bool plan_step_same_work(const struct plan_step *a, const struct plan_step *b)
{
    const struct str one = {(const char *)a->parameters.ptr, a->parameters.len};
    const struct str other = {(const char *)b->parameters.ptr, b->parameters.len};
    return (a->task.len > 0 || one.len > 0) && str_eq(a->agent_id, b->agent_id) &&
           str_eq(a->skill, b->skill) && str_eq(a->task, b->task) && str_eq(one, other);
}

uint32_t plan_step_find(const struct plan *p, struct str step_id)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        if (str_eq(p->steps[s].step_id, step_id)) {
            if (!p->steps[s].superseded) {
                return s;
            }
            found = s;
        }
    }
    return found;
}
