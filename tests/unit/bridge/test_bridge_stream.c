/* The stream of a daemon's events over a JetStream in memory: what is asked of it, what its
 * messages have, and what its answers come to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "supervisor/bridge/stream.h"
#include "tests/support/cmocka.h"

enum { TEXT = 96, MESSAGES_MAX = 16, WAIT_MS = 3000, LOOK_MS = 50, LOOK_BACK = 100000 };

struct __natsMsg {
    char subject[TEXT], json[TEXT], seq[TEXT], id[TEXT], deleted[TEXT], last_sequence[TEXT];
    char expected_id[TEXT], stream[TEXT]; /* of the options with which it was sent */
    bool has_seq, has_id;
    uint64_t sequence;
};
struct __jsCtx {
    jsOptions o;
};
struct nats {
    bool up;
};

/* The server, and what it is to answer. */
static struct {
    struct nats nats;
    bool there;
    jsStreamConfig config; /* of the stream */
    char name[TEXT], made_subject[TEXT];
    uint64_t messages, bytes, last, created;
    struct __natsMsg kept;  /* its last message */
    natsStatus last_status; /* of js_GetLastMsg */
    natsStatus context, info, make, create, header, publish;
    jsErrCode info_js, make_js;
    uint32_t asked; /* js_GetMsg */
    uint64_t asked_first, kept_at;
    struct __natsMsg sent[MESSAGES_MAX];
    uint32_t sent_n, acked_n;
    natsStatus complete; /* of js_PublishAsyncComplete while there is no `answers` */
    bool answers;
    uint64_t sequence; /* of the next acknowledgement */
    uint32_t looked;
    int64_t max_payload;
    int left; /* messages, contexts and infos that nobody has freed */
    jsCtx *context_at;
    msec now;
} world;

static const char *subjects[] = {"baton.main.0", "other"};
static struct options opt;
static struct stream *stream;
static struct bt_error err;

/* ---- a clock, and the connection ---- */

msec __wrap_clock_mono_ms(void);
msec __wrap_clock_mono_ms(void)
{
    return world.now;
}

natsConnection *nats_connection(const struct nats *n)
{
    assert_ptr_equal(n, &world.nats);
    return (natsConnection *)(uintptr_t)n;
}

bool nats_is_up(const struct nats *n)
{
    return n->up;
}

enum bt_code nats_error(struct nats *n, natsStatus s, jsErrCode js, const char *what,
                        struct bt_error *e)
{
    assert_ptr_equal(n, &world.nats);
    return err_set(e, BT_UNAVAILABLE, "%s: status %d, js %d", what, (int)s, (int)js);
}

enum bt_code nats_explain(natsStatus s, jsErrCode js, const char *text, const char *what,
                          struct bt_error *e)
{
    return err_set(e, BT_LIMIT, "%s: %s, status %d, js %d", what, text, (int)s, (int)js);
}

int64_t natsConnection_GetMaxPayload(natsConnection *nc)
{
    assert_ptr_equal(nc, &world.nats);
    return world.max_payload;
}

/* ---- JetStream ---- */

natsStatus natsConnection_JetStream(jsCtx **ret, natsConnection *nc, jsOptions *o)
{
    assert_ptr_equal(nc, &world.nats);
    assert_int_equal(o->Wait, WAIT_MS);
    assert_int_equal(o->PublishAsync.MaxPending, 1024);
    assert_int_equal(o->PublishAsync.StallWait, WAIT_MS);
    assert_non_null(o->PublishAsync.AckHandler);
    if (world.context != NATS_OK) {
        return world.context;
    }
    *ret = calloc(1, sizeof **ret);
    assert_non_null(*ret);
    (*ret)->o = *o;
    world.context_at = *ret;
    world.left++;
    return NATS_OK;
}

void jsCtx_Destroy(jsCtx *js)
{
    world.left -= js != NULL ? 1 : 0;
    free(js);
}

static jsStreamInfo *new_info(void)
{
    jsStreamInfo *i = calloc(1, sizeof *i);

    assert_non_null(i);
    i->Config = &world.config;
    i->Created = (int64_t)world.created;
    i->State.Msgs = world.messages;
    i->State.Bytes = world.bytes;
    i->State.LastSeq = world.last;
    world.left++;
    return i;
}

