/* What the files of the house share. */
#ifndef HOUSE_HOUSE_INTERNAL_H
#define HOUSE_HOUSE_INTERNAL_H

#include <stdarg.h>

#include "tests/support/house/house.h"

/* A copy with a zero, until house_close. */
char *house_keep(struct house *h, const void *bytes, size_t len);
/* "'" for '"', and the values. */
char *house_text_of(struct house *h, const char *fmt, va_list args);
/* house_roles.c: the table of sessions, for the options of the engine. */
struct sessions;
struct sessions *house_roles_new(struct house *h);
void house_roles_done(struct house *h);
bool house_is_sealed(const struct house *h);
void house_seal(struct house *h, const char *body, struct buf *out);
struct str house_unseal(const struct house *h, struct str bytes);
/* house_journal.c: the journal of the house can fail to be written and to be read. */
void house_watch_journal(struct house *h);
/* Fails the test when the answer is an error with a class or a time that its code does not have. */
void house_check_error(struct house *h, const char *answer);
#endif
