/*
 * A peer that pipelines requests and dies can wedge nng (N1): its only reaper thread waits for
 * ever. The room cannot prevent that. It detects it, and none of our calls hangs. On a version
 * without the defect the test is skipped. This is a program of its own because nng is unusable in
 * the process afterwards.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "tests/edge/link/fixture.h"

enum { ATTACKERS = 4, PIPELINED = 64, FRAME = 8 + 4 + 200, TRY_MS = 20000, STALE_MS = 1500 };

struct attacker {
    pthread_t thread;
    uint16_t port;
    unsigned seed;
    atomic_bool *stop;
};

BT_API const char *__lsan_default_suppressions(void);

/* What a wedged nng still holds. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

static void pipeline_and_die(uint16_t port, unsigned *seed)
{
    static const char own_header[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    static const unsigned char frame[FRAME] = {[7] = FRAME - 8, [8] = 0x80, [11] = 1};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    char peer_header[8];
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
    ok = ok && send(fd, own_header, sizeof own_header, MSG_NOSIGNAL) == (ssize_t)sizeof own_header;
    ok =
        ok && recv(fd, peer_header, sizeof peer_header, MSG_WAITALL) == (ssize_t)sizeof peer_header;
    for (int i = 0; i < PIPELINED && ok; i++) {
        ok = send(fd, frame, sizeof frame, MSG_NOSIGNAL) == (ssize_t)sizeof frame;
    }
    *seed = *seed * 1103515245u + 12345u;
    const uint64_t until = clock_mono_ns() + (*seed >> 16) % 1500 * 1000;
    while (clock_mono_ns() < until) {
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void *attack(void *arg)
{
    struct attacker *a = arg;
    while (!atomic_load(a->stop)) {
        pipeline_and_die(a->port, &a->seed);
    }
    return NULL;
}

static void serve_while_healthy(struct link *l)
{
    const msec until = clock_mono_ms() + TRY_MS;
    struct link_event ev;
    while (clock_mono_ms() < until && link_canary_age() < STALE_MS) {
        if (fixture_next(l, 20, &ev)) {
            assert_true(link_answer(ev.server, ev.request, "ok", 2));
            link_msg_free(ev.msg);
        }
    }
}

static void wedge_is_noticed_and_ends_nothing_of_ours(void **state)
{
    (void)state;
    atomic_bool stop = false;
    struct attacker attackers[ATTACKERS];
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 32);
    assert_int_equal(link_canary_start(100, NULL), BT_OK);
    for (unsigned i = 0; i < ATTACKERS; i++) {
        attackers[i].port = (uint16_t)strtoul(strrchr(link_server_url(s), ':') + 1, NULL, 10);
        attackers[i].seed = i + 1;
        attackers[i].stop = &stop;
        assert_int_equal(pthread_create(&attackers[i].thread, NULL, attack, &attackers[i]), 0);
    }
    serve_while_healthy(l);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < ATTACKERS; i++) {
        (void)pthread_join(attackers[i].thread, NULL);
    }
    const bool wedged = link_canary_age() >= STALE_MS;
    const msec before = clock_mono_ms();
    link_free(l);
    assert_true(clock_mono_ms() - before < 3000);
    if (!wedged) {
        skip();
    }
    assert_true(link_canary_age() >= STALE_MS);
}

int main(void)
{
    fixture_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wedge_is_noticed_and_ends_nothing_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
