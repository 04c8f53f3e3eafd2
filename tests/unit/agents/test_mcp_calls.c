/* Calls of tools and resources of an MCP server over HTTP: both eras, streams, questions, errors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/step.h"
#include "tests/support/heap.h"
#include "tests/unit/agents/mcp_world.h"

/* ---- the era of the server ---- */

static void the_era_of_a_server_is_found_once(void **state)
{
    struct bt_error err;

    (void)state;
    (void)mcp_use("'url':'$/mcp','allowPrivate':['127.0.0.1']");
    mcp_next(MCP_IS_MODERN);
    assert_int_equal(mcp_connect(&err), BT_OK);
    service_expect(0, "POST /mcp HTTP/1.1\r\n");
    service_expect(0, "\r\nContent-Type: application/json\r\n");
    service_expect(0, "\r\nAccept: application/json, text/event-stream\r\n");
    service_expect(0, "\r\nMCP-Protocol-Version: " MCP_MODERN "\r\n");
    service_expect(0, "\r\nMcp-Method: server/discover\r\n");
    service_expect_not(0, "Mcp-Name");
    service_expect(
        0, service_text(
               "\r\n\r\n{'jsonrpc':'2.0','id':1,'method':'server/discover','params':{'_meta':{"
               "'io.modelcontextprotocol/protocolVersion':'" MCP_MODERN "',"
               "'io.modelcontextprotocol/clientInfo':{'name':'baton','version':'" BATON_VERSION
               "'},'io.modelcontextprotocol/clientCapabilities':{'elicitation':{}}}}}"));
    assert_int_equal(service_count(), 1);
}

static void an_older_server_gets_a_handshake(void **state)
{
    static const char *const probes[] = {MCP_IS_LEGACY, "{'id':1,'result':{}}",
                                         "{'id':1,'result':{'supportedVersions':['2025-01-01']}}"};
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        service_forget();
        (void)mcp_use("'url':'$/mcp','allowPrivate':['127.0.0.1']");
        mcp_next(probes[i]);
        service_next(200, "Mcp-Session-Id: s1\r\n", service_text(MCP_HELLO));
        service_next(202, "", "");
        assert_int_equal(mcp_connect(&err), BT_OK);
        service_expect(
            1,
            service_text("\r\n\r\n{'jsonrpc':'2.0','id':2,'method':'initialize','params':{"
                         "'protocolVersion':'" MCP_LEGACY "','capabilities':{"
                         "'elicitation':{}},'clientInfo':{'name':'baton','version':'" BATON_VERSION
                         "'}}}"));
        service_expect_not(1, "MCP-Protocol-Version");
        service_expect(
            2, service_text("\r\n\r\n{'jsonrpc':'2.0','method':'notifications/initialized'}"));
        service_expect(2, "\r\nMCP-Protocol-Version: " MCP_LEGACY "\r\n");
        service_expect(2, "\r\nMcp-Session-Id: s1\r\n");
        service_expect_not(2, "Mcp-Method");
    }
}

static void a_server_that_refuses_the_handshake_is_none(void **state)
{
    struct bt_error err;

    (void)state;
    (void)mcp_use("'url':'$/mcp','allowPrivate':['127.0.0.1']");
    mcp_next(MCP_IS_LEGACY);
    mcp_next("{'id':2,'error':{'code':-32000,'message':'not you'}}");
    assert_int_equal(mcp_connect(&err), BT_PROTOCOL);
    assert_string_equal(err.msg, "initialize: the server answered error -32000: not you");
    (void)mcp_use("'url':'$/mcp','allowPrivate':['127.0.0.1']");
    mcp_next(MCP_IS_LEGACY);
    mcp_next(MCP_HELLO);
    service_next(400, "", "");
    assert_int_equal(mcp_connect(&err), BT_PROTOCOL);
    assert_string_equal(err.msg, "initialize: the server answered a note with status 400");
}

