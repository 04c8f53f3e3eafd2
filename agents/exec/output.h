/* What a program printed, as the step's result. */
#ifndef EXEC_OUTPUT_H
#define EXEC_OUTPUT_H

#include "agents/exec/settings.h"
#include "protocol/base/buf.h"

/* Answers with the bytes: as JSON where `how` says so or they are one, else as text. */
void output_reply(struct bt_step *step, const char *id, enum exec_output how, struct str bytes);
/* Appends the bytes with U+FFFD for each one that is no UTF-8, and for each zero byte. Returns the
 * number of replacements. */
size_t output_repair(struct str bytes, struct buf *out);
#endif
