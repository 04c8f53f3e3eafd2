/* Messages to an A2A agent and what comes back: both versions, streams, polling, questions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/step.h"
#include "protocol/base/clock.h"
#include "tests/support/heap.h"
#include "tests/unit/agents/a2a_world.h"

#define KEY "00000000-0000-7000-8000-000000000000/1/once"
#define DONE                                                                                       \
    "{'id':'t1','contextId':'c1','status':{'state':'TASK_STATE_COMPLETED'},"                       \
    "'artifacts':[{'artifactId':'a','parts':[{'text':'fine'}]}]}"

/* ---- what is sent ---- */

static void a_message_is_sent_as_its_version_has_it(void **state)
{
    static const char *const modern =
        "\r\n\r\n{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':"
        "'" KEY "','role':'ROLE_USER','parts':[{'text':'hello'},{'data':{'n':[1]}}],'metadata':{"
        "'skillId':'do work'},'contextId':'c7'}}}";
    static const char *const legacy =
        "\r\n\r\n{'jsonrpc':'2.0','id':1,'method':'message/send','params':{'message':{'messageId':"
        "'" KEY "','role':'user','parts':[{'text':'hello','kind':'text'},{'data':{'n':[1]},'kind':"
        "'data'}],'metadata':{'skillId':'do work'},'kind':'message','contextId':'c7'},"
        "'configuration':{'blocking':true}}}";

    (void)state;
    for (int version = 0; version < 2; version++) {
        for (int streaming = 0; streaming < 2; streaming++) {
            service_forget();
            a2a_use(version == 0, streaming == 1, "");
            a2a_next("{'task':" DONE "}");
            a2a_says(a2a_do("work", "{'message':'hello','data':{'n':[1]},'contextId':'c7'}"),
                     "'text':'fine'");
            service_expect(0, "POST /rpc HTTP/1.1\r\n");
            service_expect(0, "\r\nContent-Type: application/json\r\n");
            service_expect(0, "\r\nAccept: application/json, text/event-stream\r\n");
            if (streaming == 0) {
                service_expect(0, service_text(version == 0 ? modern : legacy));
            } else {
                service_expect(0, service_text(version == 0 ? "'method':'SendStreamingMessage'"
                                                            : "'method':'message/stream'"));
            }
            if (version == 0) {
                service_expect(0, "\r\nA2A-Version: 1.0\r\n");
            } else {
                service_expect_not(0, "A2A-Version");
            }
            service_expect_not(0, "Authorization");
        }
    }
}

static void without_a_message_the_task_is_it(void **state)
{
    (void)state;
    a2a_use(true, false, "");
    a2a_next("{'task':" DONE "}");
    (void)a2a_do("read", "{}");
    service_expect(0,
                   service_text("'parts':[{'text':'the task'}],'metadata':{'skillId':'read'}}}}"));
    a2a_says(a2a_do("other", "{}"), "'class':'TOOL_NOT_FOUND'");
    assert_int_equal(service_count(), 1);
}

static void headers_and_the_key_go_along(void **state)
{
    (void)state;
    assert_int_equal(setenv("A2A_KEY", "bearer-0123456789", 1), 0);
    a2a_use(true, false, ",'headers':{'X-A':'1','X-B':'2'},'bearer':{'env':'A2A_KEY'}");
    a2a_next("{'task':{'id':'t','status':{'state':'TASK_STATE_COMPLETED','message':{'parts':["
             "{'text':'you sent bearer-0123456789'}]}}}}");
    a2a_says(a2a_do("work", "{}"), "'text':'you sent [redacted]'");
    service_expect(0, "\r\nX-A: 1\r\n");
    service_expect(0, "\r\nX-B: 2\r\n");
    service_expect(0, "\r\nAuthorization: Bearer bearer-0123456789\r\n");
    service_next(500, "", "bearer-0123456789 is why");
    a2a_says(a2a_do("work", "{}"), "the agent answered status 500: [redacted] is why");
}

