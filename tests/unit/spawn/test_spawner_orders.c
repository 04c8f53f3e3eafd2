/* The spawner's side: orders of the daemon, its children, and what it reports. */
#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/spawn/spawner_internal.h"
#include "tests/support/tree.h"

#define ONE "01900000-0000-7000-8000-000000000001"
#define TWO "01900000-0000-7000-8000-000000000002"

enum { NOW = 1000000, GRACE_MS = 4000 };

static struct spawner *s;
static char dir[64];
static int conn; /* the daemon's end */
static struct packet got;
static uint8_t in[PACKET_BYTES + 1];
static struct packet order;

static void connect_daemon(void)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    conn = ends[0];
    s->conn = ends[1];
}

static int set_up(void **state)
{
    char path[128];

    (void)state;
    log_setup(LOG_ERR, NULL, NULL);
    s = calloc(1, sizeof *s);
    assert_non_null(s);
    (void)snprintf(dir, sizeof dir, "/tmp/baton-spawner-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/log", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    s->state_path = dir;
    s->state_dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->listener = -1;
    s->orphan_grace_ms = GRACE_MS;
    s->orphan_due = MSEC_NEVER;
    s->cgroup = CGROUP_NONE;
    (void)snprintf(s->mark, sizeof s->mark, "BATON_SPAWNED=1.2");
    buf_init(&s->out, PACKET_BYTES);
    connect_daemon();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < s->children_n; i++) {
        if (s->children[i].pid > 0 && child_is_alive(&s->children[i]) && !s->children[i].reaped) {
            (void)kill(s->children[i].pid, SIGKILL);
            (void)waitpid(s->children[i].pid, NULL, 0);
        }
    }
    (void)close(conn);
    if (s->conn >= 0) {
        (void)close(s->conn);
    }
    (void)close(s->state_dir);
    proc_done(&s->procs);
    buf_done(&s->out);
    free(s);
    return tree_drop(dir);
}

static void sends(const struct packet *p)
{
    struct buf out;

    buf_init(&out, PACKET_BYTES);
    packet_encode(p, &out);
    assert_int_equal(send(conn, out.at, out.len, MSG_NOSIGNAL), out.len);
    buf_done(&out);
    conn_read(s, NOW);
}

/* An order to start a shell with this command, or a program. */
static struct packet *start_of(const char *instance, const char *name, char *program, char *command)
{
    static char flag[] = "-c";
    static char path[] = "PATH=/usr/bin:/bin";
    static char own[64];

    (void)snprintf(own, sizeof own, "BATON_INSTANCE_ID=%s", instance);
    order = (struct packet){.type = PACKET_START,
                            .instance = instance,
                            .name = name,
                            .text = "/",
                            .argv = {program, command != NULL ? flag : NULL, command},
                            .env = {own, path}};
    return &order;
}

static char sh[] = "/bin/sh";
static char stays[] = "kill -STOP $$";
static char ends[] = "exit 3";

static void reported(enum packet_type type, const char *instance)
{
    ssize_t n;

    n = recv(conn, in, sizeof in, MSG_DONTWAIT);
    assert_true(n > 0);
    assert_int_equal(packet_decode(in, (size_t)n, &got, NULL), BT_OK);
    assert_int_equal(got.type, type);
    assert_string_equal(got.instance, instance);
}

static void no_report(void)
{
    conn_send_pending(s);
    assert_int_equal(recv(conn, in, sizeof in, MSG_DONTWAIT), -1);
}

static struct child *runs(struct packet *p)
{
    struct child *c;
    struct pollfd fd;

    sends(p);
    c = &s->children[s->children_n - 1];
    assert_int_equal(c->state, CHILD_STARTING);
    fd = (struct pollfd){.fd = c->exec_pipe, .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 60000), 1);
    children_exec_done(c);
    assert_int_equal(c->exec_pipe, -1);
    return c;
}

