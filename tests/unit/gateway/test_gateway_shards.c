/* Calls to a fleet of three shards, over a link without sockets: which lane each takes, what is
 * asked of all, and what a shard that has moved, is silent or is gone comes to. */
#include "tests/unit/gateway/upstream_world.h"

enum { SHARDS = 3, PART_MS = 3000, MOVED_MS = 100, LOOK_MS = 250 };

static char got[4096]; /* the last answer, as JSON */
static unsigned status;

static void on_answer(void *self, const struct reply *reply)
{
    struct buf json;

    on_done(self, reply);
    got[0] = 0;
    status = reply->problem.status;
    if (reply->ok) {
        buf_init(&json, sizeof got);
        assert_int_equal(doc_to_json(reply->body, false, &json, NULL), BT_OK);
        (void)snprintf(got, sizeof got, "%s", buf_cstr(&json));
        buf_done(&json);
    }
}

/* Where each shard listens; "" = nowhere now. */
static void write_map(const char *one, const char *two)
{
    char path[96];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/fleet.json", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f,
                  "{\"version\":1,\"shards\":[{\"shard\":0,\"control\":\"tcp://127.0.0.1:7117\","
                  "\"here\":true},{\"shard\":1,\"control\":\"%s\",\"here\":true},{\"shard\":2,"
                  "\"control\":\"%s\",\"here\":true}]}",
                  one, two);
    (void)fclose(f);
}

static enum bt_code asks(struct world *w, enum msg_type type, enum msg_type answer_type,
                         const char *fields, uint32_t to_shard, struct call **ret, msec now)
{
    struct call_spec spec = {.type = type,
                             .answer = answer_type,
                             .reads = true,
                             .to_shard = to_shard,
                             .done = on_answer,
                             .self = w};
    struct bt_error err;
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, 4096);
    assert_int_equal(json_to_doc(str_from(fields), NULL, &doc, NULL), BT_OK);
    spec.fields = doc_from_buf(&doc);
    code = caller_call(w->c, &spec, now, ret, &err);
    buf_done(&doc);
    return code;
}

static enum bt_code asks_shard(struct world *w, uint32_t shard, msec now)
{
    struct call *call;

    return asks(w, MSG_supervisor_info, MSG_supervisor_info_ok, "{}", shard + 1, &call, now);
}

static enum bt_code asks_all(struct world *w, struct call **ret)
{
    return asks(w, MSG_review_list, MSG_review_list_ok, "{}", 0, ret, NOW);
}

/* The lane of the address that has a request out. */
static struct link_lane *out_to(const struct world *w, const char *url)
{
    const struct link *l = upstream_link(w->u);

    for (uint32_t i = 0; i < fake_link_lanes(l); i++) {
        struct link_lane *lane = fake_link_lane(l, i);
        if (lane->outstanding && !lane->retired && strcmp(lane->url, url) == 0) {
            return lane;
        }
    }
    return NULL;
}

static const char *const URLS[] = {"tcp://127.0.0.1:7117", "tcp://127.0.0.1:7118",
                                   "tcp://127.0.0.1:7119"};

static void says(struct world *w, uint32_t shard, const char *text, msec now)
{
    struct link_lane *lane = out_to(w, URLS[shard]);
    char json[512];

    (void)snprintf(json, sizeof json, "%s", text);
    for (char *at = json; *at != 0; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    assert_non_null(lane);
    fake_lane_answer(lane, json, strlen(json));
    run(w, now);
}

#define REVIEWS(list) "{'v':1,'id':'http','ok':true,'type':'review.list.ok','reviews':[" list "]}"
#define REFUSES(code, more)                                                                        \
    "{'v':1,'id':'http','ok':false,'type':'error','error':{'code':'" code                          \
    "','message':'no','retryable':false" more "}}"

/* A fleet whose token is proved. */
static void begin(struct world *w)
{
    open_world(w);
    write_map(URLS[1], URLS[2]);
    assert_int_equal(asks_shard(w, 0, NOW), BT_OK);
    run(w, NOW);
    says(w, 0, OK, NOW);
    assert_int_equal(w->ok, 1);
    assert_int_equal(upstream_shards(w->u), SHARDS);
    w->done = w->ok = 0;
}

static void each_shard_has_lanes_of_its_own(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_int_equal(asks_shard(&w, i, NOW), BT_OK);
    }
    for (int i = 0; i < 4; i++) {
        run(&w, NOW);
    }
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_non_null(out_to(&w, URLS[i]));
        says(&w, i, OK, NOW);
        assert_int_equal(w.ok, i + 1);
    }
    close_world(&w);
}

