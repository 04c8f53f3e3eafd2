/*
 * What command lines of a test meet beside libbaton: calls of the system that fail, programs beside
 * the command, a lock that a daemon has, a journal, a fleet and an authority. Without
 * a line about them they are the real ones. In one process, the child that runs a command line.
 */
#ifndef TEST_ASKED_RIG_H
#define TEST_ASKED_RIG_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "baton/client.h"

/* ---- test_cli_asked.c ---- */

/* The next answer of this type, else its last one; NULL = there is none. */
const char *asked_answer(const char *type);
/* What the answer of this type says, as of libbaton. *ret (may be NULL) gets its text, to be freed.
 */
enum bt_code asked_reply(const char *type, char **ret, struct bt_error *err);
/* A line "> ...". */
void asked_say(const char *fmt, ...) BT_PRINTF(1, 2);

/* ---- asked_rig.c ---- */

/* Takes a line "w ...", "l ..." or "v ..." of a case. */
void rig_take(const char *line);
/* From here on the calls are those of the lines; programs beside the command are in this directory.
 */
void rig_begin(const char *dir);
/* After a case. */
void rig_forget(void);

/* asked_fakes.c has the journal, the authority and the fleet: journal_verify reports what an answer
 * "verify {...}" has, and so on. */
#endif
