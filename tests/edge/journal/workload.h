/* A workload whose content follows from its sequence numbers alone. */
#ifndef TESTS_WORKLOAD_H
#define TESTS_WORKLOAD_H

#include "supervisor/journal/journal.h"

/* Makes a directory on the fastest file system available; ret has room for 64. */
void work_dir(char *ret);

/* The outcomes of a writer's commits. */
struct told {
    uint64_t acked;   /* highest seq of a commit that returned BT_OK */
    uint64_t unknown; /* highest seq of a commit whose outcome is unknown; 0 = none */
    uint64_t open_failed;
};

/*
 * Opens, writes `batches` batches (each: sometimes a plan, blobs, two to four events, internal
 * rows) and closes. Stops at an unknown outcome; continues after "storage is full". after_commit
 * may be NULL.
 */
struct told work(const char *dir, const struct journal_options *opt, uint32_t batches,
                 void (*after_commit)(uint64_t seq, void *self), void *self);
/* Fails the test when the journal in dir lost an acknowledged commit, has rows that were rejected,
 * or returns data that was not written. Returns the last seq stored. With may_lose != NULL a loss
 * is only counted there. */
uint64_t work_check(const char *dir, const struct told *told, uint32_t *may_lose);
#endif
