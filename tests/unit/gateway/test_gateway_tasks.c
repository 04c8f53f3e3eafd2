/* A2A: tasks, events and lists in the words of both versions and bindings. */
#include "supervisor/gateway/options.h"
#include "tests/unit/gateway/a2a_world.h"

#define VIEW(status) "{'planId':'P','sessionId':'S','status':'" status "','updatedAt':'W'}"
#define RPC(x) "{'jsonrpc':'2.0','id':7,'result':" x "}"

static void a_task_is_the_plan_with_its_result_in_the_words_of_the_client(void **state)
{
#define MODERN                                                                                     \
    "{'id':'P','contextId':'S','status':{'state':'TASK_STATE_COMPLETED','timestamp':'W'},"         \
    "'artifacts':[{'artifactId':'result','name':'result','parts':[{'text':'3'}]}]}"
    static const char result[] = "{'status':'completed','aggregatedResult':'3'}";

    (void)state;
    rpc("GetTask", "{'id':'P'}");
    rig_answer(VIEW("completed"));
    expect_asked(MSG_plan_result, "{'planId':'P','steps':false}");
    assert_true(rig.spec.reads);
    rig_answer(result);
    expect_out(200, RPC(MODERN));
    assert_string_equal(rig.h.type, "application/json");
    rpc("tasks/get", "{'id':'P'}");
    rig_answer(VIEW("completed"));
    rig_answer(result);
    expect_out(200, RPC("{'kind':'task','id':'P','contextId':'S','status':{'state':'completed',"
                        "'timestamp':'W'},'artifacts':[{'artifactId':'result','name':'result',"
                        "'parts':[{'kind':'text','text':'3'}]}]}"));
    rest("GET", "/a2a/tasks/P", "");
    rig_answer(VIEW("completed"));
    rig_answer(result);
    expect_out(200, MODERN);
    rest("GET", "/a2a/v1/tasks/P", "");
    rig_answer(VIEW("completed"));
    rig_answer(result);
    expect_out(200, MODERN);
    rpc("GetTask", "{'id':'P'}");
    rig_answer(VIEW("completed"));
    rig_refuse(BT_GONE, "it was deleted");
    expect_refused(A2A_NO_TASK, "it was deleted");
}

static void a_plan_has_a_state_of_tasks(void **state)
{
    static const struct {
        const char *status, *modern, *legacy, *rest;
        bool over;
    } all[] = {{"completed", "TASK_STATE_COMPLETED", "completed", "TASK_STATE_COMPLETED", true},
               {"planned", "TASK_STATE_COMPLETED", "completed", "TASK_STATE_COMPLETED", true},
               {"failed", "TASK_STATE_FAILED", "failed", "TASK_STATE_FAILED", true},
               {"quarantined", "TASK_STATE_FAILED", "failed", "TASK_STATE_FAILED", true},
               {"cancelled", "TASK_STATE_CANCELED", "canceled", "TASK_STATE_CANCELLED", true},
               {"waiting", "TASK_STATE_INPUT_REQUIRED", "input-required",
                "TASK_STATE_INPUT_REQUIRED", false},
               {"running", "TASK_STATE_WORKING", "working", "TASK_STATE_WORKING", false},
               {"paused", "TASK_STATE_WORKING", "working", "TASK_STATE_WORKING", false}};
    char view[256];
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (int way = 0; way < 3; way++) {
            (void)snprintf(view, sizeof view, "{'planId':'P','createdAt':'C','status':'%s'}",
                           all[i].status);
            if (way == 2) {
                rest("GET", "/a2a/v1/tasks/P", "");
            } else {
                rpc(way == 0 ? "GetTask" : "tasks/get", "{'id':'P'}");
            }
            rig_answer(view);
            if (all[i].over) {
                assert_int_equal(rig.spec.type, MSG_plan_result);
                rig_answer(view);
            }
            (void)snprintf(text, sizeof text, "\"state\":\"%s\",\"timestamp\":\"C\"",
                           way == 0   ? all[i].modern
                           : way == 1 ? all[i].legacy
                                      : all[i].rest);
            assert_non_null(strstr(rig_out(), text));
            assert_non_null(strstr(rig_out(), "\"contextId\":\"P\"")); /* it has no session */
        }
    }
}

