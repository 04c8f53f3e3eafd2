/* Events over HTTP: what was asked for, what a stream missed, and how it follows. */
#include "tests/unit/gateway/events_world.h"
#include "tests/unit/gateway/merged_none.h"

/* ---- the rules ---- */

static void a_stream_without_a_place_begins_now_and_follows(void **state)
{
    (void)state;
    events("/v1/events", SSE);
    assert_int_equal(rig.h.state, HTTP_WAITS);
    expect_asked("{'fromSeq':9223372036854775807,'limit':1}");
    rig_answer(PAGE("", 5, 4));
    began(SSE);
    expect_taken("retry: 1000\n\n", false);
    run(1);
    expect_asked(LIVE(5));
    assert_int_equal(rig.spec.wait_ms, 20000);
    assert_true(rig.spec.live);
    assert_int_equal(rig.spec.to_shard, 1);
    assert_true(asleep); /* nothing came */
    rig_answer(PAGE(E(5, "a") "," E(6, "b"), 7, 6));
    run(1);
    assert_false(asleep);
    expect_taken(LINE(5, "a") LINE(6, "b"), false);
    assert_int_equal(rig.s.counts.wakes, 1);
    assert_int_equal(rig.asked, 2);
    assert_int_equal(streams_deadline(&rig.s, rig.s.now), rig.s.now + 20);
    run(19);
    assert_int_equal(rig.asked, 2); /* events that come meanwhile wake it once */
    run(1);
    expect_asked(LIVE(7));
    assert_int_equal(streams_deadline(&rig.s, rig.s.now), rig.s.now + 250);
}

static void a_stream_reads_what_it_missed_and_then_follows(void **state)
{
    (void)state;
    events("/v1/events?after=3&type=a&type=c", NULL);
    expect_asked("{'fromSeq':4,'limit':500,'types':['a','c']}");
    rig_answer(PAGE(E(4, "a"), 5, 9));
    began(SSE);
    expect_taken("retry: 1000\n\n" LINE(4, "a"), false);
    run(1);
    expect_asked("{'fromSeq':5,'limit':500,'types':['a','c']}");
    rig_answer(PAGE(E(6, "c"), 10, 9));
    expect_taken(LINE(6, "c"), false);
    run(1);
    expect_asked(LIVE(10));
    rig_answer(PAGE(E(10, "a") "," E(11, "b") "," E(12, "event_damaged"), 13, 12));
    run(1);
    expect_taken(LINE(10, "a") LINE(12, "event_damaged"), false); /* damage is told to all */
}

static void a_place_after_the_last_event_is_of_another_journal(void **state)
{
    (void)state;
    events("/v1/events?after=9", SSE);
    rig_answer(PAGE("", 9, 8));
    assert_int_equal(rig.h.status, 400);
    assert_string_equal(rig.field, "Last-Event-ID");
    events("/v1/events?after=8", SSE);
    rig_answer(PAGE("", 9, 8));
    began(SSE);
    events("/v1/events?after=1", SSE);
    rig_refuse(BT_UNAVAILABLE, "away"); /* the first refusal is the answer */
    assert_int_equal(rig.h.status, 503);
    assert_int_equal(rig.woken, 1);
    request("/v1/events?after=1", SSE);
    rig.busy = BT_BUSY;
    stream_begin(&rig.h);
    assert_int_equal(rig.h.status, 503);
    assert_int_equal(rig.code, BT_BUSY);
}

static void the_header_of_who_comes_back_wins(void **state)
{
    (void)state;
    request("/v1/events?after=3", SSE);
    rig.h.heads.last_event_id = "7";
    stream_begin(&rig.h);
    expect_asked("{'fromSeq':8,'limit':500}");
    request("/v1/events?after=3", SSE);
    rig.h.heads.last_event_id = "";
    stream_begin(&rig.h);
    expect_asked("{'fromSeq':4,'limit':500}");
    request("/v1/events", SSE);
    rig.h.heads.last_event_id = "x";
    stream_begin(&rig.h);
    assert_int_equal(rig.h.status, 400);
    assert_string_equal(rig.field, "Last-Event-ID");
    request("/v1/events", SSE);
    rig.h.heads.if_match = "1";
    stream_begin(&rig.h);
    assert_int_equal(rig.h.status, 400);
}

