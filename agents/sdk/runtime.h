/*
 * The I/O around the agent state machine: one loop thread owns the sockets, the state and the
 * slots; K worker threads run the handlers, the loop itself those of quick skills (loop/). The loop
 * converts input into events of agent_state and performs its actions, in order.
 */
#ifndef SDK_RUNTIME_H
#define SDK_RUNTIME_H

#include "agents/sdk/agent_state.h"
#include "agents/sdk/card.h"
#include "agents/sdk/loop/watch.h"
#include "agents/sdk/options.h"
#include "agents/sdk/pool.h"
#include "agents/sdk/step.h"
#include "protocol/auth/lane.h"
#include "protocol/base/clock.h"
#include "protocol/client/exchange.h"
#include "protocol/client/state.h"
#include "protocol/link/link.h"
#include "protocol/wire/bundle.h"

/* Twice the capacity: steps of a bundle hold no context, and those of a supervisor that has gone,
 * or of a lane that has, stay open until their work ends. */
enum {
    RUNTIME_SPARE_CONTEXTS = 4,
    RUNTIME_REQUESTS = 2 * LIMIT_CAPACITY + 1 + RUNTIME_SPARE_CONTEXTS
};

/* A request of the supervisor that has no answer yet. Its index is the handle that agent_state
 * uses. */
struct runtime_request {
    bool open;
    bool bundled; /* it came in a bundle, with the tag; handle is not used */
    uint64_t tag;
    struct link_server *server; /* NULL: of a lane that is gone; its answer goes nowhere */
    uint64_t handle;
    uint32_t pipe; /* its connection */
    enum wire_form form;
    char id[65];
    struct str key; /* of step.query and step.cancel, while the request is read */
};

/* The bytes of a request: a message, or a copy of a part of one. Freed by runtime_bytes_free. */
struct runtime_bytes {
    struct link_msg *msg;
    uint8_t *copy;
    size_t len; /* of the copy */
};

/* A request for bundles that has no answer yet. */
struct runtime_kept {
    struct link_server *server;
    uint64_t handle;
    uint32_t pipe;
    uint64_t epoch; /* of the registration at which it came */
};

struct runtime_trunk {
    struct runtime_kept kept[BUNDLE_PIPES]; /* the oldest first */
    uint32_t kept_n;
    uint32_t pipes;     /* of the supervisor */
    struct buf answers; /* in a row, not sent yet */
    struct buf frame;   /* the bundle that is sent */
};

/* The resources of a slot of agent_state. */
struct runtime_slot {
    struct runtime *runtime;
    struct bt_step *step;       /* while it runs */
    struct runtime_bytes bytes; /* of the step */
    struct reply reply;         /* once it is done */
    struct step_progress progress;
    uint64_t started_ns;
};

/* Steps of quick skills (loop/inline.c). */
struct runtime_quick {
    struct watch *watch; /* NULL: no skill is quick */
    struct quick guards[LIMIT_SKILLS];
    uint32_t waiting[AGENT_STATE_SLOTS]; /* slots, in the order in which they came */
    uint32_t at, n;
    uint32_t running; /* the slot of the newest run */
};

struct runtime_stats {
    uint64_t requests, errors, processing_ns;
    char last_error[512];
    char started[CLOCK_ISO_LEN + 1];
};

/* Connections that a lane.hello with a nonce came over: those of all lanes, of lanes before they
 * broke, and of strangers. */
enum { RUNTIME_PIPES = 4 * (LIMIT_CAPACITY + 1) };
struct runtime_pipe {
    uint32_t id; /* 0 = free */
    bool proved;
    uint64_t used;
    struct lane_proof proof;
};

struct runtime {
    struct agent_state agent_state;
    const struct options *opt;
    const struct card *card;
    void *self; /* the agent's state, for its handlers */
    void (*done)(void *self);
    struct link *link;
    struct link_server *server; /* NULL with dial-in */
    struct link_server *dialed[LIMIT_CAPACITY + 1];
    uint32_t dialed_n;
    struct link_lane *control;
    uint32_t seed;    /* which of the supervisors elsewhere is dialed */
    uint32_t in_vain; /* dials of them since one was reached */
    char control_url[STATE_URL_MAX + 1];
    struct uuid daemon; /* the start of the supervisor that the control lane was dialed for */
    msec away_since;    /* the first look in vain since it was reached last; 0 = none */
    msec look_at;       /* when to look for a supervisor again; MSEC_NEVER = one was dialed */
    bool outstanding;   /* a control request has no answer yet */
    bool feed_up;       /* the lane is up already: feed AGENT_STATE_UP after the current actions */
    uint64_t control_n;
    struct buf state_dir;
    char token[STATE_TOKEN_LEN + 1];
    bool elsewhere; /* the supervisor is another node's, which does not know our credential */
    struct exchange credential; /* none: the token proves this agent (runtime_sealed.c) */
    struct buf sealed;          /* the bytes of a request as they are sent */
    struct runtime_pipe pipes[RUNTIME_PIPES];
    uint64_t pipes_used;
    char session_key[65];
    char instance_id[UUID_TEXT_LEN + 1];
    char process_id[UUID_TEXT_LEN + 1]; /* made up once: what an earlier process of the instance got
                                           never came here */
    struct runtime_request requests[RUNTIME_REQUESTS];
    struct runtime_slot slots[AGENT_STATE_SLOTS];
    struct bt_step *arriving; /* the step of the current event, for DO_RUN */
    struct runtime_bytes arriving_bytes;
    struct runtime_trunk trunk;
    struct pool *pool;
    struct runtime_quick quick;
    bool own_loop;      /* of the program (loop/drive.c): no workers, no signals */
    struct buf request; /* of the control lane: a handshake may send it again */
    struct buf out;     /* an answer */
    struct runtime_stats stats;
    int signals;
    bool ended;
    int status;
};

