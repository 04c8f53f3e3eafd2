/* Turns a program's output into the step's result. */
#ifndef EXEC_OUTPUT_H
#define EXEC_OUTPUT_H

#include "agents/exec/settings.h"
#include "protocol/base/buf.h"

/* Replies with JSON when `how` requires it or the bytes are JSON, else with text. */
void output_reply(struct bt_step *step, const char *id, enum exec_output how, struct str bytes);
#endif
