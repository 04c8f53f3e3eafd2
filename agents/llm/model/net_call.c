/* One transfer: its options, its callbacks, its result as a code. */
#include "agents/llm/model/net_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agents/web/url.h"
#include "protocol/base/clock.h"

enum { HEADER_BYTES_MAX = 64 * 1024 };

/* ---- callbacks, on the net thread ---- */

static size_t on_body(char *at, size_t size, size_t n, void *self)
{
    struct net_call *c = self;
    struct str bytes = {at, size * n};

    c->last_byte_at = clock_mono_ms();
    c->answer->bytes += bytes.len;
    if (c->answer->bytes > c->spec->max_bytes) {
        c->end_reason = NET_TOO_MUCH;
        return CURL_WRITEFUNC_ERROR;
    }
    if (!c->spec->on_bytes(c->spec->self, c->answer->status, bytes)) {
        c->end_reason = NET_ENOUGH;
        return CURL_WRITEFUNC_ERROR;
    }
    return bytes.len;
}

static void keep_field(struct str line, const char *name, char ret[NET_FIELD_MAX])
{
    size_t n = strlen(name);
    size_t out = 0;

    if (line.len <= n || line.ptr[n] != ':' || strncasecmp(line.ptr, name, n) != 0) {
        return;
    }
    line = (struct str){line.ptr + n + 1, line.len - n - 1};
    while (line.len > 0 && (line.ptr[0] == ' ' || line.ptr[0] == '\t')) {
        line = (struct str){line.ptr + 1, line.len - 1};
    }
    for (; out < line.len && out < NET_FIELD_MAX - 1; out++) {
        if (line.ptr[out] < ' ' || line.ptr[out] > '~') {
            break;
        }
        ret[out] = line.ptr[out];
    }
    ret[out] = 0;
}

static void read_status(struct net_call *c, struct str line)
{
    const char *space = memchr(line.ptr, ' ', line.len);
    long status = 0;

    if (line.len < 5 || memcmp(line.ptr, "HTTP/", 5) != 0 || space == NULL) {
        return;
    }
    for (const char *p = space + 1; p < line.ptr + line.len && *p >= '0' && *p <= '9'; p++) {
        status = status * 10 + (*p - '0');
        if (status > 999) {
            return;
        }
    }
    /* A new response (after 100, or from a proxy): drops the headers of the one before. */
    *c->answer = (struct net_answer){.status = status};
}

static size_t on_header(char *at, size_t size, size_t n, void *self)
{
    struct net_call *c = self;
    struct str line = {at, size * n};

    c->last_byte_at = clock_mono_ms();
    c->header_bytes += line.len;
    if (c->header_bytes > HEADER_BYTES_MAX) {
        c->end_reason = NET_LONG_HEADERS;
        return 0;
    }
    read_status(c, line);
    keep_field(line, "retry-after", c->answer->retry_after);
    keep_field(line, "retry-after-ms", c->answer->retry_after_ms);
    keep_field(line, "x-should-retry", c->answer->should_retry);
    keep_field(line, "x-request-id", c->answer->request_id);
    keep_field(line, "request-id", c->answer->request_id);
    return line.len;
}

static curl_socket_t on_socket(void *self, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct net_call *c = self;

    (void)purpose;
    /* The proxy's address comes from the settings; any address is allowed. */
    if (!url_address_allowed(&a->addr, c->spec->loopback_only && c->spec->proxy == NULL)) {
        c->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* ---- the handle ---- */

/* Never gets values with a special meaning in curl's header list ("Name;", "Name:"): the
 * configuration has checked the names, and a key has no spaces. */
static bool add_header(struct net_call *c, const char *line)
{
    struct curl_slist *longer = curl_slist_append(c->headers, line);

    c->headers = longer != NULL ? longer : c->headers;
    return longer != NULL;
}

static bool make_headers(struct net_call *c)
{
    const struct net_spec *s = c->spec;
    bool ok = add_header(c, "Content-Type: application/json") &&
              add_header(c, "Accept: application/json, text/event-stream") &&
              add_header(c, "Expect:");
    struct buf line;

    for (uint32_t i = 0; ok && s->headers[i] != NULL; i++) {
        ok = add_header(c, s->headers[i]);
    }
    if (ok && s->key != NULL) {
        buf_init(&line, 8192);
        buf_printf(&line, "%s: %s%s", s->key_header, s->key_prefix, s->key);
        ok = line.bad == BT_OK && add_header(c, buf_cstr(&line));
        explicit_bzero(line.at, line.cap);
        buf_done(&line);
    }
    return ok;
}

static bool set_limits(struct net_call *c, msec now)
{
    const struct net_spec *s = c->spec;
    msec left = s->deadline > now ? s->deadline - now : 1;
    CURL *e = c->easy;

    left = left > 3600 * 1000 ? 3600 * 1000 : left;
    return curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)left) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)s->connect_ms) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_PROXY, s->proxy != NULL ? s->proxy : "") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip, deflate") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
           (s->ca_file == NULL || curl_easy_setopt(e, CURLOPT_CAINFO, s->ca_file) == CURLE_OK) &&
           (s->unix_socket == NULL ||
            curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, s->unix_socket) == CURLE_OK);
}

