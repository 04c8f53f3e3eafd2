/*
 * The model's text on its way to somebody who watches: piece by piece, without reasoning and
 * without keys, also when a key or a tag comes in pieces. What is given out, joined, is what
 * answer_parser_clean and secrets_redact make of the whole text. Pure but for the heap; linear in
 * the bytes.
 */
#ifndef LLM_TEXT_FILTER_H
#define LLM_TEXT_FILTER_H

#include "agents/llm/model/secret.h"

enum text_filter_state {
    TEXT_FILTER_BEGIN, /* nothing but spaces and reasoning so far */
    TEXT_FILTER_REASONING,
    TEXT_FILTER_ANSWER
};

struct text_filter {
    const struct secrets *secrets;
    enum text_filter_state state;
    const char *close; /* the tag that ends the reasoning */
    size_t consumed;   /* bytes of the raw text that are given out, or left out */
    size_t searched;   /* as far as tags were looked for */
    bool tags_closed;  /* a tag from here on is part of the text */
    bool emitted;
    bool reset;     /* what was taken before is void: it was reasoning after all */
    struct buf out; /* to be taken; the taker clears it, and anew */
};

void text_filter_init(struct text_filter *s, const struct secrets *secrets, size_t max_bytes);
void text_filter_done(struct text_filter *s);
/* raw: all of the text so far, as it grows. last: there is no more. */
void text_filter_feed(struct text_filter *s, struct str raw, bool last);
#endif
