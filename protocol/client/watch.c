/*
 * Delivers every event once, in order, without gaps. `expected` is the next sequence number that
 * the caller has not had. A frame with this number is delivered. After a later one (the publisher
 * dropped some) or a heartbeat that is ahead, the watch reads the range with events.read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/client/client_internal.h"

enum {
    PAGE_LIMIT = 500,
    FRAMES_MAX = 1024,
    SETTLE_MS = 30,
    SILENCE_MS = 3000,
    READ_MIN_MS = 500,
    PAUSE_MS = 200
};

struct bt_watch {
    struct bt_client *client;
    char plan_id[BT_ID_LEN + 1]; /* "" = all */
    uint64_t expected;
    uint64_t newest_seq; /* the newest sequence number that any frame or answer had */
    msec last_contact;   /* when the daemon last sent anything; a heartbeat comes every second */
    msec read_at;        /* when to read again, because a new subscription may have missed events;
                            MSEC_NEVER = not */
    uint64_t filled;
    struct link_msg *frames[FRAMES_MAX]; /* a ring of frames that have arrived */
    uint32_t frames_at, frames_n;
    struct link_msg *page; /* the answer that is being delivered */
    struct msg_reader page_reader;
    struct doc_cursor page_cursor;
    uint32_t page_left;
    uint64_t page_next;
    struct buf json;
    char type[72];
    char event_plan[BT_ID_LEN + 1];
};

void watch_take(struct bt_watch *w, struct link_event *ev)
{
    w->last_contact = ev->msg != NULL ? clock_mono_ms() : w->last_contact;
    if (ev->type == LINK_SUB_UP) {
        w->read_at = clock_mono_ms() + SETTLE_MS;
    }
    if (ev->msg == NULL) {
        return;
    }
    if (w->frames_n == FRAMES_MAX) { /* dropping is safe: the sequence numbers show the gap */
        link_msg_free(ev->msg);
        return;
    }
    w->frames[(w->frames_at + w->frames_n++) % FRAMES_MAX] = ev->msg;
}

/* The client's one subscription serves one watch after another, because a socket must not be closed
 * under traffic (N1). */
static enum bt_code subscribe(struct bt_watch *w, struct bt_error *err)
{
    struct link_limits limits = {.recv_max = 2 * (size_t)LIMIT_EVENT_BYTES};
    struct bt_client *c = w->client;
    struct state_endpoints now = c->at;

    if (client_reads_events(c)) {
        return BT_OK;
    }
    if (c->sub != NULL && (state_endpoints_read(c->dir, &now, NULL) != BT_OK ||
                           strcmp(now.events, c->events_url) == 0)) {
        return BT_OK; /* same address: the link redials by itself; it sends nothing */
    }
    (void)snprintf(c->events_url, sizeof c->events_url, "%s", now.events);
    return link_sub_dial(c->link, c->events_url, NULL, 0, &limits, c, &c->sub, err);
}

enum bt_code bt_watch_open(struct bt_client *c, const char *plan_id, uint64_t after,
                           struct bt_watch **ret, struct bt_error *err)
{
    struct bt_watch *w;
    struct buf doc;
    char *json = NULL;
    enum bt_code code;

    if (c->watch != NULL) {
        return err_set(err, BT_CONFLICT, "a client has at most one watch at a time");
    }
    code = bt_client_call(c, "supervisor.info", NULL, &json, err);
    if (code != BT_OK) {
        bt_free(json);
        return code;
    }
    w = calloc(1, sizeof *w);
    buf_init(&doc, LIMIT_CONTROL_BYTES);
    if (w == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for a watch");
    } else {
        code = json_to_doc(str_from(json), NULL, &doc, err);
    }
    if (code == BT_OK) {
        w->client = c;
        w->newest_seq = doc_head(doc_get(doc_from_buf(&doc), STR_LIT("lastSeq"))).u;
        w->expected = after == UINT64_MAX ? w->newest_seq + 1 : after + 1;
        w->last_contact = clock_mono_ms();
        w->read_at = w->last_contact +
                     SETTLE_MS; /* reads what came between the request and the subscription */
        (void)snprintf(w->plan_id, sizeof w->plan_id, "%s", plan_id != NULL ? plan_id : "");
        buf_init(&w->json, 8 * (size_t)LIMIT_EVENT_BYTES);
        c->watch = w;
        code = subscribe(w, err);
    }
    bt_free(json);
    buf_done(&doc);
    if (code != BT_OK) {
        bt_watch_close(w);
        return code;
    }
    *ret = w;
    return BT_OK;
}

