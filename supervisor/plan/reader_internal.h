/* One reading of one plan document. Private to this folder; the parts are plan_find, plan_step,
 * plan_edges, plan_who, plan_schema, plan_write. */
#ifndef PLAN_READER_INTERNAL_H
#define PLAN_READER_INTERNAL_H

#include "protocol/base/buf.h"
#include "supervisor/plan/about.h"
#include "supervisor/plan/policy_internal.h"

/* What a document that changes a plan says besides its steps (plan_revise). */
struct plan_change {
    struct doc reuse;
    struct str after, before, step;
};

struct plan_reader {
    const struct plan_request *request;
    const struct registry *registry; /* for indexes only when `canonical` */
    bool canonical;
    bool granted_only;          /* agents must stand in plan->agents: a replan */
    bool untrusted;             /* an agent made it: what the plan's policy demands stays */
    struct plan_change *change; /* NULL when a whole plan is read */
    struct arena *arena;        /* what the plan keeps */
    struct arena scratch;       /* what only the reading needs */
    struct problems *problems;
    struct bt_error *err;
    struct plan *plan;
    struct plan_policy *policy; /* in the arena */
    struct policy_reported reported;
    struct fields_reported reported_plan, reported_step;
    uint32_t first;         /* rows before it came with earlier revisions */
    struct doc *steps;      /* as found: those of the rows from `first` */
    struct doc *phase_deps; /* dependencies of the phase that the step was in; absent mostly */
    struct doc grants;      /* as found */
    const struct plan_pending *planner; /* a pending plan is made; who is to plan it */
    struct doc pending;                 /* the request's, kept as long as the plan */
    bool any_deps;                      /* a dependency field stands somewhere: not a chain */
    bool after_any_end;                 /* of steps that do not say */
    struct buf dep_names;               /* struct str, plan->n_edges of them */
    struct buf texts;                   /* struct plan_text */
    struct buf fallbacks;     /* struct str, plan->n_alternatives of them, grouped by step */
    uint8_t *gate_given;      /* per row: the step said itself whether it has a gate */
    uint32_t choices;         /* steps whose skill was chosen for them */
    uint32_t rejected_agents; /* agents for which plan->agents had no room */
};

/* One step while it is being read. */
enum {
    STEP_ID = COM_COUNT,
    STEP_TYPE,
    STEP_AGENT,
    STEP_SKILL,
    STEP_TASK,
    STEP_DEPS,
    STEP_PARAMETERS,
    STEP_VERIFY,
    STEP_TIMEOUT,
    STEP_EFFECTS,
    STEP_RUN_IF,
    STEP_AFTER_ANY_END,
    STEP_REVISION,
    STEP_SUPERSEDED,
    STEP_FIELD_COUNT
};

struct step_reader {
    struct plan_reader *r;
    struct plan_step *step;
    uint32_t ix;
    bool by_skill;   /* it named no agent, only a skill */
    bool gate_given; /* it said itself whether it has a gate */
    struct location at;
    struct doc values[STEP_FIELD_COUNT];
};

/* ---- plan_about.c: what a plan says of itself ---- */

/* As found; absent mostly. */
struct about_fields {
    struct doc description, reasoning, total_time, success_criteria, constraints, tokens, steps;
};
void plan_about_read(struct plan_reader *r, const struct about_fields *f);
/* The request's constraints win over the document's when there are any. */
BT_MUST_CHECK enum bt_code plan_about_constrain(struct plan_reader *r, const struct str *at,
                                                uint32_t n);

/* ---- plan_phases.c: planning, synthesis, jobs ---- */

/* `planning`, `job` and `dryRun`, which only documents of the supervisor have. */
void plan_phases_read(struct plan_reader *r, struct doc planning, struct doc job,
                      struct doc dry_run);
/* Who plans, and who writes the answer. */
BT_MUST_CHECK enum bt_code plan_phases_resolve(struct plan_reader *r);

/*
 * plan_find.c: the steps, goal, policy and so on, wherever they stand in the document. Fills steps,
 * phase_deps and plan->n_steps, the plan's texts and the policy.
 */