/* ---- what comes back ---- */

static void each_form_of_an_answer_is_one(void **state)
{
    static const struct {
        const char *result, *says;
    } rows[] = {
        {"{'task':" DONE "}", "'text':'fine','details':{'taskId':'t1','contextId':'c1'}"},
        {DONE, "'text':'fine'"},
        {"{'message':{'contextId':'c2','parts':[{'text':'a'},{'text':'b'}]}}",
         "'text':'ab','details':{'taskId':'','contextId':'c2'}"},
        {"{'kind':'message','parts':[{'kind':'text','text':'old'}]}", "'text':'old'"},
        {"{'kind':'task','id':'t1','contextId':'c1','status':{'state':'completed'},'artifacts':["
         "{'artifactId':'a','parts':[{'kind':'text','text':'x'}]},{'artifactId':'b','parts':["
         "{'kind':'text','text':'y'}]}]}",
         "'text':'x\\n\\ny'"},
        {"{'task':{'id':'t','status':{'state':'TASK_STATE_COMPLETED','message':{'parts':[{'text':"
         "'only said'}]}}}}",
         "'text':'only said'"},
        {"{'task':{'id':'t','status':{'state':'TASK_STATE_COMPLETED'}}}", "'text':''"},
        {"{'message':{'parts':[{'data':{'k':1}}]}}", "'result':{'data':{'k':1},'details'"},
        {"{'message':{'parts':[{'data':1},{'text':'t'},{'data':[2]}]}}",
         "'result':{'text':'t','data':[1,[2]],'details'"},
        {"{'task':{'id':'t','status':{'state':'completed'},'artifacts':[{'artifactId':'a','parts':"
         "[{'text':'x'}]},{'artifactId':'b','parts':[]},{'artifactId':'c','parts':[{'data':1}]},"
         "{'artifactId':'d','parts':[{'text':'y'}]}]}}",
         "'text':'x\\n\\ny','data':1"},
        {"{'message':{'parts':[{'url':'https://a/"
         "x.pdf','filename':'x.pdf','mediaType':'application/pdf'},"
         "{'file':{'uri':'https://a/y','name':'y','mimeType':'text/y'}},{'url':'https://a/z'}]}}",
         "'artifacts':[{'name':'x.pdf','mediaType':'application/pdf','uri':'https://a/"
         "x.pdf'},{'name':"
         "'y','mediaType':'text/y','uri':'https://a/y'},{'name':'file','uri':'https://a/z'}]"},
    };

    (void)state;
    a2a_use(true, false, "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *reply;
        a2a_next(rows[i].result);
        reply = a2a_do("read", "{}");
        a2a_says(reply, "'outcome':'completed'");
        a2a_says(reply, rows[i].says);
    }
}

/* An answer in the status is whole, too. */
static void a_status_of_any_length_is_the_text(void **state)
{
    enum { LONG = 70000 };
    char *result = malloc(LONG + 200);
    char *text = malloc(LONG + 1);

    (void)state;
    assert_true(result != NULL && text != NULL);
    memset(text, 'x', LONG);
    text[LONG] = 0;
    (void)snprintf(result, LONG + 200,
                   "{'task':{'id':'t','status':{'state':'TASK_STATE_COMPLETED','message':{'parts':["
                   "{'text':'%s'}]}}}}",
                   text);
    a2a_use(true, false, "");
    a2a_next(result);
    a2a_says(a2a_do("read", "{}"), text);
    free(result);
    free(text);
}

