/*
 * Ended plans, sessions and schedules as lines of JSON, and back. The lines name no seq and no id
 * of a blob: those are a journal's own, and an import gives new ones. One thread; within a cycle:
 * what an import writes is in the open batch.
 */
#ifndef TRANSFER_TRANSFER_H
#define TRANSFER_TRANSFER_H

#include "protocol/base/buf.h"
#include "supervisor/journal/journal.h"

enum {
    /* About so many bytes of lines in one slice, out and in. */
    TRANSFER_SLICE_BYTES = 192 * 1024,
    /* A slice is never larger: one line more than the slice. */
    TRANSFER_SLICE_MAX = 512 * 1024,
    TRANSFER_CURSOR_MAX = 256,
    /* An import whose next lines do not come for so long was given up. */
    TRANSFER_SILENCE_MS = 10000,
    /* Who waits for an import and does not ask for so long has lost its turn. */
    TRANSFER_TURN_MS = 1000
};

struct transfer_hooks {
    void *self;
    /* The plan is still in memory: its last attempts may write rows. */
    bool (*is_open)(void *self, struct uuid plan_id);
};

/* What an export takes. */
struct transfer_want {
    bool one; /* the plan with this number and id, and its jobs (but for `alone`) */
    bool alone;
    struct uuid id;
    uint64_t ix;
    msec since; /* else all that ended, and sessions with messages, at this time or later */
};

/* Appends the next lines, each ended by a line feed. cursor: "" = from the beginning; afterwards
 * where to go on, "" = that was all. BT_INVALID: no cursor of this call. */
BT_MUST_CHECK enum bt_code transfer_export(struct journal *journal,
                                           const struct transfer_hooks *hooks,
                                           const struct transfer_want *want,
                                           char cursor[TRANSFER_CURSOR_MAX], struct buf *lines,
                                           struct bt_error *err);

struct transfer;
BT_MUST_CHECK enum bt_code transfer_new(struct transfer **ret, struct bt_error *err);
void transfer_free(struct transfer *t); /* accepts NULL */

enum transfer_result {
    TRANSFER_MORE,   /* taken; more lines of this plan or session are missing */
    TRANSFER_EXISTS, /* there is a plan of this id, or all of the session: nothing was taken */
    TRANSFER_WAIT,   /* another one is under way, or what is left of an earlier one is being
                      * removed: send the same again */
    TRANSFER_DONE    /* the plan or session is complete */
};
/* Lines of one plan, session or schedule, in their order and not across an end. */
struct transfer_lines {
    struct str text;
    uint64_t before;                   /* the lines of it that were sent before */
    struct str plan_id, session, name; /* of what they are; "" = not told */
    msec now, wall;                    /* monotonic, and that of the world */
};
/*
 * The first line of a plan begins it. Another one that was not finished waits for its next lines:
 * until none have come for TRANSFER_SILENCE_MS, nothing else is begun (TRANSFER_WAIT), and then it
 * is dropped. Whoever was told to wait first is the next one, while it asks again in
 * TRANSFER_TURN_MS. On a failure nothing of the plan is left once the batch is committed, but after
 * a failed write (see journal.h) the batch is lost; *ret_failed_write tells the two apart.
 * BT_CONFLICT: not what goes on here, or another plan has its clientKey, or a session here is
 * another one.
 */
BT_MUST_CHECK enum bt_code transfer_import(struct transfer *t, struct journal *journal,
                                           const struct transfer_lines *lines,
                                           enum transfer_result *ret, bool *ret_failed_write,
                                           struct bt_error *err);
/* The schedule that the last import completed; "" = it was none. Valid until the next one. */
const char *transfer_schedule(const struct transfer *t);
#endif
