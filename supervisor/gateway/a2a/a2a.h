/*
 * A server of A2A (agent to agent), versions 1.0 and 0.3, by JSON-RPC and by HTTP with JSON: a task
 * is a plan, its context a session, input-required a review. It keeps nothing between requests. One
 * thread.
 */
#ifndef GATEWAY_A2A_H
#define GATEWAY_A2A_H

struct http;

/* GET /.well-known/agent-card.json */
void a2a_serve_card(struct http *h);
/* POST /a2a */
void a2a_serve(struct http *h);
/* What is below /a2a (1.0) and /a2a/v1 (0.3). */
void a2a_serve_rest(struct http *h);
#endif
