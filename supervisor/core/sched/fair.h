/*
 * What the files of the queues share: rings, counts, the budget. The rest of the core only puts
 * steps into lists and takes them out (core_internal.h).
 */
#ifndef CORE_CORE_FAIR_H
#define CORE_CORE_FAIR_H

#include "supervisor/core/sched/core_internal.h"

/* ---- core_fair.c ---- */
/* The list of a queue has changed: the queue joins the ring of its agent or leaves it. */
void core_ring_join(struct core *c, struct core_run *entry, uint32_t queue, bool front);
void core_ring_leave(struct core *c, struct core_run *entry, uint32_t queue);
/* Takes from the counts what a step in this list holds, and gives it back. */
void core_charge(struct core *c, struct core_run *entry, uint32_t step, enum list_kind kind);
void core_give_back(struct core *c, struct core_run *entry, uint32_t step);

/* ---- core_dispatch.c ---- */
/* A lane of the instance in this slot goes to a queued step. */
void core_dispatch(struct core *c, struct core_run *entry, uint32_t step, uint32_t slot);

/* ---- core_budget.c ---- */
enum budget_word { BUDGET_FITS, BUDGET_WAITS, BUDGET_EXCEEDED };
/* Whether the estimate of a step that is about to be dispatched fits into what is left. */
enum budget_word core_budget_asks(const struct core_run *entry, uint32_t step);
/* Nothing is left of the plan's budget once `more` is spent, too. */
bool core_budget_is_spent(const struct core_run *entry, const struct usage *more);
/* It waits until what others have reserved comes back. */
void core_budget_wait(struct core *c, struct core_run *entry, uint32_t step);
/* The step and its plan fail. */
void core_budget_exceeded(struct core *c, struct core_run *entry, uint32_t step);
void core_budget_reserve(struct core_run *entry, uint32_t step);
/* What waits for a reservation is looked at again before the event is over. */
void core_budget_return(struct core *c, struct core_run *entry, uint32_t step);
void core_budget_wake(struct core *c);

/* ---- core_check_queue.c ---- */
bool core_list_holds(const struct core *c, const struct list *list, enum list_kind kind,
                     const char **ret_why);
bool core_run_queues_hold(const struct core *c, const struct core_run *entry, const char **ret_why);
bool core_queues_hold(const struct core *c, const char **ret_why);
#endif
