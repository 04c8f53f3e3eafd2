/*
 * The HTTP server: libmicrohttpd without threads. A connection is suspended while the daemon is
 * asked, so that nothing blocks and nothing spins. One thread.
 */
#ifndef GATEWAY_SERVER_H
#define GATEWAY_SERVER_H

#include "protocol/base/buf.h"
#include "protocol/base/msec.h"
#include "supervisor/gateway/options.h"
#include "supervisor/gateway/upstream.h"

enum {
    SERVER_CONNECTIONS_MAX = 2048,        /* also bounded by the descriptors of the process */
    SERVER_CONNECTION_BYTES = 24 * 1024,  /* for the head of a request; a larger one is 431 */
    SERVER_HELD_BYTES = 64 * 1024 * 1024, /* bodies and answers of all connections */
    SERVER_SEND_BYTES = 128 * 1024,       /* in the kernel, for one connection */
    SERVER_HEAD_MS = 30000,  /* from the last answer, or the beginning, to the end of a head */
    SERVER_BODY_MS = 60000,  /* from there to the end of the body */
    SERVER_SEND_MS = 120000, /* for an answer to be taken */
    SERVER_SILENT_S = 30     /* nothing moves */
};

struct server;
struct watch;
struct telemetry;
struct login;
struct incoming;
struct polled;
struct webhooks;

/* What the addresses beside the requests use; each lives as long. */
struct parts {
    struct watch *watch;
    struct telemetry *telemetry;
    const struct login *login;
    struct incoming *incoming; /* NULL: there are none */
    struct polled *polled;
    struct webhooks *hooks;
};

struct server_counts {
    uint64_t requests[6]; /* by the first digit of the status; 0 = no answer yet or broken off */
    uint64_t wakes;       /* of streams */
    uint64_t refused_connections;
};

/* Listens. The options and the upstream must live as long. BT_UNAVAILABLE: the port is taken. It
 * lives as long as the process. */
BT_MUST_CHECK enum bt_code server_new(const struct options *opt, uint16_t port, struct upstream *up,
                                      const struct parts *parts, struct server **ret,
                                      struct bt_error *err);
uint16_t server_port(const struct server *s);
int server_fd(const struct server *s);
/* When server_run is due without the descriptor. */
msec server_deadline(const struct server *s, msec now);
/* The time of this turn, before anything else of it. */
void server_begin(struct server *s, msec now);
void server_run(struct server *s, msec now);
#endif
