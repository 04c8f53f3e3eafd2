/*
 * STATE/fleet.json of a fleet with several shards: where each shard is led, as the node of this
 * host writes it down (supervisor/node). Any thread.
 */
#ifndef CLIENT_FLEET_MAP_H
#define CLIENT_FLEET_MAP_H

#include "protocol/base/shard.h"
#include "protocol/wire/doc.h"

#define FLEET_MAP_FILE "fleet.json"

/* The texts point into the map; none is NULL. */
struct fleet_place {
    uint64_t epoch;
    struct str control, events; /* "" = nobody leads it; where `auth` is required there is no bus */
    struct str remote;          /* for other hosts, with TLS; "" = none */
    struct str node;
    bool here; /* the node of this host leads it */
};

/* Reads the file. False: there is none that can be read. The caller ends *ret_map with buf_done in
 * both cases; doc_from_buf is the map. */
BT_MUST_CHECK bool fleet_map_read(const char *path, struct buf *ret_map);
/* It grows when a shard has a new leader; 0 of no map. */
uint64_t fleet_map_version(struct doc map);
/* False: the map does not name the shard. Its texts are "" then. */
bool fleet_map_shard(struct doc map, uint32_t shard, struct fleet_place *ret);
#endif
