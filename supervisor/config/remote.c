/* The listener for other hosts: nothing listens there without TLS, certificates of the clients, and
 * credentials. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/config/loader.h"

static const char SCHEME[] = "tls+tcp://";

static void problem(struct loader *l, const char *key, const char *text)
{
    char origin[ORIGIN_MAX];

    setting_origin(l, key, origin);
    config_problem(l, origin, "%s: %s", key, text);
}

/* NULL: fine. */
static const char *fault_of_url(const char *url)
{
    static const char *const every[] = {"*:", "0.0.0.0:", "[::]:"};
    const char *host = url + sizeof SCHEME - 1;
    const char *colon = strrchr(url, ':');
    char *end = NULL;

    if (strncmp(url, SCHEME, sizeof SCHEME - 1) != 0 || colon <= host) {
        return strncmp(url, "tcp://", 6) == 0
                   ? "other hosts are served with TLS only: write tls+tcp://HOST:PORT"
                   : "is not tls+tcp://HOST:PORT, for example tls+tcp://10.0.0.5:7443";
    }
    if (colon[1] < '0' || colon[1] > '9' || strtoul(colon + 1, &end, 10) > 65535 || *end != 0) {
        return "expected a port from 0 (any free one) to 65535 after the host";
    }
    for (size_t i = 0; i < sizeof every / sizeof every[0]; i++) {
        if (strncmp(host, every[i], strlen(every[i])) == 0) {
            return "name one address or name of this host: agents are told to dial it";
        }
    }
    return NULL;
}

enum bt_code config_path_bind(struct loader *l, const char *key, const char **text)
{
    enum layer_kind layer;
    const char *why = NULL;
    const char *path;

    if (layers_find(l, key, &layer) == NULL || (*text)[0] == 0) {
        return BT_OK;
    }
    path = config_expand(l, layer, *text, &why);
    if (path == NULL && why == NULL) {
        return config_no_memory(l);
    }
    if (why != NULL) {
        problem(l, key, why);
    } else if (path[0] != '/') {
        problem(l, key, "expected an absolute path, or one that begins with ${CONFIG_DIR}");
    }
    *text = path != NULL ? path : *text;
    return BT_OK;
}

static void read_lanes(struct loader *l, struct config_remote *r)
{
    unsigned long from;
    unsigned long to;
    char *end = NULL;

    if (r->lanes[0] == 0) {
        return;
    }
    from = strtoul(r->lanes, &end, 10);
    to = *end == '-' ? strtoul(end + 1, NULL, 10) : 0;
    if (from == 0 || from > to || to > 65535) {
        problem(l, "listen.lanes", "expected two ports, for example 7450-7499");
        return;
    }
    r->lane_first = (uint16_t)from;
    r->lane_last = (uint16_t)to;
}

enum bt_code config_remote_bind(struct loader *l)
{
    struct config *c = &l->store->c;
    struct config_remote *r = &c->remote;
    const char *fault = r->url[0] == 0 ? NULL : fault_of_url(r->url);

    read_lanes(l, r);
    if (config_path_bind(l, "listen.cert", &r->cert) != BT_OK ||
        config_path_bind(l, "listen.ca", &r->ca) != BT_OK) {
        return BT_NOMEM;
    }
    if (r->url[0] == 0) {
        return BT_OK;
    }
    if (fault != NULL) {
        problem(l, "listen.remote", fault);
    }
    if (r->cert[0] == 0) {
        problem(l, "listen.remote",
                "needs listen.cert, its certificate and key; baton certs issue makes one");
    }
    if (r->ca[0] == 0) {
        problem(l, "listen.remote",
                "needs listen.ca, the authority that signed the certificates of its clients; baton "
                "certs init makes one");
    }
    if (c->auth != CONFIG_AUTH_REQUIRED) {
        problem(l, "listen.remote",
                "needs auth: required, so that each client and agent proves its own credential "
                "(baton credential add)");
    }
    return BT_OK;
}
