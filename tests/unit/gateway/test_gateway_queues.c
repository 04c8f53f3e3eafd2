/* Queues of webhooks: which events are read, what is sent, what comes after an answer. */
#include "tests/unit/gateway/queues_world.h"

/* ---- what is read ---- */

static void a_new_webhook_reads_from_its_first_event_and_sends_one_after_the_other(void **state)
{
    (void)state;
    put_hook("ops", "\"fromSeq\":7");
    turn(0);
    assert_int_equal(rig.asked, 1);
    assert_int_equal(rig.spec.type, MSG_events_read);
    assert_int_equal(rig.spec.answer, MSG_events_read_ok);
    assert_true(rig.spec.reads);
    assert_int_equal(rig.spec.to_shard, 1);
    assert_string_equal(rig.fields, "{\"fromSeq\":7,\"limit\":64}");
    assert_int_equal(watch.added, 1);
    turn(1);
    assert_int_equal(rig.asked, 1); /* it is out */
    rig_answer(PAGE(9, 8, E(7, "a") "," E(8, "b")));
    turn(1);
    assert_int_equal(post.n, 1);
    assert_string_equal(post.url, "http://r/");
    assert_int_equal(post.last.timeout_ms, 15000);
    assert_non_null(strstr(post.body, "\"id\":\"E7\""));
    assert_non_null(strstr(post.body, "\"source\":\"http://page\""));
    turn(1);
    assert_int_equal(post.n, 1); /* until its receiver has it */
    answered(204);
    turn(1);
    assert_int_equal(post.n, 2);
    assert_non_null(strstr(post.body, "\"id\":\"E8\""));
    answered(200);
    turn(1);
    assert_int_equal(post.n, 2);
    assert_int_equal(rig.asked, 1); /* there is no more */
}

static void a_request_has_an_id_a_time_and_a_signature_of_both_and_the_body(void **state)
{
    struct sign_secrets secrets;
    struct buf mac;
    char expected[TEXT_BYTES];
    uint64_t at = 0;

    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(2, 1, E(1, "a")));
    turn(1);
    assert_non_null(strstr(post.headers, "webhook-timestamp: "));
    at = strtoull(strstr(post.headers, "webhook-timestamp: ") + 19, NULL, 10);
    assert_true(at <= clock_wall_ms() / 1000 && at + 60 > clock_wall_ms() / 1000);
    assert_int_equal(sign_read(STR_LIT(SECRET), &secrets, NULL), BT_OK);
    buf_init(&mac, 256);
    assert_int_equal(sign_put(&secrets, STR_LIT("E1"), at, str_from(post.body), &mac, NULL), BT_OK);
    (void)snprintf(expected, sizeof expected,
                   "Content-Type: application/cloudevents+json; charset=utf-8\nwebhook-id: E1\n"
                   "webhook-timestamp: %" PRIu64 "\nExpect:\nwebhook-signature: %s\n",
                   at, buf_cstr(&mac));
    assert_string_equal(post.headers, expected);
    buf_done(&mac);
}

static void what_no_topic_wants_is_passed_without_a_request(void **state)
{
    (void)state;
    put_hook("ops", "\"topics\":[\"a\",\"c*\"],\"body\":\"chat\"");
    turn(0);
    rig_answer(PAGE(5, 4, E(1, "b") "," E(2, "a") "," E(3, "b") "," E(4, "cc")));
    turn(1);
    assert_string_equal(post.body, "{\"text\":\"a\"}");
    answered(204);
    turn(1);
    assert_string_equal(post.body, "{\"text\":\"cc\"}");
    answered(204);
    turn(1);
    assert_int_equal(post.n, 2);
    assert_int_equal(w->hooks[0]->state.at.seq, 4);
}

