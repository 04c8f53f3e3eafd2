/* Reads the reply that a program with `output: reply` prints, and gives it to the supervisor. */
#ifndef EXEC_REPLY_H
#define EXEC_REPLY_H

#include "baton/agent.h"
#include "protocol/base/str.h"

/*
 * The bytes are one JSON object in the words of step.result: {outcome, result, usage,
 * failure, need, handoff}. Anything else fails the step and names the member.
 */
void reply_send(struct bt_step *step, const char *id, struct str bytes);
#endif
