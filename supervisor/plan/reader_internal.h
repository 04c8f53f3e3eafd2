/*
 * One reading of one plan document. Private to this folder: document.c, step.c, step_policy.c,
 * agent_refs.c, grants.c, schema_check.c and write.c are its parts.
 */
#ifndef PLAN_READER_INTERNAL_H
#define PLAN_READER_INTERNAL_H

#include "protocol/base/buf.h"
#include "supervisor/plan/about.h"
#include "supervisor/plan/flow/child.h"
#include "supervisor/plan/policy_internal.h"

/* Members of a document that changes a plan, besides its steps (plan_revise). */
struct plan_change {
    struct doc reuse;
    struct str after, before, step;
};

struct plan_reader {
    const struct plan_request *request;
    const struct registry *registry; /* only for indexes when `canonical` */
    bool canonical;
    bool granted_only;          /* agents must be in plan->agents: a replan */
    bool untrusted;             /* an agent made it: the requirements of the plan's policy stay */
    bool asks_planner;          /* while it looks for the planner, which policy.agents permits */
    struct plan_change *change; /* NULL when a whole plan is read */
    struct arena *arena;        /* memory of the plan */
    struct arena scratch;       /* memory of the reading */
    struct problems *problems;
    struct bt_error *err;
    struct plan *plan;
    struct plan_policy *policy; /* in the arena */
    struct policy_reported reported;
    struct fields_reported reported_plan, reported_step;
    uint32_t first;                     /* entries before it belong to earlier revisions */
    struct doc *steps;                  /* as found: those of the entries from `first` */
    struct doc *phase_deps;             /* dependencies of the step's phase; often absent */
    struct doc grants;                  /* as found */
    const struct plan_pending *planner; /* the planner of a pending plan that is being made */
    struct doc pending;                 /* the request's, kept as long as the plan */
    struct doc items;    /* of a child plan whose steps are made for each of them now */
    struct doc *item_of; /* and those of the entries from `first` */
    uint32_t *index_of;
    const struct plan_policy *base; /* the policy that the body of a step begins with; often NULL */
    bool outer;                     /* a body: it may name steps outside */
    uint32_t depth;                 /* of bodies in each other */
    struct str words[CHILD_WORDS_MAX]; /* that its templates may begin with */
    uint32_t n_words;
    struct buf below;         /* struct str: agents of the children of steps */
    bool any_deps;            /* some step has a dependency field: the plan is no chain */
    bool after_any_end;       /* the default of steps */
    struct buf dep_names;     /* struct str, plan->n_edges of them */
    struct buf texts;         /* struct plan_text */
    struct buf fallbacks;     /* struct str, plan->n_alternatives of them, grouped by step */
    uint8_t *gate_given;      /* per entry: the step itself has a `gate` */
    uint32_t choices;         /* steps whose skill was chosen by the words of the task */
    uint32_t rejected_agents; /* agents that plan->agents had no room for */
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
    STEP_SIGNATURE,
    STEP_TIMEOUT,
    STEP_EFFECTS,
    STEP_RUN_IF,
    STEP_WHEN,
    STEP_SWITCH,
    STEP_FOR_EACH,
    STEP_AS,
    STEP_MAX_ITEMS,
    STEP_ITEM_FAILURE,
    STEP_CONCURRENCY,
    STEP_GROUP,
    STEP_REPEAT,
    STEP_PLAN,
    STEP_CHILD,
    STEP_ITEM,
    STEP_INDEX,
    STEP_WAIT,
    STEP_KEY,
    STEP_COMPENSATE,
    STEP_TOOLS,
    STEP_AFTER_ANY_END,
    STEP_REVISION,
    STEP_SUPERSEDED,
    STEP_STATUS,
    STEP_FIELD_COUNT
};

struct step_reader {
    struct plan_reader *r;
    struct plan_step *step;
    uint32_t ix;
    bool by_skill;   /* it has no agentId, only a skill */
    bool gate_given; /* the step itself has a `gate` */
    struct location at;
    struct doc values[STEP_FIELD_COUNT];
    struct doc inner[STEP_FIELD_COUNT]; /* of a step with children: as given */
};

/* ---- about.c: description, constraints, estimates ---- */

/* The members as found; often absent. */
struct about_fields {
    struct doc description, reasoning, total_time, success_criteria, constraints, tokens, steps;
};
void plan_about_read(struct plan_reader *r, const struct about_fields *f);
/* Constraints of the request win over the document's when there are any. */
BT_MUST_CHECK enum bt_code plan_about_constrain(struct plan_reader *r, const struct str *at,
                                                uint32_t n);

/* ---- phases.c: planning, synthesis, jobs ---- */

/* `planning`, `job` and `dryRun`; only documents of the supervisor have them. */
void plan_phases_read(struct plan_reader *r, struct doc planning, struct doc job,
                      struct doc dry_run);
/* Resolves the planner and the synthesizer. */
BT_MUST_CHECK enum bt_code plan_phases_resolve(struct plan_reader *r);

/*
 * document.c: reads the top level. Fills steps, phase_deps, plan->n_steps, the plan's texts and the
 * policy.
 */