static void events_that_were_deleted_with_their_plan_are_behind_it(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(100, 99, ""));
    turn(1);
    assert_int_equal(w->hooks[0]->state.at.seq, 99);
    happens(E(100, "a"));
    turn(1);
    assert_int_equal(rig.asked, 2);
    assert_string_equal(rig.fields, "{\"fromSeq\":100,\"limit\":64}");
}

static void a_page_is_read_when_there_is_more_or_after_five_seconds(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(3, 3, E(1, "a") "," E(2, "a")));
    assert_int_equal(webhooks_deadline(w, now), now);
    turn(1);
    assert_true(webhooks_deadline(w, now) > now); /* until it is answered */
    answered(204);
    turn(1);
    answered(204);
    turn(1);
    assert_int_equal(rig.asked, 2); /* event 3 is there */
    rig_answer(PAGE(4, 3, E(3, "a")));
    turn(1);
    answered(204);
    turn(READ_MS - 3);
    assert_int_equal(rig.asked, 2);
    turn(2);
    assert_int_equal(rig.asked, 3); /* nobody said that there is more */
    rig_answer(PAGE(4, 3, ""));
    happens(E(3, "a"));
    turn(1);
    assert_int_equal(rig.asked, 3); /* it is known */
    happens(E(4, "a"));
    assert_int_equal(webhooks_deadline(w, now), now);
    turn(1);
    assert_int_equal(rig.asked, 4);
}

static void a_page_that_was_refused_is_asked_for_again_after_half_a_second(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    happens(E(1, "a")); /* there is more, and it is not asked for at once */
    rig_refuse(BT_UNAVAILABLE, "away");
    turn(HOOK_AGAIN_MS - 1);
    assert_int_equal(rig.asked, 1);
    assert_int_equal(webhooks_deadline(w, now), NOW + HOOK_AGAIN_MS);
    turn(1);
    assert_int_equal(rig.asked, 2);
    rig.busy = BT_BUSY;
    rig_refuse(BT_UNAVAILABLE, "away");
    turn(HOOK_AGAIN_MS);
    assert_int_equal(rig.asked, 3);
    rig.busy = BT_OK;
    rig.no_caller = true;
    turn(HOOK_AGAIN_MS - 1);
    assert_int_equal(rig.asked, 3);
    turn(HOOK_AGAIN_MS);
    assert_int_equal(rig.asked, 3); /* the token cannot be read */
    rig.no_caller = false;
    turn(HOOK_AGAIN_MS);
    assert_int_equal(rig.asked, 4);
}

static void a_journal_that_ends_before_what_was_sent_goes_on_with_its_next_event(void **state)
{
    (void)state;
    put_hook("ops", "\"fromSeq\":50");
    turn(0);
    rig_answer(PAGE(50, 48, ""));
    turn(1);
    assert_int_equal(w->hooks[0]->state.at.seq, 48);
    turn(1);
    happens(E(49, "a"));
    turn(1);
    assert_string_equal(rig.fields, "{\"fromSeq\":49,\"limit\":64}");
}

/* In a fleet numbers may be used again, after a failover: the eventId says which event it was. */
static void
a_fleet_is_asked_with_the_event_that_was_sent_and_goes_back_when_it_was_lost(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer("{'leader':'L','events':[" E(1, "a") "],'nextSeq':2,'lastSeq':1}");
    turn(1);
    answered(204);
    happens(E(2, "a"));
    turn(1);
    assert_string_equal(rig.fields, "{\"afterEventId\":\"E1\",\"fromSeq\":2,\"limit\":64}");
    rig_answer("{'leader':'L','events':[],'lastEventId':'E9','nextSeq':10,'lastSeq':9}");
    turn(1);
    assert_string_equal(w->hooks[0]->state.at.id, "E9");
    happens(E(10, "a"));
    turn(1);
    {
        static const uint8_t details[] = "\x82\xa7"
                                         "fromSeq\x05\xa7"
                                         "lastSeq\x06";
        const struct reply lost = {
            .problem = {.code = BT_HISTORY_CHANGED, .details = {details, sizeof details - 1}}};
        rig.spec.done(rig.spec.self, &lost);
    }
    assert_int_equal(w->hooks[0]->state.at.seq, 4);
    assert_string_equal(w->hooks[0]->state.at.id, "");
    assert_int_equal(w->last[0], 6);
    turn(1); /* at once */
    assert_string_equal(rig.fields, "{\"fromSeq\":5,\"limit\":64}");
    rig_refuse(BT_HISTORY_CHANGED, "without numbers: from the first one");
    turn(1);
    assert_string_equal(rig.fields, "{\"fromSeq\":1,\"limit\":64}");
}