static void a_stream_of_a_plan_ends_with_it(void **state)
{
    (void)state;
    events("/v1/plans/P/events", "application/x-ndjson");
    assert_int_equal(rig.spec.type, MSG_plan_get);
    rig_answer("{'status':'running','lastSeq':3}");
    expect_asked("{'fromSeq':1,'limit':500,'planId':'P'}");
    rig_answer(PAGE(E(2, "a"), 4, 9));
    began("application/x-ndjson");
    expect_taken(E(2, "a") "\n", false);
    run(1);
    rig_answer(PAGE("", 10, 9));
    run(1);
    expect_asked(LIVE(10));
    rig_answer("{'events':[{'seq':10,'type':'a','planId':'Q'}," E(11, "plan_completed") "," E(
        12, "late") "],'nextSeq':13,'lastSeq':12}");
    run(1);
    expect_taken(E(11, "plan_completed") "\n", true);
}

static void a_plan_that_is_over_is_read_to_its_end(void **state)
{
    static const char *const states[] = {"completed", "failed", "cancelled", "planned",
                                         "quarantined"};
    char answer[64];

    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        (void)snprintf(answer, sizeof answer, "{'status':'%s','lastSeq':9}", states[i]);
        events("/v1/plans/P/events?after=9", SSE);
        rig_answer(answer);
        assert_int_equal(rig.h.status, 204); /* a browser is not to come again */
        assert_null(rig.h.type);
        run(60000);
        assert_int_equal(rig.asked, 1); /* nothing more */
        events("/v1/plans/P/events?after=8", SSE);
        rig_answer(answer);
        expect_asked("{'fromSeq':9,'limit':500,'planId':'P'}");
        rig_answer(PAGE(E(9, "x"), 10, 20));
        began(SSE);
        expect_taken("retry: 1000\n\n" LINE(9, "x"), true);
    }
    events("/v1/plans/P/events", SSE);
    rig_refuse(BT_NOT_FOUND, "no plan");
    assert_int_equal(rig.h.status, 404);
}

static void silence_has_a_heartbeat_each_fifteen_seconds(void **state)
{
    (void)state;
    events("/v1/events", SSE);
    rig_answer(PAGE("", 5, 4));
    began(SSE);
    expect_taken("retry: 1000\n\n", false);
    run(14999);
    assert_true(asleep);
    run(1);
    expect_taken(": heartbeat\n\n", false);
    run(14999);
    assert_true(asleep);
    run(1);
    assert_false(asleep);
    events("/v1/events", "application/jsonl");
    rig_answer(PAGE("", 5, 4));
    began("application/x-ndjson");
    expect_taken("", false);
    run(15000);
    expect_taken("\n", false);
}

static void a_page_that_fails_later_is_read_again_and_a_plan_that_is_gone_ends_it(void **state)
{
    static const enum bt_code ends[] = {BT_UNAUTHORIZED, BT_NOT_FOUND, BT_GONE};

    (void)state;
    for (size_t i = 0; i <= 3; i++) {
        events("/v1/events?after=3", SSE);
        rig_answer(PAGE(E(4, "a"), 5, 9));
        began(SSE);
        expect_taken("retry: 1000\n\n" LINE(4, "a"), false);
        run(1);
        rig_refuse(i < 3 ? ends[i] : BT_UNAVAILABLE, "no");
        assert_false(asleep);
        expect_taken("", i < 3);
        if (i == 3) {
            assert_int_equal(rig.asked, 2);
            run(249);
            assert_int_equal(rig.asked, 2);
            run(1);
            assert_int_equal(rig.asked, 3);
        }
    }
}

