/*
 * One request of HTTP without a server and without a daemon: what an address of the gateway asks
 * the daemon for, and what it answers. Stands for http.c, watch.c and the callers of upstream.c.
 * One rig, one thread.
 */
#ifndef SUPPORT_GATEWAY_HTTP_RIG_H
#define SUPPORT_GATEWAY_HTTP_RIG_H

#include "supervisor/gateway/http.h"

enum { RIG_HEADERS_MAX = 16, RIG_CALLS_MAX = 512, RIG_TEXT_BYTES = 4096 };

/* A call to the daemon that has no answer yet. */
struct rig_call {
    struct call_spec spec;
    bool open;
};

struct http_rig {
    struct http h;
    struct server s;
    struct {
        const char *name, *value;
    } headers[RIG_HEADERS_MAX]; /* of the request */
    enum bt_code busy;          /* what a call itself says */
    bool no_caller;             /* the token of the state directory cannot be read */
    struct rig_call calls[RIG_CALLS_MAX];
    /* what came of it */
    uint32_t asked, woken, abandoned; /* calls; the connection; calls that nobody waits for */
    struct call_spec spec;            /* of the last call; its fields are in `fields` */
    char fields[RIG_TEXT_BYTES];
    enum bt_code code; /* of a refusal, with its words and its field */
    char message[RIG_TEXT_BYTES], field[RIG_TEXT_BYTES];
    uint64_t retry_after_ms;
    uint32_t noted; /* plans that telemetry was told of */
};
extern struct http_rig rig;

/* A request with this body; texts must live as long. */
void rig_begin(const char *body);
void rig_end(void);
void rig_header(const char *name, const char *value);
/* What the handler wrote. */
const char *rig_out(void);
/* The daemon answers the last call: JSON with ' for ", or a refusal. */
void rig_answer(const char *json);
void rig_refuse(enum bt_code code, const char *message);
/* The same for the first call of this type that has no answer. */
void rig_answer_to(enum msg_type type, const char *json);
void rig_refuse_to(enum msg_type type, enum bt_code code);
/* How many calls of this type have no answer. */
uint32_t rig_open(enum msg_type type);
#endif
