/* The sockets on which the daemon listens. */
#include <sys/resource.h>

#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/ports.h"

enum {
    PEERS_MAX = 8192,
    UNFINISHED_BYTES = 32 * 1024 * 1024,
    UNFINISHED_MS = 15000 /* as long as a handshake may take */
};

/* Half of the files that may be open, for both listeners: the others are for lanes, the journal and
 * what strangers bring between two looks. */
static struct link_peer_limits peer_limits(void)
{
    struct rlimit files;
    const bool known = getrlimit(RLIMIT_NOFILE, &files) == 0;

    return (struct link_peer_limits){.peers = known && files.rlim_cur / 4 < PEERS_MAX
                                                  ? (uint32_t)(files.rlim_cur / 4)
                                                  : PEERS_MAX,
                                     .unfinished_bytes = UNFINISHED_BYTES,
                                     .unfinished_ms = UNFINISHED_MS};
}

uint32_t engine_lanes_max(void)
{
    struct rlimit files;
    const uint32_t all = LIMIT_INSTANCES * (LIMIT_CAPACITY + 1);

    return getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < all
               ? (uint32_t)(files.rlim_cur / 4)
               : all;
}

static enum bt_code open_control(struct engine *engine, uint16_t port, struct bt_error *err)
{
    struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES, .peers = peer_limits()};
    char url[PORTS_URL_MAX];

    ports_url(engine->opt.control_url, port, url, sizeof url);
    return link_server_open(engine->link, url, ENGINE_CONTEXTS, &limits, NULL, &engine->server,
                            err);
}

static enum bt_code open_events(struct engine *engine, uint16_t port, struct bt_error *err)
{
    struct link_limits limits = {.recv_max = LIMIT_EVENT_BYTES, .peers = peer_limits()};
    char url[PORTS_URL_MAX];

    ports_url(engine->opt.events_url, port, url, sizeof url);
    return link_pub_open(engine->link, url, &limits, &engine->pub, err);
}

/* The setting, and what to do when another program has its port. */
static enum bt_code told(enum bt_code code, const char *key, const char *url, struct bt_error *err)
{
    return code == BT_OK ? BT_OK
           : code == BT_CONFLICT
               ? err_set(err, code,
                         "%s: %s is in use by another program; give another one, port 0 for any "
                         "free one, or port auto",
                         key, url)
               : err_wrap(err, "%s", key);
}

/* When another program has a port of the state directory, any free one will do. */
enum bt_code engine_listen(struct engine *engine, struct bt_error *err)
{
    const uint16_t port = ports_of(engine->opt.state_dir);
    enum bt_code code = open_control(engine, port, err);

    if (code == BT_CONFLICT && ports_is_auto(engine->opt.control_url)) {
        code = open_control(engine, 0, err);
    }
    if (code != BT_OK) {
        return told(code, "listen.control", engine->opt.control_url, err);
    }
    code = open_events(engine, (uint16_t)(port + 1), err);
    if (code == BT_CONFLICT && ports_is_auto(engine->opt.events_url)) {
        code = open_events(engine, 0, err);
    }
    return told(code, "listen.events", engine->opt.events_url, err);
}