static void
a_live_read_that_fails_is_made_again_and_one_without_rights_ends_the_streams(void **state)
{
    (void)state;
    events("/v1/events", SSE);
    rig_answer(PAGE("", 5, 4));
    began(SSE);
    expect_taken("retry: 1000\n\n", false);
    run(1);
    rig_refuse(BT_UNAVAILABLE, "away");
    run(1);
    assert_int_equal(rig.asked, 2);
    run(250);
    assert_int_equal(rig.asked, 3);
    rig_refuse(BT_UNAUTHORIZED, "who?");
    run(1);
    expect_taken("", true);
}

static void a_history_that_was_lost_ends_a_stream_with_where_to_begin(void **state)
{
    static const uint8_t details[] = "\x81\xa7"
                                     "fromSeq\x05";

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct reply lost = {
            .problem = {.code = BT_HISTORY_CHANGED, .details = {details, sizeof details - 1}}};
        events("/v1/events?after=3", i == 1 ? "application/jsonl" : SSE);
        rig_answer(PAGE(E(4, "a"), 5, 9));
        began(i == 1 ? "application/x-ndjson" : SSE);
        expect_taken(i == 1 ? E(4, "a") "\n" : "retry: 1000\n\n" LINE(4, "a"), false);
        run(1);
        lost.problem.details.ptr = i == 2 ? NULL : details;
        rig.calls[0].open = false;
        rig.spec.done(rig.spec.self, &lost);
        expect_taken(
            i == 0   ? "event: history_changed\ndata: {'type':'history_changed','fromSeq':5}\n\n"
            : i == 1 ? "{'type':'history_changed','fromSeq':5}\n"
                     : "event: history_changed\ndata: {'type':'history_changed','fromSeq':1}\n\n",
            true);
    }
}

static void of_a_fleet_a_place_has_the_id_of_its_event(void **state)
{
#define ID "01A20FC9-DD1B-70C5-9698-077211201167"
    (void)state;
    events("/v1/events?after=3:" ID, SSE);
    expect_asked("{'fromSeq':4,'limit':1,'afterEventId':'" ID "'}"); /* is it there? */
    rig_answer("{'leader':'L','events':[],'nextSeq':4,'lastSeq':3}");
    expect_asked("{'fromSeq':4,'limit':500,'afterEventId':'" ID "'}");
    rig_answer("{'leader':'L','events':[],'nextSeq':4,'lastSeq':3}");
    began(SSE);
    expect_taken("retry: 1000\n\n", false);
    run(1);
    expect_asked("{'fromSeq':4,'limit':1000,'waitMs':20000,'afterEventId':'" ID "'}");
    rig_answer("{'leader':'L','events':[{'seq':4,'eventId':'E4','type':'t'}],'nextSeq':5,'lastSeq':"
               "4}");
    run(1);
    expect_taken("id: 4:E4\nevent: t\ndata: {'seq':4,'eventId':'E4','type':'t'}\n\n", false);
    events("/v1/events", SSE); /* from now on: after the last event, by its id */
    rig_answer("{'leader':'L','events':[],'nextSeq':8,'lastSeq':7}");
    expect_asked("{'fromSeq':7,'limit':1}");
    rig_answer("{'leader':'L','events':[],'nextSeq':8,'lastSeq':7,'lastEventId':'E7'}");
    began(SSE);
    expect_taken("retry: 1000\n\nid: 7:E7\n\n", false);
}

