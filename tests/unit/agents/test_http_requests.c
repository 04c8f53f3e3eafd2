/* What an action sends, and what it keeps of an answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "protocol/base/clock.h"
#include "protocol/limits.h"
#include "tests/support/tree.h"
#include "tests/unit/agents/http_world.h"

#define ONE(members) "'actions':[{'id':'x','description':'d','path':'/x'" members "}]"

/* ---- requests ---- */

static void values_stand_in_their_places_with_their_types(void **state)
{
    (void)state;
    http_use("'actions':[{'id':'x','description':'d','method':'PUT','path':'/a/{id}/b{{c',"
             "'query':{'q':'{q}','n':'{n}','tag':'{tags}',"
             "'fixed':7,'mixed':'x-{n}','no':'{none}','deep':'{o.k}','yes':true,'a b':'&',"
             "'list':['p','{q}']},'headers':{'X-T':'{t}','X-No':'{none}','X-M':'a{n}b'},"
             "'body':{'title':'About {id}','n':'{n}','list':['{tags}','{none}',1,null],"
             "'none':'{none}','brace':'{{x}','deep':{'o':'{o}','e':[],'m':{}}}}]");
    service_next(200, "", "");
    (void)http_do("x",
                  "{'id':'a/b ?','q':'1&2','n':3,'tags':['x','y z'],'t':'t 1','o':{'k':[1.5]}}");
    service_expect(0, "PUT /a/a%2Fb%20%3F/b{c?q=1%262&n=3&tag=x&tag=y%20z&fixed=7&mixed=x-3"
                      "&deep=1.5&yes=true&a%20b=%26&list=p&list=1%262 HTTP/1.1\r\n");
    service_expect(0, "\r\nX-T: t 1\r\n");
    service_expect(0, "\r\nX-M: a3b\r\n");
    service_expect_not(0, "X-No");
    service_expect(0, "\r\nContent-Type: application/json\r\n");
    service_expect(0, "\r\nAccept: application/json, */*;q=0.5\r\n");
    service_expect(0,
                   service_text("\r\n\r\n{'title':'About a/b ?','n':3,'list':[['x','y z'],1,null],"
                                "'brace':'{x}','deep':{'o':{'k':[1.5]},'e':[],'m':{}}}"));
}

static void a_text_that_is_one_placeholder_is_its_value(void **state)
{
    static const char *const rows[][2] = {
        {"{v}", "1"},     {"{v}{v}", "'11'"}, {"{v} {w}", "'1 true'"}, {"{{v}", "'{v}'"},
        {"{v}}", "'1}'"}, {"}", "'}'"},       {"{{", "'{'"},           {" {v}", "' 1'"},
        {"{v} ", "'1 '"}, {"", "''"},         {"{w}", "true"},         {"{l.0}", "5"},
        {"{l}", "[5]"},   {"{{{v}", "'{1'"},  {"{v}{{", "'1{'"},       {"a{v}b}", "'a1b}'"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char members[256];
        char want[64];
        service_forget();
        (void)snprintf(members, sizeof members,
                       "'actions':[{'id':'x','description':'d','path':'/x','method':'POST','body':"
                       "['%s']}]",
                       rows[i][0]);
        http_use(members);
        service_next(200, "", "");
        (void)http_do("x", "{'v':1,'w':true,'l':[5]}");
        (void)snprintf(want, sizeof want, "\r\n\r\n[%s]", rows[i][1]);
        if (strstr(service_asked(0), service_text(want)) == NULL) {
            fail_msg("%s: %s", rows[i][0], service_asked(0));
        }
    }
}

static void a_value_cannot_leave_its_place(void **state)
{
    static const struct {
        const char *parameters, *says;
    } rows[] = {
        {"{'id':'..'}", "GET /x/{id}: parameters.id: '..' cannot be a part of an address's path"},
        {"{'id':'.'}", "parameters.id: '.' cannot be"},
        {"{'id':''}", "parameters.id: '' cannot be"},
        {"{'id':[1]}", "parameters.id: expected a text, a number or a boolean there"},
        {"{'id':{'a':1}}", "parameters.id: expected a text"},
        {"{}", "parameters.id: missing; the action needs it"},
        {"{'id':null}", "parameters.id: missing; the action needs it"},
        {"{'id':'1','h':'a\\nb'}", "the header X-H: no line break"},
        {"{'id':'1','h':'a\\u007fb'}", "the header X-H: no line break"},
    };

    (void)state;
    http_use("'actions':[{'id':'x','description':'d','path':'/x/{id}','headers':{'X-H':'{h}'}}]");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *reply = http_do("x", rows[i].parameters);
        http_says(reply, "'class':'VALIDATION_ERROR'");
        http_says(reply, "'retryable':false");
        steps_expect(reply, rows[i].says);
    }
    assert_int_equal(service_count(), 0);
    service_next(200, "", "");
    (void)http_do("x", "{'id':'...','h':'a b'}");
    service_expect(0, "GET /x/... HTTP/1.1\r\n");
    service_expect(0, "\r\nX-H: a b\r\n");
    service_next(200, "", "");
    (void)http_do("x", "{'id':true}");
    service_expect(1, "GET /x/true HTTP/1.1\r\n");
}

