/*
 * The daemon, as many senders see it: each sender of HTTP requests is a caller with lanes and, with
 * a credential, sessions of its own. This program has no rights of its own: what is sent proves the
 * caller, or nobody. One thread; nothing blocks.
 *
 *     upstream_caller -> caller_call -> (upstream_run) -> done
 *
 * A caller proves itself with its first answer. Until then it has one lane and one request out, and
 * few such callers are there at a time; after many failures strangers wait (BT_BUSY) and callers
 * who have proved themselves do not notice it.
 */
#ifndef GATEWAY_UPSTREAM_H
#define GATEWAY_UPSTREAM_H

#include "protocol/base/buf.h"
#include "protocol/base/msec.h"
#include "protocol/wire/msg.h"
#include "supervisor/gateway/problem.h"

enum {
    CALLERS_MAX = 128,        /* who have a lane or a session at a time */
    CALLERS_STRANGE_MAX = 16, /* of them, who have not proved themselves */
    CALLER_LANES_MAX = 8,     /* with several shards: and two for each */
    CALLER_WAITS_MAX = 4,     /* of the lanes, for calls that wait for events */
    CALLER_CALLS_MAX = 2048,  /* calls that are out or wait for a lane */
    CALL_MS = 30000,          /* for an answer */
    FAILURES_MAX = 10,        /* of strangers, in */
    FAILURES_MS = 10000
};

struct upstream;
struct caller;
struct call;
struct link;
struct link_event;

/* What came of a call. An answer of the daemon, or why there is none. */
struct reply {
    bool ok;
    struct doc body; /* ok: the whole map, with the envelope */
    struct problem problem;
};

/* The docs and texts are valid until it returns. */
typedef void call_done(void *self, const struct reply *reply);

struct call_spec {
    enum msg_type type, answer;
    struct doc fields;      /* a map; copied */
    bool reads;             /* may be sent again when the connection broke */
    struct str traceparent; /* of plan.submit; empty = none */
    msec wait_ms;           /* the daemon may keep it waiting for so long */
    msec within_ms;         /* for the answer; 0 = CALL_MS */
    uint32_t to_shard;      /* 1 + the shard that is asked; 0 = by what is asked for */
    bool live; /* the one that feeds the streams of the caller: there is always room for it */
    call_done *done;
    void *self;
};

/* The state directory must live as long. It lives as long as the process. */
BT_MUST_CHECK enum bt_code upstream_new(const char *state_dir, struct upstream **ret,
                                        struct bt_error *err);
int upstream_fd(const struct upstream *u);
/* When upstream_run is due without the descriptor; MSEC_NEVER. */
msec upstream_deadline(const struct upstream *u);
/* For those who serve requests of the daemon: its link, and what takes them. The message is freed
 * when take returns. */
struct link *upstream_link(const struct upstream *u);
void upstream_serve(struct upstream *u, void (*take)(void *self, struct link_event *ev),
                    void *self);
/* Takes what came, sends what can be sent, calls `done`. */
void upstream_run(struct upstream *u, msec now);

/* The sender that this proves: the daemon's token, or ID:KEY, id and hexadecimal key of a
 * credential. token_ok: the token counts, too. BT_UNAUTHORIZED: it is neither. BT_BUSY: strangers
 * wait, *ret_retry_ms. The caller releases *ret with caller_release. */
BT_MUST_CHECK enum bt_code upstream_caller(struct upstream *u, struct str bearer, bool token_ok,
                                           msec now, struct caller **ret, uint64_t *ret_retry_ms,
                                           struct bt_error *err);
struct caller *caller_keep(struct caller *c);
void caller_release(struct caller *c);
/* Whether the daemon has taken this sender once. */
bool caller_is_proved(const struct caller *c);
/* What the user of callers keeps with one (streams), for each shard; NULL at first. */
void **caller_slot(struct caller *c, uint32_t shard);
/* How many shards the fleet has; 1 without one of several. */
uint32_t upstream_shards(const struct upstream *u);
struct upstream *caller_upstream(const struct caller *c);
/* Never calls `done` before it returns. BT_BUSY: too many of this caller wait. The call belongs to
 * the upstream, until `done` was called. *ret: NULL when it fails. */
BT_MUST_CHECK enum bt_code caller_call(struct caller *c, const struct call_spec *spec, msec now,
                                       struct call **ret, struct bt_error *err);
/* Its `done` is not called any more. */
void call_abandon(struct call *call);
#endif