static void two_streams_follow_one_read(void **state)
{
    static struct http first;
    struct stream *st;

    (void)state;
    events("/v1/events", SSE);
    rig_answer(PAGE("", 5, 4));
    rig.h.state = HTTP_ANSWERED;
    first = rig.h;
    st = rig.h.stream;
    st->h = &first;
    run(1);
    assert_int_equal(rig.asked, 2);
    rig.h.stream = NULL;
    first.s = &rig.s;
    {
        struct stream *streams = rig.s.streams;
        uint32_t allowed;
        struct bt_error err;
        rig.h.state = HTTP_BODY;
        assert_int_equal(uri_parse(STR_LIT("/v1/events?after=2"), &rig.h.uri, &err), BT_OK);
        rig.h.route = route_find(&rig.h.uri, HTTP_GET, &rig.h.params, &allowed);
        stream_begin(&rig.h);
        assert_ptr_equal(rig.s.streams->next, streams);
        assert_int_equal(rig.asked, 3);
    }
    rig_answer(PAGE(E(3, "a") "," E(4, "b"), 5, 4));
    rig.h.state = HTTP_ANSWERED;
    assert_int_equal(rig.asked, 3); /* it has all: it follows, too */
    run(1);
    assert_int_equal(rig.asked, 3);
    assert_int_equal(rig.h.stream->feed->followers, 2);
    stream_free(st);
    assert_int_equal(rig.h.stream->feed->followers, 1);
}

/* ---- a plan that is followed in other words ---- */

static struct {
    char told[256];
    bool is_over, gone, finished;
    const char *holds; /* at an event of this type it takes no more */
} viewer;

static void on_event(struct stream *st, struct doc event)
{
    const struct str type = doc_string(doc_get(event, STR_LIT("type")));
    const size_t n = strlen(viewer.told);

    (void)snprintf(viewer.told + n, sizeof viewer.told - n, "%.*s ", STR_ARG(type));
    if (viewer.holds != NULL && str_is(type, viewer.holds)) {
        stream_hold(st);
    }
    if (str_is(type, "stop")) {
        stream_stop(st);
    }
}

static void on_over(struct stream *st)
{
    viewer.is_over = true;
    buf_add_cstr(stream_out(st), "the end");
}

static void on_gone(struct stream *st, bool finished)
{
    assert_ptr_equal(stream_self(st), &viewer);
    viewer.gone = true;
    viewer.finished = finished;
}

static const struct stream_view view = {on_event, on_over, on_gone};

static struct stream *attach(bool quiet)
{
    request("/v1/plans/P", NULL);
    memset(&viewer, 0, sizeof viewer);
    http_wait(&rig.h);
    stream_attach(&rig.h, STR_LIT("P"), 3, &view, &viewer, quiet);
    assert_ptr_equal(stream_http(rig.h.stream), &rig.h);
    assert_true(str_is(stream_plan(rig.h.stream), "P"));
    assert_ptr_equal(stream_view_of(rig.h.stream), &view);
    assert_ptr_equal(stream_next(&rig.s, NULL), rig.h.stream);
    assert_null(stream_next(&rig.s, rig.h.stream));
    assert_true(stream_is_quiet(rig.h.stream) == quiet);
    return rig.h.stream;
}

static void a_quiet_view_is_one_answer_at_the_end(void **state)
{
    struct stream *st = attach(true);

    (void)state;
    run(1);
    expect_asked("{'fromSeq':3,'limit':500,'planId':'P'}");
    rig_answer(PAGE(E(3, "a"), 4, 3));
    assert_string_equal(viewer.told, "a ");
    assert_int_equal(stream_next_seq(st), 4);
    run(1);
    expect_asked(LIVE(4));
    rig_answer(PAGE(E(4, "b") "," E(5, "plan_completed"), 6, 5));
    run(1);
    assert_string_equal(viewer.told, "a b plan_completed ");
    assert_true(viewer.is_over);
    assert_int_equal(rig.h.state, HTTP_WAITS);
    stream_finish(st);
    assert_int_equal(rig.h.state, HTTP_READY);
    assert_int_equal(rig.h.status, 200);
    assert_string_equal(rig.h.type, "application/json");
    assert_string_equal(rig_out(), "the end");
    rig.h.state = HTTP_ANSWERED;
    over();
    assert_true(viewer.gone && viewer.finished);
    rig_begin("");
}

