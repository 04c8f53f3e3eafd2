/*
 * The worker threads. The loop submits slots; a worker runs the slot's step and notifies the loop.
 * An eventfd wakes the loop, which takes the notifications. Besides a step's progress, this is the
 * only state of the SDK that threads share.
 */
#ifndef SDK_POOL_H
#define SDK_POOL_H

#include "agents/sdk/agent_state.h"
#include "protocol/base/err.h"

struct bt_step;
struct pool;

enum pool_event { POOL_FINISHED, POOL_PROGRESS, POOL_EVENT_COUNT };

/* Starts n workers, which call run_slot. The caller has blocked the signals; they stay blocked. */
BT_MUST_CHECK enum bt_code pool_start(uint32_t n, void (*run_slot)(void *self, uint32_t slot),
                                      void *self, struct pool **ret, struct bt_error *err);
/* Readable when there are notifications. */
int pool_fd(const struct pool *p);
/* Loop thread only. Never full: there is a place for every slot. It runs after pool_wake. */
void pool_submit(struct pool *p, uint32_t slot);
/* Loop thread only, when it has taken what there was: the workers take what was submitted. */
void pool_wake(struct pool *p);
/* Any thread: notifies the loop about a slot, and wakes it unless it has been woken already. */
void pool_notify(struct pool *p, enum pool_event what, uint32_t slot);
/* Loop thread only: takes one notification; AGENT_STATE_NO_SLOT when there are none. */
uint32_t pool_take(struct pool *p, enum pool_event what);
/* Resets the eventfd; call it before pool_take. */
void pool_drain(struct pool *p);
#endif
