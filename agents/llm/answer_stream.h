/*
 * A text on its way to who watches, while the model writes it: as progress of the step, in pieces
 * of 200 bytes or what came in 100 ms. Nothing is told before it is known to be text: an answer
 * that begins like JSON or a fence waits for its end. Used by the handler's thread only.
 */
#ifndef LLM_AGENT_TELL_H
#define LLM_AGENT_TELL_H

#include "baton/agent.h"
#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

struct tell {
    struct bt_step *step;
    const char
        *title;      /* the first line, when the text does not begin with a heading; NULL = none */
    struct buf held; /* not told yet */
    bool open;       /* known to be text */
    bool told;
    msec due;
};

void tell_init(struct tell *t, struct bt_step *step, const char *title);
void tell_done(struct tell *t);
/* The answer while it comes (llm.h). */
void tell_text(struct tell *t, bool reset, struct str piece);
/* Tells what has waited long enough. */
void tell_wait(struct tell *t);
/* Makes the whole text, title and last line with it, and tells what is left of it. text: the whole
 * answer, without what it was wrapped in; last_line may be NULL. */
void tell_end(struct tell *t, struct str text, const char *last_line, struct buf *ret);
/* Forgets what is held: it was no text. What was told is said to be void. */
void tell_drop(struct tell *t);
#endif
