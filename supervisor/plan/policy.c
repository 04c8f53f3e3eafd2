/* The policy of a plan. */
#include "supervisor/plan/policy_internal.h"

struct plan_defaults plan_defaults_builtin(void)
{
    return (struct plan_defaults){
        .step = {.max_retries = 2,
                 .backoff = {.kind = BACKOFF_LINEAR,
                             .initial_ms = 1000,
                             .multiplier_permille = 2000,
                             .max_ms = 30000},
                 .timeout_ms = 60000,
                 .check_timeout_ms = 30000,
                 .on_failure = ON_FAILURE_ABORT,
                 .on_verify = ON_FAILURE_RETRY,
                 .effects = EFFECTS_IDEMPOTENT},
        .plan_timeout_ms = 0,
        .max_concurrency = 5,
        .context_budget = CONTEXT_BUDGET_BYTES,
        .context_result = CONTEXT_RESULT_BYTES,
        .max_fallbacks = 5,
        .max_handoffs = 5,
        .max_pause_ms = PLAN_MAX_PAUSE_MS,
        .replan = {.max_step = 3, .max_total = 5, .cooldown_ms = 1000, .timeout_ms = 30000},
        .planner_timeout_ms = 30000,
        .on_invalid = ON_INVALID_FAIL,
        .synthesis = {.timeout_ms = 60000, .max_retries = 1},
    };
}

void plan_policy_init(struct plan_policy *p, const struct plan_defaults *defaults)
{
    *p = (struct plan_policy){.step = defaults->step,
                              .priority = PLAN_PRIORITY,
                              .max_concurrency = defaults->max_concurrency,
                              .plan_timeout_ms = defaults->plan_timeout_ms,
                              .context_budget = defaults->context_budget,
                              .context_result = defaults->context_result,
                              .max_fallbacks = defaults->max_fallbacks,
                              .max_handoffs = defaults->max_handoffs,
                              .max_pause_ms = defaults->max_pause_ms,
                              .replan = defaults->replan,
                              .planner_timeout_ms = defaults->planner_timeout_ms,
                              .on_invalid = defaults->on_invalid,
                              .synthesis = defaults->synthesis};
    p->step.effects = EFFECTS_IDEMPOTENT;
    p->step.run_if = RUN_IF_SUCCESS;
    p->replan.agent_id = (struct str){NULL, 0};
    p->replan.agent = AGENT_NONE;
}

enum {
    POL_CONTINUE = COM_COUNT,
    POL_STEP_TIMEOUT,
    POL_PLAN_TIMEOUT,
    POL_CONCURRENCY,
    POL_CONTEXT_BUDGET,
    POL_CONTEXT_RESULT,
    POL_FALLBACKS_MAX,
    POL_HANDOFFS_MAX,
    POL_PAUSE_MAX,
    POL_HANDBACK,
    POL_HANDOFF_TO,
    POL_AGENTS,
    POL_WAIT_AGENTS,
    POL_SIGNOFF,
    POL_PRIORITY,
    POL_KEY,
    POL_OVERLAP,
    POL_COMPENSATE,
    POL_BUDGET,
    POL_REPLAN,
    POL_REPLANS_MAX,
    POL_REPLANS_STEP,
    POL_REPLAN_COOLDOWN,
    POL_SEARCH,
    POL_PLANNER_TIMEOUT,
    POL_ON_INVALID,
    POL_SYNTHESIS,
    POL_COUNT
};

static const struct field_name policy_names[] = {
#define FIELDS_COMMON
#define FIELDS_POLICY
#include "supervisor/plan/field_names.def"
};

const struct field_names plan_policy_names = {
    policy_names, sizeof policy_names / sizeof policy_names[0], "policy"};

/* M024: false = abort, true = continue. */
static void continue_on_failure(const struct location *at, const struct doc *values,
                                enum on_failure *io)
{
    bool go_on;
    if (!value_bool(at, "continueOnFailure", values[POL_CONTINUE], &go_on)) {
        return;
    }
    const enum on_failure choice = go_on ? ON_FAILURE_CONTINUE : ON_FAILURE_ABORT;
    if (values[COM_ON_FAILURE].ptr != NULL && choice != *io) {
        location_report(at, PROBLEM_INVALID_FIELD, false, "continueOnFailure",
                        "is \"%s\" where onFailure is \"%s\"; give one of them",
                        on_failure_name(choice), on_failure_name(*io));
        return;
    }
    *io = choice;
}

static void read_u32(const struct location *at, const char *field, struct doc v, uint64_t min,
                     uint64_t max, uint32_t *io)
{
    uint64_t n;
    if (value_u64(at, field, v, min, max, &n)) {
        *io = (uint32_t)n;
    }
}

