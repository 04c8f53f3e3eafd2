#include "supervisor/gateway/watch.h"

#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/log.h"
#include "protocol/base/shard.h"
#include "protocol/client/state.h"

enum {
    PAGE = 1000,
    MANY = PAGE / 4, /* events in a page: they come fast */
    PAUSE_MS = 20,   /* between pages: an answer to each event would cost the daemon more */
    PAUSE_MANY_MS = 50,
    WAIT_MS = 20000,
    AGAIN_MS = 500,
    REFUSED_MS = 10000
};

/* Of one shard. */
struct reader {
    struct watch *of;
    struct call *call;
    uint64_t next;                   /* 0 = from now on */
    char last_id[UUID_TEXT_LEN + 1]; /* of a fleet: the eventId of the event before it */
    msec again;
    bool failed;
};

struct watch {
    struct upstream *up;
    const char *dir;
    struct caller *caller;
    char token[STATE_TOKEN_LEN + 1]; /* the caller's */
    struct reader readers[SHARDS_MAX];
    uint32_t shard; /* of the event that the takers have now */
    uint64_t seen;
    msec looked, now;
    bool refused;
    struct {
        void (*take)(void *self, struct doc event);
        void *self;
    } takers[WATCH_TAKERS_MAX];
    uint32_t takers_n;
};

enum bt_code watch_new(struct upstream *up, const char *state_dir, struct watch **ret,
                       struct bt_error *err)
{
    struct watch *w = calloc(1, sizeof *w);

    *ret = w;
    if (w == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the reader of events");
    }
    w->up = up;
    w->dir = state_dir;
    return BT_OK;
}

void watch_add(struct watch *w, void (*take)(void *self, struct doc event), void *self)
{
    if (w->takers_n < WATCH_TAKERS_MAX) {
        w->takers[w->takers_n].take = take;
        w->takers[w->takers_n++].self = self;
    }
}

uint32_t watch_shard(const struct watch *w)
{
    return w->shard;
}

uint32_t watch_shards(const struct watch *w)
{
    return upstream_shards(w->up);
}

uint64_t watch_seen(const struct watch *w)
{
    return w->seen;
}

struct caller *watch_caller(struct watch *w, msec now)
{
    char token[STATE_TOKEN_LEN + 1] = "";
    uint64_t retry_ms;
    struct bt_error err;

    if (w->caller != NULL && !w->refused && now - w->looked < REFUSED_MS) {
        return w->caller;
    }
    w->looked = now;
    if (state_token_read(w->dir, token, &err) != BT_OK) {
        return w->refused ? NULL : w->caller;
    }
    if (w->caller == NULL || w->refused || strcmp(token, w->token) != 0) {
        if (w->caller != NULL) {
            caller_release(w->caller);
        }
        w->caller = NULL;
        if (upstream_caller(w->up, str_from(token), true, now, &w->caller, &retry_ms, &err) ==
            BT_OK) {
            memcpy(w->token, token, sizeof token);
        }
        w->refused = false;
    }
    explicit_bzero(token, sizeof token);
    return w->caller;
}

/* A failover lost events that were read: from where the histories part, or from now on. */
static void go_back(struct reader *r, struct doc details)
{
    const struct doc from =
        details.ptr != NULL ? doc_get(details, STR_LIT("fromSeq")) : (struct doc){NULL, 0};

    r->next = from.ptr != NULL && doc_head(from).u > 1 ? doc_head(from).u : 0;
    r->last_id[0] = 0;
    r->failed = false;
}

static void keep_id(struct reader *r, struct doc body)
{
    const struct str id = doc_get(body, STR_LIT("leader")).ptr != NULL
                              ? doc_string(doc_get(body, STR_LIT("lastEventId")))
                              : (struct str){NULL, 0};

    (void)snprintf(r->last_id, sizeof r->last_id, "%.*s", id.ptr != NULL ? (int)id.len : 0,
                   id.ptr != NULL ? id.ptr : "");
}