/* Until its main process has ended, is reaped and nothing of its tree is left. */
static void is_swept(const struct child *c, msec now)
{
    siginfo_t info;

    assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT), 0);
    children_reap(s, now);
    assert_true(c->reaped && c->sweeping);
    for (int i = 0; i < 1000 && c->state != CHILD_GONE; i++) {
        children_sweep(s, now);
        now += SWEEP_EVERY_MS;
    }
    assert_int_equal(c->state, CHILD_GONE);
}

/* ---- reports ---- */

static void a_process_is_reported_when_it_runs_and_when_it_has_ended(void **state)
{
    struct child *c = runs(start_of(ONE, "a#1", sh, ends));
    const pid_t pid = c->pid;

    (void)state;
    conn_send_pending(s);
    reported(PACKET_STARTED, ONE);
    assert_int_equal(got.pid, pid);
    assert_string_equal(got.name, "a#1");
    no_report();
    is_swept(c, NOW);
    assert_true(conn_has_pending(s));
    conn_send_pending(s);
    reported(PACKET_EXITED, ONE);
    assert_int_equal(got.pid, pid);
    assert_true(WIFEXITED(got.status) && WEXITSTATUS(got.status) == 3);
    assert_string_equal(got.text, "");
    assert_int_equal(c->state, CHILD_FREE);
    assert_false(conn_has_pending(s));
    no_report();
}

static void a_program_that_is_not_there_is_reported_with_its_name(void **state)
{
    static char missing[] = "/does/not/exist";
    static char longest[128];
    struct child *c;

    (void)state;
    c = runs(start_of(ONE, "a#1", missing, NULL));
    is_swept(c, NOW);
    conn_send_pending(s);
    reported(PACKET_START_FAILED, ONE);
    assert_string_equal(got.text, "exec of /does/not/exist failed: No such file or directory");
    for (size_t len = 72; len <= 73; len++) { /* of a longer path the end is shown */
        memset(longest, 'x', sizeof longest);
        longest[0] = '/';
        longest[len - 1] = 'e';
        longest[len] = 0;
        sends(start_of(ONE, "a#1", longest, NULL));
        c = &s->children[0];
        assert_int_equal(poll(&(struct pollfd){.fd = c->exec_pipe, .events = POLLIN}, 1, 60000), 1);
        is_swept(c, NOW);
        conn_send_pending(s);
        reported(PACKET_START_FAILED, ONE);
        assert_int_equal(strncmp(got.text, len == 72 ? "exec of /x" : "exec of ...x", 10), 0);
        assert_non_null(strstr(got.text, "xe failed: No such file"));
    }
}

static void what_a_process_cannot_be_given_is_reported(void **state)
{
    static char other[] = "other=1";
    struct packet *p = start_of(ONE, "a#1", sh, ends);

    (void)state;
    p->apart[0] = other;
    sends(p);
    assert_int_equal(s->children[0].state, CHILD_GONE);
    conn_send_pending(s);
    reported(PACKET_START_FAILED, ONE);
    assert_string_equal(got.text, "not set apart: 'other=1' is not known to this version");
    p = start_of(ONE, "a#1", sh, ends);
    p->text = "/does/not/exist";
    is_swept(runs(p), NOW);
    conn_send_pending(s);
    reported(PACKET_START_FAILED, ONE);
    assert_string_equal(got.text, "working directory failed: No such file or directory");
}

static void the_limit_that_ended_a_process_is_named(void **state)
{
    (void)state;
    s->children_n = 1;
    s->children[0] = (struct child){.state = CHILD_GONE,
                                    .pending_reports = REPORT_END,
                                    .instance = ONE,
                                    .name = "a#1",
                                    .status = 9,
                                    .reached = "limits.memoryBytes"};
    conn_send_pending(s);
    reported(PACKET_EXITED, ONE);
    assert_string_equal(got.text, "limits.memoryBytes");
}

/* ---- the daemon ---- */

