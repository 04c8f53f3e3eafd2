/* Shared by serve.c (methods), rest.c (HTTP), list.c (ListTasks), push.c (push notifications),
 * task.c (a plan that is followed) and words.c (both versions). */
#ifndef GATEWAY_A2A_INTERNAL_H
#define GATEWAY_A2A_INTERNAL_H

#include "supervisor/gateway/a2a/a2a.h"
#include "supervisor/gateway/http.h"
#include "supervisor/gateway/json.h"

enum {
    A2A_PARSE = -32700,
    A2A_REQUEST = -32600,
    A2A_METHOD = -32601,
    A2A_PARAMS = -32602,
    A2A_INTERNAL = -32603,
    A2A_NO_TASK = -32001,
    A2A_NOT_CANCELABLE = -32002,
    A2A_UNSUPPORTED = -32004
};

/* What is to be sent of a task. */
enum a2a_way {
    A2A_NOW,    /* as it is */
    A2A_AT_END, /* when it is over, or waits for a person */
    A2A_STREAM  /* each change */
};

/* One request; the docs point into message. */
struct a2a {
    struct http *h;
    struct buf message;
    struct doc id, params;
    bool modern; /* 1.0 */
    bool rest;   /* over HTTP with JSON, without JSON-RPC */
    bool cancels;
    bool sends;    /* a message, which brought a configuration of push notifications */
    bool reserves; /* a place for this configuration */
    bool wrapped;  /* 1.0: the result of SendMessage is {"task": ...} */
    enum a2a_way way;
    unsigned status; /* of HTTP, of a refusal; 0 = as the code says */
    char plan[65], context[65];
    uint64_t push_from; /* the first event for its configuration */
    char when[33];      /* the time of the state; "" = now */
    struct list *list;  /* of ListTasks; freed by a2a_list_free */
};

/* ---- words.c ---- */

enum a2a_state {
    A2A_SUBMITTED,
    A2A_WORKING,
    A2A_INPUT_REQUIRED,
    A2A_COMPLETED,
    A2A_FAILED,
    A2A_CANCELED,
    A2A_STATES
};
enum a2a_state a2a_state_of(struct str plan_status);
bool a2a_is_over(enum a2a_state s);
/* What a code of JSON-RPC is over HTTP. */
struct a2a_fault {
    unsigned http;
    const char *status, *reason;
};
struct a2a_fault a2a_fault_of(int code);
/* Words of protobuf's JSON: 1.0, and 0.3 over HTTP. */
bool a2a_is_proto(const struct a2a *a);
/* Opens {"jsonrpc", "id", "result": ; a2a_end closes. Nothing over HTTP. */
void a2a_begin(const struct a2a *a, struct buf *out);
void a2a_end(const struct a2a *a, struct buf *out);
/* says: the words of the agent beside the state; empty = none. answer: plan.result, or absent. */
void a2a_put_task(const struct a2a *a, enum a2a_state s, struct str says, struct doc answer,
                  struct buf *out);
void a2a_put_status(const struct a2a *a, enum a2a_state s, struct str says, struct buf *out);
/* The answer of the plan as an event. False: it has none. */
bool a2a_put_artifact(const struct a2a *a, struct doc answer, struct buf *out);
void a2a_put_error(const struct a2a *a, int code, struct str message, struct buf *out);

/* ---- serve.c ---- */

/* The request is answered with what is in h->out. */
void a2a_answer(const struct a2a *a);
void a2a_refuse(struct a2a *a, int code, const char *message);
/* A refusal of the daemon. */
void a2a_refuse_problem(struct a2a *a, const struct problem *p);
void a2a_ask(struct a2a *a, enum msg_type type, enum msg_type answer, bool reads,
             struct buf *fields, call_done *done);

/* A new request; NULL after refusing. */
struct a2a *a2a_new(struct http *h);
/* Runs a method by its name of 1.0. False: there is none. */
bool a2a_run(struct a2a *a, struct str method);
/* Takes the plan that is meant. False after refusing. */
bool a2a_take_plan(struct a2a *a, struct str id);

/* ---- list.c ---- */

void a2a_list(struct a2a *a);
void a2a_list_free(struct a2a *a);

/* ---- push.c ---- */

void a2a_push_set(struct a2a *a);
void a2a_push_get(struct a2a *a);
void a2a_push_list(struct a2a *a);
void a2a_push_delete(struct a2a *a);
/* Before the message counts: whether its configuration, if it brings one, can be set; a place is
 * kept for it. False after refusing. */
bool a2a_push_fits(struct a2a *a);
void a2a_push_free(struct a2a *a);
/* Whether the message brings a configuration: it is set for a->plan, and a2a_show follows. */
bool a2a_push_comes(struct a2a *a);

/* ---- task.c ---- */

/* The context and the time of a plan: of plan.get or one of plan.list. Returns its state. */
enum a2a_state a2a_take_view(struct a2a *a, struct doc plan);
/* What an event makes of the task, and its words; A2A_STATES: nothing. */
enum a2a_state a2a_event_state(struct doc event, struct buf *says);
/* Fields of plan.result and plan.get without steps. */
void a2a_put_fields(struct buf *fields, const char *plan);

/* Answers with the task of a->plan, the way that a->way asks. */
void a2a_show(struct a2a *a);
#endif
