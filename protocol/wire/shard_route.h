/* Which shard of a fleet a request is for: the same rule in the daemon and in its clients. Pure. */
#ifndef WIRE_SHARD_ROUTE_H
#define WIRE_SHARD_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/str.h"
#include "protocol/base/uuid.h"
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

/* The id of the plan that the request is about, whatever shard it names; false: of none. */
bool shard_id_of_request(struct str type, struct doc body, struct uuid *ret);

/* What the key of a request is. RUNNING: a concurrency key. */
enum shard_key {
    SHARD_KEY_NONE,
    SHARD_KEY_SESSION,
    SHARD_KEY_RUNNING,
    SHARD_KEY_CLIENT,
    SHARD_KEY_NAME
};

/* The key by whose hash a request gets its shard; empty when it has none, or goes by an id. Lives
 * as long as the body. */
struct str shard_key_of_request(struct str type, struct doc body, enum shard_key *ret);
#endif
