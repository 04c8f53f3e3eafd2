#include "supervisor/gateway/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "protocol/base/log.h"
#include "supervisor/gateway/server_internal.h"
#include "supervisor/gateway/stream.h"

enum { SWEEP_MS = 250, DESCRIPTORS_OTHERS = 128 };

/* ---- connections ---- */

static void shut(struct conn *c)
{
    if (!c->shut) {
        c->shut = true; /* MHD sees the end, closes it and tells us */
        (void)shutdown(c->fd, SHUT_RDWR);
    }
}

/* Room for others: the connection that has been idle for longest ends. */
static void end_idlest(struct server *s)
{
    struct conn *idlest = NULL;

    for (struct conn *c = s->conns; c != NULL; c = c->next) {
        if (c->idle && !c->shut && (idlest == NULL || c->since < idlest->since)) {
            idlest = c;
        }
    }
    if (idlest != NULL) {
        shut(idlest);
    }
}

static void on_connection(void *self, struct MHD_Connection *mhd, void **slot,
                          enum MHD_ConnectionNotificationCode code)
{
    const int send_bytes = SERVER_SEND_BYTES;
    struct server *s = self;
    struct conn *c = *slot;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (c != NULL) {
            *(c->prev != NULL ? &c->prev->next : &s->conns) = c->next;
            if (c->next != NULL) {
                c->next->prev = c->prev;
            }
            s->conns_n--;
            free(c);
            *slot = NULL;
        }
        return;
    }
    c = calloc(1, sizeof *c);
    *slot = c;
    if (c == NULL) {
        return; /* its requests are refused */
    }
    c->s = s;
    c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    (void)setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);
    c->since = s->now;
    c->deadline = s->now + SERVER_HEAD_MS;
    c->idle = true;
    c->next = s->conns;
    if (c->next != NULL) {
        c->next->prev = c;
    }
    s->conns = c;
    if (++s->conns_n > s->conns_max / 4 * 3) {
        end_idlest(s);
    }
}

/* ---- requests ---- */

/* Called with the first line of a request: the target as it was sent. What it returns is the
 * request's own. */
static void *on_target(void *self, const char *target, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct conn *c = info != NULL ? info->socket_context : NULL;

    (void)self;
    if (c != NULL) {
        c->http = http_new(c, mhd, target);
    }
    return c != NULL ? c->http : NULL;
}

static void on_completed(void *self, struct MHD_Connection *mhd, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    struct server *s = self;
    struct http *h = *slot;

    (void)mhd;
    if (h != NULL) {
        h->broke = code != MHD_REQUEST_TERMINATED_COMPLETED_OK;
        h->conn->idle = true;
        h->conn->since = s->now;
        h->conn->deadline = s->now + SERVER_HEAD_MS;
        h->conn->http = NULL;
        http_free(h);
    }
    *slot = NULL;
}

static void add_cors(const struct http *h, struct MHD_Response *r)
{
    const char *origin = h->heads.origin;

    for (uint32_t i = 0; origin != NULL && i < h->s->opt->origins_n; i++) {
        if (strcmp(h->s->opt->origins[i], origin) != 0) {
            continue;
        }
        (void)MHD_add_response_header(r, "Access-Control-Allow-Origin", origin);
        (void)MHD_add_response_header(r, "Access-Control-Expose-Headers",
                                      "ETag, Link, Location, Retry-After");
        (void)MHD_add_response_header(r, "Access-Control-Allow-Methods",
                                      "GET, HEAD, POST, PUT, DELETE");
        (void)MHD_add_response_header(
            r, "Access-Control-Allow-Headers",
            "Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID");
    }
    (void)MHD_add_response_header(r, "Vary", "Origin");
}

