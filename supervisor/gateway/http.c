/* One request: what is checked before anything is asked, in which order, and what is refused how.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "protocol/wire/msg_table.h"
#include "supervisor/config/yaml.h"
#include "supervisor/gateway/openapi.h"
#include "supervisor/gateway/polled/polled.h"
#include "supervisor/gateway/server_internal.h"

enum {
    BODY_MAX = LIMIT_CONTROL_BYTES,
    DRAIN_MAX = 16 * BODY_MAX,
    ANSWER_MAX = 8 * LIMIT_STEP_BYTES
};

/* ---- answers ---- */

void http_problem(struct http *h, const struct problem *p)
{
    h->status = problem_status(p);
    h->retry_after_s = problem_retry_after_s(p);
    h->type = "application/problem+json";
    buf_clear(&h->out);
    problem_write(p, &h->out);
    h->state = HTTP_READY;
}

void http_refuse(struct http *h, enum bt_code code, unsigned status, const char *field,
                 const char *message)
{
    const struct problem p = {.code = code,
                              .status = status,
                              .field = str_from(field),
                              .message = str_from(message),
                              .retry_after_ms = err_code_wait_ms(code)};

    http_problem(h, &p);
}

static void refuse_err(struct http *h, unsigned status, const char *field,
                       const struct bt_error *err)
{
    http_refuse(h, err->code, status, field, err->msg);
}

void http_wait(struct http *h)
{
    h->state = HTTP_WAITS;
    h->suspended = true;
    MHD_suspend_connection(h->mhd);
}

void http_ready(struct http *h)
{
    if (h->suspended) {
        h->suspended = false;
        MHD_resume_connection(h->mhd);
    }
}

/* ---- who may talk to it ---- */

static bool is_host(struct str host, const char *name)
{
    return host.len == strlen(name) && strncasecmp(host.ptr, name, host.len) == 0;
}

/* A name that this server has: a page that made another name point here does not know it. */
static bool is_our_host(const struct server *s, struct str host)
{
    static const char *const near[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *end = host.len > 0 ? memrchr(host.ptr, ':', host.len) : NULL;
    char port[8];
    bool found = false;

    (void)snprintf(port, sizeof port, "%u", s->port);
    if (end != NULL && memchr(end, ']', (size_t)(host.ptr + host.len - end)) == NULL) {
        const struct str given = {end + 1, (size_t)(host.ptr + host.len - end) - 1};
        if (!str_is(given, port)) {
            return false;
        }
        host.len = (size_t)(end - host.ptr);
    } else if (s->port != (s->opt->tls != NULL ? 443 : 80)) {
        return false;
    }
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        found = found || (s->opt->loopback && is_host(host, near[i]));
    }
    for (uint32_t i = 0; i < s->opt->hosts_n; i++) {
        found = found || is_host(host, s->opt->hosts[i]);
    }
    if (host.len > 2 && host.ptr[0] == '[') {
        host = (struct str){host.ptr + 1, host.len - 2};
    }
    return found || is_host(host, s->opt->host);
}

static bool check_host(struct http *h)
{
    const struct str host = str_from(h->heads.host);

    if (h->heads.hosts != 1) {
        h->closes = true;
        http_refuse(h, BT_INVALID, 400, "Host", "expected one header Host");
        return false;
    }
    if (is_our_host(h->s, host) &&
        (h->uri.authority.len == 0 || is_our_host(h->s, h->uri.authority))) {
        return true;
    }
    http_refuse(h, BT_INVALID, 421, "Host",
                "the Host of the request is none of this server's names, with its port; others are "
                "named by --host");
    return false;
}

