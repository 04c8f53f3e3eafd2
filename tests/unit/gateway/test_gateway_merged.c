/* Events of all shards of a fleet as one stream, and as one page. */
#include "tests/unit/gateway/events_world.h"

#define ID "01A20FC9-DD1B-70C5-9698-077211201167"

static int begin_two(void **state)
{
    shards = 2;
    return begin(state);
}

static int end_two(void **state)
{
    (void)state;
    over();
    assert_null(rig.s.streams);
    assert_null(slots[0]);
    assert_null(slots[1]);
    return 0;
}

/* Of this shard alone: the read of the other one stays where it is. json NULL: a refusal. */
static void shard_says(uint32_t shard, const char *json, enum bt_code code)
{
    bool others[RIG_CALLS_MAX];

    for (size_t i = 0; i < RIG_CALLS_MAX; i++) {
        others[i] = rig.calls[i].open && rig.calls[i].spec.to_shard != shard + 1;
        rig.calls[i].open = rig.calls[i].open && !others[i];
    }
    if (json != NULL) {
        rig_answer_to(MSG_events_read, json);
    } else {
        rig_refuse_to(MSG_events_read, code);
    }
    for (size_t i = 0; i < RIG_CALLS_MAX; i++) {
        rig.calls[i].open = rig.calls[i].open || others[i];
    }
}

static void answer(uint32_t shard, const char *json)
{
    shard_says(shard, json, BT_OK);
}

static void refuse(uint32_t shard, enum bt_code code)
{
    shard_says(shard, NULL, code);
}

static void a_vector_names_shards_of_the_fleet(void **state)
{
    static const char *const wrong[] = {"",     "S0",     "0=1",  "S2=1",   "S=1",
                                        "S0=x", "S0=1:x", "T0=1", "S0=1;1", "S0=1,S1=2"};
    struct event_place at[SHARDS_MAX];

    (void)state;
    assert_true(merged_read_vector(STR_LIT("S1=40;S0=12:" ID), 2, at));
    assert_int_equal(at[0].seq, 12);
    assert_string_equal(at[0].id, ID);
    assert_int_equal(at[1].seq, 40);
    assert_string_equal(at[1].id, "");
    assert_true(merged_read_vector(STR_LIT("S1=7"), 2, at));
    assert_int_equal(at[0].seq, 0); /* from its first event on */
    assert_string_equal(at[0].id, "");
    assert_int_equal(at[1].seq, 7);
    assert_true(merged_read_vector(STR_LIT("0"), 2, at));
    assert_int_equal(at[0].seq + at[1].seq, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(merged_read_vector(str_from(wrong[i]), 2, at));
    }
}

#define D(shard, n, type) "{'shard':" #shard ",'seq':" #n ",'type':'" type "','planId':'P'}"

static void a_stream_begins_when_each_part_has_and_its_ids_are_vectors(void **state)
{
    (void)state;
    events("/v1/events?after=S0=3;S1=8&type=a", SSE);
    assert_int_equal(rig.asked, 2);
    assert_int_equal(rig.spec.to_shard, 2);
    expect_asked("{'fromSeq':9,'limit':500,'types':['a']}");
    answer(0, PAGE("", 4, 3));
    assert_int_equal(rig.h.state, HTTP_WAITS);
    answer(1, PAGE("", 9, 8));
    began(SSE);
    expect_taken("retry: 1000\n\nid: S0=3;S1=8\n\n", false);
    run(1);
    assert_int_equal(rig_open(MSG_events_read), 2); /* what is there already is read again */
    answer(0, PAGE(E(4, "a"), 5, 4));
    answer(1, PAGE(E(9, "a"), 10, 9));
    expect_taken("id: S0=4;S1=8\nevent: a\ndata: " D(0, 4, "a") "\n\n"
                                                                "id: S0=4;S1=9\nevent: a\ndata: " D(
                                                                    1, 9, "a") "\n\n",
                 false);
    run(1);
    assert_int_equal(rig_open(MSG_events_read), 2); /* both follow */
    answer(0, PAGE(E(5, "b") "," E(6, "a"), 7, 6));
    run(1);
    expect_taken("id: S0=6;S1=9\nevent: a\ndata: " D(0, 6, "a") "\n\n", false);
    run(15000);
    expect_taken(": heartbeat\n\n", false);
}

static void a_stream_from_now_on_begins_after_the_last_event_of_each(void **state)
{
    (void)state;
    events("/v1/events", "application/x-ndjson");
    expect_asked("{'fromSeq':9223372036854775807,'limit':1}");
    answer(0, PAGE("", 4, 3));
    answer(1, PAGE("", 9, 8));
    began("application/x-ndjson");
    expect_taken("", false);
    run(1);
    answer(0, PAGE(E(4, "a"), 5, 4));
    expect_taken(D(0, 4, "a") "\n", false);
}

static void a_part_that_cannot_begin_is_the_answer(void **state)
{
    (void)state;
    events("/v1/events?after=S0=3", SSE);
    refuse(0, BT_UNAVAILABLE);
    assert_int_equal(rig.h.status, 503);
    assert_int_equal(rig.woken, 1);
    answer(1, PAGE("", 1, 0)); /* nobody waits for it */
    assert_int_equal(rig.h.status, 503);
    events("/v1/events?after=S0=3;S1=0", SSE);
    answer(0, PAGE("", 3, 2));
    assert_int_equal(rig.h.status, 400);
    assert_string_equal(rig.field, "Last-Event-ID");
    events("/v1/events?after=S2=3", SSE);
    assert_int_equal(rig.h.status, 400);
    assert_non_null(strstr(rig.message, "a vector as S0=12;S1=40"));
}

