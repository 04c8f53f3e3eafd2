#include "supervisor/gateway/merged.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/utf8.h"

struct merged {
    struct stream *parts[SHARDS_MAX];
    struct event_place
        had[SHARDS_MAX]; /* the last one of each that was passed on, or begun after */
    uint32_t shards, begun;
};

bool merged_read_vector(struct str text, uint32_t shards, struct event_place ret[SHARDS_MAX])
{
    const char *end = text.ptr + text.len;

    memset(ret, 0, SHARDS_MAX * sizeof *ret);
    if (str_is(text, "0")) {
        return true;
    }
    for (const char *at = text.ptr; at < end;) {
        const char *stop = memchr(at, ';', (size_t)(end - at));
        const char *equals;
        uint64_t shard;
        struct event_place place;
        stop = stop == NULL ? end : stop;
        equals = memchr(at, '=', (size_t)(stop - at));
        if (*at != 'S' || equals == NULL ||
            !fields_number((struct str){at + 1, (size_t)(equals - at) - 1}, shards - 1, &shard) ||
            !event_place_read((struct str){equals + 1, (size_t)(stop - equals) - 1}, &place)) {
            return false;
        }
        ret[shard] = place;
        at = stop + 1;
    }
    return text.len > 0;
}

static void put_vector(const struct merged *m, struct buf *out)
{
    buf_add_cstr(out, "id: ");
    for (uint32_t i = 0; i < m->shards; i++) {
        buf_printf(out, "%sS%" PRIu32 "=", i > 0 ? ";" : "", i);
        event_place_put(&m->had[i], out);
    }
}

void merged_put(struct stream *part, const struct ring_event *e)
{
    struct stream *whole = part->part_of;
    struct merged *m = whole->merged;
    const struct str json = ring_json(e);

    m->had[part->feed->shard].seq = e->seq;
    event_id_copy(str_from(e->event_id), m->had[part->feed->shard].id);
    if (!whole->ndjson) {
        put_vector(m, &whole->out);
        buf_printf(&whole->out, "\nevent: %s\ndata: ", e->type);
    }
    /* seq is a number of the shard */
    buf_printf(&whole->out, "{\"shard\":%" PRIu32 ",", part->feed->shard);
    buf_add(&whole->out, json.ptr + 1, json.len - 1);
    buf_add_cstr(&whole->out, whole->ndjson ? "\n" : "\n\n");
    stream_wake(whole);
}

void merged_begin(struct stream *whole, const struct event_place *after)
{
    struct http *h = whole->h;
    struct merged *m = calloc(1, sizeof *m);

    if (m == NULL) {
        http_refuse(h, BT_NOMEM, 0, "", "out of memory for a stream");
        return;
    }
    whole->merged = m;
    m->shards = upstream_shards(h->s->up);
    if (!whole->ndjson) {
        buf_add_cstr(&whole->out, "retry: 1000\n\n");
    }
    for (uint32_t i = 0; i < m->shards && h->state != HTTP_READY; i++) {
        struct stream *part = stream_new(h, i);
        if (part == NULL) {
            http_refuse(h, BT_NOMEM, 0, "", "out of memory for a stream");
            return;
        }
        m->parts[i] = part;
        part->part_of = whole;
        part->from_now = after == NULL;
        part->after = after != NULL ? after[i] : (struct event_place){.seq = 0};
        part->next_seq = part->after.seq + 1;
        memcpy(part->last_id, part->after.id, sizeof part->last_id);
        part->types_n = whole->types_n;
        memcpy(part->types, whole->types, sizeof part->types);
        stream_read_page(part);
    }
}

/* The refusal of a shard, which its details name. */
static void refuse_part(struct stream *part, const struct problem *why)
{
    struct problem p = *why;
    char text[512];
    struct buf details;

    buf_init(&details, 1024);
    if (why->code == BT_HISTORY_CHANGED) {
        (void)snprintf(text, sizeof text, "shard %" PRIu32 ": %.*s", part->feed->shard,
                       (int)utf8_cut(why->message.ptr, why->message.len, 400), why->message.ptr);
        doc_put_map(&details, 2);
        doc_put_cstr(&details, "shard");
        doc_put_u64(&details, part->feed->shard);
        doc_put_cstr(&details, "fromSeq");
        doc_put_u64(&details, stream_changed_from(why));
        p.message = str_from(text);
        p.details = doc_from_buf(&details);
    }
    http_problem(part->h, &p);
    http_ready(part->h);
    buf_done(&details);
}

void merged_part_begins(struct stream *part, const struct reply *reply)
{
    struct stream *whole = part->part_of;
    struct http *h = whole->h;
    struct merged *m = whole->merged;
    uint64_t last;

    if (h->state != HTTP_WAITS) {
        return; /* another part was refused */
    }
    if (!reply->ok) {
        refuse_part(part, &reply->problem);
        return;
    }
    last = doc_head(doc_get(reply->body, STR_LIT("lastSeq"))).u;
    if (!part->from_now && part->after.seq > last) {
        http_refuse(h, BT_INVALID, 400, "Last-Event-ID",
                    "it is after the last event of a shard: it is of another journal; begin again "
                    "without it");
        http_ready(h);
        return;
    }
    if (part->from_now) {
        part->next_seq = last + 1;
    }
    m->had[part->feed->shard].seq = part->next_seq - 1;
    event_id_copy(str_from(part->last_id), m->had[part->feed->shard].id);
    part->state = CATCHES_UP;
    part->from_now = false; /* what is there already is read again */
    if (++m->begun < m->shards) {
        return;
    }
    if (!whole->ndjson) { /* the first event may be long in coming */
        put_vector(m, &whole->out);
        buf_add_cstr(&whole->out, "\n\n");
    }
    whole->state = CATCHES_UP;
    whole->sent = h->s->now;
    h->status = 200;
    h->type = whole->ndjson ? "application/x-ndjson" : "text/event-stream";
    h->state = HTTP_READY;
    http_ready(h);
}

void merged_run(struct stream *whole)
{
    for (uint32_t i = 0; i < whole->merged->shards; i++) {
        if (whole->merged->parts[i]->state == ENDS) {
            whole->state = ENDS;
            stream_wake(whole);
        }
    }
}

void merged_free(struct stream *whole)
{
    for (uint32_t i = 0; i < whole->merged->shards && whole->merged->parts[i] != NULL; i++) {
        stream_free(whole->merged->parts[i]);
    }
    free(whole->merged);
    whole->merged = NULL;
}
