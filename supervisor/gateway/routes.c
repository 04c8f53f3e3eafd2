#include "supervisor/gateway/routes.h"

#include "protocol/wire/msg_table.h"

/* Exactly one HTTP or HTTP_NOT for each REQUEST: none, or two, does not compile. */
enum {
#define HTTP(name, method, path) WAY_OF_##name,
#define HTTP_NOT(name, why) WAY_OF_##name,
#include "protocol/messages.def"
};
enum {
#define REQUEST(name, handler, answer, role, sentence) HAS_WAY_##name = WAY_OF_##name,
#include "protocol/messages.def"
};

enum {
#define REQUEST(name, handler, answer, role, sentence) ANSWER_OF_##name = MSG_##answer,
#include "protocol/messages.def"
};

/* By MSG_x; empty for what is no request. */
static const struct {
    const char *role, *sentence;
} about[MSG_TYPE_COUNT] = {
#define REQUEST(name, handler, answer, role, sentence) [MSG_##name] = {#role, sentence},
#include "protocol/messages.def"
};

#define ROUTE(name, method, path)                                                                  \
    {MSG_##name, (enum msg_type)ANSWER_OF_##name, #name, HTTP_##method, path},
const struct route routes[] = {
#define HTTP(name, method, path) ROUTE(name, method, path)
#define HTTP_ALSO(name, method, path) ROUTE(name, method, path)
#include "protocol/messages.def"
};
const uint32_t routes_n = sizeof routes / sizeof routes[0];

const struct route_not routes_not[] = {
#define HTTP_NOT(name, why) {#name, why},
#include "protocol/messages.def"
};
const uint32_t routes_not_n = sizeof routes_not / sizeof routes_not[0];

static const char *const method_names[HTTP_METHOD_COUNT] = {"GET", "POST", "PUT", "DELETE"};

const char *http_method_name(enum http_method m)
{
    return method_names[m];
}

bool http_method_parse(const char *name, enum http_method *ret)
{
    for (int i = 0; i < HTTP_METHOD_COUNT; i++) {
        if (strcmp(name, method_names[i]) == 0) {
            *ret = (enum http_method)i;
            return true;
        }
    }
    return false;
}

const char *route_role(const struct route *r)
{
    return about[r->request].role;
}

const char *route_sentence(const struct route *r)
{
    return about[r->request].sentence;
}

bool route_part(const char **at, struct str *ret, bool *ret_param)
{
    const char *from = *at + (**at == '/');
    size_t n = 0;

    while (from[n] != 0 && from[n] != '/') {
        n++;
    }
    *at = from + n;
    *ret_param = n > 2 && from[0] == '{';
    *ret = *ret_param ? (struct str){from + 1, n - 2} : (struct str){from, n};
    return n > 0;
}

bool route_fits(const char *path, const struct uri *uri, struct route_params *ret)
{
    const char *at = path;
    struct str part;
    bool is_param;
    uint32_t i = 0;

    ret->n = 0;
    while (route_part(&at, &part, &is_param)) {
        if (i == uri->segments_n || (!is_param && !str_eq(part, uri->segments[i]))) {
            return false;
        }
        if (is_param) {
            ret->at[ret->n++] = (struct uri_param){part, uri->segments[i]};
        }
        i++;
    }
    return i == uri->segments_n;
}

const struct route *route_find(const struct uri *uri, enum http_method method,
                               struct route_params *ret, uint32_t *ret_allowed)
{
    const struct route *found = NULL;

    *ret_allowed = 0;
    for (uint32_t i = 0; i < routes_n; i++) {
        struct route_params params;
        if (!route_fits(routes[i].path, uri, &params)) {
            continue;
        }
        *ret_allowed |= 1u << routes[i].method;
        if (routes[i].method == method) {
            found = &routes[i];
            *ret = params;
        }
    }
    return found;
}

bool route_is_events(const struct route *r)
{
    return r->request == MSG_events_read;
}

bool route_is_task(const struct route *r)
{
    return strcmp(r->path, "/v1/tasks") == 0;
}

bool route_fills(const struct route *r, struct str name)
{
    static const char *const names[] = {"epoch", "instanceId", "sessionKey", "capacity", "outcome"};
    static const char of[] = "/v1/instances";
    bool found = false;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found = found || str_is(name, names[i]);
    }
    return found && strncmp(r->path, of, sizeof of - 1) == 0;
}

bool route_has_body(const struct route *r)
{
    return r->method == HTTP_POST || r->method == HTTP_PUT;
}

const struct msg_field *route_field(const struct route *r, struct str name)
{
    const struct msg_desc *desc = &msg_table[r->request];

    for (uint32_t i = 0; i < desc->n; i++) {
        if (str_eq(desc->fields[i].name, name)) {
            return &desc->fields[i];
        }
    }
    return NULL;
}
