/* The client's limits: cancel, many callers, addresses it does not connect to, recordings. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "tests/edge/model/world.h"

/* ---- cancel ---- */

static bool stop_later(void *self)
{
    return clock_mono_ms() >= *(const msec *)self;
}

static void ask_until(struct llm_client *c, msec stop_at, struct world_answer *ret)
{
    struct llm_turn turn = {.text = "question"};
    struct llm_request r = {.turns = &turn,
                            .n_turns = 1,
                            .max_tokens = 10,
                            .temperature = -1,
                            .deadline = clock_mono_ms() + 30000,
                            .stop = stop_later,
                            .self = &stop_at};

    ret->code = llm_complete(c, &r, &ret->reply, &ret->err);
}

static void cancel_ends_a_call_and_a_wait_at_once(void **state)
{
    static const char *const scripts[] = {"hang", "mute", "429:15"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct llm_client *c = world_client("openai", scripts[i], "");
        struct world_answer a;
        msec began = clock_mono_ms();
        ask_until(c, began + 200, &a);
        assert_int_equal(a.code, BT_CANCELLED);
        assert_in_range(clock_mono_ms() - began, 200, 1500);
        world_done(c, &a);
    }
}

/* ---- many callers ---- */

enum { CALLERS = 16, CALLS = 5 };

struct caller {
    struct llm_client *c;
    atomic_uint good;
};

static void *call(void *self)
{
    struct caller *k = self;

    for (unsigned i = 0; i < CALLS; i++) {
        struct llm_turn turn = {.text = "question"};
        struct llm_request r = {
            .turns = &turn, .n_turns = 1, .max_tokens = 10, .deadline = clock_mono_ms() + 20000};
        struct llm_reply reply;
        if (llm_complete(k->c, &r, &reply, NULL) == BT_OK &&
            strcmp(buf_cstr(&reply.text), "hello there") == 0) {
            (void)atomic_fetch_add(&k->good, 1);
        }
        llm_reply_done(&reply);
    }
    return NULL;
}

static void many_threads_ask_at_the_same_time(void **state)
{
    struct caller k = {.c = world_client("openai", "ok", "")};
    pthread_t threads[CALLERS];

    (void)state;
    for (unsigned i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call, &k), 0);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&k.good), CALLERS * CALLS);
    llm_client_free(k.c);
}

/* ---- addresses it does not connect to ---- */

static void proxies_and_logins_of_the_environment_are_not_used(void **state)
{
    static const char *const names[] = {"http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"};
    struct llm_client *c;
    struct world_answer a;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(setenv(names[i], "http://127.0.0.1:1", 1), 0);
    }
    c = world_client("openai", "ok", "");
    world_ask(c, false, 5000, &a);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(unsetenv(names[i]), 0);
    }
    assert_int_equal(a.code, BT_OK);
    world_done(c, &a);
}

static void addresses_that_may_not_be_called_are_not(void **state)
{
    struct llm_client *c =
        world_client_of("{\"providers\":[{\"api\":\"openai\",\"model\":\"m\",\"baseUrl\":"
                        "\"https://169.254.169.254/v1\"}]}");
    struct world_answer a;

    (void)state;
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.code, BT_INVALID);
    assert_non_null(strstr(a.err.msg, "may not be called"));
    assert_int_equal(a.reply.calls, 1);
    world_done(c, &a);
}

static void nobody_there_is_unavailable_and_deadlines_hold(void **state)
{
    struct llm_client *c = world_client_of(
        "{\"providers\":[{\"api\":\"openai\",\"model\":\"m\",\"backoffMs\":1,\"attempts\":2,"
        "\"baseUrl\":\"http://127.0.0.1:1/v1\"}]}");
    struct world_answer a;

    (void)state;
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.code, BT_UNAVAILABLE);
    assert_int_equal(a.reply.calls, 2);
    world_done(c, &a);
    c = world_client("openai", "mute", "");
    world_ask(c, false, 300, &a);
    assert_int_equal(a.code, BT_TIMEOUT);
    assert_in_range(a.reply.took_ms, 250, 2000);
    world_done(c, &a);
}

