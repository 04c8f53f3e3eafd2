/* The card, and the methods of JSON-RPC. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "supervisor/gateway/a2a/a2a_internal.h"
#include "supervisor/gateway/telemetry/telemetry.h"

enum { GOAL_MAX = 8192 };

/* ---- the card: both versions read it ---- */

static void put_interface(struct buf *out, const char *url, const char *binding,
                          const char *version)
{
    json_open(out, '{');
    json_key(out, "url");
    json_cstr(out, url);
    json_key(out, "protocolBinding");
    json_cstr(out, binding);
    json_key(out, "protocolVersion");
    json_cstr(out, version);
    json_close(out, '}');
}

void a2a_serve_card(struct http *h)
{
    struct buf *out = &h->out;
    char url[400];

    (void)snprintf(url, sizeof url, "%s://%.300s/a2a", h->s->opt->tls != NULL ? "https" : "http",
                   h->heads.host);
    json_raw(out, "{\"name\":\"Baton\",\"description\":\"Runs goals and plans with many agents.\","
                  "\"version\":\"" BATON_VERSION "\",\"protocolVersion\":\"0.3.0\","
                  "\"preferredTransport\":\"JSONRPC\"");
    json_key(out, "url");
    json_cstr(out, url);
    json_key(out, "supportedInterfaces");
    json_open(out, '[');
    put_interface(out, url, "JSONRPC", "1.0");
    put_interface(out, url, "HTTP+JSON", "1.0");
    put_interface(out, url, "JSONRPC", "0.3");
    put_interface(out, url, "HTTP+JSON", "0.3");
    json_close(out, ']');
    json_key(out, "additionalInterfaces"); /* as 0.3 names them */
    json_open(out, '[');
    json_open(out, '{');
    json_member(out, "url", str_from(url));
    json_member(out, "transport", STR_LIT("JSONRPC"));
    json_close(out, '}');
    json_open(out, '{');
    json_member(out, "url", str_from(url));
    json_member(out, "transport", STR_LIT("HTTP+JSON"));
    json_close(out, '}');
    json_close(out, ']');
    json_key(out, "capabilities");
    json_raw(out, "{\"streaming\":true,\"pushNotifications\":true}");
    json_key(out, "defaultInputModes");
    json_raw(out, "[\"text/plain\",\"application/json\"],\"defaultOutputModes\":[\"text/plain\"]");
    json_key(out, "skills");
    json_raw(out, "[{\"id\":\"goal\",\"name\":\"Run a goal\",\"description\":\"Text: what is to be "
                  "reached; a planner makes the steps.\",\"tags\":[\"plan\"]},{\"id\":\"plan\","
                  "\"name\":\"Run a plan\",\"description\":\"Data: a plan document with steps.\","
                  "\"tags\":[\"plan\"]}]}");
    h->status = 200;
    h->type = "application/json";
    h->state = HTTP_READY;
}

/* ---- answers ---- */

void a2a_answer(const struct a2a *a)
{
    struct http *h = a->h;

    h->status = a->status != 0 ? a->status : 200;
    h->type = h->type == NULL ? "application/json" : h->type;
    h->state = HTTP_READY;
    if (buf_check(&h->out, NULL) != BT_OK) {
        http_refuse(h, BT_NOMEM, 503, "", "out of memory for the answer");
    }
    http_ready(h);
}

/* status: of HTTP; 0 = as the code says. */
static void refuse(struct a2a *a, int code, unsigned status, struct str message)
{
    if (a->rest) {
        a->status = status != 0 ? status : a2a_fault_of(code).http;
    }
    buf_clear(&a->h->out);
    a2a_put_error(a, code, message, &a->h->out);
    a2a_answer(a);
}

void a2a_refuse(struct a2a *a, int code, const char *message)
{
    refuse(a, code, 0, str_from(message));
}

void a2a_refuse_problem(struct a2a *a, const struct problem *p)
{
    const int code = p->code == BT_NOT_FOUND || p->code == BT_GONE  ? A2A_NO_TASK
                     : p->code == BT_CONFLICT && a->cancels         ? A2A_NOT_CANCELABLE
                     : p->code == BT_CONFLICT                       ? A2A_UNSUPPORTED
                     : p->code == BT_INVALID || p->code == BT_LIMIT ? A2A_PARAMS
                                                                    : A2A_INTERNAL;

    if (p->code == BT_UNAUTHORIZED) {
        http_problem(a->h, p);
        http_ready(a->h);
        return;
    }
    refuse(a, code, code == A2A_INTERNAL ? problem_status(p) : 0, p->message);
}

