/* What is read from the bodies of rows without a message's struct: single members and usage. Pure.
 */
#ifndef ENGINE_ROW_BODY_H
#define ENGINE_ROW_BODY_H

#include "protocol/wire/msg.h"
#include "supervisor/core/run/record.h"

/* Members of a row's body; zero when it has none. */
struct str row_text(struct doc body, const char *key);
uint64_t row_number(struct doc body, const char *key);
bool row_bool(struct doc body, const char *key);
/* The ids of the blobs that a body names; for journal_options.blobs_of. */
uint32_t row_blobs(const void *body, size_t len, uint64_t *ret, uint32_t max);
struct usage row_usage(struct doc body, const char *key);
void usage_add(struct usage *to, const struct usage *more);
/* a - b, not below zero. */
struct usage usage_less(struct usage a, struct usage b);
struct msg_usage usage_view(const struct usage *u);
#endif