/* Pages of other origins may use it when they were named. */
static bool check_origin(struct http *h)
{
    const struct server *s = h->s;
    const char *origin = h->heads.origin;
    char own[300];

    if (origin == NULL) {
        return true;
    }
    (void)snprintf(own, sizeof own, "%s://%s", s->opt->tls != NULL ? "https" : "http",
                   h->heads.host);
    if (strcmp(own, origin) == 0) {
        return true;
    }
    for (uint32_t i = 0; i < s->opt->origins_n; i++) {
        if (strcmp(s->opt->origins[i], origin) == 0) {
            return true;
        }
    }
    http_refuse(h, BT_UNAUTHORIZED, 403, "Origin",
                "pages of this origin may not use this server; --origin names those that may");
    return false;
}

/* ---- the head ---- */

static enum MHD_Result note_head(void *self, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct heads *to = self;
    const struct {
        const char *name;
        const char **value;
        uint32_t *count;
    } known[] = {
        {"Host", &to->host, &to->hosts},
        {"Authorization", &to->authorization, &to->auths},
        {"Content-Length", &to->length, &to->lengths},
        {"Transfer-Encoding", &to->coding, &to->codings},
        {"Content-Type", &to->type, NULL},
        {"Origin", &to->origin, NULL},
        {"Expect", &to->expect, NULL},
        {"Accept", &to->accept, NULL},
        {"Idempotency-Key", &to->idempotency_key, NULL},
        {"If-Match", &to->if_match, NULL},
        {"Last-Event-ID", &to->last_event_id, NULL},
        {"MCP-Protocol-Version", &to->mcp_version, NULL},
        {"Mcp-Session-Id", &to->mcp_session, NULL},
        {"A2A-Version", &to->a2a_version, NULL},
        {"traceparent", &to->traceparent, NULL},
        {"Cookie", &to->cookie, NULL},
        {"X-Baton-Page", &to->page, NULL},
    };

    (void)kind;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcasecmp(name, known[i].name) == 0) {
            *known[i].value = value != NULL ? value : "";
            if (known[i].count != NULL) {
                (*known[i].count)++;
            }
        }
    }
    return MHD_YES;
}

/* Where the request ends must be said once: two readers that disagree are a way in. */
static bool check_framing(struct http *h)
{
    const struct heads *t = &h->heads;
    uint64_t n;

    if (t->lengths > 1 || t->codings > 1 || (t->lengths > 0 && t->codings > 0)) {
        http_refuse(h, BT_INVALID, 400, "Content-Length",
                    "expected one Content-Length, or Transfer-Encoding: chunked, and not both");
    } else if (t->coding != NULL && strcasecmp(t->coding, "chunked") != 0) {
        http_refuse(h, BT_INVALID, 400, "Transfer-Encoding", "expected chunked, or none");
    } else if (t->length != NULL && !fields_number(str_from(t->length), UINT64_MAX, &n)) {
        const bool large =
            t->length[0] != 0 && strspn(t->length, "0123456789") == strlen(t->length);
        http_refuse(h, large ? BT_LIMIT : BT_INVALID, large ? 413 : 400, "Content-Length",
                    large ? "a body has at most 1048576 bytes"
                          : "expected one Content-Length, a number in decimal digits");
    } else {
        return true;
    }
    return false;
}

static void refuse_method(struct http *h, const char *message)
{
    http_refuse(h, BT_INVALID, 405, "", message);
}

/* What may be done at an address, and by whom, for browsers that ask first. */
static void answer_options(struct http *h)
{
    h->status = 204;
    h->type = NULL;
    h->state = HTTP_READY;
}

static bool find_route(struct http *h, const char *method)
{
    enum http_method m = HTTP_GET;
    bool known;

    h->is_head = strcmp(method, "HEAD") == 0;
    known = http_method_parse(h->is_head ? "GET" : method, &m);
    h->method = m;
    h->place = place_find(&h->uri, &h->params);
    if (h->place != NULL) {
        h->allowed = h->place->methods;
    } else {
        h->route = route_find(&h->uri, m, &h->params, &h->allowed);
    }
    if (h->allowed == 0) {
        http_refuse(h, BT_NOT_FOUND, 404, "",
                    "there is nothing at this address; /v1/openapi.json lists what there is");
        return false;
    }
    if (strcmp(method, "OPTIONS") == 0) {
        answer_options(h);
        return false;
    }
    if (!known || (h->allowed >> m & 1u) == 0) {
        refuse_method(h, "this address has other methods: see the header Allow");
        return false;
    }
    h->allowed = 0;
    return true;
}

