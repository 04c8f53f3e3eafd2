/* What agents say, read: verdicts, failures without a class, results in other forms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/wire/mp_validate.h"
#include "supervisor/dispatch/classify.h"
#include "supervisor/dispatch/result_form.h"
#include "supervisor/dispatch/verdict.h"
#include "supervisor/dispatch/verify.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

/* ---- verdicts ---- */

struct heard {
    enum verdict v;
    char text[VERDICT_TEXT_MAX + 1];
    char missing[8192];
};

/* text NULL: none; json NULL: no data. */
static struct heard hear(const char *text, const char *json)
{
    struct msg_result r = {.text = str_from(text)};
    struct heard h;
    struct buf data;
    struct buf said;
    struct buf missing;
    struct buf readable;

    buf_init(&data, 65536);
    buf_init(&said, 65536);
    buf_init(&missing, 65536);
    buf_init(&readable, 65536);
    if (json != NULL) {
        assert_int_equal(json_to_doc(str_from(json), NULL, &data, NULL), BT_OK);
        r.data = doc_from_buf(&data);
    }
    h.v = verdict_read(&r, &said, &missing);
    assert_true(said.len <= VERDICT_TEXT_MAX);
    assert_true(h.v != VERDICT_NO || said.len > 0);
    (void)snprintf(h.text, sizeof h.text, "%s", buf_cstr(&said));
    if (missing.len > 0) {
        assert_int_equal(doc_to_json(doc_from_buf(&missing), false, &readable, NULL), BT_OK);
    }
    (void)snprintf(h.missing, sizeof h.missing, "%s", buf_cstr(&readable));
    buf_done(&data);
    buf_done(&said);
    buf_done(&missing);
    buf_done(&readable);
    return h;
}

static void first_word_of_a_text_is_the_verdict_in_any_spelling(void **state)
{
    static const char *const yes[] = {"yes",
                                      "Yes.",
                                      "YES",
                                      " pass ",
                                      "Pass: all good",
                                      "ok",
                                      "OK",
                                      "okay",
                                      "true",
                                      "True",
                                      "sufficient",
                                      "Sufficient, I think",
                                      "**Yes**",
                                      "\"yes\"",
                                      "(ok)",
                                      "passed",
                                      "_yes_",
                                      "yes\nbecause",
                                      "```\nyes\n```",
                                      "\"yes\" it is",
                                      "ok!"};
    static const char *const no[] = {"no",        "No, the total is missing",
                                     "not ok",    "insufficient",
                                     "yesterday", "okra",
                                     "passable",  "yes-but-no",
                                     "ok?",       "ok_ish",
                                     "true1",     "fail",
                                     "false",     "0",
                                     "1",         "yes/no",
                                     "yesé",      "nope: yes",
                                     "it is ok",  "\xE2\x9C\x93 yes",
                                     "-",         "{\"a\":",
                                     "[true]"};

    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        if (hear(yes[i], NULL).v != VERDICT_YES) {
            fail_msg("'%s' was no yes", yes[i]);
        }
    }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        struct heard h = hear(no[i], NULL);
        if (h.v != VERDICT_NO) {
            fail_msg("'%s' was no no", no[i]);
        }
        assert_string_equal(h.text, no[i]);
    }
}

/* ---- the schema of a result ---- */

/* Why a result without any member does not fit a schema that requires these. */
static void expect_verified(const char *required, const char *want)
{
    struct msg_result r = {.data = {NULL, 0}};
    struct buf schema;
    struct buf data;
    struct buf why;
    char text[256];

    buf_init(&schema, 65536);
    buf_init(&data, 65536);
    buf_init(&why, 65536);
    (void)snprintf(text, sizeof text, "{\"type\":\"object\",\"required\":[%s]}", required);
    assert_int_equal(json_to_doc(str_from(text), NULL, &schema, NULL), BT_OK);
    assert_int_equal(json_to_doc(STR_LIT("{}"), NULL, &data, NULL), BT_OK);
    r.data = doc_from_buf(&data);
    assert_int_equal(verify_result(doc_from_buf(&schema), &r, &why), want[0] == 0);
    assert_string_equal(buf_cstr(&why), want);
    buf_done(&why);
    buf_done(&data);
    buf_done(&schema);
}

