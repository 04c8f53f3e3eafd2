/* Pieces of a Markdown document, for the agents that write one. Each ends with a blank line. Texts
 * carry no character that orders a terminal about, turns text around or is not seen: '?' instead.
 */
#ifndef SDK_MARKDOWN_H
#define SDK_MARKDOWN_H

#include "protocol/base/buf.h"

struct cJSON;

/* A heading is one line; marks are "# ". */
void markdown_heading(const char *marks, const char *text, struct buf *out);
/* Ends a paragraph with one blank line, whatever its end was. */
void markdown_end_paragraph(struct buf *out);
/* A list of plain values as a list, other lists and {columns, rows} as a table, the rest as text.
 */
BT_MUST_CHECK enum bt_code markdown_value(const struct cJSON *value, struct buf *out,
                                          struct bt_error *err);
/* {heading, text, table, list}, each optional; other members are the caller's. BT_INVALID. */
BT_MUST_CHECK enum bt_code markdown_section(const struct cJSON *section, struct buf *out,
                                            struct bt_error *err);
#endif
