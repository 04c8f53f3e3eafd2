/* MCP: what each message asks the daemon for, and what its client gets, in both eras. */
#include "tests/unit/gateway/mcp_world.h"

/* ---- the beginning ---- */

static void what_is_no_message_is_refused(void **state)
{
    (void)state;
    message("{");
    expect_refused(400, RPC_PARSE, "");
    message("{'id':7,'method':'ping'}");
    expect_refused(200, RPC_REQUEST, "expected one message of JSON-RPC 2.0");
    message("[]");
    expect_refused(400, RPC_REQUEST, "expected one message");
    call("nothing", "{}");
    expect_refused(200, RPC_METHOD, "this server has no such method");
    call("nothing", "{" META("") "}");
    expect_refused(404, RPC_METHOD, "this server has no such method");
    call("ping", "{}");
    expect_result("");
    call("ping", "{" META("") "}");
    expect_result("'resultType':'complete'");
    rig.h.heads.mcp_version = "1999-01-01";
    call("ping", "{}");
    expect_refused(400, RPC_REQUEST, "MCP-Protocol-Version: unsupported; there are 2026-07-28");
    call("ping", "{" META("") "}");
    expect_refused(400, -32022, "MCP-Protocol-Version: unsupported");
    rig.h.heads.mcp_version = "2025-03-26";
    call("ping", "{}");
    expect_result("");
}

#define ABILITIES                                                                                  \
    "'capabilities':{'tools':{},'resources':{}},'instructions':'Baton runs plans: steps that "     \
    "agents do, with retries, gates and reviews by people. run_plan takes a goal in words, or a "  \
    "plan document; each other tool with __ in its name is one skill of an agent.'"
#define SERVER "{'name':'baton','title':'Baton','version':'" BATON_VERSION "'}"

static void a_handshake_agrees_on_a_version_and_notes_what_the_client_can(void **state)
{
    static const char *const versions[][2] = {{"2025-11-25", "2025-11-25"},
                                              {"2025-06-18", "2025-06-18"},
                                              {"2025-03-26", "2025-03-26"},
                                              {"2026-07-28", "2025-11-25"}, /* has no handshake */
                                              {"1999-01-01", "2025-11-25"}};
    char text[TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        (void)snprintf(text, sizeof text, "{'protocolVersion':'%s','capabilities':{}}",
                       versions[i][0]);
        call("initialize", text);
        (void)snprintf(text, sizeof text,
                       "'protocolVersion':'%s','serverInfo':" SERVER "," ABILITIES, versions[i][1]);
        expect_result(text);
        assert_int_equal(strncmp(rig.h.mcp_session, "n-", 2), 0);
        assert_int_equal(strlen(rig.h.mcp_session), 2 + UUID_TEXT_LEN);
    }
    call("initialize", "{'capabilities':{'elicitation':{}}}");
    assert_int_equal(strncmp(rig.h.mcp_session, "e-", 2), 0);
}

static void a_modern_client_discovers_what_there_is(void **state)
{
    (void)state;
    call("server/discover", "{" META("") "}");
    expect_result("'resultType':'complete','supportedVersions':['2026-07-28','2025-11-25',"
                  "'2025-06-18','2025-03-26']," ABILITIES ",'ttlMs':0,'cacheScope':'private',"
                  "'_meta':{'io.modelcontextprotocol/serverInfo':" SERVER "}");
}

/* ---- tools ---- */

