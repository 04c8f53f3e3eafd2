/* The options of every endpoint before it starts; dialing, listening, and replacing stale dialers.
 */
#include <nng/nng.h>

#include <errno.h>
#include <nng/supplemental/tls/tls.h> /* needs nng.h before it */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/link/link_internal.h"

enum bt_code endpoint_error(struct bt_error *err, int rv, const char *what, const char *url)
{
    enum bt_code code = BT_IO;
    switch (rv) {
    case NNG_ENOMEM:
        code = BT_NOMEM;
        break;
    case NNG_EADDRINUSE:
        code = BT_CONFLICT;
        break;
    case NNG_ECRYPTO:
    case NNG_EPEERAUTH:
    case NNG_EADDRINVAL:
    case NNG_EINVAL:
    case NNG_ENOTSUP:
        code = BT_INVALID;
        break;
    default:
        break;
    }
    return err_set(err, code, "%s %s: %s", url, what, nng_strerror(rv));
}

static bool url_is(const char *url, const char *scheme)
{
    return strncmp(url, scheme, strlen(scheme)) == 0;
}

bool endpoint_is_ipc(const struct endpoint *e)
{
    return url_is(e->url, "ipc:");
}

bool endpoint_is_tls(const struct endpoint *e)
{
    return url_is(e->url, "tls+tcp:");
}

/* nng says "Cryptographic error" of each of these. */
static enum bt_code file_check(const char *url, const char *path, bool is_key, struct bt_error *err)
{
    struct stat st;

    if (stat(path, &st) != 0 || access(path, R_OK) != 0) {
        return err_errno(err, errno, "%s: %s", url, path);
    }
    if (is_key && (st.st_mode & 077) != 0) {
        return err_set(err, BT_UNAUTHORIZED,
                       "%s: others may read or write the key in %s; run chmod 600 %s", url, path,
                       path);
    }
    return BT_OK;
}

static enum bt_code files_check(const struct endpoint *e, const struct link_limits *lim,
                                struct bt_error *err)
{
    enum bt_code code = lim->ca_file == NULL ? BT_OK : file_check(e->url, lim->ca_file, false, err);

    return code != BT_OK || lim->cert_file == NULL ? code
                                                   : file_check(e->url, lim->cert_file, true, err);
}

enum bt_code endpoint_init(struct endpoint *e, const char *url, const struct link_limits *lim,
                           bool listen, struct bt_error *err)
{
    const struct str text = str_from(url);
    if (lim->recv_max == 0) {
        return err_set(err, BT_INVALID, "%s: recv_max must not be 0 (nng takes it for unlimited)",
                       url);
    }
    if (text.len >= sizeof e->url) {
        return err_set(err, BT_LIMIT, "an address may have %zu bytes, this one has %zu",
                       sizeof e->url - 1, text.len);
    }
    const enum bt_code code = link_url_check(text, false, listen, err);
    if (code != BT_OK) {
        return code;
    }
    memcpy(e->url, text.ptr, text.len + 1);
    e->recv_max = lim->recv_max;
    if (endpoint_is_tls(e) && listen && lim->cert_file == NULL) {
        return err_set(err, BT_INVALID, "%s: listening with TLS needs a certificate (cert_file)",
                       url);
    }
    if (endpoint_is_tls(e) && !listen && lim->ca_file == NULL) {
        return err_set(err, BT_INVALID,
                       "%s: dialing with TLS needs the authority's certificate (ca_file)", url);
    }
    if (endpoint_is_tls(e)) {
        const enum bt_code files = files_check(e, lim, err);
        if (files != BT_OK) {
            return files;
        }
        alive_start();
        e->ca_file = lim->ca_file == NULL ? NULL : strdup(lim->ca_file);
        e->cert_file = lim->cert_file == NULL ? NULL : strdup(lim->cert_file);
        if ((lim->ca_file != NULL && e->ca_file == NULL) ||
            (lim->cert_file != NULL && e->cert_file == NULL)) {
            return err_set(err, BT_NOMEM, "%s: no memory for the certificate's path", url);
        }
    }
    return BT_OK;
}

void endpoint_done(struct endpoint *e)
{
    free(e->ca_file);
    free(e->cert_file);
    e->ca_file = NULL;
    e->cert_file = NULL;
}

static int dialer_options(const struct endpoint *e, nng_dialer d)
{
    int rv = nng_dialer_set_size(d, NNG_OPT_RECVMAXSZ, e->recv_max + LINK_HEADER_ROOM);
    if (rv == 0 && !endpoint_is_ipc(e)) {
        rv = nng_dialer_set_bool(d, NNG_OPT_TCP_KEEPALIVE, true);
    }
    if (rv == 0 && endpoint_is_tls(e)) {
        rv = nng_dialer_set_string(d, NNG_OPT_TLS_CA_FILE, e->ca_file);
        if (rv == 0 && e->cert_file != NULL) {
            rv = nng_dialer_set_string(d, NNG_OPT_TLS_CERT_KEY_FILE, e->cert_file);
        }
    }
    return rv;
}

