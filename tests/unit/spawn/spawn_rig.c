#include "tests/unit/spawn/spawn_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "tests/support/tree.h"

struct rig rig;

enum { NOW = 1000000 };

void rig_listen(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/spawner.sock", rig.dir);
    (void)unlink(at.sun_path);
    rig.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true(rig.listener >= 0);
    assert_int_equal(bind(rig.listener, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(rig.listener, 4), 0);
}

void rig_accept(void)
{
    rig.conn = accept4(rig.listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(rig.conn >= 0);
}

int rig_open(void **state)
{
    char path[128];

    (void)state;
    log_setup(LOG_ERR, NULL, NULL);
    rig = (struct rig){.listener = -1, .conn = -1, .now = NOW};
    (void)snprintf(rig.dir, sizeof rig.dir, "/tmp/baton-spawn-XXXXXX");
    assert_non_null(mkdtemp(rig.dir));
    (void)snprintf(path, sizeof path, "%s/log", rig.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    rig_listen();
    return 0;
}

int rig_close(void **state)
{
    (void)state;
    spawn_abandon(rig.s);
    if (rig.listener >= 0) {
        (void)close(rig.listener);
    }
    if (rig.conn >= 0) {
        (void)close(rig.conn);
    }
    return tree_drop(rig.dir);
}

void rig_send(const struct packet *p)
{
    struct buf out;

    buf_init(&out, PACKET_BYTES);
    packet_encode(p, &out);
    assert_int_equal(buf_check(&out, NULL), BT_OK);
    assert_int_equal(send(rig.conn, out.at, out.len, MSG_NOSIGNAL), out.len);
    buf_done(&out);
}

void rig_begin(const struct spawn_options *more, const struct rig_child *children, uint32_t n)
{
    static struct packet p;
    struct spawn_options opt = more != NULL ? *more : (struct spawn_options){.shards = 0};

    opt.state_dir = rig.dir;
    assert_int_equal(spawn_begin(&opt, &rig.s, &rig.err), BT_OK);
    rig_accept();
    p = (struct packet){.type = PACKET_HELLO, .pid = getpid(), .count = n, .text = PACKET_VERSION};
    rig_send(&p);
    for (uint32_t i = 0; i < n; i++) {
        p = (struct packet){.type = PACKET_CHILD,
                            .pid = children[i].pid,
                            .hash = children[i].hash,
                            .instance = children[i].instance,
                            .name = children[i].name};
        rig_send(&p);
    }
    assert_int_equal(spawn_greet(&rig.s, &rig.err), BT_OK);
}

struct spawn_spec rig_spec(const char *name)
{
    static const char *const argv[] = {"/bin/agent", "--flag", NULL};

    return (struct spawn_spec){
        .name = name, .agent_id = "agent", .argv = argv, .policy = policy_defaults()};
}

void rig_set(const struct spawn_spec *specs, size_t n)
{
    if (spawn_set_children(rig.s, specs, n, rig.now, &rig.err) != BT_OK) {
        fail_msg("%s", rig.err.msg);
    }
}

static ssize_t receive(void)
{
    return recv(rig.conn, rig.in, sizeof rig.in, MSG_DONTWAIT);
}

void rig_ordered(enum packet_type type)
{
    const ssize_t n = receive();

    assert_true(n > 0);
    assert_int_equal(packet_decode(rig.in, (size_t)n, &rig.got, &rig.err), BT_OK);
    assert_int_equal(rig.got.type, type);
}

void rig_started(const char *name)
{
    rig_ordered(PACKET_START);
    assert_string_equal(rig.got.name, name);
    (void)snprintf(rig.instance, sizeof rig.instance, "%s", rig.got.instance);
    assert_int_equal(strlen(rig.instance), UUID_TEXT_LEN);
}

void rig_no_order(void)
{
    assert_int_equal(receive(), -1);
}

void rig_report(enum packet_type type, const char *instance, pid_t pid, int status,
                const char *text)
{
    static struct packet p;

    p = (struct packet){
        .type = type, .instance = instance, .pid = pid, .status = status, .text = text};
    rig_send(&p);
    spawn_handle(rig.s, rig.now);
}

void rig_event(enum spawn_event_type type, const char *name)
{
    assert_true(spawn_next_event(rig.s, &rig.ev));
    if (rig.ev.type != type || strcmp(rig.ev.name, name) != 0) {
        fail_msg("%s of %s instead of %s of %s", spawn_event_name(rig.ev.type), rig.ev.name,
                 spawn_event_name(type), name);
    }
}

void rig_no_event(void)
{
    struct spawn_event ev;

    assert_false(spawn_next_event(rig.s, &ev));
}

void rig_pass(msec ms)
{
    rig.now += ms;
    spawn_tick(rig.s, rig.now);
}

void rig_up(const char *name, pid_t pid)
{
    rig_started(name);
    rig_report(PACKET_STARTED, rig.instance, pid, 0, "");
    rig_event(SPAWN_STARTED, name);
    assert_true(spawn_registered(rig.s, str_from(rig.instance), rig.now));
    rig_ordered(PACKET_REGISTERED);
    rig_event(SPAWN_UP, name);
    rig_no_event();
    rig_no_order();
}