static void a_view_as_a_stream_ends_when_it_says_so(void **state)
{
    struct stream *st = attach(false);

    (void)state;
    began(SSE);
    expect_taken("", false);
    run(1);
    rig_answer(PAGE(E(3, "stop") "," E(4, "late"), 5, 9));
    assert_string_equal(viewer.told, "stop ");
    run(1);
    assert_true(viewer.is_over);
    expect_taken("the end", false); /* what it asked for may come yet */
    {
        static const uint8_t empty = 0x80;
        const struct call_spec spec = {.type = MSG_plan_result, .fields = {&empty, 1}};
        assert_true(stream_call(st, &spec));
        assert_int_equal(rig.spec.type, MSG_plan_result);
        assert_non_null(st->call);
        stream_called(st);
        assert_null(st->call);
        rig.busy = BT_BUSY;
        assert_false(stream_call(st, &spec));
    }
    stream_finish(st);
    expect_taken("", true);
    over();
    assert_true(viewer.gone && viewer.finished);
    rig_begin("");
}

static void a_view_that_holds_gets_the_rest_again_in_small_pages(void **state)
{
    struct stream *st = attach(true);

    (void)state;
    viewer.holds = "ask";
    run(1);
    rig_answer(PAGE(E(3, "ask") "," E(4, "b"), 5, 9));
    assert_string_equal(viewer.told, "ask ");
    run(1000);
    assert_int_equal(rig.asked, 1); /* no event before it goes on */
    stream_go_on(st);
    run(1);
    expect_asked("{'fromSeq':4,'limit':32,'planId':'P'}");
    over(); /* its client is gone */
    assert_true(viewer.gone && !viewer.finished);
    rig_begin("");
}

