/*
 * A job server that is not Baton: what a step costs there, with the shapes of S1, S2 and S3. One
 * client, one worker process that echoes 256 bytes, one connection each for what is sent and what
 * comes back, everything pipelined: the best case of the peer. peers.sh starts the servers and
 * prints the table. gearmand: the binary protocol of Gearman ("PROTOCOL" in its source); foreground
 * jobs, nothing is kept beanstalkd: protocol.txt of beanstalkd 1.12; results travel as jobs of a
 * second tube
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"

enum { BODY = 256, BUFFER = 1 << 20 };

/* A connection that gathers what is sent until something is awaited. */
struct wire {
    int fd;
    size_t out_len, in_at, in_len;
    uint8_t out[BUFFER], in[BUFFER];
};

/* What differs between the servers. Each call is of the process that makes it: client or worker. */
struct server {
    const char *name;
    void (*client_open)(int port);
    void (*submit)(const uint8_t body[BODY]);
    void (*result)(uint8_t ret_body[BODY]); /* waits */
    void (*work)(int port);                 /* never returns */
};

/* ---- The wire */

static struct wire *wire_open(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct wire *w = calloc(1, sizeof *w);
    int one = 1;

    if (w == NULL) {
        errx(1, "out of memory");
    }
    w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(w->fd, (struct sockaddr *)&at, sizeof at) != 0) {
        errx(1, "connect to 127.0.0.1:%d: %s", port, strerror(errno));
    }
    (void)setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return w;
}

static void wire_flush(struct wire *w)
{
    for (size_t at = 0; at < w->out_len;) {
        ssize_t n = write(w->fd, w->out + at, w->out_len - at);
        if (n <= 0) {
            errx(1, "write: %s", strerror(errno));
        }
        at += (size_t)n;
    }
    w->out_len = 0;
}

static void wire_put(struct wire *w, const void *bytes, size_t len)
{
    if (w->out_len + len > sizeof w->out) {
        wire_flush(w);
    }
    memcpy(w->out + w->out_len, bytes, len);
    w->out_len += len;
}

static void wire_fill(struct wire *w)
{
    ssize_t n;

    wire_flush(w);
    memmove(w->in, w->in + w->in_at, w->in_len - w->in_at);
    w->in_len -= w->in_at;
    w->in_at = 0;
    n = read(w->fd, w->in + w->in_len, sizeof w->in - w->in_len);
    if (n <= 0) {
        errx(1, "the server closed the connection");
    }
    w->in_len += (size_t)n;
}

/* The next `len` bytes; they stay until the next call. */
static const uint8_t *wire_take(struct wire *w, size_t len)
{
    while (w->in_len - w->in_at < len) {
        wire_fill(w);
    }
    w->in_at += len;
    return w->in + w->in_at - len;
}

/* The next line, without its CR LF. */
static void wire_line(struct wire *w, char *ret, size_t cap)
{
    size_t n = 0;

    while (n == 0 || ret[n - 1] != '\n') {
        if (n + 1 == cap) {
            errx(1, "a line without an end");
        }
        ret[n++] = (char)*wire_take(w, 1);
    }
    ret[n < 2 ? 0 : n - 2] = '\0';
}

/* ---- gearmand */

enum {
    CAN_DO = 1,
    PRE_SLEEP = 4,
    NOOP = 6,
    SUBMIT_JOB = 7,
    JOB_CREATED = 8,
    GRAB_JOB = 9,
    NO_JOB = 10,
    JOB_ASSIGN = 11,
    WORK_COMPLETE = 13
};

static struct wire *gear;

static void gear_put(int type, const void *head, size_t head_len, const void *body, size_t body_len)
{
    uint32_t words[2] = {htonl((uint32_t)type), htonl((uint32_t)(head_len + body_len))};

    wire_put(gear, "\0REQ", 4);
    wire_put(gear, words, sizeof words);
    wire_put(gear, head, head_len);
    wire_put(gear, body, body_len);
}

/* The type of the next answer and its bytes. */
static int gear_take(const uint8_t **ret, size_t *ret_len)
{
    const uint8_t *head = wire_take(gear, 12);
    uint32_t type;
    uint32_t len;

    memcpy(&type, head + 4, sizeof type);
    memcpy(&len, head + 8, sizeof len);
    *ret_len = ntohl(len);
    *ret = wire_take(gear, *ret_len);
    return (int)ntohl(type);
}

static void gear_client_open(int port)
{
    gear = wire_open(port);
}

static void gear_submit(const uint8_t body[BODY])
{
    gear_put(SUBMIT_JOB, "echo\0\0", 6, body, BODY); /* function, no unique id */
}

static void gear_result(uint8_t ret_body[BODY])
{
    const uint8_t *bytes;
    size_t len;
    int type;

    while ((type = gear_take(&bytes, &len)) == JOB_CREATED) {
    }
    if (type != WORK_COMPLETE || len < BODY) {
        errx(1, "gearmand answered %d", type);
    }
    memcpy(ret_body, bytes + len - BODY, BODY);
}

static void gear_work(int port)
{
    const uint8_t *bytes;
    size_t len;

    gear = wire_open(port);
    gear_put(CAN_DO, "echo", 4, "", 0);
    gear_put(GRAB_JOB, "", 0, "", 0);
    for (;;) {
        switch (gear_take(&bytes, &len)) {
        case JOB_ASSIGN: { /* handle, function, body */
            size_t handle = strlen((const char *)bytes) + 1;
            gear_put(WORK_COMPLETE, bytes, handle, bytes + len - BODY, BODY);
            gear_put(GRAB_JOB, "", 0, "", 0);
            break;
        }
        case NO_JOB:
            gear_put(PRE_SLEEP, "", 0, "", 0);
            break;
        case NOOP:
            gear_put(GRAB_JOB, "", 0, "", 0);
            break;
        default:
            errx(1, "gearmand answered what a worker does not expect");
        }
    }
}