static void three_reasons_are_told_and_that_there_are_more(void **state)
{
    (void)state;
    expect_verified("", "");
    expect_verified("\"a\"", "verify: /a is missing");
    expect_verified("\"a\",\"b\",\"c\"", "verify: /a is missing; /b is missing; /c is missing");
    expect_verified("\"a\",\"b\",\"c\",\"d\"",
                    "verify: /a is missing; /b is missing; /c is missing; and more");
}

static void members_of_data_are_the_verdict_and_one_no_is_a_no(void **state)
{
    static const struct {
        const char *json;
        enum verdict v;
        const char *text;
    } all[] = {
        {"{\"passed\":true}", VERDICT_YES, ""},
        {"{\"sufficient\":true,\"reason\":\"all there\"}", VERDICT_YES, "all there"},
        {"{\"ok\":true}", VERDICT_YES, ""},
        {"{\"passed\":\"yes\"}", VERDICT_YES, ""},
        {"true", VERDICT_YES, ""},
        {"\"Yes\"", VERDICT_YES, "Yes"},
        {"{\"passed\":false,\"diagnosis\":\"too short\"}", VERDICT_NO, "too short"},
        {"{\"passed\":false,\"reason\":\"r\"}", VERDICT_NO, "r"},
        {"{\"ok\":false,\"feedback\":\"f\"}", VERDICT_NO, "f"},
        {"{\"ok\":false,\"diagnosis\":\"d\",\"feedback\":\"f\"}", VERDICT_NO, "d"},
        {"{\"ok\":false,\"diagnosis\":\"  \",\"feedback\":\"f\"}", VERDICT_NO, "f"},
        {"{\"passed\":true,\"ok\":false}", VERDICT_NO, "the answer was no, without a reason"},
        {"{\"passed\":\"no\"}", VERDICT_NO, "the answer was no, without a reason"},
        {"{\"passed\":false,\"missing\":[\"a\",\" b \"]}", VERDICT_NO, "missing: a, b"},
        {"false", VERDICT_NO, "the answer was no, without a reason"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct heard h = hear(NULL, all[i].json);
        if (h.v != all[i].v || strcmp(h.text, all[i].text) != 0) {
            fail_msg("%s was %d '%s'", all[i].json, (int)h.v, h.text);
        }
        /* The same as the text of an answer, bare and between a model's fences. */
        char fenced[512];
        h = hear(all[i].json, NULL);
        assert_int_equal(h.v, all[i].v);
        (void)snprintf(fenced, sizeof fenced, "```json\n%s\n```\n", all[i].json);
        h = hear(fenced, NULL);
        if (all[i].json[0] == '{') {
            assert_int_equal(h.v, all[i].v);
            assert_string_equal(h.text, all[i].text);
        }
    }
    assert_string_equal(hear(NULL, "{\"ok\":false,\"missing\":[\"a\",1,\"\",\"b\"]}").missing,
                        "[\"a\",\"b\"]");
    assert_string_equal(hear(NULL, "{\"ok\":true,\"missing\":[\"a\"]}").missing, "");
    assert_string_equal(hear("see above", "{\"passed\":false}").text, "see above");
}

static void what_says_neither_yes_nor_no_is_no_verdict(void **state)
{
    static const char *const all[] = {"{}",
                                      "{\"passed\":1}",
                                      "{\"passed\":null}",
                                      "[]",
                                      "[true]",
                                      "null",
                                      "7",
                                      "{\"verdict\":true}",
                                      "\"\"",
                                      "{\"passed\":{\"passed\":true}}"};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (hear(NULL, all[i]).v != VERDICT_UNREADABLE) {
            fail_msg("%s was taken for a verdict", all[i]);
        }
    }
    assert_int_equal(hear(NULL, NULL).v, VERDICT_UNREADABLE);
    assert_int_equal(hear("", NULL).v, VERDICT_UNREADABLE);
    assert_int_equal(hear(" \n\t ", NULL).v, VERDICT_UNREADABLE);
    assert_int_equal(hear("Yes", "{\"score\":3}").v, VERDICT_YES); /* then the text speaks */
    assert_non_null(strstr(hear(NULL, "{}").text, "expected"));
}