/* ---- tools ---- */

static void a_tool_is_called_as_its_era_has_it(void **state)
{
    (void)state;
    assert_int_equal(setenv("MCP_KEY", "bearer-0123456789", 1), 0);
    for (int modern = 0; modern < 2; modern++) {
        mcp_http(modern == 1, ",'headers':{'X-A':'1','X-B':'2'},'bearer':{'env':'MCP_KEY'}");
        mcp_next(modern == 1 ? "{'id':2,'result':{'content':[{'type':'text','text':'fine'}]}}"
                             : "{'id':3,'result':{'content':[{'type':'text','text':'fine'}]}}");
        mcp_says(mcp_do("work", "{'x':[5]}"), "'text':'fine'");
        service_expect(0,
                       service_text("'method':'tools/call','params':{'name':'do work','arguments':{"
                                    "'x':[5]},'_meta':{"));
        service_expect(0, service_text(modern == 1 ? "'progressToken':2}}}"
                                                   : "'_meta':{'progressToken':3}}}"));
        service_expect(0, "\r\nX-A: 1\r\n");
        service_expect(0, "\r\nX-B: 2\r\n");
        service_expect(0, "\r\nAuthorization: Bearer bearer-0123456789\r\n");
        if (modern == 1) {
            service_expect(0, "\r\nMcp-Method: tools/call\r\n");
            service_expect(0, "\r\nMcp-Name: do work\r\n");
            service_expect_not(0, "Mcp-Session-Id");
        } else {
            service_expect(0, "\r\nMcp-Session-Id: s1\r\n");
        }
    }
    mcp_says(mcp_do("other", "{}"), "the server has no tool");
    mcp_says(mcp_do("other", "{}"), "'class':'TOOL_NOT_FOUND'");
    mcp_next("{'id':3,'result':{'content':[]}}");
    mcp_says(mcp_do("work", "{}"), "'text':'done'");
    service_expect(1, service_text("'arguments':{}"));
}

static void each_content_of_a_result_is_kept(void **state)
{
    static const struct {
        const char *result, *says;
    } rows[] = {
        {"{'content':[{'type':'text','text':'a'},{'type':'text','text':'b'}]}", "'text':'a\\nb'"},
        {"{'content':[],'structuredContent':{'k':1}}", "'result':{'data':{'k':1}}"},
        {"{'content':[{'type':'text','text':'a'}],'structuredContent':[1]}",
         "'text':'a','data':[1]"},
        {"{'content':[{'type':'text','text':'a'},{'type':'image','data':'AA'}]}",
         "'text':'a','data':{'content':[{'type':'text','text':'a'},{'type':'image','data':'AA'}]}"},
        {"{'content':[{'type':'image','data':'AA'}],'structuredContent':5}",
         "'result':{'data':{'content':[{'type':'image','data':'AA'}],'structuredContent':5}}"},
        {"{'content':[{'type':'text'}]}", "'data':{'content':[{'type':'text'}]}"},
        {"{'content':[{'type':'note','text':'x'}]}",
         "'data':{'content':[{'type':'note','text':'x'}]}"},
        {"{'content':7}", "'text':'done'"},
        {"{}", "'text':'done'"},
        {"{'content':[{'type':'text','text':'x'}],'isError':false}", "'text':'x'"},
    };

    (void)state;
    mcp_http(true, "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char message[512];
        const char *reply;
        (void)snprintf(message, sizeof message, "{'id':%zu,'result':%s}", i + 2, rows[i].result);
        mcp_next(message);
        reply = mcp_do("work", "{}");
        mcp_says(reply, "'outcome':'completed'");
        mcp_says(reply, rows[i].says);
    }
}

