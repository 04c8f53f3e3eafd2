/* Artifacts in the answer of plan.result. */
#ifndef CLI_ARTIFACT_H
#define CLI_ARTIFACT_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

/* A line for each, with name, size and path, and whether the file is not here. */
void cli_print_artifacts(const struct cli *cli, const struct cJSON *answer);
/* Copies the bytes of the artifact of that name to stdout, after its checksum was compared. */
enum cli_exit cli_print_artifact(struct cli *cli, const struct cJSON *answer, const char *name);
#endif
