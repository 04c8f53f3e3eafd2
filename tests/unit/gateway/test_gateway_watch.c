/* The events that the gateway reads for itself: from now on, in order, again after a failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/client/state.h"
#include "supervisor/gateway/watch.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"

enum { NOW = 100000, REFUSED_MS = 10000, AGAIN_MS = 500 };

static char dir[64];
static struct watch *w;
static msec now;
static uint32_t shards, callers, released;
static char given[STATE_TOKEN_LEN + 1]; /* the last token that a caller was made of */
static enum bt_code makes;

/* ---- the upstream ---- */

uint32_t upstream_shards(const struct upstream *u)
{
    (void)u;
    return shards;
}

enum bt_code upstream_caller(struct upstream *u, struct str bearer, bool token_ok, msec at,
                             struct caller **ret, uint64_t *ret_retry_ms, struct bt_error *err)
{
    (void)u;
    (void)at;
    (void)ret_retry_ms;
    assert_true(token_ok);
    (void)snprintf(given, sizeof given, "%.*s", STR_ARG(bearer));
    callers++;
    *ret = makes == BT_OK ? (struct caller *)&rig : NULL;
    return makes == BT_OK ? BT_OK : err_set(err, makes, "no");
}

void caller_release(struct caller *c)
{
    assert_ptr_equal(c, &rig);
    released++;
}

/* ---- takers ---- */

static char taken[512];
static char one[] = "1", two[] = "2", none[] = "", x[] = "x"; /* takers */

static void take(void *self, struct doc event)
{
    const size_t n = strlen(taken);

    (void)snprintf(taken + n, sizeof taken - n, "%s%.*s@%u ", (const char *)self,
                   STR_ARG(doc_string(doc_get(event, STR_LIT("type")))), watch_shard(w));
}

