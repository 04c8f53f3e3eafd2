#include "supervisor/gateway/fleet.h"

#include <stdio.h>
#include <string.h>

#include "protocol/client/fleet_map.h"

static void take(struct fleet *f, struct doc map)
{
    struct fleet_place one;
    uint32_t n = 0;

    for (; n < SHARDS_MAX && fleet_map_shard(map, n, &one); n++) {
        f->at[n].elsewhere = !one.here && one.remote.len > 0;
        (void)snprintf(f->at[n].node, sizeof f->at[n].node, "%.*s", STR_ARG(one.node));
        (void)snprintf(f->at[n].remote, sizeof f->at[n].remote, "%.*s", STR_ARG(one.remote));
        (void)snprintf(f->at[n].control, sizeof f->at[n].control, "%.*s",
                       f->at[n].elsewhere ? 0 : (int)one.control.len, one.control.ptr);
    }
    f->shards = n > 1 ? n : 1;
}

void fleet_read(const char *state_dir, struct fleet *f)
{
    char path[4096 + 16];
    struct buf map;

    f->shards = f->shards > 0 ? f->shards : 1;
    (void)snprintf(path, sizeof path, "%.4096s/" FLEET_MAP_FILE, state_dir);
    if (fleet_map_read(path, &map)) {
        take(f, doc_from_buf(&map));
    }
    buf_done(&map);
}

uint32_t fleet_any(const struct fleet *f)
{
    for (uint32_t i = 0; i < f->shards; i++) {
        if (f->at[i].control[0] != 0) {
            return i;
        }
    }
    return 0;
}