static void a_tool_that_fails_says_why(void **state)
{
    static char message[3000];

    (void)state;
    mcp_http(true, "");
    for (int unsafe = 0; unsafe < 2; unsafe++) {
        const char *reply;
        (void)snprintf(
            message, sizeof message,
            "{'id':%d,'result':{'content':[{'type':'text','text':'it broke'}],'isError':true}}",
            2 + unsafe);
        mcp_next(message);
        reply = mcp_do(unsafe ? "work" : "read", "{}");
        mcp_says(reply, "'class':'UNKNOWN','message':'the tool failed: it broke'");
        mcp_says(reply, unsafe ? "'retryable':false" : "'retryable':true");
    }
    (void)snprintf(
        message, sizeof message,
        "{'id':4,'result':{'content':[{'type':'text','text':'%01200d'}],'isError':true}}", 0);
    mcp_next(message);
    (void)snprintf(message, sizeof message, "the tool failed: %01000d\"", 0);
    steps_expect(mcp_do("read", "{}"), message); /* at most so many bytes */
}

static void what_is_no_answer_is_an_error_of_the_server(void **state)
{
    static const struct {
        int status;
        const char *body, *class, *says;
        bool again;
    } rows[] = {
        {200, "{'id':%d,'error':{'code':-32602,'message':'wrong'}}", "VALIDATION_ERROR",
         "the server answered error -32602: wrong", false},
        {200, "{'id':%d,'error':{'code':5,'message':'x'}}", "UNKNOWN",
         "the server answered error 5: x", false},
        {200, "{'id':%d,'error':{}}", "UNKNOWN", "the server answered error 0: ", false},
        {400, "{'id':%d,'error':{'code':-32602,'message':'wrong'}}", "VALIDATION_ERROR", "-32602",
         false},
        {400, "{'error':{'code':-32602,'message':'no id'}}", "VALIDATION_ERROR", "no id", false},
        {200, "{'id':77,'result':{}}", "UNKNOWN",
         "the server answered status 200 without a message", false},
        {200, "[]", "UNKNOWN", "status 200 without a message", false},
        {200, "{broken", "UNKNOWN", "status 200 without a message", false},
        {202, "", "UNKNOWN", "status 202 without a message", false},
        {404, "", "UNKNOWN", "status 404 without a message", false},
        {401, "", "PERMISSION_DENIED", "the server answered status 401", false},
        {403, "", "PERMISSION_DENIED", "the server answered status 403", false},
        {429, "", "SERVICE_UNAVAILABLE", "the server answered status 429", true},
        {499, "", "UNKNOWN", "status 499 without a message", false},
        {500, "", "SERVICE_UNAVAILABLE", "the server answered status 500", true},
        {0, "", "SERVICE_UNAVAILABLE", "", true},
    };

    (void)state;
    for (int unsafe = 0; unsafe < 2; unsafe++) {
        mcp_http(true, "");
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            char body[256];
            char class[64];
            const char *reply;
            char *number;
            (void)snprintf(body, sizeof body, "%s", service_text(rows[i].body));
            number = strstr(body, "%d");
            if (number != NULL) {
                char rest[128];
                (void)snprintf(rest, sizeof rest, "%s", number + 2);
                (void)snprintf(number, 140, "%zu%s", i + 2, rest);
            }
            if (rows[i].status == 0) {
                service_raw(STR_LIT(""), SERVICE_CLOSES);
            } else {
                service_next(rows[i].status, "", body);
            }
            reply = mcp_do(unsafe ? "work" : "read", "{}");
            (void)snprintf(class, sizeof class, "'class':'%s'", rows[i].class);
            mcp_says(reply, class);
            steps_expect(reply, rows[i].says);
            mcp_says(reply, rows[i].again && !unsafe ? "'retryable':true" : "'retryable':false");
            assert_true((strstr(reply, "; whether it took effect is not known") != NULL) ==
                        (rows[i].again && unsafe));
        }
    }
}

