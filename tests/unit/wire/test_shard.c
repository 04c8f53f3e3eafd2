/* Which shard has an id, a key, a request. The answers are part of the wire protocol: WIRE.md. */
#include "protocol/base/shard.h"

#include <stdio.h>
#include <stdlib.h>

#include "protocol/wire/shard_route.h"
#include "tests/support/cmocka.h"

static void an_id_keeps_the_shard_that_was_put_into_it_and_all_else(void **state)
{
    (void)state;
    for (uint32_t shard = 0; shard < 1024; shard++) {
        const struct uuid id = uuid_new();
        const struct uuid put = shard_put(id, shard);
        char text[UUID_TEXT_LEN + 1];
        struct uuid read;

        assert_int_equal(shard_of_id(put), shard);
        assert_int_equal(put.b[8] & 0xC0, 0x80); /* the variant of RFC 9562 */
        assert_memory_equal(put.b, id.b, 8);
        assert_int_equal(put.b[9] & 0x0F, id.b[9] & 0x0F);
        assert_memory_equal(put.b + 10, id.b + 10, 6);
        uuid_format(put, text);
        assert_true(uuid_parse(str_from(text), &read));
        assert_int_equal(shard_of_id(read), shard);
    }
}

static void a_key_has_the_shard_that_is_written_down(void **state)
{
    static const uint32_t counts[] = {1, 4, 8, 64};
    static const struct {
        const char *key;
        uint32_t shard[4];
    } known[] = {
        {"a", {0, 0, 0, 0}},
        {"s", {0, 2, 6, 46}},
        {"deploy-shop", {0, 1, 1, 33}},
        {"ü", {0, 1, 5, 45}},
        {"schedule/nightly/1", {0, 3, 3, 27}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(shard_of_key(str_from(known[i].key), counts[k]), known[i].shard[k]);
        }
    }
}

static int route(const char *type, const char *fields, uint32_t shards)
{
    struct buf doc;
    int shard;

    buf_init(&doc, 65536);
    assert_int_equal(json_to_doc(str_from(fields), NULL, &doc, NULL), BT_OK);
    shard = shard_of_request(str_from(type), doc_from_buf(&doc), shards);
    buf_done(&doc);
    return shard;
}

static int of_key(const char *key)
{
    return (int)shard_of_key(str_from(key), 8);
}

static void a_request_is_for_the_shard_of_what_it_is_about(void **state)
{
    char id[UUID_TEXT_LEN + 1];
    char body[256];

    (void)state;
    uuid_format(shard_put(uuid_new(), 5), id);
    (void)snprintf(body, sizeof body, "{\"planId\":\"%s\",\"sessionId\":\"s\"}", id);
    assert_int_equal(route("plan.get", body, 8), 5);
    assert_int_equal(route("plan.fork", body, 8), 5); /* it stays with its parent */
    assert_int_equal(route("plan.list", body, 8), 5);
    assert_int_equal(route("plan.get", body, 5), SHARD_ANY); /* of another fleet */
    (void)snprintf(body, sizeof body, "{\"reviewId\":\"%s/step/r1\"}", id);
    assert_int_equal(route("review.decide", body, 8), 5);
    (void)snprintf(body, sizeof body, "{\"uri\":\"file:///x/artifacts/%s/f.txt\"}", id);
    assert_int_equal(route("artifact.read", body, 8), 5);
    (void)snprintf(body, sizeof body, "{\"blobId\":%llu}", 3ULL << SHARD_BLOB_BITS | 7);
    assert_int_equal(route("blob.get", body, 8), 3);
    assert_int_equal(route("blob.get", "{\"blobId\":7}", 8), 0);
    assert_int_equal(route("session.get", "{\"sessionId\":\"s\"}", 8), of_key("s"));
    assert_int_equal(route("schedule.put", "{\"name\":\"nightly\"}", 8), of_key("nightly"));
}

static bool has_id(const char *type, const char *body, struct uuid *ret)
{
    struct buf doc;
    bool found;

    buf_init(&doc, 4096);
    assert_int_equal(json_to_doc(str_from(body), NULL, &doc, NULL), BT_OK);
    found = shard_id_of_request(str_from(type), doc_from_buf(&doc), ret);
    buf_done(&doc);
    return found;
}

/* Also one that names a shard that is not there: it may be known all the same. */
static void the_id_that_a_request_is_about_is_found_whatever_it_names(void **state)
{
    const struct uuid plan = shard_put(uuid_new(), 1023);
    char id[UUID_TEXT_LEN + 1];
    char body[256];
    struct uuid found;

    (void)state;
    uuid_format(plan, id);
    (void)snprintf(body, sizeof body, "{\"planId\":\"%s\"}", id);
    assert_true(has_id("plan.get", body, &found) && uuid_eq(found, plan));
    assert_false(has_id("plan.submit", body, &found));
    assert_false(has_id("step.query", body, &found));
    (void)snprintf(body, sizeof body, "{\"reviewId\":\"%s/step/r1\"}", id);
    assert_true(has_id("review.get", body, &found) && uuid_eq(found, plan));
    (void)snprintf(body, sizeof body, "{\"uri\":\"file:///x/artifacts/%s/f.txt\"}", id);
    assert_true(has_id("artifact.read", body, &found) && uuid_eq(found, plan));
    (void)snprintf(body, sizeof body, "{\"planId\":\"%.35s\"}", id);
    assert_false(has_id("plan.get", body, &found));
    assert_false(has_id("plan.list", "{}", &found));
}

static void a_new_plan_goes_by_session_then_concurrency_key_then_client_key(void **state)
{
    (void)state;
    assert_int_equal(route("plan.submit",
                           "{\"clientKey\":\"c\",\"sessionId\":\"s\",\"policy\":{"
                           "\"concurrencyKey\":\"k\"}}",
                           8),
                     of_key("s"));
    assert_int_equal(
        route("plan.submit", "{\"clientKey\":\"c\",\"plan\":{\"session_id\":\"t\"}}", 8),
        of_key("t"));
    assert_int_equal(route("plan.submit",
                           "{\"clientKey\":\"c\",\"plan\":{\"policy\":{\"concurrencyKey\":\"k\"}}}",
                           8),
                     of_key("k"));
    assert_int_equal(route("plan.submit", "{\"clientKey\":\"c\"}", 8), of_key("c"));
    assert_int_equal(route("plan.submit", "{}", 8), SHARD_ANY);
}

static void lists_are_for_all_and_what_agents_say_for_who_is_asked(void **state)
{
    (void)state;
    assert_int_equal(route("plan.list", "{}", 8), SHARD_ALL);
    assert_int_equal(route("plan.list", "{\"sessionId\":\"s\"}", 8), of_key("s"));
    assert_int_equal(route("supervisor.stats", "{}", 8), SHARD_ALL);
    assert_int_equal(route("supervisor.info", "{}", 8), SHARD_ANY);
    assert_int_equal(route("agent.register", "{\"sessionId\":\"s\"}", 8), SHARD_ANY);
    assert_int_equal(route("step.result", "{\"planId\":\"s\"}", 8), SHARD_ANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_keeps_the_shard_that_was_put_into_it_and_all_else),
        cmocka_unit_test(a_key_has_the_shard_that_is_written_down),
        cmocka_unit_test(a_request_is_for_the_shard_of_what_it_is_about),
        cmocka_unit_test(the_id_that_a_request_is_about_is_found_whatever_it_names),
        cmocka_unit_test(a_new_plan_goes_by_session_then_concurrency_key_then_client_key),
        cmocka_unit_test(lists_are_for_all_and_what_agents_say_for_who_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
