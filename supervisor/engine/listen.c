/* The sockets on which the daemon listens. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "supervisor/auth/sessions.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/ports.h"

enum {
    PEERS_MAX = 8192,
    HOST_SHARE = 4, /* of them, for one host elsewhere */
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

/* Whether other hosts are. */
static bool is_served(const struct engine *engine)
{
    return engine->opt.remote_url != NULL && engine->opt.remote_url[0] != 0;
}

static enum bt_code open_control(struct engine *engine, uint16_t port, struct bt_error *err)
{
    struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES, .peers = peer_limits()};
    char url[PORTS_URL_MAX];

    ports_url(engine->opt.control_url, port, url, sizeof url);
    return link_server_open(engine->link, url,
                            ENGINE_CONTEXTS - (is_served(engine) ? ENGINE_REMOTE_CONTEXTS : 0),
                            &limits, NULL, &engine->server, err);
}

static enum bt_code open_remote(struct engine *engine, struct bt_error *err)
{
    struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES,
                                 .cert_file = engine->opt.remote_cert,
                                 .ca_file = engine->opt.remote_ca,
                                 .peers = peer_limits()};

    limits.peers.of_host = limits.peers.peers / HOST_SHARE;
    return link_server_open(engine->link, engine->opt.remote_url, ENGINE_REMOTE_CONTEXTS, &limits,
                            NULL, &engine->remote, err);
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
    if (!engine->opt.auth_required) { /* a bus asks nobody who he is, and shows all to each */
        code = open_events(engine, (uint16_t)(port + 1), err);
    }
    if (code == BT_CONFLICT && ports_is_auto(engine->opt.events_url)) {
        code = open_events(engine, 0, err);
    }
    code = told(code, "listen.events", engine->opt.events_url, err);
    if (code == BT_OK && is_served(engine)) {
        code = told(open_remote(engine, err), "listen.remote", engine->opt.remote_url, err);
    }
    return code;
}

/* A context's index has fewer bits. */
static const uint64_t REMOTE = 1u << 31;

bool engine_is_remote(uint64_t handle)
{
    return (handle & REMOTE) != 0;
}

uint64_t engine_handle_of(const struct engine *engine, const struct link_event *ev)
{
    return ev->request | (engine->remote != NULL && ev->server == engine->remote ? REMOTE : 0);
}

static bool is_open(void *self, uint32_t pipe)
{
    (void)self;
    return link_pipe_is_open(pipe);
}

static void hang_up(void *self, uint32_t pipe)
{
    const struct engine *engine = self;

    link_server_hang_up(engine->server, pipe);
    if (engine->remote != NULL) {
        link_server_hang_up(engine->remote, pipe);
    }
}

void engine_watch_sessions(struct engine *engine)
{
    sessions_hook(engine->opt.sessions, &(struct session_hooks){engine, is_open, hang_up});
}

void engine_send_answer(struct engine *engine, uint64_t handle, const void *bytes, size_t len)
{
    (void)link_answer(engine_is_remote(handle) ? engine->remote : engine->server, handle & ~REMOTE,
                      bytes, len);
}

/* ---- ports that follow from the state directory ---- */

enum { PORT_FIRST = 20000, PORT_PAIRS = 6000 };

static const char AUTO[] = ":auto";

uint16_t ports_of(const char *state_dir)
{
    return (uint16_t)(PORT_FIRST + 2 * (str_hash(str_from(state_dir)) % PORT_PAIRS));
}

bool ports_is_auto(const char *url)
{
    const size_t n = strlen(url);

    return n >= sizeof AUTO - 1 && strcmp(url + n - (sizeof AUTO - 1), AUTO) == 0;
}

void ports_url(const char *url, uint16_t port, char *ret, size_t cap)
{
    if (ports_is_auto(url)) {
        (void)snprintf(ret, cap, "%.*s:%u", (int)(strlen(url) - (sizeof AUTO - 1)), url, port);
    } else {
        (void)snprintf(ret, cap, "%s", url);
    }
}