static void each_end_has_its_outcome(void **state)
{
    static const struct {
        const char *modern, *legacy, *class, *with, *without;
    } rows[] = {
        {"TASK_STATE_FAILED", "failed", "'class':'UNKNOWN'", "the task failed: because",
         "the task failed: without a reason"},
        {"TASK_STATE_REJECTED", "rejected", "'class':'VALIDATION_ERROR'",
         "the agent rejected the task: because", "the agent rejected the task: without a reason"},
        {"TASK_STATE_CANCELED", "canceled", "'class':'CANCELLED'",
         "the agent cancelled the task: because", "the agent cancelled the task: without a reason"},
        {"TASK_STATE_AUTH_REQUIRED", "auth-required", "'class':'PERMISSION_DENIED'",
         "the agent asks for a credential of its own: because", "it does not name which"},
        {"TASK_STATE_INPUT_REQUIRED", "input-required", "'outcome':'needs_input'",
         "'prompt':'because'", "'prompt':'The agent asks for input.'"},
        {"TASK_STATE_DREAMING", "dreaming", "'class':'PROTOCOL_ERROR'",
         "the agent sent a state that A2A has not: ", "the agent sent a state that A2A has not: "},
    };

    (void)state;
    a2a_use(true, false, "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int k = 0; k < 4; k++) {
            char result[512];
            const char *reply;
            (void)snprintf(result, sizeof result, "{'task':{'id':'t','status':{'state':'%s'%s}}}",
                           k % 2 == 0 ? rows[i].modern : rows[i].legacy,
                           k < 2 ? ",'message':{'parts':[{'text':'because'}]}" : "");
            a2a_next(result);
            reply = a2a_do("read", "{}");
            a2a_says(reply, rows[i].class);
            a2a_says(reply, k < 2 ? rows[i].with : rows[i].without);
            if (strstr(reply, "failed") != NULL) {
                a2a_says(reply, "'retryable':false");
            }
        }
    }
}

static void what_is_no_answer_is_an_error_of_the_agent(void **state)
{
    static const struct {
        int status;
        const char *body, *class, *says;
        bool again; /* of a skill that is not unsafe */
    } rows[] = {
        {200, "{'error':{'code':-32602,'message':'wrong'}}", "VALIDATION_ERROR",
         "the agent answered error -32602: wrong", false},
        {200, "{'error':{'code':-32601,'message':'unknown'}}", "PROTOCOL_ERROR",
         "the agent answered error -32601: unknown", false},
        {200, "{'error':{'code':7}}", "PROTOCOL_ERROR", "the agent answered error 7: ", false},
        {200, "{'error':{}}", "PROTOCOL_ERROR", "the agent answered error 0: ", false},
        {200, "{'error':'x'}", "PROTOCOL_ERROR", "the agent answered no JSON-RPC", false},
        {200, "{}", "PROTOCOL_ERROR", "the agent answered no JSON-RPC", false},
        {200, "[]", "PROTOCOL_ERROR", "the agent answered no JSON-RPC", false},
        {200, "{'result':{}}", "PROTOCOL_ERROR", "neither a task, a message nor an event", false},
        {200, "{'result':{'message':{'parts':[{'weight':3}]}}}", "PROTOCOL_ERROR",
         "the agent sent a part without text, data or file", false},
        {200, "{nonsense", "PROTOCOL_ERROR", "the agent answered no JSON: ", false},
        {200, "<html>", "PROTOCOL_ERROR", "neither a task nor a message", false},
        {200, "", "SERVICE_UNAVAILABLE", "the agent answered nothing", true},
        {401, "no", "PERMISSION_DENIED", "the agent answered status 401: no", false},
        {403, "no", "PERMISSION_DENIED", "the agent answered status 403: no", false},
        {404, "no", "PROTOCOL_ERROR", "the agent answered status 404: no", false},
        {429, "no", "SERVICE_UNAVAILABLE", "the agent answered status 429: no", true},
        {499, "no", "PROTOCOL_ERROR", "status 499", false},
        {500, "no", "SERVICE_UNAVAILABLE", "the agent answered status 500: no", true},
        {400, "{'error':{'code':-32602,'message':'wrong'}}", "VALIDATION_ERROR", "error -32602",
         false},
        {400, "{'reason':'x'}", "PROTOCOL_ERROR", "the agent answered status 400: {", false},
        {400, "{broken", "PROTOCOL_ERROR", "the agent answered status 400: {broken", false},
    };

    (void)state;
    a2a_use(true, false, "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int unsafe = 0; unsafe < 2; unsafe++) {
            char class[64];
            const char *reply;
            service_next(rows[i].status, "", service_text(rows[i].body));
            reply = a2a_do(unsafe ? "work" : "read", "{}");
            (void)snprintf(class, sizeof class, "'class':'%s'", rows[i].class);
            a2a_says(reply, class);
            steps_expect(reply, rows[i].says);
            a2a_says(reply, rows[i].again && !unsafe ? "'retryable':true" : "'retryable':false");
            assert_true((strstr(reply, "whether it took effect is not known") != NULL) ==
                        (rows[i].again && unsafe));
        }
    }
}