static void a_list_is_asked_of_all_and_becomes_one(void **state)
{
    struct world w;
    struct call *call;

    (void)state;
    begin(&w);
    assert_int_equal(asks_all(&w, &call), BT_OK);
    assert_non_null(call);
    for (int i = 0; i < 4; i++) {
        run(&w, NOW);
    }
    says(&w, 1, REVIEWS("{'reviewId':'b','requestedAt':'2'}"), NOW);
    says(&w, 0, REVIEWS(""), NOW);
    assert_int_equal(w.done, 0);
    says(&w, 2, REVIEWS("{'reviewId':'c','requestedAt':'1'}"), NOW);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.ok, 1);
    assert_non_null(strstr(got, "\"reviewId\":\"b\""));
    assert_non_null(strstr(got, "\"reviewId\":\"c\""));
    assert_non_null(strstr(got, "\"missingShards\":[]"));
    close_world(&w);
}

static void a_shard_that_cannot_answer_is_missing(void **state)
{
    static const char *const CODES[] = {REFUSES("UNAVAILABLE", ""), REFUSES("TIMEOUT", ""),
                                        REFUSES("BUSY", ""),
                                        REFUSES("MOVED", "") /* it does not say where to */};

    (void)state;
    for (size_t i = 0; i < sizeof CODES / sizeof CODES[0]; i++) {
        struct world w;
        struct call *call;
        begin(&w);
        assert_int_equal(asks_all(&w, &call), BT_OK);
        for (int k = 0; k < 4; k++) {
            run(&w, NOW);
        }
        says(&w, 0, REVIEWS(""), NOW);
        says(&w, 1, CODES[i], NOW);
        says(&w, 2, REVIEWS(""), NOW);
        assert_int_equal(w.ok, 1);
        assert_non_null(strstr(got, "\"missingShards\":[1]"));
        close_world(&w);
    }
}

static void an_answer_of_a_part_has_three_seconds(void **state)
{
    struct world w;
    struct call *call;

    (void)state;
    begin(&w);
    assert_int_equal(asks_all(&w, &call), BT_OK);
    for (int k = 0; k < 4; k++) {
        run(&w, NOW);
    }
    says(&w, 0, REVIEWS(""), NOW);
    says(&w, 2, REVIEWS(""), NOW);
    run(&w, NOW + PART_MS - 1);
    assert_int_equal(w.done, 0);
    run(&w, NOW + PART_MS);
    assert_int_equal(w.ok, 1);
    assert_non_null(strstr(got, "\"missingShards\":[1]"));
    close_world(&w);
}

static void what_one_shard_refuses_all_do(void **state)
{
    struct world w;
    struct call *call;

    (void)state;
    begin(&w);
    assert_int_equal(asks_all(&w, &call), BT_OK);
    for (int k = 0; k < 4; k++) {
        run(&w, NOW);
    }
    says(&w, 1, REFUSES("INVALID", ""), NOW);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.ok, 0);
    assert_int_equal(w.code, BT_INVALID);
    says(&w, 0, REFUSES("INVALID", ""), NOW);
    says(&w, 2, REVIEWS(""), NOW);
    assert_int_equal(w.done, 1); /* once */
    close_world(&w);
}

