/* A2A: which request of the daemon each method and address becomes, and what is refused. */
#include "tests/unit/gateway/a2a_world.h"

#define GET "{'planId':'P','steps':false}"

static void what_is_no_request_is_refused_with_its_code(void **state)
{
    static const char *const none[] = {"[]",
                                       "{}",
                                       "{'jsonrpc':'1.0','id':1,'method':'GetTask'}",
                                       "{'jsonrpc':'2.0','method':'GetTask'}",
                                       "{'jsonrpc':'2.0','id':1}",
                                       "{'jsonrpc':'2.0','id':1,'method':7}"};

    (void)state;
    rpc_raw("{");
    assert_non_null(strstr(rig_out(), "\"id\":null,\"error\":{\"code\":-32700,"));
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        rpc_raw(none[i]);
        assert_non_null(strstr(rig_out(), "\"error\":{\"code\":-32600,\"message\":\"expected one"));
        assert_int_equal(rig.h.status, 200); /* JSON-RPC has its own */
        assert_string_equal(rig.h.type, "application/json");
    }
    rpc("Nothing", "{}");
    expect_refused(A2A_METHOD, "this server has no such method; there are SendMessage");
    rpc("", "{}");
    expect_refused(A2A_REQUEST, "expected one request");
}

static void each_method_asks_the_daemon_in_both_versions(void **state)
{
    static const struct {
        const char *method, *params;
        enum msg_type type;
        const char *fields;
    } all[] = {
        {"SendMessage", "{'message':{'parts':[{'text':'g'}]}}", MSG_plan_submit, "{'goal':'g'}"},
        {"message/send", "{'message':{'parts':[{'text':'g'}]}}", MSG_plan_submit, "{'goal':'g'}"},
        {"SendStreamingMessage", "{'message':{'parts':[{'text':'g'}]}}", MSG_plan_submit,
         "{'goal':'g'}"},
        {"message/stream", "{'message':{'parts':[{'text':'g'}]}}", MSG_plan_submit, "{'goal':'g'}"},
        {"GetTask", "{'id':'P'}", MSG_plan_get, GET},
        {"tasks/get", "{'id':'P'}", MSG_plan_get, GET},
        {"ListTasks", "{}", MSG_plan_list, "{'limit':50}"},
        {"CancelTask", "{'id':'P'}", MSG_plan_cancel, "{'planId':'P'}"},
        {"tasks/cancel", "{'id':'P'}", MSG_plan_cancel, "{'planId':'P'}"},
        {"SubscribeToTask", "{'id':'P'}", MSG_plan_get, GET},
        {"tasks/resubscribe", "{'id':'P'}", MSG_plan_get, GET},
        {"CreateTaskPushNotificationConfig", "{'taskId':'P','url':'http://r'}", MSG_plan_get, GET},
        {"tasks/pushNotificationConfig/set", "{'taskId':'P'}", MSG_plan_get, GET},
        {"GetTaskPushNotificationConfig", "{'taskId':'P'}", MSG_plan_get, GET},
        {"tasks/pushNotificationConfig/get", "{'id':'P'}", MSG_plan_get, GET},
        {"ListTaskPushNotificationConfigs", "{'taskId':'P'}", MSG_plan_get, GET},
        {"tasks/pushNotificationConfig/list", "{'id':'P'}", MSG_plan_get, GET},
        {"DeleteTaskPushNotificationConfig", "{'taskId':'P'}", MSG_plan_get, GET},
        {"tasks/pushNotificationConfig/delete", "{'id':'P'}", MSG_plan_get, GET}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rpc(all[i].method, all[i].params);
        expect_asked(all[i].type, all[i].fields);
        assert_true(rig.spec.reads ==
                    (all[i].type == MSG_plan_get || all[i].type == MSG_plan_list));
    }
    rpc("ListTasks", "{}");
    assert_int_equal(rig.spec.answer, MSG_plan_list_ok);
    rpc("GetTask", "{'id':'P'}");
    assert_int_equal(rig.spec.answer, MSG_plan_view);
    rpc("CancelTask", "{'id':'P'}");
    assert_int_equal(rig.spec.answer, MSG_plan_cancel_ok);
}

