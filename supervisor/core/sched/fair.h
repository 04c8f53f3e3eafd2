/* Declarations shared by the files of the queues: rings, counts, the budget. Other files of the
 * core only put steps into lists and take them out (core_internal.h). */
#ifndef CORE_CORE_FAIR_H
#define CORE_CORE_FAIR_H

#include "supervisor/core/sched/core_internal.h"

/* ---- fair.c ---- */
/* The list of a queue has changed: the queue joins or leaves the ring of its agent. */
void core_ring_join(struct core *c, struct core_run *entry, uint32_t queue, bool front);
void core_ring_leave(struct core *c, struct core_run *entry, uint32_t queue);
/* Adds what a step in this list holds to the counts, and returns it. */
void core_charge(struct core *c, struct core_run *entry, uint32_t step, enum list_kind kind);
void core_give_back(struct core *c, struct core_run *entry, uint32_t step);

/* The priority of a run's plan. */
uint32_t core_priority(const struct core_run *entry);
/* What is compared: the earliest is next. */
msec core_turn(msec since, uint32_t priority);

/* ---- key.c ---- */
/* Whether the step may have its next attempt now: its concurrency key has a place, and its rate
 * lets it start. Questions need neither. */
bool core_key_allows(const struct core *c, const struct core_run *entry, uint32_t step);
/* The step waits for its key. */
void core_key_wait(struct core *c, struct core_run *entry, uint32_t step);
/* A step that was told to go on has left its queue. */
void core_key_turn_over(struct core *c, struct core_run *entry, uint32_t step);
/* An attempt or a question goes out: it counts for the rates. An attempt takes the step's key. */
void core_key_started(struct core *c, struct core_run *entry, uint32_t step, uint32_t agent);
/* Whether the rate of an agent lets it have something; arms the time when it does. */
bool core_agent_rate_allows(struct core *c, uint32_t agent);
/* Lets go on who waits for keys that have become free. */
void core_keys_wake(struct core *c);

/* ---- dispatch.c ---- */
/* Gives a lane of the instance in this slot to a queued step. */
void core_dispatch(struct core *c, struct core_run *entry, uint32_t step, uint32_t slot);

/* ---- budget.c ---- */
enum budget_verdict { BUDGET_FITS, BUDGET_WAITS, BUDGET_EXCEEDED };
/* Whether the estimate of a step fits into what is left. Called before its dispatch. */
enum budget_verdict core_budget_check(const struct core_run *entry, uint32_t step);
/* The plan's budget is spent after `more`. */
bool core_budget_is_spent(const struct core_run *entry, const struct usage *more);
/* The step waits until other steps return their reservations. */
void core_budget_wait(struct core *c, struct core_run *entry, uint32_t step);
/* The step and its plan fail. */
void core_budget_exceeded(struct core *c, struct core_run *entry, uint32_t step);
void core_budget_reserve(struct core_run *entry, uint32_t step);
/* Returns the reservation. Steps that wait for it are checked again in the same event. */
void core_budget_return(struct core *c, struct core_run *entry, uint32_t step);
void core_budget_wake(struct core *c);

/* ---- check_queue.c ---- */
bool core_list_holds(const struct core *c, const struct list *list, enum list_kind kind,
                     const char **ret_why);
bool core_run_queues_hold(const struct core *c, const struct core_run *entry, const char **ret_why);
bool core_queues_hold(const struct core *c, const char **ret_why);
bool core_keys_hold(const struct core *c, const char **ret_why);
#endif
