/*
 * The worker threads. The loop submits rows; a worker runs the row's step and marks the row
 * finished; the loop is woken by an eventfd and takes the marks. The only place of the SDK where
 * threads meet, but for a step's progress.
 */
#ifndef SDK_POOL_H
#define SDK_POOL_H

#include "agents/sdk/agent_state.h"
#include "protocol/base/err.h"

struct bt_step;
struct pool;

enum pool_event { POOL_FINISHED, POOL_PROGRESS, POOL_EVENT_COUNT };

/* n workers; run_slot is called on them. Signals are blocked already, and stay so. */
BT_MUST_CHECK enum bt_code pool_start(uint32_t n, void (*run_slot)(void *self, uint32_t slot),
                                      void *self, struct pool **ret, struct bt_error *err);
/* Readable when there are marks. */
int pool_fd(const struct pool *p);
/* Loop only. Never full: there are fewer rows than places. */
void pool_submit(struct pool *p, uint32_t slot);
/* From any thread: marks a row and wakes the loop. */
void pool_notify(struct pool *p, enum pool_event what, uint32_t slot);
/* Loop only: takes one mark; AGENT_STATE_NO_SLOT when there are no more (the fd is quiet then). */
uint32_t pool_take(struct pool *p, enum pool_event what);
/* Empties the eventfd; call before taking. */
void pool_drain(struct pool *p);
#endif
