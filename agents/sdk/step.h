/*
 * One attempt at one step: the request (borrowed bytes), the texts made for the handler, the reply.
 * The worker thread owns it while the handler runs. The loop thread uses only the atomics and the
 * progress.
 */
#ifndef SDK_STEP_H
#define SDK_STEP_H

#include <pthread.h>
#include <stdatomic.h>

#include "agents/sdk/reply.h"
#include "baton/agent.h"
#include "protocol/base/msec.h"

enum { STEP_PROGRESS_TEXT_MAX = 1024 };

struct card_skill;

/* How the files of a step travel when the supervisor's are on another host. Called on the worker's
 * thread; both block, and end early when the step is cancelled. */
struct step_files {
    /* *ret_fd: a file of this host with the bytes, at its beginning. */
    enum bt_code (*get)(struct bt_step *step, const struct msg_artifact *a, int *ret_fd,
                        struct bt_error *err);
    /* entry: name, bytes and sha256 of the file in fd. */
    enum bt_code (*put)(struct bt_step *step, const struct msg_artifact *entry, int fd,
                        struct buf *ret_uri, struct bt_error *err);
};

struct step_progress {
    uint64_t n;     /* number of calls; 0 = none yet */
    double percent; /* below 0 = unknown */
    char text[STEP_PROGRESS_TEXT_MAX + 1];
    bool reset; /* a piece of the stream: earlier pieces are void */
};

/* Text from bt_step_stream that the supervisor has not confirmed. */
struct step_stream {
    struct buf text;
    size_t sent; /* length of the piece in transit, at the beginning of text; 0 = none */
    uint64_t n;  /* the number of that piece */
    bool piece_reset;
    bool reset;  /* the next piece starts a new text */
    bool closed; /* rejected or too much: the text has a gap, so nothing more is sent */
};

struct bt_step {
    struct msg_reader reader;
    struct msg_step_execute req;
    uint8_t *owned;     /* the request's bytes when the step owns them; or NULL */
    struct arena texts; /* what the accessors returned */
    const char *task, *skill, *plan_id, *step_id, *key, *feedback, *traceparent, *context, *purpose;
    const struct card_skill *card_skill; /* set before step_run */
    void *self;
    msec deadline; /* CLOCK_MONOTONIC; MSEC_NEVER = none */
    atomic_bool cancelled;
    struct reply reply;
    struct bt_artifact *artifacts; /* being written; step_run removes what is left */
    pthread_mutex_t lock;          /* guards progress, notified, stream */
    struct step_progress progress;
    struct step_stream stream;
    pthread_cond_t piece_answered; /* signalled when a piece was answered */
    bool notified; /* the loop was woken for this progress and has not read it yet */
    void (*notify)(struct bt_step *step, void *runtime); /* called from any thread; may be NULL */
    void *runtime;
    const struct step_files *files; /* NULL: they are here */
    /* In a loop of the program's own: set before step_run; the step may be answered later. */
    void (*finished)(struct bt_step *step, void *runtime);
    bool inside; /* its handler runs */
    bool later;  /* bt_step_later was called, and bt_step_done not yet */
    bool told;   /* on_cancel was called */
    void (*on_cancel)(struct bt_step *step, void *arg);
    void *cancel_arg;
};

/* Takes the reader of a step.execute (moved out of *r on success; its bytes stay borrowed until
 * step_free). BT_INVALID names what is wrong. */
BT_MUST_CHECK enum bt_code step_new(struct msg_reader *r, msec now, struct bt_step **ret,
                                    struct bt_error *err);
/* A step from {"task", "parameters", "context"} as JSON, for --once and tests. json is borrowed. */
BT_MUST_CHECK enum bt_code step_new_from_json(struct str json, const char *skill,
                                              struct bt_step **ret, struct bt_error *err);
/* Checks that the library knows the purpose, and that a question names the skill that answers it. A
 * question must never be executed as the step. BT_NOT_FOUND or BT_INVALID names what is wrong. */
BT_MUST_CHECK enum bt_code step_check_purpose(const struct bt_step *s, struct bt_error *err);
/* Accepts NULL. */
void step_free(struct bt_step *s);
/* Checks the parameters against the skill's schema, runs the handler and finishes the reply, unless
 * it is to be answered later (`later`): then `finished` is called. */
void step_run(struct bt_step *s);
/* A step that is answered later and was cancelled, or whose deadline has passed: calls on_cancel,
 * once. */
void step_tell_cancelled(struct bt_step *s);
/* Moves the reply out; the step has none afterwards. */
void step_take_reply(struct bt_step *s, struct reply *ret);
/* The newest progress; false when there is none since the last call. */
bool step_take_progress(struct bt_step *s, struct step_progress *ret);
/* The next piece of the stream to send, with its number; the same piece until it was answered. 0 =
 * none. */
size_t step_stream_piece(struct bt_step *s, struct step_progress *ret);
/* The piece was confirmed, or rejected: then the rest of the stream is dropped. Does nothing
 * without a piece. */
void step_stream_answered(struct bt_step *s, bool accepted);
bool step_stream_waits(struct bt_step *s);
bool step_is_late(const struct bt_step *s);
/* A terminated copy that lives as long as the step; NULL when out of memory. */
const char *step_copy_text(struct bt_step *s, struct str text);
/* Aborts the artifacts that the handler left open. */
void step_abort_artifacts(struct bt_step *s);
/* The handler adds a part to a result: drops earlier replies, unless they were part of it. False: a
 * part was refused, and the step fails for that. */
bool step_reply_adds(struct bt_step *s);
/* There is no memory for a part of what the step has done: it fails, for another attempt unless its
 * effects are unsafe. `what` stands after "out of memory for ". Parts that follow do not hide it.
 */
void step_lose(struct bt_step *s, const char *what);
/* The reply as the JSON object {outcome, result | failure | need | handoff, usage?}. */
BT_MUST_CHECK enum bt_code step_reply_json(const struct bt_step *s, struct buf *out,
                                           struct bt_error *err);
#endif
