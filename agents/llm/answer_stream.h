/*
 * Streams a text to readers while the model generates it: as progress of the step, in pieces of 200
 * bytes or of 100 ms. Nothing is streamed before it is known to be text: an answer that begins like
 * JSON or a fence is held until its end. Handler's thread only.
 */
#ifndef LLM_AGENT_ANSWER_STREAM_H
#define LLM_AGENT_ANSWER_STREAM_H

#include "baton/agent.h"
#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

struct answer_stream {
    struct bt_step *step;
    const char *title; /* the first line when the text does not begin with a heading; NULL = none */
    struct buf held;   /* not streamed yet */
    bool open;         /* known to be text */
    bool sent;
    msec due;
};

void answer_stream_init(struct answer_stream *t, struct bt_step *step, const char *title);
void answer_stream_done(struct answer_stream *t);
/* Adds a piece of the answer (llm.h). */
void answer_stream_add(struct answer_stream *t, bool reset, struct str piece);
/* Streams held bytes that are due. */
void answer_stream_tick(struct answer_stream *t);
/* Builds the whole text with title and last line, and streams its rest. text: the whole answer
 * without its wrapping; last_line may be NULL. */
void answer_stream_finish(struct answer_stream *t, struct str text, const char *last_line,
                          struct buf *ret);
/* Drops held bytes, which were no text, and voids the streamed ones. */
void answer_stream_reset(struct answer_stream *t);
#endif