static void without_any_answer_it_is_unavailable(void **state)
{
    struct world w;
    struct call *call;

    (void)state;
    begin(&w);
    assert_int_equal(asks_all(&w, &call), BT_OK);
    for (int k = 0; k < 4; k++) {
        run(&w, NOW);
    }
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_int_equal(w.done, 0);
        says(&w, i, REFUSES("UNAVAILABLE", ""), NOW);
    }
    assert_int_equal(w.done, 1);
    assert_int_equal(w.code, BT_UNAVAILABLE);
    close_world(&w);
}

static void nobody_is_told_of_what_was_abandoned(void **state)
{
    struct world w;
    struct call *call;

    (void)state;
    begin(&w);
    for (uint32_t refuses = 0; refuses < 2; refuses++) {
        assert_int_equal(asks_all(&w, &call), BT_OK);
        for (int k = 0; k < 4; k++) {
            run(&w, NOW);
        }
        call_abandon(call);
        for (uint32_t i = 0; i < SHARDS; i++) {
            says(&w, i, refuses == 1 ? REFUSES("INVALID", "") : REVIEWS(""), NOW);
        }
        assert_int_equal(w.done, 0);
    }
    close_world(&w);
}

/* The places of a sender are for all its calls. */
static void a_list_that_nobody_can_be_asked_for_is_refused(void **state)
{
    struct world w;
    struct call *call;

    (void)state;
    begin(&w);
    for (int i = 0; i < CALLER_CALLS_MAX; i++) {
        assert_int_equal(asks_shard(&w, 0, NOW), BT_OK);
    }
    assert_int_equal(asks_all(&w, &call), BT_UNAVAILABLE);
    assert_null(call);
    close_world(&w);
    begin(&w);
    for (int i = 0; i < CALLER_CALLS_MAX - 2; i++) {
        assert_int_equal(asks_shard(&w, 0, NOW), BT_OK);
    }
    assert_int_equal(asks_all(&w, &call), BT_OK); /* two of three */
    close_world(&w);
}

/* ---- moves ---- */

static void what_has_moved_is_asked_where_it_is_a_little_later(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    assert_int_equal(asks_shard(&w, 0, NOW), BT_OK);
    run(&w, NOW);
    says(&w, 0, REFUSES("MOVED", ",'details':{'shard':2}"), NOW);
    for (int k = 0; k < 3; k++) {
        run(&w, NOW + MOVED_MS - 1);
    }
    assert_null(busy(&w));
    for (int k = 0; k < 3; k++) {
        run(&w, NOW + MOVED_MS);
    }
    assert_int_equal(w.done, 0);
    says(&w, 2, OK, NOW + MOVED_MS);
    assert_int_equal(w.ok, 1);
    close_world(&w);
}

static void a_move_to_no_shard_is_an_answer(void **state)
{
    static const char *const DETAILS[] = {"", ",'details':{}", ",'details':{'shard':3}",
                                          ",'details':{'shard':'2'}"};
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof DETAILS / sizeof DETAILS[0]; i++) {
        struct world w;
        begin(&w);
        assert_int_equal(asks_shard(&w, 0, NOW), BT_OK);
        run(&w, NOW);
        (void)snprintf(text, sizeof text, REFUSES("MOVED", "%s"), DETAILS[i]);
        says(&w, 0, text, NOW);
        assert_int_equal(w.done, 1);
        assert_int_equal(w.code, BT_MOVED);
        close_world(&w);
    }
}

static void a_shard_that_nobody_leads_holds_up_no_other(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    write_map("", URLS[2]);
    assert_int_equal(asks_shard(&w, 1, NOW + LOOK_MS), BT_OK);
    assert_int_equal(asks_shard(&w, 2, NOW + LOOK_MS), BT_OK);
    for (int k = 0; k < 3; k++) {
        run(&w, NOW + LOOK_MS);
    }
    says(&w, 2, OK, NOW + LOOK_MS);
    assert_int_equal(w.ok, 1);
    write_map(URLS[1], URLS[2]); /* it is read again, not too often */
    for (int k = 0; k < 3; k++) {
        run(&w, NOW + 2 * LOOK_MS - 1);
    }
    assert_null(busy(&w));
    for (int k = 0; k < 3; k++) {
        run(&w, NOW + 2 * LOOK_MS);
    }
    says(&w, 1, OK, NOW + 2 * LOOK_MS);
    assert_int_equal(w.ok, 2);
    close_world(&w);
}

