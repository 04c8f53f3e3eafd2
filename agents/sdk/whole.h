/*
 * One rule for every agent of this tree: a result is whole, or it shows that it is not.
 * - The step asked for no limit, and the result is over a cap: the step fails. The sentence names
 *   the cap and how to get the result: a narrower question, `limit`, or `artifact: true`.
 * - The step asked for a limit, and more was there: the result has `truncated`, and its text ends
 *   with a line in brackets: how much of what is missing, and how to get it.
 */
#ifndef SDK_WHOLE_H
#define SDK_WHOLE_H

#include "agents/sdk/step.h"

/* Marks the step's result as not whole, and ends the text with "[not whole: ...]" on its own line.
 */
void whole_mark(struct bt_step *step, struct buf *text, const char *fmt, ...) BT_PRINTF(3, 4);
#endif
