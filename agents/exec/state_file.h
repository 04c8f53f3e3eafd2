/* The file by which a program changes the plan's state: empty before it runs, named by
 * STATE_FILE_ENV, a JSON merge patch (an object) after it. */
#ifndef EXEC_STATE_FILE_H
#define EXEC_STATE_FILE_H

#include <limits.h>

#include "baton/agent.h"

#define STATE_FILE_ENV "BATON_STATE_PATCH"

/* Makes the file in TMPDIR, else /tmp; mode 0600. False, with a warning in the log: the program
 * runs without it. */
bool state_file_make(char ret_path[PATH_MAX]);
/* Begins the step's success with the patch; an empty or missing file changes nothing. False: the
 * step has failed, because the file is no JSON object or over LIMIT_STATE_BYTES (the sentence
 * begins with the id), or for want of memory. */
bool state_file_reply(struct bt_step *step, const char *id, const char *path);
/* Removes the file; accepts "". */
void state_file_remove(const char *path);
#endif
