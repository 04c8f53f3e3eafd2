/* Failures, retries, rates, keys and pages of the http agent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/step.h"
#include "protocol/base/clock.h"
#include "protocol/limits.h"
#include "tests/support/heap.h"
#include "tests/unit/agents/http_world.h"

#define SECRET "s3cret-of-the-service"
#define GET_X "'actions':[{'id':'x','description':'d','path':'/x'}]"

/* ---- failures ---- */

static void each_status_has_its_class(void **state)
{
    static const struct {
        int status;
        const char *class;
        bool again;
    } rows[] = {{300, "UNKNOWN", false},
                {304, "UNKNOWN", false},
                {399, "UNKNOWN", false},
                {400, "VALIDATION_ERROR", false},
                {401, "PERMISSION_DENIED", false},
                {402, "UNKNOWN", false},
                {403, "PERMISSION_DENIED", false},
                {404, "RESOURCE_NOT_FOUND", false},
                {405, "TOOL_NOT_FOUND", false},
                {407, "PERMISSION_DENIED", false},
                {408, "TIMEOUT", true},
                {409, "VALIDATION_ERROR", false},
                {410, "RESOURCE_NOT_FOUND", false},
                {411, "VALIDATION_ERROR", false},
                {412, "VALIDATION_ERROR", false},
                {413, "VALIDATION_ERROR", false},
                {415, "VALIDATION_ERROR", false},
                {422, "VALIDATION_ERROR", false},
                {428, "VALIDATION_ERROR", false},
                {429, "RATE_LIMITED", true},
                {451, "PERMISSION_DENIED", false},
                {499, "UNKNOWN", false},
                {500, "SERVICE_UNAVAILABLE", true},
                {501, "TOOL_NOT_FOUND", false},
                {503, "SERVICE_UNAVAILABLE", true},
                {599, "SERVICE_UNAVAILABLE", true}};
    static const char *const methods[] = {"GET", "POST"};

    (void)state;
    for (int unsafe = 0; unsafe < 2; unsafe++) {
        char members[128];
        (void)snprintf(members, sizeof members,
                       "'retries':0,'actions':[{'id':'x','description':'d','path':'/x','method':"
                       "'%s'}]",
                       methods[unsafe]);
        http_use(members);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const bool again = rows[i].again && (unsafe == 0 || rows[i].status == 429);
            char text[128];
            const char *reply;
            service_next(rows[i].status, "", "");
            reply = http_do("x", "{}");
            (void)snprintf(text, sizeof text, "'class':'%s','message':'%s /x: status %d",
                           rows[i].class, methods[unsafe], rows[i].status);
            http_says(reply, text);
            http_says(reply, again ? "'retryable':true" : "'retryable':false");
            (void)snprintf(text, sizeof text, "'details':{'status':%d,'requests':1,",
                           rows[i].status);
            http_says(reply, text);
            assert_true((strstr(reply, "(it may have taken effect)") != NULL) ==
                        (rows[i].status >= 500 && !again));
            assert_null(strstr(reply, "retryAfterMs"));
        }
    }
}