static void each_tool_asks_for_its_request(void **state)
{
    static const struct {
        const char *name, *arguments;
        enum msg_type type;
        const char *fields;
        bool reads;
    } all[] = {{"run_plan", "{'goal':'g'}", MSG_plan_submit, "{'goal':'g'}", false},
               {"start_plan", "{'goal':'g','clientKey':'k'}", MSG_plan_submit,
                "{'goal':'g','clientKey':'k'}", false},
               {"check_plan", "{'plan':{}}", MSG_plan_lint, "{'plan':{}}", false},
               {"get_plan", "{'planId':'P'}", MSG_plan_get, "{'planId':'P'}", true},
               {"get_result", "{'planId':'P','stepId':'s'}", MSG_plan_result,
                "{'planId':'P','stepId':'s'}", true},
               {"list_plans", "{'limit':3}", MSG_plan_list, "{'limit':3}", true},
               {"cancel_plan", "{'planId':'P'}", MSG_plan_cancel, "{'planId':'P'}", false},
               {"list_reviews", "{}", MSG_review_list, "{}", true},
               {"decide_review", "{'reviewId':'r','decision':'skip'}", MSG_review_decide,
                "{'reviewId':'r','decision':'skip'}", false},
               {"list_agents", "{}", MSG_agents_list, "{}", true}};
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)snprintf(text, sizeof text, "{'name':'%s','arguments':%s}", all[i].name,
                       all[i].arguments);
        call("tools/call", text);
        expect_asked(all[i].type, all[i].fields);
        assert_true(rig.spec.reads == all[i].reads);
        if (i > 0) {
            rig_answer("{'x':1}");
            expect_result("'content':[{'type':'text','text':'{\\\"x\\\":1}'}],"
                          "'structuredContent':{'x':1}");
            assert_int_equal(rig.noted, strcmp(all[i].name, "start_plan") == 0 ? 1 : 0);
        }
    }
    rig.h.heads.traceparent = "outer";
    call("tools/call",
         "{'name':'get_plan','arguments':{'planId':'P'}," META(",'traceparent':'in'") "}");
    assert_true(str_is(rig.spec.traceparent, "in"));
    rig_refuse(BT_NOT_FOUND, "no plan");
    expect_result("'resultType':'complete','content':[{'type':'text','text':'NOT_FOUND: no "
                  "plan'}],'isError':true");
    call("tools/call", "{'name':'get_plan','arguments':{'planId':7}}");
    assert_int_equal(rig.asked, 0);
    assert_ptr_equal(strstr(rig_out(), quoted("{'jsonrpc':'2.0','id':7,'result':{'content':[{"
                                              "'type':'text','text':'INVALID: planId")),
                     rig_out());
    assert_non_null(strstr(rig_out(), "\"isError\":true}}"));
    assert_int_equal(rig.h.state, HTTP_READY);
}

static void the_list_of_tools_has_those_of_the_server_and_each_skill(void **state)
{
    (void)state;
    call("tools/list", "{" META("") "}");
    expect_asked(MSG_agents_list, "{}");
    assert_int_equal(rig.spec.answer, MSG_agents_list_ok);
    assert_true(rig.spec.reads);
    rig_answer(
        "{'agents':[{'card':{'agentId':'a.b-AZaz09','skills':[{'id':'x/y','name':'N','description':"
        "'D','effects':'none','inputSchema':{'type':'object','properties':{}}},{'id':'p',"
        "'effects':'idempotent','inputSchema':{'type':'string'}},{'id':'q','effects':"
        "'unsafe'}]}},{'card':{'agentId':'none'}}]}");
    assert_non_null(strstr(
        rig_out(),
        quoted(
            "{'name':'a_b-AZaz09__x_y','title':'N','description':'D','inputSchema':{'type':'object'"
            ","
            "'properties':{}},'annotations':{'readOnlyHint':true,'idempotentHint':true}},"
            "{'name':'a_b-AZaz09__p','inputSchema':{'type':'object'},'annotations':{'readOnlyHint':"
            "false,'idempotentHint':true}},{'name':'a_b-AZaz09__q','inputSchema':{'type':'object'},"
            "'annotations':{'readOnlyHint':false,'idempotentHint':false}}],'ttlMs':0,"
            "'cacheScope':'private'}}")));
    assert_non_null(strstr(
        rig_out(),
        quoted("{'name':'list_agents','title':'Agents','description':'Lists the agents with their "
               "skills, states and instances.','inputSchema':{'type':'object','properties':{}},"
               "'annotations':{'readOnlyHint':true}}")));
    assert_non_null(strstr(rig_out(),
                           "\"result\":{\"resultType\":\"complete\",\"tools\":[{\"name\":"
                           "\"run_plan\",\"title\":\"Run a goal or plan\""));
    call("tools/list", "{}");
    rig_refuse(BT_UNAVAILABLE, "away");
    assert_int_equal(rig.h.status, 503);
    assert_null(rig.h.call);
}