/* ---- what comes after an answer ---- */

static void what_failed_waits_and_is_written_and_nothing_overtakes_it(void **state)
{
    struct hook_state s;

    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(3, 2, E(1, "a") "," E(2, "a")));
    turn(1);
    answered(500);
    s = saved("ops", 0, 1);
    assert_int_equal(s.at.seq, 0);
    assert_int_equal(s.at.tries, 1);
    assert_string_equal(s.at.why, "the receiver answered with status 500");
    assert_true(s.at.due > clock_wall_ms() + 500);
    turn(1);
    assert_int_equal(post.n, 1);
    assert_true(webhooks_deadline(w, now) <= now + SCAN_MS);
    w->scanned = now + 60000; /* only the wait counts */
    assert_in_range(webhooks_deadline(w, now), now + 500, now + 1300);
    w->hooks[0]->state.at.due = clock_wall_ms(); /* it is over */
    turn(1);
    assert_int_equal(post.n, 2);
    assert_non_null(strstr(post.body, "\"id\":\"E1\""));
    answered(302); /* is no success */
    assert_int_equal(saved("ops", 0, 1).at.tries, 2);
    w->hooks[0]->state.at.due = clock_wall_ms();
    turn(1);
    answered(299);
    turn(1);
    assert_non_null(strstr(post.body, "\"id\":\"E2\""));
}

static void a_receiver_that_is_gone_gets_nothing_before_it_is_sent_again(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(3, 2, E(1, "a") "," E(2, "a")));
    turn(1);
    answered(410);
    assert_true(saved("ops", 0, 1).at.parked);
    turn(60000);
    assert_int_equal(post.n, 1);
    put_hook("ops", "\"resend\":{\"order\":5,\"fromSeq\":2}");
    turn(SCAN_MS - 1);
    assert_int_equal(rig.asked, 1);
    turn(1);
    assert_string_equal(rig.fields, "{\"fromSeq\":2,\"limit\":64}");
    assert_false(saved("ops", 0, 1).at.parked);
    assert_int_equal(saved("ops", 0, 1).resent, 5);
    rig_answer(PAGE(3, 2, E(2, "a")));
    turn(SCAN_MS); /* the order counts once */
    assert_int_equal(rig.asked, 2);
    assert_non_null(strstr(post.body, "\"id\":\"E2\""));
}

static void an_answer_from_before_the_order_to_go_on_elsewhere_does_not_count(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(3, 2, E(1, "a") "," E(2, "a")));
    turn(1);
    put_hook("ops", "\"resend\":{\"order\":5,\"fromSeq\":2}");
    turn(SCAN_MS);
    answered(204);
    assert_int_equal(w->hooks[0]->state.at.seq, 1);
    assert_int_equal(w->hooks[0]->delivered, 0);
}