static void an_address_has_at_most_its_bytes(void **state)
{
    static char parameters[WEB_URL_MAX + 64];
    const int room = WEB_URL_MAX - 1 - (int)strlen(service_url()) - (int)strlen("/x?q=");

    (void)state;
    http_use(ONE(",'query':{'q':'{q}'}"));
    for (int more = 0; more < 2; more++) {
        (void)snprintf(parameters, sizeof parameters, "{'q':'%0*d'}", room + more, 0);
        service_next(200, "", "fine");
        http_says(http_do("x", parameters),
                  more == 0 ? "'text':'fine'" : "the address has more than 8191 bytes");
    }
    assert_int_equal(service_count(), 1);
    http_use("'actions':[{'id':'x','description':'d','path':'/x?a=1','query':{'q':'{q}'}}]");
    service_next(200, "", "fine");
    (void)http_do("x", "{'q':2}");
    service_expect(1, "GET /x?a=1&q=2 HTTP/1.1\r\n");
}

static void a_body_is_json_a_form_or_empty(void **state)
{
    static const struct {
        const char *members, *parameters, *sent, *length;
    } rows[] = {
        {",'method':'POST','form':{'a':'{a}','b':'x','c':['1','2']}", "{'a':'1 & 2'}",
         "\r\n\r\na=1%20%26%202&b=x&c=1&c=2", "Content-Type: application/x-www-form-urlencoded"},
        {",'method':'POST'", "{}", "\r\n\r\n", "\r\nContent-Length: 0\r\n"},
        {",'method':'PATCH'", "{}", "\r\n\r\n", "\r\nContent-Length: 0\r\n"},
        {",'method':'POST','body':'{all}'", "{'all':[1,{'k':'v'}]}", "\r\n\r\n[1,{'k':'v'}]", ""},
        {",'method':'POST','body':'{all}'", "{}", "\r\n\r\n", "\r\nContent-Length: 0\r\n"},
        {",'method':'POST','body':'say {all}'", "{'all':'it'}", "\r\n\r\n'say it'", ""},
        {",'method':'POST','body':[true,null,1.25]", "{}", "\r\n\r\n[true,null,1.25]",
         "Content-Type: application/json"},
        {",'method':'POST','body':{},'headers':{'content-type':'text/x'}", "{}", "\r\n\r\n{}",
         "\r\ncontent-type: text/x\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char members[512];
        service_forget();
        (void)snprintf(members, sizeof members,
                       "'actions':[{'id':'x','description':'d','path':'/x'%s}]", rows[i].members);
        http_use(members);
        service_next(200, "", "");
        http_says(http_do("x", rows[i].parameters), "done (status 200)");
        service_expect(0, service_text(rows[i].sent));
        service_expect(0, rows[i].length);
    }
    service_expect_not(0, "application/json\r\nContent"); /* one type alone */
    service_forget();
    http_use(ONE(",'method':'DELETE'"));
    service_next(200, "", "");
    (void)http_do("x", "{}");
    service_expect_not(0, "Content-");
    http_use(ONE(",'method':'POST','body':'say {all}'"));
    http_says(http_do("x", "{}"), "parameters.all: missing");
}

static void the_headers_of_an_action_come_before_those_of_all(void **state)
{
    (void)state;
    http_use("'headers':{'X-All':'{n}','X-Both':'all','x-EMPTY':''},"
             "'actions':[{'id':'x','description':'d','path':'/x','method':'POST','body':{},"
             "'headers':{'x-both':'mine','Accept':'a/b','X-Bo':'c'},'idempotencyHeader':'X-Key'}]");
    service_next(200, "", "");
    (void)http_do("x", "{'n':5}");
    service_expect(0, "\r\nX-All: 5\r\n");
    service_expect(0, "\r\nx-both: mine\r\n");
    service_expect(0, "\r\nX-Bo: c\r\n");
    service_expect_not(0, "X-Both");
    service_expect(0, "\r\nx-EMPTY:\r\n");
    service_expect(0, "\r\nAccept: a/b\r\n");
    service_expect_not(0, "q=0.5");
    service_expect(0, "\r\nX-Key: 00000000-0000-7000-8000-000000000000/1/once\r\n");
    http_use(ONE(",'output':'text'"));
    service_next(200, "", "");
    (void)http_do("x", "{}");
    service_expect(1, "\r\nAccept: */*\r\n");
    service_expect_not(1, "X-Key");
    service_expect_not(1, "traceparent");
}

static void an_action_is_found_by_its_id(void **state)
{
    (void)state;
    http_use("'actions':[{'id':'a','description':'d','path':'/a'},"
             "{'id':'b','description':'d','path':'/b'}]");
    service_next(200, "", "");
    (void)http_do("b", "{}");
    service_expect(0, "GET /b ");
    http_says(http_do("c", "{}"), "'class':'TOOL_NOT_FOUND'");
}

/* ---- answers ---- */

static void an_answer_is_json_or_text_by_its_type_or_as_the_action_says(void **state)
{
    static const struct {
        const char *output, *headers, *body, *says;
    } rows[] = {
        {"auto", "Content-Type: application/json\r\n", "{'a':[1,2.50]}", "'data':{'a':[1,2.5]}"},
        {"auto", "Content-Type: application/problem+json; x\r\n", " 7 ", "'data':7"},
        {"auto", "Content-Type: text/plain\r\n", "{'a':1}", "'text':'{"},
        {"auto", "", "plain", "'text':'plain'"},
        {"auto", "Content-Type: application/json\r\n", "", "'text':'done (status 200)'"},
        {"json", "", "[1]", "'data':[1]"},
        {"json", "", "no", "GET /x: the answer is no JSON: "},
        {"text", "Content-Type: application/json\r\n", "[1]", "'text':'[1]'"},
        {"text", "", "\xc3\x28", "GET /x: the answer is no UTF-8 text; use output: artifact"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char members[128];
        char body[64];
        const char *reply;
        (void)snprintf(members, sizeof members,
                       "'actions':[{'id':'x','description':'d','path':'/x','output':'%s'}]",
                       rows[i].output);
        http_use(members);
        (void)snprintf(body, sizeof body, "%s", service_text(rows[i].body));
        service_next(200, rows[i].headers, body);
        reply = http_do("x", "{}");
        http_says(reply, rows[i].says);
        http_says(reply, strstr(rows[i].says, "GET") == NULL ? "'outcome':'completed'"
                                                             : "'class':'VALIDATION_ERROR'");
        http_says(reply, "'details':{'status':200,'requests':1,'durationMs':");
    }
    service_raw(STR_LIT("HTTP/1.1 200 x\r\nContent-Length: 3\r\n\r\na\0b"), SERVICE_CLOSES);
    http_says(http_do("x", "{}"), "no UTF-8 text");
}

static void what_is_kept_of_an_answer_is_named_by_pointers(void **state)
{
    static const struct {
        const char *members, *says;
    } rows[] = {
        {",'result':'/list'", "'data':[{'id':1,'t':{'x':'p'}},{'id':2},3]"},
        {",'result':'/list/1/id'", "'data':2"},
        {",'result':'/list','fields':{'n':'/id','x':'/t/x'}",
         "'data':[{'n':1,'x':'p'},{'n':2,'x':null},{'n':null,'x':null}]"},
        {",'fields':{'n':'/n'}", "'data':{'n':5}"},
        {",'fields':{}", "'data':{}"},
        {",'result':{'a':'/n','b':'/list/0'},'fields':{'k':'/id'}",
         "'data':{'a':{'k':null},'b':{'k':1}}"},
        {",'result':{'a':'/n','b':'/e'}", "'data':{'a':5,'b':[]}"},
        {",'result':'/none'", "GET /x: the answer has no /none, which the action"},
        {",'result':{'a':'/n','b':'/none'}", "the answer has no /none"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char members[256];
        (void)snprintf(members, sizeof members,
                       "'actions':[{'id':'x','description':'d','path':'/x','output':'json'%s}]",
                       rows[i].members);
        http_use(members);
        service_next(200, "",
                     "{\"n\":5,\"e\":[],\"list\":[{\"id\":1,\"t\":{\"x\":\"p\"}},"
                     "{\"id\":2},3]}");
        const char *reply = http_do("x", "{}");
        http_says(reply, rows[i].says);
        if (strstr(rows[i].says, "the answer has no") != NULL) {
            http_says(reply, "'class':'VALIDATION_ERROR'");
            http_says(reply, "'retryable':false");
        }
    }
}

static void an_answer_and_a_result_have_their_most(void **state)
{
    static char large[LIMIT_RESULT_BYTES + 64];
    const char *reply;

    (void)state;
    http_use("'maxBytes':5," ONE(",'output':'text'"));
    service_next(200, "", "12345");
    http_says(http_do("x", "{}"), "'text':'12345'");
    service_next(200, "", "123456");
    reply = http_do("x", "{}");
    http_says(reply, "'class':'VALIDATION_ERROR'");
    http_says(reply, "GET /x: the answer has more than 5 bytes; raise maxBytes, or use output: "
                     "artifact");
    http_use(ONE(",'output':'json'"));
    for (int more = 0; more < 2; more++) {
        (void)snprintf(large, sizeof large, "\"%0*d\"", LIMIT_RESULT_BYTES - 2 + more, 0);
        service_next(200, "", large);
        reply = http_do("x", "{}");
        if (more == 1) {
            http_says(reply, "GET /x: the result has more than");
            http_says(reply, "'class':'VALIDATION_ERROR'");
        } else {
            assert_null(strstr(reply, "keep less of it"));
        }
    }
}

/* ---- files ---- */

#define PLAN "00000000-0000-7000-8000-000000000000"

static void an_answer_can_be_a_file_of_the_plan(void **state)
{
    static const char *const types[][2] = {{"application/json; charset=x", "answer.json"},
                                           {"text/csv", "answer.csv"},
                                           {"text/html", "answer.html"},
                                           {"text/plain", "answer.txt"},
                                           {"application/pdf", "answer.pdf"},
                                           {"application/zip", "answer.zip"},
                                           {"image/png", "answer.png"},
                                           {"image/jpeg", "answer.jpg"},
                                           {"a/b", "answer.bin"},
                                           {NULL, "answer.bin"}};
    char dir[] = "/tmp/baton-http-XXXXXX";
    char path[128];
    char json[256];
    const char *reply;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/artifacts", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/artifacts/" PLAN, dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(json, sizeof json, "{\"artifactDir\":\"%s\"}", path);
    http_use("'maxBytes':100000," ONE(",'output':'artifact'"));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char header[64] = "";
        char want[64];
        if (types[i][0] != NULL) {
            (void)snprintf(header, sizeof header, "Content-Type: %s\r\n", types[i][0]);
        }
        service_next(200, header, "{\"a\":1}");
        reply = steps_run(steps_make("x", json), http_run, http_used());
        http_says(reply, "'text':'the answer is in the file of this step'");
        (void)snprintf(want, sizeof want, "'artifacts':[{'name':'%s',", types[i][1]);
        http_says(reply, want);
        http_says(reply, "'bytes':7,");
        if (types[i][0] != NULL) {
            (void)snprintf(want, sizeof want, "'mediaType':'%s'", types[i][0]);
            http_says(reply, want);
        } else {
            assert_null(strstr(reply, "mediaType"));
        }
    }
    service_next(204, "", "");
    reply = steps_run(steps_make("x", json), http_run, http_used());
    http_says(reply, "'text':'done (status 204), without a body'");
    service_next(404, "", "{\"message\":\"none\"}"); /* an error is no file */
    reply = steps_run(steps_make("x", json), http_run, http_used());
    http_says(reply, "GET /x: status 404: none");
    assert_null(strstr(reply, "artifacts"));
    /* What has come in part is not asked for again. */
    service_raw(STR_LIT("HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\nhalf"), SERVICE_CLOSES);
    reply = steps_run(steps_make("x", json), http_run, http_used());
    http_says(reply, "'class':'SERVICE_UNAVAILABLE'");
    assert_null(strstr(reply, "artifacts"));
    assert_int_equal(service_count(), sizeof types / sizeof types[0] + 3);
    service_next(200, "", "x");
    reply = http_do("x", "{}"); /* a plan without a place for files */
    http_says(reply, "'outcome':'failed'");
    assert_null(strstr(reply, "stopped on request"));
    assert_int_equal(tree_drop(dir), 0);
}

static void a_body_nests_as_deep_as_settings_may(void **state)
{
    static const char deep[] = "[[[[[[[[[[[[['{v}']]]]]]]]]]]]]";

    (void)state;
    http_use(ONE(",'method':'POST','body':[[[[[[[[[[[[['{v}']]]]]]]]]]]]]"));
    service_next(200, "", "");
    (void)http_do("x", "{'v':'{v}'}");
    service_expect(0, service_text(deep));
}

static void an_action_has_a_time_of_its_own(void **state)
{
    const msec began = clock_mono_ms();

    (void)state;
    http_use(ONE(",'timeoutMs':1"));
    service_raw(STR_LIT(""), SERVICE_WAITS);
    http_says(http_do("x", "{}"), "'class':'TIMEOUT'");
    http_use("'timeoutMs':1," ONE(""));
    service_raw(STR_LIT(""), SERVICE_WAITS);
    http_says(http_do("x", "{}"), "'class':'TIMEOUT'");
    assert_true(clock_mono_ms() - began < 15000);
}

/* ---- the card ---- */

static void an_action_says_what_a_step_may_give(void **state)
{
    (void)state;
    http_use("'actions':[{'id':'x','description':'d','path':'/x/{id}/{id}','method':'POST',"
             "'query':{'q':'{filter.text}{filter.more}'},'headers':{'X-A':'{a-b}'},"
             "'body':[{'k':'{v}'},'{id}']},"
             "{'id':'l','description':'d','path':'/l','pages':{'next':'link'}},"
             "{'id':'m','description':'d','path':'/l','pages':{'next':'link'},'query':{'limit':"
             "'{limit}'}},"
             "{'id':'own','description':'d','path':'/l','inputSchema':{'type':'object'}}]");
    assert_string_equal(http_used()->actions[0].input_schema,
                        service_text("{'type':'object','properties':{'id':{},'filter':{},'a-b':{},"
                                     "'v':{}},'required':['id'],'additionalProperties':false}"));
    assert_string_equal(
        http_used()->actions[1].input_schema,
        service_text("{'type':'object','properties':{'limit':{'type':'integer','minimum':1,"
                     "'description':'at most so many items; missing = all of them'}},'required':[],"
                     "'additionalProperties':false}"));
    assert_string_equal(http_used()->actions[2].input_schema,
                        service_text("{'type':'object','properties':{'limit':{}},'required':[],"
                                     "'additionalProperties':false}"));
    assert_string_equal(http_used()->actions[3].input_schema, service_text("{'type':'object'}"));
    assert_true(http_action_uses(&http_used()->actions[2], "limit"));
    assert_false(http_action_uses(&http_used()->actions[1], "limit"));
    assert_true(http_action_uses(&http_used()->actions[0], "v"));
    assert_false(http_action_uses(&http_used()->actions[0], "id2"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, http_begin)
    const struct CMUnitTest tests[] = {
        TEST(values_stand_in_their_places_with_their_types),
        TEST(a_text_that_is_one_placeholder_is_its_value),
        TEST(a_value_cannot_leave_its_place),
        TEST(an_address_has_at_most_its_bytes),
        TEST(a_body_is_json_a_form_or_empty),
        TEST(the_headers_of_an_action_come_before_those_of_all),
        TEST(an_action_is_found_by_its_id),
        TEST(an_answer_is_json_or_text_by_its_type_or_as_the_action_says),
        TEST(what_is_kept_of_an_answer_is_named_by_pointers),
        TEST(an_answer_and_a_result_have_their_most),
        TEST(an_answer_can_be_a_file_of_the_plan),
        TEST(a_body_nests_as_deep_as_settings_may),
        TEST(an_action_has_a_time_of_its_own),
        TEST(an_action_says_what_a_step_may_give),
    };

    return cmocka_run_group_tests(tests, http_start, http_stop);
}
