/*
 * An agent's relation to its supervisor, as a pure state machine: events in, actions out, time is a
 * parameter. It has no sockets, no threads and no result bytes. A slot stands for one execution;
 * the runtime keeps the bytes that belong to it.
 *
 *   control:  DIALING --up--> UNREGISTERED --ok--> REGISTERED
 *   lost, timed out or down:   back to DIALING
 *   fenced or unknown:         back to UNREGISTERED, same instanceId and session key
 *   slot:     FREE --execute--> RUNNING --finished--> DONE --expired or evicted--> FREE
 *
 * Rules (each has a test in tests/unit/sdk):
 * - One control request is outstanding at a time. It is lost when it has no answer within the
 *   lease.
 * - Requests must carry the current epoch. While a registration is outstanding, a higher epoch is
 *   that registration's.
 * - The same key and attempt never run twice. Running: the newest request gets the answer. Done:
 *   the kept result is the answer.
 * - More than `capacity` executions are rejected with BUSY, as is one that comes when sessions with
 *   other shards have all places, and one that comes while draining: it has not begun.
 * - An execution of an older epoch, or one that ends while unregistered, is also reported by
 *   step.result.
 * - A result is kept for 10 minutes, within 64 results and 16 MiB. A newer attempt of its key
 *   evicts it earlier. What was evicted is forgotten, which is not the same as unknown: it ran.
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
    /* Bits of the set of what was forgotten. It has no false negatives; after 100,000 results one
     * query in a hundred about what never ran says that it was forgotten. */
    AGENT_STATE_FORGOTTEN = 1 << 20,
    AGENT_STATE_ORDERS = LIMIT_CAPACITY + 1,
    AGENT_STATE_ACTIONS = 2 * AGENT_STATE_SLOTS + AGENT_STATE_ORDERS + 16,
    AGENT_STATE_DIAL_MS = 2000,     /* then a new dial: the port may have changed */
    AGENT_STATE_REGISTER_MS = 5000, /* longest wait for the answer to agent.register */
    AGENT_STATE_BACKOFF_MAX_MS = 5000,
    /* between two reports; the supervisor accepts ten a second, and their spacing varies in
     * transit */
    AGENT_STATE_PROGRESS_MS = 125,
    /* between the last answer and the end of the process: the bytes must leave */
    AGENT_STATE_LINGER_MS = 50,
    /* how long a draining agent waits for a supervisor to deliver results to */
    AGENT_STATE_RESULT_AGAIN_MS = 1000, /* after a refusal that may pass */
    AGENT_STATE_OFFLINE_MS = 10000,
    AGENT_STATE_LOG_MS = 60 * 1000 /* between two warnings about an unreachable supervisor */
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
    uint64_t request; /* unanswered; AGENT_STATE_NO_REQUEST = none */
    bool cancelled;
    bool overdue;     /* cancelled, and its grace is over */
    msec cancel_at;   /* end of the grace */
    bool progress;    /* unsent progress */
    bool undelivered; /* must be sent by step.result */
    msec touched;     /* when it was done or last requested */
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
    uint64_t forgotten[AGENT_STATE_FORGOTTEN / 64]; /* keys with their attempts, hashed */
    /* the control lane */
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
    msec dial_at;       /* next dial; MSEC_NEVER while dialing or up */
    msec register_at;
    msec heartbeat_at;
    msec progress_at;
    msec result_at;         /* a result that was refused for now is sent again */
    uint32_t progress_slot; /* whose progress was sent last: the others come first */
    uint32_t backoff_ms;
    msec log_at;
    /* the end */
    bool draining;
    bool drain_sent; /* the supervisor knows */
    bool stopped;    /* a first signal came: the next one ends at once */
    bool ended;
    msec drain_since;
    msec linger_until;
};

enum agent_state_event_type {
    AGENT_STATE_START,
    AGENT_STATE_TICK,
    AGENT_STATE_UP,   /* the control lane is connected */
    AGENT_STATE_DOWN, /* it is disconnected */
    AGENT_STATE_LOST, /* the outstanding control request got no answer, or could not be sent */
    AGENT_STATE_REGISTERED,   /* epoch, lease_ms, heartbeat_ms */
    AGENT_STATE_HEARTBEAT_OK, /* lease_ms, drain, orders, n */
    AGENT_STATE_RESULT_OK,    /* accepted */
    AGENT_STATE_CALL_OK,      /* an empty answer */
    AGENT_STATE_REFUSED,      /* code */
    AGENT_STATE_HELLO,        /* request, epoch */
    AGENT_STATE_EXECUTE,      /* request, key, attempt, epoch, full */
    AGENT_STATE_CANCEL,       /* request, key, attempt (0 = all), grace_ms */
    AGENT_STATE_QUERY,        /* request, key, attempt (0 = the newest) */
    AGENT_STATE_FINISHED,     /* slot, bytes */
    AGENT_STATE_PROGRESS,     /* slot */
    AGENT_STATE_STOP          /* SIGTERM or SIGINT */
};

struct agent_state_order {
    struct str key;
    uint32_t attempt; /* 0 = all */
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
    bool full; /* EXECUTE: sessions with other shards have all places */
    enum bt_code code;
    const struct agent_state_order *orders;
    uint32_t n;
};

enum agent_state_action_type {
    DO_DIAL, /* read the endpoints again and connect the control lane; then AGENT_STATE_UP */
    DO_REGISTER,
    DO_HEARTBEAT,
    DO_RESULT,   /* slot */
    DO_PROGRESS, /* slot */
    DO_DRAIN,
    DO_DEREGISTER,
    DO_RUN,           /* slot, request: its bytes are the step */
    DO_CANCEL,        /* slot */
    DO_RELEASE,       /* slot: free what the runtime keeps for it */
    DO_ANSWER_OK,     /* request: of the greeting */
    DO_ANSWER_RESULT, /* request, slot */
    DO_ANSWER_STATE,  /* request, slot or AGENT_STATE_NO_SLOT; forgotten: it ran once */
    DO_REFUSE,        /* request, code, text */
    DO_LOG,           /* slot or AGENT_STATE_NO_SLOT, text: a log line */
    DO_EXIT           /* status */
};

struct agent_state_action {
    enum agent_state_action_type type;
    uint32_t slot;
    uint64_t request;
    enum bt_code code;
    int status;
    bool forgotten;
    const char *text;
};

struct agent_state_actions {
    struct agent_state_action at[AGENT_STATE_ACTIONS];
    uint32_t n;
};

/* capacity 1..LIMIT_CAPACITY. */
void agent_state_init(struct agent_state *s, uint32_t capacity);
/* Handles one event and appends to out, which the caller emptied. Copies the event's strings. */
void agent_state_handle(struct agent_state *s, const struct agent_state_event *ev,
                        struct agent_state_actions *out);
/* When to send the next AGENT_STATE_TICK; MSEC_NEVER when no timer runs. */
msec agent_state_deadline(const struct agent_state *s);
/* How long until the next look for a supervisor that has been away so long, which reads a file: an
 * eighth of it, 2 to 100 ms. One that was killed is there again within some 40 ms. */
msec agent_state_look_wait(msec away);
/* The slot of a running or kept execution, or AGENT_STATE_NO_SLOT. attempt 0 = the newest. */
uint32_t agent_state_find(const struct agent_state *s, struct str key, uint32_t attempt);
#endif
