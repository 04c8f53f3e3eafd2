/*
 * HTTP POST: one thread runs all transfers (libcurl multi), callers wait. No redirects; no proxies
 * or logins from the environment; http and https only. Every wait and every byte count has a limit.
 * Independent of models.
 */
#ifndef LLM_NET_H
#define LLM_NET_H

#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

struct net;

enum { NET_CALLS_MAX = 64, NET_FIELD_MAX = 128 };

struct net_spec {
    const char *url;
    const char *const *headers; /* NULL-terminated */
    const char *key_header;     /* NULL = none */
    const char *key_prefix;
    const char *key;
    struct str body;
    msec deadline; /* CLOCK_MONOTONIC */
    msec connect_ms;
    msec idle_ms;
    size_t max_bytes; /* of the response body, decompressed */
    const char *ca_file;
    const char *proxy; /* NULL = none, whatever the environment says */
    const char *unix_socket;
    bool loopback_only;
    /* Receives the body as it arrives, on the net thread, while the caller waits. False ends the
     * call with BT_OK. */
    bool (*on_bytes)(void *self, long status, struct str bytes);
    void *self;
    bool (*stop)(void *self); /* polled on the caller's thread; may be NULL */
    void *stop_self;
};

struct net_answer {
    long status; /* 0 = no response */
    char retry_after[NET_FIELD_MAX];
    char retry_after_ms[NET_FIELD_MAX];
    char should_retry[NET_FIELD_MAX];
    char request_id[NET_FIELD_MAX];
    size_t bytes;
};

BT_MUST_CHECK enum bt_code net_new(struct net **ret, struct bt_error *err);
/* Ends all transfers; no caller may be in net_post. Accepts NULL. */
void net_free(struct net *n);

/*
 * Blocks until the response is complete or the call ends otherwise. Thread-safe. *ret has what was
 * received, whatever is returned: BT_TIMEOUT (the deadline, or silence), BT_UNAVAILABLE (no
 * connection, or broken off), BT_LIMIT (too many bytes, or calls), BT_CANCELLED, BT_INVALID (cannot
 * be sent), BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code net_post(struct net *n, const struct net_spec *spec,
                                    struct net_answer *ret, struct bt_error *err);
#endif