static void a_task_has_an_id_of_64_letters(void **state)
{
    char params[256];

    (void)state;
    for (size_t n = 64; n < 66; n++) {
        (void)snprintf(params, sizeof params, "{'id':'%.*s'}", (int)n,
                       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        rpc("GetTask", params);
        assert_int_equal(rig.h.state, n == 64 ? HTTP_WAITS : HTTP_READY);
    }
    expect_refused(A2A_NO_TASK, "there is no task with this id");
    rpc("GetTask", "{}");
    expect_refused(A2A_NO_TASK, "there is no task");
    rpc("CancelTask", "{}");
    expect_refused(A2A_NO_TASK, "there is no task");
    rpc("GetTaskPushNotificationConfig", "{}");
    expect_refused(A2A_NO_TASK, "there is no task");
    rpc("SendMessage", "{'message':{'taskId':'"
                       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}}");
    expect_refused(A2A_NO_TASK, "there is no task");
}

/* ---- messages ---- */

static void a_message_is_a_goal_or_a_plan(void **state)
{
    (void)state;
    rpc("SendMessage", "{'message':{'messageId':'m','contextId':'c','parts':[{'text':'add '},"
                       "{'file':{}},{'text':'1'}]}}");
    expect_asked(MSG_plan_submit, "{'goal':'add 1','sessionId':'c','clientKey':'a2a:m'}");
    assert_int_equal(rig.spec.answer, MSG_plan_submit_ok);
    assert_false(rig.spec.reads);
    rpc("SendMessage", "{'message':{'parts':[{'text':'why'},{'data':{'steps':[1]}},{'data':{"
                       "'steps':[2]}}]}}");
    expect_asked(MSG_plan_submit, "{'plan':{'steps':[1]}}");
    rpc("SendMessage", "{'message':{'parts':[{'data':{'x':1}},{'text':'a goal'}]}}");
    expect_asked(MSG_plan_submit, "{'goal':'a goal'}");
    rpc("SendMessage", "{'message':{'content':[{'text':'g'}]}}");
    expect_asked(MSG_plan_submit, "{'goal':'g'}");
    rpc("SendMessage", "{'request':{'content':[{'text':'g'}]}}");
    expect_asked(MSG_plan_submit, "{'goal':'g'}");
    rest("POST", "/a2a/v1/message:send",
         "{'request':{'content':[{'data':{'data':{'steps':[1]}}}]}}");
    expect_asked(MSG_plan_submit, "{'plan':{'steps':[1]}}");
    rest("POST", "/a2a/message:send", "{'message':{'parts':[{'data':{'steps':[1]}}]}}");
    expect_asked(MSG_plan_submit, "{'plan':{'steps':[1]}}");
}

static void a_goal_has_8192_bytes_and_an_id_that_is_known_again_99(void **state)
{
    static char params[TEXT_BYTES];
    static char text[9000];

    (void)state;
    memset(text, 'x', sizeof text);
    for (int n = 8192; n < 8194; n++) {
        (void)snprintf(params, sizeof params, "{'message':{'parts':[{'text':'%.*s'}]}}", n, text);
        rpc("SendMessage", params);
        assert_int_equal(rig.h.state, n == 8192 ? HTTP_WAITS : HTTP_READY);
    }
    expect_refused(A2A_PARAMS, "message.parts: expected a text, the goal");
    for (int n = 99; n < 101; n++) {
        (void)snprintf(params, sizeof params,
                       "{'message':{'messageId':'%.*s','parts':[{'text':'g'}]}}", n, text);
        rpc("SendMessage", params);
        assert_true((strstr(rig.fields, "clientKey") != NULL) == (n == 99));
    }
    rpc("SendMessage", "{'message':{}}");
    expect_refused(A2A_PARAMS, "message.parts: expected");
    rpc("SendMessage", "{}");
    expect_refused(A2A_PARAMS, "message.parts: expected");
    rpc("SendMessage", "7");
    expect_refused(A2A_PARAMS, "message.parts: expected");
}