static void a_call_ends_in_time(void **state)
{
    const char *reply;

    (void)state;
    mcp_http(true, ",'timeoutMs':300");
    service_raw(STR_LIT(""), SERVICE_WAITS);
    reply = mcp_do("read", "{}");
    mcp_says(reply, "'class':'TIMEOUT'");
    mcp_says(reply, "'retryable':true");
    service_raw(STR_LIT(""), SERVICE_WAITS);
    reply = mcp_do("work", "{}");
    mcp_says(reply, "'retryable':false");
    mcp_says(reply, "; whether it took effect is not known");
}

/* ---- a stream ---- */

static void stream(const char *messages, enum service_end end)
{
    struct buf all;
    const char *at = service_text(messages);

    buf_init(&all, 1024 * 1024);
    buf_add_cstr(&all, "HTTP/1.1 200 x\r\nContent-Type: text/event-stream\r\n\r\n");
    while (*at != 0) { /* messages stand between "|" */
        const size_t n = strcspn(at, "|");
        buf_printf(&all, "event: message\ndata: %.*s\n\n", (int)n, at);
        at += n + (at[n] != 0 ? 1 : 0);
    }
    service_raw(buf_str(&all), end);
    buf_done(&all);
}

static void a_stream_has_its_answer_among_other_messages(void **state)
{
    (void)state;
    mcp_http(true, "");
    stream("{'jsonrpc':'2.0','method':'notifications/"
           "progress','params':{'progressToken':2,'progress':1,"
           "'total':4,'message':'part'}}|{'jsonrpc':'2.0','method':'notifications/other'}|"
           "{'jsonrpc':'2.0','id':9,'result':{'content':[{'type':'text','text':'other'}]}}|"
           "{'jsonrpc':'2.0','id':2,'result':{'content':[{'type':'text','text':'mine'}]}}|"
           "{'jsonrpc':'2.0','id':2,'result':{'content':[{'type':'text','text':'late'}]}}",
           SERVICE_WAITS); /* its end is not waited for */
    mcp_says(mcp_do("work", "{}"), "'text':'mine'");
    stream("{'jsonrpc':'2.0','id':9,'result':{}}", SERVICE_CLOSES);
    mcp_says(mcp_do("work", "{}"), "status 200 without a message");
}

/* A request of the server within its stream is answered by a request of ours. */
static void a_server_that_asks_gets_an_answer(void **state)
{
    (void)state;
    mcp_http(false, "");
    stream("{'jsonrpc':'2.0','id':'p1','method':'ping'}|{'jsonrpc':'2.0','id':7,'method':'sampling/"
           "create"
           "Message','params':{}}|{'jsonrpc':'2.0','id':3,'result':{'content':[{'type':'text','"
           "text':'x'}]}}",
           SERVICE_CLOSES);
    service_next(202, "", "");
    service_next(202, "", "");
    mcp_says(mcp_do("work", "{}"), "'text':'x'");
    service_expect(1, service_text("\r\n\r\n{'jsonrpc':'2.0','id':'p1','result':{}}"));
    service_expect(1, "\r\nMcp-Session-Id: s1\r\n");
    service_expect(
        2, service_text("\r\n\r\n{'jsonrpc':'2.0','id':7,'error':{'code':-32601,'message':'this "
                        "client answers no such request'}}"));
}

/* A request in what comes back for an answer of ours is not answered. */
static void a_server_cannot_ask_for_ever(void **state)
{
    (void)state;
    mcp_http(false, "");
    service_at("/mcp", 200, "",
               "data: {\"id\":\"p\",\"method\":\"ping\"}\n\n"
               "data: {\"id\":null,\"result\":{\"content\":[]}}\n\n");
    mcp_says(mcp_do("work", "{}"), "'text':'done'");
    assert_int_equal(service_count(), 2);
}

