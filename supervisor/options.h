/* From the configuration and the command line to what the daemon is started with. */
#ifndef SUPERVISOR_OPTIONS_H
#define SUPERVISOR_OPTIONS_H

#include <limits.h>

#include "protocol/client/state.h"
#include "supervisor/arguments.h"
#include "supervisor/daemon.h"
#include "supervisor/journal/owner.h"

/* What differs between the shards of a node: where they listen. */
struct shard_places {
    char control[STATE_URL_MAX + 1], events[STATE_URL_MAX + 1], remote[STATE_URL_MAX + 1];
    char map[PATH_MAX], node_dir[PATH_MAX];
    char node[JOURNAL_NODE_MAX + 1];
    char hash[CONFIG_HASH_LEN + 1];
    struct config config;
};

/* A uri of plan and file, each byte as %XX, stays below its cap. */
enum { OPTIONS_ARTIFACT_BYTES = 512 };
/* The directory of the files of results, in *path, whose cap is that; NULL when no uri could name
 * it, which is logged. */
const char *options_artifact_root(const struct config *c, struct buf *path);
/* The name of this node in its fleet. */
void options_node(const struct config *c, char ret[JOURNAL_NODE_MAX + 1]);
/* All but what children_of_config fills in. Texts are borrowed, from *places as well. */
void options_of(const struct config *c, const struct arguments *a, const char *artifacts,
                const char *token, struct reload *reload, struct shard_places *places,
                struct daemon_options *ret);
/* With several shards the node starts the gateway, once: a shard's process has none. */
const struct config *options_config(const struct arguments *a, const struct config *c,
                                    struct shard_places *places);
/* What a node of several shards cannot do yet, or NULL. */
const char *options_not_with_shards(const struct config *c);
#endif
