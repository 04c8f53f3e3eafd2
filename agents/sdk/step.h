/*
 * One attempt at one step as the handler sees it: the request (borrowed bytes), texts made for the
 * handler, the reply. The worker thread owns it while the handler runs; the loop thread touches
 * only the atomics and the progress.
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

struct step_progress {
    uint64_t n;     /* counts the calls; 0 = none yet */
    double percent; /* below 0 = unknown */
    char text[STEP_PROGRESS_TEXT_MAX + 1];
    bool reset; /* a piece of the stream: those before it are void */
};

/* What bt_step_stream was given and the supervisor has not confirmed. */
struct step_stream {
    struct buf text;
    size_t sent; /* of its beginning: the piece under way; 0 = none */
    uint64_t n;  /* its number */
    bool piece_reset;
    bool reset;  /* the next piece is the first of those that count */
    bool closed; /* refused, or too much: there is a hole, so nothing more is told */
};

struct bt_step {
    struct msg_reader reader;
    struct msg_step_execute req;
    uint8_t *owned;     /* the request's bytes, when nobody else has them; or NULL */
    struct arena texts; /* what the accessors returned */
    const char *task, *skill, *plan_id, *step_id, *key, *feedback, *traceparent, *context, *purpose;
    const struct card_skill *card_skill; /* set before step_run */
    void *self;
    msec deadline; /* CLOCK_MONOTONIC; MSEC_NEVER = none */
    atomic_bool cancelled;
    struct reply reply;
    pthread_mutex_t lock; /* guards progress, told, stream */
    struct step_progress progress;
    struct step_stream stream;
    pthread_cond_t piece_answered; /* a piece of the stream was answered */
    bool notified; /* the loop was woken for this progress and has not read it yet */
    void (*notify)(struct bt_step *step, void *runtime); /* from any thread; may be NULL */
    void *runtime;
};

/* Takes over the reader of a step.execute (moved out of *r when it succeeds; its bytes stay
 * borrowed until step_free). BT_INVALID names what is wrong. */
BT_MUST_CHECK enum bt_code step_new(struct msg_reader *r, msec now, struct bt_step **ret,
                                    struct bt_error *err);
/* A step from {"task", "parameters", "context"} as JSON, for --once and tests. json is
 * borrowed. */
BT_MUST_CHECK enum bt_code step_new_from_json(struct str json, const char *skill,
                                              struct bt_step **ret, struct bt_error *err);
/* Whether this library knows what the request is for, and a question names the skill that answers
 * it: it must never be taken for the step itself. BT_NOT_FOUND or BT_INVALID says what is wrong. */
BT_MUST_CHECK enum bt_code step_check_purpose(const struct bt_step *s, struct bt_error *err);
/* Accepts NULL. */
void step_free(struct bt_step *s);
/* Checks the parameters against the skill's schema, runs the handler and settles the reply. */
void step_run(struct bt_step *s);
/* Moves the reply out; the step has none afterwards. */
void step_take_reply(struct bt_step *s, struct reply *ret);
/* The newest progress; false when nothing is new since the last call. */
bool step_take_progress(struct bt_step *s, struct step_progress *ret);
/* The piece of the stream that is to be told next, with its number; the same one until it was
 * answered. 0 = none. */
size_t step_stream_piece(struct bt_step *s, struct step_progress *ret);
/* The piece was confirmed, or refused: then the rest is dropped, too. Harmless without a piece. */
void step_stream_answered(struct bt_step *s, bool accepted);
bool step_stream_waits(struct bt_step *s);
bool step_is_late(const struct bt_step *s);
/* A terminated copy that lives as long as the step; NULL when out of memory. */
const char *step_copy_text(struct bt_step *s, struct str text);
/* The reply as the JSON object {outcome, result | failure | need | handoff, usage?}. */
BT_MUST_CHECK enum bt_code step_reply_json(const struct bt_step *s, struct buf *out,
                                           struct bt_error *err);
#endif
