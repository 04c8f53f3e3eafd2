/* An MCP server over the standard streams of a process, and what a server's tools and settings
 * become. Servers are scripts of the shell: see mcp_stdio. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents/mcp/message.h"
#include "agents/mcp/stdio_internal.h"
#include "protocol/base/clock.h"
#include "tests/support/heap.h"
#include "tests/unit/agents/mcp_world.h"

#define TEXT(id, text)                                                                             \
    "s '{~id~:" id ",~result~:{~content~:[{~type~:~text~,~text~:~" text "~}]}}'; "

static struct bt_error err;

static void heard(const char *part)
{
    if (strstr(mcp_heard(), service_text(part)) == NULL) {
        fail_msg("%s was not heard in %s", part, mcp_heard());
    }
}

static void says(const char *part)
{
    if (strstr(err.msg, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    }
}

/* ---- calls ---- */

static void a_call_is_a_line_and_so_is_its_answer(void **state)
{
    (void)state;
    mcp_stdio(true, "r; " TEXT("2", "one") "r; printf '  \\r\\n\\n'; " TEXT("3", "two"), "");
    mcp_says(mcp_do("work", "{'x':'a\\nb'}"), "'text':'one'");
    mcp_says(mcp_do("read", "{}"), "'text':'two'");
    heard("{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'do "
          "work','arguments':{'x':'a\\nb'"
          "},'_meta':{'io.modelcontextprotocol/protocolVersion'");
    heard("'progressToken':3}}}\n");
    mcp_stdio(false, "r; " TEXT("3", "old"), "");
    mcp_says(mcp_do("work", "{}"), "'text':'old'");
    heard("'params':{'name':'do work','arguments':{},'_meta':{'progressToken':3}}}\n");
}

static void what_is_no_answer_to_the_call_is_left_out(void **state)
{
    (void)state;
    mcp_stdio(true,
              "r; echo no json; echo '[1]'; s '{~id~:99,~result~:{}}'; s '{~id~:~2~,~result~:{}}'; "
              "s '{~id~:2}'; "
              "s '{~method~:~notifications/progress~,~params~:{~progressToken~:2,~progress~:1}}'; "
              "s '{~method~:~notifications/progress~,~params~:{~progressToken~:~x~}}'; "
              "s '{~method~:~notifications/tools/list_changed~}'; " TEXT("2", "mine") "r; " TEXT(
                  "3", "more"),
              "");
    mcp_says(mcp_do("work", "{}"), "'text':'mine'");
    mcp_says(mcp_do("work", "{}"), "'text':'more'");
}

static void a_server_that_asks_is_answered(void **state)
{
    (void)state;
    mcp_stdio(false,
              "r; s '{~id~:~p~,~method~:~ping~}'; r; s '{~id~:7,~method~:~roots/list~}'; r; "
              "s '{~id~:~e~,~method~:~elicitation/create~,~params~:{~message~:~Year?~}}'; r; " TEXT(
                  "3", "x"),
              "");
    mcp_says(mcp_do("work", "{}"), "'prompt':'Year?'");
    heard("{'jsonrpc':'2.0','id':'p','result':{}}\n");
    heard("{'jsonrpc':'2.0','id':7,'error':{'code':-32601,'message':'this client answers no such "
          "request'}}\n");
    heard("{'jsonrpc':'2.0','id':'e','result':{'action':'cancel'}}\n");
    mcp_stdio(
        false,
        "r; s '{~id~:~e~,~method~:~elicitation/create~,~params~:{~message~:~Year?~}}'; r; " TEXT(
            "3", "x"),
        "");
    mcp_says(mcp_do("work", "{'mcp_answers':{'answer':{'y':1984}}}"), "'text':'x'");
    heard("{'jsonrpc':'2.0','id':'e','result':{'action':'accept','content':{'y':1984}}}\n");
}

static void a_call_that_is_not_answered_is_cancelled(void **state)
{
    struct bt_step *step = steps_make("work", "{}");
    const char *reply;
    msec began = clock_mono_ms();

    (void)state;
    mcp_stdio(true, "r; r; r; r; " TEXT("3", "next"), ",'timeoutMs':300");
    reply = mcp_do("work", "{}");
    mcp_says(reply, "'class':'TIMEOUT','message':'no answer within 300 ms; whether it took effect "
                    "is not known'");
    assert_in_range(clock_mono_ms() - began, 300, 20000);
    atomic_store(&step->cancelled, true);
    reply = steps_run(step, mcp_run, mcp_used());
    mcp_says(reply, "'class':'CANCELLED'");
    began = clock_mono_ms();
    while (strstr(mcp_heard(), "\"requestId\":3") == NULL && clock_mono_ms() - began < 20000) {
        (void)sched_yield();
    }
    heard("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':2}}\n");
    heard("'params':{'requestId':3}}\n");
}

