/*
 * From a document (a plan file, plan.submit, a planner's answer, the journal) to a checked struct
 * plan. Lenient in what it takes (the aliases of C02 and F03), strict in what it keeps: every
 * normalisation is reported as a warning, everything that is wrong as a problem, all at once. The
 * plan format is described in the folder's README.
 *
 *   doc -> fields and aliases -> defaults -> plan_check -> plan_schema -> plan_link -> plan +
 * normalised document
 *
 * Deterministic: reading the normalised document again gives an equal plan.
 */
#ifndef PLANNER_PLAN_READ_H
#define PLANNER_PLAN_READ_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "registry/registry.h"
#include "supervisor/core/plan/plan.h"
#include "supervisor/core/plan/plan_check.h"

/* The agent that a configuration with a model starts: whom "llm" means. */
#define PLAN_ORCHESTRATOR "orchestrator"

/*
 * Who is wished for the answer of a plan as a whole: an agent by id, or (no id) the first that has
 * the skill, or (neither) nobody: the results are put one behind the other.
 */
struct synthesis_choice {
    struct str agent_id;
    struct str skill; /* empty = "synthesize" */
    msec timeout_ms;
    uint32_t max_retries; /* <= SYNTHESIS_RETRIES_MAX */
};
enum { SYNTHESIS_RETRIES_MAX = 10 };
/* "concat", "llm", "agent", "agent:<id>": sets agent_id and skill (borrowed of the name); false
 * for anything else. Configurations read theirs with it. */
bool synthesis_choice_named(struct str name, struct synthesis_choice *io);

/* Which job a plan is, and of whom. All empty: a plan like any other. */
struct plan_job {
    enum job_kind kind;
    struct str of;   /* a planId or a sessionId */
    struct str turn; /* of the session; may be empty */
};

/* Who is to make the steps of a plan that has none yet. */
struct plan_pending {
    struct str agent_id; /* empty = the first registered agent that has the skill */
    struct str skill;    /* empty = "plan" */
    uint32_t repairs;    /* answers that are no plan and are sent back with what is wrong */
};

/* What a plan gets that does not say otherwise. */
struct plan_defaults {
    struct step_policy step; /* scope and run_if_always are not used: a chain has SCOPE_ALL, a DAG
                                SCOPE_DEPS (C22) */
    msec plan_timeout_ms;
    uint32_t max_concurrency; /* of a plan with dependencies; a chain has 1 (C10) */
    uint32_t context_budget;
    uint32_t context_result;
    uint32_t max_fallbacks, max_handoffs;
    struct replan_policy replan; /* its numbers */
    msec planner_timeout_ms;
    enum on_invalid on_invalid;
    struct synthesis_choice synthesis; /* whoever is meant and is not there: nobody, in silence */
};

/* What holds when neither the plan nor the configuration names a value. */
struct plan_defaults plan_defaults_builtin(void);

struct plan_request {
    struct doc plan;
    struct doc
        policy; /* of plan.submit; wins over the plan's own policy, field by field; may be absent */
    const struct plan_defaults *defaults;
    const struct registry *registry; /* NULL = agents, skills and parameters are not checked */
    struct str goal;                 /* win over those in the document when not empty */
    struct str session_id;
    struct str planner;
    const struct str *constraints; /* win over the document's when there are any */
    uint32_t n_constraints;
    bool dry_run;       /* planned and checked, never run */
    bool own;           /* the supervisor made the document: its `job` counts, and neither are its
                           parameters checked (they come with each attempt) nor others asked about it */
    struct doc pending; /* the canonical document of the pending plan that `plan` answers: its goal,
                           session, planner, policy, constraints and grants hold. Absent mostly */
    bool trusted;       /* a person made the answer: its policy counts, too */
    const uint8_t *settled; /* per step of the document, n_settled of them: 1 = its result is known
                               and it will not run, so its agent, parameters and templates are not
                               checked. NULL = every step may run */
    uint32_t n_settled;
};

/*
 * Reads and checks. The document is one complete, guard-validated value. The plan and all its
 * strings live in the arena (copied: the document may go); plan_id is nil and revision 1 until the
 * owner sets them; step.agent is set when there is a registry. *normalised (may be NULL) gets the
 * canonical document appended. BT_OK: problems holds warnings at most. BT_INVALID: problems->errors
 * > 0 and err names the first; *ret is untouched. BT_NOMEM, BT_LIMIT otherwise.
 */
BT_MUST_CHECK enum bt_code plan_read_request(const struct plan_request *request,
                                             struct arena *arena, struct plan **ret,
                                             struct problems *problems, struct buf *normalised,
                                             struct bt_error *err);

/*
 * A plan without steps, whose steps an agent is to be asked for: request->goal, session_id,
 * planner, policy, constraints and dry_run say what it is, request->plan is not looked at. Its
 * canonical document holds all that (and who plans), so that plan_read_again gives it back, and
 * that the answer can be read with `pending`. The agent must be known and may plan; neither it nor
 * the synthesizer is thereby granted to steps. Otherwise as plan_read_request.
 */
BT_MUST_CHECK enum bt_code plan_read_pending(const struct plan_request *request,
                                             const struct plan_pending *planner,
                                             struct arena *arena, struct plan **ret,
                                             struct problems *problems, struct buf *normalised,
                                             struct bt_error *err);

/* Which job a canonical document is; borrows of it. */
void plan_job_of(struct doc document, struct plan_job *ret);

/* The same for a document that stands alone. */
BT_MUST_CHECK enum bt_code plan_read(struct doc doc, const struct plan_defaults *defaults,
                                     const struct registry *registry, struct arena *arena,
                                     struct plan **ret, struct problems *problems,
                                     struct buf *normalised, struct bt_error *err);

/*
 * Reads back what plan_read normalised, for recovery and for views: agents and skills may have gone
 * meanwhile and are not checked. Agents that the registry knows get their index in step.agent,
 * others REGISTRY_NONE (the owner adds them).
 */
BT_MUST_CHECK enum bt_code plan_read_again(struct doc normalised,
                                           const struct plan_defaults *defaults,
                                           const struct registry *registry, struct arena *arena,
                                           struct plan **ret, struct bt_error *err);

/*
 * Sets every registry index of the plan: of its agents (plan.agents.at), its steps, gates and
 * verifiers, the replanner and the search agent. Agents that the registry does not know are made
 * known. To be called on every plan that was read (plan_read*, plan_revise) before the core sees
 * it. BT_LIMIT when the registry is full; the plan may then hold indexes of some agents only.
 */
BT_MUST_CHECK enum bt_code plan_resolve(struct plan *plan, struct registry *registry, msec now,
                                        struct bt_error *err);
#endif