void jsStreamInfo_Destroy(jsStreamInfo *i)
{
    world.left -= i != NULL ? 1 : 0;
    free(i);
}

natsStatus js_GetStreamInfo(jsStreamInfo **ret, jsCtx *js, const char *name, jsOptions *o,
                            jsErrCode *code)
{
    (void)o;
    assert_ptr_equal(js, world.context_at);
    (void)snprintf(world.name, sizeof world.name, "%s", name);
    *code = world.info_js;
    if (world.info != NATS_OK || !world.there) {
        return world.info != NATS_OK ? world.info : NATS_NOT_FOUND;
    }
    *ret = new_info();
    return NATS_OK;
}

natsStatus js_AddStream(jsStreamInfo **ret, jsCtx *js, jsStreamConfig *c, jsOptions *o,
                        jsErrCode *code)
{
    (void)o;
    assert_ptr_equal(js, world.context_at);
    *code = world.make_js;
    if (world.make != NATS_OK) {
        return world.make;
    }
    assert_string_equal(c->Name, stream_name(stream));
    assert_string_equal(c->Description, "Events of Baton");
    assert_int_equal(c->SubjectsLen, 1);
    (void)snprintf(world.made_subject, sizeof world.made_subject, "%s", c->Subjects[0]);
    assert_int_equal(c->Replicas, opt.replicas);
    assert_true(c->DenyDelete);
    assert_int_equal(c->Retention, js_LimitsPolicy);
    world.there = true;
    *ret = new_info();
    return NATS_OK;
}

static natsMsg *copy_of(const struct __natsMsg *m)
{
    natsMsg *out = malloc(sizeof *out);

    assert_non_null(out);
    *out = *m;
    world.left++;
    return out;
}

natsStatus js_GetLastMsg(natsMsg **ret, jsCtx *js, const char *name, const char *subject,
                         jsOptions *o, jsErrCode *code)
{
    (void)o;
    (void)code;
    assert_ptr_equal(js, world.context_at);
    assert_string_equal(name, stream_name(stream));
    assert_string_equal(subject, world.kept.subject);
    if (world.last_status == NATS_OK) {
        *ret = copy_of(&world.kept);
    }
    return world.last_status;
}

natsStatus js_GetMsg(natsMsg **ret, jsCtx *js, const char *name, uint64_t at, jsOptions *o,
                     jsErrCode *code)
{
    (void)js;
    (void)name;
    (void)o;
    (void)code;
    world.asked_first = world.asked == 0 ? at : world.asked_first;
    assert_true(at == world.asked_first - world.asked);
    world.asked++;
    if (at != world.kept_at) {
        return NATS_NOT_FOUND;
    }
    *ret = copy_of(&world.kept);
    return NATS_OK;
}

/* ---- messages ---- */

natsStatus natsMsg_Create(natsMsg **ret, const char *subject, const char *reply, const char *data,
                          int len)
{
    struct __natsMsg m = {.sequence = 0};

    assert_null(reply);
    if (world.create != NATS_OK) {
        return world.create;
    }
    (void)snprintf(m.subject, sizeof m.subject, "%s", subject);
    (void)snprintf(m.json, sizeof m.json, "%.*s", len, data);
    *ret = copy_of(&m);
    return NATS_OK;
}

void natsMsg_Destroy(natsMsg *m)
{
    world.left -= m != NULL ? 1 : 0;
    free(m);
}

const char *natsMsg_GetData(const natsMsg *m)
{
    return m->json;
}

int natsMsg_GetDataLength(const natsMsg *m)
{
    return (int)strlen(m->json);
}

uint64_t natsMsg_GetSequence(natsMsg *m)
{
    return m->sequence;
}

natsStatus natsMsgHeader_Get(natsMsg *m, const char *key, const char **ret)
{
    const bool is_seq = strcmp(key, "Baton-Seq") == 0;

    assert_true(is_seq || strcmp(key, "Nats-Msg-Id") == 0);
    if (is_seq ? !m->has_seq : !m->has_id) {
        return NATS_NOT_FOUND;
    }
    *ret = is_seq ? m->seq : m->id;
    return NATS_OK;
}

