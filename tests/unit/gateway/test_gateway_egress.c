/* Requests that the gateway sends, to a server in the same process: what is sent, what comes of
 * each answer, and which addresses are not reached. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "supervisor/gateway/egress.h"
#include "supervisor/gateway/private.h"
#include "tests/support/cmocka.h"

enum { TEXT = 16384, CONNECTIONS_MAX = 80, PATIENCE_MS = 20000 };

static struct {
    int listens;
    char url[64];
    const char *says; /* to each request; NULL: nothing */
    int fds[CONNECTIONS_MAX];
    uint32_t fds_n, answered;
    char got[TEXT]; /* the last request */
    size_t got_n;
    /* what came of the last one */
    uint32_t done;
    unsigned status;
    uint64_t retry_after_ms;
    char why[256];
} world;

static void on_done(void *self, unsigned status, uint64_t retry_after_ms, const char *why)
{
    assert_ptr_equal(self, &world);
    world.done++;
    world.status = status;
    world.retry_after_ms = retry_after_ms;
    (void)snprintf(world.why, sizeof world.why, "%s", why);
}

static int begin(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;

    (void)state;
    memset(&world, 0, sizeof world);
    (void)setenv("http_proxy", "http://127.0.0.1:1", 1);
    (void)setenv("no_proxy", "127.0.0.1", 1);
    world.listens = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(world.listens, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(world.listens, CONNECTIONS_MAX), 0);
    assert_int_equal(getsockname(world.listens, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(world.url, sizeof world.url, "http://127.0.0.1:%u/in", ntohs(at.sin_port));
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < world.fds_n; i++) {
        (void)close(world.fds[i]);
    }
    return close(world.listens);
}

/* The server takes what comes, and answers when a request is whole. */
static void serve(void)
{
    const int fd = accept(world.listens, NULL, NULL);

    if (fd >= 0) {
        assert_true(world.fds_n < CONNECTIONS_MAX);
        world.fds[world.fds_n++] = fd;
        world.got_n = 0;
    }
    for (uint32_t i = 0; i < world.fds_n; i++) {
        const ssize_t n = recv(world.fds[i], world.got + world.got_n,
                               sizeof world.got - 1 - world.got_n, MSG_DONTWAIT);
        if (n <= 0) {
            continue;
        }
        world.got_n += (size_t)n;
        world.got[world.got_n] = 0;
        if (world.says != NULL && strstr(world.got, "END") != NULL) {
            assert_int_equal(send(world.fds[i], world.says, strlen(world.says), MSG_NOSIGNAL),
                             (ssize_t)strlen(world.says));
            world.answered++;
        }
    }
}

static void run_until(struct egress *e, uint32_t done)
{
    const msec began = clock_mono_ms();

    while (world.done < done) {
        struct pollfd fds[] = {{.fd = egress_fd(e), .events = POLLIN},
                               {.fd = world.listens, .events = POLLIN}};
        assert_true(clock_mono_ms() - began < PATIENCE_MS);
        (void)poll(fds, 2, 2);
        egress_run(e, clock_mono_ms());
        serve();
    }
}

/* They live as long as the process. */
static struct egress *kept[16];

static struct egress *open_egress(const struct private_list *listed)
{
    static size_t n;
    struct egress *e = NULL;
    struct bt_error err;

    assert_int_equal(egress_new(listed, &e, &err), BT_OK);
    assert_true(n < sizeof kept / sizeof kept[0]);
    kept[n++] = e;
    assert_int_equal(egress_deadline(e), MSEC_NEVER);
    egress_run(e, clock_mono_ms());
    return e;
}

static enum bt_code post(struct egress *e, const char *url, msec timeout_ms, struct bt_error *err)
{
    char body[] = "{\"a\":1}END";
    char header[] = "X-One: 1";
    const struct egress_spec spec = {.url = url,
                                     .headers = {header, "X-2: 2", "X-3: 3", "X-4: 4", "X-5: 5",
                                                 "X-6: 6", "X-7: 7", "X-Eight: 8"},
                                     .body = str_from(body),
                                     .timeout_ms = timeout_ms,
                                     .done = on_done,
                                     .self = &world};
    const uint32_t done = world.done;
    const enum bt_code code = egress_post(e, &spec, err);

    assert_int_equal(world.done, done);
    memset(body, 'x', sizeof body - 1); /* they were copied */
    memset(header, 'x', sizeof header - 1);
    return code;
}

static void posts(struct egress *e, const char *url, msec timeout_ms)
{
    struct bt_error err;

    if (post(e, url, timeout_ms, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

static void sent(const char *line)
{
    if (strstr(world.got, line) == NULL) {
        fail_msg("no \"%s\" in:\n%s", line, world.got);
    }
}

static void a_request_is_a_post_with_its_headers_and_its_body(void **state)
{
    struct egress *e = open_egress(NULL);

    (void)state;
    world.says = "HTTP/1.1 202 OK\r\nContent-Length: 4\r\n\r\nbody";
    posts(e, world.url, 5000);
    assert_true(egress_deadline(e) <= clock_mono_ms());
    run_until(e, 1);
    assert_int_equal(world.status, 202);
    assert_int_equal(world.retry_after_ms, 0);
    assert_string_equal(world.why, "");
    assert_ptr_equal(strstr(world.got, "POST /in HTTP/1.1\r\n"), world.got);
    sent("\r\nX-One: 1\r\n");
    sent("\r\nX-7: 7\r\n");
    sent("\r\nX-Eight: 8\r\n");
    sent("\r\nContent-Length: 10\r\n");
    sent("\r\nUser-Agent: baton-gateway/" BATON_VERSION "\r\n");
    sent("\r\n\r\n{\"a\":1}END");
}

static void an_answer_may_ask_to_come_later(void **state)
{
    struct egress *e = open_egress(NULL);

    (void)state;
    world.says = "HTTP/1.1 503 No\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n";
    posts(e, world.url, 5000);
    run_until(e, 1);
    assert_int_equal(world.status, 503);
    assert_int_equal(world.retry_after_ms, 3000);
}

static void without_an_answer_it_is_said_why(void **state)
{
    struct egress *e = open_egress(NULL);
    const msec began = clock_mono_ms();

    (void)state;
    posts(e, "http://127.0.0.1:1/in", 5000);
    run_until(e, 1);
    assert_int_equal(world.status, 0);
    assert_non_null(strstr(world.why, "127.0.0.1"));
    posts(e, world.url, 60); /* it says nothing */
    run_until(e, 2);
    assert_true(clock_mono_ms() - began >= 60);
    assert_int_equal(world.status, 0);
    assert_non_null(strstr(world.why, "timed out"));
    posts(e, "ftp://127.0.0.1/in", 5000);
    run_until(e, 3);
    assert_int_equal(world.status, 0);
    assert_true(world.why[0] != 0);
}

static void private_addresses_are_reached_when_they_are_listed(void **state)
{
    static struct private_list none, listed;
    struct egress *e = open_egress(&none);
    struct bt_error err;

    (void)state;
    world.says = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    posts(e, world.url, 5000);
    run_until(e, 1);
    assert_int_equal(world.status, 0);
    assert_string_equal(world.why, "its address is private, and gateway.private (--private) does "
                                   "not list it");
    assert_int_equal(world.fds_n, 0);
    assert_int_equal(private_read(STR_LIT("127.0.0.1"), &listed, &err), BT_OK);
    e = open_egress(&listed);
    (void)unsetenv("no_proxy"); /* a proxy would connect in our place */
    posts(e, world.url, 5000);
    run_until(e, 2);
    assert_int_equal(world.status, 200);
}

static void sixty_four_are_out_at_a_time(void **state)
{
    struct egress *e = open_egress(NULL);
    struct bt_error err;

    (void)state;
    for (int i = 0; i < EGRESS_CALLS_MAX; i++) {
        posts(e, "http://127.0.0.1:1/in", 5000);
    }
    assert_int_equal(post(e, world.url, 5000, &err), BT_BUSY);
    assert_string_equal(err.msg, "too many outgoing requests wait for their answers");
    run_until(e, EGRESS_CALLS_MAX);
    posts(e, "http://127.0.0.1:1/in", 5000);
    run_until(e, EGRESS_CALLS_MAX + 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_request_is_a_post_with_its_headers_and_its_body),
        T(an_answer_may_ask_to_come_later),
        T(without_an_answer_it_is_said_why),
        T(private_addresses_are_reached_when_they_are_listed),
        T(sixty_four_are_out_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