static void a_tool_of_a_skill_is_a_plan_of_one_step(void **state)
{
    char params[512];
    char id[70];

    (void)state;
    rig.h.heads.accept = "text/event-stream";
    call("tools/call", "{'name':'a_b-AZaz09__x_y','arguments':{'n':1}}");
    expect_asked(MSG_agents_list, "{}");
    rig_answer("{'agents':[{'card':{'agentId':'other','skills':[{'id':'x/y'}]}},{'card':{'agentId':"
               "'a.b-AZaz09','skills':[{'id':'x/z'},{'id':'x/y'}]}}]}");
    expect_asked(
        MSG_plan_submit,
        "{'plan':{'steps':[{'stepId':'call','agentId':'a.b-AZaz09','skill':'x/y','task':'x/y',"
        "'parameters':{'n':1}}]}}");
    assert_false(rig.spec.reads);
    assert_int_equal(rig.spec.answer, MSG_plan_submit_ok);
    rig_answer("{'planId':'P'}");
    assert_int_equal(rig.noted, 1);
    follows.view->over(&follows);
    assert_string_equal(follows.fields, quoted("{'planId':'P','steps':false,'stepId':'call'}"));
    assert_true(follows.spec.reads);
    assert_int_equal(follows.spec.answer, MSG_plan_result_ok);
    call("tools/call", "{'name':'a__x'}");
    rig_answer("{'agents':[{'card':{'agentId':'a','skills':[{'id':'x'}]}}]}");
    expect_asked(MSG_plan_submit, "{'plan':{'steps':[{'stepId':'call','agentId':'a','skill':'x',"
                                  "'task':'x','parameters':{}}]}}");
    rig_refuse(BT_INVALID, "no");
    expect_result("'content':[{'type':'text','text':'INVALID: no'}],'isError':true");
    call("tools/call", "{'name':'none'}");
    rig_answer("{'agents':[]}");
    expect_refused(200, RPC_PARAMS, "there is no such tool");
    call("tools/call", "{'name':'none'}");
    rig_refuse(BT_UNAVAILABLE, "away");
    expect_refused(200, RPC_PARAMS, "the daemon does not answer; try again");
    memset(id, 'n', sizeof id);
    for (int n = 64; n < 66; n++) { /* a tool's name has 64 characters */
        (void)snprintf(params, sizeof params, "{'name':'%.64s'}", id);
        call("tools/call", params);
        (void)snprintf(params, sizeof params,
                       "{'agents':[{'card':{'agentId':'%.*s','skills':[{'id':'x'}]}}]}", n, id);
        rig_answer(params);
        assert_int_equal(rig.h.state, n == 64 ? HTTP_WAITS : HTTP_READY);
    }
}

static void what_cannot_be_asked_is_an_internal_error(void **state)
{
    (void)state;
    rig_end();
    rig_begin(quoted("{'jsonrpc':'2.0','id':7,'method':'tools/list'}"));
    rig.busy = BT_BUSY;
    mcp_serve(&rig.h);
    expect_refused(200, RPC_INTERNAL, "too many wait");
}

/* ---- a plan that runs ---- */

#define RUN "'name':'run_plan','arguments':{'goal':'g'}"

static void run_plan(const char *params)
{
    call("tools/call", params);
    rig_answer("{'planId':'P'}");
    assert_int_equal(follows.from, 1);
    assert_string_equal(follows.plan, "P");
    assert_int_equal(rig.h.state, HTTP_WAITS);
}

static void expect_stream(const char *text)
{
    assert_string_equal(buf_cstr(&follows.out), quoted(text));
    buf_clear(&follows.out);
}

