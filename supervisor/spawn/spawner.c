#include "supervisor/spawn/spawner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/hide.h"
#include "protocol/base/log.h"
#include "supervisor/spawn/spawner_internal.h"

/* Order of the poll set; the exec pipes follow. */
enum { POLL_SIGNALS, POLL_LISTENER, POLL_CONN, POLL_FIXED };

void spawner_end(struct spawner *s, msec now)
{
    if (s->ending) {
        return;
    }
    s->ending = true;
    s->end_kill_due = msec_add(now, END_GRACE_MS);
    s->end_limit = msec_add(now, END_LIMIT_MS);
    /* Removes the path first: a new daemon then starts its own spawner. */
    (void)unlinkat(s->state_dir, "spawner.sock", 0);
    (void)close(s->listener);
    s->listener = -1;
    for (uint32_t i = 0; i < s->children_n; i++) {
        if (child_is_alive(&s->children[i])) {
            children_signal(s, s->children[i].instance, SIGTERM);
        }
    }
}

static bool any_alive(const struct spawner *s)
{
    bool alive = false;

    for (uint32_t i = 0; i < s->children_n && !alive; i++) {
        alive = child_is_alive(&s->children[i]);
    }
    return alive;
}

/* Kills all descendants, also one that its agent's sweep has missed. True when there were any. */
static bool kill_descendants(struct spawner *s)
{
    bool left = false;

    if (proc_read(&s->procs, NULL) != BT_OK) {
        return true;
    }
    proc_clear_marks(&s->procs);
    proc_mark_descendants(&s->procs, getpid());
    for (size_t i = 0; i < s->procs.n; i++) {
        const struct proc_entry *entry = &s->procs.entries[i];

        if (entry->marked && !entry->zombie) {
            (void)proc_signal(entry, SIGKILL);
            left = true;
        }
    }
    return left;
}

/* True when the spawner may exit. */
static bool end_step(struct spawner *s, msec now)
{
    if (!s->kill_sent && now >= s->end_kill_due) {
        s->kill_sent = true;
        children_kill_all(s, now);
    }
    if (now >= s->end_limit) {
        log_err("spawner.end", "reason=\"some processes survive SIGKILL\"");
        return true;
    }
    return !any_alive(s) && !kill_descendants(s) && (s->conn < 0 || !conn_has_pending(s));
}

static msec next_due(const struct spawner *s)
{
    msec due = s->orphan_due;

    if (s->ending) {
        due = s->kill_sent || !any_alive(s) ? 0 : s->end_kill_due;
    }
    if (any_alive(s) && s->logs_due < due) {
        due = s->logs_due;
    }
    for (uint32_t i = 0; i < s->children_n; i++) {
        if (child_is_alive(&s->children[i]) && s->children[i].sweeping &&
            s->children[i].sweep_due < due) {
            due = s->children[i].sweep_due;
        }
    }
    return due;
}

static int wait_ms(const struct spawner *s, msec now)
{
    msec due = next_due(s);

    if (due == MSEC_NEVER) {
        return -1;
    }
    if (due == 0) {
        return SWEEP_EVERY_MS;
    }
    return due <= now ? 0 : (due - now > 60000 ? 60000 : (int)(due - now));
}

static nfds_t fill_polls(struct spawner *s)
{
    nfds_t n = POLL_FIXED;

    s->polls[POLL_SIGNALS] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    /* One daemon at a time: the next one waits in the backlog until the first is gone. */
    s->polls[POLL_LISTENER] =
        (struct pollfd){.fd = s->conn < 0 ? s->listener : -1, .events = POLLIN};
    s->polls[POLL_CONN] = (struct pollfd){.fd = s->conn, .events = POLLIN};
    if (conn_has_pending(s)) {
        s->polls[POLL_CONN].events |= POLLOUT;
    }
    for (uint32_t i = 0; i < s->children_n; i++) {
        if (s->children[i].state == CHILD_STARTING && s->children[i].exec_pipe >= 0) {
            s->polls[n++] = (struct pollfd){.fd = s->children[i].exec_pipe, .events = POLLIN};
        }
    }
    return n;
}

static void read_exec_results(struct spawner *s, nfds_t n)
{
    for (uint32_t i = 0; i < s->children_n; i++) {
        struct child *child = &s->children[i];
        bool ready = false;

        for (nfds_t k = POLL_FIXED; k < n && child->state == CHILD_STARTING && !ready; k++) {
            ready = s->polls[k].fd == child->exec_pipe && s->polls[k].revents != 0;
        }
        if (ready) {
            children_exec_done(child);
        }
    }
}

static void run_cycle(struct spawner *s)
{
    nfds_t n = fill_polls(s);
    struct signalfd_siginfo info;
    msec now;

    if (poll(s->polls, n, wait_ms(s, clock_mono_ms())) < 0) {
        return; /* EINTR; any other error would return at once and cannot be repaired here */
    }
    now = clock_mono_ms();
    read_exec_results(s, n);
    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    }
    children_reap(s, now);
    if (s->polls[POLL_CONN].fd >= 0 && s->polls[POLL_CONN].revents != 0) {
        conn_read(s, now);
    }
    if (s->polls[POLL_LISTENER].fd >= 0 && s->polls[POLL_LISTENER].revents != 0) {
        conn_accept(s);
    }
    children_sweep(s, now);
    logs_look(s, now);
    conn_send_pending(s);
    if (s->conn < 0 && now >= s->orphan_due) {
        s->orphan_due = MSEC_NEVER;
        spawner_end(s, now);
    }
}