static void a_part_that_ends_ends_the_whole(void **state)
{
    (void)state;
    events("/v1/events?after=0", SSE);
    answer(0, PAGE("", 1, 0));
    answer(1, PAGE("", 1, 0));
    began(SSE);
    expect_taken("retry: 1000\n\nid: S0=0;S1=0\n\n", false);
    run(1);
    refuse(0, BT_UNAUTHORIZED);
    run(1);
    expect_taken("", true);
}

static void a_history_that_was_lost_names_its_shard(void **state)
{
    (void)state;
    events("/v1/events?after=0", SSE);
    answer(0, PAGE("", 1, 0));
    answer(1, PAGE("", 1, 0));
    began(SSE);
    expect_taken("retry: 1000\n\nid: S0=0;S1=0\n\n", false);
    run(1);
    refuse(0, BT_HISTORY_CHANGED);
    run(1);
    expect_taken(
        "event: history_changed\ndata: {'type':'history_changed','shard':0,'fromSeq':1}\n\n", true);
}

/* ---- pages ---- */

static void page(const char *target)
{
    events(target, "application/json");
    assert_int_equal(rig.h.state, HTTP_WAITS);
    assert_int_equal(rig.spec.within_ms, 3000);
    answer(0, PAGE("", 1, 0));
    answer(1, PAGE("", 1, 0));
    run(1);
    assert_int_equal(rig_open(MSG_events_read), 2);
}

static void expect_page(const char *body)
{
    char text[1024];

    (void)snprintf(text, sizeof text, "%s", body);
    for (char *c = text; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    assert_int_equal(rig.h.state, HTTP_READY);
    assert_int_equal(rig.h.status, 200);
    assert_string_equal(rig.h.type, "application/json");
    assert_string_equal(rig_out(), text);
}

static void a_page_has_events_of_all_shards_and_where_to_go_on(void **state)
{
    (void)state;
    page("/v1/events?after=0&limit=5");
    answer(0, PAGE(E(1, "a") "," E(2, "b"), 3, 2));
    run(1);
    assert_int_equal(rig.h.state, HTTP_WAITS); /* the other one may have some, too */
    answer(1, PAGE(E(1, "c"), 2, 1));
    run(1);
    expect_page("{'events':[" D(0, 1, "a") "," D(0, 2, "b") "," D(
        1, 1, "c") "],'cursor':"
                   "'S0=2;S1=1','missingShards':[]}");
}

static void a_page_has_as_many_events_as_were_asked_for(void **state)
{
    (void)state;
    page("/v1/events?after=0&limit=2");
    answer(0, PAGE(E(1, "a") "," E(2, "b") "," E(3, "c"), 4, 3));
    run(1);
    expect_page("{'events':[" D(0, 1, "a") "," D(0, 2, "b") "],'cursor':'S0=2;S1=0',"
                                                            "'missingShards':[]}");
}

static void a_page_waits_for_its_first_event(void **state)
{
    (void)state;
    page("/v1/events?after=0&waitMs=1000");
    answer(0, PAGE("", 1, 0));
    answer(1, PAGE("", 1, 0));
    run(998);
    assert_int_equal(rig.h.state, HTTP_WAITS);
    run(1);
    expect_page("{'events':[],'cursor':'S0=0;S1=0','missingShards':[]}");
}

static void a_shard_without_an_answer_is_missing_and_without_any_there_is_no_page(void **state)
{
    static const enum bt_code away[] = {BT_UNAVAILABLE, BT_TIMEOUT, BT_BUSY, BT_MOVED};

    (void)state;
    for (size_t i = 0; i < sizeof away / sizeof away[0]; i++) {
        events("/v1/events?after=S0=0;S1=7", "application/json");
        answer(0, PAGE("", 1, 0));
        refuse(1, away[i]);
        run(1);
        answer(0, PAGE(E(1, "a"), 2, 1));
        run(1);
        expect_page("{'events':[" D(0, 1, "a") "],'cursor':'S0=1;S1=7','missingShards':[1]}");
    }
    events("/v1/events?after=0", "application/json");
    refuse(0, BT_TIMEOUT);
    refuse(1, BT_TIMEOUT);
    run(1);
    assert_int_equal(rig.h.status, 503);
    assert_string_equal(rig.message, "none of the shards of this fleet answers now");
    events("/v1/events?after=0", "application/json");
    refuse(0, BT_UNAUTHORIZED); /* that is the answer */
    assert_int_equal(rig.h.status, 401);
}

static void a_page_over_a_lost_history_is_refused_with_the_shard(void **state)
{
    (void)state;
    page("/v1/events?after=0");
    refuse(0, BT_HISTORY_CHANGED);
    assert_int_equal(rig.h.status, 409);
    assert_string_equal(
        rig.message, "shard 0: a failover lost events that were read; read again from fromSeq on");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_two, end_two)
    const struct CMUnitTest tests[] = {
        TEST(a_vector_names_shards_of_the_fleet),
        TEST(a_stream_begins_when_each_part_has_and_its_ids_are_vectors),
        TEST(a_stream_from_now_on_begins_after_the_last_event_of_each),
        TEST(a_part_that_cannot_begin_is_the_answer),
        TEST(a_part_that_ends_ends_the_whole),
        TEST(a_history_that_was_lost_names_its_shard),
        TEST(a_page_has_events_of_all_shards_and_where_to_go_on),
        TEST(a_page_has_as_many_events_as_were_asked_for),
        TEST(a_page_waits_for_its_first_event),
        TEST(a_shard_without_an_answer_is_missing_and_without_any_there_is_no_page),
        TEST(a_page_over_a_lost_history_is_refused_with_the_shard),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