static void a_task_that_failed_says_why(void **state)
{
    (void)state;
    rpc("GetTask", "{'id':'P'}");
    rig_answer("{'planId':'P','completedAt':'W','createdAt':'C','status':'failed'}");
    rig_answer("{'status':'failed','failureReason':'no room'}");
    expect_out(200, RPC("{'id':'P','contextId':'P','status':{'state':'TASK_STATE_FAILED',"
                        "'timestamp':'W','message':{'role':'ROLE_AGENT','messageId':'P-failed',"
                        "'taskId':'P','contextId':'P','parts':[{'text':'no room'}]}}}"));
    rpc("tasks/get", "{'id':'P'}");
    rig_answer(VIEW("failed"));
    rig_answer("{'status':'failed','failureReason':'no room'}");
    expect_out(200, RPC("{'kind':'task','id':'P','contextId':'S','status':{'state':'failed',"
                        "'timestamp':'W','message':{'kind':'message','role':'agent','messageId':"
                        "'P-failed','taskId':'P','contextId':'S','parts':[{'kind':'text','text':"
                        "'no room'}]}}}"));
    rest("GET", "/a2a/v1/tasks/P", "");
    rig_answer(VIEW("failed"));
    rig_answer("{'status':'failed','failureReason':'no room'}");
    assert_non_null(strstr(rig_out(), "\"content\":[{\"text\":\"no room\"}]"));
}

/* ---- how long a message waits ---- */

static void expect_way(bool now)
{
    rig_answer("{'planId':'P'}");
    rig_answer("{'planId':'P','status':'running','lastSeq':5}");
    if (now) {
        assert_int_equal(rig.h.state, HTTP_READY);
        assert_null(follows.self);
    } else {
        assert_int_equal(rig.h.state, HTTP_WAITS);
        assert_true(follows.quiet);
        assert_int_equal(follows.from, 6);
        assert_string_equal(follows.plan, "P");
    }
}

static void a_message_waits_for_the_end_unless_its_client_says_no(void **state)
{
#define MESSAGE "'message':{'parts':[{'text':'g'}]}"
    static const struct {
        const char *how;
        bool rpc_now, old_rest_now;
    } all[] = {{"", false, true},
               {",'configuration':{'blocking':true}", false, false},
               {",'configuration':{'blocking':false}", true, true},
               {",'configuration':{'returnImmediately':true}", true, true},
               {",'configuration':{'returnImmediately':false}", false, true},
               {",'configuration':{'blocking':7}", false, true}};
    char params[512];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)snprintf(params, sizeof params, "{" MESSAGE "%s}", all[i].how);
        rpc("SendMessage", params);
        expect_way(all[i].rpc_now);
        rest("POST", "/a2a/message:send", params);
        expect_way(all[i].rpc_now);
        rest("POST", "/a2a/v1/message:send", params);
        expect_way(all[i].old_rest_now);
    }
}

static void the_answer_to_a_message_is_wrapped_in_the_newer_words(void **state)
{
    (void)state;
    rpc("SendMessage", "{" MESSAGE ",'configuration':{'returnImmediately':true}}");
    rig_answer("{'planId':'P'}");
    rig_answer(VIEW("running"));
    expect_out(200, RPC("{'task':{'id':'P','contextId':'S','status':{'state':"
                        "'TASK_STATE_WORKING','timestamp':'W'}}}"));
    rpc("message/send", "{" MESSAGE ",'configuration':{'blocking':false}}");
    rig_answer("{'planId':'P'}");
    rig_answer(VIEW("waiting"));
    expect_out(200, RPC("{'kind':'task','id':'P','contextId':'S','status':{'state':"
                        "'input-required','timestamp':'W'}}"));
}

