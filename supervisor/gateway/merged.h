/*
 * Events of all plans of a fleet of several shards: one stream of HTTP, made of a part for each
 * shard, which flows as any stream does, but into the answer of the whole. Where to go on is a
 * vector, "S0=12:EVENTID;S1=40:EVENTID". One thread.
 */
#ifndef GATEWAY_MERGED_H
#define GATEWAY_MERGED_H

#include "protocol/base/shard.h"
#include "supervisor/gateway/stream_internal.h"

/* Reads a vector, or 0: from the first event on; a shard that is not named begins there. False: it
 * is none, or names a shard that there is not. */
bool merged_read_vector(struct str text, uint32_t shards, struct event_place ret[SHARDS_MAX]);
/* The whole begins; its answer waits for the first page of each part. after NULL: from now on. */
void merged_begin(struct stream *whole, const struct event_place *after);
/* The same as one page of at most `limit` events: its answer waits for the first event until
 * wait_ms are over. */
void merged_begin_page(struct stream *whole, const struct event_place *after, uint32_t limit,
                       msec wait_ms);
/* A part has no answer: of a page it is missing. False: the refusal is the answer of the whole. */
bool merged_part_fails(struct stream *part, enum bt_code code);
/* The history of a part is another one: the answer of a page. */
void merged_page_changed(struct stream *part, uint64_t from);
/* No part takes an event, or all do again. */
void merged_hold(struct stream *whole, bool held);
/* Where the reader is, as a vector. */
void merged_put_vector(const struct stream *whole, struct buf *out);
/* The first page of a part is here, or why not. */
void merged_part_begins(struct stream *part, const struct reply *reply);
/* An event of a part, in its turn. */
void merged_put(struct stream *part, const struct ring_event *e);
/* A part that has ended ends the whole: its client comes back. */
void merged_run(struct stream *whole);
void merged_free(struct stream *whole);
#endif