static bool take_caller(struct http *h, struct str bearer, const char *field)
{
    struct problem p = {.status = 401, .field = str_from(field)};
    struct bt_error err;

    if (upstream_caller(h->s->up, bearer, h->s->opt->loopback, h->s->now, &h->caller,
                        &p.retry_after_ms, &err) == BT_OK) {
        return true;
    }
    p.code = err.code;
    p.status = err.code == BT_UNAUTHORIZED ? 401 : err.code == BT_BUSY ? 429 : 0;
    p.message = str_from(err.msg);
    http_problem(h, &p);
    return false;
}

bool http_take_bearer(struct http *h, const char *field)
{
    return take_caller(h, buf_str(&h->bearer), field);
}

static bool find_caller(struct http *h)
{
    static const char scheme[] = "Bearer ";
    const char *value = h->heads.authorization;

    if (h->heads.auths == 0 && h->heads.page != NULL) {
        if (page_bearer(h)) {
            return http_take_bearer(h, "Cookie");
        }
        http_refuse(h, BT_UNAUTHORIZED, 401, "Cookie",
                    "this page is not logged in, or its time is over: log in");
        return false;
    }
    if (h->heads.auths != 1 || strncasecmp(value, scheme, sizeof scheme - 1) != 0) {
        http_refuse(h, BT_UNAUTHORIZED, 401, "Authorization",
                    "expected one header Authorization: \"Bearer TOKEN\", the text of the file "
                    "`token` of the state directory, or \"Bearer ID:KEY\" of a credential");
        return false;
    }
    return take_caller(h, str_from(value + sizeof scheme - 1), "Authorization");
}

static bool is_type(const char *type, const char *expected)
{
    const size_t n = strlen(expected);

    return strncasecmp(type, expected, n) == 0 &&
           (type[n] == 0 || type[n] == ';' || type[n] == ' ');
}

/* The type that A2A has for its JSON. */
static bool is_a2a(const struct http *h)
{
    return h->place != NULL && is_type(h->heads.type, "application/a2a+json") &&
           strncmp(h->place->path, "/a2a", 4) == 0;
}

static bool check_body(struct http *h)
{
    uint64_t n = 0;
    const bool has =
        h->heads.codings > 0 || (h->heads.length != NULL &&
                                 fields_number(str_from(h->heads.length), UINT64_MAX, &n) && n > 0);
    char text[96];

    if (has && !(h->route != NULL ? route_has_body(h->route) : place_has_body(h->place))) {
        http_refuse(h, BT_INVALID, 400, "", "this method has no body: give fields in the query");
    } else if (has &&
               (h->heads.type == NULL ||
                (!is_type(h->heads.type, "application/json") && !is_a2a(h) &&
                 !(h->is_yaml = h->route != NULL && is_type(h->heads.type, "application/yaml"))))) {
        http_refuse(h, BT_INVALID, 415, "Content-Type",
                    h->route != NULL ? "expected application/json, or application/yaml"
                                     : "expected application/json");
    } else if (n > BODY_MAX) {
        (void)snprintf(text, sizeof text, "a body has at most %d bytes", BODY_MAX);
        http_refuse(h, BT_LIMIT, 413, "", text);
    } else {
        return true;
    }
    return false;
}

/* A place has no parameters; those of a request are checked as its fields. */
static bool check_query(struct http *h)
{
    if (h->place == NULL || h->place->any_query || h->uri.params_n == 0) {
        return true;
    }
    http_refuse(h, BT_INVALID, 400, "", "this address has no parameters in the query");
    return false;
}