natsStatus natsMsgHeader_Set(natsMsg *m, const char *key, const char *value)
{
    char *to = strcmp(key, "Baton-Seq") == 0                     ? m->seq
               : strcmp(key, "Baton-Deleted") == 0               ? m->deleted
               : strcmp(key, "Nats-Expected-Last-Sequence") == 0 ? m->last_sequence
                                                                 : NULL;

    assert_non_null(to);
    (void)snprintf(to, TEXT, "%s", value);
    return world.header;
}

/* ---- publishing ---- */

natsStatus js_PublishMsgAsync(jsCtx *js, natsMsg **io, jsPubOptions *o)
{
    struct __natsMsg *m = &world.sent[world.sent_n];

    assert_ptr_equal(js, world.context_at);
    if (world.publish != NATS_OK) {
        return world.publish;
    }
    assert_true(world.sent_n < MESSAGES_MAX);
    *m = **io;
    (void)snprintf(m->id, sizeof m->id, "%s", o->MsgId);
    (void)snprintf(m->stream, sizeof m->stream, "%s", o->ExpectStream);
    (void)snprintf(m->expected_id, sizeof m->expected_id, "%s",
                   o->ExpectLastMsgId != NULL ? o->ExpectLastMsgId : "");
    world.sent_n++;
    natsMsg_Destroy(*io);
    *io = NULL;
    return NATS_OK;
}

/* On the thread of libnats; of an event that is acknowledged, or refused. */
static void answer(jsCtx *js, uint64_t sequence, const char *refusal)
{
    jsPubAck ack = {.Sequence = sequence};
    jsPubAckErr bad = {.Err = NATS_ERR, .ErrCode = (jsErrCode)7, .ErrText = refusal};
    const struct __natsMsg m = {.sequence = 0};

    js->o.PublishAsync.AckHandler(js, copy_of(&m), refusal == NULL ? &ack : NULL,
                                  refusal != NULL ? &bad : NULL,
                                  js->o.PublishAsync.AckHandlerClosure);
}

natsStatus js_PublishAsyncComplete(jsCtx *js, jsPubOptions *o)
{
    assert_ptr_equal(js, world.context_at);
    assert_int_equal(o->MaxWait, LOOK_MS);
    world.looked++;
    if (!world.answers) {
        world.now += LOOK_MS;
        return world.complete;
    }
    for (; world.acked_n < world.sent_n; world.acked_n++) {
        answer(js, world.sequence++, NULL);
    }
    return NATS_OK;
}

/* ---- the tests ---- */

