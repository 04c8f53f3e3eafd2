/* Which shard of a fleet a request is for: the same rule in the daemon and in its clients. Pure. */
#ifndef WIRE_SHARD_ROUTE_H
#define WIRE_SHARD_ROUTE_H

#include <stdint.h>

#include "protocol/base/str.h"
#include "protocol/wire/doc.h"

enum {
    SHARD_ANY = -1, /* whoever is asked */
    SHARD_ALL = -2  /* each answers for itself */
};

/*
 * type: of the request, "plan.get". body: its fields, a map. shards: how many there are.
 *   an id of a plan, a review or a blob   the shard in it; ANY when the id is none of this fleet
 *   a new plan                            by its session, else its concurrency key, else its
 *                                         clientKey; ANY without
 *   a session, the name of a schedule     by the hash of it
 *   lists without one of these            ALL
 */
int shard_of_request(struct str type, struct doc body, uint32_t shards);
#endif