static void an_agent_that_cannot_be_reached_is_asked_again(void **state)
{
    const char *reply;

    (void)state;
    a2a_use(true, false, "");
    (void)snprintf(a2a_used()->endpoint, WEB_URL_MAX, "http://127.0.0.1:1/");
    a2a_used()->settings->policy.hosts = (const char *const[]){"127.0.0.1", NULL};
    reply = a2a_do("work", "{}");
    a2a_says(reply, "'class':'SERVICE_UNAVAILABLE'"); /* nothing was sent: also an unsafe one */
    a2a_says(reply, "'retryable':true");
    a2a_use(true, false, ",'timeoutMs':300");
    service_raw(STR_LIT(""), SERVICE_WAITS);
    reply = a2a_do("read", "{}");
    a2a_says(reply, "'class':'TIMEOUT'");
    a2a_says(reply, "'retryable':true");
    assert_int_equal(service_count(), 1); /* there is no task to cancel */
    service_raw(STR_LIT(""), SERVICE_WAITS);
    reply = a2a_do("work", "{}");
    a2a_says(reply, "'retryable':false");
    a2a_says(reply, "whether it took effect is not known");
}

/* ---- streams ---- */

static void stream(const char *events, enum service_end end)
{
    struct buf all;
    const char *at = service_text(events);

    buf_init(&all, 1024 * 1024);
    buf_add_cstr(&all, "HTTP/1.1 200 x\r\nContent-Type: text/event-stream\r\n\r\n: hello\r\n\r\n");
    while (*at != 0) { /* events stand between "|" */
        const size_t n = strcspn(at, "|");
        buf_printf(&all, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":%.*s}\r\n\r\n", (int)n,
                   at);
        at += n + (at[n] != 0 ? 1 : 0);
    }
    service_raw(buf_str(&all), end);
    buf_done(&all);
}

static void events_of_a_stream_make_a_task(void **state)
{
    static const char *const rows[][2] = {
        {"{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'}}}|"
         "{'artifactUpdate':{'taskId':'t','contextId':'c','artifact':{'artifactId':'a','name':'n',"
         "'parts':[{'text':'one'}]}}}|"
         "{'artifactUpdate':{'artifact':{'artifactId':'a','parts':[{'text':' "
         "two'}]},'append':true}}|"
         "{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':'TASK_STATE_COMPLETED'}}}"
         "|"
         "{'statusUpdate':{'status':{'state':'TASK_STATE_FAILED'}}}",
         "'text':'one two','details':{'taskId':'t','contextId':'c'}"},
        {"{'artifactUpdate':{'artifact':{'artifactId':'a','parts':[{'text':'old'}]}}}|"
         "{'artifactUpdate':{'artifact':{'artifactId':'a','parts':[{'text':'new'}]},'append':false}"
         "}|"
         "{'statusUpdate':{'status':{'state':'TASK_STATE_COMPLETED'}}}",
         "'text':'new'"},
        {"{'kind':'artifact-update','taskId':'t','artifact':{'artifactId':'a','parts':[{'kind':"
         "'text','text':'x'}]}}|{'kind':'status-update','taskId':'t','status':{'state':'completed'}"
         "}",
         "'text':'x'"},
        {"{'kind':'status-update','taskId':'t','status':{'state':'working','message':{'parts':["
         "{'text':'first'}]}}}|{'kind':'status-update','taskId':'t','status':{'state':'working',"
         "'message':{'parts':[{'text':'then'}]}}}|{'kind':'status-update','taskId':'t','status':{"
         "'state':'completed'}}",
         "'text':'then'"},
        {"{'artifactUpdate':{'artifact':{'artifactId':'a','parts':[{'text':'streamed'}]}}}|"
         "{'task':{'id':'t','status':{'state':'TASK_STATE_COMPLETED'},'artifacts':[{'artifactId':"
         "'a','parts':[{'text':'whole'}]}]}}",
         "'text':'whole'"},
    };

    (void)state;
    a2a_use(true, true, "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stream(rows[i][0], SERVICE_WAITS); /* its end is not waited for */
        a2a_says(a2a_do("read", "{}"), rows[i][1]);
    }
    assert_int_equal(service_count(), sizeof rows / sizeof rows[0]);
}

