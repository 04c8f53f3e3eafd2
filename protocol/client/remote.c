/* A daemon on another host: TLS with certificates of both sides, and a credential. Its state
 * directory is not here, and events are read, because its bus is for its own host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/client/client_internal.h"
#include "protocol/client/seeds.h"

enum { ASKED_MS = 1000 /* before the other addresses are asked again */ };

struct client_remote {
    char *urls, *ca, *cert;
    uint32_t n, now;  /* addresses, and which one is dialed */
    uint32_t in_vain; /* dials since one was reached */
    msec dialed_at;
    msec asked_at; /* all of them, when the leader's storage was away; 0 = never */
};

const char client_remote_silence[] =
    "does not answer: no daemon listens there, the network drops it, or one side refuses the "
    "other's certificate (expired, of another authority, not for this host name)";

void client_remote_free(struct bt_client *c)
{
    if (c->remote != NULL) {
        free(c->remote->urls);
        free(c->remote->ca);
        free(c->remote->cert);
        free(c->remote);
    }
}

void client_remote_next(struct bt_client *c)
{
    struct client_remote *r = c->remote;

    if (r != NULL && r->n > 1) {
        r->now = (r->now + 1) % r->n;
        r->in_vain++;
        r->dialed_at = 0;
    }
}

bool client_remote_several(const struct bt_client *c)
{
    return c->remote != NULL && c->remote->n > 1;
}

uint32_t client_remote_others(const struct bt_client *c)
{
    const struct client_remote *r = c->remote;

    return r == NULL || (r->asked_at != 0 && clock_mono_ms() - r->asked_at < ASKED_MS) ? 0
                                                                                       : r->n - 1;
}

void client_remote_none_leads(struct bt_client *c)
{
    c->remote->asked_at = clock_mono_ms();
}

/* Only the daemon that leads listens: one that does not answer soon is left for the next one. */
bool client_remote_is_late(const struct bt_client *c)
{
    struct client_remote *r = c->remote;

    if (r != NULL && c->lane != NULL && link_lane_is_up(c->lane)) {
        r->in_vain = 0;
    }
    return r != NULL && r->n > 1 && c->lane != NULL && !link_lane_is_up(c->lane) &&
           clock_mono_ms() - r->dialed_at >= seeds_patience(r->in_vain, r->n);
}

enum bt_code client_remote_dial(struct bt_client *c, struct bt_error *err)
{
    struct client_remote *r = c->remote;
    const struct link_limits limits = {
        .recv_max = LIMIT_STEP_BYTES, .ca_file = r->ca, .cert_file = r->cert};

    if (c->lane != NULL) {
        return BT_OK;
    }
    seeds_get(r->urls, r->now, c->at.control);
    r->dialed_at = clock_mono_ms();
    return link_lane_dial(c->link, c->at.control, &limits, c, &c->lane, err);
}

enum bt_code client_remote_like(const struct bt_client *from, const char *url, struct bt_client *to,
                                struct bt_error *err)
{
    struct client_remote *r = calloc(1, sizeof *r);

    if (r != NULL) {
        *r = (struct client_remote){.urls = strdup(url),
                                    .ca = strdup(from->remote->ca),
                                    .cert = strdup(from->remote->cert),
                                    .n = 1};
    }
    to->remote = r;
    if (r == NULL || r->urls == NULL || r->ca == NULL || r->cert == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a client");
    }
    return link_url_check(str_from(url), false, false, err);
}

static enum bt_code check(const struct bt_connection *to, uint32_t *ret_n, struct bt_error *err)
{
    char url[STATE_URL_MAX + 1];
    enum bt_code code = seeds_check(to->url != NULL ? to->url : "", ret_n, err);

    if (code == BT_OK && (to->credential == NULL || to->ca == NULL || to->cert == NULL)) {
        code = err_set(err, BT_INVALID,
                       "%s: needs a credential, a certificate with its key, and the authority of "
                       "the daemon's",
                       to->url);
    }
    for (uint32_t i = 0; i < *ret_n && code == BT_OK; i++) {
        seeds_get(to->url, i, url);
        code = link_url_check(str_from(url), false, false, err);
    }
    return code;
}

enum bt_code bt_client_connect(const struct bt_connection *to, struct bt_client **ret,
                               struct bt_error *err)
{
    struct client_remote *r = calloc(1, sizeof *r);
    struct bt_client *c = NULL;
    uint32_t n = 0;
    enum bt_code code = check(to, &n, err);

    code = code == BT_OK ? client_new(&c, err) : code;
    if (code == BT_OK && r != NULL) {
        *r = (struct client_remote){
            .urls = strdup(to->url), .ca = strdup(to->ca), .cert = strdup(to->cert), .n = n};
    }
    if (code == BT_OK && (r == NULL || r->urls == NULL || r->ca == NULL || r->cert == NULL)) {
        code = err_set(err, BT_NOMEM, "out of memory for a client");
    }
    if (c != NULL) {
        c->remote = r;
        r = NULL;
    }
    if (code == BT_OK) {
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
