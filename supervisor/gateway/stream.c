/*
 * Events over HTTP. A stream first reads what it missed, page by page, for itself; then it follows
 * the ring of its sender, which one read with a wait feeds, whatever the number of streams. Events
 * leave in the order of their numbers, each once: a stream has the number of the next one that it
 * wants, and takes nothing below it.
 *
 *     BEGINS (the plan, then the first page: errors are answers) -> CATCHES_UP -> FOLLOWS -> ENDS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/shard.h"
#include "supervisor/gateway/merged.h"

enum {
    PAGE_EVENTS = 500,
    PAGE_HOLDS = 32,      /* of a view that holds: the rest of a page is read again */
    HEARTBEAT_MS = 15000, /* of silence */
    OUT_FILL = 64 * 1024, /* bytes of a stream that wait to be taken, about */
    OUT_KEPT = 16 * 1024,
    PART_MS = 3000, /* for the answer of a shard to one page; then it is missing */
    BLOCK = 16 * 1024
};

void stream_wake(struct stream *st)
{
    if (st->asleep) {
        st->asleep = false;
        st->h->s->counts.wakes++;
        MHD_resume_connection(st->h->mhd);
    }
}

/* ---- a history that was lost ---- */

/* No more events come. */
static enum stream_state last_state(const struct stream *st)
{
    return st->view != NULL && !st->finishing ? FINISHES : ENDS;
}

void stream_changed(struct stream *st, uint64_t from)
{
    struct stream *whole = st->part_of != NULL ? st->part_of : st;

    if (whole->page) {
        merged_page_changed(st, from);
        return;
    }
    if (whole->view ==
        NULL) { /* without an id: its reader comes back with that of its last event */
        buf_add_cstr(&whole->out, whole->ndjson ? "" : "event: history_changed\ndata: ");
        buf_add_cstr(&whole->out, "{\"type\":\"history_changed\",");
        if (whole != st) {
            buf_printf(&whole->out, "\"shard\":%" PRIu32 ",", st->feed->shard);
        }
        buf_printf(&whole->out, "\"fromSeq\":%" PRIu64 "}%s", from, whole->ndjson ? "\n" : "\n\n");
    }
    st->state = last_state(st);
    stream_wake(whole);
}

/* ---- events as bytes ---- */

static bool wants(const struct stream *st, const struct ring_event *e)
{
    bool type = st->types_n == 0 || strcmp(e->type, "event_damaged") == 0;

    for (uint32_t i = 0; i < st->types_n && !type; i++) {
        type = str_is(st->types[i], e->type);
    }
    return type && (st->plan_id.len == 0 || str_is(st->plan_id, e->plan_id));
}

void stream_view_event(struct stream *st, struct str json)
{
    struct bt_error err;
    struct buf event;

    buf_init(&event, json_doc_capacity(json.len));
    if (json_to_doc(json, NULL, &event, &err) == BT_OK) {
        st->view->event(st, doc_from_buf(&event));
    }
    buf_done(&event);
}

/* The event has its turn. True: its reader gets it. */
static bool takes(struct stream *st, const struct ring_event *e)
{
    if (e->seq < st->next_seq) {
        return false;
    }
    st->next_seq = e->seq + 1;
    memcpy(st->last_id, e->event_id, sizeof st->last_id);
    if (st->plan_id.len > 0 && str_is(st->plan_id, e->plan_id) &&
        strcmp(e->type, "plan_completed") == 0) {
        st->plan_over = true;
    }
    return wants(st, e);
}

static void put_event(struct stream *st, const struct ring_event *e)
{
    if (!takes(st, e)) {
        return;
    }
    if (st->part_of != NULL) {
        merged_put(st, e);
        return;
    }
    if (st->view != NULL) {
        stream_view_event(st, ring_json(e));
        return;
    }
    buf_add_str(&st->out, (st->ndjson ? ring_line(e) : ring_sse(e)));
}

/* Bytes that wait to be taken; a part waits for its whole. */
static size_t waiting(const struct stream *st)
{
    return st->part_of != NULL ? waiting(st->part_of) : st->out.len - st->out_at;
}

/* From the ring into the answer: whole events, as many as fit. A stream that keeps up has no bytes
 * of its own. */
static size_t take_ring(struct stream *st, char *to, size_t max)
{
    const struct ring *ring = &st->feed->ring;
    const struct ring_event *e;
    size_t n = 0;

    while (!st->plan_over && (e = ring_get(ring, st->place)) != NULL) {
        const struct str bytes = (st->ndjson ? ring_line(e) : ring_sse(e));
        if (bytes.len > max - n) {
            break;
        }
        st->place++;
        if (takes(st, e)) {
            memcpy(to + n, bytes.ptr, bytes.len);
            n += bytes.len;
        }
    }
    return n;
}