static void a_refusal_of_the_daemon_has_a_code_of_each_binding(void **state)
{
    static const struct {
        enum bt_code code;
        int rpc;
        unsigned http;
        const char *reason;
    } all[] = {{BT_NOT_FOUND, A2A_NO_TASK, 404, "TASK_NOT_FOUND"},
               {BT_GONE, A2A_NO_TASK, 404, "TASK_NOT_FOUND"},
               {BT_CONFLICT, A2A_UNSUPPORTED, 400, "UNSUPPORTED_OPERATION"},
               {BT_INVALID, A2A_PARAMS, 400, "REQUEST_MALFORMED"},
               {BT_LIMIT, A2A_PARAMS, 400, "REQUEST_MALFORMED"},
               {BT_BUSY, A2A_INTERNAL, 503, "INTERNAL_ERROR"},
               {BT_IO, A2A_INTERNAL, 500, "INTERNAL_ERROR"}};
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rpc("SendMessage", "{'message':{'parts':[{'text':'g'}]}}");
        rig_refuse(all[i].code, "no");
        expect_refused(all[i].rpc, "no");
        assert_int_equal(rig.h.status, 200);
        assert_null(rig.h.call);
        rest("POST", "/a2a/message:send", "{'message':{'parts':[{'text':'g'}]}}");
        rig_refuse(all[i].code, "no");
        assert_int_equal(rig.h.status, all[i].http);
        (void)snprintf(text, sizeof text,
                       "{\"error\":{\"code\":%u,\"message\":\"no\",\"status\":", all[i].http);
        assert_int_equal(strncmp(rig_out(), text, strlen(text)), 0);
        assert_non_null(strstr(rig_out(), all[i].reason));
        rest("POST", "/a2a/v1/message:send", "{'request':{'content':[{'text':'g'}]}}");
        rig_refuse(all[i].code, "no");
        (void)snprintf(text, sizeof text, "{'code':%d,'message':'no'}", all[i].rpc);
        expect_out(all[i].http, text);
    }
    rpc("CancelTask", "{'id':'P'}");
    rig_refuse(BT_CONFLICT, "it is over");
    expect_refused(A2A_NOT_CANCELABLE, "it is over");
    rest("POST", "/a2a/tasks/P:cancel", "");
    rig_refuse(BT_CONFLICT, "it is over");
    expect_out(400, "{'error':{'code':400,'message':'it is over','status':'FAILED_PRECONDITION',"
                    "'details':[{'@type':'type.googleapis.com/google.rpc.ErrorInfo','reason':"
                    "'TASK_NOT_CANCELABLE','domain':'a2a-protocol.org'}]}}");
    rpc("GetTask", "{'id':'P'}");
    rig_refuse(BT_UNAUTHORIZED, "who are you?"); /* that is of HTTP */
    assert_int_equal(rig.h.status, 401);
    assert_int_equal(rig.code, BT_UNAUTHORIZED);
    assert_string_equal(rig_out(), "");
}

static void what_cannot_be_asked_is_an_internal_error(void **state)
{
    struct http *h = &rig.h;

    (void)state;
    over();
    rig_begin(quoted("{'jsonrpc':'2.0','id':7,'method':'GetTask','params':{'id':'P'}}"));
    rig.busy = BT_BUSY;
    a2a_serve(h);
    expect_refused(A2A_INTERNAL, "too many wait");
}

/* ---- answers to reviews ---- */

static void answers_with(const char *part)
{
    char params[1024];

    (void)snprintf(params, sizeof params, "{'message':{'taskId':'P','parts':[%s]}}", part);
    rpc("SendMessage", params);
    expect_asked(MSG_review_list, "{'planId':'P'}");
    assert_int_equal(rig.spec.answer, MSG_review_list_ok);
    assert_true(rig.spec.reads);
    rig_answer("{'reviews':[{'reviewId':'r'},{'reviewId':'other'}]}");
}

