#include "protocol/wire/msg.h"
#include "tests/support/cmocka.h"

static struct msg_reader reader_of(const struct buf *b)
{
    struct bt_error err;
    struct msg_reader r;
    if (msg_reader_init(&r, b->at, b->len, 1 << 20, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return r;
}

static void a_request_carries_envelope_and_body_in_one_map(void **state)
{
    struct msg_plan_get body = {.plan_id = STR_LIT("p1")};
    struct msg_envelope envelope;
    struct msg_plan_get back;
    struct msg_reader r;
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    assert_int_equal(
        msg_request(&out, WIRE_JSON, STR_LIT("7"), STR_LIT("secret"), MSG_plan_get, &body, NULL),
        BT_OK);
    assert_string_equal(
        buf_cstr(&out),
        "{\"v\":1,\"type\":\"plan.get\",\"id\":\"7\",\"token\":\"secret\",\"planId\":\"p1\"}");
    r = reader_of(&out);
    assert_int_equal(msg_read(&r, MSG_envelope, &envelope, NULL), BT_OK);
    assert_int_equal(msg_read(&r, MSG_plan_get, &back, NULL), BT_OK);
    assert_int_equal(msg_type_from_wire(envelope.type), MSG_plan_get);
    assert_true(str_is(back.plan_id, "p1"));
    msg_reader_done(&r);
    buf_done(&out);
}

static void an_ok_answer_is_read_back_in_both_forms(void **state)
{
    struct msg_plan_submit_ok body = {.plan_id = STR_LIT("p1"), .seq = UINT64_MAX};
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    for (int form = 0; form < 2; form++) {
        struct bt_error err = {.code = BT_OK};
        enum err_class cls = CLASS_UNKNOWN;
        struct msg_plan_submit_ok back;
        struct msg_reader r;
        buf_clear(&out);
        assert_int_equal(msg_answer(&out, form == 0 ? WIRE_MSGPACK : WIRE_JSON, STR_LIT("7"),
                                    MSG_plan_submit_ok, &body, &err),
                         BT_OK);
        r = reader_of(&out);
        assert_int_equal(msg_read_answer(&r, MSG_plan_submit_ok, &back, &cls, &err), BT_OK);
        assert_true(back.seq == UINT64_MAX);
        assert_int_equal(cls, CLASS_NONE);
        msg_reader_done(&r);
    }
    buf_clear(&out);
    assert_int_equal(msg_answer(&out, WIRE_JSON, STR_LIT("8"), MSG_empty, NULL, NULL), BT_OK);
    assert_string_equal(buf_cstr(&out), "{\"v\":1,\"type\":\"ok\",\"id\":\"8\",\"ok\":true}");
    buf_done(&out);
}

static void a_refusal_arrives_as_code_message_and_class(void **state)
{
    struct bt_error why = {BT_LIMIT, "too much"};
    struct bt_error err = {.code = BT_OK};
    enum err_class cls = CLASS_NONE;
    struct msg_envelope envelope;
    struct msg_empty nothing;
    struct msg_reader r;
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    assert_int_equal(msg_answer_error(&out, WIRE_JSON, STR_LIT("7"), &why, CLASS_RATE_LIMITED, 250,
                                      (struct doc){(const uint8_t *)"\x93\1\2\3", 4}),
                     BT_OK);
    assert_string_equal(buf_cstr(&out),
                        "{\"v\":1,\"type\":\"error\",\"id\":\"7\",\"ok\":false,\"error\":{"
                        "\"code\":\"LIMIT\",\"class\":\"RATE_LIMITED\",\"message\":\"too much\","
                        "\"retryable\":true,\"retryAfterMs\":250,\"details\":[1,2,3]}}");
    r = reader_of(&out);
    assert_int_equal(msg_read_answer(&r, MSG_empty, &nothing, &cls, &err), BT_LIMIT);
    assert_string_equal(err.msg, "too much");
    assert_int_equal(err.code, BT_LIMIT);
    assert_int_equal(cls, CLASS_RATE_LIMITED);
    assert_int_equal(msg_read(&r, MSG_envelope, &envelope, NULL), BT_OK);
    assert_int_equal(envelope.error.retry_after_ms, 250);
    msg_reader_done(&r);
    buf_done(&out);
}

static void only_what_may_work_later_is_retryable(void **state)
{
    static const struct {
        enum bt_code code;
        bool retryable;
    } cases[] = {{BT_BUSY, true},     {BT_UNAVAILABLE, true}, {BT_TIMEOUT, true},
                 {BT_INVALID, false}, {BT_NOT_FOUND, false},  {BT_CONFLICT, false}};
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bt_error why = {cases[i].code, "x"};
        struct msg_envelope envelope;
        struct msg_reader r;
        buf_clear(&out);
        assert_int_equal(msg_answer_error(&out, WIRE_MSGPACK, (struct str){NULL, 0}, &why,
                                          CLASS_NONE, 0, (struct doc){NULL, 0}),
                         BT_OK);
        r = reader_of(&out);
        assert_int_equal(msg_read(&r, MSG_envelope, &envelope, NULL), BT_OK);
        assert_int_equal(envelope.error.retryable, cases[i].retryable);
        assert_false(msg_has(&envelope, envelope, id));
        assert_false(msg_has(&envelope.error, error, class_));
        msg_reader_done(&r);
    }
    buf_done(&out);
}

/* The message may quote bytes of a peer, or be cut inside a character. The error answer must still
 * be written. */
static void a_refusal_goes_out_whatever_its_message_holds(void **state)
{
    struct bt_error why;
    struct buf out;

    (void)state;
    buf_init(&out, 2000);
    (void)err_set(&why, BT_INVALID, "a\xFF\xC3\xA9\xE2\x82");
    assert_int_equal(
        msg_answer_error(&out, WIRE_JSON, STR_LIT("1"), &why, CLASS_NONE, 0, (struct doc){NULL, 0}),
        BT_OK);
    assert_non_null(strstr(buf_cstr(&out), "\"a?\xC3\xA9??\""));
    buf_done(&out);
}

static void assert_answer(const char *json, enum bt_code code, const char *says)
{
    struct bt_error err = {.code = BT_OK};
    struct msg_plan_cancel_ok body;
    struct msg_reader r;

    assert_int_equal(msg_reader_init(&r, json, strlen(json), 1000, &err), BT_OK);
    if (msg_read_answer(&r, MSG_plan_cancel_ok, &body, NULL, &err) != code || err.code != code ||
        strstr(err.msg, says) == NULL) {
        fail_msg("%s: got %s '%s'", json, bt_code_name(err.code), err.msg);
    }
    msg_reader_done(&r);
}

static void an_answer_that_breaks_the_protocol_is_the_peers_fault(void **state)
{
    (void)state;
    assert_answer("{}", BT_PROTOCOL, "v: missing");
    assert_answer("{\"v\":1,\"type\":\"plan.cancel.ok\"}", BT_PROTOCOL, "lacks");
    assert_answer("{\"v\":2,\"type\":\"plan.cancel.ok\",\"ok\":true}", BT_PROTOCOL, "lacks v: 1");
    assert_answer("{\"v\":1,\"type\":\"error\",\"ok\":false}", BT_PROTOCOL, "without an error");
    assert_answer(
        "{\"v\":1,\"type\":\"error\",\"ok\":false,\"error\":{\"code\":\"OK\",\"message\":\"\"}}",
        BT_PROTOCOL, "code OK");
    assert_answer("{\"v\":1,\"type\":\"ok\",\"ok\":true}", BT_PROTOCOL,
                  "expected 'plan.cancel.ok'");
    assert_answer("{\"v\":1,\"type\":\"plan.cancel.ok\",\"ok\":true,\"planId\":1}", BT_PROTOCOL,
                  "planId: expected a string, got 1");
    assert_answer(
        "{\"v\":1,\"type\":\"error\",\"ok\":false,\"error\":{\"code\":\"NEW\",\"message\":\"m\"}}",
        BT_INTERNAL, "m");
}

static void a_body_that_is_no_map_is_refused_in_the_form_of_the_question(void **state)
{
    struct bt_error err = {.code = BT_OK};
    struct msg_reader r;

    (void)state;
    assert_int_equal(msg_reader_init(&r, "\x93\1\2\3", 4, 100, &err), BT_INVALID);
    assert_int_equal(r.form, WIRE_MSGPACK);
    assert_int_equal(msg_reader_init(&r, "[1]", 3, 100, &err), BT_INVALID);
    assert_int_equal(r.form, WIRE_MSGPACK);
    assert_int_equal(msg_reader_init(&r, "", 0, 100, &err), BT_INVALID);
    assert_int_equal(msg_reader_init(&r, "{\"a\":1", 6, 100, &err), BT_INVALID);
    assert_int_equal(r.form, WIRE_JSON);
    assert_int_equal(msg_reader_init(&r, "{\"a\":1}", 7, 6, &err), BT_LIMIT);
    assert_int_equal(r.form, WIRE_JSON);
    assert_string_equal(err.msg, "a body of 7 bytes, at most 6");
    msg_reader_done(&r);
    msg_reader_done(&r);
    msg_reader_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_carries_envelope_and_body_in_one_map),
        cmocka_unit_test(an_ok_answer_is_read_back_in_both_forms),
        cmocka_unit_test(a_refusal_arrives_as_code_message_and_class),
        cmocka_unit_test(only_what_may_work_later_is_retryable),
        cmocka_unit_test(a_refusal_goes_out_whatever_its_message_holds),
        cmocka_unit_test(a_body_that_is_no_map_is_refused_in_the_form_of_the_question),
        cmocka_unit_test(an_answer_that_breaks_the_protocol_is_the_peers_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