struct runtime_how {
    const struct options *opt;
    const struct card *card;
    void *self;
    void (*done)(void *self);
    uint32_t capacity;
    bool own_loop;
};

/* Opens the sockets and starts the threads; *how is copied, what it points to is borrowed. After a
 * failure the process has to end. Never freed: nng's threads use parts of it until _exit. */
BT_MUST_CHECK enum bt_code runtime_new(const struct runtime_how *how, struct runtime **ret,
                                       struct bt_error *err);
/* Registers and serves until it is stopped, then ends the process by _exit, on the thread that is
 * the loop's by then. */
_Noreturn void runtime_run(struct runtime *rt);
/* One cycle; waits for at most wait_ms (-1 = for ever). False: the loop was taken over by another
 * thread. */
BT_MUST_CHECK bool runtime_cycle(struct runtime *rt, int wait_ms);
/* Until the next cycle is due, whatever comes; -1 = for ever. */
int runtime_wait_ms(const struct runtime *rt);
/* Calls done(), unless handlers run, and ends the process. */
_Noreturn void runtime_leave(struct runtime *rt);

/* ---- shared by the runtime*.c files ---- */
void runtime_feed(struct runtime *rt, struct agent_state_event ev);
/* The handler of the slot has returned: its reply is the result. */
void runtime_finish(struct runtime *rt, uint32_t slot);
/* loop/inline.c: quick skills. False: the slot is for the workers. */
bool runtime_quick_put(struct runtime *rt, uint32_t slot);
/* Runs what waits, for a few milliseconds at most. False: the loop was taken over meanwhile; the
 * caller touches nothing of it. */
BT_MUST_CHECK bool runtime_quick_run(struct runtime *rt);
/* In a loop of the program's own: tells handlers that answer later that their steps are cancelled.
 */
void runtime_later_tell(struct runtime *rt);
/* When the next of their deadlines passes; MSEC_NEVER = none. */
msec runtime_later_deadline(const struct runtime *rt);
/* The caller has just taken the loop over, because a handler runs for too long. */
void runtime_quick_taken(struct runtime *rt);
/* runtime_serve.c: the supervisor's requests and their answers */
void runtime_on_request(struct runtime *rt, struct link_event *ev);
/* One request; *rq is copied, the bytes are taken. */
void runtime_on_body(struct runtime *rt, const struct runtime_request *rq,
                     struct runtime_bytes bytes);
void runtime_bytes_free(struct runtime_bytes *bytes);
void runtime_answer(struct runtime *rt, uint64_t request, enum msg_type type, const void *body);
void runtime_answer_result(struct runtime *rt, uint64_t request, uint32_t slot);
void runtime_answer_state(struct runtime *rt, const struct agent_state_action *a);
void runtime_refuse(struct runtime *rt, uint64_t request, const struct bt_error *why,
                    enum err_class cls);
/* The result of a DONE slot as a message; strings point into the slot. */
void runtime_view_result(const struct runtime *rt, uint32_t slot, struct msg_step_result *ret);
/* runtime_trunk.c: requests that came in bundles */
void runtime_on_bundle(struct runtime *rt, struct link_event *ev);
void runtime_trunk_answer(struct runtime *rt, const struct runtime_request *rq, struct str body);
/* When the loop has taken what there was: answers that wait go out. */
void runtime_trunk_flush(struct runtime *rt);
/* What came before this registration has nobody to answer to. pipes: 0 = not told. */
void runtime_trunk_registered(struct runtime *rt, uint64_t pipes, uint64_t epoch);
void runtime_trunk_drop(struct runtime *rt, const struct link_server *server);
/* runtime_sealed.c. Reads the credential of the options, if there is one. */
BT_MUST_CHECK enum bt_code runtime_credential(struct runtime *rt, struct bt_error *err);
/* Sends the request in `out` over the control lane, sealed when there is a credential. */
BT_MUST_CHECK enum bt_code runtime_send(struct runtime *rt, struct bt_error *err);
/* An answer of the control lane. *ret_more: the answer to the request is still to come. */
BT_MUST_CHECK enum bt_code runtime_opened(struct runtime *rt, struct str bytes,
                                          struct str *ret_body, bool *ret_more,
                                          struct bt_error *err);
/* runtime_proof.c: a lane.hello with a nonce. *ret_proved: the supervisor has proved itself; the
 * request is still to be answered. */
BT_MUST_CHECK enum bt_code runtime_prove(struct runtime *rt, uint64_t rq,
                                         const struct msg_lane_hello *m, bool *ret_proved,
                                         struct bt_error *err);
bool runtime_pipe_is_proved(struct runtime *rt, uint32_t id);
/* runtime_control.c: requests to the supervisor */
void runtime_dial(struct runtime *rt);
/* The supervisor has ended: its port may be another program's now. */
void runtime_drop_control(struct runtime *rt);
void runtime_call(struct runtime *rt, const struct agent_state_action *a);
void runtime_on_control(struct runtime *rt, struct link_event *ev);
/* runtime_sealed.c: files of steps of a supervisor on another host */
extern const struct step_files runtime_files;
#endif
