#include "supervisor/gateway/watch.h"

#include <stdlib.h>

#include "protocol/base/log.h"
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

struct watch {
    struct upstream *up;
    const char *dir;
    struct caller *caller;
    char token[STATE_TOKEN_LEN + 1]; /* the caller's */
    struct call *call;
    uint64_t next; /* 0 = from now on */
    uint64_t seen;
    msec again, looked, now;
    bool failed, refused;
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

static void on_page(void *self, const struct reply *reply)
{
    struct watch *w = self;
    struct doc_cursor at;
    struct doc_head head = {.kind = DOC_NIL};
    uint64_t next;

    w->call = NULL;
    w->failed = !reply->ok;
    if (!reply->ok) {
        if (reply->problem.code == BT_UNAUTHORIZED && !w->refused) {
            w->refused = true;
            log_warn("gateway.watch", "the token of the state directory may not read events: %.*s",
                     (int)reply->problem.message.len, reply->problem.message.ptr);
        }
        return;
    }
    next = doc_head(doc_get(reply->body, STR_LIT("nextSeq"))).u;
    if (w->next == 0) {
        w->next = doc_head(doc_get(reply->body, STR_LIT("lastSeq"))).u + 1;
        return;
    }
    at = doc_cursor(doc_get(reply->body, STR_LIT("events")));
    (void)doc_next(&at, &head);
    for (uint32_t i = 0; head.kind == DOC_ARRAY && i < head.n; i++) {
        const struct doc event = doc_skip(&at);
        w->seen++;
        for (uint32_t t = 0; t < w->takers_n; t++) {
            w->takers[t].take(w->takers[t].self, event);
        }
    }
    w->next = next > w->next ? next : w->next;
    if (w->next > doc_head(doc_get(reply->body, STR_LIT("lastSeq"))).u) { /* it has all */
        w->again = w->now + (head.n >= MANY ? PAUSE_MANY_MS : PAUSE_MS);
    }
}

static void read_next(struct watch *w, struct caller *caller, msec now)
{
    struct call_spec spec = {.type = MSG_events_read,
                             .answer = MSG_events_read_ok,
                             .reads = true,
                             .wait_ms = w->next == 0 ? 0 : WAIT_MS,
                             .live = true,
                             .done = on_page,
                             .self = w};
    struct bt_error err;
    struct buf fields;

    buf_init(&fields, 128);
    doc_put_map(&fields, 3);
    doc_put_cstr(&fields, "fromSeq");
    doc_put_u64(&fields, w->next == 0 ? (uint64_t)INT64_MAX : w->next);
    doc_put_cstr(&fields, "limit");
    doc_put_u64(&fields, w->next == 0 ? 1 : PAGE);
    doc_put_cstr(&fields, "waitMs");
    doc_put_u64(&fields, w->next == 0 ? 0 : WAIT_MS);
    spec.fields = doc_from_buf(&fields);
    w->failed = caller_call(caller, &spec, now, &w->call, &err) != BT_OK;
    buf_done(&fields);
}

void watch_run(struct watch *w, msec now)
{
    struct caller *caller;

    w->now = now;
    if (w->takers_n == 0 || w->call != NULL) {
        return;
    }
    if (w->failed) {
        w->failed = false;
        w->again = now + AGAIN_MS;
    }
    if (w->again > now || (w->refused && now - w->looked < REFUSED_MS)) {
        return;
    }
    caller = watch_caller(w, now);
    if (caller == NULL) {
        w->again = now + AGAIN_MS;
        return;
    }
    read_next(w, caller, now);
}

msec watch_deadline(const struct watch *w)
{
    return w->takers_n == 0 || w->call != NULL ? MSEC_NEVER : w->again;
}