BT_MUST_CHECK enum bt_code plan_document_find(struct plan_reader *r, struct doc doc);
/* read.c: zeroed entries, each with rules of its own; NULL when out of memory. */
struct plan_step *plan_steps_alloc(struct arena *arena, size_t n);
/* read.c: initialises and releases the buffers of a reading. */
void plan_reader_init(struct plan_reader *r);
void plan_reader_done(struct plan_reader *r);
/*
 * Reads the entries from `first`; plan_reader_finish sets what depends on all of them (scope, the
 * plan's gate); plan_reader_reject returns the error of the first problem.
 */
BT_MUST_CHECK enum bt_code plan_reader_steps(struct plan_reader *r);
void plan_reader_finish(struct plan_reader *r);
BT_MUST_CHECK enum bt_code plan_reader_reject(const struct plan_reader *r);
/*
 * step.c: reads step ix into plan->steps[ix], its dependencies into dep_names, its templates into
 * texts.
 */
BT_MUST_CHECK enum bt_code plan_step_read(struct plan_reader *r, uint32_t ix);
/* step_policy.c: the policy, verification, gate and fallbacks of a step. */
BT_MUST_CHECK enum bt_code plan_step_policy(struct step_reader *s);
/* step_members.c: what a step of type wait waits for. */
BT_MUST_CHECK enum bt_code plan_step_wait(struct step_reader *s);
/* The step that undoes it. After plan_step_policy and its children. */
BT_MUST_CHECK enum bt_code plan_step_compensate(struct step_reader *s);
/* The tools that the agent of the step may call. */
void plan_step_tools(struct step_reader *s);
/* What it says about itself without a task, in mem (at least 128 bytes). */
struct str plan_wait_text(const struct plan_wait *w, char *mem, size_t size);
/* Whether steps that wait for the same signal have the same schema. */
BT_MUST_CHECK enum bt_code plan_waits_check(struct plan_reader *r);
/* step.c: adds the strings of a step's parameters that contain templates to texts. */
BT_MUST_CHECK enum bt_code plan_step_texts(struct plan_reader *r, uint32_t ix);
/* skill.c: chooses the skill of a step that has only an agent; a warning names the choice. */
BT_MUST_CHECK enum bt_code plan_skill_choose(struct plan_reader *r, struct plan_step *step,
                                             const struct location *at);
/* read.c: which steps the request marks as settled; NULL = none. */
const uint8_t *plan_reader_settled_steps(const struct plan_reader *r);
/*
 * schema_check.c: checks parameters against the skills' input schemas, and that verify is a schema,
 * for the entries from `first`.
 */
BT_MUST_CHECK enum bt_code plan_schema_check(struct plan_reader *r);
/* write.c: appends the canonical document. The plan must have a policy. */
BT_MUST_CHECK enum bt_code plan_write(const struct plan *plan, struct buf *out,
                                      struct bt_error *err);

/* The only step of the plan as the value of `compensate`: all but its name, every number. */
BT_MUST_CHECK enum bt_code plan_write_compensation(const struct plan *plan, struct buf *out,
                                                   struct bt_error *err);

/* ---- agent_refs.c: references to agents ---- */

/* The index of the first agent that has the skill and that the plan may use; REGISTRY_NONE. */
uint32_t plan_agent_with_skill(const struct plan_reader *r, struct str skill);
/* Whether the agent is known and granted; reports a problem if not. */
bool plan_agent_check_known(struct plan_reader *r, const struct location *at, const char *field,
                            struct str agent_id);
/* Whether policy.agents permits the agent; the other reports a problem if not. */
bool plan_agent_is_permitted(const struct plan_reader *r, struct str agent_id);
void plan_agent_check_permitted(struct plan_reader *r, const struct location *at,
                                struct str agent_id);
/* Whether a replan may name the agent; reports a problem if not. */
bool plan_agent_check_granted(struct plan_reader *r, const struct location *at, const char *field,
                              struct str agent_id);
/* Whether the agent may have the skill: its card has it, or there is no card yet. */
bool plan_agent_has_skill(const struct plan_reader *r, struct str agent_id, struct str skill);
/*
 * The id of the agent, valid as long as the plan. Empty when the reference is empty or after a
 * problem was reported.
 */
BT_MUST_CHECK enum bt_code plan_agent_resolve(struct plan_reader *r, const struct location *at,
                                              const char *field, const struct agent_ref *ref,
                                              struct str *ret);
/* The known ids of a list (or of one id alone): each once, at most cap of them. Returns their
 * number. */
uint32_t plan_agent_read_list(struct plan_reader *r, const struct location *at, const char *field,
                              struct doc list, struct str *ret, uint32_t cap);
/* Resolves gate, verifyWith and fallbackAgents of the plan's policy. Before the steps are read. */
BT_MUST_CHECK enum bt_code plan_agent_read_policy(struct plan_reader *r);
/*
 * grants.c: resolves the replanner and the search agent, fills plan->agents with all agents that
 * the plan names, and the steps' alternatives from `fallbacks`. After the steps are read.
 */
BT_MUST_CHECK enum bt_code plan_grants(struct plan_reader *r);
/* Allocates plan->agents. */
BT_MUST_CHECK enum bt_code plan_grants_init(struct plan_reader *r);
/* Room for the concurrency keys of the plan. */
BT_MUST_CHECK enum bt_code plan_keys_init(struct plan_reader *r);
/* The place of a step's key in plan.keys, plus 1; 0: there are too many. */
uint32_t plan_key_add(struct plan_reader *r, struct str name);
/* The index of the id in plan->agents; UINT32_MAX = not granted. */
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
