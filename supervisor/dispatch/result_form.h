/*
 * The forms in which agents give a result, brought into the one that is kept (M030). What a
 * step.result carries as `result` is a map {text?, data?, artifacts?}; some agents send a plain
 * string, any other value, or a command instead:
 *
 *     "text"                                              {text}
 *     a list, a number, a map of other members            {data}
 *     {"command": "pause", "kind"?, "prompt"?, "schema"?} needs_input, or needs_approval
 *     {"command": "resume", "result" | "value" | "update"} completed with that
 *     {"command": "handoff", "toAgentId" | "goto", "reason"?} handoff
 *
 * Data that happens to have a member `command` is data when it is sent as `data`.
 */
#ifndef DISPATCH_RESULT_FORM_H
#define DISPATCH_RESULT_FORM_H

#include "protocol/wire/msg.h"

/* Makes the reader's body the canonical one when it is not; what is canonical costs a look. The
 * reader keeps the memory. A body that is no step.result is left alone. */
BT_MUST_CHECK enum bt_code result_form_normalise(struct msg_reader *r, struct bt_error *err);
#endif
