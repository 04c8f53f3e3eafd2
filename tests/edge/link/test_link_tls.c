/* tls+tcp://: both sides show a certificate of the same authority, or there is no pipe.
 * Certificates made by openssl. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "tests/edge/link/fixture.h"

/* nng forgets the connections that wait at a dead listener (N33). */
BT_API const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

struct identity {
    char key[128];
    char cert[128];
    char pem[128]; /* certificate and key in one file */
};

static void append(const char *from, FILE *to)
{
    int c = 0;
    FILE *f = fopen(from, "re");
    assert_non_null(f);
    while ((c = fgetc(f)) != EOF) {
        (void)fputc(c, to);
    }
    (void)fclose(f);
}

/* Self-signed, so that the certificate is its own authority. */
static struct identity identity_new(const char *dir, const char *name)
{
    struct identity id;
    (void)snprintf(id.key, sizeof id.key, "%s/%s.key", dir, name);
    (void)snprintf(id.cert, sizeof id.cert, "%s/%s.crt", dir, name);
    (void)snprintf(id.pem, sizeof id.pem, "%s/%s.pem", dir, name);
    const char *argv[] = {"openssl",
                          "req",
                          "-x509",
                          "-newkey",
                          "ec",
                          "-pkeyopt",
                          "ec_paramgen_curve:prime256v1",
                          "-nodes",
                          "-days",
                          "2",
                          "-subj",
                          "/CN=localhost",
                          "-keyout",
                          id.key,
                          "-out",
                          id.cert,
                          "-batch",
                          NULL};
    struct child c = child_start((char *const *)(uintptr_t)argv);
    child_finish(&c);
    if (c.status != 0) {
        skip(); /* no usable openssl here */
    }
    FILE *f = fopen(id.pem, "we");
    assert_non_null(f);
    append(id.cert, f);
    append(id.key, f);
    (void)fclose(f);
    assert_int_equal(chmod(id.pem, 0600), 0); /* a key that others may read is refused */
    return id;
}

