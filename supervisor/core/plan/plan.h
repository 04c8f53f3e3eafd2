/* A plan: one immutable revision of the steps, parsed once. Strings and documents are borrowed from
 * the owner's arena. plan/plan_read makes it; the core reads it. Pure. */
#ifndef CORE_PLAN_H
#define CORE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"
#include "protocol/base/str.h"
#include "protocol/base/uuid.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

/* Defaults for the bytes of injected results: of all results together, and of one. Several long
 * answers of models stay whole; all together are some 32,000 tokens. */
enum { CONTEXT_BUDGET_BYTES = 131072, CONTEXT_RESULT_BYTES = 65536 };
/* The default of max_pause_ms: five minutes outlast the windows of common rate limits (a minute).
 */
enum { PLAN_MAX_PAUSE_MS = 5 * 60 * 1000 };
enum { PLAN_PRIORITY_MAX = 9, PLAN_PRIORITY = 5 /* of a plan that names none */ };

/* What happens when a step will get no further attempt (C11, M025). */
enum on_failure {
    ON_FAILURE_ABORT, /* "stop": the plan fails */
    ON_FAILURE_SKIP,
    ON_FAILURE_CONTINUE,
    ON_FAILURE_RETRY,  /* every failure is retried up to max_retries, whatever its class; then ABORT
                        */
    ON_FAILURE_REPLAN, /* the replanner makes a new revision of the plan */
    ON_FAILURE_ASK,    /* a person decides: retry, skip or fail */
    ON_FAILURE_COUNT
};
enum step_type {
    STEP_TYPE_TASK,
    STEP_TYPE_REVIEW,    /* human_review: no agent; a person's approval completes it (M063) */
    STEP_TYPE_SYNTHESIS, /* synthesis_gate: combines the results before it (M062) */
    STEP_TYPE_PLAN,      /* no agent: a child plan does it (forEach, repeat, plan) */
    STEP_TYPE_WAIT,      /* wait: no agent; a time or a signal completes it */
    STEP_TYPE_COUNT
};
enum effects { EFFECTS_NONE, EFFECTS_IDEMPOTENT, EFFECTS_UNSAFE, EFFECTS_COUNT };
enum context_scope { SCOPE_ALL, SCOPE_DEPS, SCOPE_NONE, SCOPE_COUNT };
/* Given the ends of its dependencies, whether a step runs. */
enum run_if {
    RUN_IF_SUCCESS, /* none failed, and not all of them were skipped by conditions */
    RUN_IF_ALWAYS,  /* whatever their ends */
    RUN_IF_FAILURE, /* one of them failed: a step that cleans up */
    RUN_IF_COUNT
};
/* When completed steps with `compensate` are undone. */
enum undo_policy {
    UNDO_ON_FAILURE, /* when the plan fails */
    UNDO_ALWAYS,     /* also when it is cancelled */
    UNDO_NEVER,
    UNDO_POLICY_COUNT
};
enum backoff_kind { BACKOFF_LINEAR, BACKOFF_EXPONENTIAL, BACKOFF_FIXED, BACKOFF_COUNT };

struct backoff {
    enum backoff_kind kind;
    msec initial_ms;
    uint32_t multiplier_permille; /* exponential: 2000 = double */
    msec max_ms;
    uint32_t jitter_permille; /* of the delay, added at random; 0 = none */
};

struct step_policy {
    uint32_t max_retries; /* after the first attempt */
    struct backoff backoff;
    msec timeout_ms;       /* per attempt; 0 = none */
    msec idle_ms;          /* an attempt without progress for this long times out; 0 = none */
    msec queue_timeout_ms; /* the longest wait for a lane; 0 = none */
    msec agent_wait_ms;    /* for an agent that has no instance; 0 = that of core_config */
    msec limit_ms; /* of the whole step from its first attempt, without time in review; 0 = none */
    msec approval_timeout_ms; /* after it the review is denied; 0 = no end */
    msec check_timeout_ms; /* of a gate or a verification by an agent, with the wait for its lane */
    uint32_t
        retry_on; /* bit per err_class: retried whatever the class's default and the agent say */
    uint32_t no_retry; /* bit per err_class: these are never retried */
    enum on_failure on_failure;
    enum on_failure on_verify; /* after a failed verification; RETRY = next attempt with the
                                  diagnosis, then on_failure */
    bool requires_approval;
    bool gate_closed; /* an error of the gate fails the step; default: the step goes on (C27) */
    bool verify_open; /* an error of the verifier counts as passed; default: the step fails */
    uint64_t estimate_tokens,
        estimate_micros; /* reserved from the plan's budget before an attempt */
    enum effects effects;
    enum context_scope scope;
    enum run_if run_if;
};