static void every_header_is_sent_whole(void **state)
{
    char key[4097];
    char members[4096] = ",'bearer':{'env':'MCP_LONG_KEY'},'headers':{";
    char line[4200];

    (void)state;
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = 0;
    assert_int_equal(setenv("MCP_LONG_KEY", key, 1), 0);
    for (int i = 0; i < 64; i++) {
        (void)snprintf(members + strlen(members), sizeof members - strlen(members),
                       "%s'X-%d':'v%d'", i > 0 ? "," : "", i, i);
    }
    (void)snprintf(members + strlen(members), sizeof members - strlen(members), "}");
    mcp_http(true, members);
    mcp_next("{'id':2,'result':{'content':[]}}");
    mcp_says(mcp_do("work", "{}"), "'text':'done'");
    for (int i = 0; i < 64; i++) {
        (void)snprintf(line, sizeof line, "\r\nX-%d: v%d\r\n", i, i);
        service_expect(0, line);
    }
    (void)snprintf(line, sizeof line, "\r\nAuthorization: Bearer %s\r\n", key);
    service_expect(0, line);
}

static void a_question_within_a_call_goes_to_a_person(void **state)
{
    static const char asks[] =
        "{'jsonrpc':'2.0','id':'e1','method':'elicitation/create','params':{'message':'Which "
        "year?',"
        "'requestedSchema':{'type':'object','properties':{'year':{'type':'integer'}}}}}|"
        "{'jsonrpc':'2.0','id':%d,'result':{'content':[{'type':'text','text':'no year'}]}}";
    char messages[512];
    const char *reply;

    (void)state;
    mcp_http(false, "");
    (void)snprintf(messages, sizeof messages, "%.*s3%s", (int)(strstr(asks, "%d") - asks), asks,
                   strstr(asks, "%d") + 2);
    stream(messages, SERVICE_CLOSES);
    service_next(202, "", "");
    reply = mcp_do("work", "{}");
    mcp_says(reply, "'outcome':'needs_input'");
    mcp_says(reply, "'prompt':'Which year?'");
    mcp_says(reply,
             "'schema':{'type':'object','required':['mcp_answers'],'properties':{'mcp_answers':{"
             "'type':'object','properties':{'answer':{'type':'object','properties':{'year':{'type':"
             "'integer'}}}},'required':['answer']}}}");
    service_expect(1, service_text("{'jsonrpc':'2.0','id':'e1','result':{'action':'cancel'}}"));
    messages[strlen(messages) - strlen(strstr(asks, "%d") + 2) - 1] = '4';
    stream(messages, SERVICE_CLOSES);
    service_next(202, "", "");
    mcp_says(mcp_do("work", "{'x':1,'mcp_answers':{'answer':{'year':1984}}}"), "'text':'no year'");
    service_expect(2, service_text("'arguments':{'x':1},"));
    service_expect(3,
                   service_text("'id':'e1','result':{'action':'accept','content':{'year':1984}}"));
}

static void a_session_that_is_forgotten_begins_again(void **state)
{
    (void)state;
    mcp_http(false, "");
    service_next(404, "", "");
    service_next(200, "Mcp-Session-Id: s2\r\n", service_text("{'id':4,'result':{}}"));
    service_next(202, "", "");
    mcp_next("{'id':5,'result':{'content':[{'type':'text','text':'fine'}]}}");
    mcp_says(mcp_do("work", "{}"), "'text':'fine'");
    assert_int_equal(service_count(), 4);
    service_expect(3, "\r\nMcp-Session-Id: s2\r\n");
    service_next(404, "", "");
    service_next(500, "", ""); /* it does not come back: the tool was not called */
    mcp_says(mcp_do("work", "{}"), "'retryable':true");
}

/* ---- what a modern server asks for ---- */