static void write_token(char c)
{
    char path[80];
    char text[STATE_TOKEN_LEN + 1];
    FILE *f;

    memset(text, c, STATE_TOKEN_LEN);
    text[STATE_TOKEN_LEN] = 0;
    (void)snprintf(path, sizeof path, "%s/token", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
    assert_int_equal(chmod(path, 0600), 0);
}

static void remove_token(void)
{
    char path[80];

    (void)snprintf(path, sizeof path, "%s/token", dir);
    (void)unlink(path);
}

static int begin(void **state)
{
    struct bt_error err;

    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/test_watch-XXXXXX");
    assert_non_null(mkdtemp(dir));
    write_token('a');
    now = NOW;
    shards = 1;
    callers = released = 0;
    makes = BT_OK;
    taken[0] = 0;
    rig_begin("");
    return watch_new(NULL, dir, &w, &err) == BT_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    free(w);
    remove_token();
    rig_end();
    return rmdir(dir);
}

static void run(msec ms)
{
    now += ms;
    watch_run(w, now);
}

static void expect_asked(const char *fields)
{
    char text[256];

    (void)snprintf(text, sizeof text, "%s", fields);
    for (char *c = text; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    assert_string_equal(rig.fields, text);
}

#define FIRST "{'fromSeq':9223372036854775807,'limit':1,'waitMs':0}"
#define FROM(n) "{'fromSeq':" #n ",'limit':1000,'waitMs':20000}"
#define PAGE(events, next, last) "{'events':[" events "],'nextSeq':" #next ",'lastSeq':" #last "}"

/* It has begun: the next event is 5. */
static void started(void)
{
    watch_add(w, take, none);
    run(0);
    rig_answer(PAGE("", 5, 4));
    run(1);
    expect_asked(FROM(5));
}

static void nothing_is_asked_before_somebody_wants_events(void **state)
{
    (void)state;
    run(0);
    assert_int_equal(rig.asked, 0);
    assert_int_equal(watch_deadline(w), MSEC_NEVER);
    watch_add(w, take, none);
    assert_int_equal(watch_deadline(w), 0);
    run(0);
    expect_asked(FIRST); /* from now on */
    assert_int_equal(rig.spec.type, MSG_events_read);
    assert_true(rig.spec.reads && rig.spec.live);
    assert_int_equal(rig.spec.wait_ms, 0);
    assert_int_equal(rig.spec.to_shard, 1);
    assert_int_equal(watch_deadline(w), MSEC_NEVER); /* it is out */
    rig_answer(PAGE("{'type':'old'}", 5, 4));
    assert_string_equal(taken, "");
    run(1);
    expect_asked(FROM(5));
    assert_int_equal(rig.spec.wait_ms, 20000);
    run(1);
    assert_int_equal(rig.asked, 2);
}

static void each_taker_gets_each_event_in_order(void **state)
{
    (void)state;
    watch_add(w, take, one);
    watch_add(w, take, two);
    run(0);
    rig_answer(PAGE("", 5, 4));
    run(1);
    rig_answer(PAGE("{'type':'a'},{'type':'b'}", 7, 6));
    assert_string_equal(taken, "1a@0 2a@0 1b@0 2b@0 ");
    assert_int_equal(watch_seen(w), 2);
    assert_int_equal(watch_deadline(w), now + 20); /* it has all: an answer to each is too much */
    run(19);
    assert_int_equal(rig.asked, 2);
    run(1);
    expect_asked(FROM(7));
    rig_answer(PAGE("{'type':'c'}", 8, 20)); /* there is more: at once */
    run(0);
    expect_asked(FROM(8));
}

static void four_takers_have_room(void **state)
{
    (void)state;
    for (int i = 0; i <= WATCH_TAKERS_MAX; i++) {
        watch_add(w, take, x);
    }
    run(0);
    rig_answer(PAGE("", 5, 4));
    run(1);
    rig_answer(PAGE("{'type':'a'}", 6, 5));
    assert_string_equal(taken, "xa@0 xa@0 xa@0 xa@0 ");
}

static void events_that_come_fast_have_a_longer_pause(void **state)
{
    static char page[8192];
    size_t n;

    (void)state;
    started();
    for (int many = 249; many <= 250; many++) {
        n = (size_t)snprintf(page, sizeof page, "{'nextSeq':%d,'lastSeq':1,'events':[", many);
        for (int i = 0; i < many; i++) {
            n += (size_t)snprintf(page + n, sizeof page - n, "%s{'t':1}", i > 0 ? "," : "");
        }
        (void)snprintf(page + n, sizeof page - n, "]}");
        rig_answer(page);
        assert_int_equal(watch_deadline(w), now + (many == 249 ? 20 : 50));
        run(50);
    }
}

static void a_read_that_fails_is_made_again_after_half_a_second(void **state)
{
    (void)state;
    started();
    rig_refuse(BT_UNAVAILABLE, "away");
    run(1);
    assert_int_equal(watch_deadline(w), now + AGAIN_MS);
    run(AGAIN_MS - 1);
    assert_int_equal(rig.asked, 2);
    rig.busy = BT_BUSY;
    run(1);
    expect_asked(FROM(5));
    assert_int_equal(rig.asked, 3);
    rig.busy = BT_OK;
    run(1);
    run(AGAIN_MS - 1);
    assert_int_equal(rig.asked, 3);
    run(1);
    assert_int_equal(rig.asked, 4);
}

static void a_token_that_may_not_read_is_tried_again_after_ten_seconds(void **state)
{
    (void)state;
    started();
    assert_int_equal(callers, 1);
    rig_refuse(BT_UNAUTHORIZED, "no");
    for (msec ms = 0; ms < REFUSED_MS - 2; ms += 500) {
        run(ms == 0 ? 1 : 500);
        assert_int_equal(rig.asked, 2);
    }
    write_token('b');
    now = NOW + REFUSED_MS - 1;
    run(0);
    assert_int_equal(rig.asked, 2);
    run(1);
    assert_int_equal(rig.asked, 3);
    assert_int_equal(callers, 2);
    assert_int_equal(released, 1);
    assert_int_equal(given[0], 'b');
}

static void a_token_is_looked_at_each_ten_seconds(void **state)
{
    (void)state;
    assert_non_null(watch_caller(w, now));
    write_token('b');
    assert_non_null(watch_caller(w, now + REFUSED_MS - 1));
    assert_int_equal(callers, 1);
    assert_int_equal(given[0], 'a');
    assert_non_null(watch_caller(w, now + REFUSED_MS));
    assert_int_equal(callers, 2);
    assert_int_equal(released, 1);
    assert_int_equal(given[0], 'b');
    assert_non_null(watch_caller(w, now + 2 * REFUSED_MS));
    assert_int_equal(callers, 2); /* it is the same */
    remove_token();
    assert_non_null(watch_caller(w, now + 3 * REFUSED_MS)); /* that of before */
    assert_int_equal(callers, 2);
}

static void without_a_token_it_waits(void **state)
{
    (void)state;
    remove_token();
    watch_add(w, take, none);
    run(0);
    assert_int_equal(rig.asked, 0);
    assert_int_equal(watch_deadline(w), now + AGAIN_MS);
    write_token('a');
    makes = BT_BUSY;
    run(AGAIN_MS);
    assert_int_equal(rig.asked, 0);
    assert_int_equal(callers, 1);
    makes = BT_OK;
    run(AGAIN_MS);
    assert_int_equal(rig.asked, 1);
}

static void each_shard_has_a_reader(void **state)
{
    (void)state;
    shards = 2;
    assert_int_equal(watch_shards(w), 2);
    watch_add(w, take, none);
    run(0);
    assert_int_equal(rig.asked, 2);
    assert_int_equal(rig.spec.to_shard, 2);
    rig_answer_to(MSG_events_read, PAGE("", 5, 4));
    rig_answer_to(MSG_events_read, PAGE("", 9, 8));
    run(1);
    expect_asked(FROM(9));
    rig_answer_to(MSG_events_read, PAGE("{'type':'a'}", 6, 5));
    rig_answer_to(MSG_events_read, PAGE("{'type':'b'}", 10, 9));
    assert_string_equal(taken, "a@0 b@1 ");
}

static void of_a_fleet_it_asks_with_the_last_event_and_goes_back_when_that_was_lost(void **state)
{
    static const uint8_t details[] = "\x81\xa7"
                                     "fromSeq\x03";
    struct reply lost = {
        .problem = {.code = BT_HISTORY_CHANGED, .details = {details, sizeof details - 1}}};

    (void)state;
    started();
    rig_answer("{'leader':'L','events':[{'type':'a'}],'nextSeq':6,'lastSeq':5,'lastEventId':'E5'}");
    run(20);
    expect_asked("{'afterEventId':'E5','fromSeq':6,'limit':1000,'waitMs':20000}");
    rig.calls[0].open = false;
    rig.spec.done(rig.spec.self, &lost);
    run(0);
    expect_asked(FROM(3)); /* at once, from where the histories part */
    lost.problem.details.ptr = NULL;
    rig.calls[0].open = false;
    rig.spec.done(rig.spec.self, &lost);
    run(0);
    expect_asked(FIRST); /* nobody knows from where: from now on */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_asked_before_somebody_wants_events),
        TEST(each_taker_gets_each_event_in_order),
        TEST(four_takers_have_room),
        TEST(events_that_come_fast_have_a_longer_pause),
        TEST(a_read_that_fails_is_made_again_after_half_a_second),
        TEST(a_token_that_may_not_read_is_tried_again_after_ten_seconds),
        TEST(a_token_is_looked_at_each_ten_seconds),
        TEST(without_a_token_it_waits),
        TEST(each_shard_has_a_reader),
        TEST(of_a_fleet_it_asks_with_the_last_event_and_goes_back_when_that_was_lost),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
