#include <stdio.h>
#include <strings.h>

#include "agents/http/call.h"
#include "agents/http/fill.h"
#include "agents/http/result.h"
#include "agents/sdk/step.h"
#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"

enum { ARENA_BYTES = 1024 * 1024, HEADERS_ALL = 2 * HTTP_HEADERS_MAX + HTTP_LIST_MAX + 4 };
enum { ANSWER_DEPTH = 64, ANSWER_NODES = 4 * 1000 * 1000 };

/* ---- the request ---- */

static enum bt_code make_url(struct http_call *c, char ret[WEB_URL_MAX], struct bt_error *err)
{
    struct buf url;
    struct buf pairs;
    enum bt_code code;

    buf_init(&url, WEB_URL_MAX - 1);
    buf_init(&pairs, WEB_URL_MAX - 1);
    buf_add_cstr(&url, c->s->base_url);
    code = fill_text(str_from(c->action->path), c->params, FILL_SEGMENT, &url, err);
    if (code == BT_OK) {
        code = fill_pairs(c->action->query, c->params, &pairs, err);
    }
    if (code == BT_OK && pairs.len > 0) {
        buf_add_byte(&url, strchr(c->action->path, '?') != NULL ? '&' : '?');
        buf_add_str(&url, buf_str(&pairs));
    }
    if (code == BT_OK && url.bad == BT_OK) {
        (void)snprintf(ret, WEB_URL_MAX, "%s", buf_cstr(&url));
    } else if (code == BT_OK || code == BT_LIMIT) {
        code = err_set(err, BT_INVALID, "the address has more than %d bytes", WEB_URL_MAX - 1);
    }
    buf_done(&url);
    buf_done(&pairs);
    return code;
}

static enum bt_code make_body(struct http_call *c, struct bt_error *err)
{
    const struct http_action *action = c->action;
    const bool takes_one = strcmp(action->method, "GET") != 0 &&
                           strcmp(action->method, "HEAD") != 0 &&
                           strcmp(action->method, "DELETE") != 0;
    struct buf doc;
    enum bt_code code = BT_OK;

    buf_init(&c->body, LIMIT_STEP_BYTES);
    if (action->form.ptr != NULL) {
        code = fill_pairs(action->form, c->params, &c->body, err);
    } else if (action->body.ptr != NULL) {
        buf_init(&doc, LIMIT_STEP_BYTES);
        code = fill_doc(action->body, c->params, &doc, err);
        if (code == BT_OK) {
            code = doc_to_json(doc_from_buf(&doc), false, &c->body, err);
        } else if (code == BT_NOT_FOUND) {
            code = BT_OK; /* a body that need not be there */
        }
        buf_done(&doc);
    }
    if (code == BT_OK && takes_one && c->body.at == NULL) {
        (void)buf_cstr(&c->body); /* an empty one, so that its length is sent */
        (void)buf_reserve(&c->body, 1);
    }
    return code == BT_OK ? buf_check(&c->body, err) : code;
}

struct headers {
    struct arena *arena;
    const char **list;
    size_t n;
};

static bool has_header(const struct headers *h, const char *name)
{
    const size_t n = strlen(name);

    for (size_t i = 0; i < h->n; i++) {
        if (strncasecmp(h->list[i], name, n) == 0 && h->list[i][n] == ':') {
            return true;
        }
    }
    return false;
}

static enum bt_code add_line(struct headers *h, const char *name, const char *value,
                             struct bt_error *err)
{
    struct buf line;

    if (has_header(h, name)) {
        return BT_OK; /* the first one holds: those of the action come before those of all */
    }
    buf_init(&line, WEB_HEADERS_BYTES_MAX);
    buf_printf(&line, value[0] != 0 ? "%s: %s" : "%s;", name, value);
    h->list[h->n] = arena_str(h->arena, buf_str(&line)).ptr;
    buf_done(&line);
    return h->list[h->n++] == NULL ? err_set(err, BT_NOMEM, "out of memory for a request") : BT_OK;
}

