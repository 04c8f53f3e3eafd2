/* Push notifications of A2A: a queue about one plan, which ends with it. */
#include "tests/unit/gateway/queues_world.h"

static struct hook_spec push(const char *plan, const char *config)
{
    struct hook_spec spec = {.form = HOOK_A2A, .made = 1, .from = 3};

    (void)snprintf(spec.url, sizeof spec.url, "http://r/");
    (void)snprintf(spec.plan, sizeof spec.plan, "%s", plan);
    (void)snprintf(spec.config, sizeof spec.config, "%s", config);
    (void)snprintf(spec.context, sizeof spec.context, "ctx");
    (void)snprintf(spec.token, sizeof spec.token, "tok");
    (void)snprintf(spec.scheme, sizeof spec.scheme, "Bearer");
    (void)snprintf(spec.credentials, sizeof spec.credentials, "cred");
    return spec;
}

static struct hook *put_push(const char *plan, const char *config)
{
    const struct hook_spec spec = push(plan, config);
    struct bt_error err;
    struct hook *h = NULL;

    assert_int_equal(webhooks_push_put(w, &spec, &err), BT_OK);
    for (int i = HOOKS_PLACES; i < HOOK_PLACES; i++) {
        if (w->hooks[i] != NULL && strcmp(w->hooks[i]->spec.config, config) == 0 &&
            strcmp(w->hooks[i]->spec.plan, plan) == 0) {
            h = w->hooks[i];
        }
    }
    assert_non_null(h);
    return h;
}

static const char *file_of(const char *plan, const char *config, const char *ending)
{
    static char file[HOOK_NAME_MAX + 8];
    char name[HOOK_NAME_MAX + 1];

    hook_push_name(plan, config, name);
    (void)snprintf(file, sizeof file, "%s%s", name, ending);
    return file;
}

static void a_push_reads_events_of_its_plan_and_shows_what_its_receiver_knows(void **state)
{
    const struct hook *h = put_push("P", "c");

    (void)state;
    assert_true(is_there(file_of("P", "c", ".json")));
    turn(1);
    assert_string_equal(rig.fields, "{\"planId\":\"P\",\"fromSeq\":3,\"limit\":64}");
    assert_int_equal(rig.spec.to_shard, 0); /* by its plan */
    rig_answer(PAGE(6, 5, E(3, "noise") "," E(4, "a")));
    turn(1);
    assert_string_equal(post.body, "1.0 P ctx a alone");
    assert_non_null(strstr(post.headers, "Content-Type: application/a2a+json\nwebhook-id: E4\n"));
    assert_non_null(strstr(post.headers, "\nAuthorization: Bearer cred\n"));
    assert_non_null(strstr(post.headers, "\nX-A2A-Notification-Token: tok\n"));
    assert_null(strstr(post.headers, "webhook-signature"));
    answered(204);
    turn(1);
    assert_int_equal(h->state.at.seq, 5); /* all that the page was of */
}

static void what_its_receiver_does_not_know_is_not_sent(void **state)
{
    struct hook_spec spec = push("P", "c");
    struct bt_error err;

    (void)state;
    spec.token[0] = 0;
    spec.credentials[0] = 0;
    spec.form = HOOK_A2A_OLD;
    assert_int_equal(webhooks_push_put(w, &spec, &err), BT_OK);
    turn(1);
    rig_answer(PAGE(5, 4, E(4, "a")));
    turn(1);
    assert_string_equal(post.body, "0.3 P ctx a alone");
    assert_null(strstr(post.headers, "Authorization"));
    assert_null(strstr(post.headers, "X-A2A"));
}

static void events_of_its_plan_alone_are_news(void **state)
{
    struct hook *h = put_push("P", "c");

    (void)state;
    turn(1);
    rig_answer(PAGE(4, 9, E(3, "a")));
    turn(1);
    answered(204);
    turn(1);
    assert_int_equal(rig.asked, 1); /* 9 is the last one of all plans */
    happens("{'seq':10,'planId':'Q'}");
    turn(1);
    assert_int_equal(rig.asked, 1);
    happens("{'seq':11,'planId':'P'}");
    assert_int_equal(h->last, 11);
    turn(1);
    assert_int_equal(rig.asked, 2);
}