static void a_new_daemon_is_told_who_lives_before_all_else(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)state;
    s->children_n = 4;
    s->children[0] = (struct child){
        .state = CHILD_GONE, .pending_reports = REPORT_END, .instance = "gone", .exec_pipe = -1};
    s->children[1] = (struct child){.state = CHILD_RUNNING,
                                    .instance = ONE,
                                    .name = "a#1",
                                    .pid = 0,
                                    .hash = 77,
                                    .reaped = true};
    s->children[2] = (struct child){.state = CHILD_STARTING, .instance = TWO, .reaped = true};
    s->children[3] = (struct child){.state = CHILD_FREE};
    (void)close(conn);
    conn_read(s, NOW);
    assert_int_equal(s->conn, -1);
    assert_int_equal(s->orphan_due, NOW + GRACE_MS);
    assert_int_equal(s->children[0].state, CHILD_FREE); /* nobody asks any more */
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/spawner.sock", dir);
    s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(s->listener, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    conn_accept(s); /* nobody is there */
    assert_int_equal(s->conn, -1);
    conn = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(conn, (const struct sockaddr *)&at, sizeof at), 0);
    conn_accept(s);
    assert_true(s->conn >= 0);
    assert_int_equal(s->orphan_due, MSEC_NEVER);
    s->children[1].pending_reports |= REPORT_END; /* it ends just now */
    assert_true(conn_has_pending(s));
    conn_send_pending(s);
    reported(PACKET_HELLO, "");
    assert_int_equal(got.pid, getpid());
    assert_int_equal(got.count, 2);
    assert_string_equal(got.text, PACKET_VERSION);
    reported(PACKET_CHILD, ONE);
    assert_int_equal(got.hash, 77);
    assert_string_equal(got.name, "a#1");
    reported(PACKET_EXITED, ONE);
    reported(PACKET_CHILD, TWO);
    no_report();
    (void)close(s->listener);
    s->listener = -1;
}

static void what_is_no_order_ends_the_connection(void **state)
{
    (void)state;
    assert_int_equal(send(conn, "\x02\x03", 2, 0), 2);
    conn_read(s, NOW);
    assert_int_equal(s->conn, -1);
    assert_int_equal(s->orphan_due, NOW + GRACE_MS);
    conn_close(s, NOW + 5); /* and again */
    assert_int_equal(s->orphan_due, NOW + GRACE_MS);
    assert_false(s->ending);
}

/* A new version ends an old spawner by the first byte. */
static void one_byte_ends_the_spawner(void **state)
{
    struct child *c = runs(start_of(ONE, "a#1", sh, stays));
    siginfo_t info;

    (void)state;
    assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WNOWAIT), 0);
    assert_int_equal(send(conn, "\x01?", 2, 0), 2);
    conn_read(s, NOW);
    assert_true(s->ending);
    assert_int_equal(s->end_kill_due, NOW + END_GRACE_MS);
    assert_int_equal(s->end_limit, NOW + END_LIMIT_MS);
    spawner_end(s, NOW + 5); /* and again */
    assert_int_equal(s->end_limit, NOW + END_LIMIT_MS);
    sends(start_of(TWO, "b#1", sh, stays)); /* nothing starts then */
    assert_int_equal(s->children_n, 1);
    assert_int_equal(kill(c->pid, SIGCONT), 0);
    is_swept(c, NOW); /* it was told to end */
    assert_true(WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGTERM);
}

/* ---- orders ---- */

static void a_name_is_no_path(void **state)
{
    static const char *const names[] = {"", ".a", "a/b", "/a"};
    char longest[CHILD_NAME_BYTES + 1];
    struct packet *p;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        sends(start_of(ONE, names[i], sh, ends));
        assert_int_equal(s->children_n, 0);
    }
    memset(longest, 'n', sizeof longest);
    longest[CHILD_NAME_BYTES] = 0;
    sends(start_of(ONE, longest, sh, ends));
    sends(start_of("short", "a#1", sh, ends));
    sends(start_of(ONE "0", "a#1", sh, ends));
    sends(start_of("0190/000-0000-7000-8000-000000000001", "a#1", sh, ends));
    p = start_of(ONE, "a#1", sh, ends);
    p->argv[0] = NULL;
    sends(p);
    assert_int_equal(s->children_n, 0);
    longest[CHILD_NAME_BYTES - 1] = 0;
    (void)runs(start_of(ONE, longest, sh, ends));
    assert_int_equal(s->children_n, 1);
}