static bool set_rest(struct net_call *c)
{
    const struct net_spec *s = c->spec;
    CURL *e = c->easy;

    return curl_easy_setopt(e, CURLOPT_URL, s->url) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_POSTFIELDS, s->body.ptr) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)s->body.len) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_USERAGENT, "baton/" BATON_VERSION) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->reason) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_WRITEDATA, c) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_HEADERDATA, c) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_socket) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, c) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_PRIVATE, c) == CURLE_OK;
}

enum bt_code net_call_init(struct net_call *c, const struct net_spec *spec,
                           struct net_answer *answer, struct bt_error *err)
{
    msec now = clock_mono_ms();

    *answer = (struct net_answer){0};
    *c = (struct net_call){
        .spec = spec, .answer = answer, .easy = curl_easy_init(), .last_byte_at = now};
    if (c->easy == NULL || !make_headers(c) || !set_limits(c, now) || !set_rest(c)) {
        net_call_done(c);
        return err_set(err, BT_NOMEM, "the HTTP client refused the call's options");
    }
    return BT_OK;
}

void net_call_done(struct net_call *c)
{
    for (struct curl_slist *h = c->headers; h != NULL; h = h->next) {
        explicit_bzero(h->data, strlen(h->data));
    }
    curl_slist_free_all(c->headers);
    curl_easy_cleanup(c->easy);
    c->headers = NULL;
    c->easy = NULL;
}

/* ---- the result ---- */

/* OpenSSL's own words are in its code's words: "error:0A00010B:SSL routines::wrong version number".
 */
static const char *plain_words(const char *why)
{
    const char *last = why;

    for (const char *at = strstr(why, "::"); at != NULL; at = strstr(at + 2, "::")) {
        last = at + 2;
    }
    return last;
}

/* What a mistake of the settings looks like: an address without TLS, an unknown authority, no file
 * of authorities. */
static enum bt_code tls_verdict(const struct net_call *c, const char *why, struct bt_error *err)
{
    switch ((int)c->result) {
    case CURLE_SSL_CONNECT_ERROR:
        return err_set(err, BT_UNAVAILABLE,
                       "TLS could not be agreed on: %s; a server without TLS has an http:// "
                       "address",
                       plain_words(why));
    case CURLE_PEER_FAILED_VERIFICATION:
        return err_set(err, BT_INVALID,
                       "the server's certificate is refused: %s; caFile names an authority of "
                       "your own",
                       plain_words(why));
    case CURLE_SSL_CACERT_BADFILE:
        return err_set(err, BT_INVALID, "caFile or the system's authorities cannot be read: %s",
                       plain_words(why));
    default:
        return err_set(err, BT_UNAVAILABLE, "%s", why);
    }
}

enum bt_code net_call_verdict(const struct net_call *c, struct bt_error *err)
{
    const char *why = c->reason[0] != 0 ? c->reason : curl_easy_strerror(c->result);

    switch (c->end_reason) {
    case NET_ENOUGH:
        return BT_OK;
    case NET_TOO_MUCH:
        return err_set(err, BT_LIMIT, "the answer has more than %zu bytes", c->spec->max_bytes);
    case NET_LONG_HEADERS:
        return err_set(err, BT_LIMIT, "the headers of the answer have more than %d bytes",
                       HEADER_BYTES_MAX);
    case NET_IDLE:
        return err_set(err, BT_TIMEOUT, "silence for %llu ms",
                       (unsigned long long)c->spec->idle_ms);
    case NET_LATE:
        return err_set(err, BT_TIMEOUT, "no complete answer in time");
    case NET_STOPPED:
        return err_set(err, BT_CANCELLED, "stopped on request");
    case NET_RUNNING:
        break;
    }
    if (c->result == CURLE_OK) {
        return BT_OK;
    }
    if (c->refused) {
        return err_set(err, BT_INVALID,
                       "the name leads to an address that may not be called (http: this machine "
                       "only)");
    }
    if (c->result == CURLE_OPERATION_TIMEDOUT) {
        return err_set(err, BT_TIMEOUT, "no complete answer in time: %s", why);
    }
    if (c->result == CURLE_OUT_OF_MEMORY) {
        return err_set(err, BT_NOMEM, "out of memory for a call");
    }
    if (c->result == CURLE_URL_MALFORMAT || c->result == CURLE_UNSUPPORTED_PROTOCOL) {
        return err_set(err, BT_INVALID, "%s", why);
    }
    return tls_verdict(c, why, err);
}