/* A stream with 5 messages, which ends with event 8. */
static int set_up(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    assert_int_equal(jsStreamConfig_Init(&world.config), NATS_OK);
    world.config.Subjects = subjects;
    world.config.SubjectsLen = 1;
    world.nats.up = true;
    world.there = true;
    world.messages = 5;
    world.bytes = 700;
    world.last = 20;
    world.created = 99;
    world.kept = (struct __natsMsg){.subject = "baton.main.0",
                                    .json = "{\"eventId\":\"e-8\",\"seq\":8}",
                                    .seq = "8",
                                    .id = "main/0/8",
                                    .has_seq = true,
                                    .has_id = true,
                                    .sequence = 20};
    world.complete = NATS_TIMEOUT;
    world.answers = true;
    world.sequence = 21;
    world.now = 5000;
    opt = (struct options){.name = "main", .replicas = 3};
    assert_int_equal(stream_new(&opt, &world.nats, &stream, &err), BT_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    stream_free(stream);
    stream_free(NULL);
    assert_int_equal(world.left, 0);
    return 0;
}

static void empty(uint64_t last)
{
    world.messages = world.bytes = 0;
    world.last = last;
}

static struct stream_at synced(void)
{
    struct stream_at at;

    if (stream_sync(stream, true, &at, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return at;
}

static void refused(enum bt_code code, const char *says)
{
    struct stream_at at;

    assert_int_equal(stream_sync(stream, true, &at, &err), code);
    if (strstr(err.msg, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    }
}

static enum bt_code put(uint64_t seq, uint64_t prev)
{
    const struct stream_event ev = {.seq = seq, .prev = prev, .json = "{} and more", .n = 2};

    return stream_put(stream, &ev, &err);
}

static void a_stream_has_the_name_of_its_fleet_and_its_shard(void **state)
{
    static const struct {
        uint32_t shards, shard;
        const char *name, *subject;
    } CASES[] = {{0, 0, "BATON_main", "baton.main.0"},
                 {1, 0, "BATON_main", "baton.main.0"},
                 {2, 1, "BATON_main_1", "baton.main.1"},
                 {4, 0, "BATON_main_0", "baton.main.0"}};

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        stream_free(stream);
        opt.shards = CASES[i].shards;
        opt.shard = CASES[i].shard;
        assert_int_equal(stream_new(&opt, &world.nats, &stream, &err), BT_OK);
        assert_string_equal(stream_name(stream), CASES[i].name);
        world.there = false;
        assert_true(synced().made);
        assert_string_equal(world.name, CASES[i].name);
        assert_string_equal(world.made_subject, CASES[i].subject);
    }
}

static void a_stream_that_is_not_there_is_made_when_that_is_asked_for(void **state)
{
    struct stream_at at;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        world.there = false;
        world.info = i == 0 ? NATS_NOT_FOUND : NATS_ERR;
        world.info_js = i == 0 ? 0 : JSStreamNotFoundErr;
        memset(&at, 1, sizeof at);
        assert_int_equal(stream_sync(stream, false, &at, &err), BT_NOT_FOUND);
        assert_string_equal(err.msg, "there is no stream BATON_main");
        assert_false(world.there);
        at = synced();
        assert_true(at.made && world.there);
        assert_true(at.seq == 0 && at.sequence == 0 && at.messages == 0 && at.event_id[0] == 0);
    }
    world.make = NATS_ERR;
    world.make_js = 77;
    refused(BT_UNAVAILABLE, "making the stream BATON_main: status 1, js 77");
}

static void what_the_server_refuses_is_said(void **state)
{
    (void)state;
    world.context = NATS_TIMEOUT;
    refused(BT_UNAVAILABLE, "JetStream: status");
    world.context = NATS_OK;
    world.info = NATS_ERR;
    world.info_js = 78;
    refused(BT_UNAVAILABLE, "BATON_main: status 1, js 78");
    world.info = NATS_OK;
    world.info_js = 0;
    world.last_status = NATS_ERR;
    refused(BT_UNAVAILABLE, "BATON_main: status 1");
}

static void a_stream_that_would_lose_events_or_mix_them_is_refused(void **state)
{
    static jsStreamSource mirror;

    (void)state;
    world.config.Mirror = &mirror;
    refused(BT_CONFLICT, "the stream BATON_main is not as it must be: it copies another stream");
    world.config.Mirror = NULL;
    world.config.SourcesLen = 1;
    refused(BT_CONFLICT, "it copies another stream");
    world.config.SourcesLen = 0;
    world.config.SubjectsLen = 2;
    refused(BT_CONFLICT, "it has other subjects");
    world.config.SubjectsLen = 1;
    world.config.Subjects = &subjects[1];
    refused(BT_CONFLICT, "it has other subjects");
    world.config.Subjects = subjects;
    world.config.Retention = js_InterestPolicy;
    refused(BT_CONFLICT, "retention must be limits");
    world.config.Retention = js_LimitsPolicy;
    world.config.NoAck = true;
    refused(BT_CONFLICT, "(no_ack)");
    world.config.NoAck = false;
    world.config.Sealed = true;
    refused(BT_CONFLICT, "it is sealed");
    world.config.Sealed = false;
    assert_int_equal(synced().seq, 8);
}

static void a_stream_tells_which_event_it_ends_with(void **state)
{
    const struct stream_at at = synced();

    (void)state;
    assert_false(at.made);
    assert_int_equal(at.seq, 8);
    assert_int_equal(at.sequence, 20);
    assert_int_equal(at.messages, 5);
    assert_int_equal(at.bytes, 700);
    assert_string_equal(at.event_id, "e-8");
    assert_int_equal(world.asked, 0);
    (void)snprintf(world.kept.json, sizeof world.kept.json, "{not JSON");
    assert_string_equal(synced().event_id, "");
    assert_int_equal(synced().seq, 8);
}

static void a_last_message_of_another_is_refused(void **state)
{
    static const char SAYS[] = "the last message of the stream BATON_main is not of this bridge: "
                               "somebody else publishes to baton.main.0";

    (void)state;
    world.kept.has_id = false;
    refused(BT_CONFLICT, SAYS);
    world.kept.has_id = true;
    world.kept.has_seq = false;
    refused(BT_CONFLICT, SAYS);
    world.kept.has_seq = true;
    (void)snprintf(world.kept.id, sizeof world.kept.id, "main/0/9");
    refused(BT_CONFLICT, SAYS);
    (void)snprintf(world.kept.id, sizeof world.kept.id, "main/0/0");
    (void)snprintf(world.kept.seq, sizeof world.kept.seq, "0");
    refused(BT_CONFLICT, SAYS);
    (void)snprintf(world.kept.id, sizeof world.kept.id, "main/0/1");
    (void)snprintf(world.kept.seq, sizeof world.kept.seq, "1");
    assert_int_equal(synced().seq, 1);
}

/* The server's last messages were deleted. */
static void the_last_message_that_is_left_is_looked_for_from_the_end_on(void **state)
{
    (void)state;
    world.last_status = NATS_NOT_FOUND;
    world.kept_at = world.kept.sequence = 17;
    assert_int_equal(synced().sequence, 20);
    assert_int_equal(world.asked_first, 20);
    assert_int_equal(world.asked, 4);
    assert_int_equal(put(9, 8), BT_OK); /* the one before may be forgotten */
    assert_string_equal(world.sent[0].expected_id, "");
    assert_string_equal(world.sent[0].last_sequence, "20");
    world.asked = 0;
    world.kept_at = 0;
    refused(BT_CONFLICT, "the last 100000 messages of the stream BATON_main are deleted");
    assert_int_equal(world.asked, 20);
    world.asked = 0;
    world.last = 500000;
    refused(BT_CONFLICT, "delete it, and it is filled again");
    assert_int_equal(world.asked, LOOK_BACK);
    world.asked = 0;
    world.kept_at = 500000 - LOOK_BACK + 1;
    assert_int_equal(synced().seq, 8);
    assert_int_equal(world.asked, LOOK_BACK);
}

static void a_last_message_that_is_newer_than_the_stream_said_counts(void **state)
{
    (void)state;
    world.kept.sequence = 21;
    assert_int_equal(synced().sequence, 21);
    assert_int_equal(put(9, 8), BT_OK);
    assert_string_equal(world.sent[0].last_sequence, "21");
    assert_string_equal(world.sent[0].expected_id, "main/0/8");
}

static void an_empty_stream_that_had_messages_goes_on_where_it_is_told(void **state)
{
    (void)state;
    empty(20);
    refused(BT_CONFLICT, "the stream BATON_main is empty, but had messages");
    refused(BT_CONFLICT, "--after SEQ");
    opt.after_given = true;
    opt.after = 7;
    assert_int_equal(synced().seq, 7);
    assert_int_equal(synced().sequence, 20);
    assert_int_equal(put(8, 7), BT_OK);
    assert_string_equal(world.sent[0].expected_id, "");
    assert_string_equal(world.sent[0].last_sequence, "20");
}

static void an_empty_stream_that_was_known_goes_on(void **state)
{
    (void)state;
    assert_int_equal(synced().seq, 8);
    empty(20);
    assert_int_equal(synced().seq, 8);
    assert_int_equal(synced().seq, 8);
    world.created++; /* another stream of that name */
    refused(BT_CONFLICT, "is empty, but had messages");
}

static void where_it_ended_is_known_when_all_is_acknowledged(void **state)
{
    (void)state;
    (void)synced();
    assert_int_equal(put(9, 8), BT_OK);
    assert_int_equal(put(10, 9), BT_OK);
    assert_int_equal(stream_settle(stream, &err), BT_OK);
    empty(22);
    assert_int_equal(synced().seq, 10);
    empty(23);
    refused(BT_CONFLICT, "is empty, but had messages");
}

static void a_new_stream_is_known_to_end_with_nothing(void **state)
{
    (void)state;
    world.there = false;
    empty(0);
    (void)synced();
    assert_int_equal(put(3, 0), BT_OK);
    assert_string_equal(world.sent[0].expected_id, "");
    assert_string_equal(world.sent[0].last_sequence, "0");
    assert_string_equal(world.sent[0].deleted, "1-2");
    assert_int_equal(put(4, 3), BT_OK);
    assert_string_equal(world.sent[1].expected_id, "main/0/3");
    assert_int_equal(synced().seq, 0); /* there, and nothing was put */
    assert_int_equal(put(1, 0), BT_OK);
    assert_string_equal(world.sent[2].last_sequence, "0");
    assert_int_equal(synced().sequence, 0);
    assert_int_equal(put(3, 2), BT_OK); /* the id of a stream without messages is not asked for */
    assert_string_equal(world.sent[3].expected_id, "");
}

static void a_message_names_its_event_and_the_one_before_it(void **state)
{
    (void)state;
    (void)synced();
    assert_int_equal(put(9, 8), BT_OK);
    assert_int_equal(put(11, 9), BT_OK);
    assert_int_equal(put(15, 11), BT_OK);
    assert_int_equal(world.left, 1); /* the context */
    assert_string_equal(world.sent[0].subject, "baton.main.0");
    assert_string_equal(world.sent[0].json, "{}");
    assert_string_equal(world.sent[0].seq, "9");
    assert_string_equal(world.sent[0].id, "main/0/9");
    assert_string_equal(world.sent[0].stream, "BATON_main");
    assert_string_equal(world.sent[0].expected_id, "main/0/8");
    assert_string_equal(world.sent[0].last_sequence, "20");
    assert_string_equal(world.sent[0].deleted, "");
    assert_string_equal(world.sent[1].seq, "11");
    assert_string_equal(world.sent[1].expected_id, "main/0/9");
    assert_string_equal(world.sent[1].last_sequence, ""); /* of the first one alone */
    assert_string_equal(world.sent[1].deleted, "10-10");
    assert_string_equal(world.sent[2].deleted, "12-14");
}

static void an_event_must_fit_with_its_headers(void **state)
{
    struct stream_event ev = {.seq = 9, .prev = 8, .json = "{}", .n = 2};

    (void)state;
    (void)synced();
    world.max_payload = 514;
    assert_int_equal(stream_put(stream, &ev, &err), BT_OK);
    world.max_payload = 513;
    assert_int_equal(stream_put(stream, &ev, &err), BT_INVALID);
    assert_string_equal(err.msg, "event 9 has 2 bytes, and the server takes messages of 513: give "
                                 "it a larger max_payload (1 MiB is its default)");
    world.max_payload = 0;
    assert_int_equal(stream_put(stream, &ev, &err), BT_OK);
    assert_int_equal(world.sent_n, 2);
}

static void what_cannot_be_sent_is_said(void **state)
{
    natsStatus *const fails[] = {&world.create, &world.header, &world.publish};

    (void)state;
    (void)synced();
    for (size_t i = 0; i < 3; i++) {
        *fails[i] = NATS_NO_MEMORY;
        assert_int_equal(put(9, 8), BT_UNAVAILABLE);
        assert_non_null(strstr(err.msg, "BATON_main: status"));
        *fails[i] = NATS_OK;
        assert_int_equal(world.sent_n, 0);
    }
    assert_int_equal(stream_settle(stream, &err), BT_OK); /* nothing was put */
    assert_int_equal(world.looked, 0);
    assert_int_equal(put(9, 8), BT_OK);
    assert_string_equal(world.sent[0].last_sequence, "20"); /* it is still the first */
    answer(world.context_at, 0, "no room");
    world.publish = NATS_ERR;
    assert_int_equal(put(10, 9), BT_LIMIT); /* the reason, not what comes of it */
}

static void the_first_failure_counts_until_the_stream_is_read_again(void **state)
{
    (void)state;
    (void)synced();
    assert_int_equal(put(9, 8), BT_OK);
    answer(world.context_at, 0, "no room");
    answer(world.context_at, 0, "out of order");
    answer(world.context_at, 21, NULL);
    assert_int_equal(put(10, 9), BT_LIMIT);
    assert_string_equal(err.msg, "BATON_main: no room, status 1, js 7");
    assert_int_equal(world.sent_n, 1);
    assert_int_equal(stream_settle(stream, &err), BT_LIMIT);
    (void)synced();
    assert_int_equal(put(9, 8), BT_OK);
}

static void an_acknowledgement_of_before_is_late(void **state)
{
    jsCtx old;

    (void)state;
    (void)synced();
    old = *world.context_at;
    answer(&old, 0, "no room");
    assert_int_equal(put(9, 8), BT_OK);
}

/* It is acknowledged with the sequence that it had. */
static void an_event_that_the_server_takes_for_a_duplicate_is_not_stored(void **state)
{
    (void)state;
    (void)synced();
    assert_int_equal(put(9, 8), BT_OK);
    world.sequence = 20;
    assert_int_equal(stream_settle(stream, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "events that were deleted from the stream"));
}

static void the_highest_acknowledgement_is_where_it_ends(void **state)
{
    (void)state;
    (void)synced();
    assert_int_equal(put(9, 8), BT_OK);
    answer(world.context_at, 23, NULL);
    answer(world.context_at, 22, NULL);
    world.acked_n = 1;
    assert_int_equal(stream_settle(stream, &err), BT_OK);
    empty(23);
    assert_int_equal(synced().seq, 9);
}

static void answers_are_waited_for_three_seconds_while_the_server_is_there(void **state)
{
    (void)state;
    (void)synced();
    assert_int_equal(put(9, 8), BT_OK);
    world.answers = false;
    assert_int_equal(stream_settle(stream, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "BATON_main: status"));
    assert_int_equal(world.looked, WAIT_MS / LOOK_MS);
    world.looked = 0;
    world.nats.up = false;
    assert_int_equal(stream_settle(stream, &err), BT_UNAVAILABLE);
    assert_int_equal(world.looked, 1);
    world.nats.up = true;
    world.complete = NATS_CONNECTION_CLOSED;
    assert_int_equal(stream_settle(stream, &err), BT_UNAVAILABLE);
    assert_int_equal(world.looked, 2);
    world.answers = true;
    world.nats.up = false; /* the answers have come */
    assert_int_equal(stream_settle(stream, &err), BT_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stream_has_the_name_of_its_fleet_and_its_shard),
        TEST(a_stream_that_is_not_there_is_made_when_that_is_asked_for),
        TEST(what_the_server_refuses_is_said),
        TEST(a_stream_that_would_lose_events_or_mix_them_is_refused),
        TEST(a_stream_tells_which_event_it_ends_with),
        TEST(a_last_message_of_another_is_refused),
        TEST(the_last_message_that_is_left_is_looked_for_from_the_end_on),
        TEST(a_last_message_that_is_newer_than_the_stream_said_counts),
        TEST(an_empty_stream_that_had_messages_goes_on_where_it_is_told),
        TEST(an_empty_stream_that_was_known_goes_on),
        TEST(where_it_ended_is_known_when_all_is_acknowledged),
        TEST(a_new_stream_is_known_to_end_with_nothing),
        TEST(a_message_names_its_event_and_the_one_before_it),
        TEST(an_event_must_fit_with_its_headers),
        TEST(what_cannot_be_sent_is_said),
        TEST(the_first_failure_counts_until_the_stream_is_read_again),
        TEST(an_acknowledgement_of_before_is_late),
        TEST(an_event_that_the_server_takes_for_a_duplicate_is_not_stored),
        TEST(the_highest_acknowledgement_is_where_it_ends),
        TEST(answers_are_waited_for_three_seconds_while_the_server_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