static void a_failure_has_the_services_own_words(void **state)
{
    static const char *const rows[][2] = {
        {"{'detail':'one','message':'two'}", ": one\""},
        {"{'error':{'message':'two'},'message':'three'}", ": two\""},
        {"{'message':'three','errorMessages':['four']}", ": three\""},
        {"{'errorMessages':['four'],'error_description':'five'}", ": four\""},
        {"{'error_description':'five','error':'nine'}", ": five\""},
        {"{'errors':[{'message':'six'}],'title':'eight'}", ": six\""},
        {"[{'message':'seven'}]", ": seven\""},
        {"{'title':'eight','error':'nine'}", ": eight\""},
        {"{'error':'nine','errors':['ten']}", ": nine\""},
        {"{'errors':['ten']}", ": ten\""},
        {"{'detail':'','message':'two'}", ": two\""},
        {"  plain words \n", ": plain words\""},
        {"{'other':1}", ": {\\\"other\\\":1}\""},
        {"", "status 400\""},
    };

    (void)state;
    http_use(GET_X);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[128];
        (void)snprintf(body, sizeof body, "%s", service_text(rows[i][0]));
        service_next(400, "", body);
        steps_expect(http_do("x", "{}"), rows[i][1]);
    }
    {
        static char words[700];
        const char *reply;
        memset(words, 'w', 599);
        memcpy(words + 597, "\xc3\xa4xx", 5);
        service_next(400, "", words);
        reply = http_do("x", "{}");
        steps_expect(reply, "w\xc3\xa4\""); /* 599 bytes, of whole characters */
        words[596] = 'w';
        memcpy(words + 597, "w\xc3\xa4xx", 6);
        service_next(400, "", words);
        assert_null(strstr(http_do("x", "{}"), "\xc3"));
    }
    service_next(302, "", "");
    steps_expect(http_do("x", "{}"), "GET /x: status 302\"");
    service_next(304, "Location: /there\r\n", "");
    steps_expect(http_do("x", "{}"), "GET /x: status 304, to /there\"");
    service_next(304, "Location: /\r\n", "");
    steps_expect(http_do("x", "{}"), "GET /x: status 304, to /\"");
    service_next(404, "Location: /there\r\n", "");
    steps_expect(http_do("x", "{}"), "GET /x: status 404\"");
}

static void a_call_without_an_answer_has_its_class(void **state)
{
    static const char *const effects[] = {"none", "unsafe"};
    const char *reply;

    (void)state;
    for (int unsafe = 0; unsafe < 2; unsafe++) {
        char members[256];
        (void)snprintf(
            members, sizeof members,
            "'retries':0,'maxBytes':5,'actions':[{'id':'x','description':'d','path':'/"
            "x','effects':'%s'},"
            "{'id':'slow','description':'d','path':'/x','effects':'%s','timeoutMs':400}]",
            effects[unsafe], effects[unsafe]);
        http_use(members);
        service_raw(STR_LIT(""), SERVICE_CLOSES);
        reply = http_do("x", "{}");
        http_says(reply, "'class':'SERVICE_UNAVAILABLE'");
        http_says(reply, unsafe ? "'retryable':false" : "'retryable':true");
        assert_true((strstr(reply, "; whether it took effect is not known") != NULL) == unsafe);
        service_raw(STR_LIT(""), SERVICE_WAITS);
        reply = http_do("slow", "{}");
        http_says(reply, "'class':'TIMEOUT'");
        http_says(reply, unsafe ? "'retryable':false" : "'retryable':true");
        assert_true((strstr(reply, "; whether it took effect is not known") != NULL) == unsafe);
        service_next(200, "", "123456");
        reply = http_do("x", "{}");
        http_says(reply, "'class':'VALIDATION_ERROR'");
        http_says(reply, "'retryable':false");
        assert_true((strstr(reply, "; whether it took effect is not known") != NULL) == unsafe);
        service_next(302, "Location: ftp://a/\r\n", "");
        reply = http_do("x", "{}");
        http_says(reply, "'class':'VALIDATION_ERROR'");
        http_says(reply, "GET /x: redirect to ftp://a/: ");
        assert_true((strstr(reply, "; whether it took effect is not known") != NULL) == unsafe);
    }
}

static void a_cancelled_step_calls_nothing_more(void **state)
{
    struct bt_step *step = steps_make("x", "{}");
    const char *reply;

    (void)state;
    http_use("'actions':[{'id':'x','description':'d','path':'/x','effects':'unsafe'}]");
    service_raw(STR_LIT(""), SERVICE_WAITS);
    atomic_store(&step->cancelled, true);
    reply = steps_run(step, http_run, http_used());
    http_says(reply, "'class':'CANCELLED'");
    http_says(reply, "GET /x: stopped on request");
    assert_true(service_count() <= 1);
}

/* ---- again ---- */