static void a_server_that_ends_is_started_again(void **state)
{
    const char *reply;

    (void)state;
    mcp_stdio(true, "r; exit 3", "");
    reply = mcp_do("work", "{}");
    mcp_says(reply, "'class':'SERVICE_UNAVAILABLE'");
    steps_expect(reply, "the server's process ended; whether it took effect is not known");
    mcp_says(mcp_do("read", "{}"), "'retryable':true");
    heard("'id':2,'method':'tools/call'");
    heard("'id':4,'method':'tools/call'"); /* the era was found again by 3 */
    mcp_stdio(true, "r; exit 3", ",'cwd':'/tmp'");
    (void)mcp_do("work", "{}");
    mcp_lose();
    reply = mcp_do("work", "{}");
    mcp_says(reply, "the server does not start again");
    mcp_says(reply, "'retryable':true"); /* nothing was sent */
}

static void a_line_has_at_most_16_mib(void **state)
{
    (void)state;
    mcp_stdio(true, "r; head -c 16777217 /dev/zero | tr '\\0' x; sleep 60", "");
    steps_expect(mcp_do("read", "{}"), "the server's process ended"); /* it is not read any more */
}

/* ---- the process ---- */

static void a_server_gets_a_small_environment_and_its_directory(void **state)
{
    const char *reply;

    (void)state;
    assert_int_equal(setenv("MCP_PASSED", "yes", 1), 0);
    assert_int_equal(setenv("MCP_EMPTY", "", 1), 0);
    assert_int_equal(setenv("MCP_KEPT", "no", 1), 0);
    assert_int_equal(setenv("BATON_INSTANCE_ID", "an-id", 1), 0);
    assert_int_equal(setenv("BATON_SPAWNED", "1", 1), 0);
    assert_int_equal(setenv("BATON_STATE", "/x", 1), 0);
    mcp_stdio(true, "r; x=$(env | sort | tr '\\n' ' '); " TEXT("2", "'\"$x in $(pwd)\"'"),
              ",'env':{'MINE':'1','PATH':'/bin:/usr/"
              "bin'},'passEnv':['MCP_PASSED','MCP_EMPTY','MCP_NONE','MINE'],"
              "'cwd':'/tmp'");
    reply = mcp_do("work", "{}");
    steps_expect(reply, "BATON_INSTANCE_ID=an-id BATON_SPAWNED=1 HOME=");
    steps_expect(reply, " MCP_PASSED=yes MINE=1 ");
    steps_expect(reply, " PATH=/bin:/usr/bin ");
    steps_expect(reply, " in /tmp\"");
    assert_null(strstr(reply, "MCP_KEPT"));
    assert_null(strstr(reply, "MCP_EMPTY"));
    assert_null(strstr(reply, "BATON_STATE"));
    assert_int_equal(unsetenv("BATON_INSTANCE_ID"), 0);
    assert_int_equal(unsetenv("BATON_SPAWNED"), 0);
    assert_int_equal(unsetenv("BATON_STATE"), 0);
    assert_int_equal(unsetenv("LANG"), 0);
    mcp_stdio(true, "r; " TEXT("2", "'\"$LANG\"'"), "");
    mcp_says(mcp_do("work", "{}"), "'text':'C.UTF-8'");
}

static void a_server_that_cannot_be_started_is_named(void **state)
{
    (void)state;
    (void)mcp_use("'command':['/no/such/program','x']");
    assert_int_equal(mcp_connect(&err), BT_NOT_FOUND);
    says("/no/such/program: there is no such program, or no such cwd");
    (void)mcp_use("'command':['true'],'cwd':'/no/such'");
    assert_int_equal(mcp_connect(&err), BT_NOT_FOUND);
    (void)mcp_use("'command':['/tmp']");
    assert_int_not_equal(mcp_connect(&err), BT_OK);
    says("starting /tmp");
    (void)mcp_use("'command':['true']");
    assert_int_equal(mcp_connect(&err), BT_UNAVAILABLE);
    says("initialize: the server");
}

static bool there(pid_t pid)
{
    return kill(pid, 0) == 0 || errno != ESRCH;
}

static int descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n;
}

