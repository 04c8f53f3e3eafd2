/*
 * Reads a document (a plan file, plan.submit, a planner's answer, the journal) into a checked
 * struct plan. It accepts aliases (C02, F03) and reports each as a warning. It reports all errors
 * at once. protocol/PLANS.md describes the format.
 *
 *   document -> fields and aliases -> defaults -> plan_check -> plan_schema_check -> plan_link
 *
 * Deterministic: reading the canonical document gives an equal plan.
 */
#ifndef PLAN_READ_H
#define PLAN_READ_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "registry/registry.h"
#include "supervisor/core/plan/plan.h"
#include "supervisor/core/plan/plan_check.h"

/* The agent that a configuration with a model starts, and that "llm" means. */
#define PLAN_ORCHESTRATOR "orchestrator"

/*
 * The agent that writes the answer of a plan: by id; or, without an id, the first that has the
 * skill; or, with neither, none: the results are concatenated.
 */
struct synthesis_choice {
    struct str agent_id;
    struct str skill; /* empty = "synthesize" */
    msec timeout_ms;
    uint32_t max_retries; /* <= SYNTHESIS_RETRIES_MAX */
};
enum { SYNTHESIS_RETRIES_MAX = 10 };
/*
 * "concat", "llm", "agent", "agent:<id>": sets agent_id and skill, which borrow from the name.
 * False for any other name. The configuration uses it, too.
 */
bool synthesis_choice_named(struct str name, struct synthesis_choice *io);

/* The kind of job that a plan is. All empty: an ordinary plan. */
struct plan_job {
    enum job_kind kind;
    struct str of;   /* a planId or a sessionId */
    struct str turn; /* of the session; may be empty */
};

/* The agent that plans, for a plan without steps. */
struct plan_pending {
    struct str agent_id; /* empty = the first registered agent that has the skill */
    struct str skill;    /* empty = "plan" */
    uint32_t repairs;    /* answers without a valid plan that are sent back with their problems */
};

/* Values for what neither plan nor step sets. */
struct plan_defaults {
    struct step_policy step; /* scope and run_if are not used: a chain has SCOPE_ALL, a graph
                                SCOPE_DEPS (C22) */
    msec plan_timeout_ms;
    uint32_t max_concurrency; /* of a graph; a chain has 1 (C10) */
    uint32_t context_budget;
    uint32_t context_result;
    uint32_t max_fallbacks, max_handoffs;
    msec max_pause_ms;
    struct replan_policy replan; /* only its numbers */
    msec planner_timeout_ms;
    enum on_invalid on_invalid;
    struct synthesis_choice synthesis; /* an agent that does not exist is ignored */
};

/* The defaults of the tables in protocol/PLANS.md. */
struct plan_defaults plan_defaults_builtin(void);

struct plan_request {
    struct doc plan;
    /* Of plan.submit; wins over the plan's policy, field by field. May be absent. */
    struct doc policy;
    const struct plan_defaults *defaults;
    const struct registry *registry; /* NULL = agents, skills and parameters are not checked */
    /* These win over the document's when not empty. */
    struct str goal;
    struct str session_id;
    struct str planner;
    const struct str *constraints;
    uint32_t n_constraints;
    bool dry_run; /* the plan is made and checked, not run */
    /* The supervisor made the document: its `job` counts, its parameters (which come with each
     * attempt) are not checked, and no search agent or replanner is chosen for it. */
    bool own;
    /* The canonical document of the pending plan that `plan` answers. Its goal, session, planner,
     * policy, constraints and grants apply. Often absent. */
    struct doc pending;
    bool trusted; /* a person made the answer: its policy applies, too */
    bool lenient; /* unknown fields are warnings, as in the answer of an agent */
    /* Per step of the document, n_settled of them: 1 = its result is known and it will not run, so
     * its agent, parameters and templates are not checked. NULL = every step may run. */
    const uint8_t *settled;
    uint32_t n_settled;
    const struct child_of *child; /* the plan is a step's child; NULL = it is none */
    uint32_t depth;               /* it is the body of a step: how deep */
};

/*
 * Reads and checks one complete, validated document. The plan and all its strings are allocated in
 * the arena; the document may be freed. plan_id is nil and revision 1 until the owner sets them;
 * step.agent is set when there is a registry. *normalised (may be NULL) gets the canonical document
 * appended. BT_OK: problems has only warnings. BT_INVALID: problems->errors > 0, err names the
 * first, *ret is unchanged. BT_NOMEM, BT_LIMIT.
 */
BT_MUST_CHECK enum bt_code plan_read_request(const struct plan_request *request,
                                             struct arena *arena, struct plan **ret,
                                             struct problems *problems, struct buf *normalised,
                                             struct bt_error *err);

/*
 * A plan without steps, which an agent is to make. request->goal, session_id, planner, policy,
 * constraints and dry_run describe it; request->plan is not read. Its canonical document has all of
 * that and the planner, so plan_read_canonical restores it and `pending` can use it. The agent must
 * be known. Neither it nor the synthesizer may thereby do steps. Errors as plan_read_request.
 */
BT_MUST_CHECK enum bt_code plan_read_pending(const struct plan_request *request,
                                             const struct plan_pending *planner,
                                             struct arena *arena, struct plan **ret,
                                             struct problems *problems, struct buf *normalised,
                                             struct bt_error *err);

/* The job of a canonical document; borrows from it. */
void plan_job_of(struct doc document, struct plan_job *ret);

/* plan_read_request for a document without a request. */
BT_MUST_CHECK enum bt_code plan_read(struct doc doc, const struct plan_defaults *defaults,
                                     const struct registry *registry, struct arena *arena,
                                     struct plan **ret, struct problems *problems,
                                     struct buf *normalised, struct bt_error *err);

/*
 * Reads a canonical document, for recovery and for projections. Agents and skills are not checked:
 * they may have gone. Agents that the registry knows get their index in step.agent, others
 * REGISTRY_NONE, which the owner replaces. BT_INVALID, BT_NOMEM, BT_LIMIT.
 */
BT_MUST_CHECK enum bt_code plan_read_canonical(struct doc normalised,
                                               const struct plan_defaults *defaults,
                                               const struct registry *registry, struct arena *arena,
                                               struct plan **ret, struct bt_error *err);

/*
 * Sets every registry index of the plan: of its agents (plan.agents.at), steps, gates, verifiers,
 * the replanner and the search agent. Adds agents that the registry does not know. The owner calls
 * it after plan_read* and plan_revise, before the core gets the plan. BT_LIMIT when the registry is
 * full; some indexes may be set then.
 */
BT_MUST_CHECK enum bt_code plan_resolve(struct plan *plan, struct registry *registry, msec now,
                                        struct bt_error *err);
#endif
