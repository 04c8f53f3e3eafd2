/*
 * A server of A2A (agent to agent), versions 1.0 and 0.3, by JSON-RPC and by HTTP with JSON: a task
 * is a plan, its context a session, input-required a review. It keeps nothing between requests. One
 * thread.
 */
#ifndef GATEWAY_A2A_H
#define GATEWAY_A2A_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

struct http;

/* GET /.well-known/agent-card.json */
void a2a_serve_card(struct http *h);
/* POST /a2a */
void a2a_serve(struct http *h);
/* What is below /a2a (1.0) and /a2a/v1 (0.3). */
void a2a_serve_rest(struct http *h);

/* What the receiver of a push notification gets of an event: 1.0 a StreamResponse, 0.3 the task. */
struct a2a_push {
    bool modern;
    const char *plan, *context;
    struct doc event;
    struct doc answer; /* plan.result, of an event that ends the task; else absent */
};
bool a2a_push_wants(struct doc event);
bool a2a_push_ends(struct doc event);
void a2a_push_body(const struct a2a_push *p, struct buf *out);
#endif