static void what_is_harmless_is_sent_again(void **state)
{
    static const struct {
        const char *members;
        int status;        /* 0: the connection breaks */
        unsigned requests; /* of three that fail */
    } rows[] = {{"", 429, 3},
                {"", 502, 3},
                {"", 503, 3},
                {"", 504, 3},
                {"", 500, 1},
                {"", 501, 1},
                {"", 505, 1},
                {"", 428, 1},
                {"", 0, 3},
                {",'method':'POST'", 429, 3},
                {",'method':'POST'", 503, 1},
                {",'method':'POST'", 0, 1},
                {",'method':'POST','idempotencyHeader':'K'", 503, 3},
                {",'method':'PUT'", 0, 3}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char members[160];
        service_forget();
        (void)snprintf(members, sizeof members,
                       "'retries':2,'actions':[{'id':'x','description':'d','path':'/x'%s}]",
                       rows[i].members);
        http_use(members);
        /* A retry in an hour would be no retry of ours; in a second it is. */
        for (int n = 0; n < 3; n++) {
            if (rows[i].status == 0) {
                service_raw(STR_LIT(""), SERVICE_CLOSES);
            } else {
                service_next(rows[i].status, "", "");
            }
        }
        if (rows[i].requests == 1) {
            (void)http_do("x", "{}");
        } else if (i == 0 || i == 8) { /* the whole of it takes a second and a half */
            const msec began = clock_mono_ms();
            (void)http_do("x", "{}");
            assert_true(clock_mono_ms() - began >= 1500);
        } else { /* one that comes to something */
            service_forget();
            if (rows[i].status == 0) {
                service_raw(STR_LIT(""), SERVICE_CLOSES);
            } else {
                service_next(rows[i].status, "", "");
            }
            service_next(200, "", "fine");
            http_says(http_do("x", "{}"), "'text':'fine','details':{'status':200,'requests':2,");
            continue;
        }
        if (service_count() != rows[i].requests) {
            fail_msg("%s, %d: %zu requests", rows[i].members, rows[i].status, service_count());
        }
    }
}

static void a_long_pause_is_left_to_the_supervisor(void **state)
{
    const msec began = clock_mono_ms();
    const char *reply;

    (void)state;
    http_use(GET_X);
    service_next(429, "Retry-After: 31\r\n", "");
    reply = http_do("x", "{}");
    http_says(reply, "'class':'RATE_LIMITED'");
    http_says(reply, "'retryAfterMs':31000");
    assert_int_equal(service_count(), 1);
    http_use("'timeoutMs':9000," GET_X); /* there is no time for it */
    service_next(429, "Retry-After: 20\r\n", "");
    http_says(http_do("x", "{}"), "'retryAfterMs':20000");
    assert_int_equal(service_count(), 2);
    service_next(400, "Retry-After: 1\r\n", "");
    assert_null(strstr(http_do("x", "{}"), "retryAfterMs"));
    assert_true(clock_mono_ms() - began < 10000);
}

static void no_more_than_the_rate_begin_in_its_time(void **state)
{
    msec began;
    const char *reply;

    (void)state;
    http_use("'rate':{'n':2,'perMs':1000}," GET_X);
    service_at("/x", 200, "", "");
    began = clock_mono_ms();
    for (int i = 0; i < 2; i++) {
        (void)http_do("x", "{}");
    }
    assert_true(clock_mono_ms() - began < 1000);
    for (int i = 0; i < 3; i++) {
        (void)http_do("x", "{}");
    }
    assert_true(clock_mono_ms() - began >= 2000);
    http_use("'timeoutMs':5000,'rate':{'n':1,'perMs':60000}," GET_X);
    (void)http_do("x", "{}");
    began = clock_mono_ms();
    reply = http_do("x", "{}");
    http_says(reply, "'class':'TIMEOUT'");
    http_says(reply, "the rate of 1 in 60000 ms leaves no place before the time is over");
    http_says(reply, "'retryable':true");
    assert_true(clock_mono_ms() - began < 5000); /* it does not wait for what will not come */
    assert_int_equal(service_count(), 6);
}

/* ---- keys ---- */