static void a_result_is_text_and_what_is_structured(void **state)
{
    static const struct {
        const char *answer, *members;
    } all[] = {
        {"{'planId':'P','status':'completed','outcome':'good','aggregatedResult':'3'}",
         "'content':[{'type':'text','text':'3'}],'structuredContent':{'planId':'P','status':"
         "'completed','outcome':'good'}"},
        {"{'planId':'P','status':'completed','result':{'text':'t','data':{'n':1}}}",
         "'content':[{'type':'text','text':'t'}],'structuredContent':{'planId':'P','status':"
         "'completed','result':{'n':1}}"},
        {"{'planId':'P','status':'failed','failureReason':'why'}",
         "'content':[{'type':'text','text':'why'}],'structuredContent':{'planId':'P','status':"
         "'failed'},'isError':true"},
        {"{'planId':'P','status':'failed','aggregatedResult':'half','failureReason':'why'}",
         "'content':[{'type':'text','text':'half'}],'structuredContent':{'planId':'P','status':"
         "'failed'},'isError':true"},
        {"{'planId':'P','status':'cancelled'}",
         "'content':[{'type':'text','text':'cancelled'}],'structuredContent':{'planId':'P',"
         "'status':'cancelled'},'isError':true"}};
    static const char *const streams[] = {"application/json, text/event-stream", "*/*",
                                          "Text/Event-Stream"};
    char text[TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        run_plan("{" RUN "}");
        assert_true(follows.quiet); /* its client takes no stream */
        happens("{'type':'plan_step_started','stepId':'a'}");
        ends_with(all[i].answer);
        assert_string_equal(follows.fields, quoted("{'planId':'P','steps':false}"));
        assert_true(follows.finished);
        assert_true(follows.called);
        (void)snprintf(text, sizeof text, "{'jsonrpc':'2.0','id':7,'result':{%s}}", all[i].members);
        expect_stream(text);
    }
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        rig.h.heads.accept = streams[i];
        run_plan("{" RUN "}");
        assert_false(follows.quiet);
        ends_with(all[0].answer);
        (void)snprintf(text, sizeof text,
                       "event: message\ndata: {'jsonrpc':'2.0','id':7,'result':{%s}}\n\n",
                       all[0].members);
        expect_stream(text);
    }
    rig.h.heads.accept = "application/json";
    run_plan("{" RUN "," META("") "}");
    assert_true(follows.quiet);
    {
        const struct reply no = {.problem = {.code = BT_IO, .message = STR_LIT("no disk")}};
        follows.view->over(&follows);
        follows.spec.done(&follows, &no);
        expect_stream("{'jsonrpc':'2.0','id':7,'result':{'resultType':'complete','content':[{"
                      "'type':'text','text':'IO: no disk'}],'isError':true}}");
    }
    run_plan("{" RUN "}");
    follows.refuses = true;
    follows.view->over(&follows);
    assert_true(follows.finished);
}

#define NOTE(n, words)                                                                             \
    "event: message\ndata: {'jsonrpc':'2.0','method':'notifications/progress','params':{"          \
    "'progressToken':'t','progress':" #n ",'message':'" words "'}}\n\n"

static void progress_is_told_to_who_asked_for_it(void **state)
{
    (void)state;
    rig.h.heads.accept = "text/event-stream";
    run_plan("{" RUN ",'_meta':{'progressToken':'t'}}");
    happens("{'type':'plan_generated'}");
    happens("{'type':'plan_step_started','stepId':'a'}");
    happens("{'type':'plan_step_progress','stepId':'a','text':'half'}");
    happens("{'type':'plan_step_retry','stepId':'a'}");
    happens("{'type':'agent_handoff','planStepId':'a'}");
    happens("{'type':'review_decided','stepId':'a'}");
    happens("{'type':'plan_step_completed','stepId':'a'}");
    happens("{'type':'noise'}");
    happens("{'type':'plan_step_waiting','stepId':'a','reviewId':'r'}"); /* it shows no forms */
    expect_stream(NOTE(1, "the plan is made") NOTE(2, "a: started") NOTE(3, "a: goes on: half")
                      NOTE(4, "a: is tried again") NOTE(5, "a: goes to another agent")
                          NOTE(6, "a: was decided") NOTE(7, "a: is over")
                              NOTE(8, "a: waits for a person"));
    run_plan("{" RUN "}"); /* who gave no token hears nothing */
    happens("{'type':'plan_generated'}");
    expect_stream("");
    rig.h.heads.accept = "application/json";
    run_plan("{" RUN ",'_meta':{'progressToken':'t'}}"); /* it takes no stream */
    happens("{'type':'plan_generated'}");
    expect_stream("");
}