/* A header whose template is a missing parameter is left out. */
static enum bt_code add_map(struct http_call *c, struct headers *h, struct doc map,
                            struct bt_error *err)
{
    struct buf filled;
    struct doc_cursor cursor;
    struct doc_head head = {.n = 0};
    enum bt_code code = BT_OK;

    if (map.ptr == NULL) {
        return BT_OK;
    }
    buf_init(&filled, LIMIT_STEP_BYTES);
    code = fill_doc(map, c->params, &filled, err);
    cursor = doc_cursor(doc_from_buf(&filled));
    if (code == BT_OK) {
        (void)doc_next(&cursor, &head);
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        const struct str name = doc_string(doc_skip(&cursor));
        const struct doc value = doc_skip(&cursor);
        struct buf text;
        char key[128];
        buf_init(&text, WEB_HEADERS_BYTES_MAX);
        (void)snprintf(key, sizeof key, "%.*s", STR_ARG(name));
        code = doc_to_text(value, &text, err);
        if (code == BT_OK) {
            code = http_header_check(name, buf_str(&text), err);
        }
        if (code == BT_OK) {
            code = add_line(h, key, buf_cstr(&text), err);
        }
        buf_done(&text);
    }
    buf_done(&filled);
    return code;
}

static enum bt_code make_headers(struct http_call *c, struct arena *a, struct bt_error *err)
{
    struct headers h = {.arena = a, .list = arena_alloc(a, HEADERS_ALL * sizeof *h.list)};
    const char *type =
        c->action->form.ptr != NULL ? "application/x-www-form-urlencoded" : "application/json";
    const char *trace = bt_step_traceparent(c->step);
    enum bt_code code = h.list == NULL ? err_set(err, BT_NOMEM, "out of memory for a request")
                                       : add_map(c, &h, c->action->headers, err);

    if (code == BT_OK) {
        code = add_map(c, &h, c->s->headers, err);
    }
    if (code == BT_OK && c->action->key_header != NULL) {
        code = add_line(&h, c->action->key_header, bt_step_key(c->step), err);
    }
    if (code == BT_OK && c->body.len > 0) {
        code = add_line(&h, "Content-Type", type, err);
    }
    if (code == BT_OK) {
        code = add_line(&h, "Accept",
                        c->action->output == HTTP_OUT_TEXT || c->action->output == HTTP_OUT_ARTIFACT
                            ? "*/*"
                            : "application/json, */*;q=0.5",
                        err);
    }
    if (code == BT_OK && trace[0] != 0) {
        code = add_line(&h, "traceparent", trace, err);
    }
    c->headers = h.list;
    return code;
}

/* ---- the answer ---- */

/* What another attempt would not do better, unless there was no memory. */
static void refuse(struct http_call *c, const char *what, const struct bt_error *err)
{
    if (err->code == BT_NOMEM) {
        http_fail_call(c, err);
    } else {
        bt_step_fail(c->step, "VALIDATION_ERROR", false, "%s %s: %s%s", c->action->method,
                     c->action->path, what, err->msg);
    }
}

bool http_read_json(struct http_call *c, struct buf *ret)
{
    const struct json_limits limits = {c->s->max_bytes, ANSWER_DEPTH, ANSWER_NODES};
    struct bt_error err;

    if (json_to_doc(str_trimmed(buf_str(&c->response.body)), &limits, ret, &err) == BT_OK) {
        return true;
    }
    refuse(c, "the answer is no JSON: ", &err);
    return false;
}

static void reply_json(struct http_call *c)
{
    struct buf bytes;
    struct buf picked;
    struct buf json;
    struct bt_error err = {.code = BT_OK};
    enum bt_code code = BT_OK;

    buf_init(&bytes, json_doc_capacity(c->s->max_bytes));
    buf_init(&picked, json_doc_capacity(c->s->max_bytes));
    buf_init(&json, LIMIT_RESULT_BYTES);
    if (http_read_json(c, &bytes)) {
        code = result_pick(c->action, doc_from_buf(&bytes), &picked, &err);
        if (code == BT_OK) {
            code = doc_to_json(doc_from_buf(&picked), false, &json, &err);
        }
        if (code == BT_LIMIT) {
            bt_step_fail(
                c->step, "VALIDATION_ERROR", false,
                "%s %s: the result has more than %d bytes; keep less of it with result and "
                "fields, or use output: artifact",
                c->action->method, c->action->path, LIMIT_RESULT_BYTES);
        } else if (code != BT_OK) {
            refuse(c, "", &err);
        } else {
            bt_step_reply_json(c->step, buf_cstr(&json), json.len);
        }
    }
    buf_done(&bytes);
    buf_done(&picked);
    buf_done(&json);
}

