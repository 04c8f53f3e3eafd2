/*
 * Filters the model's text for a subscriber, piece by piece: drops reasoning and keys, also when a
 * key or a tag is split over pieces. The output, joined, equals answer_parser_clean and
 * secrets_redact of the whole text. Pure except for the heap; linear in the bytes.
 */
#ifndef LLM_TEXT_FILTER_H
#define LLM_TEXT_FILTER_H

#include "agents/web/secret.h"

enum text_filter_state {
    TEXT_FILTER_BEGIN, /* only spaces and reasoning so far */
    TEXT_FILTER_REASONING,
    TEXT_FILTER_ANSWER
};

struct text_filter {
    const struct secrets *secrets;
    enum text_filter_state state;
    const char *close; /* the tag that ends the reasoning */
    size_t consumed;   /* bytes of the raw text that are processed */
    size_t searched;   /* bytes that were searched for tags */
    bool tags_closed;  /* a tag from here on is part of the text */
    bool emitted;
    bool reset;     /* earlier output is void: it was reasoning */
    struct buf out; /* output; the subscriber takes it, then clears it and reset */
};

void text_filter_init(struct text_filter *s, const struct secrets *secrets, size_t max_bytes);
void text_filter_done(struct text_filter *s);
/* raw: all of the text so far, growing. last: the text is complete. */
void text_filter_feed(struct text_filter *s, struct str raw, bool last);
#endif
