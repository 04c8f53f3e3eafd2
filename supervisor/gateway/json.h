/*
 * JSON, written piece by piece; commas come by themselves. Numbers over 2^53 are written as they
 * are. A failure stays in the buffer.
 */
#ifndef GATEWAY_JSON_H
#define GATEWAY_JSON_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "protocol/wire/json_tame.h"

/* An object or array: '{' or '[', and their ends. */
void json_open(struct buf *out, char bracket);
void json_close(struct buf *out, char bracket);
/* The name of a member; its value follows. */
void json_key(struct buf *out, const char *name);
void json_str(struct buf *out, struct str text);
void json_cstr(struct buf *out, const char *text);
void json_u64(struct buf *out, uint64_t v);
void json_bool(struct buf *out, bool v);
/* An absent doc becomes null. */
void json_doc(struct buf *out, struct doc d);
/* Text that is JSON already. */
void json_raw(struct buf *out, const char *json);
/* A member whose value is a text; none when the text is empty. */
void json_member(struct buf *out, const char *name, struct str text);
#endif