void a2a_ask(struct a2a *a, enum msg_type type, enum msg_type answer, bool reads,
             struct buf *fields, call_done *done)
{
    struct http *h = a->h;
    const struct call_spec spec = {.type = type,
                                   .answer = answer,
                                   .fields = doc_from_buf(fields),
                                   .reads = reads,
                                   .traceparent = str_from(h->heads.traceparent),
                                   .done = done,
                                   .self = a};
    struct bt_error err;

    if (buf_check(fields, &err) != BT_OK ||
        caller_call(h->caller, &spec, h->s->now, &h->call, &err) != BT_OK) {
        a2a_refuse(a, A2A_INTERNAL, err.msg);
    } else if (h->state != HTTP_WAITS) {
        http_wait(h);
    }
}

static struct doc get(struct doc d, const char *name)
{
    return doc_get(d, str_from(name));
}

/* ---- a message that begins a task ---- */

static void on_submitted(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    const struct str plan = doc_string(get(reply->body, "planId"));

    a->h->call = NULL;
    if (!reply->ok) {
        a2a_refuse_problem(a, &reply->problem);
        return;
    }
    (void)snprintf(a->plan, sizeof a->plan, "%.*s", (int)plan.len, plan.ptr);
    a->push_from = 1;
    telemetry_note_plan(a->h, reply->body, (struct doc){.ptr = NULL});
    if (a2a_push_comes(a)) {
        a2a_show(a);
    }
}

static struct doc message_of(const struct a2a *a)
{
    const struct doc message = get(a->params, "message");

    return message.ptr != NULL ? message : get(a->params, "request");
}

/* Text of all parts, and the first value beside them. */
static void read_parts(const struct a2a *a, struct doc message, struct buf *text, struct doc *data)
{
    const struct doc named = get(message, "parts");
    const struct doc parts = named.ptr != NULL ? named : get(message, "content");
    const uint32_t n = parts.ptr == NULL ? 0 : doc_head(parts).n;

    *data = (struct doc){.ptr = NULL};
    for (uint32_t i = 0; i < n; i++) {
        const struct doc part = doc_at(parts, i);
        buf_add_str(text, doc_string(get(part, "text")));
        *data = data->ptr == NULL ? get(part, "data") : *data;
    }
    if (a->rest && !a->modern && data->ptr != NULL) {
        *data = get(*data, "data"); /* 0.3 over HTTP has it in an object of its own */
    }
}

static void submit(struct a2a *a, struct doc message, struct str text, struct doc data)
{
    const struct str context = doc_string(get(message, "contextId"));
    const struct str id = doc_string(get(message, "messageId"));
    const bool is_plan = get(data, "steps").ptr != NULL;
    char key[128];
    struct buf fields;

    if (!is_plan && (text.len == 0 || text.len > GOAL_MAX)) {
        a2a_refuse(a, A2A_PARAMS,
                   "message.parts: expected a text, the goal, with at most 8192 bytes, or a data "
                   "part with the steps of a plan");
        return;
    }
    buf_init(&fields, LIMIT_CONTROL_BYTES);
    doc_put_map(&fields, 1u + (context.len > 0) + (id.len > 0 && id.len < 100));
    doc_put_cstr(&fields, is_plan ? "plan" : "goal");
    if (is_plan) {
        doc_put_doc(&fields, data);
    } else {
        doc_put_str(&fields, text);
    }
    if (context.len > 0) {
        doc_put_cstr(&fields, "sessionId");
        doc_put_str(&fields, context);
    }
    if (id.len > 0 && id.len < 100) { /* the same message again is the same task */
        (void)snprintf(key, sizeof key, "a2a:%.*s", (int)id.len, id.ptr);
        doc_put_cstr(&fields, "clientKey");
        doc_put_cstr(&fields, key);
    }
    a2a_ask(a, MSG_plan_submit, MSG_plan_submit_ok, false, &fields, on_submitted);
    buf_done(&fields);
}

/* ---- a message that answers a review ---- */

static void on_decided(void *self, const struct reply *reply)
{
    struct a2a *a = self;

    a->h->call = NULL;
    if (!reply->ok) {
        a2a_refuse_problem(a, &reply->problem);
    } else if (!a->sends || a2a_push_comes(a)) {
        a2a_show(a);
    }
}

