/*
 * Bytes of a body into JSON values, as they come: server-sent events (text/event-stream), one JSON
 * value per line (NDJSON), or one value in all. Pure but for the heap. Time is linear in the bytes,
 * memory bounded by the cap.
 */
#ifndef LLM_STREAM_H
#define LLM_STREAM_H

#include "protocol/base/buf.h"

enum stream_kind {
    STREAM_UNKNOWN, /* decided by the first byte that is no space */
    STREAM_EVENTS,
    STREAM_LINES,
    STREAM_WHOLE
};

/* One piece that should be JSON. Not BT_OK ends the reading with that error. */
typedef enum bt_code (*stream_take)(void *self, struct str json, bool chunk, struct bt_error *err);

struct stream {
    enum stream_kind kind;
    bool lines; /* a body that begins with a brace has one value per line */
    struct buf line;
    struct buf data; /* of the event that is being read */
    bool ended;      /* "[DONE]" came */
    stream_take take;
    void *self;
};

/* lines: a body that does not look like events is NDJSON (Ollama's). */
void stream_init(struct stream *s, bool lines, size_t max_bytes, stream_take take, void *self);
void stream_done(struct stream *s);
BT_MUST_CHECK enum bt_code stream_feed(struct stream *s, struct str bytes, struct bt_error *err);
/* The body is over: what is left without a line break counts, too. */
BT_MUST_CHECK enum bt_code stream_end(struct stream *s, struct bt_error *err);
#endif
