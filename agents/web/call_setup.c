/* The options of a request, and what curl calls back. */
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agents/web/address.h"
#include "agents/web/call_internal.h"
#include "protocol/base/clock.h"

#define CONNECT_MS 10000L

/* ---- what curl calls back ---- */

static size_t on_body(char *at, size_t size, size_t n, void *self)
{
    struct exchange *x = self;
    const struct str bytes = {at, size * n};
    const bool pass = x->request->take != NULL && x->response->status < 300;

    x->last_byte = clock_mono_ms();
    x->taken += bytes.len;
    if (x->taken > x->request->max_bytes) {
        x->end = WEB_TOO_MUCH;
        return CURL_WRITEFUNC_ERROR;
    }
    if (pass && !x->request->take(x->request->self, bytes)) {
        x->end = WEB_STOPPED;
        return CURL_WRITEFUNC_ERROR;
    }
    if (!pass) {
        buf_add_str(&x->response->body, bytes);
    }
    return x->response->body.bad == BT_OK ? bytes.len : CURL_WRITEFUNC_ERROR;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* "Name: value\r\n" becomes "name: value\n". */
static void keep_header(struct buf *out, struct str line)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    struct str value;

    if (colon == NULL || colon == line.ptr) {
        return;
    }
    value = str_trimmed((struct str){colon + 1, line.len - (size_t)(colon + 1 - line.ptr)});
    for (const char *p = line.ptr; p < colon; p++) {
        buf_add_byte(out, (uint8_t)lower(*p));
    }
    buf_add_cstr(out, ": ");
    (void)buf_add_repaired(out, value);
    buf_add_byte(out, '\n');
}

static long status_of(struct str line)
{
    const char *space = memchr(line.ptr, ' ', line.len);
    long status = 0;

    for (const char *p = space; p != NULL && ++p < line.ptr + line.len && *p >= '0' && *p <= '9';) {
        status = status * 10 + (*p - '0');
        if (status > 999) {
            return 0;
        }
    }
    return status;
}

static size_t on_header(char *at, size_t size, size_t n, void *self)
{
    struct exchange *x = self;
    const struct str line = {at, size * n};

    x->last_byte = clock_mono_ms();
    if (line.len > 5 && memcmp(line.ptr, "HTTP/", 5) == 0) {
        /* A new answer, after 100 Continue: what the one before had does not count. */
        x->response->status = status_of(line);
        buf_clear(&x->response->headers);
        return line.len;
    }
    keep_header(&x->response->headers, line);
    if (x->response->headers.bad != BT_OK) {
        x->end = WEB_LONG_HEADERS;
        return 0;
    }
    return line.len;
}

static curl_socket_t on_socket(void *self, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct exchange *x = self;

    (void)purpose;
    if (!address_allowed(&a->addr, x->policy->addresses)) {
        x->end = WEB_REFUSED;
        return CURL_SOCKET_BAD;
    }
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static int on_progress(void *self, curl_off_t down, curl_off_t down_now, curl_off_t up,
                       curl_off_t up_now)
{
    struct exchange *x = self;
    const struct web_request *r = x->request;

    (void)down;
    (void)down_now;
    (void)up;
    (void)up_now;
    if (r->cancelled != NULL && r->cancelled(r->self)) {
        x->end = WEB_STOPPED;
    } else if (r->idle_ms > 0 && clock_mono_ms() - x->last_byte > r->idle_ms) {
        x->end = WEB_IDLE;
    }
    return x->end == WEB_STOPPED || x->end == WEB_IDLE;
}

/* ---- options ---- */

static bool add_header(struct exchange *x, const char *line)
{
    struct curl_slist *longer = curl_slist_append(x->headers, line);

    x->headers = longer != NULL ? longer : x->headers;
    return longer != NULL;
}

static bool set_headers(struct exchange *x)
{
    const struct web_request *r = x->request;
    bool ok = add_header(x, "Expect:");

    for (size_t i = 0; ok && r->headers != NULL && r->headers[i] != NULL; i++) {
        const bool about_body = strncasecmp(r->headers[i], "content-", 8) == 0;
        ok = (about_body && !x->with_body) || add_header(x, r->headers[i]);
    }
    for (size_t i = 0;
         ok && x->with_secrets && r->secret_headers != NULL && r->secret_headers[i] != NULL; i++) {
        ok = add_header(x, r->secret_headers[i]);
    }
    return ok && curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers) == CURLE_OK;
}

static bool set_bounds(struct exchange *x)
{
    const msec now = clock_mono_ms();
    const msec left = x->deadline > now ? x->deadline - now : 1;
    CURL *e = x->easy;

    return curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)left) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip, deflate") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
           (x->policy->ca_file == NULL ||
            curl_easy_setopt(e, CURLOPT_CAINFO, x->policy->ca_file) == CURLE_OK);
}

static bool set_request(struct exchange *x)
{
    const struct web_request *r = x->request;
    CURL *e = x->easy;
    bool ok = curl_easy_setopt(e, CURLOPT_URL, x->url) == CURLE_OK;

    if (strcmp(x->method, "HEAD") == 0) {
        return ok && curl_easy_setopt(e, CURLOPT_NOBODY, 1L) == CURLE_OK;
    }
    if (x->with_body) {
        ok = ok && curl_easy_setopt(e, CURLOPT_POST, 1L) == CURLE_OK &&
             curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->body.ptr) == CURLE_OK &&
             curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len) == CURLE_OK;
    }
    return ok && curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, x->method) == CURLE_OK;
}

static bool set_callbacks(struct exchange *x)
{
    CURL *e = x->easy;

    return curl_easy_setopt(e, CURLOPT_USERAGENT, "baton/" BATON_VERSION) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->reason) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_WRITEDATA, x) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_HEADERDATA, x) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_socket) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, x) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_XFERINFODATA, x) == CURLE_OK;
}

enum bt_code exchange_setup(struct exchange *x, struct bt_error *err)
{
    x->easy = curl_easy_init();
    x->last_byte = clock_mono_ms();
    if (x->easy == NULL || !set_request(x) || !set_bounds(x) || !set_callbacks(x) ||
        !set_headers(x)) {
        return err_set(err, BT_NOMEM, "the HTTP client refused the options of a call");
    }
    return BT_OK;
}

void exchange_done(struct exchange *x)
{
    for (struct curl_slist *h = x->headers; h != NULL; h = h->next) {
        explicit_bzero(h->data, strlen(h->data));
    }
    curl_slist_free_all(x->headers);
    curl_easy_cleanup(x->easy);
    x->headers = NULL;
    x->easy = NULL;
}