static void a_message_to_a_task_decides_its_first_review(void **state)
{
    static const struct {
        const char *text, *fields;
    } all[] = {{"approve", "{'reviewId':'r','decision':'approve'}"},
               {"Approve", "{'reviewId':'r','decision':'approve'}"},
               {"yes, go on", "{'reviewId':'r','decision':'approve','comment':'go on'}"},
               {"reject  , no", "{'reviewId':'r','decision':'reject','comment':'no'}"},
               {"no", "{'reviewId':'r','decision':'reject'}"},
               {"SKIP it", "{'reviewId':'r','decision':'skip','comment':'it'}"}};
    static const char *const unclear[] = {"", "approved", "yesterday", "maybe", "skipped", "app"};
    char part[128];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)snprintf(part, sizeof part, "{'text':'%s'}", all[i].text);
        answers_with(part);
        expect_asked(MSG_review_decide, all[i].fields);
        assert_int_equal(rig.spec.answer, MSG_empty);
        assert_false(rig.spec.reads);
    }
    for (size_t i = 0; i < sizeof unclear / sizeof unclear[0]; i++) {
        (void)snprintf(part, sizeof part, "{'text':'%s'}", unclear[i]);
        answers_with(part);
        expect_refused(A2A_PARAMS, "the task waits for a decision: expected a text that begins");
    }
    answers_with("{'data':{'a':1}},{'text':'anything'}");
    expect_asked(MSG_review_decide, "{'reviewId':'r','decision':'approve','edit':{'a':1}}");
    rig_answer("{}");
    expect_asked(MSG_plan_get, GET); /* what came of it */
}

static void a_task_that_waits_for_nothing_takes_no_answer(void **state)
{
    (void)state;
    rpc("SendMessage", "{'message':{'taskId':'P','parts':[{'text':'approve'}]}}");
    rig_answer("{'reviews':[]}");
    expect_refused(A2A_PARAMS, "message.taskId: this task waits for no answer");
    rpc("SendMessage", "{'message':{'taskId':'P','parts':[{'text':'approve'}]}}");
    rig_refuse(BT_NOT_FOUND, "no such plan");
    expect_refused(A2A_NO_TASK, "no such plan");
    answers_with("{'text':'approve'}");
    rig_refuse(BT_CONFLICT, "decided");
    expect_refused(A2A_UNSUPPORTED, "decided");
}

/* ---- addresses ---- */

static void an_address_is_a_method_and_its_query_the_params(void **state)
{
    static const struct {
        const char *method, *target, *body;
        enum msg_type type;
        const char *fields;
    } all[] = {
        {"GET", "/a2a/tasks/P", "", MSG_plan_get, GET},
        {"GET", "/a2a/v1/tasks/P", "", MSG_plan_get, GET},
        {"POST", "/a2a/tasks/P:cancel", "", MSG_plan_cancel, "{'planId':'P'}"},
        {"POST", "/a2a/v1/tasks/P:cancel", "", MSG_plan_cancel, "{'planId':'P'}"},
        {"POST", "/a2a/tasks/P:subscribe", "", MSG_plan_get, GET},
        {"GET", "/a2a/v1/tasks/P:subscribe", "", MSG_plan_get, GET},
        {"POST", "/a2a/message:stream", "{'message':{'parts':[{'text':'g'}]}}", MSG_plan_submit,
         "{'goal':'g'}"},
        {"GET", "/a2a/tasks?pageSize=7&contextId=42&pageToken=9&status=TASK_STATE_FAILED", "",
         MSG_plan_list, "{'limit':7,'sessionId':'42','cursor':'9','status':'failed'}"},
        {"POST", "/a2a/tasks/P/pushNotificationConfigs", "{'url':'http://r'}", MSG_plan_get, GET},
        {"GET", "/a2a/tasks/P/pushNotificationConfigs", "", MSG_plan_get, GET},
        {"GET", "/a2a/tasks/P/pushNotificationConfigs/c", "", MSG_plan_get, GET},
        {"DELETE", "/a2a/v1/tasks/P/pushNotificationConfigs/c", "", MSG_plan_get, GET}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rest(all[i].method, all[i].target, all[i].body);
        expect_asked(all[i].type, all[i].fields);
    }
    rest("GET", "/a2a/tasks/:cancel", "");
    assert_int_equal(rig.h.state, HTTP_WAITS); /* a task of this name */
    rest("POST", "/a2a/message:send", "[]");
    assert_int_equal(rig.h.status, 400);
    assert_non_null(strstr(rig_out(), "body: expected an object"));
    rest("POST", "/a2a/message:send", "{");
    assert_int_equal(rig.h.status, 400);
}

