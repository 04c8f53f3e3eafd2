/*
 * The stream of JetStream that has the events of one daemon. One thread, but for the
 * acknowledgements, which threads of libnats bring.
 *
 *     stream_sync  -> where the stream ends       <--.
 *     stream_put, stream_put, ...                    |
 *     stream_settle -> all of them are in it, or ----' something has failed
 */
#ifndef BRIDGE_STREAM_H
#define BRIDGE_STREAM_H

#include "supervisor/bridge/nats.h"

struct stream;

/* Where a stream ends. */
struct stream_at {
    uint64_t seq;      /* of its last event; 0 = none */
    uint64_t sequence; /* of its last message, also when that is gone; 0 = it is new */
    uint64_t messages, bytes;
    char event_id[72]; /* of its last event; "" = none */
    bool made;         /* it was not there, and has been made */
};

struct stream_event {
    uint64_t seq;
    uint64_t prev; /* the event before it in the stream; 0 = none */
    const char *json;
    size_t n;
};

/* The connection is borrowed and outlives the stream; so do the options. */
BT_MUST_CHECK enum bt_code stream_new(const struct options *o, struct nats *n, struct stream **ret,
                                      struct bt_error *err);
/* Accepts NULL. Forgets what was put and not acknowledged. */
void stream_free(struct stream *s);
const char *stream_name(const struct stream *s);
/*
 * Finds the stream, makes it when there is none and `make` is set, and reads where it ends. Forgets
 * what was put before. BT_CONFLICT: it is not one of ours, or not as it must be. BT_NOT_FOUND:
 * there is none. Else as nats_explain.
 */
BT_MUST_CHECK enum bt_code stream_sync(struct stream *s, bool make, struct stream_at *ret,
                                       struct bt_error *err);
/* Sends one event. Returns the first failure since stream_sync, of this or an earlier event: none
 * of those after it is stored then. Blocks while too many are out. */
BT_MUST_CHECK enum bt_code stream_put(struct stream *s, const struct stream_event *ev,
                                      struct bt_error *err);
/* Waits until all that was put is acknowledged. BT_UNAVAILABLE: the answers do not come. */
BT_MUST_CHECK enum bt_code stream_settle(struct stream *s, struct bt_error *err);
#endif
