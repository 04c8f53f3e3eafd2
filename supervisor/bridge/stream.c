#include "supervisor/bridge/stream.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum {
    WINDOW = 1024,
    WAIT_MS = 3000,
    LOOK_MS = 50,
    LOOK_BACK_MAX = 100000,
    ID_MAX = OPTIONS_NAME_MAX + 32
};

struct stream {
    const struct options *opt;
    struct nats *nats;
    char name[OPTIONS_NAME_MAX + 16];
    char subject[OPTIONS_NAME_MAX + 16];
    jsCtx *js;      /* of what was put since stream_sync */
    bool first;     /* nothing was put since */
    uint64_t floor; /* sequence of the stream's last message at stream_sync */
    bool last_kept; /* that message is in the stream, not deleted; of a floor above 0 */
    /* Where it ended when all was acknowledged last: an emptied stream does not tell it. */
    uint64_t created, known_sequence, known_seq;
    uint64_t put_seq;
    pthread_mutex_t lock; /* for what follows */
    jsCtx *listens;       /* acknowledgements of other contexts are late ones */
    enum bt_code bad;     /* the first failure */
    struct bt_error why;
    uint64_t top; /* the highest sequence that was acknowledged */
};

const char *stream_name(const struct stream *s)
{
    return s->name;
}

enum bt_code stream_new(const struct options *o, struct nats *n, struct stream **ret,
                        struct bt_error *err)
{
    struct stream *s = calloc(1, sizeof *s);

    if (s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a stream");
    }
    s->opt = o;
    s->nats = n;
    if (o->shards > 1) {
        (void)snprintf(s->name, sizeof s->name, "BATON_%s_%" PRIu32, o->name, o->shard);
    } else {
        (void)snprintf(s->name, sizeof s->name, "BATON_%s", o->name);
    }
    (void)snprintf(s->subject, sizeof s->subject, "baton.%s.%" PRIu32, o->name, o->shard);
    (void)pthread_mutex_init(&s->lock, NULL);
    *ret = s;
    return BT_OK;
}

static void forget(struct stream *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->listens = NULL;
    s->bad = BT_OK;
    s->top = 0;
    (void)pthread_mutex_unlock(&s->lock);
    jsCtx_Destroy(s->js);
    s->js = NULL;
}