static void the_end_of_a_plan_goes_with_its_result_and_ends_the_queue(void **state)
{
    struct webhook_counts c;
    uint32_t at = 0;

    (void)state;
    (void)put_push("P", "c");
    turn(1);
    rig_answer(PAGE(5, 4, E(3, "a") "," E(4, "plan_completed")));
    turn(1);
    answered(204);
    turn(1);
    assert_int_equal(rig.spec.type, MSG_plan_result);
    assert_int_equal(rig.spec.answer, MSG_plan_result_ok);
    assert_true(rig.spec.reads);
    assert_string_equal(rig.fields, "{\"planId\":\"P\",\"steps\":false}");
    turn(1);
    assert_int_equal(rig.asked, 2);
    assert_int_equal(post.n, 1);
    rig_refuse(BT_UNAVAILABLE, "away"); /* again after half a second */
    turn(HOOK_AGAIN_MS - 1);
    assert_int_equal(rig.asked, 2);
    turn(1);
    assert_int_equal(rig.asked, 3);
    rig_answer("{'x':1}");
    turn(1);
    assert_string_equal(post.body, "1.0 P ctx plan_completed with its result");
    answered(500);
    w->hooks[HOOKS_PLACES]->state.at.due = 0;
    turn(1);
    assert_int_equal(post.n, 3); /* and not asked for again */
    answered(204);
    assert_false(is_there(file_of("P", "c", ".json")));
    assert_false(is_there(file_of("P", "c", ".at")));
    turn(1);
    assert_null(w->hooks[HOOKS_PLACES]);
    assert_true(webhooks_counts(w, &at, &c));
    assert_string_equal(c.name, "push");
    assert_int_equal(c.delivered, 2);
    assert_int_equal(c.failed, 1);
}

static void a_result_that_cannot_be_asked_for_is_asked_for_later(void **state)
{
    (void)state;
    (void)put_push("P", "c");
    turn(1);
    rig_answer(PAGE(4, 3, E(3, "plan_completed")));
    rig.no_caller = true;
    turn(1);
    assert_int_equal(rig.asked, 1);
    rig.no_caller = false;
    rig.busy = BT_BUSY;
    turn(HOOK_AGAIN_MS);
    assert_int_equal(rig.asked, 2);
    rig.busy = BT_OK;
    turn(HOOK_AGAIN_MS - 1);
    assert_int_equal(rig.asked, 2);
    turn(1);
    assert_int_equal(rig.asked, 3);
}

static void a_plan_that_was_deleted_ends_its_queues(void **state)
{
    static const enum bt_code codes[] = {BT_NOT_FOUND, BT_GONE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        (void)put_push("P", "page");
        turn(1);
        rig_refuse(codes[i], "no such plan");
        assert_false(is_there(file_of("P", "page", ".json")));
        turn(1);
        (void)put_push("P", "result");
        turn(1);
        rig_answer(PAGE(4, 3, E(3, "plan_completed")));
        turn(1);
        assert_int_equal(rig.spec.type, MSG_plan_result);
        rig_refuse(codes[i], "no such plan");
        assert_false(is_there(file_of("P", "result", ".json")));
        turn(1);
        assert_null(w->hooks[HOOKS_PLACES]);
    }
}

static void a_receiver_that_takes_nothing_for_a_day_loses_its_queue(void **state)
{
    struct hook *h = put_push("P", "c");

    (void)state;
    turn(1);
    rig_answer(PAGE(4, 3, E(3, "a")));
    turn(1);
    answered(500);
    assert_true(is_there(file_of("P", "c", ".json")));
    assert_int_equal(saved(h->name, 0, 1).at.tries, 1);
    h->state.at.due = 0;
    turn(1);
    answered(410);
    assert_false(is_there(file_of("P", "c", ".json")));
    turn(1);
    assert_null(w->hooks[HOOKS_PLACES]);
}

static void a_push_whose_file_was_removed_ends(void **state)
{
    (void)state;
    (void)put_push("P", "c");
    turn(SCAN_MS);
    remove_file(file_of("P", "c", ".json"));
    turn(SCAN_MS);
    assert_null(w->hooks[HOOKS_PLACES]);
    assert_int_equal(rig.abandoned, 1);
}

static void a_configuration_is_found_by_its_plan_and_its_id(void **state)
{
    const struct hook_spec *spec;
    uint32_t at = 0;

    (void)state;
    (void)put_push("P", "one");
    (void)put_push("Q", "one");
    (void)put_push("P", "two");
    spec = webhooks_push_next(w, "P", &at);
    assert_string_equal(spec->config, "one");
    assert_string_equal(spec->token, "tok");
    assert_string_equal(spec->scheme, "Bearer");
    assert_string_equal(spec->credentials, "cred");
    assert_string_equal(spec->context, "ctx");
    spec = webhooks_push_next(w, "P", &at);
    assert_string_equal(spec->config, "two");
    assert_null(webhooks_push_next(w, "P", &at));
    assert_false(webhooks_push_remove(w, "P", "three"));
    assert_true(webhooks_push_remove(w, "P", "one"));
    assert_false(webhooks_push_remove(w, "P", "one"));
    assert_false(is_there(file_of("P", "one", ".json")));
    assert_true(is_there(file_of("Q", "one", ".json")));
    at = 0;
    spec = webhooks_push_next(w, "P", &at);
    assert_string_equal(spec->config, "two");
    turn(1);
    assert_null(w->hooks[HOOKS_PLACES]);
}

