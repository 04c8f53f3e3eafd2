/* The one read of events for all streams of a sender, and when a stream may follow it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/gateway/stream_internal.h"

enum {
    LIVE_EVENTS = 1000,
    LIVE_WAIT_MS = 20000,
    PAUSE_MS = 20, /* between two reads: events that come in it wake each reader once */
    PAUSE_MANY_MS = 50,
    MANY = LIVE_EVENTS / 4 /* events in a read: they come fast */
};

/* ---- where a reader is ---- */

void event_id_copy(struct str text, char ret[UUID_TEXT_LEN + 1])
{
    const size_t n = text.ptr == NULL ? 0 : text.len < UUID_TEXT_LEN ? text.len : UUID_TEXT_LEN;

    if (n > 0) {
        memmove(ret, text.ptr, n);
    }
    ret[n] = 0;
}

bool event_place_read(struct str text, struct event_place *ret)
{
    const char *colon = text.len > 0 ? memchr(text.ptr, ':', text.len) : NULL;
    const size_t n = colon == NULL ? text.len : (size_t)(colon - text.ptr);
    const struct str id = {colon == NULL ? NULL : colon + 1, colon == NULL ? 0 : text.len - n - 1};
    struct uuid read;

    event_id_copy(id, ret->id);
    return fields_number((struct str){text.ptr, n}, INT64_MAX - 1, &ret->seq) &&
           (colon == NULL || uuid_parse(id, &read));
}

void event_place_put(const struct event_place *p, struct buf *out)
{
    buf_printf(out, "%" PRIu64 "%s%s", p->seq, p->id[0] != 0 ? ":" : "", p->id);
}

uint64_t stream_changed_from(const struct problem *p)
{
    const struct doc from =
        p->details.ptr != NULL ? doc_get(p->details, STR_LIT("fromSeq")) : (struct doc){NULL, 0};

    return from.ptr != NULL && doc_head(from).kind == DOC_UINT && doc_head(from).u > 0
               ? doc_head(from).u
               : 1;
}

/* ---- the one read for all ---- */

/* The history of the ring is not the daemon's any more. */
static void take_refusal(struct feed *f, const struct problem *p)
{
    f->lost = p->code == BT_UNAUTHORIZED;
    if (p->code == BT_HISTORY_CHANGED) {
        f->changed = stream_changed_from(p);
    }
}

static void on_live(void *self, const struct reply *reply)
{
    struct feed *f = self;
    struct doc_cursor at;
    struct doc_head head;
    uint64_t next;

    f->call = NULL;
    f->again = reply->ok ? 0 : 1; /* 1: the next run sets it */
    if (!reply->ok) {
        take_refusal(f, &reply->problem);
        return;
    }
    f->looks = false;
    event_id_copy(doc_string(doc_get(reply->body, STR_LIT("leader"))), f->leader);
    at = doc_cursor(doc_get(reply->body, STR_LIT("events")));
    next = doc_head(doc_get(reply->body, STR_LIT("nextSeq"))).u;
    (void)doc_next(&at, &head);
    for (uint32_t i = 0; head.kind == DOC_ARRAY && i < head.n; i++) {
        if (!ring_add(&f->ring, doc_skip(&at))) {
            return; /* no memory: it is read again */
        }
        event_id_copy(str_from(ring_get(&f->ring, ring_next(&f->ring) - 1)->event_id), f->last_id);
    }
    if (next > f->ring.end) {
        f->ring.end = next;
        event_id_copy(doc_string(doc_get(reply->body, STR_LIT("lastEventId"))), f->last_id);
    }
    f->pause = head.kind != DOC_ARRAY || head.n == 0 ? 0
               : head.n >= MANY                      ? PAUSE_MANY_MS
                                                     : PAUSE_MS;
}

void feed_read(struct feed *f, msec now)
{
    const msec wait = f->looks ? 0 : LIVE_WAIT_MS;
    struct call_spec spec = {.type = MSG_events_read,
                             .answer = MSG_events_read_ok,
                             .reads = true,
                             .wait_ms = wait,
                             .live = true,
                             .to_shard = f->shard + 1,
                             .done = on_live,
                             .self = f};
    const bool compares = f->leader[0] != 0 && f->last_id[0] != 0;
    struct bt_error err;
    struct buf fields;

    if (f->again == 1) {
        f->again = now + STREAM_AGAIN_MS;
    }
    if (f->pause > 0) {
        f->again = now + f->pause;
        f->pause = 0;
    }
    if (f->call != NULL || f->again > now || f->changed > 0) {
        return;
    }
    buf_init(&fields, 256);
    doc_put_map(&fields, 3u + compares);
    doc_put_cstr(&fields, "fromSeq");
    doc_put_u64(&fields, f->ring.end);
    doc_put_cstr(&fields, "limit");
    doc_put_u64(&fields, LIVE_EVENTS);
    doc_put_cstr(&fields, "waitMs");
    doc_put_u64(&fields, wait);
    if (compares) {
        doc_put_cstr(&fields, "afterEventId");
        doc_put_cstr(&fields, f->last_id);
    }
    spec.fields = doc_from_buf(&fields);
    if (caller_call(f->of, &spec, now, &f->call, &err) != BT_OK) {
        f->again = now + STREAM_AGAIN_MS;
    }
    buf_done(&fields);
}

/* ---- who follows it ---- */

static void drop_call(struct feed *f)
{
    if (f->call != NULL) {
        call_abandon(f->call);
        f->call = NULL;
    }
}

/* The ring is empty, and its history is that of the stream. */
static void begin(struct feed *f, const struct stream *st)
{
    drop_call(f);
    ring_reset(&f->ring, st->next_seq, st->leader[0] != 0);
    memcpy(f->leader, st->leader, sizeof f->leader);
    memcpy(f->last_id, st->last_id, sizeof f->last_id);
    f->changed = 0;
    f->again = 0;
}

bool feed_join(struct stream *st, uint64_t last_seq)
{
    struct feed *f = st->feed;

    if (f->followers == 0) {
        if (st->next_seq <= last_seq) {
            return false;
        }
        begin(f, st);
    }
    if (strcmp(f->leader, st->leader) != 0) { /* one of them knows an older history, perhaps */
        drop_call(f);
        f->looks = true;
        st->again = st->h->s->now + STREAM_AGAIN_MS;
        return false;
    }
    if (st->next_seq < f->ring.floor) {
        return false;
    }
    if (st->next_seq < f->ring.end || st->next_seq > last_seq) {
        st->place = ring_find(&f->ring, st->next_seq);
        st->state = FOLLOWS;
        f->followers++;
        return true;
    }
    return false;
}

/* ---- its life ---- */

struct feed *feed_of(struct caller *c, uint32_t shard)
{
    void **slot = caller_slot(c, shard);
    struct feed *f = *slot;

    if (f == NULL) {
        f = calloc(1, sizeof *f);
        *slot = f;
        if (f != NULL) {
            f->of = c;
            f->shard = shard;
        }
    }
    return f;
}

void feed_release(struct feed *f)
{
    if (--f->users > 0) {
        return;
    }
    drop_call(f);
    ring_reset(&f->ring, 0, false);
    *caller_slot(f->of, f->shard) = NULL;
    free(f);
}
