/* The configuration of a running daemon, compared with a file. */
#ifndef CLI_RELOAD_H
#define CLI_RELOAD_H

#include "supervisor/cli/common/cli.h"

/* Prints on stderr what a running daemon has otherwise than the file of --config says. CLI_OK: it
 * is the same; CLI_INTERNAL: it differs; else the error. */
enum cli_exit cli_compare_config(struct cli *cli);
#endif
