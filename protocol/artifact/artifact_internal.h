/* Shared by the writers of this room. */
#ifndef ARTIFACT_ARTIFACT_INTERNAL_H
#define ARTIFACT_ARTIFACT_INTERNAL_H

#include "protocol/artifact/artifact.h"

/* Opens ROOT/PLAN, made when it is missing. BT_UNAUTHORIZED: a link, or another user's. */
BT_MUST_CHECK enum bt_code artifact_dir_open(const char *path, int *ret, struct bt_error *err);
/* The plan of the directory has ended. */
bool artifact_dir_ended(int dir);
/* BT_GONE. */
enum bt_code artifact_ended_error(struct bt_error *err);
#endif
