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

enum on_failure { ON_FAILURE_ABORT, ON_FAILURE_SKIP, ON_FAILURE_CONTINUE, ON_FAILURE_COUNT };
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
    msec timeout_ms; /* per attempt; 0 = none */
    enum on_failure on_failure;
    enum effects effects;
    enum context_scope scope;
    bool run_if_always; /* runs also when a dependency failed */
};

struct plan_step {
    struct str step_id;
    struct str agent_id;
    struct str skill; /* may be empty */
    struct str task;
    struct doc parameters; /* absent or a map */
    struct doc verify;     /* absent or a JSON Schema over the result's data (or text) */
    uint32_t agent;        /* registry index, set by the owner before the core sees the plan */
    uint32_t deps_at;      /* into plan.deps */
    uint32_t deps_n;
    uint32_t dependents_at; /* into plan.dependents; filled by plan_link */
    uint32_t dependents_n;
    struct step_policy policy;
};

struct plan {
    struct uuid plan_id;
    uint32_t revision; /* from 1 */
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
                        became of it (C10) */
    msec timeout_ms; /* whole plan; 0 = off */
    uint32_t context_budget; /* bytes of all injected results together */
    uint32_t context_result; /* bytes of one injected result */
};

const char *on_failure_name(enum on_failure v);
const char *effects_name(enum effects v);
const char *context_scope_name(enum context_scope v);
const char *backoff_kind_name(enum backoff_kind v);

/* Delay before attempt `failed_attempt + 1`: linear initial*n, exponential
 * initial*multiplier^(n-1), fixed initial; capped by max_ms; plus jitter drawn from `random`. */
msec backoff_delay(const struct backoff *b, uint32_t failed_attempt, uint32_t random);

/* Fills dependents of every step (deps must be valid indexes). n_edges entries of plan->dependents
 * are written. */
void plan_link(struct plan *p);
/* REGISTRY_NONE-like UINT32_MAX when there is no such step. Linear: for edges, not for the hot
 * path. */
uint32_t plan_step_find(const struct plan *p, struct str step_id);
#endif