static void hostile_answers_are_bounded(void **state)
{
    struct rng rng = rng_seeded("verdict");
    static const char alphabet[] = "{}[]\":,yesnoktrue \n`*\\u00e9passed0";
    char *big = malloc(400001);
    struct heard h;

    (void)state;
    assert_non_null(big);
    memset(big, 'n', 400000);
    big[400000] = 0;
    h = hear(big, NULL);
    assert_int_equal(h.v, VERDICT_NO);
    assert_int_equal(strlen(h.text), VERDICT_TEXT_MAX);
    memset(big, '[', 100000);
    big[0] = '{';
    assert_int_equal(hear(big, NULL).v, VERDICT_NO);
    for (int i = 0; i < 3000; i++) {
        uint32_t n = rng_below(&rng, 60);
        for (uint32_t k = 0; k < n; k++) {
            big[k] = alphabet[rng_below(&rng, sizeof alphabet - 1)];
        }
        big[n] = 0;
        (void)hear(big, NULL);
    }
    free(big);
}

/* ---- what is too long ---- */

/* {"ok":false,"missing":[...]} with n texts of len letters. */
static void lists(char *json, size_t room, uint32_t n, int len)
{
    size_t at = (size_t)snprintf(json, room, "{\"ok\":false,\"missing\":[");

    for (uint32_t i = 0; i < n; i++) {
        at += (size_t)snprintf(json + at, room - at, "%s\"%0*u\"", i > 0 ? "," : "", len, i + 1);
    }
    (void)snprintf(json + at, room - at, "]}");
}

static void a_diagnosis_that_is_cut_says_so(void **state)
{
    char json[VERDICT_TEXT_MAX + 64];
    struct heard h;

    (void)state;
    for (int n = VERDICT_TEXT_MAX; n <= VERDICT_TEXT_MAX + 1; n++) {
        const bool cut = n > VERDICT_TEXT_MAX;
        (void)snprintf(json, sizeof json, "{\"passed\":false,\"reason\":\"%0*d\"}", n, 7);
        h = hear(NULL, json);
        assert_int_equal(strlen(h.text), VERDICT_TEXT_MAX);
        assert_string_equal(h.text + VERDICT_TEXT_MAX - 4, cut ? " ..." : "0007");
        (void)snprintf(json, sizeof json, "no%0*d", n - 2, 7);
        h = hear(json, NULL);
        assert_int_equal(strlen(h.text), VERDICT_TEXT_MAX);
        assert_string_equal(h.text + VERDICT_TEXT_MAX - 4, cut ? " ..." : "0007");
    }
}

static void a_list_of_what_is_missing_says_how_many_more_there_are(void **state)
{
    char json[16384];
    struct heard h;

    (void)state;
    lists(json, sizeof json, VERDICT_MISSING_MAX, 2);
    h = hear(NULL, json);
    assert_non_null(strstr(h.missing, "\"15\",\"16\"]"));
    assert_non_null(strstr(h.text, "15, 16"));
    lists(json, sizeof json, VERDICT_MISSING_MAX + 1, 2);
    h = hear(NULL, json);
    assert_non_null(strstr(h.missing, "\"15\",\"and 2 more\"]"));
    assert_non_null(strstr(h.text, "15, and 2 more"));
    lists(json, sizeof json, 200, 3); /* each is counted, however long the list is */
    assert_non_null(strstr(hear(NULL, json).missing, "\"and 185 more\"]"));
    /* each text, and all of them together as the diagnosis */
    lists(json, sizeof json, 1, 200);
    assert_non_null(strstr(hear(NULL, json).missing, "001\"]"));
    lists(json, sizeof json, 1, 201);
    assert_non_null(strstr(hear(NULL, json).missing, "000 ...\"]"));
    lists(json, sizeof json, VERDICT_MISSING_MAX, 150);
    h = hear(NULL, json);
    assert_int_equal(strlen(h.text), VERDICT_TEXT_MAX);
    assert_string_equal(h.text + VERDICT_TEXT_MAX - 4, " ...");
    assert_non_null(strstr(h.missing, "016\"]"));
}

