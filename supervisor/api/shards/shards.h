/*
 * A fleet of several shards: which requests are for this one, and where the others are. The node
 * process writes the map (engine_options.fleet_map); here it is read.
 */
#ifndef API_SHARDS_SHARDS_H
#define API_SHARDS_SHARDS_H

#include "supervisor/engine/request.h"

/* False after refusing: MOVED when another shard has what the request is about. */
bool shards_have(struct engine *engine, struct request *rq);
#endif
