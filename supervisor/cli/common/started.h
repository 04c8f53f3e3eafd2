/*
 * How `baton up` started the daemon of a state directory: STATE/up has its options. Who finds that
 * the daemon has ended is told the whole command that starts it again.
 */
#ifndef CLI_STARTED_H
#define CLI_STARTED_H

#include <stddef.h>

#include "supervisor/cli/common/cli.h"

enum { STARTED_MAX = 6000 };

/* Writes those of the n options that this `up` has; its daemon is ready. They are for advice only:
 * no error. */
void started_write(const struct cli *cli, const char *state, const char *const *names, size_t n);
/* " --state DIR --config FILE", as in a shell: the state directory when this command line names it,
 * and the options of the `up` that started the daemon that is gone. "" = none. Terminated. */
void started_options(const struct cli *cli, char ret[STARTED_MAX]);
#endif
