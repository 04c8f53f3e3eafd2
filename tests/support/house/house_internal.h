/* What the files of the house share. */
#ifndef HOUSE_HOUSE_INTERNAL_H
#define HOUSE_HOUSE_INTERNAL_H

#include <stdarg.h>

#include "tests/support/house/house.h"

/* A copy with a zero, until house_close. */
char *house_keep(struct house *h, const void *bytes, size_t len);
/* "'" for '"', and the values. */
char *house_text_of(struct house *h, const char *fmt, va_list args);
#endif
