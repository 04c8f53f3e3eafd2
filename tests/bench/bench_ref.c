/*
 * bench_ref DIR [quick]: the raw limit that every figure is compared with. nng REQ/REP echo of 256
 * bytes between two processes over ipc, first one request outstanding (h1), then 64 (h64, per
 * message); the floor of a durable step: h1 plus append of a 512-byte record plus fdatasync; and
 * the raw rate of one PUB socket to one subscriber. Prints one line of JSON. The echo server is
 * this program, executed again, because a process with threads must not fork.
 *
 * The one program outside protocol/link that includes nng: it measures nng itself, without our
 * link.
 */
#include <fcntl.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/util/platform.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BODY = 256,
    RECORD = 512,
    CONTEXTS = 64,
    WARM_UP = 500,
    DIAL_TRIES = 500,
    DIAL_PAUSE_MS = 2,
    SERVER_LIFE_S = 120,
    FRAME = 300,
    PUB_TOTAL = 60000,
    PUB_WINDOW = 2000
};

extern char **environ;

static void check(int rv, const char *what)
{
    if (rv != 0) {
        (void)fprintf(stderr, "bench_ref: %s: %s\n", what, nng_strerror(rv));
        _exit(2);
    }
}

static double now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- the echo server: 64 contexts, each receives, sends back, receives ... */

struct echo {
    nng_ctx ctx;
    nng_aio *aio;
    bool sending;
};

static void echo_step(void *arg)
{
    struct echo *e = arg;

    if (nng_aio_result(e->aio) != 0) {
        return;
    }
    e->sending = !e->sending;
    if (e->sending) { /* the received message stays in the aio and is sent back */
        nng_ctx_send(e->ctx, e->aio);
    } else {
        nng_ctx_recv(e->ctx, e->aio);
    }
}

/* Publishes on request: one request asks for PUB_WINDOW more frames. */
static void serve_pub(const char *url)
{
    static char frame[FRAME];
    char pub_url[512];
    nng_socket s;

    (void)snprintf(pub_url, sizeof pub_url, "%s.pub", url);
    check(nng_pub0_open(&s), "pub");
    check(nng_socket_set_int(s, NNG_OPT_SENDBUF, 8192), "sendbuf");
    check(nng_listen(s, pub_url, NULL, 0), pub_url);
    nng_socket rep;
    (void)snprintf(pub_url, sizeof pub_url, "%s.ask", url);
    check(nng_rep0_open(&rep), "rep");
    check(nng_listen(rep, pub_url, NULL, 0), pub_url);
    for (;;) {
        char byte[8];
        size_t len = sizeof byte;
        check(nng_recv(rep, byte, &len, 0), "ask");
        check(nng_send(rep, byte, 1, 0), "answer");
        for (int i = 0; i < PUB_WINDOW; i++) {
            check(nng_send(s, frame, sizeof frame, 0), "publish");
        }
    }
}

static int serve(const char *url)
{
    static struct echo echoes[CONTEXTS];
    nng_socket s;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)alarm(SERVER_LIFE_S);
    check(nng_rep0_open(&s), "rep");
    for (int i = 0; i < CONTEXTS; i++) {
        check(nng_ctx_open(&echoes[i].ctx, s), "context");
        check(nng_aio_alloc(&echoes[i].aio, echo_step, &echoes[i]), "aio");
    }
    check(nng_listen(s, url, NULL, 0), url);
    for (int i = 0; i < CONTEXTS; i++) {
        nng_ctx_recv(echoes[i].ctx, echoes[i].aio);
    }
    serve_pub(url);
    return 0;
}

/* ---- one outstanding */

static nng_socket dial(int (*open_socket)(nng_socket *), const char *url)
{
    nng_socket s;
    int rv = NNG_ECONNREFUSED;

    check(open_socket(&s), "socket");
    for (int i = 0; i < DIAL_TRIES && rv != 0; i++) {
        rv = nng_dial(s, url, NULL, 0);
        if (rv != 0) {
            nng_msleep(DIAL_PAUSE_MS);
        }
    }
    check(rv, url);
    return s;
}

static void echo_once(nng_socket s)
{
    char body[BODY];
    char *answer;
    size_t len;

    memset(body, 'x', sizeof body);
    check(nng_send(s, body, sizeof body, 0), "send");
    check(nng_recv(s, &answer, &len, NNG_FLAG_ALLOC), "receive");
    nng_free(answer, len);
}

static double measure_h1(nng_socket s, int n)
{
    double start;

    for (int i = 0; i < WARM_UP; i++) {
        echo_once(s);
    }
    start = now_us();
    for (int i = 0; i < n; i++) {
        echo_once(s);
    }
    return (now_us() - start) / n;
}

static double measure_floor(nng_socket s, const char *dir, int n)
{
    char path[512];
    char record[RECORD];
    double start;
    int fd;

    (void)snprintf(path, sizeof path, "%s/floor.%d", dir, (int)getpid());
    memset(record, 'j', sizeof record);
    fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_EXCL | O_CLOEXEC, 0600);
    start = now_us();
    for (int i = -10; i < n; i++) {
        if (i == 0) {
            start = now_us();
        }
        echo_once(s);
        if (write(fd, record, sizeof record) != (ssize_t)sizeof record || fdatasync(fd) != 0) {
            check(NNG_EINTERNAL, path);
        }
    }
    (void)close(fd);
    (void)unlink(path);
    return (now_us() - start) / n;
}

/* ---- 64 outstanding */