static void a_view_of_who_has_an_event_asks_whether_it_is_there(void **state)
{
    struct event_place after = {.seq = 7, .id = ID};
    struct buf out;

    (void)state;
    request("/v1/plans/P", NULL);
    http_wait(&rig.h);
    stream_attach_after(&rig.h, STR_LIT("P"), &after, &view, &viewer);
    expect_asked("{'fromSeq':8,'limit':1,'afterEventId':'" ID "','planId':'P'}");
    rig_answer(PAGE("", 8, 7));
    expect_asked("{'fromSeq':1,'limit':500,'planId':'P'}"); /* the view learns of all of it */
    buf_init(&out, 256);
    stream_put_id(rig.h.stream, &after, &out);
    assert_string_equal(buf_cstr(&out), "7:" ID);
    buf_done(&out);
    assert_int_equal(stream_plan_last(rig.h.stream), 0);
    rig.h.stream->plan_final = true;
    rig.h.stream->plan_last = 9;
    assert_int_equal(stream_plan_last(rig.h.stream), 9);
    request("/v1/plans/P", NULL);
    after.id[0] = 0;
    stream_attach_after(&rig.h, STR_LIT("P"), &after, &view, &viewer);
    assert_int_equal(rig.h.state, HTTP_READY);
    assert_string_equal(rig.h.type, SSE);
    assert_int_equal(stream_next_seq(rig.h.stream), 1);
    request("/v1/plans/P", NULL);
    stream_attach(&rig.h,
                  STR_LIT("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), 1,
                  &view, &viewer, true);
    assert_int_equal(rig.h.status, 503); /* 65 letters are no plan */
}

/* ---- what is asked for ---- */

static void one_page_is_the_answer_of_the_daemon(void **state)
{
    (void)state;
    events("/v1/events?after=3&limit=7&waitMs=60000&type=a", "application/json");
    expect_asked("{'fromSeq':4,'limit':7,'waitMs':60000,'types':['a']}");
    assert_int_equal(rig.spec.wait_ms, 60000);
    events("/v1/plans/P/events?after=3:" ID, "application/json");
    expect_asked("{'fromSeq':4,'afterEventId':'" ID "','limit':100,'waitMs':0,'planId':'P'}");
    request("/v1/events", "application/json");
    rig.busy = BT_BUSY;
    stream_begin(&rig.h);
    assert_int_equal(rig.h.status, 503);
}

static void what_is_wrong_in_what_is_asked_is_named(void **state)
{
    static const struct {
        const char *target, *accept, *field, *words;
        unsigned status;
    } all[] = {
        {"/v1/events", "image/png", "Accept", "expected text/event-stream", 406},
        {"/v1/events?x=1", "image/png", "Accept", "expected text/event-stream", 406},
        {"/v1/events?x=1", SSE, "x", "x (query): there is no such field", 400},
        {"/v1/events?after=x", SSE, "after", "expected the id of the last event", 400},
        {"/v1/events?after=1:x", SSE, "after", "expected the id of the last event", 400},
        {"/v1/events?after=1&after=2", SSE, "after", "it stands there twice", 400},
        {"/v1/events?limit=5", SSE, "limit", "only for a page", 400},
        {"/v1/events?waitMs=5", SSE, "waitMs", "only for a page", 400},
        {"/v1/events?limit=x", "application/json", "limit", "expected a number up to", 400},
        {"/v1/events?waitMs=60001", "application/json", "waitMs", "expected a number up to 60000",
         400},
        {"/v1/events?limit=1&limit=1", "application/json", "limit", "it stands there twice", 400},
        {"/v1/events?vocabulary=x", "application/json", "vocabulary", "only for a stream", 400},
        {"/v1/events?vocabulary=x", "application/jsonl", "vocabulary", "only for a stream", 400},
        {"/v1/events?vocabulary=x&vocabulary=x", SSE, "vocabulary", "it stands there twice", 400},
        {"/v1/events?vocabulary=x", SSE, "vocabulary", "not in this test", 400}};
    static const char *const right[] = {"text/*", "*/*", "TEXT/EVENT-STREAM",
                                        "a, text/event-stream"};
    char many[1024];
    int n = snprintf(many, sizeof many, "/v1/events?after=1");

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        events(all[i].target, all[i].accept);
        assert_int_equal(rig.h.status, all[i].status);
        assert_string_equal(rig.field, all[i].field);
        assert_non_null(strstr(rig.message, all[i].words));
        assert_int_equal(rig.asked, 0);
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        events("/v1/events", right[i]);
        assert_int_equal(rig.h.state, HTTP_WAITS);
    }
    for (int i = 0; i < STREAM_TYPES_MAX; i++) {
        n += snprintf(many + n, sizeof many - (size_t)n, "&type=t");
    }
    events(many, SSE);
    assert_int_equal(rig.h.state, HTTP_WAITS);
    (void)snprintf(many + n, sizeof many - (size_t)n, "&type=t");
    events(many, SSE);
    assert_int_equal(rig.h.status, 400);
    assert_non_null(strstr(rig.message, "at most 64 types"));
}

static void a_connection_takes_as_much_as_it_can(void **state)
{
    static const char RETRY[] = "retry: 1000\n\n";
    char text[64];

    (void)state;
    for (size_t first = 1; first < sizeof RETRY - 1; first++) {
        events("/v1/events", SSE);
        rig_answer(PAGE("", 5, 4));
        began(SSE);
        assert_int_equal(take(taker, 0, text, first), first);
        assert_int_equal(take(taker, first, text + first, sizeof text - first),
                         sizeof RETRY - 1 - first);
        text[sizeof RETRY - 1] = 0;
        assert_string_equal(text, RETRY);
        assert_int_equal(take(taker, sizeof RETRY - 1, text, sizeof text), 0);
        assert_true(asleep);
    }
}

static void headers_of_a_change_mean_nothing_for_events(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        request("/v1/events", SSE);
        *(i == 0 ? &rig.h.heads.idempotency_key : &rig.h.heads.if_match) = "k";
        stream_begin(&rig.h);
        assert_int_equal(rig.h.status, 400);
        assert_non_null(strstr(rig.message, "Idempotency-Key and If-Match have no meaning"));
        assert_int_equal(rig.asked, 0);
        assert_null(rig.h.stream);
    }
}

