#include "tests/edge/link/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <nng/nng.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"

extern char **environ;

const struct link_limits fixture_limits = {.recv_max = FIXTURE_RECV_MAX};

void fixture_watchdog(unsigned seconds)
{
    (void)alarm(seconds);
    (void)signal(SIGPIPE, SIG_IGN);
}

struct link *fixture_link(void)
{
    struct link *l = NULL;
    struct bt_error err;
    assert_int_equal(link_new(1024, &l, &err), BT_OK);
    return l;
}

struct link_server *fixture_server(struct link *l, const char *url, uint32_t n)
{
    struct link_server *s = NULL;
    struct bt_error err = {.msg = ""};
    if (link_server_open(l, url, n, &fixture_limits, NULL, &s, &err) != BT_OK) {
        fail_msg("server: %s", err.msg);
    }
    return s;
}

struct link_lane *fixture_lane(struct link *l, const char *url)
{
    struct link_lane *lane = NULL;
    struct bt_error err = {.msg = ""};
    if (link_lane_dial(l, url, &fixture_limits, NULL, &lane, &err) != BT_OK) {
        fail_msg("lane: %s", err.msg);
    }
    const struct link_event ev = fixture_expect(l, LINK_UP);
    assert_ptr_equal(ev.lane, lane);
    return lane;
}

bool fixture_next(struct link *l, msec timeout_ms, struct link_event *ret)
{
    const msec until = clock_mono_ms() + timeout_ms;
    for (;;) {
        if (link_next(l, ret)) {
            return true;
        }
        const msec now = clock_mono_ms();
        if (now >= until || !link_wait(l, until - now)) {
            return link_next(l, ret);
        }
    }
}

struct link_event fixture_expect(struct link *l, enum link_event_type type)
{
    struct link_event ev;
    if (!fixture_next(l, FIXTURE_WAIT_MS, &ev)) {
        fail_msg("no event within %d ms, expected %d", FIXTURE_WAIT_MS, type);
    }
    if (ev.type != type) {
        fail_msg("event %d came, expected %d", ev.type, type);
    }
    return ev;
}

struct link_event fixture_serve_until(struct link *l, enum link_event_type type)
{
    struct link_event ev;
    for (;;) {
        if (!fixture_next(l, FIXTURE_WAIT_MS, &ev)) {
            fail_msg("no event within %d ms, expected %d", FIXTURE_WAIT_MS, type);
        }
        if (ev.type == type || ev.type != LINK_REQUEST) {
            break;
        }
        const struct str bytes = link_msg_bytes(ev.msg);
        assert_true(link_answer(ev.server, ev.request, bytes.ptr, bytes.len));
        link_msg_free(ev.msg);
    }
    if (ev.type != type) {
        fail_msg("event %d came, expected %d", ev.type, type);
    }
    return ev;
}

void fixture_send(struct link_lane *lane, const char *text)
{
    struct bt_error err = {.msg = ""};
    if (link_lane_send(lane, text, strlen(text), &err) != BT_OK) {
        fail_msg("send: %s", err.msg);
    }
}

void fixture_assert_bytes(struct link_event ev, const char *text)
{
    const struct str bytes = link_msg_bytes(ev.msg);
    assert_int_equal(bytes.len, strlen(text));
    assert_memory_equal(bytes.ptr, text, bytes.len);
    link_msg_free(ev.msg);
}

void fixture_assert_echo(struct link *l, const char *url)
{
    struct link *other = fixture_link();
    struct link_lane *lane = fixture_lane(other, url);
    fixture_send(lane, "still there?");
    const struct link_event request = fixture_expect(l, LINK_REQUEST);
    const struct str bytes = link_msg_bytes(request.msg);
    assert_true(link_answer(request.server, request.request, bytes.ptr, bytes.len));
    link_msg_free(request.msg);
    fixture_assert_bytes(fixture_expect(other, LINK_ANSWER), "still there?");
    link_free(other);
}

struct link_event fixture_expect_lost_and(struct link *l, enum link_event_type other)
{
    struct link_event ev;
    struct link_event lost = {.lane = NULL};
    bool seen_generation = false;
    while (lost.lane == NULL || !seen_generation) {
        if (!fixture_next(l, FIXTURE_WAIT_MS, &ev)) {
            fail_msg("lost %d, event %d %d", lost.lane != NULL, other, seen_generation);
        }
        assert_true(ev.type == LINK_LOST || ev.type == LINK_DOWN || ev.type == LINK_UP);
        lost = ev.type == LINK_LOST ? ev : lost;
        seen_generation = seen_generation || ev.type == other;
    }
    return lost;
}