/* What a child plan is of the step that it does: one child per attempt, and per round of a loop. */
enum child_kind {
    CHILD_OF_NONE, /* no child */
    CHILD_OF_MAP,  /* all items of `forEach` */
    CHILD_OF_LOOP, /* a round of `repeat` */
    CHILD_OF_SUB,  /* `plan` */
    CHILD_OF_UNDO, /* what undoes its parent: of the plan, not of a step */
    CHILD_OF_CALLS /* the calls that the agent of a step makes in a turn */
};
struct child_of {
    enum child_kind kind;
    struct str of; /* the parent's planId */
    uint32_t step, attempt, round;
    uint32_t depth;      /* 1 = the parent is no child */
    uint32_t priority;   /* of the parent: that of a child that names none */
    struct str name;     /* MAP: another name of its item */
    struct doc previous; /* LOOP: the result of the round before; absent in the first */
};

/* The rounds of a step with `repeat`. */
struct loop_policy {
    uint32_t max; /* rounds; 0 = the step is no loop */
    uint32_t
        accept;    /* 1: after the last round the step has completed whatever the condition says */
    msec delay_ms; /* before every round but the first */
};

/* What completes a step of type wait. */
enum wait_for {
    WAIT_FOR_TIME,   /* ms have passed since it began */
    WAIT_FOR_DATE,   /* the wall clock shows `until` */
    WAIT_FOR_SIGNAL, /* a signal with the name came */
    WAIT_FOR_COUNT
};
struct plan_wait {
    enum wait_for what;
    msec ms;           /* TIME: how long; SIGNAL: the longest wait, 0 = no end */
    msec until;        /* DATE: milliseconds since 1970 */
    struct str signal; /* SIGNAL */
    struct doc schema; /* SIGNAL: of its data; absent = any */
};

/* What a plan does that is to start while its concurrency key has no free place. */
enum key_overlap {
    KEY_QUEUE,  /* it waits */
    KEY_SKIP,   /* it ends as cancelled */
    KEY_CANCEL, /* older plans that wait for the key are cancelled, and as many that have it as need
                   be */
    KEY_OVERLAP_COUNT
};
/* The concurrency keys of a plan and its steps, each once. Those of plans and those of steps are
 * two sets: a plan never waits for a step. */
#define KEY_NONE UINT32_MAX
struct plan_keys {
    struct str *names;
    uint32_t *at; /* numbers of the core's keys, set by the owner; KEY_NONE = it needs no place */
    uint32_t n;   /* <= LIMIT_PLAN_KEYS */
};

/* Agents are registry indexes, set by the owner from the ids before the core sees the plan. */
#define AGENT_NONE UINT32_MAX

/* The rules of a step. Steps of a packed plan share equal ones: read only. */
struct step_rules {
    struct step_policy policy;
    struct loop_policy loop;
    struct doc verify;      /* absent or a JSON Schema over the result's data (or text) */
    struct doc when;        /* absent or a condition; the owner evaluates it (CORE_CONDITION) */
    struct doc child;       /* STEP_TYPE_PLAN: how the owner makes its child plans */
    struct doc compensate;  /* absent or the step that undoes it, every number written */
    struct doc tools;       /* absent or a list: what its agent may call (plan/tools.h) */
    struct str gate_with;   /* agent that answers the gate; empty = no gate */
    struct str verify_with; /* agent that verifies the result; empty = none */
    struct str gate_skill, verify_skill; /* skills of both; empty = "gate", "verify" */
    uint32_t gate_agent, verify_agent;   /* of gate_with and verify_with */
};

