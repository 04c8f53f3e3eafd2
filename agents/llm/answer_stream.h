/*
 * A text on its way to who watches, while the model writes it: as progress of the step, in pieces
 * of 200 bytes or what came in 100 ms. Nothing is told before it is known to be text: an answer
 * that begins like JSON or a fence waits for its end. Used by the handler's thread only.
 */
#ifndef LLM_AGENT_ANSWER_STREAM_H
#define LLM_AGENT_ANSWER_STREAM_H

#include "baton/agent.h"
#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

struct answer_stream {
    struct bt_step *step;
    const char
        *title;      /* the first line, when the text does not begin with a heading; NULL = none */
    struct buf held; /* not told yet */
    bool open;       /* known to be text */
    bool sent;
    msec due;
};

void answer_stream_init(struct answer_stream *t, struct bt_step *step, const char *title);
void answer_stream_done(struct answer_stream *t);
/* The answer while it comes (llm.h). */
void answer_stream_add(struct answer_stream *t, bool reset, struct str piece);
/* Tells what has waited long enough. */
void answer_stream_tick(struct answer_stream *t);
/* Makes the whole text, title and last line with it, and tells what is left of it. text: the whole
 * answer, without what it was wrapped in; last_line may be NULL. */
void answer_stream_finish(struct answer_stream *t, struct str text, const char *last_line,
                          struct buf *ret);
/* Forgets what is held: it was no text. What was told is said to be void. */
void answer_stream_reset(struct answer_stream *t);
#endif