/* ---- beanstalkd */

static struct wire *bean_in;
static struct wire *bean_out;

static void bean_say(struct wire *w, const char *fmt, ...)
{
    char line[64];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    wire_put(w, line, strlen(line));
}

static void bean_expect(struct wire *w, const char *start)
{
    char line[128];

    wire_line(w, line, sizeof line);
    if (strncmp(line, start, strlen(start)) != 0) {
        errx(1, "beanstalkd answered '%s', not '%s'", line, start);
    }
}

static void bean_open(int port, const char *from, const char *to)
{
    bean_in = wire_open(port);
    bean_out = wire_open(port);
    bean_say(bean_in, "watch %s\r\nignore default\r\n", from);
    bean_expect(bean_in, "WATCHING");
    bean_expect(bean_in, "WATCHING");
    bean_say(bean_out, "use %s\r\n", to);
    bean_expect(bean_out, "USING");
}

static void bean_put(const uint8_t body[BODY])
{
    bean_say(bean_out, "put 0 0 60 %d\r\n", BODY);
    wire_put(bean_out, body, BODY);
    wire_put(bean_out, "\r\n", 2);
}

static unsigned long long bean_reserve(uint8_t ret_body[BODY])
{
    char line[128];
    unsigned long long id;
    int len;

    bean_say(bean_in, "reserve\r\n");
    wire_line(bean_in, line, sizeof line);
    if (sscanf(line, "RESERVED %llu %d", &id, &len) != 2 || len != BODY) {
        errx(1, "beanstalkd answered '%s' to reserve", line);
    }
    memcpy(ret_body, wire_take(bean_in, BODY + 2), BODY);
    return id;
}

static void bean_client_open(int port)
{
    bean_open(port, "results", "jobs");
}

static unsigned bean_unread; /* INSERTED lines that are still to come */

static void bean_submit(const uint8_t body[BODY])
{
    bean_put(body);
    bean_unread++;
}

static void bean_result(uint8_t ret_body[BODY])
{
    unsigned long long id;

    for (; bean_unread > 0; bean_unread--) {
        bean_expect(bean_out, "INSERTED");
    }
    id = bean_reserve(ret_body);
    bean_say(bean_in, "delete %llu\r\n", id);
    bean_expect(bean_in, "DELETED");
}

static void bean_work(int port)
{
    uint8_t body[BODY];

    bean_open(port, "jobs", "results");
    for (;;) {
        unsigned long long id = bean_reserve(body);
        bean_put(body);
        bean_expect(bean_out, "INSERTED"); /* the result is kept before the job goes */
        bean_say(bean_in, "delete %llu\r\n", id);
        bean_expect(bean_in, "DELETED");
    }
}

/* ---- The scenarios */

struct shape {
    const char *name;
    uint32_t chains, length, at_a_time;
};

static const struct shape shapes[] = {{"S1", 30, 100, 1}, {"S2", 5000, 1, 64}, {"S3", 1000, 5, 64}};

static void send_step(const struct server *s, uint32_t done)
{
    uint8_t body[BODY] = {0};

    memcpy(body, &done, sizeof done);
    s->submit(body);
}

/* `at_a_time` chains run side by side; each result starts its chain's next step. Microseconds a
 * step. */
static double run(const struct server *s, const struct shape *shape)
{
    uint32_t begun = 0;
    uint32_t ended = 0;
    uint64_t start = clock_mono_ns();

    while (begun < shape->at_a_time && begun < shape->chains) {
        send_step(s, 1);
        begun++;
    }
    while (ended < shape->chains) {
        uint8_t body[BODY];
        uint32_t done;
        s->result(body);
        memcpy(&done, body, sizeof done);
        if (done < shape->length) {
            send_step(s, done + 1);
            continue;
        }
        ended++;
        if (begun < shape->chains) {
            send_step(s, 1);
            begun++;
        }
    }
    return (double)(clock_mono_ns() - start) / 1e3 / ((double)shape->chains * shape->length);
}

int main(int argc, char **argv)
{
    static const struct server servers[] = {
        {"gearmand", gear_client_open, gear_submit, gear_result, gear_work},
        {"beanstalkd", bean_client_open, bean_submit, bean_result, bean_work}};
    const struct server *s = NULL;
    pid_t worker;
    int port;

    for (size_t i = 0; argc == 4 && i < sizeof servers / sizeof servers[0]; i++) {
        s = strcmp(argv[1], servers[i].name) == 0 ? &servers[i] : s;
    }
    if (s == NULL) {
        errx(1, "usage: peer_queue gearmand|beanstalkd PORT S1|S2|S3");
    }
    port = (int)strtol(argv[2], NULL, 10);
    worker = fork();
    if (worker == 0) {
        s->work(port);
    }
    s->client_open(port);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcmp(argv[3], shapes[i].name) == 0) {
            struct shape warm = shapes[i];
            warm.chains = warm.chains / 10 + 1;
            (void)run(s, &warm);
            (void)printf("%.1f\n", run(s, &shapes[i]));
        }
    }
    (void)kill(worker, SIGKILL);
    (void)waitpid(worker, NULL, 0);
    return 0;
}