static void a_test_goes_out_whatever_happened_and_changes_nothing_but_what_it_says(void **state)
{
    struct hook_state s;

    (void)state;
    put_hook("ops", "\"fromSeq\":8");
    turn(0);
    rig_answer(PAGE(9, 8, E(8, "a")));
    turn(1);
    answered(410);
    put_hook("ops", "\"fromSeq\":8,\"test\":3");
    turn(SCAN_MS);
    assert_int_equal(post.n, 2);
    assert_non_null(strstr(post.body, "\"type\":\"baton.webhook_test\""));
    assert_non_null(strstr(post.body, "\"data\":{\"seq\":7,"));
    assert_non_null(strstr(post.headers, "webhook-signature: v1,"));
    turn(1);
    assert_int_equal(post.n, 2);
    answered(418);
    s = saved("ops", 0, 1);
    assert_int_equal(s.tested, 3);
    assert_int_equal(s.test_status, 418);
    assert_string_equal(s.test_why, "refused");
    assert_true(s.at.parked);
    assert_int_equal(s.at.seq, 7);
    turn(SCAN_MS);
    assert_int_equal(post.n, 2); /* once */
}

static void a_request_without_a_place_is_sent_half_a_second_later(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(2, 1, E(1, "a")));
    post.says = BT_BUSY;
    turn(1);
    assert_int_equal(post.n, 1);
    w->scanned = now;
    assert_int_equal(webhooks_deadline(w, now), now + HOOK_AGAIN_MS);
    turn(HOOK_AGAIN_MS - 1);
    assert_int_equal(post.n, 1);
    post.says = BT_OK;
    turn(1);
    assert_int_equal(post.n, 2);
    assert_int_equal(w->hooks[0]->failed, 0);
}

static void what_cannot_be_sent_at_all_is_a_failure_with_its_reason(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(2, 1, E(1, "a")));
    post.says = BT_INVALID;
    turn(1);
    assert_string_equal(saved("ops", 0, 1).at.why, "too many are out");
    w->hooks[0]->state.at.due = clock_wall_ms();
    write_file("secret", SECRET "\n", 0644);
    turn(1);
    assert_int_equal(post.n, 1); /* it is not signed */
    assert_non_null(strstr(saved("ops", 0, 1).at.why, "chmod 600"));
    assert_int_equal(saved("ops", 0, 1).at.tries, 2);
    assert_int_equal(w->hooks[0]->failed, 2);
}

/* ---- files ---- */

static void how_far_it_is_is_written_five_times_a_second_and_at_the_end(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(4, 3, E(1, "a") "," E(2, "a") "," E(3, "a")));
    turn(1);
    answered(204);
    turn(199);
    assert_int_equal(saved("ops", 0, 1).at.seq, 1);
    answered(204);
    turn(199);
    assert_int_equal(saved("ops", 0, 1).at.seq, 1);
    webhooks_flush(w);
    assert_int_equal(saved("ops", 0, 1).at.seq, 2);
    answered(204);
    remove_file("ops.at");
    webhooks_flush(w); /* the third one */
    assert_int_equal(saved("ops", 0, 1).at.seq, 3);
    remove_file("ops.at");
    webhooks_flush(w);
    assert_false(is_there("ops.at")); /* nothing is new */
}

static void a_webhook_that_is_taken_out_ends_after_its_request_and_leaves_no_file(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(3, 2, E(1, "a") "," E(2, "a")));
    turn(1);
    webhooks_flush(w);
    remove_file("ops.json");
    turn(SCAN_MS);
    assert_non_null(w->hooks[0]); /* a request is out */
    assert_true(w->hooks[0]->gone);
    put_hook("ops", "\"fromSeq\":1"); /* another one of its name: when the first one is gone */
    turn(SCAN_MS);
    answered(204);
    turn(1);
    assert_null(w->hooks[0]);
    assert_false(is_there("ops.at"));
    turn(SCAN_MS);
    assert_non_null(w->hooks[0]);
    assert_false(w->hooks[0]->gone);
    assert_int_equal(post.n, 1);
}

static void a_webhook_that_waits_for_events_ends_at_once(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    remove_file("ops.json");
    turn(SCAN_MS);
    assert_null(w->hooks[0]);
    assert_int_equal(rig.abandoned, 1);
}

