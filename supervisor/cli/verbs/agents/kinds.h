/* agents add: what each kind of agent needs, from the command line to the settings. */
#ifndef CLI_AGENTS_KINDS_H
#define CLI_AGENTS_KINDS_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

/* A new agent: argv is `add KIND AGENT_ID TARGET...`. */
struct new_agent {
    const char *kind, *id;
    const char *program;    /* "baton-agent-http" */
    struct cJSON *settings; /* owned by the caller */
    struct cJSON *document; /* an OpenAPI document that was YAML; goes into a file beside the
                               configuration, whose path becomes openapi.file. NULL = none */
};

/* Fills *ret from the command line. Prints the error. The caller deletes settings and document in
 * any case. */
enum cli_exit kinds_read(struct cli *cli, struct new_agent *ret);
/* The settings of baton-agent-exec for argv from `first` on, which checks them; the caller deletes
 * them. skill: the id of the only skill. */
struct cJSON *kinds_exec_settings(const struct cli *cli, const char *skill, int first);
/* The path of a program in the folder of this one. Prints the error and returns false. */
bool kinds_find_program(const char *name, char *ret, size_t cap);
/* agents add KIND AGENT_ID: an agent is tried, and written into the configuration. */
enum cli_exit agents_add(struct cli *cli);
#endif
