/*
 * The loop belongs to one of two threads: the leader runs it, the other one watches. While the
 * leader is inside a handler for WATCH_NS or more, the watcher takes the loop over: heartbeats,
 * cancels and new steps go on. The thread that comes back from the handler then watches in turn.
 *
 *      leader:   watch_begin -> handler -> watch_end --true--> goes on as the leader
 *                                              `--false--> its step is finished like a worker's;
 *                                                          watch_stay
 *      watcher:  watch_stay --a handler runs for WATCH_NS--> leader
 *
 * At most one thread is away: without a watcher watch_begin returns 0, and the handler runs on a
 * worker. The watcher sleeps while no quick handler runs, and wakes every WATCH_NS at most.
 */
#ifndef SDK_LOOP_WATCH_H
#define SDK_LOOP_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "agents/sdk/loop/quick.h"
#include "protocol/base/err.h"

enum { WATCH_NS = QUICK_RUN_NS };

struct watch;

/* Starts the watching thread. When it has taken the loop over, it calls lead(self), which does not
 * return. The caller has blocked the signals. Never freed: threads wait in it until _exit. */
BT_MUST_CHECK enum bt_code watch_start(void (*lead)(void *self), void *self, struct watch **ret,
                                       struct bt_error *err);
/* Leader only, before a handler; now: clock_mono_ns. The number of the run, or 0: nobody watches.
 */
uint64_t watch_begin(struct watch *w, uint64_t now);
/* After the handler. False: the caller is the leader no more, and may not touch what is the
 * loop's. */
bool watch_end(struct watch *w, uint64_t run);
/* The thread that lost the loop watches. Returns when it has taken it over. */
void watch_stay(struct watch *w);
#endif
