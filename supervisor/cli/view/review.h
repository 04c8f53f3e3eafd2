/*
 * A review for a person: what is asked, the values that will run, and where they come from. Texts
 * of plans and agents are made safe: a character that could change the terminal is printed by its
 * number, as <U+001B>. Pure but for memory.
 */
#ifndef CLI_REVIEW_H
#define CLI_REVIEW_H

#include <stdbool.h>

#include "protocol/base/buf.h"

struct cJSON;

enum {
    REVIEW_CUT = 1024 /* bytes of one value in a list */
};

/* Appends lines about a review of review.list or review.get. cut: bytes of one value, with a mark
 * that names what is missing; 0 = all. */
void review_text(const struct cJSON *review, size_t cut, struct buf *out);
/* Appends each list of objects in it as a table. False: it has none. */
bool review_tables(const struct cJSON *review, struct buf *out);
/* Appends the lines that differ between `before` and `after` of its parameters, or of a result
 * before it. False: it has no such two. */
bool review_diff(const struct cJSON *review, struct buf *out);
/* Appends a decision: the review, what was decided, by whom, when and from where. */
void review_decision(const struct cJSON *record, struct buf *out);
/* Appends the value as JSON of at most `max` bytes, cut between values with a mark (0 = all). */
void review_value(const struct cJSON *value, size_t max, struct buf *out);
/* Appends text that is safe for a terminal; line ends stay when `lines`. */
void review_safe(const char *text, size_t len, bool lines, struct buf *out);
/* Whether a review of that kind asks for more than a yes: what each decision does must be read. */
bool review_asks_more(const char *kind);
#endif