static void a_key_goes_along_and_never_comes_back(void **state)
{
    static const struct {
        const char *auth, *sent;
    } rows[] = {
        {"{'bearer':{'env':'SERVICE_KEY'}}", "\r\nAuthorization: Bearer " SECRET "\r\n"},
        {"{'basic':{'user':'bot','password':{'env':'SERVICE_KEY'}}}",
         "\r\nAuthorization: Basic Ym90OnMzY3JldC1vZi10aGUtc2VydmljZQ==\r\n"},
        {"{'header':{'name':'X-Key','value':{'env':'SERVICE_KEY'}}}", "\r\nX-Key: " SECRET "\r\n"},
        {"{'header':{'name':'X-Key','prefix':'k ','value':{'env':'SERVICE_KEY'}}}",
         "\r\nX-Key: k " SECRET "\r\n"},
    };

    (void)state;
    assert_int_equal(setenv("SERVICE_KEY", SECRET, 1), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char members[256];
        const char *reply;
        (void)snprintf(members, sizeof members, "'auth':%s," GET_X, rows[i].auth);
        http_use(members);
        service_next(200, "", "you sent " SECRET "!");
        reply = http_do("x", "{}");
        http_says(reply, "'text':'you sent [redacted]!'");
        service_expect(i, rows[i].sent);
    }
}

#define OAUTH(more)                                                                                \
    "'auth':{'oauth2':{'tokenUrl':'$/token','clientId':'me','clientSecret':{'env':"                \
    "'SERVICE_KEY'}" more "}},'retries':0," GET_X

static void a_token_is_asked_for_once(void **state)
{
    const char *reply;

    (void)state;
    assert_int_equal(setenv("SERVICE_KEY", SECRET, 1), 0);
    http_use(OAUTH(",'scope':'a b','audience':'c&d'"));
    service_next(200, "", "{\"access_token\":\"tok-0123456789\",\"expires_in\":3600}");
    service_next(200, "", "it was tok-0123456789");
    service_next(200, "", "two");
    reply = http_do("x", "{}");
    http_says(reply, "'text':'it was [redacted]','details':{'status':200,'requests':1,");
    service_expect(0, "POST /token HTTP/1.1\r\n");
    service_expect(0, "\r\nAuthorization: Basic bWU6czNjcmV0LW9mLXRoZS1zZXJ2aWNl\r\n");
    service_expect(0, "\r\nContent-Type: application/x-www-form-urlencoded\r\n");
    service_expect(0, "\r\nAccept: application/json\r\n");
    service_expect(0, "\r\n\r\ngrant_type=client_credentials&scope=a%20b&audience=c%26d");
    service_expect(1, "\r\nAuthorization: Bearer tok-0123456789\r\n");
    (void)http_do("x", "{}");
    service_expect(2, "GET /x ");
    service_expect(2, "\r\nAuthorization: Bearer tok-0123456789\r\n");
    http_use(OAUTH(",'inBody':true"));
    service_next(200, "", "{\"access_token\":\"t\"}");
    service_next(200, "", "");
    (void)http_do("x", "{}");
    service_expect(3, "\r\n\r\ngrant_type=client_credentials&client_id=me&client_secret=" SECRET);
    service_expect_not(3, "Authorization");
    service_expect(4, "\r\nAuthorization: Bearer t\r\n");
}

static void a_token_that_was_withdrawn_is_asked_for_once_more(void **state)
{
    const char *reply;

    (void)state;
    http_use(OAUTH(""));
    service_next(200, "", "{\"access_token\":\"first\"}");
    service_next(401, "", "");
    service_next(200, "", "{\"access_token\":\"second\"}");
    service_next(200, "", "fine");
    http_says(http_do("x", "{}"), "'text':'fine'");
    service_expect(1, "Bearer first");
    service_expect(3, "Bearer second");
    service_next(401, "", "");
    service_next(200, "", "{\"access_token\":\"third\"}");
    service_next(401, "", "");
    reply = http_do("x", "{}");
    http_says(reply, "'class':'PERMISSION_DENIED'");
    assert_int_equal(service_count(), 7);
    service_next(401, "", "");
    service_next(400, "", ""); /* no other one comes */
    http_says(http_do("x", "{}"), "no token from");
    service_next(200, "", "{\"access_token\":\"fourth\"}");
    service_next(200, "", "fine");
    http_says(http_do("x", "{}"), "'text':'fine'");
    service_expect(9, "POST /token "); /* the one that was withdrawn is not used again */
}

