/* A2A by HTTP with JSON: an address and its query become a method and its params. */
#include <stdio.h>

#include "supervisor/gateway/a2a/a2a_internal.h"

/* The address of a request, below /a2a or /a2a/v1. */
struct address {
    const char *method; /* by its name of 1.0; NULL: there is none */
    const char *id;     /* what the params call the task */
    struct str task;    /* without its verb; empty = none */
    struct str config;  /* of a push notification */
    bool has_body;      /* it is the params */
};

static bool ends_with(struct str s, const char *end)
{
    const size_t n = strlen(end);

    return s.len > n && memcmp(s.ptr + s.len - n, end, n) == 0;
}

/* tasks/ID, tasks/ID:cancel, tasks/ID:subscribe. 0.3 subscribes by GET, 1.0 by POST. */
static void read_task(struct str part, bool is_get, struct address *ret)
{
    static const char cancel[] = ":cancel", subscribe[] = ":subscribe";

    ret->task = part;
    ret->id = "id";
    if (ends_with(part, subscribe)) {
        ret->task.len -= sizeof subscribe - 1;
        ret->method = "SubscribeToTask";
    } else if (ends_with(part, cancel)) {
        ret->task.len -= sizeof cancel - 1;
        ret->method = is_get ? NULL : "CancelTask";
    } else {
        ret->method = is_get ? "GetTask" : NULL;
    }
}

/* tasks/ID/pushNotificationConfigs, and /CONFIG behind it. */
static void read_push(const struct uri *u, uint32_t from, enum http_method m, struct address *ret)
{
    ret->task = u->segments[from + 1];
    ret->id = "taskId";
    if (u->segments_n == from + 3) {
        ret->has_body = m == HTTP_POST;
        ret->method =
            ret->has_body ? "CreateTaskPushNotificationConfig" : "ListTaskPushNotificationConfigs";
        return;
    }
    ret->config = u->segments[from + 3];
    ret->method =
        m == HTTP_DELETE ? "DeleteTaskPushNotificationConfig" : "GetTaskPushNotificationConfig";
}

static struct address read_address(const struct http *h, bool *ret_modern)
{
    const struct uri *u = &h->uri;
    const uint32_t from = u->segments_n > 1 && str_is(u->segments[1], "v1") ? 2 : 1;
    const struct str first = u->segments[from];
    struct address to = {.method = NULL};

    *ret_modern = from == 1;
    if (str_is(first, "message:send")) {
        to = (struct address){.method = "SendMessage", .has_body = true};
    } else if (str_is(first, "message:stream")) {
        to = (struct address){.method = "SendStreamingMessage", .has_body = true};
    } else if (u->segments_n == from + 1) {
        to.method = "ListTasks";
    } else if (u->segments_n > from + 2) {
        read_push(u, from, h->method, &to);
    } else {
        read_task(u->segments[from + 1], h->method == HTTP_GET, &to);
    }
    return to;
}

/* Parameters of the query are texts; a number or a bool is one when it reads so. */
static void put_value(struct buf *out, struct str text)
{
    uint64_t n;

    if (str_is(text, "true") || str_is(text, "false")) {
        doc_put_bool(out, str_is(text, "true"));
    } else if (fields_number(text, INT64_MAX, &n)) {
        doc_put_u64(out, n);
    } else {
        doc_put_str(out, text);
    }
}

static bool is_text(struct str name)
{
    return str_is(name, "contextId") || str_is(name, "pageToken") || str_is(name, "tenant") ||
           str_is(name, "statusTimestampAfter");
}

/* What the address says, then what the query or the body does. */
static void put_params(const struct uri *u, const struct address *to, struct doc body,
                       struct buf *out)
{
    struct doc_cursor at = doc_cursor(body);
    struct doc_head head = {.n = 0};

    if (body.ptr != NULL) {
        (void)doc_next(&at, &head);
    }
    doc_put_map(out, 0u + (to->task.len > 0) + (to->config.len > 0) +
                         (body.ptr != NULL ? head.n : u->params_n));
    if (to->task.len > 0) {
        doc_put_cstr(out, to->id);
        doc_put_str(out, to->task);
    }
    if (to->config.len > 0) {
        doc_put_cstr(out, "configId");
        doc_put_str(out, to->config);
    }
    for (uint32_t i = 0; i < 2 * head.n; i++) {
        doc_put_doc(out, doc_skip(&at));
    }
    for (uint32_t i = 0; body.ptr == NULL && i < u->params_n; i++) {
        doc_put_str(out, u->params[i].name);
        if (is_text(u->params[i].name)) {
            doc_put_str(out, u->params[i].value);
        } else {
            put_value(out, u->params[i].value);
        }
    }
}

static void refuse_verb(struct http *h)
{
    h->allowed = h->method == HTTP_GET ? 1u << HTTP_POST : 1u << HTTP_GET;
    http_refuse(h, BT_INVALID, 405, "", "this address has other methods: see the header Allow");
}

void a2a_serve_rest(struct http *h)
{
    struct a2a *a = a2a_new(h);
    struct bt_error err;
    struct address to;
    struct buf body;

    if (a == NULL) {
        return;
    }
    a->rest = true;
    to = read_address(h, &a->modern);
    if (to.method == NULL) {
        refuse_verb(h);
        return;
    }
    buf_init(&a->message, json_doc_capacity(h->body.len) + 4 * URI_BYTES_MAX);
    buf_init(&body, json_doc_capacity(h->body.len));
    if (to.has_body && json_to_doc(buf_str(&h->body), NULL, &body, &err) != BT_OK) {
        a2a_refuse(a, A2A_PARAMS, err.msg);
    } else if (to.has_body && doc_head(doc_from_buf(&body)).kind != DOC_MAP) {
        a2a_refuse(a, A2A_PARAMS, "body: expected an object");
    } else {
        put_params(&h->uri, &to, to.has_body ? doc_from_buf(&body) : (struct doc){.ptr = NULL},
                   &a->message);
        a->params = doc_from_buf(&a->message);
        (void)a2a_run(a, str_from(to.method));
    }
    buf_done(&body);
}