static void a_message_that_waits_is_answered_at_the_end_or_when_it_needs_a_person(void **state)
{
    (void)state;
    rpc("SendMessage", "{" MESSAGE "}");
    rig_answer("{'planId':'P'}");
    rig_answer("{'planId':'P','sessionId':'S','status':'running','lastSeq':5}");
    happens("{'type':'plan_step_started','stepId':'a'}");
    assert_int_equal(follows.out.len, 0); /* one answer, at the end */
    ends_with("{'status':'completed','aggregatedResult':'3'}");
    assert_true(follows.finished);
    assert_true(follows.called);
    assert_string_equal(
        timeless(&follows.out),
        quoted(RPC("{'task':{'id':'P','contextId':'S','status':{'state':'TASK_STATE_COMPLETED',"
                   "'timestamp':''},'artifacts':[{'artifactId':'result','name':'result','parts':[{"
                   "'text':'3'}]}]}}")));
    rpc("message/send", "{" MESSAGE "}");
    rig_answer("{'planId':'P'}");
    rig_answer("{'planId':'P','status':'running','lastSeq':5}");
    happens("{'type':'plan_step_waiting','prompt':'really?'}");
    assert_true(follows.stopped);
    follows.view->over(&follows);
    assert_true(follows.finished);
    assert_non_null(strstr(buf_cstr(&follows.out), "\"state\":\"input-required\""));
    assert_non_null(strstr(buf_cstr(&follows.out), "\"text\":\"really?\""));
}

static void a_result_that_cannot_be_read_is_an_error(void **state)
{
    const struct reply no = {.problem = {.code = BT_IO, .message = STR_LIT("no disk")}};

    (void)state;
    rpc("SendMessage", "{" MESSAGE "}");
    rig_answer("{'planId':'P'}");
    rig_answer("{'planId':'P','status':'running'}");
    follows.view->over(&follows);
    follows.spec.done(&follows, &no);
    assert_string_equal(buf_cstr(&follows.out),
                        quoted("{'jsonrpc':'2.0','id':7,'error':{'code':-32603,'message':"
                               "'no disk'}}"));
    assert_true(follows.finished);
    rpc("SubscribeToTask", "{'id':'P'}");
    rig_answer("{'planId':'P','status':'running'}");
    follows.view->over(&follows);
    follows.spec.done(&follows, &no);
    assert_non_null(strstr(buf_cstr(&follows.out), "\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,"
                                                   "\"error\":{\"code\":-32603"));
    rest("POST", "/a2a/tasks/P:subscribe", "");
    rig_answer("{'planId':'P','status':'running'}");
    follows.view->over(&follows);
    follows.spec.done(&follows, &no);
    assert_non_null(strstr(buf_cstr(&follows.out), "event: error\ndata: {\"error\":"));
    rpc("SendMessage", "{" MESSAGE "}");
    rig_answer("{'planId':'P'}");
    rig_answer("{'planId':'P','status':'running'}");
    follows.refuses = true;
    follows.view->over(&follows);
    assert_true(follows.finished); /* it cannot be asked for */
}

/* ---- streams ---- */

/* The events of a stream, without the first task. */
static void expect_stream(const char *method, const char *const *lines, size_t n)
{
    const char *at;
    char line[2048];

    rpc(method, strncmp(method, "S", 1) == 0 || strchr(method, '/') != NULL ? "{'id':'P'}" : "");
    rig_answer("{'planId':'P','sessionId':'S','status':'running','lastSeq':5}");
    assert_false(follows.quiet);
    at = strstr(timeless(&follows.out), "\n\n");
    assert_non_null(at);
    buf_clear(&follows.out);
    happens("{'type':'plan_step_started','stepId':'a'}");
    happens("{'type':'plan_step_progress','stepId':'a','text':'half'}");
    happens("{'type':'plan_step_completed','stepId':'a'}");
    happens("{'type':'agent_handoff'}");
    ends_with("{'status':'completed','aggregatedResult':'3'}");
    line[0] = 0;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(line + strlen(line), sizeof line - strlen(line),
                       "data: {'jsonrpc':'2.0','id':7,'result':%s}\n\n", lines[i]);
    }
    assert_string_equal(timeless(&follows.out), quoted(line));
}

