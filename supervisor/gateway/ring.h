/*
 * The newest events that one sender sees, as they are sent, encoded once for all who read them.
 * Bounded in events and bytes: the oldest ones go. A reader keeps its place as a number that only
 * rises; one that is overtaken knows it by ring_get. One owner, one thread.
 */
#ifndef GATEWAY_RING_H
#define GATEWAY_RING_H

#include "protocol/base/buf.h"
#include "protocol/base/uuid.h"
#include "protocol/wire/doc.h"

enum { RING_EVENTS_MAX = 8192, RING_BYTES_MAX = 4 * 1024 * 1024, RING_TYPE_MAX = 64 };

struct ring_event {
    uint64_t seq;
    uint32_t head, len;              /* bytes of the lines before the JSON, and of the JSON */
    char plan_id[UUID_TEXT_LEN + 1]; /* "" = of no plan */
    char event_id[UUID_TEXT_LEN + 1];
    char type[RING_TYPE_MAX + 1];
    char text[]; /* "id: SEQ\nevent: TYPE\ndata: JSON\n\n"; the id of a fleet is SEQ:EVENTID */
};

/* The event as JSON, as a line of JSON, as an event of SSE. */
static inline struct str ring_json(const struct ring_event *e)
{
    return (struct str){e->text + e->head, e->len};
}
static inline struct str ring_line(const struct ring_event *e)
{
    return (struct str){e->text + e->head, e->len + 1};
}
static inline struct str ring_sse(const struct ring_event *e)
{
    return (struct str){e->text, e->head + e->len + 2};
}

struct ring {
    struct ring_event *at[RING_EVENTS_MAX];
    uint64_t first; /* the place of the oldest one */
    uint32_t n;
    size_t bytes;
    uint64_t
        floor; /* every event from this seq on, and below end, is here, unless it is not seen */
    uint64_t end;
    bool ids; /* of a fleet */
};

/* Empty; the next event has seq `from` or more. ids: the ids of SSE carry the eventId. */
void ring_reset(struct ring *r, uint64_t from, bool ids);
/* False: out of memory, or it is no event; the ring is as it was. */
bool ring_add(struct ring *r, struct doc event);
/* NULL: nothing is there yet (place is ring_next), or it was overtaken (place is below first). */
const struct ring_event *ring_get(const struct ring *r, uint64_t place);
uint64_t ring_next(const struct ring *r);
/* The place of the first event from seq on. */
uint64_t ring_find(const struct ring *r, uint64_t seq);

/* One event by itself; free with free(). */
struct ring_event *ring_event_new(struct doc event, bool ids);
#endif