static void a_long_verdict_in_a_text_is_read(void **state)
{
    const int len = 300 * 1024;
    char *json = malloc((size_t)len + 64);

    (void)state;
    assert_non_null(json);
    (void)snprintf(json, (size_t)len + 64, "{\"reason\":\"%0*d\",\"passed\":true}", len, 1);
    assert_int_equal(hear(json, NULL).v, VERDICT_YES);
    free(json);
}

static void why_a_goal_is_out_of_reach_is_cut_with_a_mark(void **state)
{
    char json[VERDICT_TEXT_MAX + 64];
    struct buf data;
    struct buf text;

    (void)state;
    for (int n = VERDICT_TEXT_MAX - 20; n <= VERDICT_TEXT_MAX - 19; n++) {
        buf_init(&data, 65536);
        buf_init(&text, 65536);
        (void)snprintf(json, sizeof json, "{\"impossible\":\"%0*d\"}", n, 7);
        assert_int_equal(json_to_doc(str_from(json), NULL, &data, NULL), BT_OK);
        assert_true(answer_impossible(doc_from_buf(&data), &text));
        assert_int_equal(text.len, VERDICT_TEXT_MAX);
        assert_string_equal(buf_cstr(&text) + VERDICT_TEXT_MAX - 4,
                            n == VERDICT_TEXT_MAX - 20 ? "0007" : " ...");
        buf_done(&data);
        buf_done(&text);
    }
}

/* ---- classes ---- */