static void reply_text(struct http_call *c)
{
    const struct str body = buf_str(&c->response.body);

    if (body.len == 0) {
        bt_step_reply_text(c->step, "done (status %ld)", c->response.status);
    } else if (utf8_valid(body.ptr, body.len) && memchr(body.ptr, 0, body.len) == NULL) {
        bt_step_reply_bytes(c->step, body.ptr, body.len);
    } else {
        bt_step_fail(c->step, "VALIDATION_ERROR", false,
                     "%s %s: the answer is no UTF-8 text; use output: artifact", c->action->method,
                     c->action->path);
    }
}

static void reply_artifact(struct http_call *c)
{
    struct bt_error err;

    if (c->artifact == NULL) {
        bt_step_reply_text(c->step, "done (status %ld), without a body", c->response.status);
        return;
    }
    if (bt_artifact_commit(c->artifact, &err) != BT_OK) {
        bt_step_fail_error(c->step, &err);
    } else {
        bt_step_reply_text(c->step, "the answer is in the file of this step");
    }
    c->artifact = NULL;
}

static void reply(struct http_call *c)
{
    char type[128];

    web_response_header(&c->response, "content-type", type, sizeof type);
    if (c->action->output == HTTP_OUT_ARTIFACT) {
        reply_artifact(c);
    } else if (c->action->output == HTTP_OUT_JSON ||
               (c->action->output == HTTP_OUT_AUTO && strstr(type, "json") != NULL &&
                c->response.body.len > 0)) {
        reply_json(c);
    } else {
        reply_text(c);
    }
}

/* ---- the step ---- */

static void add_details(struct http_call *c)
{
    char json[256];

    (void)snprintf(json, sizeof json, "{\"status\":%ld,\"requests\":%u,\"durationMs\":%llu}",
                   c->response.status, c->requests,
                   (unsigned long long)(clock_mono_ms() - c->began));
    bt_step_details_json(c->step, json, strlen(json));
}

static void run(struct http_call *c, struct arena *texts)
{
    char url[WEB_URL_MAX];
    struct bt_error err;
    enum bt_code code = make_url(c, url, &err);

    if (code == BT_OK) {
        code = make_body(c, &err);
    }
    if (code == BT_OK) {
        code = make_headers(c, texts, &err);
    }
    if (code != BT_OK) {
        refuse(c, "", &err);
    } else if (c->action->pages.kind != HTTP_PAGES_NONE) {
        http_walk(c, url);
        add_details(c);
    } else {
        if (http_send(c, url)) {
            reply(c);
        }
        add_details(c);
    }
}

void http_run(struct bt_step *step, void *self)
{
    struct http_settings *s = self;
    const uint64_t left = bt_step_time_left_ms(step);
    struct arena texts = {.max = ARENA_BYTES};
    struct http_call c = {.s = s,
                          .step = step,
                          .action = http_settings_find(s, bt_step_skill(step)),
                          .params = step->req.parameters,
                          .began = clock_mono_ms()};
    uint64_t time;

    if (c.action == NULL) {
        bt_step_fail(step, "TOOL_NOT_FOUND", false, "no action '%s'", bt_step_skill(step));
        return;
    }
    time = c.action->timeout_ms > 0 ? c.action->timeout_ms : s->timeout_ms;
    c.deadline = c.began + (left < time ? left : time);
    run(&c, &texts);
    bt_artifact_abort(c.artifact);
    web_response_done(&c.response);
    buf_done(&c.body);
    arena_done(&texts);
}