static void another_webhook_of_its_name_begins_anew_and_a_change_does_not(void **state)
{
    (void)state;
    put_hook("ops", "");
    turn(0);
    rig_answer(PAGE(3, 2, E(1, "a") "," E(2, "a")));
    turn(1);
    answered(204);
    put_hook("ops", "\"body\":\"chat\"");
    turn(SCAN_MS);
    assert_string_equal(post.body, "{\"text\":\"a\"}");
    answered(204);
    write_file("webhooks/ops.json",
               "{\"made\":2,\"url\":\"http://x/\",\"secretEnv\":\"X\",\"fromSeq\":7}", 0600);
    turn(SCAN_MS);
    assert_string_equal(rig.fields, "{\"fromSeq\":7,\"limit\":64}");
}

static void what_is_no_webhook_is_left_alone_and_does_nothing(void **state)
{
    char name[HOOK_NAME_MAX + 8];

    (void)state;
    write_file("webhooks/broken.json", "{", 0600);
    write_file("webhooks/UPPER.json", "{}", 0600);
    write_file("webhooks/.json", "{}", 0600);
    write_file("webhooks/ops.txt", "{}", 0600);
    memset(name, 'n', sizeof name);
    (void)snprintf(name + HOOK_NAME_MAX, 8, ".json");
    {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof path, "webhooks/%s", name);
        write_file(path, "{", 0600); /* the longest name */
        (void)snprintf(path, sizeof path, "webhooks/n%s", name);
        write_file(path, "{", 0600);
    }
    turn(0);
    turn(SCAN_MS);
    assert_int_equal(rig.asked, 0);
    assert_non_null(w->hooks[0]); /* a place, until somebody mends it */
    assert_non_null(w->hooks[1]);
    assert_null(w->hooks[2]);
    put_hook("broken", "");
    turn(SCAN_MS);
    assert_int_equal(rig.asked, 1);
}

static void so_many_webhooks_have_a_place_and_no_more(void **state)
{
    char name[16];
    uint32_t n = 0;

    (void)state;
    for (int i = 0; i <= HOOKS_MAX; i++) {
        (void)snprintf(name, sizeof name, "h%d", i);
        put_hook(name, "");
    }
    turn(0);
    for (int i = 0; i < HOOK_PLACES; i++) {
        n += w->hooks[i] != NULL;
    }
    assert_int_equal(n, HOOKS_MAX);
    assert_int_equal(rig.asked, HOOKS_MAX);
}

/* ---- shards ---- */

static void each_shard_has_a_queue_of_its_own_and_one_test(void **state)
{
    struct webhook_counts c;
    uint32_t at = 0;

    (void)state;
    watch.shards = 2;
    put_hook("ops", "\"fromSeq\":9,\"test\":1");
    turn(0);
    assert_int_equal(post.n, 1); /* the test is of the first queue */
    assert_int_equal(rig.asked, 1);
    assert_int_equal(rig.spec.to_shard, 2);
    /* the number of the file is of one shard: each begins after its last event */
    assert_string_equal(rig.fields, "{\"fromSeq\":9223372036854775807,\"limit\":64}");
    rig_answer(PAGE(5, 4, ""));
    assert_int_equal(w->hooks[1]->state.at.seq, 4);
    answered(204);
    watch.shard = 1;
    happens(E(6, "a"));
    assert_int_equal(w->last[1], 6);
    assert_int_equal(w->last[0], 0);
    turn(1);
    assert_int_equal(rig.asked, 3);
    assert_true(webhooks_counts(w, &at, &c));
    assert_int_equal(c.lag, 2);
    webhooks_flush(w);
    assert_true(is_there("ops.S1.at"));
    remove_file("ops.json");
    turn(SCAN_MS);
    assert_false(is_there("ops.S1.at"));
}