/* What the agent says while it works is the progress of the step, cut to 400 bytes of whole
 * characters. */
static void words_of_a_task_that_works_are_shown(void **state)
{
    char says[640] = "";
    char members[1024];

    (void)state;
    a2a_use(true, true, "");
    for (int i = 0; i < 300; i++) {
        (void)snprintf(says + strlen(says), 4, "%s", i == 0 ? "w" : "\xc3\xa4");
    }
    (void)snprintf(members, sizeof members,
                   "{'kind':'status-update','taskId':'t','status':{'state':'working','message':{"
                   "'parts':[{'text':'%s'}]}}}|{'kind':'status-update','taskId':'t','status':{"
                   "'state':'completed'}}",
                   says);
    stream(members, SERVICE_WAITS);
    a2a_says(a2a_do("read", "{}"), "'outcome':'completed'");
    says[399] = 0; /* 1 + 2 * 199 */
    assert_string_equal(steps_last()->progress.text, says);
}

static void there_are_at_most_64_artifacts(void **state)
{
    (void)state;
    a2a_use(true, false, "");
    for (int n = A2A_ARTIFACTS_MAX; n <= A2A_ARTIFACTS_MAX + 1; n++) {
        char result[8192] = "{'task':{'id':'t','status':{'state':'completed'},'artifacts':[";
        for (int i = 0; i < n; i++) {
            (void)snprintf(result + strlen(result), 80,
                           "%s{'artifactId':'%d','parts':[{'text':'x'}]}", i > 0 ? "," : "", i);
        }
        (void)snprintf(result + strlen(result), 8, "]}}");
        a2a_next(result);
        a2a_says(a2a_do("read", "{}"), n == A2A_ARTIFACTS_MAX
                                           ? "'outcome':'completed'"
                                           : "the agent sent more than 64 artifacts");
    }
}

/* ---- until its end ---- */

static void a_task_that_goes_on_is_asked_about(void **state)
{
    static const char working[] =
        "{'id':'t1','contextId':'c1','status':{'state':'TASK_STATE_WORKING'}}";
    const msec began = clock_mono_ms();

    (void)state;
    a2a_use(true, false, "");
    a2a_next("{'task':{'id':'t1','status':{'state':'TASK_STATE_SUBMITTED'}}}");
    a2a_next(working);
    service_next(503, "", ""); /* a moment without it costs nothing */
    a2a_next(DONE);
    a2a_says(a2a_do("work", "{}"), "'text':'fine'");
    assert_int_equal(service_count(), 4);
    service_expect(1,
                   service_text("\r\n\r\n{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{'id':"
                                "'t1'}}"));
    assert_true(clock_mono_ms() - began >= 200 + 400 + 800);
    a2a_use(false, true, "");
    stream("{'kind':'task','id':'t','status':{'state':'working'}}", SERVICE_CLOSES); /* it broke */
    a2a_next(DONE);
    a2a_says(a2a_do("work", "{}"), "'text':'fine'");
    service_expect(5, service_text("'method':'tasks/get','params':{'id':'t'}"));
}