static void there_is_room_for_so_many_children(void **state)
{
    (void)state;
    s->children_n = CHILDREN_MAX;
    for (uint32_t i = 0; i < CHILDREN_MAX; i++) {
        s->children[i] = (struct child){.state = CHILD_RUNNING, .reaped = true, .handover = -1};
    }
    sends(start_of(ONE, "a#1", sh, ends));
    assert_int_equal(s->children_n, CHILDREN_MAX);
    s->children_n--;
    sends(start_of(ONE, "a#1", sh, ends));
    assert_int_equal(s->children_n, CHILDREN_MAX);
    assert_string_equal(s->children[CHILDREN_MAX - 1].name, "a#1");
    s->children[7].state = CHILD_FREE; /* a place that was left */
    sends(start_of(TWO, "b#1", sh, ends));
    assert_string_equal(s->children[7].name, "b#1");
}

static void a_log_has_its_size_and_at_most_nine_before_it(void **state)
{
    struct packet *p = start_of(ONE, "a#1", sh, ends);
    struct stat st;
    char path[128];

    (void)state;
    p->log_files = 10;
    assert_int_equal(runs(p)->log_files, 9);
    assert_int_equal(s->children[0].log_bytes, 10 * 1024 * 1024);
    (void)snprintf(path, sizeof path, "%s/log/a#1.log", dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    p = start_of(TWO, "b#1", sh, ends);
    p->log_files = 8;
    p->log_bytes = 5000;
    assert_int_equal(runs(p)->log_files, 8);
    assert_int_equal(s->children[1].log_bytes, 5000);
}

/* The environment of a process is that of its order, and three more. */
static void a_process_is_marked_as_spawned(void **state)
{
    static char print[] = "env";
    static char secret[] = "secret:K=v";
    struct packet *p = start_of(ONE, "a#1", sh, print);
    char path[128];
    char text[1024];
    ssize_t n;
    int fd;

    (void)state;
    (void)snprintf(s->hide, sizeof s->hide, "BATON_HIDE=/x/hide.so");
    p->handover[0] = secret;
    is_swept(runs(p), NOW);
    (void)snprintf(path, sizeof path, "%s/log/a#1.log", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = read(fd, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = 0;
    (void)close(fd);
    assert_non_null(strstr(text, "BATON_SPAWNED=1.2\n"));
    assert_non_null(strstr(text, "BATON_HIDE=/x/hide.so\n"));
    assert_non_null(strstr(text, "BATON_HANDOVER=4\n"));
    assert_non_null(strstr(text, "BATON_INSTANCE_ID=" ONE "\n"));
    assert_null(strstr(text, "secret"));
    s->hide[0] = 0;
    is_swept(runs(start_of(TWO, "b#1", sh, print)), NOW);
    (void)snprintf(path, sizeof path, "%s/log/b#1.log", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = read(fd, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = 0;
    (void)close(fd);
    assert_null(strstr(text, "BATON_HIDE"));
    assert_null(strstr(text, "BATON_HANDOVER"));
}

static void what_a_process_was_handed_is_emptied_when_it_has_registered(void **state)
{
    static char secret[] = "secret:K=v";
    struct packet *p = start_of(ONE, "a#1", sh, stays);
    struct child *c;
    struct stat st;
    char text[64];
    int fd;

    (void)state;
    p->handover[0] = secret;
    c = runs(p);
    assert_true(c->handover >= 0);
    fd = fcntl(c->handover, F_DUPFD_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, text, sizeof text, 0), sizeof "secret:K=v");
    assert_string_equal(text, "secret:K=v");
    sends(&(struct packet){.type = PACKET_REGISTERED, .instance = TWO});
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_not_equal(st.st_size, 0);    /* that was another one */
    assert_int_equal(st.st_mode & 0777, 0); /* nobody opens it again */
    sends(&(struct packet){.type = PACKET_REGISTERED, .instance = ONE});
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(c->handover, -1);
    (void)close(fd);
}

static void a_signal_is_for_a_process_that_lives(void **state)
{
    struct child *c = runs(start_of(ONE, "a#1", sh, stays));
    siginfo_t info;

    (void)state;
    assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WNOWAIT), 0);
    sends(&(struct packet){.type = PACKET_SIGNAL, .instance = ONE, .status = NSIG});
    sends(&(struct packet){.type = PACKET_SIGNAL, .instance = ONE, .status = 0});
    sends(&(struct packet){.type = PACKET_SIGNAL, .instance = TWO, .status = SIGKILL});
    info.si_pid = 0;
    assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    assert_int_equal(info.si_pid, 0);
    sends(&(struct packet){.type = PACKET_SIGNAL, .instance = ONE, .status = SIGKILL});
    is_swept(c, NOW);
    assert_true(WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL);
}

static void a_tree_is_killed_at_once_and_its_end_is_reported_once(void **state)
{
    static char tree[] = "sleep 1000 & sleep 1000 & kill -STOP $$";
    struct child *c = runs(start_of(ONE, "a#1", sh, tree));
    siginfo_t info;

    (void)state;
    assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WNOWAIT), 0);
    conn_send_pending(s);
    reported(PACKET_STARTED, ONE);
    sends(&(struct packet){.type = PACKET_KILL_TREE, .instance = TWO});
    assert_false(c->sweeping);
    sends(&(struct packet){.type = PACKET_KILL_TREE, .instance = ONE});
    assert_true(c->sweeping);
    assert_int_equal(c->sweep_due, NOW);
    children_sweep(s, NOW - 1);
    assert_int_equal(c->sweep_due, NOW); /* not yet */
    children_sweep(s, NOW);
    assert_int_equal(c->sweep_due, NOW + SWEEP_EVERY_MS);
    assert_int_equal(c->empty_passes, 2);
    is_swept(c, NOW);
    conn_send_pending(s);
    reported(PACKET_EXITED, ONE);
    no_report();
}