static void an_address_without_this_verb_says_which_one_it_has(void **state)
{
    static const struct {
        const char *method, *target;
        uint32_t allowed;
    } all[] = {{"GET", "/a2a/tasks/P:cancel", 1u << HTTP_POST},
               {"POST", "/a2a/tasks/P", 1u << HTTP_GET}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rest(all[i].method, all[i].target, "");
        assert_int_equal(rig.h.status, 405);
        assert_int_equal(rig.h.allowed, all[i].allowed);
        assert_int_equal(rig.asked, 0);
    }
}

/* ---- push notifications ---- */

static void a_configuration_is_set_when_its_task_is_there(void **state)
{
    (void)state;
    rpc("CreateTaskPushNotificationConfig",
        "{'taskId':'P','id':'c','url':'http://r/','token':'t','authentication':{'scheme':'Bearer',"
        "'credentials':'k'}}");
    rig_answer("{'planId':'P','sessionId':'S','status':'running','lastSeq':9}");
    expect_out(200, "{'jsonrpc':'2.0','id':7,'result':{'taskId':'P','id':'c','url':'http://r/',"
                    "'token':'t','authentication':{'scheme':'Bearer'}}}");
    assert_int_equal(pushes.n, 1);
    assert_int_equal(pushes.at[0].form, HOOK_A2A);
    assert_int_equal(pushes.at[0].from, 10); /* from now on */
    assert_string_equal(pushes.at[0].plan, "P");
    assert_string_equal(pushes.at[0].context, "S");
    assert_string_equal(pushes.at[0].credentials, "k");
    assert_true(pushes.at[0].made > 0);
    rpc("tasks/pushNotificationConfig/set",
        "{'taskId':'P','pushNotificationConfig':{'url':'https://r/','authentication':{'schemes':["
        "'Basic','Bearer'],'credentials':'k'}}}");
    rig_answer("{'planId':'P','status':'completed','lastSeq':9}");
    expect_out(200, "{'jsonrpc':'2.0','id':7,'result':{'taskId':'P','pushNotificationConfig':{"
                    "'id':'P','url':'https://r/','authentication':{'schemes':['Basic']}}}}");
    assert_int_equal(pushes.at[1].form, HOOK_A2A_OLD);
    assert_int_equal(pushes.at[1].from, 9);        /* it is over: its end */
    assert_string_equal(pushes.at[1].config, "P"); /* one that has no name is that of the task */
    assert_string_equal(pushes.at[1].context, "P");
    rest("POST", "/a2a/v1/tasks/P/pushNotificationConfigs", "{'url':'http://r','id':'x'}");
    rig_answer("{'planId':'P','status':'running','lastSeq':9}");
    expect_out(200, "{'name':'tasks/P/pushNotificationConfigs/x','pushNotificationConfig':{"
                    "'id':'x','url':'http://r'}}");
    pushes.full = true;
    rpc("CreateTaskPushNotificationConfig", "{'taskId':'P','url':'http://r/'}");
    rig_answer("{'planId':'P','status':'running'}");
    expect_refused(A2A_UNSUPPORTED, "no place");
    rpc("CreateTaskPushNotificationConfig", "{'taskId':'P','url':'http://r/'}");
    rig_refuse(BT_NOT_FOUND, "no such plan");
    expect_refused(A2A_NO_TASK, "no such plan");
}