static void a_token_lives_as_long_as_its_service_says(void **state)
{
    static const struct {
        const char *expires;
        uint64_t seconds; /* after which it is asked for again */
    } rows[] = {{",\"expires_in\":3600", 3540},     {",\"expires_in\":121", 61},
                {",\"expires_in\":120", 60},        {",\"expires_in\":100", 50},
                {",\"expires_in\":0", 0},           {",\"expires_in\":86400", 86340},
                {",\"expires_in\":9999999", 86340}, {"", 240},
                {",\"expires_in\":\"60\"", 240}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[128];
        const msec began = clock_mono_ms();
        http_use(OAUTH(""));
        (void)snprintf(body, sizeof body, "{\"access_token\":\"t\"%s}", rows[i].expires);
        service_next(200, "", body);
        service_next(200, "", "");
        (void)http_do("x", "{}");
        assert_in_range(http_used()->token_until - began, rows[i].seconds * 1000,
                        rows[i].seconds * 1000 + 5000);
    }
    service_forget();
    service_next(200, "", "{\"access_token\":\"t\"}");
    service_next(200, "", "");
    http_used()->token_until = clock_mono_ms(); /* its time is over now */
    (void)http_do("x", "{}");
    service_expect(0, "POST /token ");
}

static void a_token_that_does_not_come_fails_the_step(void **state)
{
    static char token[HTTP_TOKEN_MAX + 64];
    static const struct {
        int status;
        const char *body, *class, *says;
    } rows[] = {
        {400, "", "PERMISSION_DENIED", "no token from $/token: status 400"},
        {429, "", "SERVICE_UNAVAILABLE", "no token from $/token: status 429"},
        {500, "", "SERVICE_UNAVAILABLE", "status 500"},
        {499, "", "PERMISSION_DENIED", "status 499"},
        {200, "no", "VALIDATION_ERROR", "no token from $/token: "},
        {200, "{}", "VALIDATION_ERROR", "the answer has no access_token of at most 8191 bytes"},
        {200, "{\"access_token\":\"\"}", "VALIDATION_ERROR", "the answer has no access_token"},
        {200, "{\"access_token\":7}", "VALIDATION_ERROR", "the answer has no access_token"},
        {200, "{\"access_token\":\"a b\"}", "VALIDATION_ERROR", "characters that no header takes"},
        {200, "{\"access_token\":\"a\\u007f\"}", "VALIDATION_ERROR", "that no header takes"},
    };

    (void)state;
    http_use(OAUTH(""));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];
        const char *reply;
        service_forget();
        service_next(rows[i].status, "", rows[i].body);
        reply = http_do("x", "{}");
        (void)snprintf(text, sizeof text, "'class':'%s'", rows[i].class);
        http_says(reply, text);
        http_says(reply, rows[i].says);
        assert_int_equal(service_count(), 1);
        assert_null(strstr(reply, SECRET));
    }
    for (int more = 0; more < 2; more++) {
        service_forget();
        (void)snprintf(token, sizeof token, "{\"access_token\":\"%0*d\"}",
                       HTTP_TOKEN_MAX - 1 + more, 0);
        service_next(200, "", token);
        service_next(200, "", "fine");
        http_says(http_do("x", "{}"), more == 0 ? "'text':'fine'" : "no access_token");
        http_use(OAUTH(""));
    }
    service_forget();
    service_next(200, "", "{\"access_token\":\"a~!\"}");
    service_next(200, "", "fine");
    http_says(http_do("x", "{}"), "'text':'fine'");
}

/* ---- pages ---- */