enum bt_code endpoint_dial(struct endpoint *e, nng_dialer *ret_dialer, struct bt_error *err)
{
    int rv = nng_dialer_create(ret_dialer, e->socket, e->url);
    if (rv != 0) {
        return endpoint_error(err, rv, "cannot be dialed", e->url);
    }
    rv = dialer_options(e, *ret_dialer);
    if (rv == 0) {
        rv = nng_dialer_start(*ret_dialer, NNG_FLAG_NONBLOCK);
    }
    if (rv != 0) {
        (void)nng_dialer_close(*ret_dialer);
        return endpoint_error(err, rv, "cannot be dialed", e->url);
    }
    return BT_OK;
}

static int listener_options(const struct endpoint *e, nng_listener l)
{
    int rv = nng_listener_set_size(l, NNG_OPT_RECVMAXSZ, e->recv_max + LINK_HEADER_ROOM);
    if (rv == 0 && endpoint_is_ipc(e)) {
        rv = nng_listener_set_int(l, NNG_OPT_IPC_PERMISSIONS, 0600);
    } else if (rv == 0) {
        rv = nng_listener_set_bool(l, NNG_OPT_TCP_KEEPALIVE, true);
    }
    if (rv == 0 && endpoint_is_tls(e)) {
        rv = nng_listener_set_string(l, NNG_OPT_TLS_CERT_KEY_FILE, e->cert_file);
        if (rv == 0 && e->ca_file != NULL) {
            rv = nng_listener_set_string(l, NNG_OPT_TLS_CA_FILE, e->ca_file);
        }
        if (rv == 0 && e->ca_file != NULL) {
            rv = nng_listener_set_int(l, NNG_OPT_TLS_AUTH_MODE, NNG_TLS_AUTH_MODE_REQUIRED);
        }
    }
    return rv;
}

/* Puts the port that the system chose into the URL. */
static int read_bound_port(struct endpoint *e, nng_listener l)
{
    int port = 0;
    const int rv = nng_listener_get_int(l, NNG_OPT_TCP_BOUND_PORT, &port);
    if (rv == 0) {
        char *colon = strrchr(e->url, ':');
        (void)snprintf(colon + 1, sizeof e->url - (size_t)(colon + 1 - e->url), "%d", port);
    }
    return rv;
}

enum bt_code endpoint_listen(struct endpoint *e, nng_listener *ret_listener, struct bt_error *err)
{
    int rv = nng_listener_create(ret_listener, e->socket, e->url);
    if (rv != 0) {
        return endpoint_error(err, rv, "cannot be listened on", e->url);
    }
    rv = listener_options(e, *ret_listener);
    if (rv == 0) {
        rv = nng_listener_start(*ret_listener, 0);
    }
    if (rv == 0 && !endpoint_is_ipc(e)) {
        rv = read_bound_port(e, *ret_listener);
    }
    if (rv != 0) {
        (void)nng_listener_close(*ret_listener);
        return endpoint_error(err, rv, "cannot be listened on", e->url);
    }
    return BT_OK;
}

/* Checks fall on whole periods, so the helper checks thousands of lanes in one pass. */
static msec next_check(void)
{
    return (clock_mono_ms() / LINK_REDIAL_CHECK_MS + 1) * LINK_REDIAL_CHECK_MS;
}

static msec redial_run(struct helper_task *task)
{
    struct redial *r = CONTAINER_OF(task, struct redial, task);
    const msec now = clock_mono_ms();
    if (!pipe_track_empty(r->track)) {
        r->down_since = now;
    } else if (now - r->down_since >= LINK_REDIAL_STALE_MS && pipe_track_pause(r->track)) {
        struct bt_error err;
        (void)nng_dialer_close(r->dialer); /* it has no pipe and can get none now, so there is no
                                              traffic to wedge (N1) */
        if (endpoint_dial(r->endpoint, &r->dialer, &err) != BT_OK) {
            log_warn("link.redial_failed", "error=\"%s\"", err.msg);
        }
        pipe_track_resume(r->track);
        r->down_since = now;
    }
    return next_check();
}

enum bt_code redial_start(struct redial *r, struct endpoint *e, struct pipe_track *t,
                          struct bt_error *err)
{
    const enum bt_code code = endpoint_dial(e, &r->dialer, err);
    if (code != BT_OK) {
        return code;
    }
    r->task.run = redial_run;
    r->endpoint = e;
    r->track = t;
    r->down_since = clock_mono_ms();
    helper_submit(&r->task, next_check());
    return BT_OK;
}

bool redial_is_settling(const struct redial *r, msec now)
{
    return r->endpoint != NULL && pipe_track_empty(r->track) &&
           now - r->down_since < LINK_DIAL_SETTLE_MS;
}

void redial_stop(struct redial *r)
{
    if (r->endpoint != NULL) {
        helper_cancel(&r->task);
    }
}