/* From the ring, as much as the stream holds. */
static void follow(struct stream *st)
{
    const struct ring *ring = &st->feed->ring;
    const struct ring_event *e;

    if (st->place < ring->first) {
        /* it was too slow: it comes back with Last-Event-ID; a view reads pages again */
        st->state = st->view != NULL || st->part_of != NULL ? CATCHES_UP : ENDS;
        return;
    }
    while (!st->plan_over && !st->held && waiting(st) < OUT_FILL &&
           (e = ring_get(ring, st->place)) != NULL) {
        st->place++;
        put_event(st, e);
    }
    if (st->plan_over) {
        st->state = last_state(st);
    }
}

static void leave(struct stream *st, enum stream_state state)
{
    if (st->state == FOLLOWS) {
        st->feed->followers--;
    }
    st->state = state;
}

/* ---- the answer: libmicrohttpd takes bytes when the client does ---- */

static ssize_t on_take(void *self, uint64_t pos, char *to, size_t max)
{
    struct stream *st = self;
    size_t n = waiting(st);

    (void)pos;
    if (n == 0 && st->state == FOLLOWS && st->view == NULL) {
        const size_t direct = take_ring(st, to, max);
        if (direct > 0) {
            st->sent = st->h->s->now;
            return (ssize_t)direct;
        }
    }
    if (n == 0 && st->state == FOLLOWS) {
        buf_clear(&st->out);
        st->out_at = 0;
        follow(st);
        if (st->state != FOLLOWS) {
            st->feed->followers--;
        }
        n = waiting(st);
    }
    if (buf_check(&st->out, NULL) != BT_OK) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (n == 0) {
        if (st->state == ENDS) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        st->asleep = true;
        MHD_suspend_connection(st->h->mhd);
        return 0;
    }
    n = n < max ? n : max;
    memcpy(to, st->out.at + st->out_at, n);
    st->out_at += n;
    st->sent = st->h->s->now;
    if (waiting(st) == 0) {
        st->out_at = 0;
        buf_clear(&st->out);
        if (st->out.cap > OUT_KEPT) {
            buf_done(&st->out);
        }
    }
    return (ssize_t)n;
}

struct MHD_Response *stream_response(struct stream *st)
{
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_take, st, NULL);
}

/* ---- what it missed ---- */

static void put_page(struct stream *st, struct doc body)
{
    struct doc_cursor at = doc_cursor(doc_get(body, STR_LIT("events")));
    const uint64_t next = doc_head(doc_get(body, STR_LIT("nextSeq"))).u;
    struct doc_head head;

    if (!doc_next(&at, &head) || head.kind != DOC_ARRAY) {
        return;
    }
    for (uint32_t i = 0; i < head.n && !st->plan_over && !st->held; i++) {
        struct ring_event *e = ring_event_new(doc_skip(&at), st->leader[0] != 0);
        if (e != NULL) {
            put_event(st, e);
            free(e);
        }
    }
    if (next > st->next_seq && !st->held) {
        st->next_seq = next;
        event_id_copy(doc_string(doc_get(body, STR_LIT("lastEventId"))), st->last_id);
    }
}

/* Before the first event, so that whoever is cut off there misses none. */
static void put_first_id(struct stream *st, struct event_place at)
{
    if (st->ndjson) {
        return;
    }
    memcpy(at.id, st->begins_now ? st->last_id : "", st->begins_now ? sizeof at.id : 1);
    buf_add_cstr(&st->out, "id: ");
    event_place_put(&at, &st->out);
    buf_add_cstr(&st->out, "\n\n");
}

bool stream_is_over(struct stream *st)
{
    struct http *h = st->h;

    if (!st->plan_final || st->after.seq < st->plan_last) {
        return false;
    }
    st->state = ENDS;
    h->status = 204;
    h->type = NULL;
    h->state = HTTP_READY;
    http_ready(h);
    return true;
}

/* Before the first page: whether the daemon has the reader's last event, and, where numbers may be
 * used again, the eventId of the last event of all. True: the next page is asked for, or none. */
static bool looks_first(struct stream *st, const struct reply *reply, uint64_t last)
{
    if (st->checks) {
        st->checks = false;
        if (!stream_is_over(st)) {
            stream_read_page(st);
        }
        return true;
    }
    if (st->from_now && st->leader[0] != 0) {
        st->from_now = false;
        st->looks_back = true;
        st->next_seq = last > 0 ? last : 1;
        stream_read_page(st);
        return true;
    }
    if (st->looks_back) {
        st->looks_back = false;
        st->begins_now = true;
        st->next_seq = doc_head(doc_get(reply->body, STR_LIT("nextSeq"))).u;
        event_id_copy(doc_string(doc_get(reply->body, STR_LIT("lastEventId"))), st->last_id);
    }
    return false;
}