static void pages_are(const char *pages)
{
    char members[512];

    service_forget();
    (void)snprintf(members, sizeof members,
                   "'actions':[{'id':'x','description':'d','path':'/x','pages':%s}]", pages);
    http_use(members);
}

static void the_next_page_is_named_by_the_one_before(void **state)
{
    static const char first[] = "Link: </x?p=9>; rel=\"prev\", </x?p=2>; rel=\"next\"\r\n";

    (void)state;
    pages_are("{'next':'link'}");
    service_next(200, first, "[1,2]");
    service_next(200, "Link: <$?a>; title=\"no\"; rel=next\r\n", "[]");
    service_next(200, "Link: </y>; rel=\"last\"\r\n", "[{\"a\":3}]");
    http_says(http_do("x", "{}"), "'data':[1,2,{'a':3}],'details':{'status':200,'requests':3,");
    service_expect(1, "GET /x?p=2 ");
    service_expect(2, "GET /$?a ");
    pages_are("{'items':'/v','next':'/meta/next'}");
    service_next(200, "", "{\"v\":[1],\"meta\":{\"next\":\"/x?p=2\"}}");
    service_next(200, "", "{\"v\":[2],\"meta\":{\"next\":\"?p=3\"}}");
    service_next(200, "", "{\"v\":[3],\"meta\":{\"next\":null}}");
    http_says(http_do("x", "{}"), "'data':[1,2,3]");
    service_expect(1, "GET /x?p=2 ");
    service_expect(2, "GET /x?p=3 ");
    pages_are("{'items':'/v','cursor':'/c','param':'a&b'}");
    service_next(200, "", "{\"v\":[1],\"c\":\"x y\"}");
    service_next(200, "", "{\"v\":[2],\"c\":17}");
    service_next(200, "", "{\"v\":[3],\"c\":\"\"}");
    http_says(http_do("x", "{}"), "'data':[1,2,3]");
    service_expect(0, "GET /x HTTP");
    service_expect(1, "GET /x?a%26b=x%20y ");
    service_expect(2, "GET /x?a%26b=17 ");
}

static void pages_are_counted_until_one_is_empty(void **state)
{
    (void)state;
    pages_are("{'page':'p'}");
    service_next(200, "", "[1]");
    service_next(200, "", "[2]");
    service_next(200, "", "[]");
    http_says(http_do("x", "{}"), "'data':[1,2]");
    service_expect(0, "GET /x?p=1 ");
    service_expect(1, "GET /x?p=2 ");
    service_expect(2, "GET /x?p=3 ");
    pages_are("{'page':'p','first':0}");
    service_next(200, "", "[]");
    http_says(http_do("x", "{}"), "'data':[]");
    service_expect(0, "GET /x?p=0 ");
    pages_are("{'offset':'o','items':'/v','first':10}");
    service_next(200, "", "{\"v\":[1,2,3]}");
    service_next(200, "", "{\"v\":[4]}");
    service_next(200, "", "{\"v\":[]}");
    http_says(http_do("x", "{}"), "'data':[1,2,3,4]");
    service_expect(0, "GET /x?o=10 ");
    service_expect(1, "GET /x?o=13 ");
    service_expect(2, "GET /x?o=14 ");
    http_use(
        "'actions':[{'id':'x','description':'d','path':'/x','query':{'q':1},'pages':{'offset':'o'},"
        "'fields':{'n':'/a'}}]");
    service_next(200, "", "[{\"a\":1,\"b\":2}]");
    service_next(200, "", "[]");
    http_says(http_do("x", "{}"), "'data':[{'n':1}]");
    service_expect(3, "GET /x?q=1&o=0 ");
}