void http_head(struct http *h, const char *method)
{
    struct bt_error err;

    (void)MHD_get_connection_values(h->mhd, MHD_HEADER_KIND, note_head, &h->heads);
    if (!check_framing(h)) {
        h->unclear = true;
        return;
    }
    if (uri_parse(str_from(h->target), &h->uri, &err) != BT_OK) {
        h->closes = err.code == BT_LIMIT;
        refuse_err(h, err.code == BT_LIMIT ? 414 : 0, "", &err);
        return;
    }
    if (!check_host(h) || !check_origin(h) || !find_route(h, method)) {
        return;
    }
    if ((h->route != NULL || !h->place->open) && !find_caller(h)) {
        return;
    }
    if (!check_body(h) || !check_query(h)) {
        return;
    }
    h->state = HTTP_BODY;
}

/* How far it got tells why it is unreadable. */
static const char *syntax_of(const struct http *h)
{
    if (h->target[0] == 0) {
        return "the first line cannot be read: it is METHOD ADDRESS HTTP/1.1, with one space "
               "between the parts";
    }
    if (h->state == HTTP_HEAD) {
        return "the head cannot be read: each header is NAME: VALUE in a line of its own";
    }
    return "the body cannot be read: each chunk is its size in hexadecimal digits, a line end, as "
           "many bytes, and a line end; after the chunk of size 0 come headers, if any, and an "
           "empty line";
}

void http_unreadable(struct http *h, unsigned status)
{
    char text[160];

    h->unclear = true;
    h->allowed = 0;
    switch (status) {
    case 413:
        (void)snprintf(text, sizeof text, "a body has at most %d bytes, and so has a chunk of it",
                       BODY_MAX);
        http_refuse(h, BT_LIMIT, status, "", text);
        break;
    case 414:
        (void)snprintf(text, sizeof text, "the address has more than %d bytes", URI_BYTES_MAX);
        http_refuse(h, BT_LIMIT, status, "", text);
        break;
    case 431:
        (void)snprintf(text, sizeof text,
                       "the head has too many bytes: the first line and all headers, with about "
                       "100 bytes more for each header, have at most %d",
                       SERVER_CONNECTION_BYTES);
        http_refuse(h, BT_LIMIT, status, "", text);
        break;
    case 505:
        http_refuse(h, BT_INVALID, status, "", "expected HTTP/1.1, or HTTP/1.0, in the first line");
        break;
    default:
        http_refuse(h, BT_INVALID, status, "", syntax_of(h));
        break;
    }
}

/* ---- the body, and all of it ---- */

bool http_drains(const struct http *h)
{
    const struct heads *t = &h->heads;
    uint64_t n = 0;

    if (t->expect != NULL || h->unclear) {
        return false; /* it waits for the answer, or nobody knows where it ends */
    }
    return t->length == NULL || fields_number(str_from(t->length), DRAIN_MAX, &n);
}

void http_body(struct http *h, const char *bytes, size_t n)
{
    if (h->body.len + n > BODY_MAX || h->s->held + n > SERVER_HELD_BYTES) {
        h->too_big = true; /* it is read to its end, or until its time is over */
    }
    if (!h->too_big) {
        h->s->held += n;
        buf_add(&h->body, bytes, n);
    }
}

/* The same fields as JSON. False after refusing. */
static bool read_yaml(struct http *h)
{
    struct cJSON *tree = NULL;
    struct bt_error err;
    char *json;

    if (yaml_read(buf_str(&h->body), "body", &tree, NULL, &err) != BT_OK) {
        refuse_err(h, 400, "", &err);
        return false;
    }
    json = cJSON_PrintUnformatted(tree);
    cJSON_Delete(tree);
    h->s->held -= h->body.len;
    buf_clear(&h->body);
    if (json != NULL && strlen(json) <= BODY_MAX) {
        buf_add_cstr(&h->body, json);
    }
    h->s->held += h->body.len;
    free(json);
    if (h->body.len == 0) {
        http_refuse(h, BT_LIMIT, 413, "", "the body has too many bytes as JSON: at most 1048576");
    }
    return h->body.len > 0;
}