static void a_configuration_is_read_listed_and_deleted(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        (void)snprintf(pushes.at[i].plan, 65, "P");
        (void)snprintf(pushes.at[i].url, 65, "http://%d", i);
        (void)snprintf(pushes.at[i].config, 65, "c%d", i);
    }
    pushes.n = 2;
    rpc("GetTaskPushNotificationConfig", "{'taskId':'P','id':'c1'}");
    rig_answer("{'planId':'P'}");
    expect_out(200, "{'jsonrpc':'2.0','id':7,'result':{'taskId':'P','id':'c1','url':'http://1'}}");
    rpc("tasks/pushNotificationConfig/get", "{'id':'P','pushNotificationConfigId':'c0'}");
    rig_answer("{'planId':'P'}");
    expect_out(200, "{'jsonrpc':'2.0','id':7,'result':{'taskId':'P','pushNotificationConfig':{"
                    "'id':'c0','url':'http://0'}}}");
    rpc("tasks/pushNotificationConfig/get", "{'id':'P'}"); /* that of the task */
    rig_answer("{'planId':'P'}");
    expect_refused(A2A_NO_TASK, "this task has no push notification configuration");
    (void)snprintf(pushes.at[0].config, 65, "P");
    rpc("tasks/pushNotificationConfig/get", "{'id':'P'}");
    rig_answer("{'planId':'P'}");
    assert_non_null(strstr(rig_out(), "\"id\":\"P\",\"url\":\"http://0\""));
    (void)snprintf(pushes.at[0].config, 65, "c0");
    rest("GET", "/a2a/tasks/P/pushNotificationConfigs", "");
    rig_answer("{'planId':'P'}");
    expect_out(200, "{'configs':[{'taskId':'P','id':'c0','url':'http://0'},{'taskId':'P','id':"
                    "'c1','url':'http://1'}]}");
    rpc("tasks/pushNotificationConfig/list", "{'id':'P'}");
    rig_answer("{'planId':'P'}");
    expect_out(200, "{'jsonrpc':'2.0','id':7,'result':[{'taskId':'P','pushNotificationConfig':{"
                    "'id':'c0','url':'http://0'}},{'taskId':'P','pushNotificationConfig':{'id':"
                    "'c1','url':'http://1'}}]}");
    rest("DELETE", "/a2a/tasks/P/pushNotificationConfigs/c0", "");
    rig_answer("{'planId':'P'}");
    expect_out(200, "{}");
    rpc("tasks/pushNotificationConfig/delete", "{'id':'P','pushNotificationConfigId':'c1'}");
    rig_answer("{'planId':'P'}");
    expect_out(200, "{'jsonrpc':'2.0','id':7,'result':null}");
    rpc("DeleteTaskPushNotificationConfig", "{'taskId':'P','id':'c1'}");
    rig_answer("{'planId':'P'}");
    expect_refused(A2A_NO_TASK, "this task has no push notification configuration");
    for (int i = 0; i < 3; i++) {
        static const char *const methods[] = {"GetTaskPushNotificationConfig",
                                              "ListTaskPushNotificationConfigs",
                                              "DeleteTaskPushNotificationConfig"};
        rpc(methods[i], "{'taskId':'P','id':'c1'}");
        rig_refuse(BT_UNAVAILABLE, "away");
        expect_refused(A2A_INTERNAL, "away");
    }
}

static void what_is_wrong_in_a_configuration_is_named(void **state)
{
    static const struct {
        const char *name, *text; /* "*" is one letter more than it may have */
        int max;
        const char *words;
    } all[] = {{"url", "ftp://x", 0, "url: expected"},
               {"url", "http://x\\u0001", 0, "url: expected"},
               {"url", "http://x\\u007f", 0, "url: expected"},
               {"url", "http://*", HOOK_URL_MAX - 7, "url: expected"},
               {"id", "*", 64, "id: expected"},
               {"id", "\\n", 0, "id: expected"},
               {"token", "*", PUSH_TEXT_MAX, "token, authentication"},
               {"token", "\\r", 0, "token, authentication"}};
    static char params[TEXT_BYTES];
    static char x[4096];

    (void)state;
    memset(x, 'x', sizeof x);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (int over_ = all[i].max > 0 ? 0 : 1; over_ < 2; over_++) {
            const char *star = strchr(all[i].text, '*');
            const int before = star != NULL ? (int)(star - all[i].text) : (int)strlen(all[i].text);
            (void)snprintf(params, sizeof params, "{'taskId':'P'%s,'%s':'%.*s%.*s'}",
                           strcmp(all[i].name, "url") == 0 ? "" : ",'url':'http://r'", all[i].name,
                           before, all[i].text, star != NULL ? all[i].max + over_ : 0, x);
            pushes.n = 0;
            rpc("CreateTaskPushNotificationConfig", params);
            rig_answer("{'planId':'P','status':'running'}");
            assert_int_equal(pushes.n, over_ == 0);
        }
        expect_refused(A2A_PARAMS, all[i].words);
    }
    rpc("CreateTaskPushNotificationConfig", "{'taskId':'P','url':'http://r','token':' ~'}");
    pushes.n = 0;
    rig_answer("{'planId':'P','status':'running'}");
    assert_string_equal(pushes.at[0].token, " ~"); /* the first and the last that are printed */
    for (int n = 64; n < 66; n++) {
        (void)snprintf(params, sizeof params,
                       "{'taskId':'P','url':'http://r','authentication':{'scheme':'%.*s'}}", n, x);
        pushes.n = 0;
        rpc("CreateTaskPushNotificationConfig", params);
        rig_answer("{'planId':'P','status':'running'}");
        assert_int_equal(pushes.n, n == 64);
    }
}

