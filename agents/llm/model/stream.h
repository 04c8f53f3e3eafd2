/*
 * Splits a body into JSON values as it arrives: server-sent events (text/event-stream, WHATWG HTML
 * 9.2), one JSON value per line (NDJSON), or one value. Pure except for the heap. Time is linear in
 * the bytes, memory is bounded by the cap.
 */
#ifndef LLM_STREAM_H
#define LLM_STREAM_H

#include "protocol/base/buf.h"

enum stream_kind {
    STREAM_UNKNOWN, /* decided by the first byte that is not a space */
    STREAM_EVENTS,
    STREAM_LINES,
    STREAM_WHOLE
};

/* Receives one piece that should be JSON. Any code but BT_OK ends the reading with that error. */
typedef enum bt_code (*stream_take)(void *self, struct str json, bool chunk, struct bt_error *err);

struct stream {
    enum stream_kind kind;
    bool lines; /* a body that begins with a brace has one value per line */
    struct buf line;
    struct buf data; /* of the current event */
    bool ended;      /* "[DONE]" was received */
    stream_take take;
    void *self;
};

/* lines: a body that does not look like events is NDJSON (Ollama's). */
void stream_init(struct stream *s, bool lines, size_t max_bytes, stream_take take, void *self);
void stream_done(struct stream *s);
BT_MUST_CHECK enum bt_code stream_feed(struct stream *s, struct str bytes, struct bt_error *err);
/* The body has ended: a last line without a line break counts too. */
BT_MUST_CHECK enum bt_code stream_end(struct stream *s, struct bt_error *err);
#endif
