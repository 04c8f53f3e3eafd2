/* A session id that does not exist. */
#ifndef CLI_SESSIONS_H
#define CLI_SESSIONS_H

#include "supervisor/cli/common/cli.h"

/* Prints that there is no such session, the nearest id if one is near, and `more`. */
void cli_report_no_session(struct cli *cli, const char *id, const char *more);
#endif
