/* The policy of a plan and of its steps. Private to this folder. */
#ifndef PLAN_POLICY_INTERNAL_H
#define PLAN_POLICY_INTERNAL_H

#include "supervisor/plan/about.h"
#include "supervisor/plan/fields_internal.h"
#include "supervisor/plan/read.h"

/* The longest timeout or delay: 2^31 - 1 ms, 24.8 days. A longer one is a mistake. */
#define POLICY_MS_MAX 2147483647u
/* The longest wait of a step that waits: ten years. */
#define WAIT_MS_MAX (UINT64_C(3660) * 86400 * 1000)
/* Of a budget or an estimate: sums over all steps and attempts of a plan fit into 64 bits. */
#define AMOUNT_MAX (UINT64_C(1) << 40)

enum { REPLANS_STEP_MAX = 100, REPLANS_TOTAL_MAX = LIMIT_REVISIONS - 1 };

/* The fields of both plan and step (common_fields.def): the first fields of either table. */
enum common_field {
    COM_ON_FAILURE,
    COM_ON_VERIFY,
    COM_CRITICAL,
    COM_RETRIES,
    COM_BACKOFF,
    COM_RETRY_ON,
    COM_NO_RETRY,
    COM_IDLE,
    COM_QUEUE,
    COM_AGENT_WAIT,
    COM_STEP_LIMIT,
    COM_APPROVAL_TIMEOUT,
    COM_CHECK_TIMEOUT,
    COM_APPROVAL,
    COM_ESTIMATE,
    COM_GATE,
    COM_VERIFY_WITH,
    COM_FALLBACKS,
    COM_SCOPE,
    COM_COUNT
};

/* A reference to an agent in a document: by its id, by a skill, or none. */
struct agent_ref {
    bool given;
    struct str agent_id; /* both empty: no agent is wanted */
    struct str skill;
};

/* Names that were already reported, for the tables of one plan. */
struct policy_reported {
    struct fields_reported policy, backoff, ref, replan, amounts, synthesis, wait;
    struct fields_unknown unknown;
};

/*
 * The policy of a plan. struct plan.policy points to it as long as the plan lives: new steps of a
 * later revision use it, and plan_write writes it.
 */
struct plan_policy {
    struct step_policy step; /* of a step without its own values; effects are the card's */
    bool scope_given;
    bool concurrency_given;
    uint32_t max_concurrency;
    msec plan_timeout_ms;
    uint32_t context_budget;
    uint32_t context_result;
    uint32_t max_fallbacks;
    uint32_t max_handoffs;
    msec max_pause_ms;
    bool handback;
    bool signoff;
    uint32_t priority;
    struct str key; /* the plan's concurrencyKey; empty = none */
    enum key_overlap overlap;
    bool overlap_given;
    enum undo_policy undo;
    bool wait_for_agents; /* that are not known yet */
    uint64_t budget_tokens, budget_micros;
    struct replan_policy replan; /* agent_id: see `replanner` */
    msec planner_timeout_ms;
    enum on_invalid on_invalid;
    struct synthesis_choice synthesis;
    bool synthesis_given; /* the plan chose it, not the configuration: its agent must exist */
    struct plan_about about;
    struct plan_job job;
    struct agent_ref gate, verifier, replanner, searcher;
    struct doc permitted;             /* globs of agents; absent = all */
    struct doc fallbacks, handoff_to; /* lists of ids as given; often absent */
    /* Ids, resolved by agent_refs.c: */
    struct str gate_with, verify_with;
    struct str *fallback_ids;
    uint32_t n_fallback_ids;
};

/* The names of the fields of a policy. */
extern const struct field_names plan_policy_names;
void plan_policy_init(struct plan_policy *p, const struct plan_defaults *defaults);
/* Reads a `policy` map over *io, field by field. */
void plan_policy_read(struct doc policy, struct problems *problems,
                      struct policy_reported *reported, struct plan_policy *io);

/*
 * policy_values.c: the values of COM_* except gate, verifyWith, fallbackAgents and contextScope. An
 * absent or wrong value leaves *io unchanged.
 */
void policy_common(const struct location *at, const struct doc *values,
                   struct policy_reported *reported, struct step_policy *io);
void policy_timeout(const struct location *at, const char *field, struct doc v, msec *io);
void policy_scope(const struct location *at, struct doc v, enum context_scope *io, bool *given);
/* {tokens, costMicros}. */
void policy_amounts(const struct location *at, const char *field, struct doc v,
                    struct policy_reported *reported, uint64_t *io_tokens, uint64_t *io_micros);
/*
 * "agent", {agentId | skill}, false; true means an agent with `skill`, where that is not empty. A
 * map that names nobody keeps *io, or means the skill when *io is empty. *io_closed (may be NULL)
 * gets failClosed or the negation of failOpen.
 */
void policy_agent_ref(const struct location *at, const char *field, struct doc v, const char *skill,
                      struct policy_reported *reported, struct agent_ref *io, bool *io_closed);
/* phases.c: plannerTimeoutMs, onInvalidPlan and synthesis. */
void policy_phases(const struct location *at, struct doc timeout, struct doc on_invalid,
                   struct doc synthesis, struct policy_reported *reported, struct plan_policy *io);
/* A concurrencyKey; false: there is none, or none that is right. */
bool policy_key(const struct location *at, struct doc v, struct str *io);
/* The location one level down; its prefix is written to mem. */
struct location location_below(const struct location *at, const char *field, char mem[96]);
#endif