/* "approve", with a comment after it. False: no decision. */
static bool read_decision(struct str text, const char **ret, struct str *ret_comment)
{
    static const char *const words[][2] = {{"approve", "approve"},
                                           {"yes", "approve"},
                                           {"reject", "reject"},
                                           {"no", "reject"},
                                           {"skip", "skip"}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i][0]);
        if (text.len >= n && strncasecmp(text.ptr, words[i][0], n) == 0 &&
            (text.len == n || text.ptr[n] == ' ' || text.ptr[n] == ',')) {
            *ret = words[i][1];
            *ret_comment = (struct str){text.ptr + n, text.len - n};
            while (ret_comment->len > 0 &&
                   (ret_comment->ptr[0] == ' ' || ret_comment->ptr[0] == ',')) {
                ret_comment->ptr++;
                ret_comment->len--;
            }
            return true;
        }
    }
    return false;
}

static void on_reviews(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    const struct doc review = doc_at(get(reply->body, "reviews"), 0);
    const char *decision = "approve";
    struct str comment = {NULL, 0};
    struct doc data;
    struct buf fields;
    struct buf text;

    a->h->call = NULL;
    if (!reply->ok || review.ptr == NULL) {
        if (reply->ok) {
            a2a_refuse(a, A2A_PARAMS, "message.taskId: this task waits for no answer");
        } else {
            a2a_refuse_problem(a, &reply->problem);
        }
        return;
    }
    buf_init(&fields, LIMIT_CONTROL_BYTES);
    buf_init(&text, LIMIT_CONTROL_BYTES);
    read_parts(a, message_of(a), &text, &data);
    if (data.ptr == NULL && !read_decision(buf_str(&text), &decision, &comment)) {
        a2a_refuse(a, A2A_PARAMS,
                   "the task waits for a decision: expected a text that begins with approve, "
                   "reject or skip, or a data part with what is asked for");
    } else {
        doc_put_map(&fields, 2u + (data.ptr != NULL) + (comment.len > 0));
        doc_put_cstr(&fields, "reviewId");
        doc_put_doc(&fields, get(review, "reviewId"));
        doc_put_cstr(&fields, "decision");
        doc_put_cstr(&fields, decision);
        if (data.ptr != NULL) {
            doc_put_cstr(&fields, "edit");
            doc_put_doc(&fields, data);
        }
        if (comment.len > 0) {
            doc_put_cstr(&fields, "comment");
            doc_put_str(&fields, comment);
        }
        a2a_ask(a, MSG_review_decide, MSG_empty, false, &fields, on_decided);
    }
    buf_done(&text);
    buf_done(&fields);
}

static void ask_reviews(struct a2a *a)
{
    struct buf fields;

    buf_init(&fields, 256);
    doc_put_map(&fields, 1);
    doc_put_cstr(&fields, "planId");
    doc_put_cstr(&fields, a->plan);
    a2a_ask(a, MSG_review_list, MSG_review_list_ok, true, &fields, on_reviews);
    buf_done(&fields);
}

/* Its configuration begins with what comes of the answer. */
static void on_before(void *self, const struct reply *reply)
{
    struct a2a *a = self;

    a->h->call = NULL;
    if (!reply->ok) {
        a2a_refuse_problem(a, &reply->problem);
        return;
    }
    (void)a2a_take_view(a, reply->body);
    a->push_from = doc_head(get(reply->body, "lastSeq")).u + 1;
    ask_reviews(a);
}

static void answer_task(struct a2a *a)
{
    struct buf fields;

    if (!a->reserves) {
        ask_reviews(a);
        return;
    }
    buf_init(&fields, 256);
    a2a_put_fields(&fields, a->plan);
    a2a_ask(a, MSG_plan_get, MSG_plan_view, true, &fields, on_before);
    buf_done(&fields);
}

/* ---- methods ---- */

bool a2a_take_plan(struct a2a *a, struct str id)
{
    if (id.len == 0 || id.len >= sizeof a->plan) {
        a2a_refuse(a, A2A_NO_TASK, "there is no task with this id");
        return false;
    }
    memcpy(a->plan, id.ptr, id.len);
    return true;
}

static void send_message(struct a2a *a)
{
    const struct doc message = message_of(a);
    const struct str task = doc_string(get(message, "taskId"));
    struct doc data;
    struct buf text;

    a->wrapped = true;
    if ((task.len > 0 && !a2a_take_plan(a, task)) || !a2a_push_fits(a)) {
        return;
    }
    if (task.len > 0) {
        answer_task(a);
        return;
    }
    buf_init(&text, LIMIT_CONTROL_BYTES);
    read_parts(a, message, &text, &data);
    submit(a, message, buf_str(&text), data);
    buf_done(&text);
}