static void only_certified_peers_get_a_pipe(void **state)
{
    (void)state;
    char dir[64];
    char url[128];
    struct bt_error err = {.msg = ""};
    struct link_server *s = NULL;
    struct link_lane *lane = NULL;
    struct link_event ev;
    (void)snprintf(dir, sizeof dir, "%s", fixture_dir());
    const struct identity ours = identity_new(dir, "ours");
    const struct identity rogue = identity_new(dir, "rogue");
    const struct link_limits good = {.recv_max = 4096, .ca_file = ours.cert, .cert_file = ours.pem};
    const struct link_limits none = {.recv_max = 4096, .ca_file = ours.cert};
    const struct link_limits bad = {.recv_max = 4096, .ca_file = ours.cert, .cert_file = rogue.pem};
    struct link *l = fixture_link();
    if (link_server_open(l, "tls+tcp://127.0.0.1:0", 2, &good, NULL, &s, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    (void)snprintf(url, sizeof url, "tls+tcp://localhost:%s", strrchr(link_server_url(s), ':') + 1);
    struct link *strangers = fixture_link();
    assert_int_equal(link_lane_dial(strangers, url, &none, NULL, &lane, &err), BT_OK);
    assert_int_equal(link_lane_dial(strangers, url, &bad, NULL, &lane, &err), BT_OK);
    struct link *client = fixture_link();
    assert_int_equal(link_lane_dial(client, url, &good, NULL, &lane, &err), BT_OK);
    (void)fixture_expect(client, LINK_UP);
    fixture_send(lane, "secret");
    const struct link_event request = fixture_expect(l, LINK_REQUEST);
    assert_true(link_answer(s, request.request, "kept", 4));
    link_msg_free(request.msg);
    fixture_assert_bytes(fixture_expect(client, LINK_ANSWER), "kept");
    assert_false(fixture_next(strangers, 300, &ev));
    link_free(strangers);
    link_free(client);
    link_free(l);
    fixture_rmdir(dir);
}

/* Asks again after each loss, as callers do, until the answer is there. */
static void assert_answered(struct link *l, struct link_server *s, const char *url,
                            const struct link_limits *lim)
{
    const msec until = clock_mono_ms() + 30000;
    struct link *client = fixture_link();
    struct link_lane *lane = NULL;
    struct link_event ev;
    struct bt_error err;
    bool answered = false;

    assert_int_equal(link_lane_dial(client, url, lim, NULL, &lane, &err), BT_OK);
    while (!answered) {
        assert_true(clock_mono_ms() < until);
        if (fixture_next(client, 10, &ev)) {
            if (ev.type == LINK_UP) {
                assert_int_equal(link_lane_send(lane, "secret", 6, &err), BT_OK);
            }
            answered = ev.type == LINK_ANSWER;
            link_msg_free(ev.msg);
        }
        if (fixture_next(l, 10, &ev)) {
            if (ev.type == LINK_REQUEST) {
                assert_true(link_answer(s, ev.request, "kept", 4));
            }
            link_msg_free(ev.msg);
        }
    }
    link_free(client);
}

static void listener_accepts_after_clients_that_reset_their_handshake(void **state)
{
    (void)state;
    char dir[64];
    char url[128];
    char port[16];
    char seed[24];
    struct bt_error err = {.msg = ""};
    struct link_server *s = NULL;
    (void)snprintf(dir, sizeof dir, "%s", fixture_dir());
    (void)snprintf(seed, sizeof seed, "%lld", (long long)clock_mono_ms());
    print_message("seed %s\n", seed);
    const struct identity ours = identity_new(dir, "ours");
    const struct link_limits good = {.recv_max = 4096, .ca_file = ours.cert, .cert_file = ours.pem};
    struct link *l = fixture_link();
    assert_int_equal(link_server_open(l, "tls+tcp://127.0.0.1:0", 2, &good, NULL, &s, &err), BT_OK);
    (void)snprintf(port, sizeof port, "%s", strrchr(link_server_url(s), ':') + 1);
    (void)snprintf(url, sizeof url, "tls+tcp://localhost:%s", port);
    assert_answered(l, s, url, &good);
    for (int round = 0; round < 3; round++) {
        const char *argv[] = {"python3", RESET_SCRIPT, port, ours.pem, "60", seed, NULL};
        struct child c = child_start((char *const *)(uintptr_t)argv);
        child_finish(&c);
        if (c.status != 0) {
            fail_msg("the clients ended with %d", c.status);
        }
        assert_answered(l, s, url, &good);
    }
    link_free(l);
    fixture_rmdir(dir);
}

/* A connection that says nothing, and another listener on the port of another address: for three
 * looks of the guard nobody loses a connection. */
static void listener_that_accepts_is_not_replaced(void **state)
{
    (void)state;
    char dir[64];
    char url[128];
    struct bt_error err = {.msg = ""};
    struct link_server *s = NULL;
    struct link_lane *lane = NULL;
    struct link_event ev;
    (void)snprintf(dir, sizeof dir, "%s", fixture_dir());
    const struct identity ours = identity_new(dir, "ours");
    const struct link_limits good = {.recv_max = 4096, .ca_file = ours.cert, .cert_file = ours.pem};
    struct link *l = fixture_link();
    assert_int_equal(link_server_open(l, "tls+tcp://127.0.0.1:0", 2, &good, NULL, &s, &err), BT_OK);
    const char *port = strrchr(link_server_url(s), ':') + 1;
    (void)snprintf(url, sizeof url, "tcp://127.0.0.2:%s", port);
    (void)fixture_server(l, url, 2);
    struct link *neighbour = fixture_link();
    (void)fixture_lane(neighbour, url);
    (void)fixture_lane(neighbour, url);
    struct link *client = fixture_link();
    (void)snprintf(url, sizeof url, "tls+tcp://localhost:%s", port);
    assert_int_equal(link_lane_dial(client, url, &good, NULL, &lane, &err), BT_OK);
    (void)fixture_expect(client, LINK_UP);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(silent, (const struct sockaddr *)&to, sizeof to), 0);
    assert_false(fixture_next(client, 7000, &ev));
    assert_false(fixture_next(neighbour, 0, &ev));
    (void)close(silent);
    link_free(client);
    link_free(neighbour);
    link_free(l);
    fixture_rmdir(dir);
}

int main(void)
{
    fixture_watchdog(180);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_certified_peers_get_a_pipe),
        cmocka_unit_test(listener_accepts_after_clients_that_reset_their_handshake),
        cmocka_unit_test(listener_that_accepts_is_not_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
