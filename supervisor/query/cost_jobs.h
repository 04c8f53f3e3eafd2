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

/* *ret_more: there are more than are looked at, the older ones. BT_NOMEM, BT_IO. */
BT_MUST_CHECK enum bt_code cost_jobs(struct engine *engine, const struct cost_jobs_of *ask,
                                     cost_job_fn fn, void *self, bool *ret_more,
                                     struct bt_error *err);
#endif
