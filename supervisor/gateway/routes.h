/* The ways to the requests of the wire, from the HTTP lines of protocol/messages.def. Pure. */
#ifndef GATEWAY_ROUTES_H
#define GATEWAY_ROUTES_H

#include "protocol/wire/msg.h"
#include "supervisor/gateway/uri.h"

enum http_method { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_DELETE, HTTP_METHOD_COUNT };

struct route {
    enum msg_type request, answer;
    const char *name; /* plan_get */
    enum http_method method;
    const char *path; /* "/v1/plans/{planId}" */
};

extern const struct route routes[];
extern const uint32_t routes_n;

/* A request that is not reached over HTTP, and why. */
struct route_not {
    const char *name, *why;
};
extern const struct route_not routes_not[];
extern const uint32_t routes_not_n;

enum { ROUTE_PARAMS_MAX = 2 };
struct route_params {
    uint32_t n;
    struct uri_param
        at[ROUTE_PARAMS_MAX]; /* they point into the path of the route and into the uri */
};

/* "OBSERVER"; what the request does. */
const char *route_role(const struct route *r);
const char *route_sentence(const struct route *r);
const char *http_method_name(enum http_method m);
/* False: another method, or none. */
bool http_method_parse(const char *name, enum http_method *ret);
/* NULL: nothing has this path and method. *ret_allowed has a bit for each method of the path; 0 =
 * nothing has the path. */
const struct route *route_find(const struct uri *uri, enum http_method method,
                               struct route_params *ret, uint32_t *ret_allowed);
/* Whether a path, with {name} for any part, is that of the uri. */
bool route_fits(const char *path, const struct uri *uri, struct route_params *ret);
/* Takes the next part of a template after a slash; *ret_param: it is {name}. False: the end. */
bool route_part(const char **at, struct str *ret, bool *ret_param);
/* Whether it is a way to events: a stream, a page of them by `Accept: application/json`. */
bool route_is_events(const struct route *r);
/* Whether it submits a plan and answers with its events. */
bool route_is_task(const struct route *r);
/* Whether the gateway gives a field of an agent over HTTP a value when the request does not. */
bool route_fills(const struct route *r, struct str name);
/* Whether a request may have a body. */
bool route_has_body(const struct route *r);
/* The field of the message; NULL: it has none of this name. */
const struct msg_field *route_field(const struct route *r, struct str name);
#endif
