/* What the programs that generate documents share: lines of at most 100 columns on stdout. */
#ifndef WIRE_DOC_PRINT_H
#define WIRE_DOC_PRINT_H

#include "protocol/wire/msg_table.h"

/* "- <head>: <text>", the text wrapped between words; further lines are indented by two. */
void doc_print_item(const char *head, const char *text);
/* The table of a message's fields, or that it has none. */
void doc_print_fields(const struct msg_desc *desc);
#endif
