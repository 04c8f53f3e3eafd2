/*
 * The life of an agent with its supervisor, as a pure machine: events in, actions out, time a
 * parameter. It knows no socket, no thread and no bytes of a result: a row stands for one
 * execution, the shell keeps what belongs to it.
 *
 *   control:  DIALING --up--> UNREGISTERED --ok--> REGISTERED      lost, timed out or down: back to
 * DIALING,
 *                                ^-- fenced or forgotten --'       with the same instanceId and
 * session key row:      FREE --execute--> RUNNING --finished--> DONE --old, or pushed out--> FREE
 *
 * Rules (each has a test in tests/unit/sdk):
 *   - one control request at a time; it is lost when it has no answer within the lease
 *   - requests must carry the current epoch; while a registration is under way, a higher one is
 * that registration's
 *   - the same key and attempt never runs twice: running = the newest request gets the answer, done
 * = answered as kept
 *   - more than `capacity` at a time is BUSY; while draining, UNAVAILABLE
 *   - an execution of an older epoch, or one that ends while unregistered, is also reported by
 * step.result
 *   - a result is kept for 10 minutes, within 64 results and 16 MiB; a newer attempt of its key
 * ends it sooner
 */
#ifndef SDK_AGENT_STATE_H
#define SDK_AGENT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "baton/error.h"
#include "protocol/base/msec.h"
#include "protocol/base/str.h"
#include "protocol/limits.h"

enum {
    AGENT_STATE_KEPT = 64,
    AGENT_STATE_KEPT_BYTES = 16 * 1024 * 1024,
    AGENT_STATE_KEEP_MS = 10 * 60 * 1000,
    AGENT_STATE_SLOTS = LIMIT_CAPACITY + AGENT_STATE_KEPT,
    AGENT_STATE_ORDERS = LIMIT_CAPACITY + 1,
    AGENT_STATE_ACTIONS = 2 * AGENT_STATE_SLOTS + AGENT_STATE_ORDERS + 16,
    AGENT_STATE_DIAL_MS =
        2000, /* a dial that is not up by then is made anew: the port may have changed */
    AGENT_STATE_REGISTER_MS = 5000, /* an answer to agent.register takes no longer */
    AGENT_STATE_BACKOFF_MAX_MS = 5000,
    AGENT_STATE_PROGRESS_MS = 125, /* between two progress reports; the supervisor takes ten a
                                  second, and they do not arrive as evenly as they leave */
    AGENT_STATE_LINGER_MS =
        50, /* after the last answer, before the process may end: the bytes must leave */
    AGENT_STATE_OFFLINE_MS =
        10000, /* a draining agent waits so long to hand over results without a supervisor */
    AGENT_STATE_LOG_MS = 60 * 1000 /* between two complaints about an unreachable supervisor */
};

#define AGENT_STATE_NO_SLOT UINT32_MAX
#define AGENT_STATE_NO_REQUEST UINT64_MAX

enum agent_state_slot_state { SLOT_FREE, SLOT_RUNNING, SLOT_DONE };

struct agent_state_slot {
    enum agent_state_slot_state state;
    char key[LIMIT_KEY_BYTES];
    uint32_t key_len;
    uint32_t attempt;
    uint64_t epoch;   /* of the newest request */
    uint64_t request; /* to be answered; AGENT_STATE_NO_REQUEST once it was */
    bool cancelled;
    bool overdue;     /* cancelled, and its grace has passed */
    msec cancel_at;   /* end of the grace */
    bool progress;    /* something new to report */
    bool undelivered; /* step.result must be sent */
    msec touched;     /* done, or asked for since */
    uint64_t bytes;   /* of the kept result */
};

enum agent_state_call {
    CALL_NONE,
    CALL_REGISTER,
    CALL_HEARTBEAT,
    CALL_RESULT,
    CALL_PROGRESS,
    CALL_DRAIN,
    CALL_DEREGISTER
};

