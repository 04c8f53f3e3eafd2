/*
 * The outcome of a step as its handler set it. Owns all its bytes, so it outlives the request: it
 * is kept until the supervisor has the result. One thread at a time.
 */
#ifndef SDK_REPLY_H
#define SDK_REPLY_H

#include "protocol/wire/msg.h"

enum reply_outcome {
    REPLY_NONE, /* the handler has not replied */
    REPLY_COMPLETED,
    REPLY_FAILED,
    REPLY_NEEDS_INPUT,
    REPLY_NEEDS_APPROVAL,
    REPLY_HANDOFF,
    REPLY_CALLS,
    REPLY_OUTCOME_COUNT
};

enum { REPLY_ARTIFACTS_MAX = 64, REPLY_DETAILS_MAX = 65536 };

struct reply {
    enum reply_outcome outcome;
    struct buf text;
    struct buf data;                      /* msgpack */
    struct buf details;                   /* msgpack; stays when the outcome changes */
    struct buf state;                     /* msgpack, a patch of the plan's state */
    struct buf schema;                    /* msgpack, of the input that is needed */
    struct buf calls;                     /* msgpack, a list */
    struct msg_call call_at[LIMIT_CALLS]; /* the same; they point into it */
    uint32_t calls_n;
    bool has_text;
    bool refused;   /* a part of the result was: what is added to it does not hide that */
    bool truncated; /* the result is not whole */
    bool once;      /* effects unsafe: a result that is lost here is no reason to do it again */
    struct msg_artifact artifacts[REPLY_ARTIFACTS_MAX];
    uint32_t artifacts_n;
    struct msg_usage usage;
    enum bt_code code; /* of a failure */
    enum err_class cls;
    bool retryable;
    uint64_t retry_after_ms; /* of a failure; 0 = not given */
    struct str message;      /* failure, prompt or reason */
    struct str to_agent;
    struct arena arena; /* what the strs point into */
};

void reply_init(struct reply *r);
/* Accepts NULL and zeroed; idempotent. */
void reply_done(struct reply *r);
/* Bytes held; counted against the cap on kept results. */
size_t reply_bytes(const struct reply *r);
/* Drops earlier reply calls (but not the usage) and sets a failure. Cannot fail: without memory the
 * text is cut. */
void reply_fail(struct reply *r, enum bt_code code, enum err_class cls, bool retryable,
                const char *message);
/* A part of the reply has no memory: the step fails, retryable unless .once. */
void reply_lose(struct reply *r, const char *what);
/* Makes the reply final. No reply is a failure, and so is a reply over LIMIT_RESULT_BYTES or one
 * that ran out of memory. */
void reply_finish(struct reply *r, bool cancelled, bool timed_out);
/* The reply as a message; strings point into the reply. The caller sets key, attempt and epoch. */
void reply_view(const struct reply *r, struct msg_step_result *ret);
/* The error class for a code, when an error of the library fails a step. */
enum err_class reply_class_of(enum bt_code code);
#endif