static void a_server_is_ended_with_what_it_started(void **state)
{
    static const char *const scripts[] = {"q; q; q", "trap '' TERM; while :; do sleep 1; done",
                                          "while :; do sleep 1; done"};
    const int before = descriptors();

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char script[256];
        pid_t pid;
        msec began;
        (void)snprintf(script, sizeof script,
                       "sleep 600 & r; s \"{~id~:2,~result~:{~content~:[{~type~:~text~,"
                       "~text~:~$!~}]}}\"; %s",
                       scripts[i]);
        mcp_stdio(true, script, "");
        pid = (pid_t)strtol(strstr(mcp_do("work", "{}"), "\"text\":\"") + 8, NULL, 10);
        assert_true(pid > 1 && there(pid));
        began = clock_mono_ms();
        mcp_drop();
        assert_true(clock_mono_ms() - began < 20000);
        while (there(pid)) { /* init takes it */
            (void)sched_yield();
            assert_true(clock_mono_ms() - began < 20000);
        }
    }
    assert_int_equal(descriptors(), before);
}

/* ---- messages ---- */

static struct buf bytes;

/* "'" for '"'; "$" stays. */
static struct doc doc_of(const char *json)
{
    char text[4096];

    (void)snprintf(text, sizeof text, "%s", json);
    for (char *at = text; (at = strchr(at, '\'')) != NULL;) {
        *at = '"';
    }
    buf_done(&bytes);
    buf_init(&bytes, 65536);
    assert_int_equal(json_to_doc(str_from(text), NULL, &bytes, &err), BT_OK);
    return doc_from_buf(&bytes);
}

static void a_message_is_of_one_kind(void **state)
{
    static const struct {
        const char *json;
        enum mcp_kind kind;
        uint64_t id;
    } rows[] = {{"{'id':5,'result':{}}", MCP_RESULT, 5},
                {"{'id':'5','result':{}}", MCP_RESULT, 0},
                {"{'id':null,'result':1}", MCP_RESULT, 0},
                {"{'result':{}}", MCP_RESULT, 0},
                {"{'id':5,'error':{}}", MCP_ERROR, 5},
                {"{'id':5,'error':'x'}", MCP_BAD, 5},
                {"{'id':5}", MCP_BAD, 5},
                {"{'id':5,'method':'m'}", MCP_REQUEST, 5},
                {"{'id':'a','method':'m'}", MCP_REQUEST, 0},
                {"{'method':'m'}", MCP_NOTE, 0},
                {"{'id':null,'method':'m'}", MCP_NOTE, 0},
                {"[]", MCP_BAD, 0},
                {"7", MCP_BAD, 0},
                {"{'id':-5,'result':{}}", MCP_RESULT, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mcp_message m = mcp_message_read(doc_of(rows[i].json));
        if (m.kind != rows[i].kind || m.id_u64 != rows[i].id) {
            fail_msg("%s: %d, %d", rows[i].json, (int)m.kind, (int)m.id_u64);
        }
    }
    assert_int_equal(doc_head(mcp_message_read(doc_of("{'method':'m','params':{'a':1}}")).body).n,
                     1);
    assert_null(mcp_message_read(doc_of("{'method':'m'}")).body.ptr);
}

static void a_message_is_written_in_one_line(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 4096);
    assert_int_equal(mcp_message_write(0, "m", (struct doc){0}, &out, &err), BT_OK);
    assert_string_equal(buf_cstr(&out), service_text("{'jsonrpc':'2.0','method':'m'}"));
    buf_clear(&out);
    assert_int_equal(mcp_message_write(9, "m", doc_of("{'a':'x\\ny'}"), &out, &err), BT_OK);
    assert_string_equal(
        buf_cstr(&out),
        service_text("{'jsonrpc':'2.0','id':9,'method':'m','params':{'a':'x\\ny'}}"));
    buf_clear(&out);
    mcp_message_params(false, 0, "", NULL, 0, &out);
    assert_int_equal(doc_head(doc_from_buf(&out)).n, 0); /* nothing to say: no _meta */
    buf_clear(&out);
    mcp_message_params(false, 0, "00-trace", NULL, 0, &out);
    assert_true(
        str_is(doc_string(doc_path(doc_from_buf(&out), STR_LIT("_meta.traceparent"))), "00-trace"));
    assert_int_equal(doc_head(doc_get(doc_from_buf(&out), STR_LIT("_meta"))).n, 1);
    buf_clear(&out);
    mcp_message_params(true, 7, "00-trace", NULL, 0, &out);
    assert_int_equal(doc_head(doc_get(doc_from_buf(&out), STR_LIT("_meta"))).n, 5);
    buf_done(&out);
    buf_init(&out, 16); /* what is larger than it may be is none */
    assert_int_equal(mcp_message_write(9, "a method", (struct doc){0}, &out, &err), BT_LIMIT);
    buf_done(&out);
}