static void each_change_is_an_event_and_the_end_has_the_result(void **state)
{
#define NEW(s, says)                                                                               \
    "{'statusUpdate':{'taskId':'P','contextId':'S','status':{'state':'TASK_STATE_" s               \
    "','timestamp':''" says "}}}"
#define NEW_SAYS(text)                                                                             \
    ",'message':{'role':'ROLE_AGENT','messageId':'P-working','taskId':'P','contextId':'S',"        \
    "'parts':[{'text':'" text "'}]}"
#define OLD(s, says, last)                                                                         \
    "{'kind':'status-update','taskId':'P','contextId':'S','status':{'state':'" s                   \
    "','timestamp':''" says "},'final':" last "}"
#define OLD_SAYS(text)                                                                             \
    ",'message':{'kind':'message','role':'agent','messageId':'P-working','taskId':'P',"            \
    "'contextId':'S','parts':[{'kind':'text','text':'" text "'}]}"
    static const char *const modern[] = {
        NEW("WORKING", NEW_SAYS("a started")), NEW("WORKING", NEW_SAYS("a: half")),
        NEW("WORKING", NEW_SAYS("a is over")),
        "{'artifactUpdate':{'taskId':'P','contextId':'S','artifact':{'artifactId':'result',"
        "'name':'result','parts':[{'text':'3'}]},'append':false,'lastChunk':true}}",
        NEW("COMPLETED", "")};
    static const char *const legacy[] = {
        OLD("working", OLD_SAYS("a started"), "false"),
        OLD("working", OLD_SAYS("a: half"), "false"),
        OLD("working", OLD_SAYS("a is over"), "false"),
        "{'kind':'artifact-update','taskId':'P','contextId':'S','artifact':{'artifactId':'result',"
        "'name':'result','parts':[{'kind':'text','text':'3'}]},'append':false,'lastChunk':true}",
        OLD("completed", "", "true")};

    (void)state;
    expect_stream("SubscribeToTask", modern, 5);
    expect_stream("tasks/resubscribe", legacy, 5);
}

static void a_stream_begins_with_the_task(void **state)
{
    (void)state;
    rpc("SendStreamingMessage", "{" MESSAGE "}");
    rig_answer("{'planId':'P'}");
    rig_answer(VIEW("running"));
    assert_string_equal(timeless(&follows.out),
                        quoted("data: " RPC("{'task':{'id':'P','contextId':'S','status':{'state':"
                                            "'TASK_STATE_WORKING','timestamp':'W'}}}") "\n\n"));
    rest("POST", "/a2a/message:stream", "{" MESSAGE "}");
    rig_answer("{'planId':'P'}");
    rig_answer(VIEW("running"));
    assert_ptr_equal(strstr(buf_cstr(&follows.out), "data: {\"task\":{\"id\":\"P\""),
                     buf_cstr(&follows.out));
}

static void a_stream_of_a_task_that_is_over_or_waits_is_one_event(void **state)
{
    (void)state;
    rpc("SubscribeToTask", "{'id':'P'}");
    rig_answer(VIEW("completed"));
    rig_answer("{'status':'completed'}");
    assert_string_equal(rig.h.type, "text/event-stream");
    expect_out(200, "data: " RPC("{'task':{'id':'P','contextId':'S','status':{'state':"
                                 "'TASK_STATE_COMPLETED','timestamp':'W'}}}") "\n\n");
    rpc("SubscribeToTask", "{'id':'P'}");
    rig_answer(VIEW("waiting"));
    assert_string_equal(rig.h.type, "text/event-stream");
    expect_out(200, "data: " RPC("{'task':{'id':'P','contextId':'S','status':{'state':"
                                 "'TASK_STATE_INPUT_REQUIRED','timestamp':'W'}}}") "\n\n");
}