void http_serve_openapi(struct http *h)
{
    struct bt_error err;

    h->status = 200;
    h->type = "application/json";
    h->state = HTTP_READY;
    if (openapi_write(&h->out, &err) != BT_OK) {
        refuse_err(h, 500, "", &err);
    }
}

void http_ask(struct http *h)
{
    const struct fields_from from = {.route = h->route,
                                     .params = &h->params,
                                     .uri = &h->uri,
                                     .body = buf_str(&h->body),
                                     .idempotency_key = str_from(h->heads.idempotency_key),
                                     .if_match = str_from(h->heads.if_match)};
    struct call_spec spec = {.type = h->route->request,
                             .answer = h->route->answer,
                             .reads = h->route->method == HTTP_GET,
                             .traceparent = str_from(h->heads.traceparent),
                             .done = answer_take,
                             .self = h};
    char field[FIELD_NAME_MAX + 1] = "";
    struct bt_error err;
    struct buf fields;

    buf_init(&fields, LIMIT_STEP_BYTES);
    if (fields_gather(&from, &fields, field, &err) != BT_OK) {
        refuse_err(h, err.code == BT_LIMIT ? 400 : 0, field, &err);
    } else {
        spec.fields = doc_from_buf(&fields);
        if (caller_call(h->caller, &spec, h->s->now, &h->call, &err) == BT_OK) {
            http_wait(h);
        } else {
            refuse_err(h, 0, "", &err);
        }
    }
    buf_done(&fields);
}

void http_whole(struct http *h)
{
    if (h->too_big) {
        http_refuse(h, BT_LIMIT, 413, "", "a body has at most 1048576 bytes");
    } else if (h->s->held > SERVER_HELD_BYTES) {
        http_refuse(h, BT_BUSY, 503, "", "the gateway holds as many bytes as it may");
    } else if (h->place != NULL) {
        h->place->serve(h);
    } else if (h->is_yaml && h->body.len > 0 && !read_yaml(h)) {
        return;
    } else if (route_is_events(h->route)) {
        stream_begin(h);
    } else if (route_is_task(h->route)) {
        task_begin(h);
    } else if (polled_takes(h->route->request)) {
        polled_serve(h);
    } else {
        http_ask(h);
    }
}

struct http *http_new(struct conn *c, struct MHD_Connection *mhd, const char *target)
{
    struct http *h = calloc(1, sizeof *h);

    if (h == NULL) {
        return NULL;
    }
    h->s = c->s;
    h->conn = c;
    h->mhd = mhd;
    h->target = strdup(target);
    buf_init(&h->body, LIMIT_CONTROL_BYTES);
    buf_init(&h->out, ANSWER_MAX);
    buf_init(&h->link, 4 * URI_BYTES_MAX);
    buf_init(&h->location, 1024);
    buf_init(&h->bearer, LOGIN_BEARER_MAX);
    buf_init(&h->cookie, 1024);
    if (h->target == NULL) {
        http_free(h);
        return NULL;
    }
    return h;
}

void http_free(struct http *h)
{
    if (h == NULL) {
        return;
    }
    if (h->call != NULL) {
        call_abandon(h->call);
    }
    stream_free(h->stream);
    if (h->own != NULL) {
        h->own_free(h->own);
    }
    if (h->caller != NULL) {
        caller_release(h->caller);
    }
    h->s->held -= h->body.len + h->held;
    if (h->bearer.at != NULL) {
        explicit_bzero(h->bearer.at, h->bearer.len);
    }
    buf_done(&h->bearer);
    buf_done(&h->cookie);
    buf_done(&h->body);
    buf_done(&h->out);
    buf_done(&h->link);
    buf_done(&h->location);
    if (h->target != NULL) {
        free(h->target);
    }
    free(h);
}
