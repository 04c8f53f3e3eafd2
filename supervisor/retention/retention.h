/*
 * Deletes what the configuration keeps no longer: ended plans with their jobs, idle sessions,
 * events of no plan. One thread; every call lies between two commits, or within a cycle for
 * retention_delete. The work is done in slices, so that a cycle stays short.
 */
#ifndef RETENTION_RETENTION_H
#define RETENTION_RETENTION_H

#include "supervisor/journal/journal.h"

struct retention;

/* How long things stay after their end; 0 = for ever. */
struct retention_options {
    msec completed_ms; /* plans that have completed */
    msec failed_ms;    /* all other ended plans */
    msec sessions_ms;  /* sessions, after their last message */
    msec events_ms;    /* events of no plan: of agents, sessions and the supervisor; and agents
                          that were not there for so long */
    msec gone_ms;      /* what is left of a deleted plan: its id, its key and its end */
    uint64_t
        max_bytes; /* of the journal in use; the plans that ended first go first; 0 = no limit */
};

/* Least time for which the clientKey of a deleted plan is refused, where retention is on. */
#define RETENTION_GONE_MS (UINT64_C(30) * 24 * 3600 * 1000)
/* As long as the longest of both ages, and RETENTION_GONE_MS at least; 0 when plans stay for ever,
 * because what is deleted by hand is little. */
msec retention_gone_age(msec completed_ms, msec failed_ms);

struct retention_hooks {
    void *self;
    /* The plan is still in memory: its last attempts may write rows. */
    bool (*is_open)(void *self, struct uuid plan_id);
    /* A plan that goes on reads files of this one. NULL: there are no files. */
    bool (*is_read)(void *self, struct uuid plan_id, uint64_t ix);
    /* The plan was deleted, in the open batch: its files can go. */
    void (*deleted)(void *self, struct uuid plan_id);
};

/* The journal outlives it. */
BT_MUST_CHECK enum bt_code retention_new(const struct retention_options *opt,
                                         const struct retention_hooks *hooks,
                                         struct journal *journal, struct retention **ret,
                                         struct bt_error *err);
void retention_free(struct retention *r);
/* Deletes an ended plan in the open batch, after all plans inside it. p: a head; its strings need
 * not live on. BT_BUSY: its last attempts, or those of a plan inside it, are not over; a plan that
 * goes on reads its files; or so many plans are inside it that the next call goes on with them
 * (retention_is_under_way). BT_CONFLICT: it has not ended. */
BT_MUST_CHECK enum bt_code retention_delete(struct retention *r, const struct journal_plan *p,
                                            struct str why, msec wall, uint32_t *ret_jobs,
                                            struct bt_error *err);
bool retention_is_under_way(const struct retention *r, uint64_t plan_ix);
/* ---- a copy of the journal, in slices ---- */
enum { RETENTION_PATH_MAX = 4096 };
struct retention_copy {
    char path[RETENTION_PATH_MAX]; /* "" = none was asked for since the start */
    uint64_t pages, left;
    bool running;
    bool failed;
    struct bt_error why; /* failed */
};
/* Begins to copy the journal to path; see journal_backup_begin. */
BT_MUST_CHECK enum bt_code retention_copy_begin(struct retention *r, const char *path,
                                                struct bt_error *err);
/* The copy that runs, or the last one. */
const struct retention_copy *retention_copy_state(const struct retention *r);

/* Something was deleted by others: there is something to sweep. */
void retention_wake(struct retention *r);
/* One slice of what is due, and its commit; no batch may be open. A failure is the journal's: the
 * daemon stops. */
BT_MUST_CHECK enum bt_code retention_cycle(struct retention *r, msec now, msec wall,
                                           struct bt_error *err);
/* When the next slice is due, on the clock of `now`. */
msec retention_deadline(const struct retention *r);
#endif