struct asker {
    nng_ctx ctx;
    nng_aio *aio;
    bool receiving;
};

static atomic_long to_send, answered;
static long goal;
static nng_mtx *lock;
static nng_cv *done;

static void ask(struct asker *a)
{
    nng_msg *m;

    if (atomic_fetch_sub(&to_send, 1) <= 0) {
        return;
    }
    check(nng_msg_alloc(&m, BODY), "message");
    memset(nng_msg_body(m), 'x', BODY);
    a->receiving = false;
    nng_aio_set_msg(a->aio, m);
    nng_ctx_send(a->ctx, a->aio);
}

static void ask_step(void *arg)
{
    struct asker *a = arg;

    check(nng_aio_result(a->aio), "64 outstanding");
    if (!a->receiving) {
        a->receiving = true;
        nng_ctx_recv(a->ctx, a->aio);
        return;
    }
    nng_msg_free(nng_aio_get_msg(a->aio));
    if (atomic_fetch_add(&answered, 1) + 1 == goal) {
        nng_mtx_lock(lock);
        nng_cv_wake(done);
        nng_mtx_unlock(lock);
        return;
    }
    ask(a);
}

/* 64 outstanding on one pipe; or, as Baton's lanes do, one on each of 64 pipes. */
static double measure_64(nng_socket s, const char *lanes_url, int n)
{
    struct asker *askers = calloc(CONTEXTS, sizeof *askers);
    double start = 0;

    check(askers == NULL ? NNG_ENOMEM : nng_mtx_alloc(&lock), "mutex");
    check(nng_cv_alloc(&done, lock), "condition");
    for (int i = 0; i < CONTEXTS; i++) {
        nng_socket lane = lanes_url != NULL ? dial(nng_req0_open, lanes_url) : s;
        check(nng_ctx_open(&askers[i].ctx, lane), "context");
        check(nng_aio_alloc(&askers[i].aio, ask_step, &askers[i]), "aio");
    }
    for (int round = 0; round < 2; round++) { /* the first one warms up */
        goal = round == 0 ? 4L * WARM_UP : n;
        atomic_store(&to_send, goal);
        atomic_store(&answered, 0);
        start = now_us();
        for (int i = 0; i < CONTEXTS; i++) {
            ask(&askers[i]);
        }
        nng_mtx_lock(lock);
        while (atomic_load(&answered) < goal) {
            nng_cv_wait(done);
        }
        nng_mtx_unlock(lock);
    }
    return (now_us() - start) / n;
}

/* Frames per second that one subscriber receives without loss, requested in windows that fit its
 * buffer. */
static double measure_pub(const char *url, int total)
{
    char path[512];
    nng_socket sub;
    nng_socket req;
    double start;
    int got = 0;

    (void)snprintf(path, sizeof path, "%s.pub", url);
    sub = dial(nng_sub0_open, path);
    check(nng_socket_set_int(sub, NNG_OPT_RECVBUF, 8192), "recvbuf");
    check(nng_socket_set_ms(sub, NNG_OPT_RECVTIMEO, 2000), "timeout");
    check(nng_socket_set(sub, NNG_OPT_SUB_SUBSCRIBE, "", 0), "subscribe");
    (void)snprintf(path, sizeof path, "%s.ask", url);
    req = dial(nng_req0_open, path);
    nng_msleep(20); /* the publisher must have seen the subscriber */
    start = now_us();
    while (got < total) {
        char byte[8] = "m";
        size_t len = sizeof byte;
        check(nng_send(req, byte, 1, 0), "ask");
        check(nng_recv(req, byte, &len, 0), "answer");
        for (int i = 0; i < PUB_WINDOW; i++, got++) {
            nng_msg *m;
            check(nng_recvmsg(sub, &m, 0), "frame");
            nng_msg_free(m);
        }
    }
    return got / ((now_us() - start) / 1e6);
}

int main(int argc, char **argv)
{
    char url[256], self[512], serve_flag[] = "--serve";
    char *server_argv[] = {self, serve_flag, url, NULL};
    double h1, h64, lanes, floor_us, pub;
    bool quick = argc > 2;
    nng_socket s;
    ssize_t n;
    pid_t pid;

    if (argc == 3 && strcmp(argv[1], "--serve") == 0) {
        return serve(argv[2]);
    }
    if (argc < 2) {
        (void)fprintf(stderr, "usage: bench_ref DIR [quick]\n");
        return 2;
    }
    (void)snprintf(url, sizeof url, "ipc://%s/ref.%d", argv[1], (int)getpid());
    n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    if (posix_spawn(&pid, self, NULL, NULL, server_argv, environ) != 0) {
        (void)fprintf(stderr, "bench_ref: cannot execute %s\n", self);
        return 2;
    }
    s = dial(nng_req0_open, url);
    h1 = measure_h1(s, quick ? 200 : 4000);
    floor_us = measure_floor(s, argv[1], quick ? 10 : 250);
    h64 = measure_64(s, NULL, quick ? 2000 : 40000);
    lanes = measure_64(s, url, quick ? 2000 : 20000);
    pub = measure_pub(url, quick ? PUB_WINDOW : PUB_TOTAL);
    (void)printf("{\"h1_us\":%.2f,\"h64_us\":%.3f,\"floor_us\":%.2f,\"pub_rate\":%.0f,\"lanes64_"
                 "us\":%.3f}\n",
                 h1, h64, floor_us, pub, lanes);
    (void)fflush(stdout);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    _exit(0);
}
