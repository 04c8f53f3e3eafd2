/* The newest public rows and blobs in memory. A result is read a moment after it was stored, by the
 * steps that wait for it. Who follows the events reads each a moment after its commit,
 * and finds it here without a look at the file. Rows of the open batch are in it too; the reader
 * says up to where. Rows follow one another without a gap; what breaks that empties it. */
#ifndef JOURNAL_RECENT_H
#define JOURNAL_RECENT_H

#include "supervisor/journal/journal.h"

enum {
    /* Of a reader that is further behind the file is asked: a second of 4,000 events, and of their
     * bodies, which have 400 bytes each. */
    RECENT_ROWS = 4096,
    RECENT_BYTES = 2 * 1024 * 1024,
    RECENT_BLOBS = 1024,
    RECENT_BLOB_BYTES = 64 * 1024 /* of one; a longer one would take the place of too many */
};

struct recent_rows;  /* opaque */
struct recent_blobs; /* opaque */
struct recent {
    struct recent_rows *kept;   /* NULL = none */
    struct recent_blobs *blobs; /* NULL = none */
};

/* Keeps a copy of a public row. Without memory for it, nothing is kept. */
void recent_add(struct recent *r, const struct journal_row *row);
void recent_clear(struct recent *r);
/* Calls fn as journal_events does with the rows from from_seq up to to_seq. False: not all of them
 * are here; fn was not called. */
bool recent_read(const struct recent *r, uint64_t from_seq, uint64_t to_seq, uint64_t plan_ix,
                 uint32_t limit, journal_row_fn fn, void *self);

/* Keeps a copy of a blob, unless it is too long. */
void recent_blob_add(struct recent *r, uint64_t id, const void *bytes, size_t len);
/* Appends its bytes to out. False: it is not here. */
bool recent_blob_get(const struct recent *r, uint64_t id, struct buf *out);
#endif
