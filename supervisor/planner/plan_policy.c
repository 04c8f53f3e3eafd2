#include "supervisor/planner/plan_policy.h"

struct plan_defaults plan_defaults_builtin(void)
{
    return (struct plan_defaults){
        .step = {.max_retries = 2,
                 .backoff = {.kind = BACKOFF_LINEAR,
                             .initial_ms = 1000,
                             .multiplier_permille = 2000,
                             .max_ms = 30000},
                 .timeout_ms = 60000,
                 .on_failure = ON_FAILURE_ABORT,
                 .effects = EFFECTS_IDEMPOTENT},
        .plan_timeout_ms = 0,
        .max_concurrency = 5,
        .context_budget = 65536,
        .context_result = 5000,
    };
}

void plan_policy_init(struct plan_policy *p, const struct plan_defaults *defaults)
{
    *p = (struct plan_policy){.step = defaults->step,
                              .max_concurrency = defaults->max_concurrency,
                              .plan_timeout_ms = defaults->plan_timeout_ms,
                              .context_budget = defaults->context_budget,
                              .context_result = defaults->context_result};
    p->step.effects = EFFECTS_IDEMPOTENT;
    p->step.run_if_always = false;
}

/* ---- single values ---- */

void policy_on_failure(const struct place *at, const char *field, struct doc v, enum on_failure *io)
{
    static const char *const names[] = {"abort", "skip", "continue", "stop"};
    const struct str s = doc_string(v);
    uint32_t choice;
    if (s.ptr != NULL && (str_is(s, "retry") || str_is(s, "replan"))) {
        place_problem(at, PROBLEM_INVALID_FIELD, false, field,
                      "\"%.*s\" is not in this version; use abort, skip or continue (failed "
                      "attempts are repeated by maxRetries)",
                      STR_ARG(s));
    } else if (value_choice(at, field, v, names, 4, &choice)) {
        *io = choice == 3 ? ON_FAILURE_ABORT : (enum on_failure)choice;
    }
}

void policy_retries(const struct place *at, const char *field, struct doc v, uint32_t *io)
{
    uint64_t n;
    if (value_u64(at, field, v, 0, LIMIT_ATTEMPTS - 1, &n)) {
        *io = (uint32_t)n;
    }
}

void policy_timeout(const struct place *at, const char *field, struct doc v, msec *io)
{
    uint64_t n;
    if (value_u64(at, field, v, 0, POLICY_MS_MAX, &n)) {
        *io = n;
    }
}

void policy_scope(const struct place *at, const char *field, struct doc v, enum context_scope *io,
                  bool *given)
{
    static const char *const names[] = {"all", "deps", "none"};
    uint32_t choice;
    if (value_choice(at, field, v, names, 3, &choice)) {
        *io = (enum context_scope)choice;
        *given = true;
    }
}

enum { BACK_KIND, BACK_INITIAL, BACK_MULTIPLIER, BACK_MAX, BACK_JITTER, BACK_COUNT };
static const struct field_name backoff_names[] = {
    {"kind", BACK_KIND},
    {"type", BACK_KIND},
    {"initialMs", BACK_INITIAL},
    {"initial_ms", BACK_INITIAL},
    {"multiplier", BACK_MULTIPLIER},
    {"maxMs", BACK_MAX},
    {"max_ms", BACK_MAX},
    {"jitter", BACK_JITTER},
};

void policy_backoff(const struct place *at, struct doc v, struct policy_said *said,
                    struct backoff *io)
{
    static const char *const kinds[] = {"linear", "exponential", "fixed"};
    char prefix[96];
    struct place in = *at;
    struct doc values[BACK_COUNT] = {{NULL, 0}};
    const struct field_table table = {backoff_names, sizeof backoff_names / sizeof backoff_names[0],
                                      &said->backoff, &said->unknown};
    uint32_t kind = io->kind;
    if (v.ptr == NULL) {
        return;
    }
    if (doc_head(v).kind == DOC_STR) { /* "exponential" alone */
        values[BACK_KIND] = v;
    } else if (value_map(at, "backoff", v)) {
        size_t used = strlen(at->prefix);
        used = used < 64 ? used : 64;
        memcpy(prefix, at->prefix, used);
        memcpy(prefix + used, used == 0 ? "backoff" : ".backoff", used == 0 ? 8 : 9);
        in.prefix = prefix;
        fields_read(&table, v, &in, values);
    }
    if (value_choice(&in, "kind", values[BACK_KIND], kinds, 3, &kind)) {
        io->kind = (enum backoff_kind)kind;
    }
    policy_timeout(&in, "initialMs", values[BACK_INITIAL], &io->initial_ms);
    policy_timeout(&in, "maxMs", values[BACK_MAX], &io->max_ms);
    (void)value_permille(&in, "multiplier", values[BACK_MULTIPLIER], 1, 1000,
                         &io->multiplier_permille);
    (void)value_permille(&in, "jitter", values[BACK_JITTER], 0, 1, &io->jitter_permille);
}