static void a_stream_that_needs_a_person_ends_with_the_question(void **state)
{
    static const struct {
        const char *event, *says;
        bool asks;
    } all[] = {{"{'type':'plan_step_waiting','prompt':'ok?'}", "ok?", true},
               {"{'type':'plan_step_waiting'}", "approve, reject or skip?", true},
               {"{'type':'plan_paused','reviewId':'r'}", "approve, reject or skip?", true},
               {"{'type':'plan_paused'}", "", false}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rpc("tasks/resubscribe", "{'id':'P'}");
        rig_answer("{'planId':'P','status':'running'}");
        happens(all[i].event);
        assert_true(follows.stopped == all[i].asks);
        if (all[i].asks) {
            follows.view->over(&follows);
            assert_non_null(strstr(buf_cstr(&follows.out), "\"state\":\"input-required\""));
            assert_non_null(strstr(buf_cstr(&follows.out), all[i].says));
            assert_non_null(strstr(buf_cstr(&follows.out), "\"final\":true"));
        }
    }
}

/* ---- lists ---- */

#define ITEM(id, state) "{'id':'" id "','contextId':'" id "','status':{'state':'" state
#define LIST(tasks, next, size)                                                                    \
    RPC("{'tasks':[" tasks "],'nextPageToken':'" next "','pageSize':" size "}")

static void a_list_is_a_page_of_plans_as_tasks(void **state)
{
    (void)state;
    rpc("ListTasks", "{'pageSize':2,'pageToken':'x'}");
    expect_asked(MSG_plan_list, "{'limit':2,'cursor':'x'}");
    rig_answer("{'plans':[{'planId':'A','status':'running','createdAt':'1'},{'planId':'B','status':"
               "'failed','createdAt':'2','failureReason':'why'}],'cursor':'y'}");
    expect_out(200, LIST(ITEM("A", "TASK_STATE_WORKING','timestamp':'1'}},") ITEM(
                             "B", "TASK_STATE_FAILED','timestamp':'2','message':{'role':'"
                                  "ROLE_AGENT','messageId':'B-failed','taskId':'B','contextId':'B',"
                                  "'parts':[{'text':'why'}]}}}"),
                         "y", "2"));
    rpc("ListTasks", "{}");
    rig_answer("{'plans':[]}");
    expect_out(200, LIST("", "", "50"));
    rpc("ListTasks", "{}");
    rig_refuse(BT_INVALID, "cursor");
    expect_refused(A2A_PARAMS, "cursor");
}

static void a_list_has_results_when_they_are_asked_for(void **state)
{
    static const char plans[] =
        "{'plans':[{'planId':'A','status':'completed','createdAt':'1'},{'planId':'B','status':"
        "'running','createdAt':'2'},{'planId':'C','status':'completed','createdAt':'3'},{'planId':"
        "'D','status':'failed','createdAt':'4'}]}";

    (void)state;
    rpc("ListTasks", "{'includeArtifacts':true}");
    rig_answer(plans);
    expect_asked(MSG_plan_result, "{'planId':'A','steps':false}");
    rig_answer("{'status':'completed','aggregatedResult':'3'}");
    expect_asked(MSG_plan_result, "{'planId':'C','steps':false}");
    rig_refuse(BT_NOT_FOUND, "deleted meanwhile");
    rig_refuse(BT_GONE, "deleted meanwhile");
    expect_out(200, LIST(ITEM("A", "TASK_STATE_COMPLETED','timestamp':'1'},'artifacts':[{"
                                   "'artifactId':'result','name':'result','parts':[{'text':'3'}]}"
                                   "]},") ITEM("B", "TASK_STATE_WORKING','timestamp':'2'}}"),
                         "", "50"));
    rpc("ListTasks", "{'includeArtifacts':true}");
    rig_answer(plans);
    rig_refuse(BT_UNAVAILABLE, "away");
    expect_refused(A2A_INTERNAL, "away");
    rpc("ListTasks", "{'includeArtifacts':'yes'}");
    rig_answer(plans);
    assert_int_equal(rig.h.state, HTTP_READY);
    rpc("ListTasks", "{'includeArtifacts':false}");
    rig_answer(plans);
    assert_int_equal(rig.h.state, HTTP_READY);
}

