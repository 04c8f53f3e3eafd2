/* JSON pointers (RFC 6901) over documents. */
#ifndef SDK_POINTER_H
#define SDK_POINTER_H

#include "protocol/wire/doc.h"

enum { POINTER_MAX = 4096 };

/* The value at a pointer, "" = the document itself; .ptr NULL when there is none. */
struct doc pointer_get(struct doc d, const char *pointer);
/* BT_INVALID when the text is no pointer: "" or "/..." with ~0 for ~ and ~1 for /. */
BT_MUST_CHECK enum bt_code pointer_check(const char *pointer, struct bt_error *err);
#endif