static void a_result_that_needs_input_is_a_question(void **state)
{
    const char *reply;

    (void)state;
    mcp_http(true, "");
    mcp_next("{'id':2,'result':{'resultType':'input_required','requestState':'st','inputRequests':{"
             "'who':{"
             "'method':'elicitation/"
             "create','params':{'message':'Who?','requestedSchema':{'type':'object'}}},"
             "'when':{'method':'elicitation/create','params':{'message':'When?'}}}}}");
    reply = mcp_do("work", "{'g':1}");
    mcp_says(reply, "'outcome':'needs_input'");
    mcp_says(reply, "'prompt':'Who?\\nWhen?'");
    mcp_says(reply, "'properties':{'who':{'type':'object'},'when':{}},'required':['who','when']");
    mcp_next("{'id':3,'result':{'content':[{'type':'text','text':'fine'}]}}");
    mcp_says(mcp_do("work", "{'g':1,'mcp_answers':{'who':{'n':'Ada'},'when':{}}}"),
             "'text':'fine'");
    service_expect(
        1,
        service_text("'arguments':{'g':1},'inputResponses':{'who':{'action':'accept','content':"
                     "{'n':'Ada'}},'when':{'action':'accept','content':{}}},'requestState':'st'"));
    mcp_next("{'id':4,'result':{'content':[]}}");
    (void)mcp_do("work", "{'mcp_answers':{'who':{}}}");
    service_expect_not(2, "requestState"); /* it was given back */
    mcp_next("{'id':5,'result':{'resultType':'input_required','inputRequests':{'m':{'method':"
             "'sampling/createMessage','params':{}}}}}");
    reply = mcp_do("work", "{}");
    mcp_says(reply, "'class':'TOOL_NOT_FOUND'");
    mcp_says(reply, "the server asks for a model or for folders");
}

static void a_server_may_ask_for_so_many_rounds(void **state)
{
    (void)state;
    mcp_http(true, "");
    for (int i = 0; i < 4; i++) {
        char message[192];
        (void)snprintf(message, sizeof message,
                       "{'id':%d,'result':{'resultType':'input_required','requestState':'s%d','"
                       "inputRequests':{}}}",
                       i + 2, i);
        mcp_next(message);
    }
    mcp_next("{'id':6,'result':{'content':[{'type':'text','text':'fine'}]}}");
    mcp_says(mcp_do("work", "{}"), "'text':'fine'");
    service_expect_not(0, "requestState");
    service_expect(1, service_text("'requestState':'s0'"));
    service_expect(4, service_text("'requestState':'s3'"));
    for (int i = 0; i < 5; i++) {
        char message[128];
        (void)snprintf(message, sizeof message,
                       "{'id':%d,'result':{'resultType':'input_required'}}", i + 7);
        mcp_next(message);
    }
    mcp_says(mcp_do("work", "{}"), "the server asked for 5 more rounds and did not end");
    assert_int_equal(service_count(), 10);
}

static void so_many_states_are_kept(void **state)
{
    struct mcp_agent *agent = mcp_use("'url':'$/mcp','allowPrivate':['127.0.0.1']");
    struct bt_error err;

    (void)state;
    mcp_next(MCP_IS_MODERN);
    assert_int_equal(mcp_connect(&err), BT_OK);
    for (int i = 0; i <= MCP_STATES_MAX; i++) {
        char message[256];
        (void)snprintf(
            message, sizeof message,
            "{'id':%d,'result':{'resultType':'input_required','requestState':'s%d','inputRequests':"
            "{'w':{'method':'elicitation/create','params':{}}}}}",
            i + 2, i);
        mcp_next(message);
        (void)mcp_do("work", "{}");
        (void)snprintf(agent->states[i % MCP_STATES_MAX].key, LIMIT_KEY_BYTES, "step %d", i);
        assert_int_equal(agent->next_state, (i + 1) % MCP_STATES_MAX);
    }
    assert_string_equal(agent->states[0].text, "s64");
    assert_string_equal(agent->states[1].text, "s1");
}

/* ---- resources ---- */

