/* What is known of a request before it is read. */
#include "protocol/wire/msg.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

enum { LOOK = 4096 };

static void is(struct str have, const char *want)
{
    assert_int_equal(have.len, strlen(want));
    assert_memory_equal(have.ptr == NULL ? "" : have.ptr, want, strlen(want));
}

static struct msg_peek of_text(const char *text)
{
    return msg_peek(text, strlen(text), LOOK);
}

static void json_members_are_found_wherever_they_stand(void **state)
{
    (void)state;
    struct msg_peek p =
        of_text("{\"a\": [1, {\"type\": \"no\", \"x\": \"}]\\\"\"}], \"v\":1,\n"
                "\"type\" : \"plan.get\",\"planId\":\"P\", \"token\":\"t\",\"id\":\"i\" }");

    assert_int_equal(p.form, WIRE_JSON);
    is(p.type, "plan.get");
    is(p.token, "t");
    is(p.id, "i");
    is(p.plan_id, "P");
    assert_true(p.whole);
}

static void msgpack_members_are_found_wherever_they_stand(void **state)
{
    (void)state;
    static const char body[] = "\x84\xa1x\x92\x81\xa4type\xa2no\xc0\xa4type\xa4step\xa5token\xa1t"
                               "\xa6planId\xa1P";
    struct msg_peek p = msg_peek(body, sizeof body - 1, LOOK);

    assert_int_equal(p.form, WIRE_MSGPACK);
    is(p.type, "step");
    is(p.token, "t");
    is(p.plan_id, "P");
    is(p.id, "");
    assert_true(p.whole);
}

static void what_is_no_plain_string_is_not_there(void **state)
{
    (void)state;
    struct msg_peek p =
        of_text("{\"type\": 7, \"token\": \"a\\u0062\", \"id\": null, \"planId\": {}}");

    is(p.type, "");
    is(p.token, "");
    is(p.id, "");
    is(p.plan_id, "");
    assert_true(p.whole);
}

/* Cut anywhere: only whole members are found, and nothing behind the end is read (ASan). */
static void every_prefix_is_safe(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"v\":1,\"type\":\"plan.get\",\"token\":\"to\\\"ken\",\"x\":[{\"y\":\"\\\\\"}],\"id\":"
        "\"i\"}",
        "\x84\xa1v\x01\xa4type\xa8plan.get\xa5token\xd9\x05token\xa2id\xa1i"};

    for (size_t b = 0; b < sizeof bodies / sizeof bodies[0]; b++) {
        const size_t len = strlen(bodies[b]);
        for (size_t n = 0; n <= len; n++) {
            char *exact = malloc(n == 0 ? 1 : n);
            assert_non_null(exact);
            memcpy(exact, bodies[b], n);
            struct msg_peek p = msg_peek(exact, n, LOOK);
            assert_true(p.type.len == 0 || p.type.len == 8);
            assert_int_equal(p.whole, n == len);
            p = msg_peek(bodies[b], len, n); /* the same by `look` */
            assert_true(p.type.len == 0 || p.type.len == 8);
            assert_int_equal(p.whole, n == len);
            free(exact);
        }
    }
}

static void what_is_no_map_has_nothing(void **state)
{
    (void)state;
    static const char *const bodies[] = {"",
                                         "[]",
                                         "{",
                                         "{,}",
                                         "{\"a\"}",
                                         "{\"type\":\"x\"",
                                         "\xc1",
                                         "\x81",
                                         "\x81\x01\x01",
                                         "\x93\x01\x02\x03"};

    for (size_t b = 0; b < sizeof bodies / sizeof bodies[0]; b++) {
        assert_false(of_text(bodies[b]).whole);
    }
    is(of_text("{\"type\":\"x\"").type, "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_members_are_found_wherever_they_stand),
        cmocka_unit_test(msgpack_members_are_found_wherever_they_stand),
        cmocka_unit_test(what_is_no_plain_string_is_not_there),
        cmocka_unit_test(every_prefix_is_safe),
        cmocka_unit_test(what_is_no_map_has_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