static void mistakes_of_the_address_are_told_in_plain_words(void **state)
{
    char settings[512];
    struct world_answer a;
    struct llm_client *c;

    (void)state;
    (void)snprintf(settings, sizeof settings,
                   "{\"providers\":[{\"api\":\"openai\",\"model\":\"m\",\"attempts\":1,"
                   "\"baseUrl\":\"https://127.0.0.1:%d/ok/v1\"}]}",
                   world_port());
    c = world_client_of(settings);
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.code, BT_UNAVAILABLE);
    assert_non_null(strstr(a.err.msg, "a server without TLS has an http:// address"));
    assert_null(strstr(a.err.msg, "routines"));
    world_done(c, &a);
    c = world_client("openai", "endlessheader", ",\"attempts\":1");
    world_ask(c, false, 5000, &a);
    assert_non_null(strstr(a.err.msg, "the headers of the answer have more than 65536 bytes"));
    world_done(c, &a);
}

/* ---- recordings ---- */

static struct llm_client *recorded(const char *mode, const char *script, const char *key)
{
    char settings[1024];

    (void)snprintf(settings, sizeof settings,
                   "{\"%s\":\"%s\",\"providers\":[{\"id\":\"t\",\"api\":\"openai\",\"model\":\"m\","
                   "\"baseUrl\":\"http://127.0.0.1:%d/%s/v1\",\"backoffMs\":1,"
                   "\"keyEnv\":\"%s\"}]}",
                   mode, world_dir(), world_port(), script, key);
    return world_client_of(settings);
}

static void recording_replays_without_a_network_and_without_a_key(void **state)
{
    struct llm_client *c;
    struct world_answer a;
    bool canary = true;

    (void)state;
    assert_int_equal(setenv("TAPE_KEY", CANARY, 1), 0);
    c = recorded("record", "503,ok~tape", "TAPE_KEY");
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.code, BT_OK);
    assert_int_equal(a.reply.calls, 2);
    world_done(c, &a);
    assert_true(world_files(".json", &canary) > 500);
    assert_false(canary);

    c = recorded("replay", "503,ok~tape", "NO_SUCH_KEY");
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.code, BT_OK);
    assert_int_equal(a.reply.calls, 2); /* the 503 is replayed too */
    assert_string_equal(buf_cstr(&a.reply.text), "hello there");
    llm_reply_done(&a.reply);
    world_ask(c, false, 5000, &a); /* a third call was not recorded */
    assert_int_equal(a.code, BT_NOT_FOUND);
    world_done(c, &a);
}

static void key_in_a_recorded_answer_is_not_kept_also_not_in_pieces(void **state)
{
    static const char *const scripts[] = {"echo~tape", "echoanswer~tape", "echowhole~tape"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct llm_client *c;
        struct world_answer a;
        bool canary = true;
        assert_int_equal(setenv("TAPE_KEY", CANARY, 1), 0);
        c = recorded("record", scripts[i], "TAPE_KEY");
        world_ask(c, false, 5000, &a);
        world_done(c, &a);
        (void)world_files(".json", &canary);
        assert_false(canary);
        c = recorded("replay", scripts[i], "NO_SUCH_KEY");
        world_ask(c, false, 5000, &a); /* looks for it */
        assert_int_equal(a.code, BT_UNAUTHORIZED);
        world_done(c, &a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancel_ends_a_call_and_a_wait_at_once),
        cmocka_unit_test(many_threads_ask_at_the_same_time),
        cmocka_unit_test(mistakes_of_the_address_are_told_in_plain_words),
        cmocka_unit_test(proxies_and_logins_of_the_environment_are_not_used),
        cmocka_unit_test(addresses_that_may_not_be_called_are_not),
        cmocka_unit_test(nobody_there_is_unavailable_and_deadlines_hold),
        cmocka_unit_test(recording_replays_without_a_network_and_without_a_key),
        cmocka_unit_test(key_in_a_recorded_answer_is_not_kept_also_not_in_pieces),
    };

    return cmocka_run_group_tests(tests, world_start, world_stop);
}
