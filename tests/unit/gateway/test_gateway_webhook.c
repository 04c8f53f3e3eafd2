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

static void a_text_has_what_a_person_wants_to_know(void **unused)
{
    struct buf out;

    (void)unused;
    assert_string_equal(
        body(HOOK_CHAT,
             "{\"type\":\"x\",\"result\":\"9\",\"error\":\"8\",\"comment\":\"7\",\"reason\":\"6\","
             "\"prompt\":"
             "\"5\",\"kind\":\"4\",\"outcome\":\"3\",\"status\":\"2\",\"planId\":\"1\",\"other\":"
             "\"0\","
             "\"reviewId\":\"r\"}",
             &out),
        "{\"text\":\"x\\nplanId: 1\\nstatus: 2\\noutcome: 3\\nkind: 4\\nprompt: 5\\nreason: 6\\n"
        "comment: 7\\nerror: 8\\nresult: 9\"}"); /* nobody is asked: no link */
    buf_done(&out);
    assert_non_null(
        strstr(body(HOOK_CHAT, "{\"type\":\"plan_paused\",\"reviewId\":\"aZ09-_.\"}", &out),
               "decide: http://h:1/#/reviews/aZ09-_.\"}"));
    buf_done(&out);
    assert_non_null(strstr(body(HOOK_CLOUDEVENTS, "{\"type\":\"x\",\"sessionId\":\"S\"}", &out),
                           "\"subject\":\"S\",\"datacontenttype\""));
    buf_done(&out);
}

static void the_type_of_a_body_is_that_of_its_form(void **unused)
{
    (void)unused;
    assert_string_equal(hook_content_type(HOOK_CLOUDEVENTS),
                        "Content-Type: application/cloudevents+json; charset=utf-8");
    assert_string_equal(hook_content_type(HOOK_A2A), "Content-Type: application/a2a+json");
    assert_string_equal(hook_content_type(HOOK_A2A_OLD), "Content-Type: application/json");
    assert_string_equal(hook_content_type(HOOK_CHAT), "Content-Type: application/json");
    assert_string_equal(hook_content_type(HOOK_MAIL), "Content-Type: application/json");
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

/* {"url": "http://x", "secretEnv": "S", NAME: a text of n letters}, or a list of n of it. */
static enum bt_code parsed(const char *name, const char *begin, size_t n, const char *end,
                           struct hook_spec *ret)
{
    static char json[16384];
    const int at =
        snprintf(json, sizeof json, "{%s\"%s\":%s",
                 strcmp(name, "url") == 0          ? "\"secretEnv\":\"S\","
                 : strncmp(name, "secret", 6) == 0 ? "\"url\":\"http://x\","
                                                   : "\"url\":\"http://x\",\"secretEnv\":"
                                                     "\"S\",",
                 name, begin);

    memset(json + at, 'x', n);
    (void)snprintf(json + at + n, sizeof json - (size_t)at - n, "%s}", end);
    return hook_spec_parse(str_from(json), ret, NULL);
}

static void each_text_of_a_spec_has_its_length(void **unused)
{
    static const struct {
        const char *name, *begin, *end;
        size_t max;
    } all[] = {{"url", "\"http://", "\"", HOOK_URL_MAX - 7},
               {"topics", "[\"", "\"]", HOOK_TOPIC_MAX},
               {"secretFile", "\"", "\"", HOOK_PATH_MAX},
               {"secretEnv", "\"", "\"", HOOK_ENV_MAX},
               {"body", "\"a2a-1.0\",\"planId\":\"", "\"", 64},
               {"body", "\"a2a-1.0\",\"planId\":\"p\",\"contextId\":\"", "\"", 64},
               {"body", "\"a2a-1.0\",\"planId\":\"p\",\"configId\":\"", "\"", 64},
               {"body", "\"a2a-0.3\",\"planId\":\"p\",\"scheme\":\"", "\"", 64},
               {"body", "\"a2a-0.3\",\"planId\":\"p\",\"token\":\"", "\"", PUSH_TEXT_MAX},
               {"body", "\"a2a-0.3\",\"planId\":\"p\",\"credentials\":\"", "\"", PUSH_TEXT_MAX}};
    static struct hook_spec spec;

    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(parsed(all[i].name, all[i].begin, all[i].max, all[i].end, &spec), BT_OK);
        assert_int_equal(parsed(all[i].name, all[i].begin, all[i].max + 1, all[i].end, &spec),
                         BT_INVALID);
    }
    assert_int_equal(parsed("body", "\"a2a-1.0", 0, "\"", &spec), BT_INVALID); /* of no plan */
    assert_int_equal(parsed("planId", "\"", 1, "\"", &spec), BT_INVALID);      /* is no push */
    assert_int_equal(parsed("body", "\"a-body-of-19-bytes", 0, "\"", &spec), BT_INVALID);
}

