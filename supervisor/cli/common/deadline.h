/* --timeout: the time that a verb may take, whatever it waits for. One per process. */
#ifndef CLI_DEADLINE_H
#define CLI_DEADLINE_H

#include "protocol/base/msec.h"
#include "supervisor/cli/common/cli.h"

/* Starts the time of --timeout; without that option there is none. A verb that does not end in time
 * by itself is ended with CLI_TIMEOUT a moment later. Prints the error and returns false. */
bool deadline_start(const struct cli *cli);
/* When the verb must end; MSEC_NEVER without --timeout. */
msec deadline_at(void);
/* The same; ms from now without --timeout. */
msec deadline_or(uint32_t ms);
bool deadline_is_over(void);
/* Says that the verb has not ended in its time; returns CLI_TIMEOUT. Only when it is over. */
enum cli_exit deadline_report(void);
/* How long a request may take, at most `ms`: 1 or more. */
uint32_t deadline_left(uint32_t ms);
/* What a verb that is ended does first; safe in a handler of signals. NULL = nothing. */
void deadline_leave(void (*fn)(void));
/* Before another program takes the place of this one. */
void deadline_stop(void);
#endif