void stream_free(struct stream *s)
{
    if (s == NULL) {
        return;
    }
    forget(s);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

/* On a thread of libnats. The first failure counts: those after it come of it. */
static void on_ack(jsCtx *js, natsMsg *msg, jsPubAck *ack, jsPubAckErr *bad, void *self)
{
    struct stream *s = self;

    (void)pthread_mutex_lock(&s->lock);
    if (js != s->listens || s->bad != BT_OK) {
        /* late, or known already */
    } else if (bad != NULL) {
        s->bad = nats_explain(bad->Err, bad->ErrCode, bad->ErrText, s->name, &s->why);
    } else if (ack->Sequence <= s->floor) {
        s->bad = err_set(&s->why, BT_UNAVAILABLE,
                         "%s: the server still knows events that were deleted from the stream, and "
                         "takes them again when its time for duplicates is over",
                         s->name);
    } else {
        s->top = ack->Sequence > s->top ? ack->Sequence : s->top;
    }
    (void)pthread_mutex_unlock(&s->lock);
    natsMsg_Destroy(msg);
}

static enum bt_code failure(struct stream *s, struct bt_error *err)
{
    enum bt_code code;

    (void)pthread_mutex_lock(&s->lock);
    code = s->bad;
    if (code != BT_OK) {
        *err = s->why;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return code;
}

static enum bt_code begin(struct stream *s, struct bt_error *err)
{
    jsOptions o;
    natsStatus st = jsOptions_Init(&o);

    forget(s);
    o.Wait = WAIT_MS;
    o.PublishAsync.MaxPending = WINDOW;
    o.PublishAsync.StallWait = WAIT_MS;
    o.PublishAsync.AckHandler = on_ack;
    o.PublishAsync.AckHandlerClosure = s;
    st = st == NATS_OK ? natsConnection_JetStream(&s->js, nats_connection(s->nats), &o) : st;
    if (st != NATS_OK) {
        return nats_error(s->nats, st, 0, "JetStream", err);
    }
    (void)pthread_mutex_lock(&s->lock);
    s->listens = s->js;
    (void)pthread_mutex_unlock(&s->lock);
    return BT_OK;
}

/* What would lose events, or mix them with others. */
static const char *unfit(const struct stream *s, const jsStreamConfig *c)
{
    if (c->Mirror != NULL || c->SourcesLen > 0) {
        return "it copies another stream";
    }
    if (c->SubjectsLen != 1 || strcmp(c->Subjects[0], s->subject) != 0) {
        return "it has other subjects";
    }
    if (c->Retention != js_LimitsPolicy) {
        return "its messages go when they are read (retention must be limits)";
    }
    if (c->NoAck) {
        return "it acknowledges nothing (no_ack)";
    }
    return c->Sealed ? "it is sealed" : NULL;
}

static enum bt_code make_stream(struct stream *s, struct bt_error *err)
{
    const char *subjects[] = {s->subject};
    jsStreamConfig c;
    jsErrCode js = 0;
    char what[80];
    jsStreamInfo *info = NULL;
    natsStatus st = jsStreamConfig_Init(&c);

    c.Name = s->name;
    c.Description = "Events of Baton";
    c.Subjects = subjects;
    c.SubjectsLen = 1;
    c.Replicas = s->opt->replicas;
    c.DenyDelete = true;
    st = st == NATS_OK ? js_AddStream(&info, s->js, &c, NULL, &js) : st;
    if (st != NATS_OK) {
        (void)snprintf(what, sizeof what, "making the stream %s", s->name);
        return nats_error(s->nats, st, js, what, err);
    }
    s->first = true;
    s->floor = 0;
    s->created = (uint64_t)info->Created;
    s->known_sequence = s->known_seq = 0;
    jsStreamInfo_Destroy(info);
    return BT_OK;
}

/* What the event is to JetStream. */
static void write_id(const struct stream *s, uint64_t seq, char ret[ID_MAX])
{
    (void)snprintf(ret, ID_MAX, "%s/%" PRIu32 "/%" PRIu64, s->opt->name, s->opt->shard, seq);
}

/* The event that the stream's last message has. */
static enum bt_code read_event(struct stream *s, natsMsg *msg, struct stream_at *ret,
                               struct bt_error *err)
{
    const char *text = NULL;
    const char *id = NULL;
    char expected[ID_MAX];
    struct buf doc;

    (void)natsMsgHeader_Get(msg, "Baton-Seq", &text);
    (void)natsMsgHeader_Get(msg, "Nats-Msg-Id", &id);
    ret->seq = text != NULL ? strtoull(text, NULL, 10) : 0;
    write_id(s, ret->seq, expected);
    if (ret->seq == 0 || id == NULL || strcmp(id, expected) != 0) {
        return err_set(err, BT_CONFLICT,
                       "the last message of the stream %s is not of this bridge: somebody else "
                       "publishes to %s",
                       s->name, s->subject);
    }
    buf_init(&doc, LIMIT_STEP_BYTES);
    if (json_to_doc((struct str){natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg)}, NULL,
                    &doc, NULL) == BT_OK) {
        (void)snprintf(ret->event_id, sizeof ret->event_id, "%.*s",
                       STR_ARG(doc_string(doc_get(doc_from_buf(&doc), STR_LIT("eventId")))));
    }
    buf_done(&doc);
    return BT_OK;
}

/* The last message that is left. A server whose last messages were deleted may not find it by its
 * subject (2.9.10), so it is looked for from the end on. */
static enum bt_code find_last(struct stream *s, const struct stream_at *end, natsMsg **ret,
                              struct bt_error *err)
{
    jsErrCode js = 0;
    natsStatus st = js_GetLastMsg(ret, s->js, s->name, s->subject, NULL, &js);

    for (uint64_t i = 0; i < LOOK_BACK_MAX && i < end->sequence && st == NATS_NOT_FOUND; i++) {
        st = js_GetMsg(ret, s->js, s->name, end->sequence - i, NULL, &js);
    }
    if (st == NATS_NOT_FOUND) {
        return err_set(err, BT_CONFLICT,
                       "the last %d messages of the stream %s are deleted: it does not tell which "
                       "event was the last; delete it, and it is filled again",
                       LOOK_BACK_MAX, s->name);
    }
    return st == NATS_OK ? BT_OK : nats_error(s->nats, st, js, s->name, err);
}

static enum bt_code read_last(struct stream *s, struct stream_at *ret, struct bt_error *err)
{
    natsMsg *msg = NULL;
    enum bt_code code = find_last(s, ret, &msg, err);
    uint64_t at;

    if (code != BT_OK) {
        return code;
    }
    at = natsMsg_GetSequence(msg);
    code = read_event(s, msg, ret, err);
    natsMsg_Destroy(msg);
    s->last_kept = at >= ret->sequence;
    ret->sequence = at > ret->sequence ? at : ret->sequence;
    return code;
}

/* An empty stream that is not new: its messages were deleted, and it does not tell where they
 * ended. */
static enum bt_code recall(struct stream *s, uint64_t created, struct stream_at *ret,
                           struct bt_error *err)
{
    if (s->created == created && s->known_sequence == ret->sequence) {
        ret->seq = s->known_seq;
        return BT_OK;
    }
    if (s->opt->after_given) {
        ret->seq = s->opt->after;
        return BT_OK;
    }
    return err_set(err, BT_CONFLICT,
                   "the stream %s is empty, but had messages: it does not tell which event was the "
                   "last; start the bridge with --after SEQ (0: from the first one on), or delete "
                   "the stream",
                   s->name);
}

enum bt_code stream_sync(struct stream *s, bool make, struct stream_at *ret, struct bt_error *err)
{
    jsStreamInfo *info = NULL;
    jsErrCode js = 0;
    enum bt_code code = begin(s, err);
    const char *why;
    uint64_t created;
    natsStatus st;

    memset(ret, 0, sizeof *ret);
    if (code != BT_OK) {
        return code;
    }
    st = js_GetStreamInfo(&info, s->js, s->name, NULL, &js);
    if (st == NATS_NOT_FOUND || js == JSStreamNotFoundErr) {
        if (!make) {
            return err_set(err, BT_NOT_FOUND, "there is no stream %s", s->name);
        }
        ret->made = true;
        return make_stream(s, err);
    }
    if (st != NATS_OK) {
        return nats_error(s->nats, st, js, s->name, err);
    }
    why = unfit(s, info->Config);
    ret->messages = info->State.Msgs;
    ret->bytes = info->State.Bytes;
    ret->sequence = info->State.LastSeq;
    created = (uint64_t)info->Created;
    if (why != NULL) {
        code = err_set(err, BT_CONFLICT, "the stream %s is not as it must be: %s", s->name, why);
    }
    jsStreamInfo_Destroy(info);
    if (code == BT_OK && ret->messages > 0) {
        code = read_last(s, ret, err);
    } else if (code == BT_OK && ret->sequence > 0) {
        s->last_kept = false;
        code = recall(s, created, ret, err);
    }
    s->first = true;
    s->floor = ret->sequence;
    s->created = created;
    if (code == BT_OK) {
        s->known_sequence = ret->sequence;
        s->known_seq = ret->seq;
    }
    return code;
}

static natsStatus set_headers(const struct stream *s, natsMsg *m, const struct stream_event *ev)
{
    char text[64];
    natsStatus st;

    (void)snprintf(text, sizeof text, "%" PRIu64, ev->seq);
    st = natsMsgHeader_Set(m, "Baton-Seq", text);
    if (st == NATS_OK && ev->seq > ev->prev + 1) { /* these were deleted before they came here */
        (void)snprintf(text, sizeof text, "%" PRIu64 "-%" PRIu64, ev->prev + 1, ev->seq - 1);
        st = natsMsgHeader_Set(m, "Baton-Deleted", text);
    }
    if (st == NATS_OK && s->first) {
        (void)snprintf(text, sizeof text, "%" PRIu64, s->floor);
        st = natsMsgHeader_Set(m, "Nats-Expected-Last-Sequence", text);
    }
    return st;
}

static enum bt_code fits(const struct stream *s, const struct stream_event *ev,
                         struct bt_error *err)
{
    const int64_t max = natsConnection_GetMaxPayload(nats_connection(s->nats));

    if (max > 0 && ev->n + 512 > (uint64_t)max) { /* the headers count, too */
        return err_set(err, BT_INVALID,
                       "event %" PRIu64 " has %zu bytes, and the server takes messages of %" PRId64
                       ": give it a larger max_payload (1 MiB is its default)",
                       ev->seq, ev->n, max);
    }
    return BT_OK;
}

enum bt_code stream_put(struct stream *s, const struct stream_event *ev, struct bt_error *err)
{
    char id[ID_MAX];
    char prev[ID_MAX];
    jsPubOptions o;
    natsMsg *m = NULL;
    natsStatus st;
    enum bt_code code = failure(s, err);

    code = code == BT_OK ? fits(s, ev, err) : code;
    if (code != BT_OK) {
        return code;
    }
    write_id(s, ev->seq, id);
    write_id(s, ev->prev, prev);
    (void)jsPubOptions_Init(&o);
    o.MsgId = id;
    o.ExpectStream = s->name;
    /* The id of a message that was deleted may be forgotten, or not: then the sequence alone. */
    if (ev->prev > 0 && (!s->first || (s->last_kept && s->floor > 0))) {
        o.ExpectLastMsgId = prev;
    }
    st = natsMsg_Create(&m, s->subject, NULL, ev->json, (int)ev->n);
    st = st == NATS_OK ? set_headers(s, m, ev) : st;
    st = st == NATS_OK ? js_PublishMsgAsync(s->js, &m, &o) : st;
    natsMsg_Destroy(m); /* NULL when it was sent */
    if (st != NATS_OK) {
        code = failure(s, err);
        return code != BT_OK ? code : nats_error(s->nats, st, 0, s->name, err);
    }
    s->first = false;
    s->put_seq = ev->seq;
    return BT_OK;
}

enum bt_code stream_settle(struct stream *s, struct bt_error *err)
{
    const msec deadline = clock_mono_ms() + WAIT_MS;
    jsPubOptions o;
    natsStatus st = NATS_TIMEOUT;
    enum bt_code code = BT_OK;

    if (s->first) {
        return BT_OK;
    }
    (void)jsPubOptions_Init(&o);
    o.MaxWait = LOOK_MS;
    while (code == BT_OK && st != NATS_OK) {
        st = js_PublishAsyncComplete(s->js, &o);
        code = failure(s, err);
        if (code == BT_OK && st != NATS_OK &&
            (st != NATS_TIMEOUT || !nats_is_up(s->nats) || clock_mono_ms() >= deadline)) {
            code = nats_error(s->nats, st, 0, s->name, err);
        }
    }
    if (code == BT_OK) {
        (void)pthread_mutex_lock(&s->lock);
        s->known_sequence = s->top;
        (void)pthread_mutex_unlock(&s->lock);
        s->known_seq = s->put_seq;
    }
    return code;
}
