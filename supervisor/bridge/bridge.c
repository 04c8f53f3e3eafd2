#include "supervisor/bridge/bridge.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "baton/client.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/client/page.h"
#include "protocol/wire/json_tame.h"
#include "supervisor/bridge/stream.h"

enum {
    PAGE_LIMIT = 1000,
    READ_MS = 1000, /* a read waits in the daemon; so it takes that long to end */
    ANSWER_MS = 5000,
    PAUSE_MS = 200,
    PAUSE_LONG_MS = 2000, /* for what a person has to mend */
    REPEAT_MS = 60000     /* the same trouble is told again */
};

struct bridge {
    const struct options *opt;
    int stop_fd;
    struct bt_client *client;
    struct nats *nats;
    struct stream *stream;
    struct client_page page;
    struct buf json;
    uint64_t last;    /* event in the stream, or on its way */
    uint64_t next;    /* the next number to come from the daemon; those between were deleted */
    char last_id[72]; /* the eventId of the event before it; "" = not known */
    uint64_t sent;    /* since it was said */
    msec said_at;
    char trouble[sizeof((struct bt_error *)0)->msg]; /* "" = all is well */
    msec trouble_at;
};

static bool is_stopped(const struct bridge *b, msec wait)
{
    struct pollfd fd = {.fd = b->stop_fd, .events = POLLIN};

    return b->stop_fd >= 0 && poll(&fd, 1, (int)wait) > 0;
}

/* Says what is the matter when that is new, or has lasted. */
static void tell_trouble(struct bridge *b, const struct bt_error *why)
{
    const msec now = clock_mono_ms();

    if (strcmp(b->trouble, why->msg) == 0 && now - b->trouble_at < REPEAT_MS) {
        return;
    }
    (void)snprintf(b->trouble, sizeof b->trouble, "%s", why->msg);
    b->trouble_at = now;
    log_warn("bridge.waits", "why=\"%s\"", why->msg);
}

static enum bt_code read_page(struct bridge *b, const struct msg_events_read *query,
                              struct bt_error *err)
{
    const uint32_t within = (uint32_t)query->wait_ms + ANSWER_MS;

    return b->opt->shards > 1
               ? client_page_of_shard(b->client, b->opt->shard, query, within, &b->page, err)
               : client_page_read(b->client, query, within, &b->page, err);
}

/* What the stream has cannot be taken back. The page says from where on the histories differ. */
static enum bt_code lost_history(const struct bridge *b, struct bt_error *err)
{
    return err_set(err, BT_CONFLICT,
                   "a failover lost events that the stream %s has, from event %" PRIu64
                   " on, and their numbers are used again: give the bridge another --name, or "
                   "delete the stream",
                   stream_name(b->stream), b->page.next_seq);
}

/* What comes behind the last event. */
static enum bt_code read_next(struct bridge *b, uint64_t wait_ms, struct bt_error *err)
{
    const struct msg_events_read query = {.from_seq = b->next,
                                          .limit = PAGE_LIMIT,
                                          .wait_ms = wait_ms,
                                          .after_event_id = str_from(b->last_id)};
    const enum bt_code code = read_page(b, &query, err);

    return code == BT_HISTORY_CHANGED ? lost_history(b, err) : code;
}

/* Why the daemon does not have the event that the stream ends with. Puts the failover into the
 * error when the daemon knows of one. */
static enum bt_code explain(struct bridge *b, const struct stream_at *at, struct bt_error *err)
{
    const struct msg_events_read query = {
        .from_seq = at->seq + 1, .limit = 1, .after_event_id = str_from(at->event_id)};
    struct bt_error why;

    return read_page(b, &query, &why) == BT_HISTORY_CHANGED && b->page.next_seq > 1
               ? lost_history(b, err)
               : err->code;
}

/* Whether the daemon has the event that the stream ends with, and not another one. */
static enum bt_code compare(struct bridge *b, const struct stream_at *at, struct bt_error *err)
{
    const struct msg_events_read query = {.from_seq = at->seq > 0 ? at->seq : 1, .limit = 1};
    struct doc event;
    struct str id;
    enum bt_code code = read_page(b, &query, err);