/* ---- one daemon ---- */

static void who_may_not_is_another_answer_than_who_it_is(void **state)
{
    static const struct {
        const char *more;
        unsigned status;
    } CASES[] = {{"", 403}, {",'details':{'role':'operator'}", 0}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world w;
        char text[256];
        begin(&w);
        assert_int_equal(asks_shard(&w, 0, NOW), BT_OK);
        run(&w, NOW);
        (void)snprintf(text, sizeof text, REFUSES("UNAUTHORIZED", "%s"), CASES[i].more);
        says(&w, 0, text, NOW);
        assert_int_equal(w.done, 1);
        assert_int_equal(w.code, BT_UNAUTHORIZED);
        assert_int_equal(status, CASES[i].status);
        assert_int_equal(asks_shard(&w, 0, NOW), BT_OK); /* it is known still */
        close_world(&w);
    }
}

static void a_refusal_without_words_has_some(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    assert_int_equal(asks_shard(&w, 0, NOW), BT_OK);
    run(&w, NOW);
    says(&w, 0,
         "{'v':1,'id':'http','ok':false,'type':'error','error':{'code':'LIMIT','message':'',"
         "'retryable':true}}",
         NOW);
    assert_int_equal(w.code, BT_LIMIT);
    assert_string_equal(w.message, "the daemon gave no reason");
    close_world(&w);
}

static void what_a_lane_does_not_take_waits_or_fails(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    fake_lane_refuse(fake_link_lane(upstream_link(w.u), 0), BT_UNAVAILABLE);
    assert_int_equal(asks_shard(&w, 0, NOW), BT_OK);
    upstream_run(w.u, NOW);
    assert_int_equal(w.done, 0); /* its pipe has just changed */
    fake_lane_refuse(fake_link_lane(upstream_link(w.u), 0), BT_OK);
    run(&w, NOW);
    says(&w, 0, OK, NOW);
    assert_int_equal(w.ok, 1);
    fake_lane_refuse(fake_link_lane(upstream_link(w.u), 0), BT_LIMIT);
    assert_int_equal(asks_shard(&w, 0, NOW), BT_OK);
    upstream_run(w.u, NOW);
    assert_int_equal(w.done, 2);
    assert_int_equal(w.code, BT_LIMIT);
    close_world(&w);
}

static void a_lane_whose_connection_ended_is_not_used_again(void **state)
{
    struct world w;
    struct link_lane *lane;

    (void)state;
    begin(&w);
    lane = fake_link_lane(upstream_link(w.u), 0);
    fake_lane_down(lane, false); /* idle: who listens there now may be another one */
    upstream_run(w.u, NOW);
    assert_true(lane->retired);
    assert_int_equal(asks_shard(&w, 0, NOW), BT_OK);
    run(&w, NOW);
    lane = busy(&w);
    assert_non_null(lane);
    fake_lane_replaced(lane, true); /* the loss of its request comes last */
    run(&w, NOW);
    assert_true(lane->retired);
    run(&w, NOW);
    says(&w, 0, OK, NOW); /* it reads: sent again over another one */
    assert_int_equal(w.ok, 1);
    close_world(&w);
}