static void drop_page(struct bt_watch *w)
{
    if (w->page != NULL) {
        msg_reader_done(&w->page_reader);
        link_msg_free(w->page);
        w->page = NULL;
    }
}

void bt_watch_close(struct bt_watch *w)
{
    if (w == NULL) {
        return;
    }
    drop_page(w);
    for (uint32_t i = 0; i < w->frames_n; i++) {
        link_msg_free(w->frames[(w->frames_at + i) % FRAMES_MAX]);
    }
    if (w->client != NULL) {
        w->client->watch = NULL;
    }
    buf_done(&w->json);
    free(w);
}

uint64_t bt_watch_filled(const struct bt_watch *w)
{
    return w->filled;
}

/* Reads a page of events from `expected` on. */
static enum bt_code read_page(struct bt_watch *w, uint32_t wait_ms, uint32_t timeout_ms,
                              struct bt_error *err)
{
    struct msg_events_read query = {.from_seq = w->expected,
                                    .limit = PAGE_LIMIT,
                                    .plan_id = str_from(w->plan_id),
                                    .wait_ms = wait_ms};
    struct msg_events_read_ok ok;
    struct doc_head head;
    struct str answer;
    struct buf request;
    enum bt_code code;

    drop_page(w);
    buf_init(&request, LIMIT_CONTROL_BYTES);
    code = msg_request(&request, WIRE_MSGPACK, STR_LIT("watch"), str_from(w->client->token),
                       MSG_events_read, &query, err);
    if (code == BT_OK) {
        code = client_exchange(w->client, &request, timeout_ms, &w->page, &answer, err);
    }
    buf_done(&request);
    if (code != BT_OK) {
        return code;
    }
    code = msg_reader_init(&w->page_reader, answer.ptr, answer.len, LIMIT_STEP_BYTES, err);
    if (code == BT_OK) {
        code = msg_read_answer(&w->page_reader, MSG_events_read_ok, &ok, NULL, err);
    }
    if (code != BT_OK) {
        drop_page(w);
        return code;
    }
    w->page_cursor = doc_cursor(ok.events);
    w->page_left = doc_next(&w->page_cursor, &head) && head.kind == DOC_ARRAY ? head.n : 0;
    w->page_next = ok.next_seq;
    w->newest_seq = ok.last_seq > w->newest_seq ? ok.last_seq : w->newest_seq;
    w->last_contact = clock_mono_ms();
    return BT_OK;
}

static enum bt_code deliver(struct bt_watch *w, struct doc body, struct bt_event *ret,
                            struct bt_error *err)
{
    struct str type = doc_string(doc_get(body, STR_LIT("type")));
    struct str plan = doc_string(doc_get(body, STR_LIT("planId")));
    enum bt_code code;

    buf_clear(&w->json);
    code = doc_to_json(body, false, &w->json, err);
    (void)snprintf(w->type, sizeof w->type, "%.*s", STR_ARG(type));
    (void)snprintf(w->event_plan, sizeof w->event_plan, "%.*s", STR_ARG(plan));
    *ret = (struct bt_event){.seq = doc_head(doc_get(body, STR_LIT("seq"))).u,
                             .type = w->type,
                             .plan_id = w->event_plan,
                             .json = buf_cstr(&w->json)};
    return code;
}

/* Returns the next event of the page; false at its end. */
static bool next_of_page(struct bt_watch *w, struct doc *ret)
{
    while (w->page != NULL && w->page_left > 0) {
        uint64_t seq;
        *ret = doc_skip(&w->page_cursor);
        w->page_left--;
        seq = doc_head(doc_get(*ret, STR_LIT("seq"))).u;
        if (seq >= w->expected) {
            w->expected = seq + 1;
            w->filled++;
            return true;
        }
    }
    if (w->page != NULL) {
        w->expected = w->page_next > w->expected ? w->page_next : w->expected;
        drop_page(w);
    }
    return false;
}

/* Takes one frame. True: *ret is the expected event. Its bytes live in *ret_msg, which the caller
 * frees. */