static unsigned descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

static void a_process_that_has_ended_leaves_no_descriptor(void **state)
{
    static char missing[] = "/does/not/exist";
    static char secret[] = "secret:K=v";
    static char other[] = "other=1";
    const unsigned before = descriptors();

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct packet *p = start_of(ONE, "a#1", i == 1 ? missing : sh, i == 1 ? NULL : ends);
        p->handover[0] = secret;
        p->apart[0] = i == 2 ? other : NULL;
        if (i == 2) {
            sends(p);
        } else {
            is_swept(runs(p), NOW);
        }
        conn_send_pending(s);
        assert_int_equal(descriptors(), before);
        while (recv(conn, in, sizeof in, MSG_DONTWAIT) > 0) {
        }
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_process_is_reported_when_it_runs_and_when_it_has_ended),
        T(a_program_that_is_not_there_is_reported_with_its_name),
        T(what_a_process_cannot_be_given_is_reported),
        T(the_limit_that_ended_a_process_is_named),
        T(a_new_daemon_is_told_who_lives_before_all_else),
        T(what_is_no_order_ends_the_connection),
        T(one_byte_ends_the_spawner),
        T(a_name_is_no_path),
        T(there_is_room_for_so_many_children),
        T(a_log_has_its_size_and_at_most_nine_before_it),
        T(a_process_is_marked_as_spawned),
        T(what_a_process_was_handed_is_emptied_when_it_has_registered),
        T(a_signal_is_for_a_process_that_lives),
        T(a_tree_is_killed_at_once_and_its_end_is_reported_once),
        T(a_process_that_has_ended_leaves_no_descriptor),
    };
#undef T

    return cmocka_run_group_tests(tests, NULL, NULL);
}