static void an_agent_that_stays_away_is_given_up(void **state)
{
    const char *reply;

    (void)state;
    a2a_use(true, false, "");
    a2a_next("{'task':{'id':'t1','status':{'state':'TASK_STATE_WORKING'}}}");
    service_next(404, "", "gone"); /* it does not know the task */
    reply = a2a_do("work", "{}");
    a2a_says(reply, "'class':'PROTOCOL_ERROR'");
    a2a_says(reply, "status 404: gone");
    assert_int_equal(service_count(), 2);
    a2a_next("{'task':{'id':'t1','status':{'state':'TASK_STATE_WORKING'}}}");
    a2a_next("{}");
    a2a_says(a2a_do("work", "{}"), "neither a task, a message nor an event");
}

static void a_task_is_cancelled_when_its_time_is_over(void **state)
{
    const char *reply;

    (void)state;
    a2a_use(true, false, ",'timeoutMs':1500");
    a2a_next("{'task':{'id':'t1','status':{'state':'TASK_STATE_WORKING'}}}");
    service_at("/rpc", 200, "", "{\"result\":{\"id\":\"t1\",\"status\":{\"state\":\"working\"}}}");
    reply = a2a_do("work", "{}");
    a2a_says(reply, "'class':'TIMEOUT'");
    a2a_says(reply, "the task was not done in time; whether it took effect is not known");
    service_expect(
        service_count() - 1,
        service_text("\r\n\r\n{'jsonrpc':'2.0','id':1,'method':'CancelTask','params':{'id':"
                     "'t1'}}"));
    a2a_use(false, true, ",'timeoutMs':1500");
    stream("{'kind':'task','id':'t2','status':{'state':'working'}}", SERVICE_WAITS);
    a2a_says(a2a_do("read", "{}"), "'class':'TIMEOUT'");
    service_expect(service_count() - 1,
                   service_text("'method':'tasks/cancel','params':{'id':'t2'}"));
}

static void a_cancelled_step_cancels_its_task(void **state)
{
    struct bt_step *step = steps_make("work", "{\"task\":\"x\"}");
    const char *reply;

    (void)state;
    a2a_use(true, true, "");
    atomic_store(&step->cancelled, true);
    stream("{'task':{'id':'t1','status':{'state':'TASK_STATE_WORKING'}}}", SERVICE_WAITS);
    reply = steps_run(step, a2a_run, a2a_used());
    a2a_says(reply, "'class':'CANCELLED'");
    a2a_says(reply, "'retryable':false");
}

/* ---- questions ---- */

static void an_answer_goes_to_the_task_that_asked(void **state)
{
    (void)state;
    a2a_use(true, false, "");
    a2a_next("{'task':{'id':'t1','contextId':'c1','status':{'state':'TASK_STATE_INPUT_REQUIRED',"
             "'message':{'parts':[{'text':'Which?'}]}}}}");
    a2a_says(a2a_do("work", "{'message':'m'}"), "'prompt':'Which?'");
    a2a_next("{'task':" DONE "}");
    a2a_says(a2a_do("work", "{'message':'m','a2a_answer':'red'}"), "'text':'fine'");
    service_expect(1, service_text("'messageId':'" KEY ".1'"));
    service_expect(1, service_text("'parts':[{'text':'red'}]"));
    service_expect(1, service_text("'taskId':'t1','contextId':'c1'"));
    a2a_next("{'task':" DONE "}"); /* it is forgotten: the answer begins a new task */
    (void)a2a_do("work", "{'message':'m','a2a_answer':'red'}");
    service_expect(2, service_text("'messageId':'" KEY "'"));
    service_expect_not(2, "taskId");
}