/* ---- the plan's policy ---- */

enum {
    POL_ON_FAILURE,
    POL_CONTINUE,
    POL_RETRIES,
    POL_BACKOFF,
    POL_STEP_TIMEOUT,
    POL_PLAN_TIMEOUT,
    POL_CONCURRENCY,
    POL_SCOPE,
    POL_BUDGET,
    POL_RESULT,
    POL_COUNT
};
static const struct field_name policy_names[] = {
    {"onFailure", POL_ON_FAILURE},
    {"on_failure", POL_ON_FAILURE},
    {"continueOnFailure", POL_CONTINUE},
    {"continue_on_failure", POL_CONTINUE},
    {"maxRetries", POL_RETRIES},
    {"max_retries", POL_RETRIES},
    {"backoff", POL_BACKOFF},
    {"stepTimeoutMs", POL_STEP_TIMEOUT},
    {"step_timeout_ms", POL_STEP_TIMEOUT},
    {"planTimeoutMs", POL_PLAN_TIMEOUT},
    {"plan_timeout_ms", POL_PLAN_TIMEOUT},
    {"timeoutMs", POL_PLAN_TIMEOUT}, /* of the whole run in S000 */
    {"maxConcurrency", POL_CONCURRENCY},
    {"max_concurrency", POL_CONCURRENCY},
    {"contextScope", POL_SCOPE},
    {"context_scope", POL_SCOPE},
    {"contextBudgetBytes", POL_BUDGET},
    {"context_budget_bytes", POL_BUDGET},
    {"contextResultBytes", POL_RESULT},
    {"context_result_bytes", POL_RESULT},
};

/* M024: false = abort, true = continue. */
static void continue_on_failure(const struct place *at, const struct doc *values,
                                enum on_failure *io)
{
    bool go_on;
    if (!value_bool(at, "continueOnFailure", values[POL_CONTINUE], &go_on)) {
        return;
    }
    const enum on_failure wish = go_on ? ON_FAILURE_CONTINUE : ON_FAILURE_ABORT;
    if (values[POL_ON_FAILURE].ptr != NULL && wish != *io) {
        place_problem(at, PROBLEM_INVALID_FIELD, false, "continueOnFailure",
                      "says \"%s\" where onFailure says \"%s\"; give one of them",
                      on_failure_name(wish), on_failure_name(*io));
        return;
    }
    *io = wish;
}

static void read_u32(const struct place *at, const char *field, struct doc v, uint64_t min,
                     uint64_t max, uint32_t *io)
{
    uint64_t n;
    if (value_u64(at, field, v, min, max, &n)) {
        *io = (uint32_t)n;
    }
}

void plan_policy_read(struct doc policy, struct problems *problems, struct policy_said *said,
                      struct plan_policy *io)
{
    const struct place top = {.problems = problems, .prefix = ""};
    const struct place at = {.problems = problems, .prefix = "policy"};
    const struct field_table table = {policy_names, sizeof policy_names / sizeof policy_names[0],
                                      &said->policy, &said->unknown};
    struct doc values[POL_COUNT] = {{NULL, 0}};
    if (!value_map(&top, "policy", policy)) {
        return;
    }
    fields_read(&table, policy, &at, values);
    policy_on_failure(&at, "onFailure", values[POL_ON_FAILURE], &io->step.on_failure);
    continue_on_failure(&at, values, &io->step.on_failure);
    policy_retries(&at, "maxRetries", values[POL_RETRIES], &io->step.max_retries);
    policy_backoff(&at, values[POL_BACKOFF], said, &io->step.backoff);
    policy_timeout(&at, "stepTimeoutMs", values[POL_STEP_TIMEOUT], &io->step.timeout_ms);
    policy_timeout(&at, "planTimeoutMs", values[POL_PLAN_TIMEOUT], &io->plan_timeout_ms);
    policy_scope(&at, "contextScope", values[POL_SCOPE], &io->step.scope, &io->scope_given);
    read_u32(&at, "maxConcurrency", values[POL_CONCURRENCY], 1, LIMIT_STEPS, &io->max_concurrency);
    io->concurrency_given = io->concurrency_given || values[POL_CONCURRENCY].ptr != NULL;
    read_u32(&at, "contextBudgetBytes", values[POL_BUDGET], 0, LIMIT_RESULT_BYTES,
             &io->context_budget);
    read_u32(&at, "contextResultBytes", values[POL_RESULT], 0, LIMIT_RESULT_BYTES,
             &io->context_result);
}