#define FORM                                                                                       \
    "'requestedSchema':{'type':'object','properties':{'decision':{'type':'string','title':"        \
    "'Decision','enum':['approve','reject','skip']},'comment':{'type':'string','title':"           \
    "'Comment'}},'required':['decision']}}"

static void a_person_is_asked_by_a_form_within_the_stream(void **state)
{
    (void)state;
    rig.h.heads.accept = "text/event-stream";
    rig.h.heads.mcp_session = "e-1";
    run_plan("{" RUN "}");
    happens("{'type':'plan_step_waiting','reviewId':'P/a#1','prompt':'ok?'}");
    expect_stream("event: message\ndata: {'jsonrpc':'2.0','method':'elicitation/create','id':"
                  "'a:P/a#1','params':{'mode':'form','message':'ok?'," FORM "}\n\n");
    assert_false(follows.stopped);
    happens("{'type':'plan_step_waiting','reviewId':'P/b#1','schema':{'type':'object','properties':"
            "{'n':{}}}}");
    expect_stream("event: message\ndata: {'jsonrpc':'2.0','method':'elicitation/create','id':"
                  "'i:P/b#1','params':{'mode':'form','message':'A step of the plan waits for a "
                  "decision.','requestedSchema':{'type':'object','properties':{'n':{}}}}}\n\n");
    happens("{'type':'plan_step_waiting','reviewId':'P/c#1','schema':{'type':'string'}}");
    assert_non_null(strstr(buf_cstr(&follows.out), "\"a:P/c#1\""));
    rig.h.heads.mcp_session = "n-1"; /* it shows none */
    run_plan("{" RUN "}");
    happens("{'type':'plan_step_waiting','reviewId':'P/a#1'}");
    expect_stream("");
    rig.h.heads.mcp_session = "e-1";
    rig.h.heads.accept = "application/json";
    run_plan("{" RUN "}");
    happens("{'type':'plan_step_waiting','reviewId':'P/a#1'}");
    expect_stream("");
}

static void a_modern_client_gets_the_questions_as_its_answer_and_calls_again(void **state)
{
    (void)state;
    run_plan("{" RUN "," META(ELICITS) "}");
    happens("{'type':'plan_step_waiting','reviewId':'P/a#1','prompt':'ok?','seq':9}");
    assert_true(follows.stopped);
    follows.view->over(&follows);
    assert_true(follows.finished);
    expect_stream("{'jsonrpc':'2.0','id':7,'result':{'resultType':'input_required',"
                  "'inputRequests':{'a:P/a#1':{'method':'elicitation/create','params':{'mode':"
                  "'form','message':'ok?'," FORM "}},'requestState':'P:10'}}");
    call("tools/call",
         "{" RUN
         "," META(ELICITS) ",'requestState':'P:10','inputResponses':{'a:P/a#1':{'action':'accept',"
                           "'content':{'decision':'approve','comment':'go'}}}}");
    expect_asked(MSG_review_decide, "{'reviewId':'P/a#1','decision':'approve','comment':'go'}");
    assert_false(rig.spec.reads);
    rig_answer("{}");
    assert_int_equal(follows.from, 10);
    assert_string_equal(follows.plan, "P");
    call("tools/call", "{" RUN ",'requestState':'P:10','inputResponses':{'a:r':{'action':"
                       "'accept','content':{'decision':'approve'}}}}");
    assert_null(follows.self);          /* before the answer */
    rig_refuse(BT_CONFLICT, "decided"); /* somebody was quicker: it goes on */
    assert_int_equal(follows.from, 10);
    call("tools/call", "{" RUN ",'requestState':'P:10','inputResponses':{'a:r':{'action':"
                       "'accept','content':{'decision':'approve'}}}}");
    rig_refuse(BT_INVALID, "no");
    expect_result("'content':[{'type':'text','text':'INVALID: no'}],'isError':true");
    call("tools/call",
         "{" RUN ",'requestState':'P:10','inputResponses':{'a:r':{'action':'cancel'}}}");
    assert_int_equal(rig.asked, 0); /* nothing was decided: it waits on */
    assert_int_equal(follows.from, 10);
    assert_int_equal(rig.h.state, HTTP_WAITS);
    {
        static const char *const others[] = {
            "'requestState':'P','inputResponses':{'a:r':{'action':'accept'}}",
            "'requestState':'P:10','inputResponses':{}", "'requestState':'P:10'",
            "'requestState':'P:10','inputResponses':[1]",
            "'inputResponses':{'a:r':{'action':'accept'}}"};
        char params[256];
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) { /* a first call */
            (void)snprintf(params, sizeof params, "{" RUN ",%s}", others[i]);
            call("tools/call", params);
            expect_asked(MSG_plan_submit, "{'goal':'g'}");
        }
    }
}

