/* Webhooks: waits and their end, signatures, bodies, files, private addresses. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/gateway/private.h"
#include "supervisor/gateway/webhook/body.h"
#include "supervisor/gateway/webhook/sign.h"
#include "supervisor/gateway/webhook/store.h"
#include "tests/support/cmocka.h"

#define T0 1000000000u

static void waits_grow_to_four_hours_with_a_quarter_of_jitter(void **unused)
{
    struct hook_progress p = {.seq = 7};

    (void)unused;
    for (uint32_t i = 0; i < 20; i++) {
        struct hook_progress least = p, most = p;
        msec wait = (msec)1000 << (i < 14 ? i : 14);
        wait = wait < HOOK_WAIT_MAX_MS ? wait : HOOK_WAIT_MAX_MS;
        hook_failed(&least, T0, 500, 0, "", 0);
        hook_failed(&most, T0, 500, 0, "", (uint32_t)(wait / 2));
        assert_int_equal(least.due, T0 + wait - wait / 4);
        assert_int_equal(most.due, T0 + wait - wait / 4 + wait / 2);
        assert_int_equal(hook_due(&least, T0), least.due);
        hook_failed(&p, T0, 500, 0, "", 0);
        assert_int_equal(p.seq, 7);
    }
    assert_string_equal(p.why, "the receiver answered with status 500");
}

static void it_is_parked_a_day_after_the_first_failure_and_not_before(void **unused)
{
    struct hook_progress p = {.seq = 7};
    struct hook_progress early;

    (void)unused;
    hook_failed(&p, T0, 0, 0, "", 0);
    for (int i = 0; i < 13; i++) {
        hook_failed(&p, T0 + 1, 0, 0, "refused", 0);
    }
    early = p;
    hook_failed(&early, T0 + HOOK_PARK_MS - 1, 0, 0, "refused", 1u << 30);
    assert_false(early.parked);
    assert_int_equal(early.due, T0 + HOOK_PARK_MS); /* the last try is at the end of the day */
    hook_failed(&p, T0 + HOOK_PARK_MS, 0, 0, "refused", 0);
    assert_true(p.parked);
    assert_true(hook_due(&p, T0 + 10 * (msec)HOOK_PARK_MS) == MSEC_NEVER);
    assert_string_equal(p.why, "refused");
}

static void a_receiver_that_is_gone_parks_it_at_once(void **unused)
{
    struct hook_progress p = {.seq = 7};

    (void)unused;
    hook_failed(&p, T0, HTTP_GONE, 0, "", 0);
    assert_true(p.parked);
}

static void a_receiver_may_ask_for_a_longer_wait_and_not_for_more_than_four_hours(void **unused)
{
    struct hook_progress p = {.seq = 7};
    struct hook_progress long_;

    (void)unused;
    long_ = p;
    hook_failed(&p, T0, 429, 60000, "", 0);
    assert_int_equal(p.due, T0 + 60000);
    hook_failed(&long_, T0, 503, (uint64_t)HOOK_WAIT_MAX_MS + 1, "", 0);
    assert_int_equal(long_.due, T0 + HOOK_WAIT_MAX_MS);
}

static void what_was_taken_begins_the_next_event_without_a_failure(void **unused)
{
    struct hook_progress p = {.seq = 7};

    (void)unused;
    hook_failed(&p, T0, 500, 0, "", 0);
    hook_taken(&p, 8);
    assert_int_equal(hook_due(&p, T0), 0);
    assert_int_equal(p.seq, 8);
    assert_string_equal(p.why, "");
    hook_failed(&p, T0 + HOOK_PARK_MS, 500, 0, "", 0); /* a day of its own */
    assert_false(p.parked);
}

static void resend_goes_on_where_it_failed_or_from_a_number(void **unused)
{
    struct hook_progress p = {.seq = 7};

    (void)unused;
    hook_failed(&p, T0, HTTP_GONE, 0, "", 0);
    hook_resend(&p, 0);
    assert_false(p.parked);
    assert_int_equal(p.seq, 7);
    assert_int_equal(hook_due(&p, T0), 0);
    hook_resend(&p, 1);
    assert_int_equal(p.seq, 0);
}

