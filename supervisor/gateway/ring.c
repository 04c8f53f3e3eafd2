#include "supervisor/gateway/ring.h"

#include <inttypes.h>
#include <stdlib.h>

#include "protocol/limits.h"
#include "supervisor/gateway/json.h"

enum { JSON_MAX = 8 * LIMIT_EVENT_BYTES + 256 };

static void drop_oldest(struct ring *r)
{
    struct ring_event *e = r->at[r->first % RING_EVENTS_MAX];

    r->floor = e->seq + 1;
    r->bytes -= ring_sse(e).len;
    r->first++;
    r->n--;
    free(e);
}

void ring_reset(struct ring *r, uint64_t from, bool ids)
{
    while (r->n > 0) {
        drop_oldest(r);
    }
    r->floor = r->end = from;
    r->ids = ids;
}

static void copy(char *to, size_t cap, struct str text)
{
    const size_t n = text.len < cap ? text.len : cap - 1;

    if (n > 0) {
        memcpy(to, text.ptr, n);
    }
    to[n] = 0;
}

struct ring_event *ring_event_new(struct doc event, bool ids)
{
    const struct doc seq = doc_get(event, STR_LIT("seq"));
    struct ring_event *e = NULL;
    char type[RING_TYPE_MAX + 1];
    char id[UUID_TEXT_LEN + 1];
    struct buf text;
    size_t head;

    if (seq.ptr == NULL) {
        return NULL;
    }
    copy(type, sizeof type, doc_string(doc_get(event, STR_LIT("type"))));
    copy(id, sizeof id, doc_string(doc_get(event, STR_LIT("eventId"))));
    buf_init(&text, JSON_MAX);
    buf_printf(&text, "id: %" PRIu64 "%s%s\nevent: %s\ndata: ", doc_head(seq).u, ids ? ":" : "",
               ids ? id : "", type);
    head = text.len;
    if (doc_to_json(event, false, &text, NULL) == BT_OK) {
        json_tame(&text, head);
    }
    if (text.len > head && buf_check(&text, NULL) == BT_OK) {
        e = malloc(sizeof *e + text.len + 2);
    }
    if (e != NULL) {
        e->seq = doc_head(seq).u;
        e->head = (uint32_t)head;
        e->len = (uint32_t)(text.len - head);
        memcpy(e->text, text.at, text.len);
        memcpy(e->text + text.len, "\n\n", 2);
        memcpy(e->type, type, sizeof type);
        memcpy(e->event_id, id, sizeof id);
        copy(e->plan_id, sizeof e->plan_id, doc_string(doc_get(event, STR_LIT("planId"))));
    }
    buf_done(&text);
    return e;
}

bool ring_add(struct ring *r, struct doc event)
{
    struct ring_event *e = ring_event_new(event, r->ids);

    if (e == NULL) {
        return false;
    }
    while (r->n == RING_EVENTS_MAX || (r->n > 0 && r->bytes + ring_sse(e).len > RING_BYTES_MAX)) {
        drop_oldest(r);
    }
    r->at[(r->first + r->n) % RING_EVENTS_MAX] = e;
    r->n++;
    r->bytes += ring_sse(e).len;
    r->end = e->seq + 1;
    return true;
}

const struct ring_event *ring_get(const struct ring *r, uint64_t place)
{
    return place >= r->first && place - r->first < r->n ? r->at[place % RING_EVENTS_MAX] : NULL;
}

uint64_t ring_next(const struct ring *r)
{
    return r->first + r->n;
}

uint64_t ring_find(const struct ring *r, uint64_t seq)
{
    uint64_t low = r->first;
    uint64_t high = ring_next(r);

    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (r->at[mid % RING_EVENTS_MAX]->seq < seq) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}