static void a_list_is_of_a_state_or_of_what_changed_later(void **state)
{
    static const struct {
        const char *status, *asked, *found;
    } all[] = {{"TASK_STATE_WORKING", "", "A"},
               {"TASK_STATE_INPUT_REQUIRED", ",'status':'waiting'", "B"},
               {"TASK_STATE_COMPLETED", ",'status':'completed'", "C"},
               {"TASK_STATE_FAILED", ",'status':'failed'", "D"},
               {"TASK_STATE_CANCELED", ",'status':'cancelled'", "E"},
               {"TASK_STATE_SUBMITTED", "", ""},
               {"TASK_STATE_UNSPECIFIED", "", "ABCDE"}};
    static const char plans[] =
        "{'plans':[{'planId':'A','status':'running','updatedAt':'2026-11-25T08:00:00.000Z'},"
        "{'planId':'B','status':'waiting','updatedAt':'2026-11-25T08:00:00.001Z'},{'planId':'C',"
        "'status':'completed','updatedAt':'2026-11-25T08:00:00.002Z'},{'planId':'D','status':"
        "'failed','updatedAt':'2026-11-25T08:00:00.003Z'},{'planId':'E','status':'cancelled',"
        "'updatedAt':'2026-11-25T08:00:00.004Z'}]}";
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)snprintf(text, sizeof text, "{'status':'%s'}", all[i].status);
        rpc("ListTasks", text);
        (void)snprintf(text, sizeof text, "{'limit':50%s}", all[i].asked);
        expect_asked(MSG_plan_list, text);
        rig_answer(plans);
        for (const char *id = "ABCDE"; *id != 0; id++) {
            (void)snprintf(text, sizeof text, "\"id\":\"%c\"", *id);
            assert_true((strstr(rig_out(), text) != NULL) == (strchr(all[i].found, *id) != NULL));
        }
    }
    rpc("ListTasks", "{'statusTimestampAfter':'2026-11-25T08:00:00.002Z'}");
    rig_answer(plans);
    assert_null(strstr(rig_out(), "\"id\":\"B\""));
    assert_non_null(strstr(rig_out(), "\"id\":\"C\"")); /* at that time, too */
    assert_non_null(strstr(rig_out(), "\"id\":\"D\""));
}

static void a_context_without_plans_may_be_a_plan_without_a_session(void **state)
{
    (void)state;
    rpc("ListTasks", "{'contextId':'C'}");
    expect_asked(MSG_plan_list, "{'limit':50,'sessionId':'C'}");
    rig_answer("{'plans':[]}");
    expect_asked(MSG_plan_get, "{'planId':'C','steps':false}");
    rig_answer("{'planId':'C','status':'running','createdAt':'1'}");
    expect_out(200, LIST(ITEM("C", "TASK_STATE_WORKING','timestamp':'1'}}"), "", "50"));
    rpc("ListTasks", "{'contextId':'C'}");
    rig_answer("{'plans':[]}");
    rig_answer("{'planId':'C','sessionId':'S','status':'running'}"); /* its context is another */
    expect_out(200, LIST("", "", "50"));
    rpc("ListTasks", "{'contextId':'C'}");
    rig_answer("{'plans':[]}");
    rig_refuse(BT_NOT_FOUND, "no such plan");
    expect_out(200, LIST("", "", "50"));
    rpc("ListTasks", "{'contextId':'C','pageToken':'x'}");
    rig_answer("{'plans':[]}");
    expect_out(200, LIST("", "", "50")); /* the end of the pages */
}

