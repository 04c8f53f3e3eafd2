/*
 * Requests that this program sends: batches of spans to a collector, events to hooks. Many at a
 * time, over libcurl; nothing blocks. What the other side answers is left out, except its status.
 * One thread.
 */
#ifndef GATEWAY_EGRESS_H
#define GATEWAY_EGRESS_H

#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

struct egress;
struct egress_call;
struct private_list; /* private.h */

enum { EGRESS_HEADERS_MAX = 8, EGRESS_CALLS_MAX = 64 };

struct egress_spec {
    const char *url;
    const char *headers[EGRESS_HEADERS_MAX]; /* "Name: value"; NULL ends them; copied */
    struct str body;                         /* copied */
    msec timeout_ms;
    /* status 0: no answer came, and why. retry_after_ms: as the answer asks; 0 = not */
    void (*done)(void *self, unsigned status, uint64_t retry_after_ms, const char *why);
    void *self;
};

/* listed: requests reach no private addresses but these, and go through no proxy; it must live as
 * long. NULL: any address. Connections are not shared between two of them. It lives as long as the
 * process. */
BT_MUST_CHECK enum bt_code egress_new(const struct private_list *listed, struct egress **ret,
                                      struct bt_error *err);
/* A POST. Never calls `done` before it returns. BT_BUSY: too many are out. BT_INVALID: the URL. */
BT_MUST_CHECK enum bt_code egress_post(struct egress *e, const struct egress_spec *spec,
                                       struct bt_error *err);
/* Readable when egress_run has something to do. */
int egress_fd(const struct egress *e);
void egress_run(struct egress *e, msec now);
/* When egress_run is due without the descriptor. */
msec egress_deadline(const struct egress *e);
#endif
