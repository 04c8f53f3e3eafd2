#include "tests/unit/agents/service.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWERS_MAX = 256, PATHS_MAX = 16, LIVE_MAX = 64, REQUEST_MAX = 4 * 1024 * 1024 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pthread_t listener;
    int fd;
    char url[64];
    struct {
        struct buf bytes;
        enum service_end end;
    } answers[ANSWERS_MAX];
    size_t answers_n, answered;
    struct {
        const char *path, *headers, *body;
        int status;
    } paths[PATHS_MAX];
    size_t paths_n;
    struct buf asked[ANSWERS_MAX];
    size_t asked_n;
    int live[LIVE_MAX];
    size_t live_n;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER, .fd = -1};

static struct buf texts[2];
static unsigned texts_n;

static void put_answer(struct buf *out, int status, const char *headers, const char *body)
{
    buf_printf(out, "HTTP/1.1 %d x\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
               headers, strlen(body));
    buf_add_cstr(out, body);
}

/* The length of the request, as far as it is known. */
static size_t wanted(const struct buf *b)
{
    const char *text = (const char *)b->at;
    const char *end = b->len == 0 ? NULL : memmem(text, b->len, "\r\n\r\n", 4);
    const char *length;

    if (end == NULL) {
        return SIZE_MAX;
    }
    length = memmem(text, b->len, "Content-Length: ", 16);
    return (size_t)(end + 4 - text) +
           (length != NULL && length < end ? strtoul(length + 16, NULL, 10) : 0);
}

static bool read_request(int fd, struct buf *request)
{
    char block[65536];

    while (request->len < wanted(request)) {
        const ssize_t n = read(fd, block, sizeof block);
        if (n <= 0) {
            return false;
        }
        buf_add(request, block, (size_t)n);
        if (memmem(request->at, request->len, "Expect: 100-continue", 20) != NULL) {
            return false; /* the clients of this tree do not ask for leave */
        }
    }
    return true;
}

/* Under the lock: what this request gets. */
static enum service_end choose(const char *request, struct buf *ret)
{
    const char *path = strchr(request, ' ') + 1;

    if (all.answered < all.answers_n) {
        const size_t i = all.answered++;
        buf_add_str(ret, buf_str(&all.answers[i].bytes));
        return all.answers[i].end;
    }
    for (size_t i = 0; i < all.paths_n; i++) {
        const size_t n = strlen(all.paths[i].path);
        if (strncmp(path, all.paths[i].path, n) == 0 && (path[n] == ' ' || path[n] == '?')) {
            put_answer(ret, all.paths[i].status, all.paths[i].headers, all.paths[i].body);
            return SERVICE_CLOSES;
        }
    }
    put_answer(ret, 599, "", "the test put up no answer");
    return SERVICE_CLOSES;
}

static void serve_one(int fd)
{
    struct buf request;
    struct buf answer;
    enum service_end end = SERVICE_CLOSES;
    char byte;

    buf_init(&request, REQUEST_MAX);
    buf_init(&answer, REQUEST_MAX);
    if (read_request(fd, &request)) {
        (void)pthread_mutex_lock(&all.lock);
        end = choose(buf_cstr(&request), &answer);
        if (all.asked_n < ANSWERS_MAX) {
            all.asked[all.asked_n++] = request;
            buf_init(&request, 1);
        }
        (void)pthread_mutex_unlock(&all.lock);
        for (size_t at = 0; at < answer.len;) {
            const ssize_t n = send(fd, answer.at + at, answer.len - at, MSG_NOSIGNAL);
            if (n <= 0) {
                break;
            }
            at += (size_t)n;
        }
        while (end == SERVICE_WAITS && read(fd, &byte, 1) > 0) {
        }
    }
    buf_done(&request);
    buf_done(&answer);
}

static void *serve(void *self)
{
    const int fd = (int)(intptr_t)self;

    serve_one(fd);
    (void)pthread_mutex_lock(&all.lock);
    for (size_t i = 0; i < all.live_n; i++) {
        if (all.live[i] == fd) {
            all.live[i] = all.live[--all.live_n];
            break;
        }
    }
    (void)close(fd);
    (void)pthread_cond_signal(&all.ended);
    (void)pthread_mutex_unlock(&all.lock);
    return NULL;
}