/* A stream that goes on begins with the task as it waited: that is no new question. */
static void a_stream_that_goes_on_begins_with_the_question(void **state)
{
    static const char asks[] =
        "{'task':{'id':'t1','status':{'state':'TASK_STATE_INPUT_REQUIRED'}}}";

    (void)state;
    a2a_use(true, true, "");
    stream(asks, SERVICE_CLOSES);
    a2a_says(a2a_do("work", "{}"), "'outcome':'needs_input'");
    stream("{'task':{'id':'t1','status':{'state':'TASK_STATE_INPUT_REQUIRED'}}}|{'task':" DONE "}",
           SERVICE_CLOSES);
    a2a_says(a2a_do("work", "{'a2a_answer':'red'}"), "'text':'fine'");
    stream(asks, SERVICE_CLOSES);
    (void)a2a_do("work", "{}");
    stream("{'task':{'id':'t1','status':{'state':'TASK_STATE_INPUT_REQUIRED'}}}|"
           "{'statusUpdate':{'taskId':'t1','status':{'state':'TASK_STATE_INPUT_REQUIRED'}}}",
           SERVICE_CLOSES);
    a2a_says(a2a_do("work", "{'a2a_answer':'red'}"), "'outcome':'needs_input'"); /* once more */
}

static void so_many_questions_are_remembered(void **state)
{
    (void)state;
    a2a_use(true, false, "");
    for (int i = 0; i <= A2A_TASKS_MAX; i++) {
        char result[128];
        (void)snprintf(result, sizeof result,
                       "{'task':{'id':'t%d','status':{'state':'input-required'}}}", i);
        a2a_next(result);
        (void)a2a_do("work", "{}");
        /* Each is of another step. */
        (void)snprintf(a2a_used()->waiting[i % A2A_TASKS_MAX].key, LIMIT_KEY_BYTES, "step %d", i);
        assert_int_equal(a2a_used()->next_waiting, (i + 1) % A2A_TASKS_MAX);
    }
    assert_string_equal(a2a_used()->waiting[0].task, "t64"); /* the oldest went */
    assert_string_equal(a2a_used()->waiting[1].task, "t1");
}

static void run_some(void *self)
{
    (void)self;
    service_forget();
    a2a_next("{'task':" DONE "}");
    (void)a2a_do("work", "{'data':[1]}");
    a2a_next("{'message':{'parts':[{'data':1},{'data':2}]}}");
    (void)a2a_do("work", "{}");
    service_next(500, "", "no");
    (void)a2a_do("work", "{}");
    a2a_next("{'task':{'id':'t','status':{'state':'input-required'}}}");
    (void)a2a_do("work", "{}");
    steps_forget();
    service_forget();
}

static void a_step_keeps_no_memory(void **state)
{
    (void)state;
    a2a_use(true, false, ",'headers':{'A':'b'}");
    heap_is_given_back(run_some, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, a2a_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_message_is_sent_as_its_version_has_it),
        TEST(without_a_message_the_task_is_it),
        TEST(headers_and_the_key_go_along),
        TEST(each_form_of_an_answer_is_one),
        TEST(a_status_of_any_length_is_the_text),
        TEST(each_end_has_its_outcome),
        TEST(what_is_no_answer_is_an_error_of_the_agent),
        TEST(an_agent_that_cannot_be_reached_is_asked_again),
        TEST(events_of_a_stream_make_a_task),
        TEST(words_of_a_task_that_works_are_shown),
        TEST(there_are_at_most_64_artifacts),
        TEST(a_task_that_goes_on_is_asked_about),
        TEST(an_agent_that_stays_away_is_given_up),
        TEST(a_task_is_cancelled_when_its_time_is_over),
        TEST(a_cancelled_step_cancels_its_task),
        TEST(an_answer_goes_to_the_task_that_asked),
        TEST(a_stream_that_goes_on_begins_with_the_question),
        TEST(so_many_questions_are_remembered),
        TEST(a_step_keeps_no_memory),
    };

    return cmocka_run_group_tests(tests, a2a_start, a2a_stop);
}
