/* Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): the data of
 * each event, from bytes that arrive in pieces. Pure. */
#ifndef WEB_SSE_H
#define WEB_SSE_H

#include "protocol/base/buf.h"

struct sse {
    struct buf line;
    struct buf data;
    bool has_data;
    bool after_cr;
};

void sse_init(struct sse *s, size_t max);
/* Takes bytes. Calls see for each whole event that has data; false from it ends the reading. False
 * when see returned false, or an event is larger than max. */
bool sse_take(struct sse *s, struct str bytes, bool (*see)(void *self, struct str data),
              void *self);
/* BT_OK, or why sse_take was false without see: BT_LIMIT, BT_NOMEM. */
BT_MUST_CHECK enum bt_code sse_check(const struct sse *s, struct bt_error *err);
void sse_done(struct sse *s);
#endif