static void what_is_wrong_with_a_list_is_named(void **state)
{
    static const struct {
        const char *params, *words;
    } all[] = {{"{'pageSize':0}", "pageSize: expected a number from 1 to 100"},
               {"{'pageSize':101}", "pageSize: expected"},
               {"{'pageSize':'x'}", "pageSize: expected"},
               {"{'status':'working'}", "status: expected a state of tasks"},
               {"{'status':7}", "status: expected a state of tasks"},
               {"{'statusTimestampAfter':'2026-11-25T08:00:0'}", "statusTimestampAfter: expected"},
               {"{'statusTimestampAfter':'2026.11-25T08:00:00Z'}", "statusTimestampAfter: ex"},
               {"{'statusTimestampAfter':'2026-11-25 08:00:00Z'}", "statusTimestampAfter: ex"},
               {"{'contextId':'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}",
                "contextId: has at most 64 bytes"}};
    static const char *const right[] = {
        "{'pageSize':1}", "{'pageSize':100}", "{'statusTimestampAfter':'2026-11-25T08:00:00Z'}",
        "{'contextId':'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}"};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rpc("ListTasks", all[i].params);
        expect_refused(A2A_PARAMS, all[i].words);
        assert_int_equal(rig.asked, 0);
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        rpc("ListTasks", right[i]);
        assert_int_equal(rig.h.state, HTTP_WAITS);
    }
}

/* ---- what receivers of push notifications get ---- */

static void push(bool modern, const char *event, const char *answer, const char *expected)
{
    struct buf e;
    struct buf a;
    struct buf out;
    struct a2a_push p = {.modern = modern, .plan = "P", .context = "S"};

    buf_init(&e, TEXT_BYTES);
    buf_init(&a, TEXT_BYTES);
    buf_init(&out, TEXT_BYTES);
    assert_int_equal(json_to_doc(str_from(quoted(event)), NULL, &e, NULL), BT_OK);
    p.event = doc_from_buf(&e);
    if (answer != NULL) {
        assert_int_equal(json_to_doc(str_from(quoted(answer)), NULL, &a, NULL), BT_OK);
        p.answer = doc_from_buf(&a);
    }
    assert_true(a2a_push_wants(p.event));
    assert_true(a2a_push_ends(p.event) == (answer != NULL));
    a2a_push_body(&p, &out);
    assert_string_equal(buf_cstr(&out), quoted(expected));
    buf_done(&e);
    buf_done(&a);
    buf_done(&out);
}

static void a_push_is_an_event_in_1_0_and_the_task_in_0_3(void **state)
{
    struct buf noise;

    (void)state;
    push(true, "{'type':'plan_step_started','stepId':'a','timestamp':'W'}", NULL,
         "{'statusUpdate':{'taskId':'P','contextId':'S','status':{'state':'TASK_STATE_WORKING',"
         "'timestamp':'W','message':{'role':'ROLE_AGENT','messageId':'P-working','taskId':'P',"
         "'contextId':'S','parts':[{'text':'a started'}]}}}}");
    push(true, "{'type':'plan_completed','timestamp':'W'}",
         "{'status':'completed','aggregatedResult':'3'}",
         "{'task':{'id':'P','contextId':'S','status':{'state':'TASK_STATE_COMPLETED','timestamp':"
         "'W'},'artifacts':[{'artifactId':'result','name':'result','parts':[{'text':'3'}]}]}}");
    push(false, "{'type':'plan_step_waiting','prompt':'ok?','timestamp':'W'}", NULL,
         "{'kind':'task','id':'P','contextId':'S','status':{'state':'input-required','timestamp':"
         "'W','message':{'kind':'message','role':'agent','messageId':'P-input-required','taskId':"
         "'P','contextId':'S','parts':[{'kind':'text','text':'ok?'}]}}}");
    push(false, "{'type':'plan_completed','timestamp':'W'}",
         "{'status':'failed','failureReason':'no'}",
         "{'kind':'task','id':'P','contextId':'S','status':{'state':'failed','timestamp':'W',"
         "'message':{'kind':'message','role':'agent','messageId':'P-failed','taskId':'P',"
         "'contextId':'S','parts':[{'kind':'text','text':'no'}]}}}");
    buf_init(&noise, 256);
    assert_int_equal(json_to_doc(str_from(quoted("{'type':'agent_handoff'}")), NULL, &noise, NULL),
                     BT_OK);
    assert_false(a2a_push_wants(doc_from_buf(&noise)));
    buf_done(&noise);
}

