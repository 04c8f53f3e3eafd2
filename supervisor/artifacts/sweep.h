/*
 * Removes files of results that nobody needs: see README.md. One thread; every call lies between
 * two commits. The work is done in slices, so that a cycle stays short.
 */
#ifndef ARTIFACTS_SWEEP_H
#define ARTIFACTS_SWEEP_H

#include "supervisor/engine/engine.h"

struct sweep;

struct sweep_options {
    const char *root;   /* the directory of all plans; NULL = none, then nothing is done */
    msec keep_ms;       /* how long the files of an ended plan stay */
    uint64_t max_bytes; /* of all ended plans together; the oldest plans go first; 0 = no limit */
};

/* Makes the directory (0700). The engine outlives it. */
BT_MUST_CHECK enum bt_code sweep_new(const struct sweep_options *opt, struct engine *engine,
                                     struct sweep **ret, struct bt_error *err);
/* Whether a plan that goes on may read files of this plan: a retry or a fork names the results that
 * it took over, and they name the files. */
bool sweep_is_read(const struct sweep *s, struct uuid plan_id, uint64_t plan_ix);
/* The plan's end, or its deletion, is written; it is committed when sweep_cycle is called next. */
void sweep_plan_ended(struct sweep *s, struct uuid plan_id);
/* One slice of what is due; after the commit of a cycle. */
void sweep_cycle(struct sweep *s);
/* When the next slice is due; MSEC_NEVER = nothing to do. */
msec sweep_deadline(const struct sweep *s);
#endif
