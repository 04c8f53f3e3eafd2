#include "supervisor/gateway/merged.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/utf8.h"

enum { PAGE_BYTES = LIMIT_CONTROL_BYTES / 2 };

struct merged {
    struct stream *parts[SHARDS_MAX];
    struct event_place
        had[SHARDS_MAX]; /* the last one of each that was passed on, or begun after */
    uint32_t shards, begun;
    /* of a page */
    bool missing[SHARDS_MAX];
    uint32_t limit, n;
    msec until; /* the first event is waited for */
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

void merged_put_vector(const struct stream *whole, struct buf *out)
{
    const struct merged *m = whole->merged;

    for (uint32_t i = 0; i < m->shards; i++) {
        buf_printf(out, "%sS%" PRIu32 "=", i > 0 ? ";" : "", i);
        event_place_put(&m->had[i], out);
    }
}

void merged_hold(struct stream *whole, bool held)
{
    for (uint32_t i = 0; i < whole->merged->shards; i++) {
        struct stream *part = whole->merged->parts[i];
        if (part != NULL) {
            part->held = held;
            part->holds = part->holds || held;
        }
    }
}

/* seq is a number of the shard. */
static void put_with_shard(const struct stream *part, struct str json, struct buf *out)
{
    buf_printf(out, "{\"shard\":%" PRIu32 ",", part->feed->shard);
    buf_add(out, json.ptr + 1, json.len - 1);
}

/* Of a page. */
static bool is_full(const struct stream *whole)
{
    return whole->merged->n >= whole->merged->limit || whole->out.len >= PAGE_BYTES;
}

void merged_put(struct stream *part, const struct ring_event *e)
{
    struct stream *whole = part->part_of;
    struct merged *m = whole->merged;
    const struct str json = ring_json(e);
    struct buf event;

    m->had[part->feed->shard].seq = e->seq;
    event_id_copy(str_from(e->event_id), m->had[part->feed->shard].id);
    if (whole->view != NULL) {
        buf_init(&event, json.len + 32);
        put_with_shard(part, json, &event);
        stream_view_event(whole, buf_str(&event));
        buf_done(&event);
        stream_wake(whole);
        return;
    }
    if (whole->page) {
        buf_add_cstr(&whole->out, m->n++ > 0 ? "," : "");
        put_with_shard(part, json, &whole->out);
        if (is_full(whole)) {
            merged_hold(whole, true);
        }
        return;
    }
    if (!whole->ndjson) {
        buf_add_cstr(&whole->out, "id: ");
        merged_put_vector(whole, &whole->out);
        buf_printf(&whole->out, "\nevent: %s\ndata: ", e->type);
    }
    put_with_shard(part, json, &whole->out);
    buf_add_cstr(&whole->out, whole->ndjson ? "\n" : "\n\n");
    stream_wake(whole);
}

/* False: out of memory, which is the answer. */
static bool make(struct stream *whole)
{
    whole->merged = calloc(1, sizeof *whole->merged);
    if (whole->merged == NULL) {
        http_refuse(whole->h, BT_NOMEM, 0, "", "out of memory for a stream");
        return false;
    }
    whole->merged->shards = upstream_shards(whole->h->s->up);
    return true;
}

static void begin_parts(struct stream *whole, const struct event_place *after)
{
    struct http *h = whole->h;
    struct merged *m = whole->merged;

    for (uint32_t i = 0; i < m->shards && h->state != HTTP_READY; i++) {
        struct stream *part = stream_new(h, i);
        if (part == NULL) {
            http_refuse(h, BT_NOMEM, 0, "", "out of memory for a stream");
            return;
        }
        m->parts[i] = part;
        part->part_of = whole;
        part->page = part->quiet = part->holds = whole->page;
        part->from_now = after == NULL;
        part->after = after != NULL ? after[i] : (struct event_place){.seq = 0};
        part->next_seq = part->after.seq + 1;
        memcpy(part->last_id, part->after.id, sizeof part->last_id);
        part->types_n = whole->types_n;
        memcpy(part->types, whole->types, sizeof part->types);
        stream_read_page(part);
    }
}

void merged_begin(struct stream *whole, const struct event_place *after)
{
    if (make(whole)) {
        buf_add_cstr(&whole->out, whole->ndjson ? "" : "retry: 1000\n\n");
        begin_parts(whole, after);
    }
}

void merged_begin_page(struct stream *whole, const struct event_place *after, uint32_t limit,
                       msec wait_ms)
{
    if (make(whole)) {
        whole->page = whole->quiet = true;
        whole->merged->limit = limit;
        whole->merged->until = whole->h->s->now + wait_ms;
        memcpy(whole->merged->had, after, sizeof whole->merged->had);
        begin_parts(whole, after);
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
    if (!reply->ok && whole->page && merged_part_fails(part, reply->problem.code)) {
        return;
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
    if (++m->begun < m->shards || whole->page) {
        whole->state = whole->page ? CATCHES_UP : whole->state;
        return;
    }
    if (!whole->ndjson) { /* the first event may be long in coming */
        buf_add_cstr(&whole->out, "id: ");
        merged_put_vector(whole, &whole->out);
        buf_add_cstr(&whole->out, "\n\n");
    }
    whole->state = CATCHES_UP;
    whole->sent = h->s->now;
    h->status = 200;
    h->type = whole->ndjson ? "application/x-ndjson" : "text/event-stream";
    h->state = HTTP_READY;
    http_ready(h);
}

void merged_page_changed(struct stream *part, uint64_t from)
{
    const struct problem p = {
        .code = BT_HISTORY_CHANGED,
        .message = STR_LIT("a failover lost events that were read; read again from fromSeq on")};
    struct problem told = p;
    struct buf details;

    if (part->h->state != HTTP_WAITS) {
        return;
    }
    buf_init(&details, 64);
    doc_put_map(&details, 1);
    doc_put_cstr(&details, "fromSeq");
    doc_put_u64(&details, from);
    told.details = doc_from_buf(&details);
    refuse_part(part, &told);
    buf_done(&details);
}

bool merged_part_fails(struct stream *part, enum bt_code code)
{
    struct stream *whole = part->part_of;

    if (code != BT_UNAVAILABLE && code != BT_TIMEOUT && code != BT_BUSY && code != BT_MOVED) {
        return false;
    }
    whole->merged->missing[part->feed->shard] = true;
    part->state = ENDS;
    whole->state = CATCHES_UP;
    return true;
}

/* Whether the page is as it will be: full, or all that there is, with an event or after the time
 * for one. */
static bool is_done(const struct stream *whole)
{
    const struct merged *m = whole->merged;
    bool all = true;

    for (uint32_t i = 0; i < m->shards; i++) {
        all = all && (m->missing[i] || m->parts[i]->caught_up);
    }
    return is_full(whole) || (all && (m->n > 0 || whole->h->s->now >= m->until));
}

static void finish_page(struct stream *whole)
{
    struct http *h = whole->h;
    struct merged *m = whole->merged;
    uint32_t missing = 0;

    for (uint32_t i = 0; i < m->shards; i++) {
        const struct stream *part = m->parts[i];
        if (part->state != BEGINS && !m->missing[i]) {
            m->had[i].seq = part->next_seq - 1;
            memcpy(m->had[i].id, part->last_id, sizeof m->had[i].id);
        }
    }
    buf_add_cstr(&h->out, "{\"events\":[");
    buf_add(&h->out, whole->out.at, whole->out.len);
    buf_add_cstr(&h->out, "],\"cursor\":\"");
    merged_put_vector(whole, &h->out);
    buf_add_cstr(&h->out, "\",\"missingShards\":[");
    for (uint32_t i = 0; i < m->shards; i++) {
        if (m->missing[i] || m->parts[i]->state == BEGINS) {
            buf_printf(&h->out, "%s%" PRIu32, missing++ > 0 ? "," : "", i);
        }
    }
    buf_add_cstr(&h->out, "]}");
    whole->state = ENDS;
    if (missing == m->shards) {
        http_refuse(h, BT_UNAVAILABLE, 0, "", "none of the shards of this fleet answers now");
    } else {
        h->status = 200;
        h->type = "application/json";
        h->state = HTTP_READY;
    }
    http_ready(h);
}

void merged_run(struct stream *whole)
{
    if (whole->page) {
        if (whole->state != ENDS && is_done(whole)) {
            finish_page(whole);
        }
        return;
    }
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