static void a_message_with_a_configuration_has_a_place_before_it_counts(void **state)
{
    static const char *const names[] = {"taskPushNotificationConfig", "pushNotificationConfig",
                                        "pushNotification"};
    char params[512];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        pushes.n = 0;
        (void)snprintf(params, sizeof params,
                       "{'message':{'parts':[{'text':'g'}]},'configuration':{'%s':{'url':"
                       "'http://r','id':'c'}}}",
                       names[i]);
        rpc("SendMessage", params);
        assert_int_equal(pushes.reserved, 1);
        assert_string_equal(pushes.config, "c");
        rig_answer("{'planId':'P'}");
        assert_int_equal(pushes.reserved, 0);
        assert_int_equal(pushes.n, 1);
        assert_int_equal(pushes.at[0].from, 1); /* all that comes of it */
        assert_string_equal(pushes.at[0].plan, "P");
        expect_asked(MSG_plan_get, GET);
    }
    rpc("SendMessage", params);
    assert_int_equal(pushes.reserved, 1);
    rig_refuse(BT_INVALID, "no"); /* its place goes with the request */
    over();
    assert_int_equal(pushes.reserved, 0);
    rig_begin("");
    pushes.full = true;
    rpc("SendMessage", params);
    expect_refused(A2A_UNSUPPORTED, "no place");
    assert_int_equal(rig.asked, 0);
    rpc("SendMessage", "{'message':{'parts':[{'text':'g'}]},'configuration':{"
                       "'taskPushNotificationConfig':{'url':'x'}}}");
    expect_refused(A2A_PARAMS, "url: expected");
    assert_int_equal(rig.asked, 0);
}

static void an_answer_with_a_configuration_gets_what_comes_of_it(void **state)
{
    (void)state;
    rpc("SendMessage", "{'message':{'taskId':'P','parts':[{'text':'approve'}]},'configuration':{"
                       "'taskPushNotificationConfig':{'url':'http://r'}}}");
    expect_asked(MSG_plan_get, GET);
    assert_string_equal(pushes.plan, "P");
    rig_answer("{'planId':'P','sessionId':'S','lastSeq':9}");
    expect_asked(MSG_review_list, "{'planId':'P'}");
    rig_answer("{'reviews':[{'reviewId':'r'}]}");
    rig_answer("{}");
    assert_int_equal(pushes.n, 1);
    assert_int_equal(pushes.at[0].from, 10);
    assert_string_equal(pushes.at[0].context, "S");
    expect_asked(MSG_plan_get, GET);
    rpc("SendMessage", "{'message':{'taskId':'P','parts':[{'text':'approve'}]},'configuration':{"
                       "'taskPushNotificationConfig':{'url':'http://r'}}}");
    rig_refuse(BT_NOT_FOUND, "no such plan");
    expect_refused(A2A_NO_TASK, "no such plan");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_is_no_request_is_refused_with_its_code),
        TEST(each_method_asks_the_daemon_in_both_versions),
        TEST(a_task_has_an_id_of_64_letters),
        TEST(a_message_is_a_goal_or_a_plan),
        TEST(a_goal_has_8192_bytes_and_an_id_that_is_known_again_99),
        TEST(a_refusal_of_the_daemon_has_a_code_of_each_binding),
        TEST(what_cannot_be_asked_is_an_internal_error),
        TEST(a_message_to_a_task_decides_its_first_review),
        TEST(a_task_that_waits_for_nothing_takes_no_answer),
        TEST(an_address_is_a_method_and_its_query_the_params),
        TEST(an_address_without_this_verb_says_which_one_it_has),
        TEST(a_configuration_is_set_when_its_task_is_there),
        TEST(a_configuration_is_read_listed_and_deleted),
        TEST(what_is_wrong_in_a_configuration_is_named),
        TEST(a_message_with_a_configuration_has_a_place_before_it_counts),
        TEST(an_answer_with_a_configuration_gets_what_comes_of_it),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
