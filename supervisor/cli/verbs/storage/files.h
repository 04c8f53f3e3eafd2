/*
 * The files that results name, beside a copy of the journal: FILE.artifacts/PLAN/NAME. A file is
 * not in a backup when the daemon keeps it no longer.
 */
#ifndef CLI_STORAGE_FILES_H
#define CLI_STORAGE_FILES_H

#include "protocol/artifact/artifact.h"
#include "protocol/base/arena.h"
#include "protocol/base/map.h"
#include "protocol/wire/doc.h"

/* Copies the files of all plans; those that are there are replaced. fresh: `to` must not be there.
 * Without any, nothing is made. *ret_n: how many. BT_IO names the file, BT_UNAUTHORIZED a directory
 * that others may write to. */
BT_MUST_CHECK enum bt_code files_copy(const char *from, const char *to, bool fresh, uint64_t *ret_n,
                                      struct bt_error *err);

/* Compares the files below `root` with what results say of them. A file that is missing is no
 * damage: files are kept for a time. */
struct files_check {
    const char *root;
    struct buf *report;
    struct map seen; /* URIs */
    struct arena keys;
    uint64_t sound, gone, bad;
    bool no_memory;
};
/* A result; for journal_verify. self: struct files_check. */
void files_see(const void *result, size_t len, void *self);
/* Adds a line. `journal`: what journal_verify returned. BT_IO: a file was altered. */
BT_MUST_CHECK enum bt_code files_check_end(struct files_check *c, enum bt_code journal,
                                           struct bt_error *err);
#endif