    if (code != BT_OK || at->seq == 0) {
        return code;
    }
    if (at->seq > b->page.last_seq) {
        (void)err_set(err, BT_CONFLICT,
                      "the stream %s ends with event %" PRIu64 ", and the daemon has %" PRIu64
                      ": the stream is of another journal, or the journal is an older copy; give "
                      "the bridge another --name, or delete the stream",
                      stream_name(b->stream), at->seq, b->page.last_seq);
        return explain(b, at, err);
    }
    if (!client_page_next(&b->page, &event) ||
        doc_head(doc_get(event, STR_LIT("seq"))).u != at->seq || at->event_id[0] == 0) {
        return BT_OK; /* deleted there: there is nothing to compare */
    }
    id = doc_string(doc_get(event, STR_LIT("eventId")));
    if (!str_is(id, at->event_id)) {
        (void)err_set(err, BT_CONFLICT,
                      "event %" PRIu64 " is %.*s in the daemon and %s in the stream %s: the stream "
                      "is of another journal; give the bridge another --name, or delete the stream",
                      at->seq, STR_ARG(id), at->event_id, stream_name(b->stream));
        return explain(b, at, err);
    }
    return BT_OK;
}

/* One stream has the events of one shard. */
static enum bt_code open_client(struct bridge *b, struct bt_error *err)
{
    uint32_t shards = 1;
    enum bt_code code = bt_client_open(b->opt->state, &b->client, err);

    code = code == BT_OK ? bt_client_shards(b->client, &shards, err) : code;
    if (code == BT_OK && shards != (b->opt->shards > 1 ? b->opt->shards : 1)) {
        code = err_set(err, BT_INVALID, "--shard: the fleet has %" PRIu32 " shards, not %" PRIu32,
                       shards, b->opt->shards > 1 ? b->opt->shards : 1);
    }
    if (code != BT_OK) {
        bt_client_close(b->client);
        b->client = NULL;
    }
    return code;
}

static enum bt_code connect_both(struct bridge *b, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (b->client == NULL) {
        code = open_client(b, err);
    }
    if (b->nats != NULL && nats_is_closed(b->nats)) {
        stream_free(b->stream);
        nats_free(b->nats);
        b->stream = NULL;
        b->nats = NULL;
    }
    if (code == BT_OK && b->nats == NULL) {
        code = nats_open(b->opt, &b->nats, err);
        if (code == BT_OK) {
            code = stream_new(b->opt, b->nats, &b->stream, err);
        }
    }
    return code;
}

static enum bt_code begin(struct bridge *b, struct bt_error *err)
{
    struct stream_at at;
    enum bt_code code = connect_both(b, err);

    code = code == BT_OK ? stream_sync(b->stream, true, &at, err) : code;
    code = code == BT_OK ? compare(b, &at, err) : code;
    if (code != BT_OK) {
        return code;
    }
    b->last = at.seq;
    b->next = at.seq + 1;
    memcpy(b->last_id, at.event_id, sizeof b->last_id);
    b->trouble[0] = 0;
    log_info("bridge.begins", "stream=%s%s after=%" PRIu64 " of=%" PRIu64, stream_name(b->stream),
             at.made ? " made=true" : "", at.seq, b->page.last_seq);
    return BT_OK;
}

/* Goes over what was deleted from b->next on. */
static void skip_deleted(struct bridge *b, uint32_t *ix)
{
    for (; *ix < b->page.deleted_n && b->page.deleted[*ix].from_seq <= b->next; (*ix)++) {
        const uint64_t to = b->page.deleted[*ix].to_seq;
        b->next = to >= b->next ? to + 1 : b->next;
    }
}

static enum bt_code unexplained(const struct bridge *b, uint64_t seq, struct bt_error *err)
{
    return err_set(err, BT_CONFLICT,
                   "the daemon does not show the events %" PRIu64 " to %" PRIu64
                   ", which were not deleted: the bridge's credential must be of a role that sees "
                   "all (observer)",
                   b->next, seq - 1);
}

/* All events of the page are sent. */
static enum bt_code copy_page(struct bridge *b, struct bt_error *err)
{
    struct doc event;
    uint32_t deleted = 0;
    enum bt_code code = BT_OK;

    while (code == BT_OK && client_page_next(&b->page, &event)) {
        const uint64_t seq = doc_head(doc_get(event, STR_LIT("seq"))).u;
        skip_deleted(b, &deleted);
        if (seq != b->next) {
            return unexplained(b, seq, err);
        }
        buf_clear(&b->json);
        code = doc_to_json(event, false, &b->json, err);
        json_tame(&b->json, 0);
        code = code == BT_OK ? buf_check(&b->json, err) : code;
        if (code == BT_OK) {
            const struct stream_event ev = {
                .seq = seq, .prev = b->last, .json = buf_cstr(&b->json), .n = b->json.len};
            code = stream_put(b->stream, &ev, err);
        }
        if (code == BT_OK) {
            b->last = seq;
            b->next = seq + 1;
            b->sent++;
        }
    }
    if (code != BT_OK) {
        return code;
    }
    skip_deleted(b, &deleted);
    if (b->page.deleted_n > 0) {
        log_info("bridge.deleted", "ranges=%u up_to=%" PRIu64 " note=\"their plans were deleted\"",
                 b->page.deleted_n, b->page.deleted[b->page.deleted_n - 1].to_seq);
    }
    (void)snprintf(b->last_id, sizeof b->last_id, "%.*s", (int)b->page.last_event_id.len,
                   b->page.last_event_id.len > 0 ? b->page.last_event_id.ptr : "");
    return b->next == b->page.next_seq ? BT_OK : unexplained(b, b->page.next_seq, err);
}