struct plan_step {
    enum step_type type;
    uint32_t revision; /* the revision that added the step: part of its key */
    bool undoes;       /* it, or a step of its child plans, has `compensate` */
    bool superseded; /* a later revision does not need it; the entry stays, so indexes stay valid */
    bool after_any_end; /* its dependencies only have to be over, with any outcome (chains, C10) */
    uint32_t index;     /* of a step of a map: the number of its item */
    struct doc item;    /* and the item */
    struct str step_id;
    struct str agent_id;
    struct str skill; /* may be empty */
    struct str task;
    struct doc parameters;        /* absent or a map */
    struct step_rules *rules;     /* never NULL */
    const struct plan_wait *wait; /* of STEP_TYPE_WAIT; NULL in all others */
    uint32_t key;             /* its place in plan.keys, plus 1; 0 = it has no concurrency key */
    uint32_t agent;           /* AGENT_NONE for STEP_TYPE_REVIEW, STEP_TYPE_WAIT */
    uint32_t alternatives_at; /* into plan.agents: fallback agents */
    uint32_t alternatives_n;
    uint32_t deps_at; /* into plan.deps */
    uint32_t deps_n;
    uint32_t dependents_at; /* into plan.dependents; filled by plan_link */
    uint32_t dependents_n;
};

/* Replanning (M050-M054, C16). */
struct replan_policy {
    struct str agent_id; /* the replanner; empty = no replanning */
    struct str skill;    /* its skill; empty = "plan" */
    uint32_t agent;
    uint32_t max_step, max_total;
    msec cooldown_ms, timeout_ms;
    uint64_t budget_tokens,
        budget_micros; /* of all replanning (M111); 0 = only the plan's budget applies */
};

/* What a job does. A job is a plan of one step that another plan or a session waits for. */
enum job_kind {
    JOB_NONE,
    JOB_PLANNING,     /* makes the steps of a plan */
    JOB_SYNTHESIS,    /* writes one answer from all results */
    JOB_CONVERSE,     /* of a session: reads a person's intent */
    JOB_SUMMARY,      /* of a session: summarises its older messages */
    JOB_COMPENSATION, /* undoes what the plan did: a child plan of any number of steps */
    JOB_KIND_COUNT
};

/* How a plan ends when planning returned none that can run (M008, C24). */
enum on_invalid { ON_INVALID_FAIL, ON_INVALID_SYNTHESIZE, ON_INVALID_INTERRUPT, ON_INVALID_COUNT };

struct planning_policy {
    bool pending;        /* there are no steps yet: a planner will make them */
    struct str agent_id; /* the planner; empty = none is needed */
    struct str skill;    /* its skill; empty = "plan" */
    uint32_t agent;
    msec timeout_ms;  /* of one request with its repairs; 0 = none */
    uint32_t repairs; /* times that an invalid answer is sent back with its errors */
    enum on_invalid on_invalid;
};

struct synthesis_policy {
    struct str agent_id; /* the synthesizer; empty = the results are concatenated (C21) */
    struct str skill;    /* its skill; empty = "synthesize" */
    uint32_t agent;
    msec timeout_ms;      /* 0 = none */
    uint32_t max_retries; /* times that the synthesizer may have failed steps retried */
};

/* The agents that the plan may use, each once: of its steps, gates, verifiers, fallbacks and
 * handoffs, the replanner and the search agent. They are granted at submission; a replan cannot add
 * any (G26). */
struct plan_agents {
    struct str *ids;
    uint32_t *at; /* registry indexes */
    uint32_t n;   /* <= LIMIT_PLAN_AGENTS */
};

struct plan_policy; /* private to plan/ */

