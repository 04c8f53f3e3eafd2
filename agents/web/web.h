/*
 * One HTTP exchange over libcurl: bounded in time and bytes, only to allowed hosts and addresses.
 * For the agents that speak HTTP (http). Blocks the calling thread; threads may call
 * at the same time. Call web_start() before threads exist.
 */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "agents/web/secret.h"
#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

enum {
    WEB_URL_MAX = 8192,
    WEB_HEADERS_BYTES_MAX = 64 * 1024, /* of an answer */
    WEB_REDIRECTS_MAX = 5
};

/* Where calls may go. Constant while calls run. */
struct web_policy {
    /* "host" or "host:port", lower case, NULL-terminated: the only ones that are called */
    const char *const *hosts;
    const char *const *addresses;  /* private blocks that are allowed: address.h; or NULL */
    const char *ca_file;           /* NULL = the system's authorities */
    bool allow_http;               /* http:// to other machines, in the clear */
    const struct secrets *secrets; /* redacted in errors; or NULL */
};

struct web_request {
    const char *method;
    const char *url;                   /* absolute */
    const char *const *headers;        /* "Name: value", NULL-terminated; or NULL */
    const char *const *secret_headers; /* the same, but dropped when a redirect leaves the origin */
    struct str body;                   /* .ptr NULL = none */
    uint64_t timeout_ms;               /* of the whole exchange, redirects included */
    uint64_t idle_ms;                  /* without a byte; 0 = no such limit */
    size_t max_bytes;                  /* of the answer's body, unpacked */
    bool (*cancelled)(void *self);     /* polled about ten times a second; or NULL */
    /* Takes the body of an answer with a status below 300 in pieces; NULL = it is in .body. False
     * ends the exchange: web_call returns BT_CANCELLED, or the taker's error from .self. */
    bool (*take)(void *self, struct str bytes);
    void *self;
};

struct web_response {
    long status;
    struct buf headers; /* "name: value\n" each, names in lower case */
    struct buf body;
    char url[WEB_URL_MAX]; /* of the last request, after redirects */
    bool sent; /* bytes of the request may have reached a server: a failure says nothing about its
                  effects */
};

/* Prepares libcurl. At most once a process, before threads. */
BT_MUST_CHECK enum bt_code web_start(struct bt_error *err);
/*
 * Any answer of a server is BT_OK, whatever its status. Redirects of GET and HEAD are followed, at
 * most WEB_REDIRECTS_MAX; of other methods only 307 and 308, and 303 as GET; none from https to
 * http. BT_INVALID: an URL, a host, an address or a certificate that may not be called.
 * BT_UNAVAILABLE: no connection, or it broke. BT_TIMEOUT, BT_CANCELLED, BT_LIMIT (the answer is
 * larger than max_bytes). The caller frees with web_response_done, also after a failure.
 */
BT_MUST_CHECK enum bt_code web_call(const struct web_policy *policy,
                                    const struct web_request *request, struct web_response *ret,
                                    struct bt_error *err);
/* The value of a header (name in lower case) as text into ret; "" when there is none. Of several
 * the first. */
void web_response_header(const struct web_response *r, const char *name, char *ret, size_t cap);
/* Milliseconds of Retry-After (RFC 9110, 10.2.3: seconds or a date); 0 = none. */
uint64_t web_response_retry_after_ms(const struct web_response *r);
/* Accepts a zeroed response. */
void web_response_done(struct web_response *r);

/* Checks an absolute URL against scheme and hosts of the policy, without a look-up. */
BT_MUST_CHECK enum bt_code web_check_url(const struct web_policy *policy, const char *url,
                                         struct bt_error *err);
/* Resolves a reference (absolute or relative) against a base (RFC 3986, 5). */
BT_MUST_CHECK enum bt_code web_resolve(const char *base, const char *reference,
                                       char ret[WEB_URL_MAX], struct bt_error *err);
/* Whether both URLs have the same scheme, host and port. */
bool web_same_origin(const char *a, const char *b);
#endif