static void a_clock_that_was_set_back_makes_nobody_wait_longer(void **unused)
{
    struct hook_progress p = {.seq = 7};

    (void)unused;
    hook_failed(&p, T0 + HOOK_PARK_MS, 500, 0, "", 0);
    assert_int_equal(hook_due(&p, T0), T0 + HOOK_WAIT_MAX_MS + HOOK_WAIT_MAX_MS / 4);
    hook_failed(&p, T0, 500, 0, "", 0);
    assert_int_equal(p.failed, T0);
}

/* ---- signatures ---- */

static struct buf signed_with(const char *text, const char *body)
{
    struct sign_secrets secrets;
    struct buf out;

    buf_init(&out, 512);
    assert_int_equal(sign_read(str_from(text), &secrets, NULL), BT_OK);
    assert_int_equal(sign_put(&secrets, STR_LIT("msg_p5jXN8AQM9LWM0D4loKWxJek"), 1614265330,
                              str_from(body), &out, NULL),
                     BT_OK);
    return out;
}

static void the_signature_is_that_of_the_specification(void **unused)
{
    struct buf out =
        signed_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", "{\"test\": 2432232314}");

    (void)unused;
    assert_string_equal(buf_cstr(&out), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    buf_done(&out);
}

static void two_secrets_sign_both(void **unused)
{
    struct buf out = signed_with("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
                                 "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
                                 "{\"test\": 2432232314}");

    (void)unused;
    assert_int_equal(out.len, 2 * 47 + 1);
    assert_string_equal(buf_cstr(&out) + 48, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    buf_done(&out);
}

static void reads(size_t bytes, enum bt_code expected)
{
    static const char zeros[SIGN_SECRET_MAX + 1];
    struct sign_secrets secrets;
    struct buf text;

    buf_init(&text, 512);
    buf_add_cstr(&text, "whsec_");
    json_put_base64(&text, (struct str){zeros, bytes});
    assert_int_equal(sign_read(buf_str(&text), &secrets, NULL), expected);
    buf_done(&text);
}

static void a_secret_has_24_to_64_bytes_and_there_are_two_at_most(void **unused)
{
    static const char one[] = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    struct sign_secrets secrets;
    struct bt_error err;
    char three[200];

    (void)unused;
    reads(SIGN_SECRET_MIN - 1, BT_INVALID);
    reads(SIGN_SECRET_MIN, BT_OK);
    reads(SIGN_SECRET_MAX, BT_OK);
    reads(SIGN_SECRET_MAX + 1, BT_INVALID);
    (void)snprintf(three, sizeof three, "%s %s %s", one, one, one);
    assert_int_equal(sign_read(str_from(three), &secrets, &err), BT_INVALID);
    assert_int_equal(sign_read(STR_LIT("  "), &secrets, &err), BT_INVALID);
    assert_int_equal(sign_read(STR_LIT("hunter2hunter2"), &secrets, &err), BT_INVALID);
    assert_null(strstr(err.msg, "hunter2"));
}

/* ---- bodies ---- */

static const char *body(enum hook_form form, const char *event, struct buf *out)
{
    struct buf doc;

    buf_init(&doc, 65536);
    buf_init(out, 65536);
    assert_int_equal(json_to_doc(str_from(event), NULL, &doc, NULL), BT_OK);
    hook_put_body(form, doc_from_buf(&doc), "http://h:1", out);
    buf_done(&doc);
    return buf_cstr(out);
}

static void an_event_is_a_cloudevent_or_a_text(void **unused)
{
    static const char event[] = "{\"seq\":18,\"eventId\":\"E\",\"type\":\"plan_step_waiting\","
                                "\"planId\":\"P\",\"timestamp\":\"2026-11-21T03:53:00.123Z\","
                                "\"stepId\":\"pay\",\"reviewId\":\"P/pay#1\",\"prompt\":\"a\\nb\"}";
    struct buf out;

    (void)unused;
    assert_non_null(strstr(body(HOOK_CLOUDEVENTS, event, &out),
                           "{\"specversion\":\"1.0\",\"id\":\"E\",\"source\":\"http://h:1\","
                           "\"type\":\"baton.plan_step_waiting\","
                           "\"time\":\"2026-11-21T03:53:00.123Z\",\"subject\":\"P\","
                           "\"sequence\":\"00000000000000000018\","
                           "\"reviewurl\":\"http://h:1/#/reviews/P%2Fpay%231\","
                           "\"datacontenttype\":\"application/json\",\"data\":{\"seq\":18,"));
    buf_done(&out);
    assert_string_equal(body(HOOK_CHAT, event, &out),
                        "{\"text\":\"plan step waiting pay\\nplanId: P\\nprompt: a\\nb\\ndecide: "
                        "http://h:1/#/reviews/P%2Fpay%231\"}");
    buf_done(&out);
    assert_string_equal(body(HOOK_MAIL, "{\"type\":\"agent_up\"}", &out),
                        "{\"subject\":\"Baton: agent up\",\"text\":\"agent up\"}");
    buf_done(&out);
}

/* ---- files ---- */

static void specs_are_checked(void **unused)
{
    static const char *const bad[] = {
        "[]",
        "{\"url\":\"ftp://x\",\"secretEnv\":\"S\"}",
        "{\"url\":7,\"secretEnv\":\"S\"}",
        "{\"url\":\"http://x\"}",
        "{\"url\":\"http://x\",\"secretEnv\":\"S\",\"secretFile\":\"/s\"}",
        "{\"url\":\"http://x\",\"secretEnv\":\"S\",\"topics\":[\"\"]}",
        "{\"url\":\"http://x\",\"secretEnv\":\"S\",\"topics\":7}",
        "{\"url\":\"http://x\",\"secretEnv\":\"S\",\"body\":\"xml\"}",
        "{\"url\":\"http://x\\u0000y\",\"secretEnv\":\"S\"}"};
    static struct hook_spec spec;

    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(hook_spec_parse(str_from(bad[i]), &spec, NULL), BT_INVALID);
    }
    assert_int_equal(
        hook_spec_parse(STR_LIT("{\"url\":\"https://x\",\"secretEnv\":\"S\",\"topics\":"
                                "[\"plan_step_*\",\"agent_up\"],\"body\":\"mail\"}"),
                        &spec, NULL),
        BT_OK);
    assert_int_equal(spec.form, HOOK_MAIL);
    assert_true(hook_wants(&spec, STR_LIT("plan_step_completed")));
    assert_true(hook_wants(&spec, STR_LIT("agent_up")));
    assert_false(hook_wants(&spec, STR_LIT("plan_completed")));
}

static void how_far_it_is_comes_back_and_belongs_to_one_webhook(void **unused)
{
    char dir[] = "/tmp/baton-hook-XXXXXX";
    char path[128];
    static struct hook_spec spec = {.made = 5, .from = 10};
    struct hook_state state = {
        .at = {.seq = 99, .tries = 2, .failed = T0, .due = T0 + 5, .parked = true, .why = "\"x\""},
        .resent = 3,
        .tested = 4,
        .test_status = 204};
    struct hook_state back;

    (void)unused;
    assert_non_null(mkdtemp(dir));
    hook_state_read(dir, "ops", 0, &spec, &back);
    assert_int_equal(back.at.seq, 9);
    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR, dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(hook_state_write(dir, "ops", 0, &spec, &state, NULL), BT_OK);
    hook_state_read(dir, "ops", 0, &spec, &back);
    assert_int_equal(back.at.seq, 99);
    assert_int_equal(back.at.due, T0 + 5);
    assert_true(back.at.parked);
    assert_string_equal(back.at.why, "\"x\"");
    assert_int_equal(back.tested, 4);
    spec.made = 6; /* removed, and another one made of the same name */
    hook_state_read(dir, "ops", 0, &spec, &back);
    assert_int_equal(back.at.seq, 9);
    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR "/ops.at", dir);
    assert_int_equal(truncate(path, 10), 0); /* cut: events come again, and none is left out */
    spec.made = 5;
    hook_state_read(dir, "ops", 0, &spec, &back);
    assert_int_equal(back.at.seq, 9);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR, dir);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void a_secret_that_others_may_read_is_refused(void **unused)
{
    char path[] = "/tmp/baton-secret-XXXXXX";
    static struct hook_spec spec;
    char text[SIGN_TEXT_MAX];
    int fd;

    (void)unused;
    fd = mkstemp(path);
    assert_int_equal(write(fd, "whsec_x", 7), 7);
    (void)snprintf(spec.secret_file, sizeof spec.secret_file, "%s", path);
    assert_int_equal(hook_secret_read(&spec, text, sizeof text, NULL), BT_OK);
    assert_string_equal(text, "whsec_x");
    assert_int_equal(fchmod(fd, 0640), 0);
    assert_int_equal(hook_secret_read(&spec, text, sizeof text, NULL), BT_UNAUTHORIZED);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(hook_secret_read(&spec, text, sizeof text, NULL), BT_NOT_FOUND);
}

