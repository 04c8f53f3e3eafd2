/*
 * A run: the mutable state of one plan, rebuilt from its records alone. No pointers, one block, so
 * it can be copied, compared, hashed and dumped. Only run_apply() changes it. Pure.
 */
#ifndef CORE_RUN_H
#define CORE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/core/plan.h"
#include "supervisor/core/record.h"

struct run_step {
    uint8_t status;       /* enum step_status */
    uint8_t reason;       /* enum step_reason */
    uint8_t error_class;  /* enum err_class */
    uint8_t review;       /* enum review_kind, while WAITING */
    uint16_t attempt;     /* 0 = none yet */
    uint16_t granted;     /* attempts that a person's approval added; they do not count against
                             max_retries */
    uint32_t deps_open;   /* dependencies that are not settled */
    uint32_t deps_failed; /* settled as failed, or skipped because of a failure */
    uint32_t last_dep;    /* the dependency that completed last; STEP_NONE = none did */
    uint32_t unused;
    uint64_t epoch; /* of the instance that has the attempt */
    struct uuid instance;
    msec started;  /* first attempt, monotonic; 0 = not yet */
    msec deadline; /* of the attempt, the backoff or the unknown outcome; MSEC_NEVER = none */
    struct blob_ref result;
};

struct run {
    uint32_t n_steps;
    uint8_t status;  /* enum plan_status */
    uint8_t outcome; /* enum plan_outcome */
    uint8_t cancelling;
    uint8_t unused;
    uint32_t open;    /* steps not final */
    uint32_t ready;   /* READY */
    uint32_t active;  /* IN_PROGRESS, BACKOFF, UNKNOWN, WAITING: what max_concurrency counts */
    uint32_t waiting; /* WAITING */
    uint32_t completed, failed, skipped, cancelled;
    uint32_t current;    /* currentStepIndex: the step started last */
    uint32_t last_agent; /* of the step started last; AGENT_SUPERVISOR at first */
    uint32_t last_done;  /* step completed last; STEP_NONE at first */
    uint32_t handoffs;
    uint64_t plan_seq; /* of the last public record applied */
    msec started;
    msec deadline; /* of the plan */
    struct usage usage;
    struct run_step steps[];
};

size_t run_size(uint32_t n_steps);
/* mem: run_size(plan->n_steps) bytes. All steps pending or (no dependencies) ready. */
struct run *run_init(void *mem, const struct plan *plan);
/*
 * Applies one fact. Records come from core_handle (live) or the journal (replay): a record that
 * does not fit the state (damaged journal) returns false and changes nothing; live, that is a
 * programmer error and asserted by the caller.
 */
bool run_apply(struct run *run, const struct plan *plan, const struct record *rec);
/* Everything that must hold between two events; for tests and debug builds. On false *ret_why says
 * what. */
bool run_invariant(const struct run *run, const struct plan *plan, const char **ret_why);
/* Whether the step may become ready: all dependencies settled in its favour. */
bool run_step_can_start(const struct run *run, const struct plan *plan, uint32_t step);
/* FNV-1a over the block: equal states have equal hashes. */
uint64_t run_hash(const struct run *run);
#endif