static void on_page(void *self, const struct reply *reply)
{
    struct reader *r = self;
    struct watch *w = r->of;
    struct doc_cursor at;
    struct doc_head head = {.kind = DOC_NIL};
    uint64_t next;

    r->call = NULL;
    r->failed = !reply->ok;
    if (!reply->ok && reply->problem.code == BT_HISTORY_CHANGED) {
        go_back(r, reply->problem.details);
        return;
    }
    if (!reply->ok) {
        if (reply->problem.code == BT_UNAUTHORIZED && !w->refused) {
            w->refused = true;
            log_warn("gateway.watch", "the token of the state directory may not read events: %.*s",
                     (int)reply->problem.message.len, reply->problem.message.ptr);
        }
        return;
    }
    next = doc_head(doc_get(reply->body, STR_LIT("nextSeq"))).u;
    if (r->next == 0) {
        r->next = doc_head(doc_get(reply->body, STR_LIT("lastSeq"))).u + 1;
        return;
    }
    w->shard = (uint32_t)(r - w->readers);
    at = doc_cursor(doc_get(reply->body, STR_LIT("events")));
    (void)doc_next(&at, &head);
    for (uint32_t i = 0; head.kind == DOC_ARRAY && i < head.n; i++) {
        const struct doc event = doc_skip(&at);
        w->seen++;
        for (uint32_t t = 0; t < w->takers_n; t++) {
            w->takers[t].take(w->takers[t].self, event);
        }
    }
    if (next >= r->next) {
        r->next = next;
        keep_id(r, reply->body);
    }
    if (r->next > doc_head(doc_get(reply->body, STR_LIT("lastSeq"))).u) { /* it has all */
        r->again = w->now + (head.n >= MANY ? PAUSE_MANY_MS : PAUSE_MS);
    }
}

static void read_next(struct reader *r, struct caller *caller, msec now)
{
    struct call_spec spec = {.type = MSG_events_read,
                             .answer = MSG_events_read_ok,
                             .reads = true,
                             .to_shard = (uint32_t)(r - r->of->readers) + 1,
                             .wait_ms = r->next == 0 ? 0 : WAIT_MS,
                             .live = true,
                             .done = on_page,
                             .self = r};
    struct bt_error err;
    struct buf fields;

    buf_init(&fields, 256);
    doc_put_map(&fields, 3u + (r->last_id[0] != 0));
    if (r->last_id[0] != 0) {
        doc_put_cstr(&fields, "afterEventId");
        doc_put_cstr(&fields, r->last_id);
    }
    doc_put_cstr(&fields, "fromSeq");
    doc_put_u64(&fields, r->next == 0 ? (uint64_t)INT64_MAX : r->next);
    doc_put_cstr(&fields, "limit");
    doc_put_u64(&fields, r->next == 0 ? 1 : PAGE);
    doc_put_cstr(&fields, "waitMs");
    doc_put_u64(&fields, r->next == 0 ? 0 : WAIT_MS);
    spec.fields = doc_from_buf(&fields);
    r->failed = caller_call(caller, &spec, now, &r->call, &err) != BT_OK;
    buf_done(&fields);
}

static void run(struct reader *r, msec now)
{
    struct watch *w = r->of;
    struct caller *caller;

    if (r->call != NULL) {
        return;
    }
    if (r->failed) {
        r->failed = false;
        r->again = now + AGAIN_MS;
    }
    if (r->again > now || (w->refused && now - w->looked < REFUSED_MS)) {
        return;
    }
    caller = watch_caller(w, now);
    if (caller == NULL) {
        r->again = now + AGAIN_MS;
        return;
    }
    read_next(r, caller, now);
}

void watch_run(struct watch *w, msec now)
{
    w->now = now;
    for (uint32_t i = 0; w->takers_n > 0 && i < upstream_shards(w->up); i++) {
        w->readers[i].of = w;
        run(&w->readers[i], now);
    }
}

msec watch_deadline(const struct watch *w)
{
    msec due = MSEC_NEVER;

    for (uint32_t i = 0; w->takers_n > 0 && i < upstream_shards(w->up); i++) {
        const struct reader *r = &w->readers[i];
        due = r->call == NULL && r->again < due ? r->again : due;
    }
    return due;
}