static void class_follows_from_the_code_first_then_from_whole_words(void **state)
{
    static const struct {
        const char *code, *message;
        enum err_class cls;
    } all[] = {
        /* M041 */
        {"", "Tool not found: search", CLASS_TOOL_NOT_FOUND},
        {"", "page not found", CLASS_RESOURCE_NOT_FOUND},
        {"", "HTTP 400", CLASS_VALIDATION_ERROR},
        {"", "HTTP 401", CLASS_PERMISSION_DENIED},
        {"", "HTTP 403", CLASS_PERMISSION_DENIED},
        {"", "HTTP 404", CLASS_RESOURCE_NOT_FOUND},
        {"", "HTTP 408", CLASS_TIMEOUT},
        {"", "HTTP 410", CLASS_RESOURCE_NOT_FOUND},
        {"", "HTTP 422", CLASS_VALIDATION_ERROR},
        {"", "HTTP 429", CLASS_RATE_LIMITED},
        {"", "HTTP 502", CLASS_SERVICE_UNAVAILABLE},
        {"", "HTTP 503", CLASS_SERVICE_UNAVAILABLE},
        {"", "HTTP 504", CLASS_TIMEOUT},
        {"", "HTTP 409", CLASS_UNKNOWN},
        {"", "Error 404: no such page", CLASS_RESOURCE_NOT_FOUND},
        {"", "Permission denied", CLASS_PERMISSION_DENIED},
        {"", "got 403 from the server", CLASS_PERMISSION_DENIED},
        {"", "Rate limit exceeded", CLASS_RATE_LIMITED},
        {"", "429 Too Many Requests", CLASS_RATE_LIMITED},
        {"", "Service unavailable", CLASS_SERVICE_UNAVAILABLE},
        {"", "HTTP/1.1 503 Service Unavailable", CLASS_SERVICE_UNAVAILABLE},
        {"", "validation of the input failed", CLASS_VALIDATION_ERROR},
        {"", "Invalid date", CLASS_VALIDATION_ERROR},
        {"", "Timeout after 5 s", CLASS_TIMEOUT},
        {"", "the request timed out", CLASS_TIMEOUT},
        {"", "tool_not_found", CLASS_TOOL_NOT_FOUND},
        /* order */
        {"", "invalid request: rate limit", CLASS_RATE_LIMITED},
        {"", "404: tool not found", CLASS_TOOL_NOT_FOUND},
        /* C31: parts of words and numbers that count something */
        {"", "could not generate the report", CLASS_UNKNOWN},
        {"", "separate the operators", CLASS_UNKNOWN},
        {"", "accurate, moderate, deteriorated", CLASS_UNKNOWN},
        {"", "invalidated cache", CLASS_UNKNOWN},
        {"", "read 404 rows and stopped", CLASS_UNKNOWN},
        {"", "404 rows", CLASS_UNKNOWN},
        {"", "14040 is too much", CLASS_UNKNOWN},
        {"", "build v429x broke", CLASS_UNKNOWN},
        {"", "timeouts", CLASS_UNKNOWN},
        {"", "", CLASS_UNKNOWN},
        {"", "something went wrong", CLASS_UNKNOWN},
        /* codes */
        {"RATE_LIMITED", "permission", CLASS_RATE_LIMITED},
        {"429", "not found", CLASS_RATE_LIMITED},
        {"HTTP_503", "", CLASS_SERVICE_UNAVAILABLE},
        {"TIMEOUT", "invalid", CLASS_TIMEOUT},
        {"INVALID", "timeout", CLASS_VALIDATION_ERROR},
        {"UNAUTHORIZED", "", CLASS_PERMISSION_DENIED},
        {"NOT_FOUND", "tool x not found", CLASS_TOOL_NOT_FOUND},
        {"NOT_FOUND", "gone", CLASS_RESOURCE_NOT_FOUND},
        {"INTERNAL", "Service unavailable", CLASS_SERVICE_UNAVAILABLE},
        {"E42", "Rate limit", CLASS_RATE_LIMITED},
        {"ETIMEDOUT", "", CLASS_TIMEOUT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        enum err_class cls = classify_error(str_from(all[i].code), str_from(all[i].message));
        if (cls != all[i].cls) {
            fail_msg("code '%s' message '%s': %s instead of %s", all[i].code, all[i].message,
                     err_class_name(cls), err_class_name(all[i].cls));
        }
    }
}

/* What is too far from the beginning is not looked at: a class is a guess. */
static void the_beginning_of_a_message_gives_its_class(void **state)
{
    char text[5000];
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 511; i++) {
        text[n++] = 'x';
        text[n++] = ' ';
    }
    (void)snprintf(text + n, sizeof text - n, "timeout");
    assert_int_equal(classify_error(str_from(""), str_from(text)), CLASS_TIMEOUT);
    (void)snprintf(text + n, sizeof text - n, "x timeout");
    assert_int_equal(classify_error(str_from(""), str_from(text)), CLASS_UNKNOWN);
    for (size_t i = 4095; i <= 4096; i++) {
        memset(text, '-', i);
        (void)snprintf(text + i - 6, sizeof text - i, "timeout");
        assert_int_equal(classify_error(str_from(""), str_from(text)),
                         i == 4095 ? CLASS_TIMEOUT : CLASS_UNKNOWN);
    }
}

static void messages_of_any_bytes_and_length_are_classified(void **state)
{
    struct rng rng = rng_seeded("classify");
    char *text = malloc(20000);

    (void)state;
    assert_non_null(text);
    for (int i = 0; i < 200; i++) {
        uint32_t n = rng_below(&rng, 20000);
        for (uint32_t k = 0; k < n; k++) {
            text[k] = (char)rng_below(&rng, i % 2 == 0 ? 256 : 60);
        }
        assert_true(classify_error((struct str){text, n % 33}, (struct str){text, n}) <
                    CLASS_COUNT);
    }
    free(text);
}