struct agent_state {
    uint32_t capacity;
    uint32_t running;
    struct agent_state_slot slots[AGENT_STATE_SLOTS];
    uint64_t kept_bytes;
    uint32_t kept;
    /* control */
    bool up;
    bool registered;
    uint64_t epoch;
    msec lease_ms, heartbeat_ms;
    enum agent_state_call call;
    uint32_t call_slot;
    msec call_deadline;
    msec call_sent_at;
    msec contact_at;    /* when the newest answered control request was sent */
    msec dial_deadline; /* while dialing */
    msec dial_at;       /* next dial; MSEC_NEVER while one is under way or up */
    msec register_at;
    msec heartbeat_at;
    msec progress_at;
    uint32_t progress_slot; /* whose progress was told last: the others come first */
    uint32_t backoff_ms;
    msec log_at;
    /* the end */
    bool draining;
    bool drain_sent; /* the supervisor knows */
    bool stopped;    /* one signal came: the next one ends at once */
    bool ended;
    msec drain_since;
    msec linger_until;
};

enum agent_state_event_type {
    AGENT_STATE_START,
    AGENT_STATE_TICK,
    AGENT_STATE_UP,   /* the control lane has a pipe */
    AGENT_STATE_DOWN, /* it has none any more */
    AGENT_STATE_LOST, /* the outstanding control request has no answer, or could not be sent */
    AGENT_STATE_REGISTERED,   /* epoch, lease_ms, heartbeat_ms */
    AGENT_STATE_HEARTBEAT_OK, /* lease_ms, drain, orders, n */
    AGENT_STATE_RESULT_OK,    /* accepted */
    AGENT_STATE_CALL_OK,      /* an answer with nothing in it */
    AGENT_STATE_REFUSED,      /* code */
    AGENT_STATE_HELLO,        /* request, epoch */
    AGENT_STATE_EXECUTE,      /* request, key, attempt, epoch */
    AGENT_STATE_CANCEL,       /* request, key, grace_ms */
    AGENT_STATE_QUERY,        /* request, key, attempt (0 = the newest) */
    AGENT_STATE_FINISHED,     /* row, bytes */
    AGENT_STATE_PROGRESS,     /* row */
    AGENT_STATE_STOP          /* SIGTERM or SIGINT */
};

struct agent_state_order {
    struct str key;
    msec grace_ms;
};

struct agent_state_event {
    enum agent_state_event_type type;
    msec now;
    uint64_t request;
    struct str key;
    uint32_t attempt;
    uint64_t epoch;
    msec grace_ms, lease_ms, heartbeat_ms;
    uint32_t slot;
    uint64_t bytes;
    bool accepted, drain;
    enum bt_code code;
    const struct agent_state_order *orders;
    uint32_t n;
};

enum agent_state_action_type {
    DO_DIAL, /* read the endpoints again and connect the control lane; then AGENT_STATE_UP */
    DO_REGISTER,
    DO_HEARTBEAT,
    DO_RESULT,   /* row */
    DO_PROGRESS, /* row */
    DO_DRAIN,
    DO_DEREGISTER,
    DO_RUN,           /* row, request: its bytes are the step */
    DO_CANCEL,        /* row */
    DO_RELEASE,       /* row: free what is kept for it */
    DO_ANSWER_OK,     /* request */
    DO_ANSWER_RESULT, /* request, row */
    DO_ANSWER_STATE,  /* request, row or AGENT_STATE_NO_SLOT */
    DO_REFUSE,        /* request, code, text */
    DO_LOG,           /* row or AGENT_STATE_NO_SLOT, text: for the log */
    DO_EXIT           /* status */
};

struct agent_state_action {
    enum agent_state_action_type type;
    uint32_t slot;
    uint64_t request;
    enum bt_code code;
    int status;
    const char *text;
};

struct agent_state_actions {
    struct agent_state_action at[AGENT_STATE_ACTIONS];
    uint32_t n;
};

/* capacity 1..LIMIT_CAPACITY. */
void agent_state_init(struct agent_state *s, uint32_t capacity);
/* Handles one event; appends to out, which the caller emptied. Strings of the event are copied. */
void agent_state_handle(struct agent_state *s, const struct agent_state_event *ev,
                        struct agent_state_actions *out);
/* When to send the next AGENT_STATE_TICK; MSEC_NEVER when nothing is due. */
msec agent_state_deadline(const struct agent_state *s);
/* The running or kept execution; AGENT_STATE_NO_SLOT when there is none. attempt 0 = the newest. */
uint32_t agent_state_find(const struct agent_state *s, struct str key, uint32_t attempt);
#endif