/* ---- addresses ---- */

static bool allows(const char *listed, const char *address)
{
    struct private_list list = {.n = 0};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    assert_int_equal(private_read(str_from(listed), &list, NULL), BT_OK);
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
        return private_allows(&list, (struct sockaddr *)&v4);
    }
    assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
    return private_allows(&list, (struct sockaddr *)&v6);
}

static void private_addresses_are_closed_unless_they_are_listed(void **unused)
{
    static const char *const closed[] = {"127.0.0.1",
                                         "127.255.255.255",
                                         "10.0.0.0",
                                         "10.255.255.255",
                                         "172.16.0.1",
                                         "172.31.255.255",
                                         "192.168.0.1",
                                         "169.254.169.254",
                                         "0.0.0.0",
                                         "100.64.0.1",
                                         "224.0.0.1",
                                         "255.255.255.255",
                                         "::1",
                                         "::",
                                         "::ffff:127.0.0.1",
                                         "::ffff:10.0.0.1",
                                         "fe80::1",
                                         "fc00::1",
                                         "fdff::1",
                                         "ff02::1",
                                         "::127.0.0.1",
                                         "64:ff9b::7f00:1",
                                         "2002:7f00:1::"};
    static const char *const open[] = {
        "8.8.8.8",         "9.255.255.255",   "11.0.0.0",  "172.15.255.255", "172.32.0.0",
        "192.167.255.255", "126.255.255.255", "128.0.0.0", "2606:4700::1",   "::ffff:8.8.8.8"};

    (void)unused;
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) {
        assert_false(allows("", closed[i]));
    }
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        assert_true(allows("", open[i]));
    }
    assert_true(allows("127.0.0.1", "127.0.0.1"));
    assert_true(allows("127.0.0.1", "::ffff:127.0.0.1"));
    assert_false(allows("127.0.0.1", "127.0.0.2"));
    assert_true(allows("10.1.0.0/16, fd00::/8", "10.1.255.255"));
    assert_false(allows("10.1.0.0/16, fd00::/8", "10.2.0.0"));
    assert_true(allows("10.1.0.0/16, fd00::/8", "fd01::1"));
}

