/* JSON that carries no character which orders a terminal about. Pure. */
#ifndef WIRE_JSON_TAME_H
#define WIRE_JSON_TAME_H

#include "protocol/base/buf.h"

/*
 * Characters of the JSON in the buffer, from there on, that order a terminal about, turn text
 * around or are not seen (utf8_is_unsafe) become escapes: the same value, at most six times as
 * long. Without room for all of them the buffer has failed: BT_LIMIT, BT_NOMEM.
 */
void json_tame(struct buf *out, size_t from);
#endif
