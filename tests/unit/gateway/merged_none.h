/* Streams of a gateway of one shard, in Baton's own words: what joins shards and what translates
 * does nothing. Of one test program. */
#ifndef TESTS_GATEWAY_MERGED_NONE_H
#define TESTS_GATEWAY_MERGED_NONE_H

#include "supervisor/gateway/merged.h"

void merged_hold(struct stream *whole, bool held)
{
    (void)whole;
    (void)held;
}

void merged_put_vector(const struct stream *whole, struct buf *out)
{
    (void)whole;
    buf_add_cstr(out, "vector");
}

bool merged_read_vector(struct str text, uint32_t n, struct event_place ret[SHARDS_MAX])
{
    (void)text;
    (void)n;
    (void)ret;
    return false;
}

void merged_begin(struct stream *whole, const struct event_place *after)
{
    (void)whole;
    (void)after;
}

void merged_begin_page(struct stream *whole, const struct event_place *after, uint32_t limit,
                       msec wait_ms)
{
    (void)whole;
    (void)after;
    (void)limit;
    (void)wait_ms;
}

bool merged_part_fails(struct stream *part, enum bt_code code)
{
    (void)part;
    (void)code;
    return false;
}

void merged_page_changed(struct stream *part, uint64_t from)
{
    (void)part;
    (void)from;
}

void merged_part_begins(struct stream *part, const struct reply *reply)
{
    (void)part;
    (void)reply;
}

void merged_put(struct stream *part, const struct ring_event *e)
{
    (void)part;
    (void)e;
}

void merged_run(struct stream *whole)
{
    (void)whole;
}

void merged_free(struct stream *whole)
{
    (void)whole;
}
#endif