static void a_limit_ends_a_list_with_a_mark(void **state)
{
    static const char mark[] = "there are more than the 2 of the parameter limit";
    const char *reply;

    (void)state;
    pages_are("{'items':'/v','next':'/n'}");
    service_next(200, "", "{\"v\":[1,2,3],\"n\":null}");
    reply = http_do("x", "{'limit':2}");
    http_says(reply, "'data':[1,2]");
    http_says(reply, "'truncated':true");
    http_says(reply, "2 items");
    http_says(reply, mark);
    service_next(200, "", "{\"v\":[1,2],\"n\":null}");
    reply = http_do("x", "{'limit':2}"); /* all there is */
    assert_null(strstr(reply, "truncated"));
    service_next(200, "", "{\"v\":[1,2],\"n\":\"/y\"}");
    reply = http_do("x", "{'limit':2}"); /* the next page is not asked for */
    http_says(reply, "'truncated':true");
    assert_int_equal(service_count(), 3);
    service_next(200, "", "{\"v\":[1,2],\"n\":null}");
    http_says(http_do("x", "{'limit':0}"), "'data':[1,2]"); /* none */
    pages_are("{'page':'p'}");
    service_next(200, "", "[1,2]");
    service_next(200, "", "[]");
    reply = http_do("x", "{'limit':2}"); /* only the next page says whether there is more */
    assert_null(strstr(reply, "truncated"));
    assert_int_equal(service_count(), 2);
    pages_are("{'offset':'o'}");
    service_next(200, "", "[1,2]");
    service_next(200, "", "[3]");
    reply = http_do("x", "{'limit':2}");
    http_says(reply, "'data':[1,2]");
    http_says(reply, "'truncated':true");
    http_use("'actions':[{'id':'x','description':'d','path':'/x','query':{'limit':'{limit}'},"
             "'pages':{'next':'link'}}]");
    service_next(200, "", "[1,2,3]");
    http_says(http_do("x", "{'limit':2}"), "'data':[1,2,3]"); /* it is the service's own */
}