static void an_answer_to_a_form_is_a_decision(void **state)
{
    static const struct {
        const char *id, *result, *fields; /* NULL: nothing is decided */
    } all[] = {{"a:r", "{'action':'accept','content':{'decision':'skip','comment':'c'}}",
                "{'reviewId':'r','decision':'skip','comment':'c'}"},
               {"a:r", "{'action':'accept','content':{'decision':'approve'}}",
                "{'reviewId':'r','decision':'approve'}"},
               {"a:r", "{'action':'decline'}", "{'reviewId':'r','decision':'reject'}"},
               {"i:r", "{'action':'accept','content':{'n':1,'comment':'c'}}",
                "{'reviewId':'r','decision':'approve','edit':{'n':1,'comment':'c'}}"},
               {"i:r", "{'action':'decline'}", "{'reviewId':'r','decision':'reject'}"},
               {"a:r", "{'action':'cancel'}", NULL},
               {"a:r", "{}", NULL},
               {"axr", "{'action':'accept','content':{'decision':'skip'}}", NULL},
               {"a:", "{'action':'decline'}", NULL}};
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)snprintf(text, sizeof text, "{'jsonrpc':'2.0','id':'%s','result':%s}", all[i].id,
                       all[i].result);
        message(text);
        if (all[i].fields != NULL) {
            expect_asked(MSG_review_decide, all[i].fields);
            if (i % 2 == 0) {
                rig_answer("{}");
            } else {
                rig_refuse(BT_CONFLICT, "the stream of the plan shows what came of it");
            }
        }
        assert_int_equal(rig.h.state, HTTP_READY);
        assert_int_equal(rig.h.status, 202);
        assert_null(rig.h.type);
        assert_string_equal(rig_out(), "");
    }
    message("{'jsonrpc':'2.0','method':'notifications/initialized'}");
    assert_int_equal(rig.h.status, 202);
}

/* ---- cancel ---- */

/* The plan is followed for request 7 of this caller and session; this cancels a request. */
static bool cancels(const char *id, const char *session, bool same_caller)
{
    static struct http first;
    char text[256];

    run_plan("{" RUN "}");
    first = rig.h;
    follows.h = &first;
    keeps = true;
    first.caller = same_caller ? NULL : (struct caller *)&first;
    first.heads.mcp_session = "s";
    rig.h.heads.mcp_session = session;
    (void)snprintf(text, sizeof text,
                   "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':%s}}",
                   id);
    rig.h.own = NULL;
    first.body = (struct buf){.len = 0};
    first.out = first.body;
    message(text);
    assert_int_equal(rig.h.status, 202);
    {
        const bool stopped = follows.stopped;
        assert_true((rig.asked > 0) == stopped);
        if (stopped) {
            assert_int_equal(rig.spec.type, MSG_plan_cancel);
            assert_string_equal(rig.fields, quoted("{'planId':'P','reason':'the client of MCP "
                                                   "cancelled its request'}"));
            follows.view->over(&follows);
            assert_true(follows.finished);
            assert_string_equal(buf_cstr(&follows.out), ""); /* nobody waits for an answer */
        }
        keeps = false;
        stream_over(true);
        first.own_free(first.own);
        rig.h.heads.mcp_session = NULL;
        return stopped;
    }
}

static void a_client_cancels_its_own_requests(void **state)
{
    (void)state;
    assert_true(cancels("7", "s", true));
    assert_false(cancels("8", "s", true));
    assert_false(cancels("'7'", "s", true));
    assert_false(cancels("7", "t", true));
    assert_false(cancels("7", NULL, true));
    assert_false(cancels("7", "s", false));
}

