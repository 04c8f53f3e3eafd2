/* Which files the results of a plan name. */
#ifndef ARTIFACTS_TAKEN_H
#define ARTIFACTS_TAKEN_H

#include "protocol/base/arena.h"
#include "protocol/base/map.h"
#include "supervisor/engine/engine.h"

struct taken {
    struct arena arena;
    struct map names; /* of files in the plan's directory */
};

/* Reads the results of the plan's steps. Fails when one cannot be read: then nothing is known about
 * any file. taken_done in every case. */
BT_MUST_CHECK enum bt_code taken_read(struct engine *engine, const char *root, struct str plan_id,
                                      struct taken *ret, struct bt_error *err);
void taken_done(struct taken *t);
#endif