/* ---- the card ---- */

static void the_card_has_every_interface_at_the_address_that_was_asked(void **state)
{
    static const struct options plain = {.tls = NULL};

    (void)state;
    rig.s.opt = &plain;
    rig.h.heads.host = "h:1";
    a2a_serve_card(&rig.h);
    expect_out(
        200,
        "{'name':'Baton','description':'Runs goals and plans with many agents.',"
        "'version':'" BATON_VERSION "','protocolVersion':'0.3.0','preferredTransport':'JSONRPC',"
        "'url':'http://h:1/a2a','supportedInterfaces':["
        "{'url':'http://h:1/a2a','protocolBinding':'JSONRPC','protocolVersion':'1.0'},"
        "{'url':'http://h:1/a2a','protocolBinding':'HTTP+JSON','protocolVersion':'1.0'},"
        "{'url':'http://h:1/a2a','protocolBinding':'JSONRPC','protocolVersion':'0.3'},"
        "{'url':'http://h:1/a2a','protocolBinding':'HTTP+JSON','protocolVersion':'0.3'}],"
        "'additionalInterfaces':[{'url':'http://h:1/a2a','transport':'JSONRPC'},"
        "{'url':'http://h:1/a2a','transport':'HTTP+JSON'}],"
        "'capabilities':{'streaming':true,'pushNotifications':true},"
        "'defaultInputModes':['text/plain','application/json'],'defaultOutputModes':['text/plain'],"
        "'skills':[{'id':'goal','name':'Run a goal','description':'Text: what is to be reached; a "
        "planner makes the steps.','tags':['plan']},{'id':'plan','name':'Run a plan','description':"
        "'Data: a plan document with steps.','tags':['plan']}]}");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_task_is_the_plan_with_its_result_in_the_words_of_the_client),
        TEST(a_plan_has_a_state_of_tasks),
        TEST(a_task_that_failed_says_why),
        TEST(a_message_waits_for_the_end_unless_its_client_says_no),
        TEST(the_answer_to_a_message_is_wrapped_in_the_newer_words),
        TEST(a_message_that_waits_is_answered_at_the_end_or_when_it_needs_a_person),
        TEST(a_result_that_cannot_be_read_is_an_error),
        TEST(each_change_is_an_event_and_the_end_has_the_result),
        TEST(a_stream_begins_with_the_task),
        TEST(a_stream_of_a_task_that_is_over_or_waits_is_one_event),
        TEST(a_stream_that_needs_a_person_ends_with_the_question),
        TEST(a_list_is_a_page_of_plans_as_tasks),
        TEST(a_list_has_results_when_they_are_asked_for),
        TEST(a_list_is_of_a_state_or_of_what_changed_later),
        TEST(a_context_without_plans_may_be_a_plan_without_a_session),
        TEST(what_is_wrong_with_a_list_is_named),
        TEST(a_push_is_an_event_in_1_0_and_the_task_in_0_3),
        TEST(the_card_has_every_interface_at_the_address_that_was_asked),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
