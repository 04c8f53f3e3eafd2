/*
 * A plan: one immutable revision of the steps, parsed once, strings and documents borrowed from its
 * owner's arena. Read by the core; made by planner/plan_read. Pure.
 */
#ifndef CORE_PLAN_H
#define CORE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"
#include "protocol/base/str.h"
#include "protocol/base/uuid.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

/* Of results that a step gets to read, when neither plan nor configuration says: all, and one. */
enum { CONTEXT_BUDGET_BYTES = 32768, CONTEXT_RESULT_BYTES = 5000 };

/* What happens when a step will get no further attempt (C11, M025). */
enum on_failure {
    ON_FAILURE_ABORT, /* "stop": the plan fails */
    ON_FAILURE_SKIP,
    ON_FAILURE_CONTINUE,
    ON_FAILURE_RETRY,  /* every failure is retried up to max_retries, whatever its class; then ABORT
                        */
    ON_FAILURE_REPLAN, /* the replanner is asked for a new revision of the plan */
    ON_FAILURE_ASK,    /* a person decides: once more, skip or fail */
    ON_FAILURE_COUNT
};
enum step_type {
    STEP_TYPE_TASK,
    STEP_TYPE_REVIEW,    /* human_review: no agent; a person's word completes it (M063) */
    STEP_TYPE_SYNTHESIS, /* synthesis_gate: brings the results before it together (M062) */
    STEP_TYPE_COUNT
};
enum effects { EFFECTS_NONE, EFFECTS_IDEMPOTENT, EFFECTS_UNSAFE, EFFECTS_COUNT };
enum context_scope { SCOPE_ALL, SCOPE_DEPS, SCOPE_NONE, SCOPE_COUNT };
enum backoff_kind { BACKOFF_LINEAR, BACKOFF_EXPONENTIAL, BACKOFF_FIXED, BACKOFF_COUNT };

struct backoff {
    enum backoff_kind kind;
    msec initial_ms;
    uint32_t multiplier_permille; /* exponential: 2000 = double */
    msec max_ms;
    uint32_t jitter_permille; /* of the delay, added at random from the run's seed; 0 = none */
};

struct step_policy {
    uint32_t max_retries; /* after the first attempt */
    struct backoff backoff;
    msec timeout_ms;          /* per attempt; 0 = none */
    msec idle_ms;             /* no progress for so long = timeout of the attempt; 0 = none */
    msec queue_timeout_ms;    /* schedule-to-start: longest wait for a lane; 0 = none */
    msec limit_ms;            /* of the whole step from its first attempt, waiting for people not
                                 counted; 0 = none */
    msec approval_timeout_ms; /* then a review is denied; 0 = waits for ever */
    msec check_timeout_ms;    /* of a gate or a verification by an agent, waiting for its lane
                                 included */
    uint32_t no_retry;        /* bit per err_class: never retried */
    enum on_failure on_failure;
    enum on_failure on_verify; /* when verification failed; RETRY = next attempt with the diagnosis,
                                  then on_failure */
    bool requires_approval;
    bool gate_closed; /* a gate that cannot answer fails the step; default: it goes on (C27) */
    bool verify_open; /* a verifier that cannot answer is taken as yes; default: the step fails */
    uint64_t estimate_tokens,
        estimate_micros; /* reserved from the plan's budget before an attempt */
    enum effects effects;
    enum context_scope scope;
    bool run_if_always; /* runs also when a dependency failed */
};

/* Agents are registry indexes, set by the owner from the ids before the core sees the plan. */
#define AGENT_NONE UINT32_MAX

struct plan_step {
    enum step_type type;
    uint32_t revision;  /* in which the step came: part of its key */
    bool superseded;    /* a later revision does without it; the row stays so that indexes stay */
    bool after_any_end; /* its dependencies need only be over, however they ended (chains, C10) */
    struct str step_id;
    struct str agent_id;
    struct str skill; /* may be empty */
    struct str task;
    struct doc parameters;  /* absent or a map */
    struct doc verify;      /* absent or a JSON Schema over the result's data (or text) */
    struct str gate_with;   /* agent that is asked before the step; empty = no gate */
    struct str verify_with; /* agent that is asked after it; empty = none */
    struct str gate_skill, verify_skill; /* what they are asked by; empty = "gate", "verify" */
    uint32_t agent;                      /* AGENT_NONE for STEP_TYPE_REVIEW */
    uint32_t gate_agent, verify_agent;   /* of gate_with and verify_with, when there are any */
    uint32_t alternatives_at;            /* into plan.agents: fallback agents */
    uint32_t alternatives_n;
    uint32_t deps_at; /* into plan.deps */
    uint32_t deps_n;
    uint32_t dependents_at; /* into plan.dependents; filled by plan_link */
    uint32_t dependents_n;
    struct step_policy policy;
};

/* Replanning (M050-M054, C16). */
struct replan_policy {
    struct str agent_id; /* who is asked; empty = no replanning */
    struct str skill;    /* what it is asked by; empty = "plan" */
    uint32_t agent;
    uint32_t max_step, max_total;
    msec cooldown_ms, timeout_ms;
    uint64_t budget_tokens,
        budget_micros; /* of all replanning (M111); 0 = no budget but the plan's */
};