static void add_headers(struct http *h, struct MHD_Response *r)
{
    char text[96] = "OPTIONS";

    if (h->type != NULL) {
        (void)MHD_add_response_header(r, "Content-Type", h->type);
    }
    if (h->unclear || h->closes) {
        (void)MHD_add_response_header(r, "Connection", "close");
    }
    (void)MHD_add_response_header(r, "Cache-Control",
                                  h->keep ? "public, max-age=31536000, immutable" : "no-store");
    (void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(r, "Content-Security-Policy",
                                  h->policy != NULL ? h->policy : "default-src 'none'");
    (void)MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    (void)MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
    (void)MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    if (h->status == 401) {
        (void)MHD_add_response_header(r, "WWW-Authenticate", "Bearer realm=\"baton\"");
    }
    if (h->cookie.len > 0) {
        (void)MHD_add_response_header(r, "Set-Cookie", buf_cstr(&h->cookie));
    }
    if (h->etag[0] != 0) {
        (void)MHD_add_response_header(r, "ETag", h->etag);
    }
    if (h->mcp_session[0] != 0) {
        (void)MHD_add_response_header(r, "Mcp-Session-Id", h->mcp_session);
    }
    if (h->link.len > 0) {
        (void)MHD_add_response_header(r, "Link", buf_cstr(&h->link));
    }
    if (h->location.len > 0) {
        (void)MHD_add_response_header(r, "Location", buf_cstr(&h->location));
    }
    for (int m = 0; h->allowed != 0 && m < HTTP_METHOD_COUNT; m++) {
        if ((h->allowed >> m & 1u) != 0) {
            (void)strncat(text, m == HTTP_GET ? ", GET, HEAD" : ", ",
                          sizeof text - strlen(text) - 1);
            (void)strncat(text, m == HTTP_GET ? "" : http_method_name((enum http_method)m),
                          sizeof text - strlen(text) - 1);
        }
    }
    if (h->allowed != 0) {
        (void)MHD_add_response_header(r, "Allow", text);
    }
    if (h->retry_after_s > 0) {
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)h->retry_after_s);
        (void)MHD_add_response_header(r, "Retry-After", text);
    }
    add_cors(h, r);
}

enum MHD_Result server_respond(struct http *h)
{
    struct MHD_Response *r;
    enum MHD_Result result;

    h->state = HTTP_ANSWERED;
    h->s->counts.requests[h->status / 100 % 6]++;
    h->conn->deadline = h->s->now + SERVER_SEND_MS;
    if (h->stream != NULL && !stream_is_quiet(h->stream) && !h->is_head && h->status == 200) {
        r = stream_response(h->stream);
        h->conn->deadline = MSEC_NEVER; /* whoever takes nothing is ended by MHD, or the ring */
    } else {
        size_t len = 0;
        void *bytes = buf_take(&h->out, &len);
        h->held = len;
        h->s->held += len;
        r = MHD_create_response_from_buffer(len, bytes == NULL ? (void *)h->etag : bytes,
                                            bytes == NULL ? MHD_RESPMEM_PERSISTENT
                                                          : MHD_RESPMEM_MUST_FREE);
        if (r == NULL) {
            free(bytes);
        }
    }
    if (r == NULL) {
        return MHD_NO;
    }
    add_headers(h, r);
    result = MHD_queue_response(h->mhd, h->status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result on_request(void *self, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_n, void **slot)
{
    struct server *s = self;
    struct http *h = *slot;

    (void)mhd;
    (void)url;
    (void)version;
    if (h == NULL) {
        return MHD_NO; /* out of memory */
    }
    if (h->state == HTTP_HEAD) {
        h->conn->idle = false;
        h->conn->deadline = s->now + SERVER_BODY_MS;
        http_head(h, method);
        if (h->state == HTTP_READY && http_drains(h)) {
            h->state = HTTP_DRAINS;
        }
        return h->state == HTTP_READY ? server_respond(h) : MHD_YES;
    }
    if (h->state == HTTP_DRAINS && *upload_n > 0) {
        *upload_n = 0;
        return MHD_YES;
    }
    if (h->state == HTTP_DRAINS) {
        h->state = HTTP_READY;
    }
    if (h->state == HTTP_BODY && *upload_n > 0) {
        http_body(h, upload, *upload_n);
        *upload_n = 0;
        return MHD_YES;
    }
    if (h->state == HTTP_BODY) {
        h->conn->deadline = MSEC_NEVER; /* the daemon's time has its own end */
        http_whole(h);
    }
    return h->state == HTTP_READY ? server_respond(h) : MHD_YES;
}

/* ---- the server ---- */

static void on_log(void *self, const char *format, va_list args) BT_PRINTF(2, 0);
static void on_log(void *self, const char *format, va_list args)
{
    char text[256];

    (void)self;
    (void)vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = 0;
    log_debug("gateway.http", "%s", text);
}

/* Addresses are decoded here, once. */
static size_t on_unescape(void *self, struct MHD_Connection *mhd, char *text)
{
    (void)self;
    (void)mhd;
    return strlen(text);
}

/* As many connections as descriptors allow: the soft limit becomes the hard one. */
static uint32_t connections_max(void)
{
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) != 0) {
        return 512;
    }
    lim.rlim_cur = lim.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &lim);
    (void)getrlimit(RLIMIT_NOFILE, &lim);
    if (lim.rlim_cur >= SERVER_CONNECTIONS_MAX + DESCRIPTORS_OTHERS + CALLERS_MAX * 2) {
        return SERVER_CONNECTIONS_MAX;
    }
    return lim.rlim_cur > 512 ? (uint32_t)lim.rlim_cur - 256 : 256;
}

