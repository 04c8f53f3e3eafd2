/* A daemon on another host: TLS with certificates of both sides, and a credential. Its state
 * directory is not here, and events are read, because its bus is for its own host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/client/client_internal.h"

struct client_remote {
    char *url, *ca, *cert;
};

const char client_remote_silence[] =
    "does not answer: no daemon listens there, the network drops it, or one side refuses the "
    "other's certificate (expired, of another authority, not for this host name)";

void client_remote_free(struct bt_client *c)
{
    if (c->remote != NULL) {
        free(c->remote->url);
        free(c->remote->ca);
        free(c->remote->cert);
        free(c->remote);
    }
}

enum bt_code client_remote_dial(struct bt_client *c, struct bt_error *err)
{
    const struct link_limits limits = {
        .recv_max = LIMIT_STEP_BYTES, .ca_file = c->remote->ca, .cert_file = c->remote->cert};

    return c->lane != NULL ? BT_OK
                           : link_lane_dial(c->link, c->remote->url, &limits, c, &c->lane, err);
}

static enum bt_code check(const struct bt_connection *to, struct bt_error *err)
{
    if (to->url == NULL || strncmp(to->url, "tls+tcp://", 10) != 0 ||
        strlen(to->url) > STATE_URL_MAX) {
        return err_set(err, BT_INVALID, "'%.80s': expected tls+tcp://HOST:PORT",
                       to->url != NULL ? to->url : "");
    }
    if (to->credential == NULL || to->ca == NULL || to->cert == NULL) {
        return err_set(err, BT_INVALID,
                       "%s: needs a credential, a certificate with its key, and the authority of "
                       "the daemon's",
                       to->url);
    }
    return link_url_check(str_from(to->url), false, false, err);
}

enum bt_code bt_client_connect(const struct bt_connection *to, struct bt_client **ret,
                               struct bt_error *err)
{
    struct client_remote *r = calloc(1, sizeof *r);
    struct bt_client *c = NULL;
    enum bt_code code = check(to, err);

    code = code == BT_OK ? client_new(&c, err) : code;
    if (code == BT_OK && r != NULL) {
        *r = (struct client_remote){strdup(to->url), strdup(to->ca), strdup(to->cert)};
    }
    if (code == BT_OK && (r == NULL || r->url == NULL || r->ca == NULL || r->cert == NULL)) {
        code = err_set(err, BT_NOMEM, "out of memory for a client");
    }
    if (c != NULL) {
        c->remote = r;
        r = NULL;
    }
    if (code == BT_OK) {
        (void)snprintf(c->at.control, sizeof c->at.control, "%s", to->url);
        (void)snprintf(c->dir, sizeof c->dir, "%s", to->url);
        code = bt_client_credential(c, to->credential, err);
    }
    if (code == BT_OK) {
        code = client_remote_dial(c, err);
    }
    free(r);
    if (code != BT_OK) {
        bt_client_close(c);
        return code;
    }
    *ret = c;
    return BT_OK;
}