static void a_modern_client_cancels_by_closing_and_an_older_one_does_not(void **state)
{
    (void)state;
    run_plan("{" RUN "," META("") "}");
    stream_over(false);
    assert_int_equal(rig.asked, 2);
    assert_int_equal(rig.spec.type, MSG_plan_cancel);
    run_plan("{" RUN "," META("") "}");
    stream_over(true); /* it has its answer */
    assert_int_equal(rig.asked, 1);
    run_plan("{" RUN "}");
    stream_over(false);
    assert_int_equal(rig.asked, 1);
}

/* ---- resources ---- */

static void resources_are_plans_and_their_results(void **state)
{
    (void)state;
    call("resources/list", "{}");
    expect_asked(MSG_plan_list, "{'limit':50}");
    rig_answer("{'plans':[{'planId':'P','goal':'g','status':'running'},{'planId':'Q'}],'cursor':"
               "'c'}");
    expect_result("'resources':[{'uri':'plan://P','name':'P','title':'g','description':'running',"
                  "'mimeType':'application/json'},{'uri':'plan://Q','name':'Q','mimeType':"
                  "'application/json'}],'nextCursor':'c'");
    call("resources/list", "{'cursor':'c'," META("") "}");
    expect_asked(MSG_plan_list, "{'limit':50,'cursor':'c'}");
    assert_true(rig.spec.reads);
    rig_answer("{'plans':[]}");
    expect_result("'resultType':'complete','resources':[],'ttlMs':0,'cacheScope':'private'");
    call("resources/list", "{}");
    rig_refuse(BT_UNAVAILABLE, "away");
    expect_refused(200, RPC_INTERNAL, "away");
    call("resources/templates/list", "{}");
    expect_result(
        "'resourceTemplates':[{'uriTemplate':'plan://{planId}','name':'plan','title':'A plan',"
        "'description':'State of a plan and its steps.','mimeType':'application/json'},{"
        "'uriTemplate':'plan://{planId}/result','name':'result','title':'Result of a plan',"
        "'description':'The result, with those of its steps.','mimeType':'application/json'}]");
}

static void a_resource_is_read_by_its_address(void **state)
{
    static const char *const wrong[] = {
        "{}",
        "{'uri':3}",
        "{'uri':''}",
        "{'uri':'plan:/'}",
        "{'uri':'plan://'}",
        "{'uri':'file:///etc'}",
        "{'uri':'plan://P/x'}",
        "{'uri':'plan:///result'}",
        "{'uri':'plan://P/'}",
        "{'uri':'plan://xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}"};

    (void)state;
    call("resources/read", "{'uri':'plan://P'}");
    expect_asked(MSG_plan_get, "{'planId':'P'}");
    assert_int_equal(rig.spec.answer, MSG_plan_view);
    assert_true(rig.spec.reads);
    rig_answer("{'x':1}");
    expect_result("'contents':[{'uri':'plan://P','mimeType':'application/json','text':"
                  "'{\\\"x\\\":1}'}]");
    call("resources/read", "{'uri':'plan://P/result'}");
    expect_asked(MSG_plan_result, "{'planId':'P'}");
    assert_int_equal(rig.spec.answer, MSG_plan_result_ok);
    rig_refuse(BT_NOT_FOUND, "no plan");
    expect_refused(200, RPC_PARAMS, "no plan");
    call("resources/read",
         "{'uri':'plan://xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}");
    assert_int_equal(rig.h.state, HTTP_WAITS);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        call("resources/read", wrong[i]);
        expect_refused(200, RPC_PARAMS, "uri: expected plan://PLANID or plan://PLANID/result");
    }
}

/* ---- recipes ---- */

static char dir[64];