static enum bt_code resolve(const struct options *o, uint16_t port, struct sockaddr_storage *ret,
                            bool *ret_v6, struct bt_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char service[8];
    int rc;

    (void)snprintf(service, sizeof service, "%u", port);
    rc = getaddrinfo(o->host, service, &hints, &found);
    if (rc != 0) {
        return err_set(err, BT_INVALID, "--listen %s: %s", o->host, gai_strerror(rc));
    }
    memcpy(ret, found->ai_addr, found->ai_addrlen);
    *ret_v6 = found->ai_family == AF_INET6;
    freeaddrinfo(found);
    return BT_OK;
}

static enum bt_code read_pem(const char *file, struct buf *out, struct bt_error *err)
{
    FILE *f = fopen(file, "r");
    char part[4096];
    size_t n;

    if (f == NULL) {
        return err_errno(err, errno, "--tls %s: it cannot be opened", file);
    }
    while ((n = fread(part, 1, sizeof part, f)) > 0) {
        buf_add(out, part, n);
    }
    (void)fclose(f);
    return buf_check(out, err);
}

static void start(struct server *s, const struct sockaddr_storage *at, bool v6, const char *pem)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)pem},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)pem},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};

    flags |= (v6 ? MHD_USE_IPv6 : 0u) | (pem != NULL ? MHD_USE_TLS : 0u);
    s->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, s,
        MHD_OPTION_SOCK_ADDR, at, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_URI_LOG_CALLBACK, on_target, s,
        MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, s, MHD_OPTION_CONNECTION_LIMIT, s->conns_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVER_CONNECTION_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SERVER_SILENT_S, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, pem != NULL ? tls : plain, MHD_OPTION_END);
}

enum bt_code server_new(const struct options *opt, uint16_t port, struct upstream *up,
                        const struct parts *parts, struct server **ret, struct bt_error *err)
{
    struct server *s = calloc(1, sizeof *s);
    struct sockaddr_storage at;
    struct buf pem;
    bool v6 = false;
    enum bt_code code;

    *ret = NULL;
    if (s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the server");
    }
    buf_init(&pem, 1024 * 1024);
    s->opt = opt;
    s->up = up;
    s->parts = *parts;
    s->conns_max = connections_max();
    code = resolve(opt, port, &at, &v6, err);
    if (code == BT_OK && opt->tls != NULL) {
        code = read_pem(opt->tls, &pem, err);
    }
    if (code == BT_OK) {
        start(s, &at, v6, opt->tls != NULL ? buf_cstr(&pem) : NULL);
        code =
            s->mhd != NULL
                ? BT_OK
                : err_set(err, BT_UNAVAILABLE,
                          "it cannot listen on %s port %u: the port is taken%s", opt->host, port,
                          opt->tls != NULL ? ", or the PEM file has no certificate and key" : "");
    }
    if (pem.len > 0) {
        explicit_bzero(pem.at, pem.len);
    }
    buf_done(&pem);
    if (code != BT_OK) {
        free(s);
        return code;
    }
    s->port = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_BIND_PORT)->port;
    *ret = s;
    return BT_OK;
}

uint16_t server_port(const struct server *s)
{
    return s->port;
}

int server_fd(const struct server *s)
{
    return MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

msec server_deadline(const struct server *s, msec now)
{
    MHD_UNSIGNED_LONG_LONG ms;
    msec deadline = s->conns_n > 0 ? now + SWEEP_MS : MSEC_NEVER;
    const msec streams = streams_deadline(s, now);

    if (MHD_get_timeout(s->mhd, &ms) == MHD_YES && now + (msec)ms < deadline) {
        deadline = now + (msec)ms;
    }
    return streams < deadline ? streams : deadline;
}

void server_begin(struct server *s, msec now)
{
    s->now = now;
}

void server_run(struct server *s, msec now)
{
    if (now - s->swept >= SWEEP_MS) {
        s->swept = now;
        for (struct conn *c = s->conns; c != NULL; c = c->next) {
            if (c->deadline <= now) {
                shut(c);
            }
        }
    }
    streams_run(s, now);
    (void)MHD_run(s->mhd);
}
