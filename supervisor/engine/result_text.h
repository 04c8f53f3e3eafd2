/*
 * The text of a stored result for its readers, whole or cut at the boundary of a value: after an
 * item of a list, a member of a map, a line or a character of a text. What is left of a list or a
 * map is valid JSON. Pure except for the heap.
 */
#ifndef ENGINE_RESULT_TEXT_H
#define ENGINE_RESULT_TEXT_H

#include "protocol/wire/doc.h"

enum { RESULT_CUT_MAX = 240 };

struct result_cut {
    uint64_t whole;            /* bytes of the whole text */
    uint64_t shown;            /* bytes that were appended; less than whole: it is cut */
    char what[RESULT_CUT_MAX]; /* "3 of 40 items", "3 of 40 items of rows"; "" when it is whole */
    /* The template for the whole of it is {{results.<stepId><member>}}: "" or ".text". */
    const char *member;
};

/* result: {text?, data?, artifacts?}. Its text is `text`, else `data`, else `artifacts`. Data that
 * is a text stands without quotes, other data is compact JSON. */
BT_MUST_CHECK enum bt_code result_text_length(struct doc result, uint64_t *ret,
                                              struct bt_error *err);
/* Appends at most max bytes of the text. The lines of its files come after it, and are not cut. */
BT_MUST_CHECK enum bt_code result_text_put(struct doc result, size_t max, struct buf *out,
                                           struct result_cut *ret, struct bt_error *err);
/* Appends a line for each file of the result: its name, size and type. */
BT_MUST_CHECK enum bt_code result_files_put(struct doc result, struct buf *out,
                                            struct bt_error *err);
#endif