static void a_list_of_addresses_is_checked(void **unused)
{
    static const char *const bad[] = {"x",           "10.0.0.0/33", "::1/129", "10.0.0.0/",
                                      "10.0.0.0/-1", ",",           "10.0.0",  "1.2.3.4/8x"};
    char many[20 * (PRIVATE_LISTED_MAX + 1)] = "";
    struct private_list list = {.n = 0};

    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(private_read(str_from(bad[i]), &list, NULL), BT_INVALID);
    }
    list.n = 0;
    for (int i = 0; i < PRIVATE_LISTED_MAX; i++) {
        (void)snprintf(many + strlen(many), 20, "%s10.0.0.%d", i > 0 ? "," : "", i);
    }
    assert_int_equal(private_read(str_from(many), &list, NULL), BT_OK);
    assert_int_equal(private_read(STR_LIT("10.0.0.99"), &list, NULL), BT_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_grow_to_four_hours_with_a_quarter_of_jitter),
        cmocka_unit_test(it_is_parked_a_day_after_the_first_failure_and_not_before),
        cmocka_unit_test(a_receiver_that_is_gone_parks_it_at_once),
        cmocka_unit_test(a_receiver_may_ask_for_a_longer_wait_and_not_for_more_than_four_hours),
        cmocka_unit_test(what_was_taken_begins_the_next_event_without_a_failure),
        cmocka_unit_test(resend_goes_on_where_it_failed_or_from_a_number),
        cmocka_unit_test(a_clock_that_was_set_back_makes_nobody_wait_longer),
        cmocka_unit_test(the_signature_is_that_of_the_specification),
        cmocka_unit_test(two_secrets_sign_both),
        cmocka_unit_test(a_secret_has_24_to_64_bytes_and_there_are_two_at_most),
        cmocka_unit_test(an_event_is_a_cloudevent_or_a_text),
        cmocka_unit_test(specs_are_checked),
        cmocka_unit_test(how_far_it_is_comes_back_and_belongs_to_one_webhook),
        cmocka_unit_test(a_secret_that_others_may_read_is_refused),
        cmocka_unit_test(private_addresses_are_closed_unless_they_are_listed),
        cmocka_unit_test(a_list_of_addresses_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