static void pages_that_do_not_end_or_are_none_fail(void **state)
{
    static const struct {
        const char *pages, *headers, *body, *says;
    } rows[] = {
        {"{'next':'/n','items':'/v'}", "", "{\"v\":[1],\"n\":\"$/x\"}",
         "GET /x: page 1: the next page is the same page again"},
        {"{'next':'/n','items':'/w'}", "", "{\"v\":[1]}",
         "page 1: no list at pages.items of its answer"},
        {"{'next':'/n','items':'/n'}", "", "{\"n\":\"a\"}", "page 1: no list at pages.items"},
        {"{'next':'/n','items':'/v'}", "", "{\"v\":[1],\"n\":\"http://[\"}", "page 1: 'http://['"},
        {"{'next':'/n','items':'/v'}", "", "{\"v\":[1],\"n\":\"ftp://a/\"}", "GET /x: 'ftp://a/'"},
        {"{'next':'/n','items':'/v'}", "", "no", "GET /x: the answer is no JSON"},
        {"{'next':'/n','items':'/v','max':1}", "", "{\"v\":[1],\"n\":\"/y\"}",
         "page 1: pages.max is reached and more follow"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[128];
        const char *reply;
        pages_are(rows[i].pages);
        (void)snprintf(body, sizeof body, "%s", service_text(rows[i].body));
        service_next(200, rows[i].headers, body);
        reply = http_do("x", "{}");
        http_says(reply, "'class':'VALIDATION_ERROR'");
        http_says(reply, "'retryable':false");
        steps_expect(reply, rows[i].says);
        assert_int_equal(service_count(), 1);
    }
    for (int n = 2; n <= 3; n++) {
        pages_are("{'page':'p','max':3}");
        for (int i = 0; i < n; i++) {
            service_next(200, "", "[1]");
        }
        service_next(200, "", "[]");
        http_says(http_do("x", "{}"), n == 2 ? "'data':[1,1]" : "page 3: pages.max is reached");
    }
}

static void a_switch_or_nothing_names_no_next_page(void **state)
{
    static const char *const ends[] = {"null", "false", "true", "\"\""};

    (void)state;
    pages_are("{'next':'/n','items':'/v'}");
    for (size_t i = 0; i < 4; i++) {
        char body[64];
        (void)snprintf(body, sizeof body, "{\"v\":[%zu],\"n\":%s}", i, ends[i]);
        service_next(200, "", body);
        http_says(http_do("x", "{}"), "'outcome':'completed'");
    }
    service_next(200, "", "{\"v\":[1]}");
    http_says(http_do("x", "{}"), "'data':[1]");
}

static void a_list_has_at_most_its_items_and_bytes(void **state)
{
    struct buf body;

    (void)state;
    pages_are("{'next':'link'}");
    http_used()->max_bytes = 16 * 1024 * 1024;
    buf_init(&body, 16 * 1024 * 1024);
    for (int n = HTTP_ITEMS_MAX; n <= HTTP_ITEMS_MAX + 1; n++) {
        buf_clear(&body);
        for (int i = 0; i < n; i++) {
            buf_add_cstr(&body, i == 0 ? "[1" : ",1");
        }
        buf_add_byte(&body, ']');
        service_next(200, "", buf_cstr(&body));
        http_says(http_do("x", "{}"),
                  n == HTTP_ITEMS_MAX ? "'outcome':'completed'" : "more than 100000 items");
    }
    buf_clear(&body);
    buf_printf(&body, "[\"%0*d\"]", LIMIT_RESULT_BYTES, 0);
    service_next(200, "", buf_cstr(&body));
    http_says(http_do("x", "{}"), "the items have more than 3 MiB");
    buf_done(&body);
}

static void run_some(void *self)
{
    (void)self;
    service_forget();
    service_next(200, "Link: </y>; rel=next\r\n", "[1]");
    service_next(200, "", "[2]");
    (void)http_do("l", "{}");
    service_next(200, "", "text");
    (void)http_do("x", "{'q':'a'}");
    service_next(400, "", "{\"message\":\"no\"}");
    (void)http_do("x", "{'q':'a'}");
    service_next(200, "Content-Type: application/json\r\n", "{\"a\":1}");
    (void)http_do("x", "{'q':'a'}");
    service_next(200, "Content-Type: application/json\r\n", "{");
    (void)http_do("x", "{'q':'a'}");
    (void)http_do("x", "{}");
    steps_forget();
    service_forget();
}

static void a_step_keeps_no_memory(void **state)
{
    (void)state;
    assert_int_equal(setenv("SERVICE_KEY", SECRET, 1), 0);
    http_use("'auth':{'basic':{'user':'u','password':{'env':'SERVICE_KEY'}}},'headers':{'A':'b'},"
             "'actions':[{'id':'x','description':'d','method':'POST','path':'/x/{q}','query':{'q':"
             "'{q}'},'body':{'a':'{q}','b':'c {q}'},'headers':{'B':'{q}'}},"
             "{'id':'l','description':'d','path':'/l','pages':{'next':'link'}}]");
    heap_is_given_back(run_some, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, http_begin)
    const struct CMUnitTest tests[] = {
        TEST(each_status_has_its_class),
        TEST(a_failure_has_the_services_own_words),
        TEST(a_call_without_an_answer_has_its_class),
        TEST(a_cancelled_step_calls_nothing_more),
        TEST(what_is_harmless_is_sent_again),
        TEST(a_long_pause_is_left_to_the_supervisor),
        TEST(no_more_than_the_rate_begin_in_its_time),
        TEST(a_key_goes_along_and_never_comes_back),
        TEST(a_token_is_asked_for_once),
        TEST(a_token_that_was_withdrawn_is_asked_for_once_more),
        TEST(a_token_lives_as_long_as_its_service_says),
        TEST(a_token_that_does_not_come_fails_the_step),
        TEST(the_next_page_is_named_by_the_one_before),
        TEST(pages_are_counted_until_one_is_empty),
        TEST(a_limit_ends_a_list_with_a_mark),
        TEST(pages_that_do_not_end_or_are_none_fail),
        TEST(a_switch_or_nothing_names_no_next_page),
        TEST(a_list_has_at_most_its_items_and_bytes),
        TEST(a_step_keeps_no_memory),
    };

    return cmocka_run_group_tests(tests, http_start, http_stop);
}