/* ---- skills ---- */

static const char *skill_of(const char *tool, struct bt_skill *ret, struct mcp_tool *ret_tool)
{
    struct mcp_agent *agent = mcp_used();

    if (mcp_skill_make(agent->settings, &agent->arena, doc_of(tool), ret, ret_tool, &err) !=
        BT_OK) {
        return NULL;
    }
    return ret->input_schema;
}

#define ANSWERS                                                                                    \
    "'mcp_answers':{'type':'object','description':'what a person answered to the server; leave "   \
    "it out'}"

static void a_tool_becomes_a_skill(void **state)
{
    struct bt_skill skill;
    struct mcp_tool tool;
    char about[2000];

    (void)state;
    (void)mcp_use("'command':['true'],'timeoutMs':77,'effects':{'read*':'none','do*':'idempotent','"
                  "x':'unsafe'}");
    assert_string_equal(
        skill_of("{'name':'a b','description':'Does "
                 "it.','title':'T','inputSchema':{'type':'object','properties':{"
                 "'x':{'$ref':'#/d'}},'required':['x'],'d':{'type':'integer'}}}",
                 &skill, &tool),
        service_text(
            "{'type':'object','required':['x'],'properties':{'x':{'type':'integer'}," ANSWERS
            "}}"));
    assert_string_equal(skill.id, "a_b");
    assert_string_equal(skill.name, "T");
    assert_string_equal(skill.description, "Does it.");
    assert_string_equal(skill.effects, "unsafe");
    assert_int_equal(skill.max_ms, 77);
    assert_string_equal(tool.skill, "a_b");
    assert_string_equal(tool.tool, "a b");
    assert_true(tool.unsafe);
    assert_string_equal(skill_of("{'name':'n'}", &skill, &tool),
                        service_text("{'properties':{" ANSWERS "}}"));
    assert_null(skill.name);
    assert_string_equal(skill.description, "n");
    assert_string_equal(skill_of("{'name':'n','inputSchema':true}", &skill, &tool),
                        service_text("{'properties':{" ANSWERS "}}"));
    (void)snprintf(about, sizeof about, "{'name':'n','description':'%01200d'}", 0);
    assert_non_null(skill_of(about, &skill, &tool));
    assert_int_equal(strlen(skill.description), 1000);
    assert_null(skill_of("{}", &skill, &tool));
    says("a tool without a name");
    assert_null(skill_of("{'name':'n','inputSchema':{'$ref':'#/none'}}", &skill, &tool));
    says("tool n: $ref #/none: leads to nothing");
}

static void settings_and_hints_say_what_a_tool_does(void **state)
{
    static const char *const rows[][2] = {
        {"{'name':'read_x'}", "none"},
        {"{'name':'do','annotations':{'readOnlyHint':true}}", "idempotent"},
        {"{'name':'x','annotations':{'readOnlyHint':true}}", "unsafe"},
        {"{'name':'y','annotations':{'readOnlyHint':true,'idempotentHint':true}}", "none"},
        {"{'name':'y','annotations':{'readOnlyHint':false,'idempotentHint':true}}", "idempotent"},
        {"{'name':'y','annotations':{'readOnlyHint':1,'idempotentHint':'true'}}", "unsafe"},
        {"{'name':'y'}", "unsafe"}};

    (void)state;
    (void)mcp_use("'command':['true'],'effects':{'read*':'none','do*':'idempotent','x':'unsafe'}");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bt_skill skill;
        struct mcp_tool tool;
        assert_non_null(skill_of(rows[i][0], &skill, &tool));
        assert_string_equal(skill.effects, rows[i][1]);
        assert_true(tool.unsafe == (strcmp(rows[i][1], "unsafe") == 0));
    }
}

/* ---- settings ---- */