/* Also while the last request of the first one is out. */
static void another_one_of_its_name_takes_its_place_at_once(void **state)
{
    struct hook *first = put_push("P", "c");
    struct hook_spec spec = push("P", "c");
    struct bt_error err;
    uint32_t at = 0;

    (void)state;
    turn(1);
    rig_answer(PAGE(4, 3, E(3, "a")));
    turn(1);
    assert_true(webhooks_push_remove(w, "P", "c"));
    spec.made = 2;
    assert_int_equal(webhooks_push_put(w, &spec, &err), BT_OK);
    assert_ptr_equal(w->hooks[HOOKS_PLACES], first);
    assert_non_null(w->hooks[HOOKS_PLACES + 1]);
    assert_int_equal(webhooks_push_next(w, "P", &at)->made, 2);
    answered(204);
    turn(1);
    assert_null(w->hooks[HOOKS_PLACES]);
    assert_true(is_there(file_of("P", "c", ".json"))); /* it is the second one's */
}

static void so_many_configurations_have_a_place_and_no_more(void **state)
{
    struct hook_spec spec;
    struct bt_error err;
    char config[16];

    (void)state;
    for (int i = 0; i < PUSHES_MAX - 1; i++) {
        (void)snprintf(config, sizeof config, "c%d", i);
        spec = push("P", config);
        assert_int_equal(hook_push_write(dir, &spec, &err), BT_OK);
    }
    turn(0);
    assert_int_equal(webhooks_push_reserve(w, "P", "last", &err), BT_OK);
    assert_int_equal(webhooks_push_reserve(w, "P", "more", &err), BT_LIMIT);
    assert_non_null(strstr(err.msg, "there are 256 push notification configurations"));
    assert_int_equal(webhooks_push_reserve(w, "P", "c0", &err), BT_OK); /* it has one */
    webhooks_push_unreserve(w);
    spec = push("P", "more");
    assert_int_equal(webhooks_push_put(w, &spec, &err), BT_LIMIT);
    assert_false(is_there(file_of("P", "more", ".json")));
    webhooks_push_unreserve(w);
    assert_int_equal(webhooks_push_put(w, &spec, &err), BT_OK);
    spec = push("P", "another");
    assert_int_equal(webhooks_push_put(w, &spec, &err), BT_LIMIT);
    put_hook("ops", ""); /* places of webhooks are others */
    turn(SCAN_MS);
    assert_non_null(w->hooks[0]);
}

static void pushes_are_counted_together_with_the_largest_lag(void **state)
{
    struct webhook_counts c;
    uint32_t at = 0;

    (void)state;
    (void)put_push("P", "c");
    (void)put_push("Q", "c");
    happens("{'seq':10,'planId':'P'}");
    happens("{'seq':20,'planId':'Q'}");
    assert_true(webhooks_counts(w, &at, &c));
    assert_string_equal(c.name, "push");
    assert_int_equal(c.lag, 18); /* of event 2 on */
    assert_false(c.parked);
    w->hooks[HOOKS_PLACES]->delivered = 3;
    w->hooks[HOOKS_PLACES + 1]->failed = 4;
    at = 0;
    assert_true(webhooks_counts(w, &at, &c));
    assert_int_equal(c.delivered, 3);
    assert_int_equal(c.failed, 4);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_push_reads_events_of_its_plan_and_shows_what_its_receiver_knows),
        TEST(what_its_receiver_does_not_know_is_not_sent),
        TEST(events_of_its_plan_alone_are_news),
        TEST(the_end_of_a_plan_goes_with_its_result_and_ends_the_queue),
        TEST(a_result_that_cannot_be_asked_for_is_asked_for_later),
        TEST(a_plan_that_was_deleted_ends_its_queues),
        TEST(a_receiver_that_takes_nothing_for_a_day_loses_its_queue),
        TEST(a_push_whose_file_was_removed_ends),
        TEST(a_configuration_is_found_by_its_plan_and_its_id),
        TEST(another_one_of_its_name_takes_its_place_at_once),
        TEST(so_many_configurations_have_a_place_and_no_more),
        TEST(pushes_are_counted_together_with_the_largest_lag),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
