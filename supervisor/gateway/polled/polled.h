/*
 * Agents over HTTP: they poll for steps, and this program is their instance at the daemon. It has
 * lanes, sends heartbeats and proves itself with the credential of the agent's requests. What an
 * agent was given and what it answered is kept until the daemon has it. One thread.
 */
#ifndef POLLED_POLLED_H
#define POLLED_POLLED_H

#include "protocol/base/msec.h"
#include "protocol/wire/msg.h"
#include "supervisor/gateway/upstream.h"

enum {
    POLLED_INSTANCES_MAX = 256,
    POLLED_LANES_MAX = 1024,             /* of all instances; each is a descriptor or two */
    POLLED_BYTES_MAX = 64 * 1024 * 1024, /* steps and results of all instances */
    POLLED_LEASE_MS = 30000              /* without a request of the agent its attempts are lost */
};

struct http;
struct polled;

/* The upstream must live as long. lease_ms 0: POLLED_LEASE_MS. It lives as long as the process. */
BT_MUST_CHECK enum bt_code polled_new(struct upstream *up, msec lease_ms, struct polled **ret,
                                      struct bt_error *err);
/* Whether requests of this type are those of agents. */
bool polled_takes(enum msg_type request);
/* Answers a request of an agent, or keeps it waiting. */
void polled_serve(struct http *h);
/* The same for a poll, which is no request of the wire. */
void polled_serve_poll(struct http *h);
/* Registers again, renews leases, ends polls whose time is over. */
void polled_run(struct polled *p, msec now);
msec polled_deadline(const struct polled *p);
#endif