static void a_lane_to_where_the_shard_was_is_given_up(void **state)
{
    const struct link *l;
    struct world w;
    uint32_t n;

    (void)state;
    begin(&w);
    l = upstream_link(w.u);
    assert_int_equal(asks_shard(&w, 1, NOW), BT_OK);
    upstream_run(w.u, NOW); /* it dials, and nobody answers */
    n = fake_link_lanes(l);
    assert_string_equal(fake_link_lane(l, n - 1)->url, URLS[1]);
    upstream_run(w.u, NOW + LOOK_MS);
    assert_false(fake_link_lane(l, n - 1)->retired);
    write_map("tcp://127.0.0.1:7200", URLS[2]);
    upstream_run(w.u, NOW + 2 * LOOK_MS);
    assert_true(fake_link_lane(l, n - 1)->retired);
    run(&w, NOW + 2 * LOOK_MS);
    run(&w, NOW + 2 * LOOK_MS);
    assert_non_null(out_to(&w, "tcp://127.0.0.1:7200"));
    close_world(&w);
}

static void a_lane_to_a_daemon_of_before_is_given_up(void **state)
{
    struct state_endpoints at = {.control = "tcp://127.0.0.1:7117"};
    const struct link *l;
    struct bt_error err;
    struct world w;

    (void)state;
    open_world(&w);
    l = upstream_link(w.u);
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    upstream_run(w.u, NOW);
    assert_int_equal(fake_link_lanes(l), 1);
    upstream_run(w.u, NOW + LOOK_MS);
    assert_false(fake_link_lane(l, 0)->retired);
    at.pid = (uint64_t)getpid();
    at.pid_namespace = state_pid_namespace();
    memset(at.instance.b, 2, sizeof at.instance.b);
    (void)snprintf(at.version, sizeof at.version, "1");
    assert_int_equal(state_endpoints_write(dir, &at, &err), BT_OK);
    upstream_run(w.u, NOW + 2 * LOOK_MS);
    assert_true(fake_link_lane(l, 0)->retired);
    run(&w, NOW + 2 * LOOK_MS);
    answer(&w, OK, NOW + 2 * LOOK_MS);
    assert_int_equal(w.ok, 1);
    close_world(&w);
}

static void a_time_that_is_over_ends_its_lane_too(void **state)
{
    struct world w;
    struct link_lane *lane;

    (void)state;
    open_world(&w);
    assert_int_equal(calls(&w, true, 0, NOW), BT_OK);
    run(&w, NOW);
    lane = busy(&w);
    run(&w, NOW + CALL_MS);
    assert_int_equal(w.code, BT_TIMEOUT);
    assert_true(lane->retired); /* its answer would be taken for that of the next one */
    assert_int_equal(calls(&w, true, 0, NOW + CALL_MS), BT_OK);
    run(&w, NOW + CALL_MS);
    answer(&w, OK, NOW + CALL_MS);
    assert_int_equal(w.ok, 1);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_shard_has_lanes_of_its_own),
        cmocka_unit_test(a_list_is_asked_of_all_and_becomes_one),
        cmocka_unit_test(a_shard_that_cannot_answer_is_missing),
        cmocka_unit_test(an_answer_of_a_part_has_three_seconds),
        cmocka_unit_test(what_one_shard_refuses_all_do),
        cmocka_unit_test(without_any_answer_it_is_unavailable),
        cmocka_unit_test(nobody_is_told_of_what_was_abandoned),
        cmocka_unit_test(a_list_that_nobody_can_be_asked_for_is_refused),
        cmocka_unit_test(what_has_moved_is_asked_where_it_is_a_little_later),
        cmocka_unit_test(a_move_to_no_shard_is_an_answer),
        cmocka_unit_test(a_shard_that_nobody_leads_holds_up_no_other),
        cmocka_unit_test(who_may_not_is_another_answer_than_who_it_is),
        cmocka_unit_test(a_refusal_without_words_has_some),
        cmocka_unit_test(what_a_lane_does_not_take_waits_or_fails),
        cmocka_unit_test(a_lane_whose_connection_ended_is_not_used_again),
        cmocka_unit_test(a_lane_to_where_the_shard_was_is_given_up),
        cmocka_unit_test(a_lane_to_a_daemon_of_before_is_given_up),
        cmocka_unit_test(a_time_that_is_over_ends_its_lane_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
