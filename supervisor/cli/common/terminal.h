/* What people see who read stdout on a terminal: a pager, times of their own zone. One thread. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "supervisor/cli/common/cli.h"

enum { CLI_TIME_MAX = 40 };

/* Whether people read stdout: it is a terminal, or the pager of one. */
bool cli_on_terminal(void);
/*
 * Puts a pager behind stdout when that is a terminal: $BATON_PAGER, else $PAGER, else `less -FRX`
 * when there is one. Not with --no-pager or TERM=dumb, nor when the variable is empty or `cat`.
 */
void cli_pager_start(const struct cli *cli);
/* Call after the last output: waits until the reader has left the pager. */
void cli_pager_end(void);
/* A time of the wire (RFC 3339, UTC) as people read it: local on a terminal, else unchanged. Other
 * text is returned as it is. The result is ret or the text. */
const char *cli_time(const char *text, char ret[CLI_TIME_MAX]);
/* The same for each time in a text; what does not fit is cut. */
void cli_times_in(char *ret, size_t cap, const char *text);
#endif