static void a_queue_of_a_shard_that_was_there_goes_on(void **state)
{
    static const struct hook_spec spec = {.made = 1};
    const struct hook_state before = {.at = {.seq = 20}};

    (void)state;
    watch.shards = 2;
    assert_int_equal(hook_state_write(dir, "ops", 1, &spec, &before, NULL), BT_OK);
    put_hook("ops", "\"fromSeq\":9");
    turn(0);
    assert_int_equal(w->hooks[0]->state.at.seq, HOOK_FROM_NOW);
    assert_int_equal(w->hooks[1]->state.at.seq, 20);
    put_hook("all", "\"fromSeq\":1"); /* from the first one on is the same in each shard */
    turn(SCAN_MS);
    assert_int_equal(w->hooks[2]->state.at.seq, 0);
    assert_int_equal(w->hooks[3]->state.at.seq, 0);
}

/* ---- counts ---- */

static void what_came_of_requests_is_counted_for_each_webhook(void **state)
{
    struct webhook_counts c;
    uint32_t at = 0;

    (void)state;
    put_hook("ops", "");
    write_file("webhooks/broken.json", "{", 0600);
    turn(0);
    rig_answer(PAGE(4, 5, E(1, "a") "," E(2, "a") "," E(3, "a")));
    turn(1);
    answered(204);
    turn(1);
    answered(410);
    assert_true(webhooks_counts(w, &at, &c));
    assert_string_equal(c.name, "ops");
    assert_int_equal(c.delivered, 1);
    assert_int_equal(c.failed, 1);
    assert_int_equal(c.lag, 4);
    assert_true(c.parked);
    assert_true(webhooks_counts(w, &at, &c)); /* one that was never read is not counted */
    assert_string_equal(c.name, "push");
    assert_int_equal(c.delivered + c.failed + c.lag, 0);
    assert_false(webhooks_counts(w, &at, &c));
    at = 0;
    remove_file("ops.json");
    turn(SCAN_MS);
    assert_true(webhooks_counts(w, &at, &c));
    assert_string_equal(c.name, "push");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_new_webhook_reads_from_its_first_event_and_sends_one_after_the_other),
        TEST(a_request_has_an_id_a_time_and_a_signature_of_both_and_the_body),
        TEST(what_no_topic_wants_is_passed_without_a_request),
        TEST(events_that_were_deleted_with_their_plan_are_behind_it),
        TEST(a_page_is_read_when_there_is_more_or_after_five_seconds),
        TEST(a_page_that_was_refused_is_asked_for_again_after_half_a_second),
        TEST(a_journal_that_ends_before_what_was_sent_goes_on_with_its_next_event),
        TEST(a_fleet_is_asked_with_the_event_that_was_sent_and_goes_back_when_it_was_lost),
        TEST(what_failed_waits_and_is_written_and_nothing_overtakes_it),
        TEST(a_receiver_that_is_gone_gets_nothing_before_it_is_sent_again),
        TEST(an_answer_from_before_the_order_to_go_on_elsewhere_does_not_count),
        TEST(a_test_goes_out_whatever_happened_and_changes_nothing_but_what_it_says),
        TEST(a_request_without_a_place_is_sent_half_a_second_later),
        TEST(what_cannot_be_sent_at_all_is_a_failure_with_its_reason),
        TEST(how_far_it_is_is_written_five_times_a_second_and_at_the_end),
        TEST(a_webhook_that_is_taken_out_ends_after_its_request_and_leaves_no_file),
        TEST(a_webhook_that_waits_for_events_ends_at_once),
        TEST(another_webhook_of_its_name_begins_anew_and_a_change_does_not),
        TEST(what_is_no_webhook_is_left_alone_and_does_nothing),
        TEST(so_many_webhooks_have_a_place_and_no_more),
        TEST(each_shard_has_a_queue_of_its_own_and_one_test),
        TEST(a_queue_of_a_shard_that_was_there_goes_on),
        TEST(what_came_of_requests_is_counted_for_each_webhook),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