static bool is(struct doc d, bool value)
{
    return d.ptr != NULL && doc_head(d).kind == DOC_BOOL && doc_head(d).b == value;
}

static void on_send(struct a2a *a)
{
    const struct doc how = get(a->params, "configuration");

    bool now = is(get(how, "blocking"), false) || is(get(how, "returnImmediately"), true);

    if (a->rest && !a->modern) { /* protobuf leaves a false out */
        now = !is(get(how, "blocking"), true);
    }
    a->way = now ? A2A_NOW : A2A_AT_END;
    send_message(a);
}

static void on_stream(struct a2a *a)
{
    a->way = A2A_STREAM;
    send_message(a);
}

static void on_get(struct a2a *a)
{
    if (a2a_take_plan(a, doc_string(get(a->params, "id")))) {
        a2a_show(a);
    }
}

static void on_subscribe(struct a2a *a)
{
    a->way = A2A_STREAM;
    on_get(a);
}

static void on_cancel(struct a2a *a)
{
    struct buf fields;

    a->way = A2A_AT_END;
    a->cancels = true;
    if (a2a_take_plan(a, doc_string(get(a->params, "id")))) {
        buf_init(&fields, 256);
        doc_put_map(&fields, 1);
        doc_put_cstr(&fields, "planId");
        doc_put_cstr(&fields, a->plan);
        a2a_ask(a, MSG_plan_cancel, MSG_plan_cancel_ok, false, &fields, on_decided);
        buf_done(&fields);
    }
}

static void a2a_free(void *self)
{
    struct a2a *a = self;

    a2a_list_free(a);
    a2a_push_free(a);
    buf_done(&a->message);
    free(a);
}

#define PUSH "tasks/pushNotificationConfig/"

/* legacy: a name of 0.3. */
static const struct method {
    const char *modern, *legacy;
    void (*run)(struct a2a *a);
} methods[] = {{"SendMessage", "message/send", on_send},
               {"SendStreamingMessage", "message/stream", on_stream},
               {"GetTask", "tasks/get", on_get},
               {"ListTasks", "", a2a_list},
               {"CancelTask", "tasks/cancel", on_cancel},
               {"SubscribeToTask", "tasks/resubscribe", on_subscribe},
               {"CreateTaskPushNotificationConfig", PUSH "set", a2a_push_set},
               {"GetTaskPushNotificationConfig", PUSH "get", a2a_push_get},
               {"ListTaskPushNotificationConfigs", PUSH "list", a2a_push_list},
               {"DeleteTaskPushNotificationConfig", PUSH "delete", a2a_push_delete}};

bool a2a_run(struct a2a *a, struct str method)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (str_is(method, methods[i].modern)) {
            methods[i].run(a);
            return true;
        }
    }
    return false;
}

static void dispatch(struct a2a *a, struct str method)
{
    a->modern = true;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (str_is(method, methods[i].legacy)) {
            a->modern = false;
            method = str_from(methods[i].modern);
        }
    }
    if (a2a_run(a, method)) {
        return;
    }
    a2a_refuse(a, A2A_METHOD,
               "this server has no such method; there are SendMessage, SendStreamingMessage, "
               "GetTask, ListTasks, CancelTask, SubscribeToTask, those of push notification "
               "configurations, and those of 0.3");
}

struct a2a *a2a_new(struct http *h)
{
    struct a2a *a = calloc(1, sizeof *a);

    if (a == NULL) {
        http_refuse(h, BT_NOMEM, 503, "", "out of memory for a message");
        return NULL;
    }
    h->own = a;
    h->own_free = a2a_free;
    a->h = h;
    return a;
}

void a2a_serve(struct http *h)
{
    struct a2a *a = a2a_new(h);
    struct bt_error err;
    struct doc message;
    struct str method;

    if (a == NULL) {
        return;
    }
    buf_init(&a->message, json_doc_capacity(h->body.len));
    if (json_to_doc(buf_str(&h->body), NULL, &a->message, &err) != BT_OK) {
        a2a_refuse(a, A2A_PARSE, err.msg);
        return;
    }
    message = doc_from_buf(&a->message);
    a->id = get(message, "id");
    a->params = get(message, "params");
    method = doc_string(get(message, "method"));
    if (!str_is(doc_string(get(message, "jsonrpc")), "2.0") || method.len == 0 ||
        a->id.ptr == NULL) {
        a2a_refuse(a, A2A_REQUEST, "expected one request of JSON-RPC 2.0 with id and method");
        return;
    }
    dispatch(a, method);
}
