#include "supervisor/journal/recent.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/journal/journal_internal.h"

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

void recent_clear(struct recent *r)
{
    free(r->kept);
    r->kept = NULL;
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
        recent_clear(r);
        k = NULL;
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
    const uint64_t place = k->at % RECENT_BYTES;
    k->at += place + len > RECENT_BYTES ? RECENT_BYTES - place : 0;
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