/* ---- replanning ---- */

enum {
    REP_AGENT,
    REP_SKILL,
    REP_STEP,
    REP_TOTAL,
    REP_COOLDOWN,
    REP_TIMEOUT,
    REP_BUDGET,
    REP_COUNT
};
static const struct field_name replan_names[] = {
#define FIELDS_REPLAN
#include "supervisor/plan/field_names.def"
};

static void read_replan(const struct location *at, struct doc v, struct policy_reported *reported,
                        struct plan_policy *io)
{
    char prefix[96];
    const struct location in = location_below(at, "replan", prefix);
    struct doc values[REP_COUNT] = {{NULL, 0}};
    const struct field_table table = {replan_names, sizeof replan_names / sizeof replan_names[0],
                                      &reported->replan, &reported->unknown};
    struct replan_policy *r = &io->replan;
    if (v.ptr == NULL || doc_head(v).kind != DOC_MAP) {
        policy_agent_ref(at, "replan", v, "plan", reported, &io->replanner, NULL);
        return;
    }
    fields_read(&table, v, &in, values);
    struct agent_ref ref = {.given = true};
    const bool named = value_string(&in, "agentId", values[REP_AGENT], &ref.agent_id);
    if (value_string(&in, "skill", values[REP_SKILL], &ref.skill) || named) {
        io->replanner = ref;
    }
    read_u32(&in, "maxPerStep", values[REP_STEP], 0, REPLANS_STEP_MAX, &r->max_step);
    read_u32(&in, "maxTotal", values[REP_TOTAL], 0, REPLANS_TOTAL_MAX, &r->max_total);
    policy_timeout(&in, "cooldownMs", values[REP_COOLDOWN], &r->cooldown_ms);
    policy_timeout(&in, "timeoutMs", values[REP_TIMEOUT], &r->timeout_ms);
    policy_amounts(&in, "budget", values[REP_BUDGET], reported, &r->budget_tokens,
                   &r->budget_micros);
}

/* ---- entry points ---- */

static void read_limits(const struct location *at, const struct doc *values,
                        struct policy_reported *reported, struct plan_policy *io)
{
    policy_timeout(at, "planTimeoutMs", values[POL_PLAN_TIMEOUT], &io->plan_timeout_ms);
    read_u32(at, "maxConcurrency", values[POL_CONCURRENCY], 1, LIMIT_STEPS, &io->max_concurrency);
    io->concurrency_given = io->concurrency_given || values[POL_CONCURRENCY].ptr != NULL;
    read_u32(at, "contextBudgetBytes", values[POL_CONTEXT_BUDGET], 0, LIMIT_RESULT_BYTES,
             &io->context_budget);
    read_u32(at, "contextResultBytes", values[POL_CONTEXT_RESULT], 0, LIMIT_RESULT_BYTES,
             &io->context_result);
    read_u32(at, "maxFallbacks", values[POL_FALLBACKS_MAX], 0, 1000, &io->max_fallbacks);
    read_u32(at, "maxHandoffs", values[POL_HANDOFFS_MAX], 0, LIMIT_PLAN_AGENTS, &io->max_handoffs);
    (void)value_u64(at, "maxPauseMs", values[POL_PAUSE_MAX], 1, POLICY_MS_MAX, &io->max_pause_ms);
    policy_amounts(at, "budget", values[POL_BUDGET], reported, &io->budget_tokens,
                   &io->budget_micros);
    read_replan(at, values[POL_REPLAN], reported, io);
    read_u32(at, "maxReplans", values[POL_REPLANS_MAX], 0, REPLANS_TOTAL_MAX,
             &io->replan.max_total);
    read_u32(at, "maxReplansPerStep", values[POL_REPLANS_STEP], 0, REPLANS_STEP_MAX,
             &io->replan.max_step);
    policy_timeout(at, "replanCooldownMs", values[POL_REPLAN_COOLDOWN], &io->replan.cooldown_ms);
}

/* One glob or a list of them; a wrong one would permit what nobody meant. */
static void read_permitted(const struct location *at, struct doc v, struct doc *io)
{
    struct doc_cursor c = doc_cursor(v);
    struct doc_head head;
    bool ok = true;
    if (v.ptr == NULL || !doc_next(&c, &head)) {
        return;
    }
    const bool one = head.kind != DOC_ARRAY;
    const uint32_t n = one ? 1 : head.n;
    for (uint32_t i = 0; i < n && ok; i++) {
        struct str glob;
        ok = value_string(at, "agents", one ? v : doc_skip(&c), &glob);
        if (ok && (glob.len == 0 || glob.len > LIMIT_ID_BYTES)) {
            location_report(at, PROBLEM_INVALID_FIELD, false, "agents",
                            "expected agent ids of 1 to 64 bytes, or globs like \"file*\"");
            ok = false;
        }
    }
    if (n == 0 || n > LIMIT_PLAN_AGENTS) {
        location_report(at, PROBLEM_INVALID_FIELD, false, "agents",
                        n == 0 ? "permits no agent; leave it out, or name at least one"
                               : "has more entries than a plan may use agents");
        ok = false;
    }
    *io = ok ? v : *io;
}

