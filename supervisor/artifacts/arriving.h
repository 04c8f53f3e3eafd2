/*
 * Files that agents on other hosts send in parts. A few are kept open between two requests; whoever
 * asks for another one closes the one that waited longest, which goes on from its bytes on the
 * disk.
 */
#ifndef ARTIFACTS_ARRIVING_H
#define ARTIFACTS_ARRIVING_H

#include "protocol/artifact/artifact.h"
#include "protocol/base/msec.h"

struct arriving;

BT_MUST_CHECK enum bt_code arriving_new(struct arriving **ret, struct bt_error *err);

/* dir: ROOT/PLAN. Appends the bytes when there are `offset` of them so far; else nothing is done.
 * *ret_bytes: how many there are now. Errors as those of artifact_part_open and artifact_part_add.
 */
BT_MUST_CHECK enum bt_code arriving_add(struct arriving *a, const char *dir, const char *file,
                                        uint64_t offset, struct str bytes, msec now,
                                        uint64_t *ret_bytes, struct bt_error *err);
/* Ends the file when it has len bytes. *ret_done false: there are *ret_bytes of them, or they are
 * not checked yet. BT_INVALID: another checksum. */
BT_MUST_CHECK enum bt_code arriving_end(struct arriving *a, const char *dir, const char *file,
                                        uint64_t len, struct str sha256, msec now,
                                        uint64_t *ret_bytes, bool *ret_done, struct bt_error *err);
/* Closes what nobody has asked for in a minute. */
void arriving_tidy(struct arriving *a, msec now);
#endif