static bool next_of_frame(struct bt_watch *w, struct doc *ret, struct link_msg **ret_msg)
{
    struct link_msg *msg = w->frames[w->frames_at];
    struct str topic;
    struct str body;
    struct msg_reader r = {0};
    bool is_next = false;

    w->frames_at = (w->frames_at + 1) % FRAMES_MAX;
    w->frames_n--;
    if (link_frame_split(link_msg_bytes(msg), &topic, &body) &&
        msg_reader_init(&r, body.ptr, body.len, 2 * (size_t)LIMIT_EVENT_BYTES, NULL) == BT_OK) {
        struct doc d = {(const uint8_t *)body.ptr, body.len};
        bool beat = str_is(topic, "system/heartbeat");
        uint64_t seq = doc_head(doc_get(d, beat ? STR_LIT("lastSeq") : STR_LIT("seq"))).u;
        w->newest_seq = seq > w->newest_seq ? seq : w->newest_seq;
        if (!beat && seq == w->expected) {
            w->expected++;
            is_next =
                w->plan_id[0] == 0 || str_is(doc_string(doc_get(d, STR_LIT("planId"))), w->plan_id);
            *ret = d;
        }
    }
    msg_reader_done(&r);
    if (is_next) {
        *ret_msg = msg;
    } else {
        link_msg_free(msg);
    }
    return is_next;
}

static void receive_frames(struct bt_watch *w, msec timeout_ms)
{
    struct link_event ev;

    (void)link_wait(w->client->link, timeout_ms);
    while (w->frames_n < FRAMES_MAX / 2 && link_next(w->client->link, &ev)) {
        if (ev.sub != NULL) {
            watch_take(w, &ev);
        } else if (ev.msg != NULL) {
            link_msg_free(ev.msg);
        }
    }
}

/*
 * Reads missing events. Returns BT_OK also when the daemon is away for a moment; the watch tries
 * again soon. Returns BT_UNAVAILABLE when it has been silent for CLIENT_GONE_MS.
 */
static enum bt_code catch_up(struct bt_watch *w, msec now, msec deadline, struct bt_error *err)
{
    msec left = deadline > now ? deadline - now : 0;
    uint32_t timeout = w->client->timeout_ms;
    uint32_t wait;
    enum bt_code code;

    if (left < timeout) {
        timeout = left > READ_MIN_MS ? (uint32_t)left : READ_MIN_MS;
    }
    wait = client_remote_wait(w->client, left, &timeout);
    w->read_at = client_reads_events(w->client) ? now : MSEC_NEVER; /* or when a frame says so */
    code = read_page(w, wait, timeout, err);
    if (code == BT_OK && wait > 0 && w->page_left == 0 && clock_mono_ms() - now < wait / 2) {
        w->read_at = now + PAUSE_MS; /* no place was free to wait in */
    }
    if (code != BT_UNAVAILABLE && code != BT_TIMEOUT) {
        return code;
    }
    if (clock_mono_ms() - w->last_contact > CLIENT_GONE_MS) {
        return err_set(err, BT_UNAVAILABLE, "the daemon of %s has not been heard of for %d s",
                       w->client->dir, CLIENT_GONE_MS / 1000);
    }
    w->read_at = clock_mono_ms() + 200;
    return BT_OK;
}

/* Returns how long to wait for the link, at most until the next read or the deadline. */
static msec wait_time(const struct bt_watch *w, msec now, msec deadline)
{
    msec until = deadline < now + PAUSE_MS ? deadline : now + PAUSE_MS;

    until = w->read_at < until ? w->read_at : until;
    return until > now ? until - now : 0;
}

enum bt_code bt_watch_next(struct bt_watch *w, uint32_t timeout_ms, struct bt_event *ret,
                           struct bt_error *err)
{
    msec deadline = clock_mono_ms() + timeout_ms;

    for (;;) {
        struct link_msg *msg = NULL;
        struct doc body;
        msec now;
        if (next_of_page(w, &body)) {
            return deliver(w, body, ret, err);
        }
        while (w->frames_n > 0) {
            if (next_of_frame(w, &body, &msg)) {
                enum bt_code code = deliver(w, body, ret, err);
                link_msg_free(msg);
                return code;
            }
        }
        now = clock_mono_ms();
        if (w->read_at <= now ||
            (w->read_at == MSEC_NEVER &&
             (w->newest_seq >= w->expected || now - w->last_contact > SILENCE_MS))) {
            enum bt_code code = catch_up(w, now, deadline, err);
            if (code != BT_OK) {
                return code;
            }
            if (w->page != NULL && w->page_left > 0) {
                continue;
            }
            now = clock_mono_ms();
        }
        if (now >= deadline) {
            return err_set(err, BT_TIMEOUT, "no event within %u ms", timeout_ms);
        }
        if (subscribe(w, err) != BT_OK) {
            return err->code;
        }
        receive_frames(w, wait_time(w, now, deadline));
    }
}