bool policy_key(const struct location *at, struct doc v, struct str *io)
{
    struct str key;
    if (v.ptr == NULL || !value_string(at, "concurrencyKey", v, &key)) {
        return false;
    }
    if (key.len == 0 || key.len > LIMIT_ID_BYTES) {
        location_report(at, PROBLEM_INVALID_FIELD, false, "concurrencyKey",
                        "has %zu bytes; give a name of 1 to %u", key.len, (unsigned)LIMIT_ID_BYTES);
        return false;
    }
    for (size_t i = 0; i + 1 < key.len; i++) {
        if (key.ptr[i] == '{' && key.ptr[i + 1] == '{') {
            location_report(at, PROBLEM_INVALID_FIELD, false, "concurrencyKey",
                            "takes no template: give a name (a recipe may put an input there)");
            return false;
        }
    }
    *io = key;
    return true;
}

/* Which plan goes first, and which ones run at the same time. */
static void read_order(const struct location *at, const struct doc *values, struct plan_policy *io)
{
    static const char *const names[] = {"queue", "skip", "cancel"};
    uint32_t overlap = io->overlap;
    read_u32(at, "priority", values[POL_PRIORITY], 0, PLAN_PRIORITY_MAX, &io->priority);
    (void)policy_key(at, values[POL_KEY], &io->key);
    if (value_choice(at, "overlap", values[POL_OVERLAP], names, KEY_OVERLAP_COUNT, &overlap)) {
        io->overlap = (enum key_overlap)overlap;
        io->overlap_given = true;
    }
}

void plan_policy_read(struct doc policy, struct problems *problems,
                      struct policy_reported *reported, struct plan_policy *io)
{
    const struct location top = {.problems = problems, .prefix = ""};
    const struct location at = {.problems = problems, .prefix = "policy"};
    const struct field_table table = {policy_names, sizeof policy_names / sizeof policy_names[0],
                                      &reported->policy, &reported->unknown};
    struct doc values[POL_COUNT] = {{NULL, 0}};
    bool closed = !io->step.verify_open;
    bool undo = false;
    if (!value_map(&top, "policy", policy)) {
        return;
    }
    fields_read(&table, policy, &at, values);
    policy_common(&at, values, reported, &io->step);
    continue_on_failure(&at, values, &io->step.on_failure);
    policy_timeout(&at, "stepTimeoutMs", values[POL_STEP_TIMEOUT], &io->step.timeout_ms);
    policy_scope(&at, values[COM_SCOPE], &io->step.scope, &io->scope_given);
    read_limits(&at, values, reported, io);
    read_order(&at, values, io);
    (void)value_bool(&at, "handback", values[POL_HANDBACK], &io->handback);
    (void)value_bool(&at, "waitForAgents", values[POL_WAIT_AGENTS], &io->wait_for_agents);
    read_permitted(&at, values[POL_AGENTS], &io->permitted);
    (void)value_bool(&at, "signoff", values[POL_SIGNOFF], &io->signoff);
    if (value_bool(&at, "compensate", values[POL_COMPENSATE], &undo)) {
        io->undo = undo ? UNDO_ALWAYS : UNDO_NEVER;
    }
    policy_agent_ref(&at, "gate", values[COM_GATE], "gate", reported, &io->gate,
                     &io->step.gate_closed);
    policy_agent_ref(&at, "verifyWith", values[COM_VERIFY_WITH], "", reported, &io->verifier,
                     &closed);
    io->step.verify_open = !closed;
    policy_agent_ref(&at, "searchAgent", values[POL_SEARCH], "search", reported, &io->searcher,
                     NULL);
    policy_phases(&at, values[POL_PLANNER_TIMEOUT], values[POL_ON_INVALID], values[POL_SYNTHESIS],
                  reported, io);
    io->fallbacks = values[COM_FALLBACKS].ptr != NULL ? values[COM_FALLBACKS] : io->fallbacks;
    io->handoff_to = values[POL_HANDOFF_TO].ptr != NULL ? values[POL_HANDOFF_TO] : io->handoff_to;
}
