/*
 * Where the shards of a fleet are, as the node of this host writes it down (STATE/fleet.json,
 * supervisor/node). Without that file, and with one shard, there is one daemon. One thread.
 */
#ifndef GATEWAY_FLEET_H
#define GATEWAY_FLEET_H

#include "protocol/base/shard.h"
#include "protocol/client/state.h"

struct fleet {
    uint32_t shards; /* 1 without a fleet of several */
    struct {
        char control[STATE_URL_MAX + 1]; /* "" = nobody leads it, or it cannot be reached here */
        char node[65];                   /* that leads it */
        char remote[STATE_URL_MAX + 1];  /* its address for other hosts; "" = none */
        bool elsewhere;                  /* on another host, which only TLS reaches */
    } at[SHARDS_MAX];
};

/* Reads the map again. A file that cannot be read leaves what was known. */
void fleet_read(const char *state_dir, struct fleet *f);
/* A shard that is led, for what any of them can answer; 0 when none is. */
uint32_t fleet_any(const struct fleet *f);
#endif
