/*
 * A connection to one MCP server. Threads may call at the same time. The era of the server is found
 * once: modern (2026-07-28, each request describes itself) or legacy (up to 2025-11-25, after a
 * handshake).
 */
#ifndef MCP_SERVER_H
#define MCP_SERVER_H

#include <pthread.h>

#include "agents/mcp/message.h"
#include "agents/mcp/settings.h"
#include "protocol/base/msec.h"

/* One request and its answer. */
struct mcp_call {
    const char *method;
    const char *name;   /* of a tool, for the header Mcp-Name; or NULL */
    struct buf members; /* the pairs of the parameters, as msgpack without a head */
    uint32_t n_members;
    struct bt_step *step; /* gets progress, is asked about cancellation; NULL at the start */
    uint64_t timeout_ms;
    uint64_t id;
    msec deadline;
    struct buf answer; /* the message, as msgpack; the caller frees */
    bool done;
    bool lost; /* done, but there was no memory for a message that may have been its answer */
    bool sent; /* the server may have begun: a failure says nothing about effects */
    struct buf question;   /* legacy: the parameters of an elicitation that came meanwhile */
    struct doc reply;      /* legacy: what a person answered to it; .ptr NULL = nothing yet */
    struct mcp_call *next; /* of those that wait for the same process */
};

struct mcp_process; /* stdio.c */

struct mcp_server {
    const struct mcp_settings *settings;
    bool modern;
    bool tools_change; /* the server sends notes about its list */
    pthread_mutex_t lock;
    uint64_t last_id;
    struct mcp_process *process; /* NULL = Streamable HTTP, or it could not be started again */
    pthread_rwlock_t in_use;     /* calls read; who starts the process again writes */
    char session[256];           /* legacy HTTP: Mcp-Session-Id; "" = none */
    uint64_t sessions;           /* how many handshakes there were */
    void (*changed)(void);       /* the list of tools changed */
};

/* Connects and finds the era. A server over stdio is started. The caller stops it. */
BT_MUST_CHECK enum bt_code
mcp_server_start(struct mcp_server *s, const struct mcp_settings *settings, struct bt_error *err);
void mcp_server_stop(struct mcp_server *s);
void mcp_call_init(struct mcp_call *c, const char *method, uint64_t timeout_ms);
void mcp_call_done(struct mcp_call *c);
/*
 * Sends the request; *ret is the answer, borrowed from the call. BT_OK: a result. BT_PEER: an error
 * of the server, in its words. BT_UNAVAILABLE: no connection, the process ended. BT_TIMEOUT,
 * BT_CANCELLED, BT_LIMIT.
 */
BT_MUST_CHECK enum bt_code mcp_server_call(struct mcp_server *s, struct mcp_call *c,
                                           struct mcp_message *ret, struct bt_error *err);

/* ---- what the transports share ---- */

/* The line of a request, with its id and `_meta`. */
BT_MUST_CHECK enum bt_code mcp_call_line(struct mcp_server *s, struct mcp_call *c, struct buf *out,
                                         struct bt_error *err);
/*
 * A message of the server for a call: an answer ends it (true), progress goes to its step, a
 * request is answered into reply_line (empty = none).
 */
bool mcp_call_take(struct mcp_server *s, struct mcp_call *c, struct doc message,
                   struct buf *reply_line);
/* There is no memory for a message that may be its answer: it ends, with BT_NOMEM. Accepts NULL. */
void mcp_call_lose(struct mcp_call *c);

/* False when there is no process, or its output ended. */
bool stdio_is_alive(const struct mcp_server *s);
BT_MUST_CHECK enum bt_code stdio_start(struct mcp_server *s, struct bt_error *err);
void stdio_stop(struct mcp_server *s);
BT_MUST_CHECK enum bt_code stdio_call(struct mcp_server *s, struct mcp_call *c,
                                      struct bt_error *err);
/* A note without an answer. */
BT_MUST_CHECK enum bt_code stdio_note(struct mcp_server *s, const char *line, size_t len,
                                      struct bt_error *err);
BT_MUST_CHECK enum bt_code stream_call(struct mcp_server *s, struct mcp_call *c,
                                       struct bt_error *err);
BT_MUST_CHECK enum bt_code stream_note(struct mcp_server *s, const char *line, size_t len,
                                       struct bt_error *err);
#endif