static void a_spec_has_sixteen_topics(void **unused)
{
    static struct hook_spec spec;
    char list[256] = "[";

    (void)unused;
    for (int i = 0; i < HOOK_TOPICS_MAX; i++) {
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s\"t%d\"",
                       i > 0 ? "," : "", i);
    }
    assert_int_equal(parsed("topics", list, 0, "]", &spec), BT_OK);
    assert_int_equal(spec.topics_n, HOOK_TOPICS_MAX);
    assert_true(hook_wants(&spec, STR_LIT("t15")));
    assert_int_equal(parsed("topics", list, 0, ",\"more\"]", &spec), BT_INVALID);
    assert_int_equal(parsed("topics", "[", 0, "]", &spec), BT_OK);
    assert_true(hook_wants(&spec, STR_LIT("anything")));
}

static void a_spec_has_every_member(void **unused)
{
    static struct hook_spec spec;

    (void)unused;
    assert_int_equal(
        hook_spec_parse(
            STR_LIT(
                "{\"url\":\"http://x\",\"body\":\"a2a-0.3\",\"planId\":\"p\",\"contextId\":\"c\","
                "\"configId\":\"i\",\"token\":\"t\",\"scheme\":\"s\",\"credentials\":\"k\","
                "\"made\":1,"
                "\"fromSeq\":2,\"test\":3,\"resend\":{\"order\":4,\"fromSeq\":5}}"),
            &spec, NULL),
        BT_OK);
    assert_true(hook_is_push(&spec));
    assert_int_equal(spec.form, HOOK_A2A_OLD);
    assert_string_equal(spec.plan, "p");
    assert_string_equal(spec.context, "c");
    assert_string_equal(spec.config, "i");
    assert_string_equal(spec.token, "t");
    assert_string_equal(spec.scheme, "s");
    assert_string_equal(spec.credentials, "k");
    assert_int_equal(spec.made, 1);
    assert_int_equal(spec.from, 2);
    assert_int_equal(spec.test, 3);
    assert_int_equal(spec.resend, 4);
    assert_int_equal(spec.resend_from, 5);
    assert_int_equal(parsed("made", "\"x\"", 0, "", &spec), BT_OK); /* what is no number is none */
    assert_int_equal(spec.made, 0);
    assert_false(hook_is_push(&spec));
}

