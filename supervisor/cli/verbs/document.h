/* A plan's document on stdout, as the plan file that `run --plan` takes. */
#ifndef CLI_DOCUMENT_H
#define CLI_DOCUMENT_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

/*
 * Prints the document as YAML: with --full all of it, else without what the daemon sets by itself.
 * Needs a connection; prints everything when the daemon does not answer. Changes the document.
 */
enum cli_exit cli_print_document(struct cli *cli, struct cJSON *document);
#endif
