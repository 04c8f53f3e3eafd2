#include "supervisor/gateway/egress.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "supervisor/gateway/private.h"

struct egress_call {
    struct egress *of;
    CURL *easy;
    struct curl_slist *headers;
    struct buf body;
    char why[CURL_ERROR_SIZE];
    bool is_private; /* an address was refused */
    void (*done)(void *self, unsigned status, uint64_t retry_after_ms, const char *why);
    void *self;
};

struct egress {
    CURLM *multi;
    const struct private_list *listed; /* NULL: any address */
    int epoll;
    msec now, due; /* the time of curl itself */
    uint32_t calls_n;
};

/* ---- what curl wants to know ---- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *self, void *slot)
{
    struct egress *e = self;
    struct epoll_event ev = {.data.fd = fd};

    (void)easy;
    (void)slot;
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(e->epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    ev.events |= (what & CURL_POLL_IN) != 0 ? EPOLLIN : 0u;
    ev.events |= (what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0u;
    if (epoll_ctl(e->epoll, EPOLL_CTL_MOD, fd, &ev) != 0) {
        (void)epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &ev);
    }
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *self)
{
    struct egress *e = self;

    (void)multi;
    e->due = ms < 0 ? MSEC_NEVER : e->now + (msec)ms;
    return 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *self)
{
    (void)bytes;
    (void)self;
    return size * n;
}

/* The address that is connected to, whatever the name was resolved to before. */
static curl_socket_t on_open(void *self, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct egress_call *c = self;

    (void)purpose;
    if (!private_allows(c->of->listed, &to->addr)) {
        c->is_private = true;
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

enum bt_code egress_new(const struct private_list *listed, struct egress **ret,
                        struct bt_error *err)
{
    struct egress *e = calloc(1, sizeof *e);

    *ret = NULL;
    if (e != NULL) {
        e->epoll = epoll_create1(EPOLL_CLOEXEC);
        e->multi = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : NULL;
        e->due = MSEC_NEVER;
        e->listed = listed;
    }
    if (e == NULL || e->epoll < 0 || e->multi == NULL) {
        free(e);
        return err_set(err, BT_NOMEM, "out of memory for outgoing requests");
    }
    (void)curl_multi_setopt(e->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)curl_multi_setopt(e->multi, CURLMOPT_SOCKETDATA, e);
    (void)curl_multi_setopt(e->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    (void)curl_multi_setopt(e->multi, CURLMOPT_TIMERDATA, e);
    *ret = e;
    return BT_OK;
}

static void call_free(struct egress_call *c)
{
    if (c->easy != NULL) {
        curl_easy_cleanup(c->easy);
    }
    curl_slist_free_all(c->headers);
    buf_done(&c->body);
    free(c);
}

static bool add_headers(struct egress_call *c, const struct egress_spec *spec)
{
    for (int i = 0; i < EGRESS_HEADERS_MAX && spec->headers[i] != NULL; i++) {
        struct curl_slist *more = curl_slist_append(c->headers, spec->headers[i]);
        if (more == NULL) {
            return false;
        }
        c->headers = more;
    }
    return true;
}

/* No redirects, because a signature is for one address; no other protocols. */
static bool set_up(struct egress_call *c, const struct egress_spec *spec)
{
    CURL *easy = c->easy;

    return curl_easy_setopt(easy, CURLOPT_URL, spec->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_POSTFIELDS, (const char *)c->body.at) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.len) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)spec->timeout_ms) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->why) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, "baton-gateway/" BATON_VERSION) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PRIVATE, c) == CURLE_OK;
}

/* A proxy would connect in our place. */
static bool guard(struct egress_call *c)
{
    return curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETFUNCTION, on_open) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETDATA, c) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_PROXY, "") == CURLE_OK;
}

enum bt_code egress_post(struct egress *e, const struct egress_spec *spec, struct bt_error *err)
{
    struct egress_call *c = e->calls_n < EGRESS_CALLS_MAX ? calloc(1, sizeof *c) : NULL;

    if (c == NULL) {
        return err_set(err, BT_BUSY, "too many outgoing requests wait for their answers");
    }
    buf_init(&c->body, spec->body.len + 1);
    buf_add_str(&c->body, spec->body);
    (void)buf_cstr(&c->body);
    c->of = e;
    c->done = spec->done;
    c->self = spec->self;
    c->easy = curl_easy_init();
    if (c->easy == NULL || !add_headers(c, spec) || buf_check(&c->body, NULL) != BT_OK ||
        !set_up(c, spec) || (e->listed != NULL && !guard(c)) ||
        curl_multi_add_handle(e->multi, c->easy) != CURLM_OK) {
        call_free(c);
        return err_set(err, BT_INVALID, "a request to %.200s cannot be sent", spec->url);
    }
    e->calls_n++;
    return BT_OK;
}

int egress_fd(const struct egress *e)
{
    return e->epoll;
}

static void finish(struct egress *e, CURL *easy, CURLcode result)
{
    struct egress_call *c = NULL;
    curl_off_t retry_s = 0;
    long status = 0;

    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &c);
    (void)curl_multi_remove_handle(e->multi, easy);
    if (result == CURLE_OK) {
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        (void)curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_s);
    } else if (c->is_private) {
        (void)snprintf(c->why, sizeof c->why,
                       "its address is private, and gateway.private (--private) does not list it");
    } else if (c->why[0] == 0) {
        (void)snprintf(c->why, sizeof c->why, "%s", curl_easy_strerror(result));
    }
    e->calls_n--;
    c->done(c->self, (unsigned)status, retry_s > 0 ? (uint64_t)retry_s * 1000 : 0, c->why);
    call_free(c);
}

void egress_run(struct egress *e, msec now)
{
    struct epoll_event evs[64];
    CURLMsg *m;
    int left;
    const int n = epoll_wait(e->epoll, evs, 64, 0);

    e->now = now;
    for (int i = 0; i < n; i++) {
        const int what = ((evs[i].events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                         ((evs[i].events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                         ((evs[i].events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);
        (void)curl_multi_socket_action(e->multi, evs[i].data.fd, what, &left);
    }
    if (e->due <= now) {
        e->due = MSEC_NEVER;
        (void)curl_multi_socket_action(e->multi, CURL_SOCKET_TIMEOUT, 0, &left);
    }
    while ((m = curl_multi_info_read(e->multi, &left)) != NULL) {
        if (m->msg == CURLMSG_DONE) {
            finish(e, m->easy_handle, m->data.result);
        }
    }
}

msec egress_deadline(const struct egress *e)
{
    return e->due;
}