/* ---- forms of results ---- */

/* The step.result of this body after normalisation, as JSON of {outcome, result, need, handoff}. */
static void becomes(const char *members, const char *expected)
{
    struct msg_reader r = {0};
    struct msg_step_result m;
    struct bt_error err = {.msg = ""};
    struct buf out;
    char body[2048];

    (void)snprintf(body, sizeof body,
                   "{\"v\":1,\"type\":\"step.result\",\"id\":\"1\",\"ok\":true,\"key\":\"k\","
                   "\"attempt\":1,\"epoch\":1,\"usage\":{\"inputTokens\":3},%s}",
                   members);
    assert_int_equal(msg_reader_init(&r, body, strlen(body), 65536, &err), BT_OK);
    assert_int_equal(result_form_normalise(&r, &err), BT_OK);
    if (msg_read(&r, MSG_step_result, &m, &err) != BT_OK) {
        fail_msg("%s: %s", members, err.msg);
    }
    assert_int_equal(m.usage.input_tokens, 3);
    assert_true(str_is(m.key, "k"));
    buf_init(&out, 65536);
    m.usage = (struct msg_usage){0};
    m.has &= ~(1u << HAS_step_result_usage);
    struct msg_part part = {MSG_step_result, &m};
    assert_int_equal(msg_write(&out, WIRE_JSON, &part, 1, &err), BT_OK);
    if (strcmp(buf_cstr(&out) + strlen("{\"key\":\"k\",\"attempt\":1,\"epoch\":1,"), expected) !=
        0) {
        fail_msg("%s became %s", members, buf_cstr(&out));
    }
    buf_done(&out);
    msg_reader_done(&r);
}

static void results_of_any_form_become_text_or_data(void **state)
{
    (void)state;
    becomes("\"outcome\":\"completed\",\"result\":\"fine\"",
            "\"outcome\":\"completed\",\"result\":{\"text\":\"fine\"}}");
    becomes("\"outcome\":\"completed\",\"result\":[1,2]",
            "\"outcome\":\"completed\",\"result\":{\"data\":[1,2]}}");
    becomes("\"outcome\":\"completed\",\"result\":7",
            "\"outcome\":\"completed\",\"result\":{\"data\":7}}");
    becomes("\"outcome\":\"completed\",\"result\":{\"rows\":3}",
            "\"outcome\":\"completed\",\"result\":{\"data\":{\"rows\":3}}}");
    /* canonical: untouched, whatever else it holds */
    becomes("\"outcome\":\"completed\",\"result\":{\"text\":\"a\",\"command\":\"pause\"}",
            "\"outcome\":\"completed\",\"result\":{\"text\":\"a\"}}");
    becomes("\"outcome\":\"completed\",\"result\":{\"data\":{\"command\":\"handoff\"}}",
            "\"outcome\":\"completed\",\"result\":{\"data\":{\"command\":\"handoff\"}}}");
    becomes("\"outcome\":\"completed\",\"result\":{\"text\":\"a\",\"truncated\":true}",
            "\"outcome\":\"completed\",\"result\":{\"text\":\"a\",\"truncated\":true}}");
    becomes("\"outcome\":\"completed\",\"result\":{}", "\"outcome\":\"completed\",\"result\":{}}");
    becomes("\"outcome\":\"failed\",\"failure\":{\"code\":\"X\",\"message\":\"m\"},\"result\":null",
            "\"outcome\":\"failed\",\"failure\":{\"code\":\"X\",\"message\":\"m\"}}");
}

