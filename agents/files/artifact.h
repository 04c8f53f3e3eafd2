/* `artifact: true`: the result of a skill goes into a file of the plan instead of the message. */
#ifndef FILES_ARTIFACT_H
#define FILES_ARTIFACT_H

#include "agents/sdk/step.h"

/* Whether the step asks for it. */
bool files_wants_artifact(struct bt_step *step);
/* The file's own name where an artifact can have it, else `fallback`. */
const char *files_artifact_name(struct bt_step *step, struct str path, const char *fallback);
/* By the ending of the name. */
const char *files_media_type(const char *name);
/* Copies the file as it is; memory does not grow with it. */
BT_MUST_CHECK enum bt_code files_copy(struct bt_step *step, int fd, const char *name,
                                      uint64_t *ret_bytes, struct bt_error *err);
#endif