static void first_page(struct stream *st, uint64_t last)
{
    struct http *h = st->h;

    if (st->from_now) {
        st->next_seq = last + 1;
    } else if (st->after.seq > last) {
        http_refuse(h, BT_INVALID, 400, "Last-Event-ID",
                    "it is after the last event of this daemon: it is of another journal; begin "
                    "again without it");
        http_ready(h);
        return;
    }
    h->status = 200;
    h->type = st->ndjson ? "application/x-ndjson" : "text/event-stream";
    if (!st->ndjson) {
        buf_add_cstr(&st->out, "retry: 1000\n\n");
    }
    if (st->begins_now || (st->from_now && st->view != NULL)) { /* the first event may be long
                                                                   in coming */
        const struct event_place at = {.seq = st->begins_now ? st->next_seq - 1 : last};
        put_first_id(st, at);
    }
    st->state = CATCHES_UP;
    st->sent = h->s->now;
    h->state = HTTP_READY;
    http_ready(h);
}

static void on_page(void *self, const struct reply *reply)
{
    struct stream *st = self;
    struct http *h = st->h;
    uint64_t last = 0;

    st->call = NULL;
    if (reply->ok) {
        last = doc_head(doc_get(reply->body, STR_LIT("lastSeq"))).u;
        event_id_copy(doc_string(doc_get(reply->body, STR_LIT("leader"))), st->leader);
        if (st->state == BEGINS && looks_first(st, reply, last)) {
            return;
        }
    }
    if (st->state == BEGINS && st->part_of != NULL) {
        merged_part_begins(st, reply);
        return;
    }
    if (!reply->ok && st->state != BEGINS && reply->problem.code == BT_HISTORY_CHANGED) {
        stream_changed(st, stream_changed_from(&reply->problem));
        return;
    }
    if (!reply->ok && st->page && merged_part_fails(st, reply->problem.code)) {
        return;
    }
    if (!reply->ok) {
        if (st->state == BEGINS) {
            http_problem(h, &reply->problem);
            http_ready(h);
        } else if (reply->problem.code == BT_UNAUTHORIZED || reply->problem.code == BT_NOT_FOUND ||
                   reply->problem.code == BT_GONE) {
            st->state = last_state(st);
        }
        st->again = h->s->now + STREAM_AGAIN_MS;
        stream_wake(st);
        return;
    }
    if (st->state == BEGINS) {
        first_page(st, last);
    }
    if (st->state == CATCHES_UP && !st->from_now) {
        put_page(st, reply->body);
    }
    st->from_now = false;
    if (st->plan_over || (st->plan_final && st->next_seq > st->plan_last)) {
        st->state = last_state(st);
    }
    if (st->state == CATCHES_UP && st->page && !st->held) {
        st->caught_up = st->next_seq > last;
        st->again = st->caught_up ? h->s->now + STREAM_AGAIN_MS : 0;
    } else if (st->state == CATCHES_UP && !st->held) {
        (void)feed_join(st, last);
    }
    stream_wake(st);
}

static void put_types(const struct stream *st, struct buf *fields)
{
    doc_put_cstr(fields, "types");
    doc_put_array(fields, st->types_n);
    for (uint32_t i = 0; i < st->types_n; i++) {
        doc_put_str(fields, st->types[i]);
    }
}

void stream_read_page(struct stream *st)
{
    struct call_spec spec = {.type = MSG_events_read,
                             .answer = MSG_events_read_ok,
                             .reads = true,
                             .done = on_page,
                             .self = st};
    const bool one = st->from_now || st->checks || st->looks_back;
    const char *id = st->checks                                  ? st->after.id
                     : st->leader[0] != 0 || st->state == BEGINS ? st->last_id
                                                                 : "";
    struct http *h = st->h;
    struct bt_error err;
    struct buf fields;

    buf_init(&fields, LIMIT_CONTROL_BYTES);
    doc_put_map(&fields, 2u + (id[0] != 0) + (st->plan_id.len > 0) + (st->types_n > 0));
    doc_put_cstr(&fields, "fromSeq");
    doc_put_u64(&fields, st->from_now ? (uint64_t)INT64_MAX
                         : st->checks ? st->after.seq + 1
                                      : st->next_seq);
    doc_put_cstr(&fields, "limit");
    doc_put_u64(&fields, one ? 1 : st->holds ? PAGE_HOLDS : PAGE_EVENTS);
    if (id[0] != 0) {
        doc_put_cstr(&fields, "afterEventId");
        doc_put_cstr(&fields, id);
    }
    if (st->plan_id.len > 0) {
        doc_put_cstr(&fields, "planId");
        doc_put_str(&fields, st->plan_id);
    }
    if (st->types_n > 0) {
        put_types(st, &fields);
    }
    spec.fields = doc_from_buf(&fields);
    spec.to_shard = st->part_of != NULL ? st->feed->shard + 1 : 0;
    spec.within_ms = st->page ? PART_MS : 0;
    if (buf_check(&fields, &err) != BT_OK ||
        caller_call(h->caller, &spec, h->s->now, &st->call, &err) != BT_OK) {
        if (st->state == BEGINS && !(st->page && merged_part_fails(st, err.code))) {
            http_refuse(h, err.code, 0, "", err.msg);
            http_ready(h);
        }
        st->again = h->s->now + STREAM_AGAIN_MS;
    }
    buf_done(&fields);
}

