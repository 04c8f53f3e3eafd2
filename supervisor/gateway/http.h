/* One request of HTTP, and the server that it came to: for what answers at an address. One thread.
 */
#ifndef GATEWAY_HTTP_H
#define GATEWAY_HTTP_H

#include <microhttpd.h>

#include "supervisor/gateway/fields.h"
#include "supervisor/gateway/login.h"
#include "supervisor/gateway/places.h"
#include "supervisor/gateway/server.h"

struct stream;
struct translation;

struct conn {
    struct conn *next, *prev;
    struct server *s;
    struct http *http; /* the request that it is at; NULL: no first line is there */
    int fd;
    msec since, deadline;
    bool idle; /* no head of a request is there */
    bool shut;
};

struct server {
    const struct options *opt;
    struct upstream *up;
    struct parts parts;
    struct server_counts counts;
    struct MHD_Daemon *mhd;
    struct conn *conns;
    uint32_t conns_n, conns_max;
    struct stream *streams;
    struct translation *translating;
    uint32_t translations; /* streams in the words of another system (translate.h) */
    size_t held;
    uint16_t port;
    msec now, swept;
};

/* The headers that are looked at. NULL = not there. */
struct heads {
    uint32_t lengths, codings, hosts, auths; /* how often */
    const char *host, *origin, *expect, *authorization, *type, *accept, *coding, *length;
    const char *idempotency_key, *if_match, *last_event_id, *cookie, *page;
    const char *mcp_version, *mcp_session, *a2a_version, *traceparent;
};

enum http_state { HTTP_HEAD, HTTP_BODY, HTTP_DRAINS, HTTP_WAITS, HTTP_READY, HTTP_ANSWERED };

struct http {
    struct server *s;
    struct conn *conn;
    struct MHD_Connection *mhd;
    enum http_state state;
    char *target; /* as it was sent */
    bool is_head;
    struct uri uri;
    const struct route *route; /* NULL: it is a place */
    const struct place *place;
    enum http_method method;
    struct route_params params;
    struct heads heads;
    struct buf bearer; /* of a page */
    struct caller *caller;
    struct call *call;
    struct buf body;
    bool is_yaml;
    bool too_big;
    bool unclear; /* where it ends */
    bool closes;  /* its connection ends after the answer */
    bool suspended;
    bool broke;            /* its answer was not taken whole */
    struct stream *stream; /* the answer is one */
    void *own;             /* of the place that serves it; freed by own_free */
    void (*own_free)(void *own);
    size_t held; /* bytes of the answer, until it was taken */
    /* the answer */
    unsigned status;
    struct buf out;
    const char *type;
    uint32_t allowed; /* bits of methods, for Allow; 0 = none */
    char etag[32];
    char mcp_session[48]; /* the header Mcp-Session-Id; "" = none */
    uint64_t retry_after_s;
    const char *policy;                /* Content-Security-Policy; NULL = the strictest */
    bool keep;                         /* browsers may keep it for ever */
    struct buf link, location, cookie; /* headers; empty = none */
};

/* http.c. After each the state is HTTP_BODY (there is more to come), HTTP_WAITS or HTTP_READY. */
void http_head(struct http *h, const char *method);
void http_body(struct http *h, const char *bytes, size_t n);
/* Whether a refused request is read to its end before it is answered: a client that still sends
 * would lose the answer. */
bool http_drains(const struct http *h);
/* libmicrohttpd cannot read the request, for which it has a status: says what would be right. */
void http_unreadable(struct http *h, unsigned status);
/* All of the request is here: asks the daemon, or there is an answer. */
void http_whole(struct http *h);
/* Prepares an answer. */
void http_problem(struct http *h, const struct problem *p);
void http_refuse(struct http *h, enum bt_code code, unsigned status, const char *field,
                 const char *message);
/* The connection waits; http_ready wakes it. */
void http_wait(struct http *h);
void http_ready(struct http *h);
/* The request goes to the daemon as it is; its answer is that of the daemon. */
void http_ask(struct http *h);
/* A request of the connection; target: as it was sent. NULL: out of memory. */
struct http *http_new(struct conn *c, struct MHD_Connection *mhd, const char *target);
void http_free(struct http *h);
void http_serve_openapi(struct http *h);
/* An answer of the daemon without its envelope, as JSON. */
enum bt_code answer_body(struct doc whole, struct buf *out);
/* The caller that h->bearer proves. False after refusing. */
bool http_take_bearer(struct http *h, const char *field);

/* page.c */
void page_serve_file(struct http *h);
void page_serve_session(struct http *h);
/* Puts what the page logged in with into h->bearer. False: it is not logged in. */
bool page_bearer(struct http *h);
#endif