static void every_part_of_how_far_it_is_comes_back(void **unused)
{
    char dir[] = "/tmp/baton-hook-XXXXXX";
    char path[128];
    static const struct hook_spec spec = {.made = 5};
    static const struct hook_state state = {.at = {.seq = 9,
                                                   .id = "0190F3C2-7A1B-7C3D-9E4F-0123456789ab",
                                                   .tries = 2,
                                                   .failed = 3,
                                                   .due = 4,
                                                   .why = "w"},
                                            .resent = 6,
                                            .tested = 7,
                                            .test_status = 8,
                                            .test_why = "tw"};
    struct hook_state back;

    (void)unused;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR, dir);
    assert_int_equal(mkdir(path, 0700), 0);
    for (uint32_t shard = 0; shard < 2; shard++) {
        assert_false(hook_state_read(dir, "ops", shard, &spec, &back));
        assert_int_equal(hook_state_write(dir, "ops", shard, &spec, &state, NULL), BT_OK);
        assert_true(hook_state_read(dir, "ops", shard, &spec, &back));
        assert_int_equal(back.at.seq, 9);
        assert_string_equal(back.at.id, state.at.id);
        assert_int_equal(back.at.tries, 2);
        assert_int_equal(back.at.failed, 3);
        assert_int_equal(back.at.due, 4);
        assert_false(back.at.parked);
        assert_string_equal(back.at.why, "w");
        assert_int_equal(back.resent, 6);
        assert_int_equal(back.tested, 7);
        assert_int_equal(back.test_status, 8);
        assert_string_equal(back.test_why, "tw");
    }
    hook_state_remove(dir, "ops", 1);
    assert_false(hook_state_read(dir, "ops", 1, &spec, &back));
    assert_true(hook_state_read(dir, "ops", 0, &spec, &back));
    assert_false(hook_remove(dir, "ops")); /* there was no NAME.json; NAME.at goes all the same */
    assert_false(hook_state_read(dir, "ops", 0, &spec, &back));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void a_secret_of_a_variable_or_a_file_fits_or_is_refused(void **unused)
{
    static struct hook_spec spec = {.secret_env = "BATON_TEST_SECRET"};
    char path[] = "/tmp/baton-secret-XXXXXX";
    char text[8];
    struct bt_error err;
    int fd;

    (void)unused;
    assert_int_equal(unsetenv("BATON_TEST_SECRET"), 0);
    assert_int_equal(hook_secret_read(&spec, text, sizeof text, &err), BT_NOT_FOUND);
    assert_int_equal(setenv("BATON_TEST_SECRET", "1234567", 1), 0);
    assert_int_equal(hook_secret_read(&spec, text, sizeof text, &err), BT_OK);
    assert_string_equal(text, "1234567");
    assert_int_equal(setenv("BATON_TEST_SECRET", "12345678", 1), 0);
    assert_int_equal(hook_secret_read(&spec, text, sizeof text, &err), BT_NOT_FOUND);
    assert_string_equal(text, "");
    spec.secret_env[0] = 0;
    fd = mkstemp(path);
    (void)snprintf(spec.secret_file, sizeof spec.secret_file, "%s", path);
    assert_int_equal(write(fd, "1234567", 7), 7);
    assert_int_equal(hook_secret_read(&spec, text, sizeof text, &err), BT_OK);
    assert_string_equal(text, "1234567");
    assert_int_equal(write(fd, "8", 1), 1);
    assert_int_equal(hook_secret_read(&spec, text, sizeof text, &err), BT_INVALID);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(spec.secret_file, sizeof spec.secret_file, "/tmp");
    assert_int_equal(hook_secret_read(&spec, text, sizeof text, &err), BT_IO);
}

static void the_name_of_a_push_is_made_of_its_plan_and_its_configuration(void **unused)
{
    char name[HOOK_NAME_MAX + 1];

    (void)unused;
    hook_push_name("0190F3C2-AZ", "", name);
    assert_string_equal(name, "push-0190f3c2-az-cbf29ce484222325"); /* FNV-1a of nothing */
    hook_push_name("p", "a", name);
    assert_string_equal(name, "push-p-af63dc4c8601ec8c");
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
        cmocka_unit_test(a_text_has_what_a_person_wants_to_know),
        cmocka_unit_test(the_type_of_a_body_is_that_of_its_form),
        cmocka_unit_test(specs_are_checked),
        cmocka_unit_test(each_text_of_a_spec_has_its_length),
        cmocka_unit_test(a_spec_has_sixteen_topics),
        cmocka_unit_test(a_spec_has_every_member),
        cmocka_unit_test(every_part_of_how_far_it_is_comes_back),
        cmocka_unit_test(a_secret_of_a_variable_or_a_file_fits_or_is_refused),
        cmocka_unit_test(the_name_of_a_push_is_made_of_its_plan_and_its_configuration),
        cmocka_unit_test(how_far_it_is_comes_back_and_belongs_to_one_webhook),
        cmocka_unit_test(a_secret_that_others_may_read_is_refused),
        cmocka_unit_test(private_addresses_are_closed_unless_they_are_listed),
        cmocka_unit_test(a_list_of_addresses_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