/* What a plan as a whole asks of an agent: a plan of one step of its own (a job). */
enum job_kind {
    JOB_NONE,
    JOB_PLANNING,  /* the steps are yet to be made */
    JOB_SYNTHESIS, /* the steps are over: one answer out of all results */
    JOB_CONVERSE,  /* of a session: what does a person want? */
    JOB_SUMMARY,   /* of a session: its older messages in few words */
    JOB_KIND_COUNT
};

/* What becomes of a plan when planning brought none that can be run (M008, C24). */
enum on_invalid { ON_INVALID_FAIL, ON_INVALID_SYNTHESIZE, ON_INVALID_INTERRUPT, ON_INVALID_COUNT };

struct planning_policy {
    bool pending;        /* there are no steps yet: an agent is asked for them */
    struct str agent_id; /* who is asked; empty = nobody needs to be */
    struct str skill;    /* what it is asked by; empty = "plan" */
    uint32_t agent;
    msec timeout_ms;  /* of one question, its retries included; 0 = none */
    uint32_t repairs; /* times that an answer that is no plan is sent back with what is wrong */
    enum on_invalid on_invalid;
};

struct synthesis_policy {
    struct str agent_id; /* who is asked; empty = the results are put one behind the other (C21) */
    struct str skill;    /* what it is asked by; empty = "synthesize" */
    uint32_t agent;
    msec timeout_ms;      /* 0 = none */
    uint32_t max_retries; /* times that it may ask for failed steps to be tried again */
};

/* The agents that the plan may use, each once: those of its steps, gates, verifiers, the replanner,
 * fallbacks, targets of handoffs. Granted when it was submitted; a replan cannot add any (G26). */
struct plan_agents {
    struct str *ids;
    uint32_t *at; /* registry indexes */
    uint32_t n;   /* <= LIMIT_PLAN_AGENTS */
};

struct plan_policy; /* private to planner/ */

struct plan {
    struct uuid plan_id;
    uint32_t revision; /* 1 when submitted; later that of the run when the revision came */
    struct plan_agents agents;
    uint32_t *alternatives; /* indexes into agents, grouped by step */
    uint32_t n_alternatives;
    struct replan_policy replan;
    struct planning_policy planning;
    struct synthesis_policy synthesis;
    enum job_kind job;      /* this plan is one; JOB_NONE = a plan like any other */
    bool dry_run;           /* it is planned and checked, and ends without having run (M017) */
    struct str search_with; /* agent with the skill "search" for RESOURCE_NOT_FOUND; empty = none */
    uint32_t search_agent;
    uint32_t max_fallbacks; /* per run (C17); 0 = off */
    uint32_t max_handoffs;  /* agent-initiated ones per step */
    bool handback;
    bool signoff;                          /* a person must approve before it starts */
    msec signoff_timeout_ms;               /* then it is denied; 0 = waits for ever */
    uint64_t budget_tokens, budget_micros; /* 0 = no budget */
    uint32_t session;                      /* dense index, set by the owner; for the limits */
    struct str session_id;
    struct str goal;
    struct str planner;
    struct plan_step *steps;
    uint32_t n_steps;
    uint32_t *deps; /* step indexes, n_edges of them, grouped by step, ascending in each */
    uint32_t *dependents;
    uint32_t n_edges;
    uint32_t max_concurrency;
    bool chain;      /* no dependency was given anywhere: each step follows the one before, whatever
                        became of it (C10). A revision of a chain says so by edges instead. */
    msec timeout_ms; /* whole plan; 0 = off */
    uint32_t context_budget;          /* bytes of all injected results together */
    uint32_t context_result;          /* bytes of one injected result */
    const struct plan_policy *policy; /* what steps get that say nothing, for later revisions; NULL
                                         in a plan that planner/ has not read */
};

const char *on_failure_name(enum on_failure v);
const char *step_type_name(enum step_type v); /* "task", "human_review", "synthesis_gate" */
const char *effects_name(enum effects v);
const char *context_scope_name(enum context_scope v);
const char *backoff_kind_name(enum backoff_kind v);
const char *job_kind_name(enum job_kind v);     /* "", "planning", "synthesis", ... */
const char *on_invalid_name(enum on_invalid v); /* "fail", "synthesize", "interrupt" */

/* Delay before attempt `failed_attempt + 1`: linear initial*n, exponential
 * initial*multiplier^(n-1), fixed initial; capped by max_ms; plus jitter drawn from `random`. */
msec backoff_delay(const struct backoff *b, uint32_t failed_attempt, uint32_t random);

/* Fills dependents of every step (deps must be valid indexes). n_edges entries of plan->dependents
 * are written. */
void plan_link(struct plan *p);
/*
 * Fills plan.agents from the steps, their gates and verifiers, alternatives' ids already in it, the
 * replanner and the search agent, in that order: those not in it yet go to its end. ids and at have
 * room for LIMIT_PLAN_AGENTS. False when there are more than that. Indexes must be set already.
 */
bool plan_agents_collect(struct plan *p);
/* Where the agent stands in plan.agents; UINT32_MAX when the plan was not granted it. */
uint32_t plan_agent_find(const struct plan *p, uint32_t agent);
/* The step with that id, of several revisions the one that is not superseded; UINT32_MAX when there
 * is none. Linear: for edges, not for the hot path. */
uint32_t plan_step_find(const struct plan *p, struct str step_id);
#endif