static void resources_are_listed_and_read(void **state)
{
    const char *reply;

    (void)state;
    mcp_http(true, "");
    mcp_next("{'id':2,'result':{'resources':[{'uri':'note://1'}]}}");
    mcp_says(mcp_do("mcp.resources", "{}"), "'data':{'resources':[{'uri':'note://1'}]}");
    service_expect(0, "\r\nMcp-Method: resources/list\r\n");
    service_expect_not(0, "cursor");
    mcp_next("{'id':3,'result':{}}");
    (void)mcp_do("mcp.resources", "{'cursor':'c'}");
    service_expect(1, service_text("'params':{'cursor':'c',"));
    mcp_next("{'id':4,'result':{'contents':[{'uri':'note://1','text':'the note'}]}}");
    mcp_says(mcp_do("mcp.read", "{'uri':'note://1'}"), "'text':'the note'");
    service_expect(2, "\r\nMcp-Method: resources/read\r\nMcp-Name: note://1\r\n");
    service_expect(2, service_text("'params':{'uri':'note://1',"));
    mcp_next("{'id':5,'result':{'contents':[{'text':'a'},{'text':'b'}]}}");
    mcp_says(mcp_do("mcp.read", "{'uri':'u'}"), "'data':[{'text':'a'},{'text':'b'}]");
    mcp_next("{'id':6,'result':{'contents':[{'blob':'AA'}]}}");
    mcp_says(mcp_do("mcp.read", "{'uri':'u'}"), "'data':[{'blob':'AA'}]");
    mcp_next("{'id':7,'result':{}}");
    reply = mcp_do("mcp.read", "{'uri':'u'}");
    mcp_says(reply, "'class':'VALIDATION_ERROR','message':'the answer has no contents'");
    service_next(500, "", "");
    mcp_says(mcp_do("mcp.read", "{'uri':'u'}"), "'retryable':true"); /* it only reads */
}

static void run_some(void *self)
{
    (void)self;
    mcp_http(false, ",'headers':{'a':'b'}");
    stream("{'jsonrpc':'2.0','id':'p','method':'ping'}|{'jsonrpc':'2.0','id':3,'result':{'content':"
           "[{'type':"
           "'image'}]}}",
           SERVICE_CLOSES);
    service_next(202, "", "");
    (void)mcp_do("work", "{'a':1}");
    service_next(500, "", "no");
    (void)mcp_do("work", "{}");
    mcp_http(true, "");
    mcp_next(
        "{'id':2,'result':{'resultType':'input_required','requestState':'st','inputRequests':{'w':{"
        "'method':'elicitation/create','params':{}}}}}");
    (void)mcp_do("work", "{}");
    mcp_next("{'id':3,'result':{'contents':[]}}");
    (void)mcp_do("mcp.read", "{'uri':'u'}");
    mcp_drop();
    steps_forget();
    service_forget();
}

static void a_step_keeps_no_memory(void **state)
{
    (void)state;
    heap_is_given_back(run_some, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, mcp_begin)
    const struct CMUnitTest tests[] = {
        TEST(the_era_of_a_server_is_found_once),
        TEST(an_older_server_gets_a_handshake),
        TEST(a_server_that_refuses_the_handshake_is_none),
        TEST(a_tool_is_called_as_its_era_has_it),
        TEST(each_content_of_a_result_is_kept),
        TEST(a_tool_that_fails_says_why),
        TEST(what_is_no_answer_is_an_error_of_the_server),
        TEST(a_call_ends_in_time),
        TEST(a_stream_has_its_answer_among_other_messages),
        TEST(a_server_that_asks_gets_an_answer),
        TEST(a_server_cannot_ask_for_ever),
        TEST(every_header_is_sent_whole),
        TEST(a_question_within_a_call_goes_to_a_person),
        TEST(a_session_that_is_forgotten_begins_again),
        TEST(a_result_that_needs_input_is_a_question),
        TEST(a_server_may_ask_for_so_many_rounds),
        TEST(so_many_states_are_kept),
        TEST(resources_are_listed_and_read),
        TEST(a_step_keeps_no_memory),
    };

    return cmocka_run_group_tests(tests, mcp_start, mcp_stop);
}