static void write_recipe(const char *name, const char *text)
{
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    if (text == NULL) {
        (void)unlink(path);
        return;
    }
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

static void recipes_of_a_directory_are_tools(void **state)
{
    static const char *const files[] = {"a.yaml", "b.yml", "c.json", "d.txt", "e.yaml", ".yaml"};
    struct buf found;

    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/test_mcp-XXXXXX");
    assert_non_null(mkdtemp(dir));
    write_recipe("a.yaml",
                 "recipe: {name: 'own name-aAzZ09.', title: T, description: D}\ninputs: {required: "
                 "[n], properties: {n: {type: integer}}, type: object}\nsteps: [{stepId: "
                 "s, agentId: a, task: 'do {{inputs.n}}'}]\n");
    write_recipe("b.yml", "inputs: {}\nsteps: []\n");
    write_recipe("c.json", "{\"steps\":[]}"); /* is no recipe */
    write_recipe("d.txt", "inputs: {}\n");
    write_recipe("e.yaml", "recipe: [");
    write_recipe(".yaml", "inputs: {}\n");
    options.recipes = dir;
    call("tools/list", "{}");
    rig_answer("{'agents':[]}");
    buf_init(&found, 4096);
    buf_add_cstr(&found, strstr(rig_out(), "{\"name\":\"recipe__"));
    assert_string_equal(
        buf_cstr(&found),
        quoted("{'name':'recipe__own_name-aAzZ09_','title':'T','description':'D','inputSchema':{'"
               "type':"
               "'object','required':['n'],'properties':{'n':{'type':'integer'}}},'annotations':{"
               "'readOnlyHint':false,'openWorldHint':true}},{'name':'recipe__b','inputSchema':{"
               "'type':'object'},'annotations':{'readOnlyHint':false,'openWorldHint':true}}]}}"));
    buf_done(&found);
    call("tools/call", "{'name':'recipe__own_name-aAzZ09_','arguments':{'n':3}}");
    expect_asked(MSG_plan_submit,
                 "{'plan':{'description':'D','steps':[{'stepId':'s','agentId':'a','task':"
                 "'do 3'}]}}");
    assert_false(rig.spec.reads);
    rig_answer("{'planId':'P'}");
    assert_int_equal(follows.from, 1);
    call("tools/call", "{'name':'recipe__own_name-aAzZ09_'}");
    assert_non_null(strstr(rig_out(), "\"isError\":true"));
    assert_non_null(strstr(rig_out(), "INVALID: "));
    call("tools/call", "{'name':'recipe__b'}"); /* the second */
    assert_null(strstr(rig_out(), "own name"));
    assert_true(rig.asked == 0 || rig.spec.type == MSG_plan_submit);
    call("tools/call", "{'name':'recipe__c'}");
    expect_asked(MSG_agents_list, "{}"); /* perhaps it is a skill */
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        write_recipe(files[i], NULL);
    }
    for (int i = 0; i < 66; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "r%02d.yaml", i);
        write_recipe(name, "inputs: {}\n");
    }
    call("tools/list", "{}");
    rig_answer("{'agents':[]}");
    assert_non_null(strstr(rig_out(), "recipe__r63")); /* so many, and no more */
    assert_null(strstr(rig_out(), "recipe__r64"));
    for (int i = 0; i < 66; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "r%02d.yaml", i);
        write_recipe(name, NULL);
    }
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_is_no_message_is_refused),
        TEST(a_handshake_agrees_on_a_version_and_notes_what_the_client_can),
        TEST(a_modern_client_discovers_what_there_is),
        TEST(each_tool_asks_for_its_request),
        TEST(the_list_of_tools_has_those_of_the_server_and_each_skill),
        TEST(a_tool_of_a_skill_is_a_plan_of_one_step),
        TEST(what_cannot_be_asked_is_an_internal_error),
        TEST(a_result_is_text_and_what_is_structured),
        TEST(progress_is_told_to_who_asked_for_it),
        TEST(a_person_is_asked_by_a_form_within_the_stream),
        TEST(a_modern_client_gets_the_questions_as_its_answer_and_calls_again),
        TEST(an_answer_to_a_form_is_a_decision),
        TEST(a_client_cancels_its_own_requests),
        TEST(a_modern_client_cancels_by_closing_and_an_older_one_does_not),
        TEST(resources_are_plans_and_their_results),
        TEST(a_resource_is_read_by_its_address),
        TEST(recipes_of_a_directory_are_tools),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