struct plan {
    uint32_t revision; /* 1 at submission; later the revision of the run that it brought */
    struct plan_agents agents;
    uint32_t *alternatives; /* indexes into agents, grouped by step */
    uint32_t n_alternatives;
    struct replan_policy replan;
    struct planning_policy planning;
    struct synthesis_policy synthesis;
    struct child_of child;
    struct plan_keys keys;
    bool keyed;               /* keys.names[0] is the plan's own */
    enum key_overlap overlap; /* of a keyed plan */
    uint32_t priority;        /* 0 to PLAN_PRIORITY_MAX; the higher goes first */
    enum undo_policy undo;
    enum job_kind job;      /* the kind of job that this plan is; JOB_NONE = an ordinary plan */
    bool dry_run;           /* the plan is made and checked, and ends without running (M017) */
    struct str search_with; /* agent with the skill "search" for RESOURCE_NOT_FOUND; empty = none */
    uint32_t search_agent;
    uint32_t max_fallbacks; /* per run (C17); 0 = off */
    uint32_t max_handoffs;  /* by agents, per step */
    msec max_pause_ms;      /* the longest pause before an attempt that an agent may ask for */
    bool handback;
    bool signoff;                          /* a person must approve before it starts */
    msec signoff_timeout_ms;               /* after it the sign-off is denied; 0 = no end */
    uint64_t budget_tokens, budget_micros; /* 0 = no budget */
    uint32_t session; /* dense index of the session, set by the owner; for the limits */
    struct str session_id;
    struct str goal;
    struct str planner;
    struct plan_step *steps;
    uint32_t n_steps;
    uint32_t *deps; /* step indexes, n_edges of them, grouped by step, ascending in each */
    uint32_t *dependents;
    uint32_t n_edges;
    uint32_t max_concurrency;
    bool chain; /* no step names a dependency: each step follows the one before it, whatever its
                   outcome (C10). A revision of a chain has edges instead. */
    msec timeout_ms;                  /* whole plan; 0 = off */
    uint32_t context_budget;          /* bytes of all injected results together */
    uint32_t context_result;          /* bytes of one injected result */
    const struct plan_policy *policy; /* defaults of the steps, for later revisions; NULL in a plan
                                         that plan/ did not read */
};

const char *on_failure_name(enum on_failure v);
const char *key_overlap_name(enum key_overlap v); /* "queue", "skip", "cancel" */
const char *step_type_name(enum step_type v); /* "task", "human_review", "synthesis_gate", "wait" */
const char *wait_for_name(enum wait_for v);   /* "timer", "until", "signal" */
const char *effects_name(enum effects v);
const char *context_scope_name(enum context_scope v);
const char *run_if_name(enum run_if v); /* "success", "always", "failure" */
const char *backoff_kind_name(enum backoff_kind v);
const char *job_kind_name(enum job_kind v);     /* "", "planning", "synthesis", ... */
const char *on_invalid_name(enum on_invalid v); /* "fail", "synthesize", "interrupt" */

/* The delay before attempt `failed_attempt + 1`. Linear: initial * n. Exponential: initial *
 * multiplier^(n-1). Fixed: initial. At most max_ms, plus jitter drawn from `random`. */
msec backoff_delay(const struct backoff *b, uint32_t failed_attempt, uint32_t random);

/* Fills the dependents of every step: n_edges entries of plan->dependents. deps must be valid
 * indexes. */
void plan_link(struct plan *p);
/* Fills plan.agents from the steps, their gates and verifiers, the alternatives in it already, the
 * replanner and the search agent, in that order. New ones are appended. ids and at have room for
 * LIMIT_PLAN_AGENTS; false when there are more. The registry indexes must be set. */
bool plan_agents_collect(struct plan *p);
/* The agent's place in plan.agents; UINT32_MAX when it was not granted. */
uint32_t plan_agent_find(const struct plan *p, uint32_t agent);
/* A person or the supervisor does it: it needs no agent and no lane. */
static inline bool plan_step_is_agentless(const struct plan_step *s)
{
    return s->type == STEP_TYPE_REVIEW || s->type == STEP_TYPE_WAIT;
}
/* An agent does it: no person, no time, no child plan. */
static inline bool plan_step_has_agent(const struct plan_step *s)
{
    return !plan_step_is_agentless(s) && s->type != STEP_TYPE_PLAN;
}
/* Whether both are the same work: agent, skill, task and parameters, byte for byte. Steps without
 * task and parameters are not. */
bool plan_step_same_work(const struct plan_step *a, const struct plan_step *b);
/* The step with that id that is not superseded; UINT32_MAX when there is none. Linear: not for the
 * hot path. */
uint32_t plan_step_find(const struct plan *p, struct str step_id);
#endif
