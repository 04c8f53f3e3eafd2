#include "supervisor/journal/recent.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/buf.h"
#include "supervisor/journal/port.h"

/* Its text begins at `at`: type, topic, body. */
struct kept_row {
    uint64_t plan_ix, plan_seq;
    msec wall;
    uint64_t at;
    uint32_t type_len, topic_len, body_len;
};

/* `at` counts all bytes that were ever written: the place in `bytes` is the rest of its division.
 * A text is never broken at the end. */
struct recent_rows {
    uint64_t first, next; /* seqs: those in between are kept, each at seq % RECENT_ROWS */
    uint64_t at;          /* where the next text goes */
    struct kept_row rows[RECENT_ROWS];
    uint8_t bytes[RECENT_BYTES];
};

/* The same for blobs, each in the place id % RECENT_BLOBS. */
struct recent_blobs {
    uint64_t at;
    struct kept_blob {
        uint64_t id, at; /* id 0 = none */
        size_t len;
    } blobs[RECENT_BLOBS];
    uint8_t bytes[RECENT_BYTES];
};

void recent_clear(struct recent *r)
{
    free(r->kept);
    free(r->blobs);
    *r = (struct recent){0};
}

/* Where a text of `len` bytes goes, when the one before ended at `at`. */
static uint64_t place_after(uint64_t at, size_t len)
{
    const uint64_t place = at % RECENT_BYTES;

    return place + len > RECENT_BYTES ? at + RECENT_BYTES - place : at;
}

static void put(struct recent_rows *k, const void *bytes, size_t len)
{
    if (len > 0) {
        memcpy(k->bytes + k->at % RECENT_BYTES, bytes, len);
        k->at += len;
    }
}

void recent_add(struct recent *r, const struct journal_row *row)
{
    const size_t len = row->type.len + row->topic.len + row->body_len;
    struct recent_rows *k = r->kept;

    if (len > RECENT_BYTES || (k != NULL && k->next != row->seq)) {
        free(k);
        r->kept = k = NULL;
    }
    if (len > RECENT_BYTES) {
        return;
    }
    if (k == NULL) {
        k = malloc(sizeof *k);
        if (k == NULL) {
            return;
        }
        k->first = k->next = row->seq;
        k->at = 0;
        r->kept = k;
    }
    k->at = place_after(k->at, len);
    while (k->first < k->next &&
           (k->next - k->first == RECENT_ROWS ||
            k->rows[k->first % RECENT_ROWS].at + RECENT_BYTES < k->at + len)) {
        k->first++;
    }
    k->rows[k->next % RECENT_ROWS] = (struct kept_row){.plan_ix = row->plan_ix,
                                                       .plan_seq = row->plan_seq,
                                                       .wall = row->wall,
                                                       .at = k->at,
                                                       .type_len = (uint32_t)row->type.len,
                                                       .topic_len = (uint32_t)row->topic.len,
                                                       .body_len = (uint32_t)row->body_len};
    put(k, row->type.ptr, row->type.len);
    put(k, row->topic.ptr, row->topic.len);
    put(k, row->body, row->body_len);
    k->next++;
}

bool recent_read(const struct recent *r, uint64_t from_seq, uint64_t to_seq, uint64_t plan_ix,
                 uint32_t limit, journal_row_fn fn, void *self)
{
    const struct recent_rows *k = r->kept;
    bool more = true;

    if (k == NULL || from_seq < k->first || to_seq >= k->next) {
        return false;
    }
    for (uint64_t seq = from_seq; more && limit > 0 && seq <= to_seq; seq++) {
        const struct kept_row *kept = &k->rows[seq % RECENT_ROWS];
        const char *text = (const char *)k->bytes + kept->at % RECENT_BYTES;
        const struct journal_row row = {.seq = seq,
                                        .pos = seq << POS_K_BITS,
                                        .is_public = true,
                                        .plan_ix = kept->plan_ix,
                                        .plan_seq = kept->plan_seq,
                                        .wall = kept->wall,
                                        .type = {text, kept->type_len},
                                        .topic = {text + kept->type_len, kept->topic_len},
                                        .body = text + kept->type_len + kept->topic_len,
                                        .body_len = kept->body_len};
        if (plan_ix == 0 || plan_ix == kept->plan_ix) {
            more = fn(&row, self);
            limit--;
        }
    }
    return true;
}

void recent_blob_add(struct recent *r, uint64_t id, const void *bytes, size_t len)
{
    struct recent_blobs *k = r->blobs;

    if (len > RECENT_BLOB_BYTES) {
        return;
    }
    if (k == NULL) {
        k = malloc(sizeof *k);
        if (k == NULL) {
            return;
        }
        k->at = 0;
        memset(k->blobs, 0, sizeof k->blobs);
        r->blobs = k;
    }
    k->at = place_after(k->at, len);
    k->blobs[id % RECENT_BLOBS] = (struct kept_blob){.id = id, .at = k->at, .len = len};
    if (len > 0) {
        memcpy(k->bytes + k->at % RECENT_BYTES, bytes, len);
    }
    k->at += len;
}

bool recent_blob_get(const struct recent *r, uint64_t id, struct buf *out)
{
    const struct recent_blobs *k = r->blobs;
    const struct kept_blob *kept = k == NULL ? NULL : &k->blobs[id % RECENT_BLOBS];

    if (kept == NULL || id == 0 || kept->id != id || kept->at + RECENT_BYTES < k->at) {
        return false;
    }
    buf_add(out, k->bytes + kept->at % RECENT_BYTES, kept->len);
    return true;
}
