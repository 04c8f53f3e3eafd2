/*
 * The events that this program reads for itself, with the token of the state directory: for
 * metrics, traces and hooks. One reader for each shard of a fleet; nothing is asked before somebody
 * wants events. One thread.
 */
#ifndef GATEWAY_WATCH_H
#define GATEWAY_WATCH_H

#include "supervisor/gateway/upstream.h"

enum { WATCH_TAKERS_MAX = 4 };

struct watch;

/* The upstream and the directory must live as long; it lives as long as the process. */
BT_MUST_CHECK enum bt_code watch_new(struct upstream *up, const char *state_dir, struct watch **ret,
                                     struct bt_error *err);
/* Calls take for each event from now on, in their order, within 50 ms of each. At most
 * WATCH_TAKERS_MAX. */
void watch_add(struct watch *w, void (*take)(void *self, struct doc event), void *self);
/* The sender with the token of the state directory; NULL: it cannot be read now. Not for the caller
 * to release. */
struct caller *watch_caller(struct watch *w, msec now);
/* How many shards the fleet has, and, within take, which one the event is of. */
uint32_t watch_shards(const struct watch *w);
uint32_t watch_shard(const struct watch *w);
/* Events that have passed, and whether the daemon answers. */
uint64_t watch_seen(const struct watch *w);
void watch_run(struct watch *w, msec now);
/* When watch_run is due. */
msec watch_deadline(const struct watch *w);
#endif