static void commands_become_what_they_ask_for(void **state)
{
    (void)state;
    becomes("\"outcome\":\"completed\",\"result\":{\"command\":\"pause\",\"prompt\":\"Which?\"}",
            "\"outcome\":\"needs_input\",\"need\":{\"kind\":\"input\",\"prompt\":\"Which?\"}}");
    becomes("\"outcome\":\"completed\",\"result\":{\"command\":\"pause\",\"kind\":\"approval\","
            "\"reason\":\"costly\",\"schema\":{\"type\":\"object\"}}",
            "\"outcome\":\"needs_approval\",\"need\":{\"kind\":\"approval\",\"prompt\":\"costly\","
            "\"schema\":{\"type\":\"object\"}}}");
    becomes("\"outcome\":\"completed\",\"result\":{\"command\":\"handoff\",\"goto\":\"sql\","
            "\"reason\":\"not mine\"}",
            "\"outcome\":\"handoff\",\"handoff\":{\"toAgentId\":\"sql\",\"reason\":\"not mine\"}}");
    becomes("\"outcome\":\"completed\",\"result\":{\"command\":\"resume\",\"value\":\"done\"}",
            "\"outcome\":\"completed\",\"result\":{\"text\":\"done\"}}");
    becomes("\"outcome\":\"completed\",\"result\":{\"command\":\"resume\",\"update\":{\"a\":1}}",
            "\"outcome\":\"completed\",\"result\":{\"data\":{\"a\":1}}}");
    becomes("\"outcome\":\"completed\",\"result\":{\"command\":\"resume\"}",
            "\"outcome\":\"completed\",\"result\":{}}");
    /* not one of ours: data */
    becomes("\"outcome\":\"completed\",\"result\":{\"command\":\"dance\"}",
            "\"outcome\":\"completed\",\"result\":{\"data\":{\"command\":\"dance\"}}}");
}

static void result_inside_the_answer_to_a_query_is_brought_into_form_too(void **state)
{
    static const char body[] =
        "{\"v\":1,\"type\":\"step.state\",\"id\":\"1\",\"ok\":true,\"key\":\"k\",\"state\":"
        "\"done\","
        "\"result\":{\"key\":\"k\",\"attempt\":1,\"epoch\":1,\"outcome\":\"completed\","
        "\"result\":\"fine\"}}";
    struct msg_reader r = {0};
    struct msg_step_state m;

    (void)state;
    assert_int_equal(msg_reader_init(&r, body, strlen(body), 65536, NULL), BT_OK);
    assert_int_equal(result_form_normalise(&r, NULL), BT_OK);
    assert_int_equal(msg_read(&r, MSG_step_state, &m, NULL), BT_OK);
    assert_true(str_is(m.state, "done"));
    assert_true(str_is(m.result.result.text, "fine"));
    msg_reader_done(&r);
}

static void random_bodies_stay_readable_or_as_they_were(void **state)
{
    static const char *const values[] = {"\"t\"",
                                         "7",
                                         "[]",
                                         "{}",
                                         "null",
                                         "true",
                                         "{\"text\":\"a\"}",
                                         "{\"command\":\"pause\"}",
                                         "{\"command\":7}",
                                         "{\"command\":\"handoff\"}",
                                         "{\"command\":\"resume\",\"value\":[1]}"};
    static const char *const keys[] = {"result", "need", "handoff", "outcome", "type", "x"};
    struct rng rng = rng_seeded("result_form");

    (void)state;
    for (int i = 0; i < 3000; i++) {
        char body[1024] = "{\"v\":1";
        struct msg_reader r = {0};
        bool used[6] = {false};
        if (rng_below(&rng, 3) > 0) {
            (void)snprintf(body, sizeof body, "{\"v\":1,\"type\":\"step.result\"");
            used[4] = true;
        }
        for (uint32_t k = rng_below(&rng, 6); k > 0; k--) {
            uint32_t key = rng_below(&rng, 6);
            size_t at = strlen(body);
            if (!used[key]) {
                used[key] = true;
                (void)snprintf(body + at, sizeof body - at, ",\"%s\":%s", keys[key],
                               values[rng_below(&rng, 11)]);
            }
        }
        (void)snprintf(body + strlen(body), 2, "}");
        assert_int_equal(msg_reader_init(&r, body, strlen(body), 65536, NULL), BT_OK);
        assert_int_equal(result_form_normalise(&r, NULL), BT_OK);
        assert_int_equal(mp_validate(r.body, r.len, NULL, NULL), BT_OK);
        msg_reader_done(&r);
    }
}

