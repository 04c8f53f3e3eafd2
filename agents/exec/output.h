/* What a program printed, as the step's result. */
#ifndef EXEC_OUTPUT_H
#define EXEC_OUTPUT_H

#include "agents/exec/settings.h"
#include "protocol/base/buf.h"

/* Answers with the bytes: as JSON where `how` says so or they are one, else as text. */
void output_reply(struct bt_step *step, const char *id, enum exec_output how, struct str bytes);
#endif