BT_MUST_CHECK enum bt_code plan_document_find(struct plan_reader *r, struct doc doc);
/* plan_read.c: what the reading needs, and gives back at its end. */
void plan_reader_init(struct plan_reader *r);
void plan_reader_done(struct plan_reader *r);
/* Reads the rows from `first`; settles what depends on all of them (scope, the plan's
 * gate); the error of the first problem. */
BT_MUST_CHECK enum bt_code plan_reader_steps(struct plan_reader *r);
void plan_reader_finish(struct plan_reader *r);
BT_MUST_CHECK enum bt_code plan_reader_reject(const struct plan_reader *r);
/* plan_step.c: reads step ix into plan->steps[ix]; its dependencies into dep_names, its templates
 * into texts. */
BT_MUST_CHECK enum bt_code plan_step_read(struct plan_reader *r, uint32_t ix);
/* plan_step_policy.c: what it says about how it is done, and who is asked about it. */
BT_MUST_CHECK enum bt_code plan_step_policy(struct step_reader *s);
/* The strings of a step's parameters that hold templates. */
BT_MUST_CHECK enum bt_code plan_step_texts(struct plan_reader *r, uint32_t ix);
/* plan_skill.c: the skill of a step that names only its agent; a warning says which was taken. */
BT_MUST_CHECK enum bt_code plan_skill_choose(struct plan_reader *r, struct plan_step *step,
                                             const struct location *at);
/* plan_read.c: which steps the request says will not run; NULL = none. */
const uint8_t *plan_reader_settled_steps(const struct plan_reader *r);
/* plan_schema.c: parameters against the skills' input schemas; verify is a schema. Rows from
 * `first`. */
BT_MUST_CHECK enum bt_code plan_schema_check(struct plan_reader *r);
/* plan_write.c: the canonical document. The plan must have a policy. */
BT_MUST_CHECK enum bt_code plan_write(const struct plan *plan, struct buf *out,
                                      struct bt_error *err);

/* ---- plan_who.c: agents by name ---- */

/* The first agent with the skill (see registry_agent_with_skill) that the plan may use. */
uint32_t plan_agent_with_skill(const struct plan_reader *r, struct str skill);
/* Whether the agent is known and granted; if not, a problem says so. */
bool plan_agent_check_known(struct plan_reader *r, const struct location *at, const char *field,
                            struct str agent_id);
/* Whether a replan may name the agent; if not, a problem says so. */
bool plan_agent_check_granted(struct plan_reader *r, const struct location *at, const char *field,
                              struct str agent_id);
/* Whether the agent may have the skill: its card says so, or has not come yet. */
bool plan_agent_has_skill(const struct plan_reader *r, struct str agent_id, struct str skill);
/* The id of who is meant; empty when nobody is, or when a problem says why not. The text lives as
 * long as the plan. */
BT_MUST_CHECK enum bt_code plan_agent_resolve(struct plan_reader *r, const struct location *at,
                                              const char *field, const struct agent_ref *ref,
                                              struct str *ret);
/* The ids of a list (or one alone) that plan_who_known; each once, at most cap of them. */
uint32_t plan_agent_read_list(struct plan_reader *r, const struct location *at, const char *field,
                              struct doc list, struct str *ret, uint32_t cap);
/* The plan's own words for all steps: gate, verifyWith, fallbackAgents. Before the steps. */
BT_MUST_CHECK enum bt_code plan_agent_read_policy(struct plan_reader *r);
/* plan_grants.c: the replanner, the search agent, and plan->agents with all the plan names; the
 * steps' alternatives out of `fallbacks`. After the steps. */
BT_MUST_CHECK enum bt_code plan_grants(struct plan_reader *r);
/* Room for plan->agents. */
BT_MUST_CHECK enum bt_code plan_grants_init(struct plan_reader *r);
/* Where the id stands in plan->agents; UINT32_MAX. */
uint32_t plan_grant_find(const struct plan *plan, struct str agent_id);

static inline enum bt_code reader_nomem(struct plan_reader *r)
{
    return err_set(r->err, BT_NOMEM, "out of memory for a plan");
}

static inline bool wants_replan(const struct step_policy *p)
{
    return p->on_failure == ON_FAILURE_REPLAN || p->on_verify == ON_FAILURE_REPLAN;
}
#endif