static void tell(struct bridge *b)
{
    const msec now = clock_mono_ms();

    if (b->sent > 0 && now - b->said_at >= REPEAT_MS) {
        log_info("bridge.state", "stream=%s last=%" PRIu64 " of=%" PRIu64 " sent=%" PRIu64,
                 stream_name(b->stream), b->last, b->page.last_seq, b->sent);
        b->sent = 0;
        b->said_at = now;
    }
}

/* Copies until it is stopped (BT_OK) or something fails. */
static enum bt_code follow(struct bridge *b, struct bt_error *err)
{
    enum bt_code code = begin(b, err);
    bool all = false; /* what the daemon had is in the stream */

    while (code == BT_OK && !is_stopped(b, 0)) {
        code = read_next(b, all ? READ_MS : 0, err);
        code = code == BT_OK ? copy_page(b, err) : code;
        if (code == BT_OK && !nats_is_up(b->nats)) { /* nothing was sent that would have failed */
            code = err_set(err, BT_UNAVAILABLE, "%s: the connection to the server is lost",
                           stream_name(b->stream));
        }
        all = b->next > b->page.last_seq;
        if (code == BT_OK && all) {
            code = stream_settle(b->stream, err);
            tell(b);
        }
        if (code == BT_OK && all && b->opt->once) {
            break;
        }
    }
    return code;
}

/* Whether it goes away by itself, or is soon mended elsewhere. */
static bool may_pass(enum bt_code code)
{
    return code == BT_UNAVAILABLE || code == BT_TIMEOUT || code == BT_BUSY || code == BT_LIMIT;
}

static void done(struct bridge *b)
{
    client_page_done(&b->page);
    stream_free(b->stream);
    nats_free(b->nats);
    bt_client_close(b->client);
    buf_done(&b->json);
}

enum bt_code bridge_run(const struct options *o, int stop_fd, struct bt_error *err)
{
    struct bridge b = {.opt = o, .stop_fd = stop_fd};
    enum bt_code code;
    msec pause;

    buf_init(&b.json, 8 * (size_t)LIMIT_EVENT_BYTES);
    b.said_at = clock_mono_ms();
    for (;;) {
        code = follow(&b, err);
        if (code == BT_OK || !may_pass(code) || (o->once && code != BT_BUSY)) {
            break;
        }
        if (code != BT_BUSY) { /* another bridge was faster */
            tell_trouble(&b, err);
        }
        pause = code == BT_LIMIT ? PAUSE_LONG_MS : PAUSE_MS;
        if (is_stopped(&b, pause)) {
            code = BT_OK;
            break;
        }
    }
    if (code == BT_OK) {
        log_info("bridge.ends", "last=%" PRIu64, b.last);
    }
    done(&b);
    return code;
}

enum bt_code bridge_shards(const struct options *o, int stop_fd, uint32_t *ret,
                           struct bt_error *err)
{
    struct bridge b = {.opt = o, .stop_fd = stop_fd};
    struct bt_client *client = NULL;
    enum bt_code code;

    for (;;) {
        code = bt_client_open(o->state, &client, err);
        code = code == BT_OK ? bt_client_shards(client, ret, err) : code;
        bt_client_close(client);
        client = NULL;
        if (code == BT_OK || !may_pass(code) || o->once || o->status) {
            return code;
        }
        tell_trouble(&b, err);
        if (is_stopped(&b, PAUSE_MS)) {
            *ret = 0;
            return BT_OK;
        }
    }
}

enum bt_code bridge_status(const struct options *o, FILE *out, struct bt_error *err)
{
    struct bridge b = {.opt = o, .stop_fd = -1};
    struct stream_at at;
    enum bt_code code;

    buf_init(&b.json, 1024);
    code = connect_both(&b, err);
    code = code == BT_OK ? stream_sync(b.stream, false, &at, err) : code;
    code = code == BT_OK ? compare(&b, &at, err) : code;
    if (code == BT_OK) {
        (void)fprintf(out,
                      "%s: up to event %" PRIu64 " of %" PRIu64 ", %" PRIu64 " behind; %" PRIu64
                      " messages, %" PRIu64 " bytes\n",
                      stream_name(b.stream), at.seq, b.page.last_seq, b.page.last_seq - at.seq,
                      at.messages, at.bytes);
    }
    done(&b);
    return code;
}