struct link_pub *fixture_publisher(struct link *l, const char *url)
{
    struct link_pub *p = NULL;
    struct bt_error err = {.msg = ""};
    if (link_pub_open(l, url, &fixture_limits, &p, &err) != BT_OK) {
        fail_msg("pub: %s", err.msg);
    }
    return p;
}

struct link_sub *fixture_subscriber(struct link *l, const char *url, const struct str *prefixes,
                                    uint32_t n)
{
    struct link_sub *s = NULL;
    struct bt_error err = {.msg = ""};
    if (link_sub_dial(l, url, prefixes, n, &fixture_limits, NULL, &s, &err) != BT_OK) {
        fail_msg("sub: %s", err.msg);
    }
    assert_ptr_equal(fixture_expect(l, LINK_SUB_UP).sub, s);
    return s;
}

void fixture_wait_live(struct link *l, struct link_pub *p)
{
    struct link_event ev;
    for (int i = 0; i < 500; i++) {
        link_publish(p, STR_LIT("live"), "", 0);
        if (fixture_next(l, 10, &ev)) {
            assert_int_equal(ev.type, LINK_FRAME);
            link_msg_free(ev.msg);
            while (fixture_next(l, 50, &ev)) {
                link_msg_free(ev.msg);
            }
            return;
        }
    }
    fail_msg("no frame arrived");
}

int fixture_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n;
}

int fixture_sockets(void)
{
    nng_stat *all = NULL;
    int n = 0;
    assert_int_equal(nng_stats_get(&all), 0);
    for (nng_stat *s = nng_stat_child(all); s != NULL; s = nng_stat_next(s)) {
        n += strcmp(nng_stat_name(s), "socket") == 0 ? 1 : 0;
    }
    nng_stats_free(all);
    return n;
}

const char *fixture_dir(void)
{
    static char dir[64];
    (void)snprintf(dir, sizeof dir, "/tmp/baton-link-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return dir;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void fixture_rmdir(const char *dir)
{
    (void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

struct child child_start(char *const argv[])
{
    struct child c = {.pid = 0};
    int in[2];
    int out[2];
    posix_spawn_file_actions_t actions;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, in[0], 0), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, out[1], 1), 0);
    assert_int_equal(posix_spawn_file_actions_addclosefrom_np(&actions, 3), 0);
    assert_int_equal(posix_spawnp(&c.pid, argv[0], &actions, NULL, argv, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    c.in = in[1];
    c.out = out[0];
    return c;
}

bool child_readable(const struct child *c)
{
    struct pollfd p = {.fd = c->out, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

const char *child_line(struct child *c)
{
    static char line[256];
    size_t len = 0;
    char byte = 0;
    while (read(c->out, &byte, 1) == 1 && c->len < sizeof c->text - 1 && len < sizeof line - 1) {
        c->text[c->len++] = byte;
        if (byte == '\n') {
            line[len] = '\0';
            return line;
        }
        line[len++] = byte;
    }
    fail_msg("the child ended before its line");
    return NULL;
}

void child_finish(struct child *c)
{
    ssize_t n = 0;
    (void)close(c->in);
    while ((n = read(c->out, c->text + c->len, sizeof c->text - 1 - c->len)) > 0) {
        c->len += (size_t)n;
    }
    c->text[c->len] = '\0';
    (void)close(c->out);
    (void)waitpid(c->pid, &c->status, 0);
}

void child_kill(struct child *c)
{
    (void)kill(c->pid, SIGKILL);
    child_finish(c);
}

struct child peer_start(const char *mode, const char *url, const char *log)
{
    char program[512];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 16);
    assert_true(n > 0);
    program[n] = '\0';
    (void)snprintf(strrchr(program, '/'), 16, "/link_peer");
    char *argv[] = {program, (char *)(uintptr_t)mode, (char *)(uintptr_t)url,
                    (char *)(uintptr_t)log, NULL};
    return child_start(argv);
}

int fixture_lines(const char *path)
{
    FILE *f = fopen(path, "re");
    int lines = 0;
    int c = 0;
    if (f == NULL) {
        return 0;
    }
    while ((c = fgetc(f)) != EOF) {
        lines += c == '\n';
    }
    (void)fclose(f);
    return lines;
}