/* ---- output schemas ---- */

static struct doc doc_of(struct buf *b, const char *json)
{
    buf_init(b, 65536);
    assert_int_equal(json_to_doc(str_from(json), NULL, b, NULL), BT_OK);
    return doc_from_buf(b);
}

static void output_schema_is_that_of_the_card_and_a_useless_one_is_nobodys_fault(void **state)
{
    struct buf number;
    struct buf text;
    struct buf bad;
    struct buf seven;
    struct buf huge;
    struct msg_skill skills[] = {
        {.id = STR_LIT("n"), .output_schema = doc_of(&number, "{\"type\":\"integer\"}")},
        {.id = STR_LIT("free")},
        {.id = STR_LIT("bad"), .output_schema = doc_of(&bad, "{\"type\":\"nonsense\"}")}};
    struct msg_card card = {.agent_id = STR_LIT("a"), .skills = skills, .skills_n = 3};
    struct msg_result words = {.text = STR_LIT("seven")};
    struct msg_result data = {.data = doc_of(&seven, "7")};
    struct msg_result big = {.data = doc_of(&huge, "9007199254740993")};
    struct verify_outputs o = {0};
    struct buf why;

    (void)state;
    buf_init(&why, 4096);
    assert_true(verify_output(&o, &card, 1, 0, &data, &why));
    assert_int_equal(why.len, 0);
    assert_false(verify_output(&o, &card, 1, 0, &words, &why));
    assert_non_null(strstr(buf_cstr(&why), "output of skill 'n': the result expected an integer"));
    buf_clear(&why);
    assert_true(verify_output(&o, &card, 1, 1, &words, &why));
    assert_true(verify_output(&o, &card, 1, 2, &words, &why));
    assert_true(verify_output(&o, &card, 1, 9, &words, &why));
    assert_true(verify_output(&o, &card, 1, 0, &big, &why)); /* more than the checker can hold */
    skills[0].output_schema = doc_of(&text, "{\"type\":\"string\"}"); /* the next card */
    assert_true(verify_output(&o, &card, 2, 0, &words, &why));
    assert_false(verify_output(&o, &card, 2, 0, &data, &why));
    verify_outputs_done(&o);
    verify_outputs_done(&o);
    buf_done(&why);
    buf_done(&number);
    buf_done(&text);
    buf_done(&bad);
    buf_done(&seven);
    buf_done(&huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_word_of_a_text_is_the_verdict_in_any_spelling),
        cmocka_unit_test(three_reasons_are_told_and_that_there_are_more),
        cmocka_unit_test(members_of_data_are_the_verdict_and_one_no_is_a_no),
        cmocka_unit_test(what_says_neither_yes_nor_no_is_no_verdict),
        cmocka_unit_test(hostile_answers_are_bounded),
        cmocka_unit_test(class_follows_from_the_code_first_then_from_whole_words),
        cmocka_unit_test(a_diagnosis_that_is_cut_says_so),
        cmocka_unit_test(a_list_of_what_is_missing_says_how_many_more_there_are),
        cmocka_unit_test(a_long_verdict_in_a_text_is_read),
        cmocka_unit_test(why_a_goal_is_out_of_reach_is_cut_with_a_mark),
        cmocka_unit_test(the_beginning_of_a_message_gives_its_class),
        cmocka_unit_test(messages_of_any_bytes_and_length_are_classified),
        cmocka_unit_test(results_of_any_form_become_text_or_data),
        cmocka_unit_test(commands_become_what_they_ask_for),
        cmocka_unit_test(result_inside_the_answer_to_a_query_is_brought_into_form_too),
        cmocka_unit_test(random_bodies_stay_readable_or_as_they_were),
        cmocka_unit_test(output_schema_is_that_of_the_card_and_a_useless_one_is_nobodys_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