static void wrong_settings_are_named(void **state)
{
    static const char *const rows[][2] = {
        {"{}", "give one of command (a server over stdio) and url (over HTTP)"},
        {"{'command':['x'],'url':'$'}", "give one of command"},
        {"{'command':[]}", "command: expected a list: the program and its arguments"},
        {"{'command':['']}", "command: expected a list: the program"},
        {"{'command':7}", "command: expected a list of at most 256 texts"},
        {"{'command':['x'],'env':{'A=':'1'}}", "env: 'A=' is not a variable name"},
        {"{'command':['x'],'passEnv':7}", "passEnv: expected a list of at most 64 texts"},
        {"{'command':['x'],'cwd':7}", "cwd: expected a text"},
        {"{'command':['x'],'tols':[]}", "did you mean 'tools'?"},
        {"{'command':['x'],'tools':7}", "tools: expected a list of at most 64 texts"},
        {"{'command':['x'],'agentId':7}", "agentId: expected a text"},
        {"{'command':['x'],'effects':{'a':'some'}}", "effects.a: expected one of none"},
        {"{'command':['x'],'timeoutMs':0}", "timeoutMs: expected a number from 1 to 86400000"},
        {"{'command':['x'],'timeoutMs':86400001}",
         "timeoutMs: expected a number from 1 to 86400000"},
        {"{'url':'http://example.org'}", "url: http only to this machine"},
        {"{'url':'$','allowHttp':1}", "allowHttp: expected true or false"},
        {"{'url':'$','headers':{'a':1}}", "headers.a: expected a text"},
        {"{'url':'$','bearer':'x'}", "bearer: a secret does not stand in settings"},
        {"{'url':'$','allowPrivate':['x']}", "allowPrivate[0]"},
    };
    struct mcp_settings *s = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(mcp_settings_read(service_text(rows[i][0]), &s, &err), BT_INVALID);
        assert_null(s);
        says(rows[i][1]);
    }
    assert_int_equal(mcp_settings_read(
                         service_text("{'command':['x','y'],'agentId':'me','cwd':'/c'}"), &s, &err),
                     BT_OK);
    assert_int_equal(s->timeout_ms, 60000);
    assert_string_equal(s->command[1], "y");
    assert_string_equal(s->agent_id, "me");
    assert_string_equal(s->cwd, "/c");
    assert_null(s->url);
    assert_true(mcp_settings_want(s, STR_LIT("anything")));
    mcp_settings_free(s);
    assert_int_equal(
        mcp_settings_read(service_text("{'url':'$','tools':['a*','b'],'timeoutMs':1}"), &s, &err),
        BT_OK);
    assert_true(mcp_settings_want(s, STR_LIT("ab")) && mcp_settings_want(s, STR_LIT("b")));
    assert_false(mcp_settings_want(s, STR_LIT("bc")) || mcp_settings_want(s, STR_LIT("c")));
    mcp_settings_free(s);
    assert_int_equal(
        mcp_settings_read(service_text("{'url':'http://example.org','allowHttp':true,'timeoutMs':"
                                       "86400000}"),
                          &s, &err),
        BT_OK);
    mcp_settings_free(s);
    mcp_settings_free(NULL);
}

static void make_some(void *self)
{
    struct mcp_settings *s = NULL;
    struct bt_skill skill;
    struct mcp_tool tool;

    (void)self;
    (void)mcp_use("'command':['true']");
    (void)skill_of("{'name':'a','inputSchema':{'properties':{'x':{}}}}", &skill, &tool);
    (void)skill_of("{'name':'a','inputSchema':{'$ref':'#/x'}}", &skill, &tool);
    assert_int_equal(mcp_settings_read("{\"url\":1}", &s, &err), BT_INVALID);
    (void)mcp_use("'command':['/no/such']");
    assert_int_equal(mcp_connect(&err), BT_NOT_FOUND);
    mcp_drop();
}

static void what_is_made_is_given_back(void **state)
{
    (void)state;
    heap_is_given_back(make_some, NULL);
}

static int stop(void **state)
{
    buf_done(&bytes);
    return mcp_stop(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, mcp_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_call_is_a_line_and_so_is_its_answer),
        TEST(what_is_no_answer_to_the_call_is_left_out),
        TEST(a_server_that_asks_is_answered),
        TEST(a_call_that_is_not_answered_is_cancelled),
        TEST(a_server_that_ends_is_started_again),
        TEST(a_line_has_at_most_16_mib),
        TEST(a_server_gets_a_small_environment_and_its_directory),
        TEST(a_server_that_cannot_be_started_is_named),
        TEST(a_server_is_ended_with_what_it_started),
        TEST(a_message_is_of_one_kind),
        TEST(a_message_is_written_in_one_line),
        TEST(a_tool_becomes_a_skill),
        TEST(settings_and_hints_say_what_a_tool_does),
        TEST(wrong_settings_are_named),
        TEST(what_is_made_is_given_back),
    };

    return cmocka_run_group_tests(tests, mcp_start, stop);
}