static bool set_up_signals(struct spawner *s)
{
    static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE};
    sigset_t chld;

    /* A stop goes through the daemon: a service manager signals the whole group at once. */
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        (void)signal(ignored[i], SIG_IGN);
    }
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&chld);
    (void)sigaddset(&chld, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &chld, NULL);
    s->signals = signalfd(-1, &chld, SFD_NONBLOCK | SFD_CLOEXEC);
    return s->signals >= 0;
}

/* A variable that names the state directory to nobody but a spawner: not by its path, because the
 * programs of agents have it, too. */
static bool make_mark(struct spawner *s)
{
    struct stat st;

    if (fstat(s->state_dir, &st) != 0) {
        return false;
    }
    (void)snprintf(s->mark, sizeof s->mark, "BATON_SPAWNED=%llx.%llx",
                   (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    return true;
}

/* The library is beside this program, in an installation as in a build tree. */
static void find_hide(struct spawner *s)
{
    const size_t name = strlen("BATON_HIDE=");
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    self[n > 0 ? n : 0] = 0;
    slash = strrchr(self, '/');
    if (slash == NULL) {
        return;
    }
    *slash = 0;
    if (snprintf(s->hide, sizeof s->hide, "BATON_HIDE=%s/" BATON_LIB_DIR "/hide.so", self) >=
            (int)sizeof s->hide ||
        access(s->hide + name, R_OK) != 0) {
        s->hide[0] = 0;
    }
}

/* Of the inherited descriptors only stderr and the listener stay open. */
static bool set_up_files(struct spawner *s, int listener)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool good = null >= 0 && dup2(null, STDIN_FILENO) == 0 && dup2(null, STDOUT_FILENO) == 1;

    if (listener != LISTEN_FD) {
        good = good && dup2(listener, LISTEN_FD) == LISTEN_FD;
    }
    good = good && fcntl(LISTEN_FD, F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(LISTEN_FD, F_SETFL, O_NONBLOCK) == 0 && close_range(LISTEN_FD + 1, ~0u, 0) == 0;
    s->listener = LISTEN_FD;
    s->state_dir = open(s->state_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return good && s->state_dir >= 0 && make_mark(s) && chdir("/") == 0;
}

static int run(struct spawner *s, int listener, bool use_cgroup)
{
    if (!set_up_files(s, listener) || !set_up_signals(s) ||
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        log_err("spawner.start", "reason=\"files, signals or subreaper: the system refused\"");
        return 1;
    }
    (void)prctl(PR_SET_NAME, "baton-spawner", 0, 0, 0);
    find_hide(s);
    if (use_cgroup) {
        cgroup_probe(&s->cgroup);
    }
    children_sweep_leftovers(s);
    log_info("spawner.start", "pid=%d cgroup=%s", (int)getpid(), s->cgroup.dir >= 0 ? "yes" : "no");
    s->orphan_due = msec_add(clock_mono_ms(), s->orphan_grace_ms);
    do {
        run_cycle(s);
    } while (!s->ending || !end_step(s, clock_mono_ms()));
    log_info("spawner.end", "pid=%d", (int)getpid());
    return 0;
}

int spawner_main(int argc, char **argv)
{
    struct spawner *s = calloc(1, sizeof *s);
    unsigned long flags;
    int status = 2;

    hide_process(); /* it keeps the environment of the daemon, and has had that of its agents */

    if (s == NULL || argc != 6 || strcmp(argv[1], SPAWNER_ARGUMENT) != 0 || argv[2][0] != '/') {
        (void)fprintf(stderr,
                      "usage: PROGRAM %s STATE_DIR LISTEN_FD ORPHAN_GRACE_MS FLAGS\n"
                      "It is started by the daemon and of no use otherwise.\n",
                      SPAWNER_ARGUMENT);
        goto out;
    }
    flags = strtoul(argv[5], NULL, 10);
    log_setup((enum log_level)(flags / SPAWNER_LOG_LEVEL % LOG_LEVEL_COUNT), NULL, NULL);
    log_use_journal_prefix((flags & SPAWNER_LOG_JOURNAL) != 0);
    s->state_path = argv[2];
    s->conn = -1;
    s->cgroup = CGROUP_NONE;
    s->orphan_grace_ms = strtoull(argv[4], NULL, 10);
    buf_init(&s->out, PACKET_BYTES);
    status = run(s, (int)strtol(argv[3], NULL, 10), (flags & SPAWNER_NO_CGROUP) == 0);
    cgroup_done(&s->cgroup);
    proc_done(&s->procs);
    buf_done(&s->out);
out:
    free(s);
    return status;
}