static void task(const char *target, const char *accept)
{
    request("/v1/events", accept);
    {
        struct bt_error err;
        assert_int_equal(uri_parse(str_from(target), &rig.h.uri, &err), BT_OK);
    }
    task_begin(&rig.h);
}

static void a_task_is_a_plan_whose_events_are_told_in_other_words(void **state)
{
    (void)state;
    words_given = &rig;
    task("/v1/tasks", SSE);
    assert_int_equal(rig.h.state, HTTP_WAITS); /* http_ask */
    assert_string_equal(words_asked, "ai-sdk");
    assert_int_equal(words_types, 0);
    assert_int_equal(words_after, 0);
    assert_ptr_equal(rig.h.own, &rig);
    assert_true(rig.h.own_free == translation_free);
    task("/v1/tasks?goal=g&vocabulary=agent-turn&clientKey=k", SSE);
    assert_string_equal(words_asked, "agent-turn");
    assert_int_equal(rig.h.uri.params_n, 2); /* the rest are fields of the plan */
    assert_true(str_is(rig.h.uri.params[0].name, "goal"));
    assert_true(str_is(rig.h.uri.params[1].name, "clientKey"));
    request("/v1/events", SSE);
    rig.h.heads.last_event_id = "7";
    task_begin(&rig.h);
    assert_int_equal(words_after, 7);
    request("/v1/events", SSE);
    rig.h.heads.last_event_id = "x";
    task_begin(&rig.h);
    assert_int_equal(rig.h.status, 400);
    assert_string_equal(rig.field, "Last-Event-ID");
    assert_null(rig.h.own);
    words_given = NULL;
    task("/v1/tasks", SSE); /* refused */
    assert_int_equal(rig.h.state, HTTP_READY);
    assert_null(rig.h.own);
    task("/v1/tasks?vocabulary=a&vocabulary=b", SSE);
    assert_int_equal(rig.h.status, 400);
    assert_non_null(strstr(rig.message, "it stands there twice"));
}

static void a_task_is_no_page_and_no_lines(void **state)
{
    static const char *const FORMS[] = {"application/json", "application/jsonl", "image/png"};

    (void)state;
    words_given = &rig;
    for (size_t i = 0; i < 3; i++) {
        task("/v1/tasks", FORMS[i]);
        assert_int_equal(rig.h.status, 406);
        assert_string_equal(rig.field, "Accept");
        assert_null(rig.h.own);
    }
    assert_non_null(strstr(rig.message, "expected text/event-stream"));
    words_given = NULL;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_connection_takes_as_much_as_it_can),
        TEST(headers_of_a_change_mean_nothing_for_events),
        TEST(a_task_is_a_plan_whose_events_are_told_in_other_words),
        TEST(a_task_is_no_page_and_no_lines),
        TEST(a_stream_without_a_place_begins_now_and_follows),
        TEST(a_stream_reads_what_it_missed_and_then_follows),
        TEST(a_place_after_the_last_event_is_of_another_journal),
        TEST(the_header_of_who_comes_back_wins),
        TEST(a_stream_of_a_plan_ends_with_it),
        TEST(a_plan_that_is_over_is_read_to_its_end),
        TEST(silence_has_a_heartbeat_each_fifteen_seconds),
        TEST(a_page_that_fails_later_is_read_again_and_a_plan_that_is_gone_ends_it),
        TEST(a_live_read_that_fails_is_made_again_and_one_without_rights_ends_the_streams),
        TEST(a_history_that_was_lost_ends_a_stream_with_where_to_begin),
        TEST(of_a_fleet_a_place_has_the_id_of_its_event),
        TEST(two_streams_follow_one_read),
        TEST(a_quiet_view_is_one_answer_at_the_end),
        TEST(a_view_as_a_stream_ends_when_it_says_so),
        TEST(a_view_that_holds_gets_the_rest_again_in_small_pages),
        TEST(a_view_of_who_has_an_event_asks_whether_it_is_there),
        TEST(one_page_is_the_answer_of_the_daemon),
        TEST(what_is_wrong_in_what_is_asked_is_named),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