/* ---- its life ---- */

uint32_t stream_shard(const struct http *h, struct str plan_id)
{
    const uint32_t shards = upstream_shards(h->s->up);
    struct uuid id;

    return shards > 1 && uuid_parse(plan_id, &id) ? shard_of_id(id) % shards : 0;
}

struct stream *stream_new(struct http *h, uint32_t shard)
{
    struct stream *st = calloc(1, sizeof *st);

    if (st == NULL) {
        return NULL;
    }
    st->feed = feed_of(h->caller, shard);
    if (st->feed == NULL) {
        free(st);
        return NULL;
    }
    st->feed->users++;
    st->h = h;
    buf_init(&st->out, OUT_MAX);
    st->next = h->s->streams;
    if (st->next != NULL) {
        st->next->prev = st;
    }
    h->s->streams = st;
    return st;
}

void stream_free(struct stream *st)
{
    struct feed *f;

    if (st == NULL) {
        return;
    }
    f = st->feed;
    if (st->merged != NULL) {
        merged_free(st);
    }
    leave(st, ENDS);
    if (st->view != NULL) {
        st->view->gone(st, st->finishing && st->h->state == HTTP_ANSWERED && waiting(st) == 0);
    }
    if (st->call != NULL) {
        call_abandon(st->call);
    }
    *(st->prev != NULL ? &st->prev->next : &st->h->s->streams) = st->next;
    if (st->next != NULL) {
        st->next->prev = st->prev;
    }
    feed_release(f);
    buf_done(&st->out);
    free(st);
}

/* ---- the cycle ---- */

static void heartbeat(struct stream *st, msec now)
{
    if (st->asleep && now - st->sent >= HEARTBEAT_MS) {
        st->sent = now;
        buf_add_cstr(&st->out, st->ndjson ? "\n" : ": heartbeat\n\n");
        stream_wake(st);
    }
}

/* Whether its request takes events now. */
static bool is_running(const struct stream *st)
{
    return st->state != BEGINS && st->h->state == (st->quiet ? HTTP_WAITS : HTTP_ANSWERED);
}

static void run(struct stream *st, msec now)
{
    if (st->merged != NULL) {
        merged_run(st);
        if (!st->page) {
            heartbeat(st, now);
        }
        return;
    }
    if (st->state == CATCHES_UP && st->call == NULL && !st->held && st->again <= now &&
        waiting(st) < (st->quiet ? OUT_MAX : OUT_FILL)) {
        stream_read_page(st);
    }
    if (st->state == FOLLOWS && st->feed->lost) { /* nobody may read for it any more */
        leave(st, last_state(st));
        stream_wake(st);
    }
    if (st->state == FOLLOWS && st->feed->changed > 0) {
        leave(st, ENDS);
        stream_changed(st, st->feed->changed);
    }
    if (st->state == FOLLOWS && (st->quiet || st->part_of != NULL)) {
        follow(st);
        if (st->state != FOLLOWS) {
            st->feed->followers--;
        }
    }
    if (st->state == FOLLOWS) {
        feed_read(st->feed, now);
        if (st->asleep && !st->held &&
            (ring_get(&st->feed->ring, st->place) != NULL || st->place < st->feed->ring.first)) {
            stream_wake(st);
        }
    }
    if (st->state == FINISHES && !st->finishing && st->call == NULL) {
        st->finishing = true;
        st->view->over(st);
        stream_wake(st);
    }
    if (!st->quiet) {
        heartbeat(st, now);
    }
}

void streams_run(struct server *s, msec now)
{
    for (struct stream *st = s->streams; st != NULL; st = st->next) {
        if (is_running(st)) {
            run(st, now);
        }
    }
}

msec streams_deadline(const struct server *s, msec now)
{
    msec due = s->streams == NULL ? MSEC_NEVER : now + STREAM_AGAIN_MS;

    for (const struct stream *st = s->streams; st != NULL; st = st->next) {
        const struct feed *f = st->feed;
        if (f->followers > 0 && f->call == NULL && f->again > now && f->again < due) {
            due = f->again;
        }
    }
    return due;
}
