/*
 * What the jobs of plans and sessions used, read from their own rows: also those that no plan
 * waited for any more when they ended, and those of sessions, which no plan counts.
 */
#ifndef QUERY_COST_JOBS_H
#define QUERY_COST_JOBS_H

#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"

/* Which ones: newest first, of a session (empty = any), made between since_wall and until_wall
 * (ms), and after the row after_ix. */
struct cost_jobs_of {
    struct str session_id;
    msec since_wall, until_wall;
    uint64_t after_ix;
};

/* of: the plan, or the session, that it was for; valid during the call. */
typedef void (*cost_job_fn)(enum job_kind kind, struct str of, const struct usage *usage,
                            void *self);

/* One look at the jobs, which may go on over cycles. Begins as {.ask = ...}; the ask's text is
 * borrowed until cost_jobs_done. */
struct cost_jobs {
    struct cost_jobs_of ask;
    struct uuid *ids; /* found, and reported up to `at` */
    uint32_t n, room, at, looks, in_slice;
    uint64_t before_ix, until_ns;
    bool found; /* all of them */
    bool more;  /* there are more than are looked at, the older ones */
    bool stopped, no_memory;
};

/* Works until about until_ns. *ret_done: all are reported. BT_NOMEM, BT_IO. */
BT_MUST_CHECK enum bt_code cost_jobs_go_on(struct engine *engine, struct cost_jobs *c,
                                           cost_job_fn fn, void *self, uint64_t until_ns,
                                           bool *ret_done, struct bt_error *err);
void cost_jobs_done(struct cost_jobs *c);
#endif
