#include "tests/edge/spawn/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "supervisor/spawn/proc.h"
#include "supervisor/spawn/spawner.h"

static int count_fds(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");

    while (dir != NULL && readdir(dir) != NULL) {
        n++;
    }
    (void)closedir(dir);
    return n;
}

int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    char template[] = "/tmp/baton-spawn-XXXXXX";

    if (w == NULL || mkdtemp(template) == NULL) {
        return -1;
    }
    w->fds_before = count_fds();
    (void)snprintf(w->dir, sizeof w->dir, "%s", template);
    (void)snprintf(w->fifo_path, sizeof w->fifo_path, "%s/fifo", w->dir);
    if (mkfifo(w->fifo_path, 0600) != 0) {
        return -1;
    }
    w->fifo = open(w->fifo_path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    *state = w;
    return w->fifo >= 0 ? 0 : -1;
}

int world_setup_no_cgroup(void **state)
{
    int failed = world_setup(state);

    if (failed == 0) {
        ((struct world *)*state)->no_cgroup = true;
    }
    return failed;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Counts processes, zombies too, whose environment names this state directory. */
static int processes_left(const struct world *w)
{
    struct proc_list list = {0};
    char entry[PATH_BYTES + 32];
    int n = 0;

    (void)snprintf(entry, sizeof entry, "BATON_STATE=%s", w->dir);
    if (proc_read(&list, NULL) == BT_OK) {
        proc_mark_descendants(&list, getpid());
        for (size_t i = 0; i < list.n; i++) {
            if (list.entries[i].marked || proc_has_env(list.entries[i].pid, entry)) {
                print_error("left: pid %d zombie %d\n", (int)list.entries[i].pid,
                            list.entries[i].zombie);
                n++;
            }
        }
    }
    proc_done(&list);
    return n;
}

int world_teardown(void **state)
{
    struct world *w = *state;
    int left;
    int fds;

    spawn_close(w->spawn);
    (void)close(w->fifo);
    left = processes_left(w);
    fds = count_fds();
    (void)nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (fds != w->fds_before) {
        print_error("descriptors: %d before, %d after\n", w->fds_before, fds);
    }
    left += fds != w->fds_before;
    free(w);
    return left;
}

struct spawn_spec agent_spec(struct world *w, const char *name, const char *role, const char *extra)
{
    static const char *argv[8][5];
    static unsigned turn;
    const char **at = argv[turn++ % 8];

    at[0] = SPAWN_TEST_AGENT;
    at[1] = role;
    at[2] = w->fifo_path;
    at[3] = extra;
    at[4] = NULL;
    return (struct spawn_spec){.name = name,
                               .agent_id = "tester",
                               .argv = at,
                               .policy = policy_defaults(),
                               .log_files = 1};
}

void world_open(struct world *w, const struct spawn_spec *specs, size_t n)
{
    struct spawn_options opt = {.state_dir = w->dir, .no_cgroup = w->no_cgroup};
    struct bt_error err = {0};

    if (spawn_begin(&opt, &w->spawn, &err) != BT_OK || spawn_greet(&w->spawn, &err) != BT_OK ||
        spawn_set_children(w->spawn, specs, n, clock_mono_ms(), &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

/* One cycle of a daemon, at most until the given time; waits for other_fd too. */
static void turn(struct world *w, int other_fd, msec until)
{
    struct pollfd p[2] = {{.fd = w->spawn != NULL ? spawn_fd(w->spawn) : -1, .events = POLLIN},
                          {.fd = other_fd, .events = POLLIN}};
    msec now = clock_mono_ms();
    msec due = w->spawn != NULL ? spawn_deadline(w->spawn) : MSEC_NEVER;

    due = due < until ? due : until;
    (void)poll(p, 2, due > now ? (int)(due - now) : 0);
    if (w->spawn != NULL) {
        spawn_handle(w->spawn, clock_mono_ms());
        spawn_tick(w->spawn, clock_mono_ms());
    }
}

/* True when the next event is of this type. */
static bool next_event(struct world *w, enum spawn_event_type type, bool *ret_found)
{
    struct spawn_event ev;

    *ret_found = false;
    if (!spawn_next_event(w->spawn, &ev)) {
        return false;
    }
    w->last = ev;
    w->seen[ev.type]++;
    *ret_found = ev.type == type;
    if (w->register_all && (ev.type == SPAWN_STARTED || ev.type == SPAWN_RESTARTED)) {
        (void)spawn_registered(w->spawn, str_from(ev.instance_id), clock_mono_ms());
    }
    return true;
}

void wait_event(struct world *w, enum spawn_event_type type)
{
    msec until = clock_mono_ms() + WAIT_MS;
    bool found = false;

    for (;;) {
        while (next_event(w, type, &found)) {
            if (found) {
                return;
            }
        }
        if (clock_mono_ms() >= until) {
            fail_msg("no event '%s' within %d ms", spawn_event_name(type), WAIT_MS);
        }
        turn(w, -1, until);
    }
}

void turn_until_idle(struct world *w)
{
    msec until = clock_mono_ms() + WAIT_MS;
    bool found;

    while (!spawn_is_idle(w->spawn)) {
        if (clock_mono_ms() >= until) {
            fail_msg("not idle within %d ms", WAIT_MS);
        }
        turn(w, -1, until);
        while (next_event(w, SPAWN_EVENT_COUNT, &found)) {
        }
    }
}

static bool take_line(struct world *w, pid_t *ret_pid, pid_t *ret_other)
{
    char *end = memchr(w->line, '\n', w->line_n);
    size_t used;
    int pid = 0;
    int other = 0;

    if (end == NULL) {
        return false;
    }
    *end = 0;
    if (sscanf(w->line, "%d %d", &pid, &other) != 2) {
        fail_msg("an agent wrote '%s'", w->line);
    }
    used = (size_t)(end - w->line) + 1;
    memmove(w->line, end + 1, w->line_n - used);
    w->line_n -= used;
    *ret_pid = pid;
    *ret_other = other;
    return true;
}

void wait_line(struct world *w, pid_t *ret_pid, pid_t *ret_other)
{
    msec until = clock_mono_ms() + WAIT_MS;

    while (!take_line(w, ret_pid, ret_other)) {
        ssize_t n = read(w->fifo, w->line + w->line_n, sizeof w->line - w->line_n);
        if (n > 0) {
            w->line_n += (size_t)n;
            continue;
        }
        if (clock_mono_ms() >= until) {
            fail_msg("no agent wrote to the FIFO within %d ms", WAIT_MS);
        }
        turn(w, w->fifo, until);
    }
}

bool is_alive(pid_t pid)
{
    int fd = pidfd_open(pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool alive = fd >= 0 && poll(&p, 1, 0) == 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return alive;
}

void wait_gone(struct world *w, pid_t pid, msec within_ms)
{
    msec until = clock_mono_ms() + within_ms;
    int fd = pidfd_open(pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (fd < 0) {
        assert_int_equal(errno, ESRCH);
        return;
    }
    while (poll(&p, 1, 0) == 0) {
        if (clock_mono_ms() >= until) {
            (void)close(fd);
            fail_msg("process %d lives after %llu ms", (int)pid, (unsigned long long)within_ms);
        }
        turn(w, fd, until);
    }
    (void)close(fd);
}

_Noreturn static void daemon_main(char **argv)
{
    struct world w = {.fifo = -1, .register_all = true};
    bool found;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(w.dir, sizeof w.dir, "%s", argv[2]);
    (void)snprintf(w.fifo_path, sizeof w.fifo_path, "%s/fifo", argv[2]);
    w.no_cgroup = strcmp(argv[3], "1") == 0;
    world_open(&w,
               (const struct spawn_spec[]){agent_spec(&w, "a#1", argv[4], NULL),
                                           agent_spec(&w, "b#1", argv[5], NULL)},
               2);
    for (;;) {
        turn(&w, -1, MSEC_NEVER - 1);
        while (next_event(&w, SPAWN_EVENT_COUNT, &found)) {
        }
    }
}

int special_main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], SPAWNER_ARGUMENT) == 0) {
        return spawner_main(argc, argv);
    }
    if (argc > 5 && strcmp(argv[1], "--daemon") == 0) {
        daemon_main(argv);
    }
    return -1;
}

pid_t start_daemon(struct world *w)
{
    return start_daemon_of(w, "wait", "daemon");
}

pid_t start_daemon_of(struct world *w, const char *role_a, const char *role_b)
{
    char roles[2][32];
    char program[] = "/proc/self/exe";
    char role[] = "--daemon";
    char flag[2] = {w->no_cgroup ? '1' : '0', 0};
    char *argv[] = {program, role, w->dir, flag, roles[0], roles[1], NULL};
    (void)snprintf(roles[0], sizeof roles[0], "%s", role_a);
    (void)snprintf(roles[1], sizeof roles[1], "%s", role_b);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execv(program, argv);
        _exit(94);
    }
    return pid;
}