static void *listen_on(void *self)
{
    pthread_attr_t detached;
    int fd;

    (void)self;
    (void)pthread_attr_init(&detached);
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    while ((fd = accept4(all.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        pthread_t thread;
        bool ok;
        (void)pthread_mutex_lock(&all.lock);
        ok = all.live_n < LIVE_MAX &&
             pthread_create(&thread, &detached, serve, (void *)(intptr_t)fd) == 0;
        if (ok) {
            all.live[all.live_n++] = fd;
        } else {
            (void)close(fd);
        }
        (void)pthread_mutex_unlock(&all.lock);
    }
    (void)pthread_attr_destroy(&detached);
    return NULL;
}

int service_start(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;

    (void)state;
    all.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (all.fd < 0 || bind(all.fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(all.fd, 32) != 0 || getsockname(all.fd, (struct sockaddr *)&at, &n) != 0) {
        return -1;
    }
    (void)snprintf(all.url, sizeof all.url, "http://127.0.0.1:%d", ntohs(at.sin_port));
    return pthread_create(&all.listener, NULL, listen_on, NULL);
}

int service_stop(void **state)
{
    (void)state;
    (void)shutdown(all.fd, SHUT_RDWR);
    (void)pthread_join(all.listener, NULL);
    (void)close(all.fd);
    service_forget();
    buf_done(&texts[0]);
    buf_done(&texts[1]);
    return 0;
}

int service_port(void)
{
    return (int)strtol(strrchr(all.url, ':') + 1, NULL, 10);
}

const char *service_url(void)
{
    return all.url;
}

const char *service_text(const char *text)
{
    struct buf *b = &texts[texts_n ^= 1];

    buf_done(b);
    buf_init(b, 32 * 1024 * 1024);
    for (; *text != 0; text++) {
        if (*text == '\'') {
            buf_add_byte(b, '"');
        } else if (*text == '$') {
            buf_add_cstr(b, all.url);
        } else {
            buf_add_byte(b, (uint8_t)*text);
        }
    }
    return buf_cstr(b);
}

void service_forget(void)
{
    (void)pthread_mutex_lock(&all.lock);
    for (size_t i = 0; i < all.live_n; i++) {
        (void)shutdown(all.live[i], SHUT_RDWR);
    }
    while (all.live_n > 0) {
        (void)pthread_cond_wait(&all.ended, &all.lock);
    }
    for (size_t i = 0; i < all.answers_n; i++) {
        buf_done(&all.answers[i].bytes);
    }
    for (size_t i = 0; i < all.asked_n; i++) {
        buf_done(&all.asked[i]);
    }
    all.answers_n = all.answered = all.asked_n = all.paths_n = 0;
    (void)pthread_mutex_unlock(&all.lock);
}

static struct buf *add_answer(enum service_end end)
{
    struct buf *bytes = &all.answers[all.answers_n].bytes;

    assert_true(all.answers_n < ANSWERS_MAX);
    buf_init(bytes, REQUEST_MAX);
    all.answers[all.answers_n++].end = end;
    return bytes;
}

void service_raw(struct str bytes, enum service_end end)
{
    (void)pthread_mutex_lock(&all.lock);
    buf_add_str(add_answer(end), bytes);
    (void)pthread_mutex_unlock(&all.lock);
}

void service_next(int status, const char *headers, const char *body)
{
    (void)pthread_mutex_lock(&all.lock);
    put_answer(add_answer(SERVICE_CLOSES), status, headers, body);
    (void)pthread_mutex_unlock(&all.lock);
}

void service_at(const char *path, int status, const char *headers, const char *body)
{
    (void)pthread_mutex_lock(&all.lock);
    assert_true(all.paths_n < PATHS_MAX);
    all.paths[all.paths_n].path = path;
    all.paths[all.paths_n].status = status;
    all.paths[all.paths_n].headers = headers;
    all.paths[all.paths_n++].body = body;
    (void)pthread_mutex_unlock(&all.lock);
}

size_t service_count(void)
{
    size_t n;

    (void)pthread_mutex_lock(&all.lock);
    n = all.asked_n;
    (void)pthread_mutex_unlock(&all.lock);
    return n;
}

const char *service_asked(size_t i)
{
    const char *text = NULL;

    (void)pthread_mutex_lock(&all.lock);
    text = i < all.asked_n ? buf_cstr(&all.asked[i]) : NULL;
    (void)pthread_mutex_unlock(&all.lock);
    if (text == NULL) {
        fail_msg("request %zu did not come", i);
    }
    return text;
}

void service_expect(size_t i, const char *part)
{
    if (strstr(service_asked(i), part) == NULL) {
        fail_msg("request %zu: expected %s in %.3000s", i, part, service_asked(i));
    }
}

void service_expect_not(size_t i, const char *part)
{
    if (strstr(service_asked(i), part) != NULL) {
        fail_msg("request %zu: %s in %.3000s", i, part, service_asked(i));
    }
}
