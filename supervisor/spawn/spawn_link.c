#include "supervisor/spawn/spawn_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/spawn/spawner.h"

#define SOCKET_NAME "spawner.sock"

enum { SPAWNER_LISTEN_FD = 3 };

enum bt_code spawn_link_open(struct spawn_link *link, const char *state_dir, msec orphan_grace_ms,
                             bool no_cgroup, struct bt_error *err)
{
    *link = (struct spawn_link){.epoll = -1, .state_dir = -1, .sock = -1, .no_cgroup = no_cgroup};
    if (state_dir[0] != '/' || strlen(state_dir) >= sizeof link->state_path) {
        return err_set(err, BT_INVALID, "state directory '%s': must be an absolute path",
                       state_dir);
    }
    (void)snprintf(link->state_path, sizeof link->state_path, "%s", state_dir);
    (void)snprintf(link->grace, sizeof link->grace, "%llu", (unsigned long long)orphan_grace_ms);
    link->state_dir = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (link->state_dir < 0) {
        return err_errno(err, errno, "state directory '%s'", state_dir);
    }
    link->epoll = epoll_create1(EPOLL_CLOEXEC);
    return link->epoll >= 0 ? BT_OK : err_errno(err, errno, "epoll_create1");
}

void spawn_link_disconnect(struct spawn_link *link)
{
    if (link->sock >= 0) {
        (void)close(link->sock); /* a closed descriptor leaves the epoll set */
    }
    link->sock = -1;
    link->pid = 0;
    link->full = false;
}

void spawn_link_done(struct spawn_link *link)
{
    spawn_link_disconnect(link);
    if (link->epoll >= 0) {
        (void)close(link->epoll);
    }
    if (link->state_dir >= 0) {
        (void)close(link->state_dir);
    }
    link->epoll = -1;
    link->state_dir = -1;
}

static struct sockaddr_un address(const struct spawn_link *link)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" SOCKET_NAME,
                   link->state_dir);
    return at;
}

bool spawn_link_connect(struct spawn_link *link)
{
    struct sockaddr_un at = address(link);
    struct epoll_event ev = {.events = EPOLLIN};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return false;
    }
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0 ||
        epoll_ctl(link->epoll, EPOLL_CTL_ADD, fd, &ev) != 0) {
        (void)close(fd);
        return false;
    }
    link->sock = fd;
    link->full = false;
    return true;
}

/* Sets the mode before bind: the umask belongs to the whole process, and the socket is never open
 * to others. */
static enum bt_code make_listener(const struct spawn_link *link, int *ret_fd, struct bt_error *err)
{
    struct sockaddr_un at = address(link);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return err_errno(err, errno, "socket");
    }
    (void)unlinkat(link->state_dir, SOCKET_NAME, 0);
    if (fchmod(fd, 0600) != 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) != 0 ||
        listen(fd, 4) != 0) {
        enum bt_code code = err_errno(err, errno, "%s/" SOCKET_NAME, link->state_path);
        (void)close(fd);
        return code;
    }
    *ret_fd = fd;
    return BT_OK;
}

/* A session of its own (a terminal's Ctrl-C is for the daemon), default signals, empty mask. */
static int set_attributes(posix_spawnattr_t *attr)
{
    sigset_t none;
    sigset_t all;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGKILL);
    (void)sigdelset(&all, SIGSTOP);
    (void)posix_spawnattr_setsigmask(attr, &none);
    (void)posix_spawnattr_setsigdefault(attr, &all);
    return posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
}

enum bt_code spawn_link_start(struct spawn_link *link, struct bt_error *err)
{
    char program[] = "batond-spawner";
    char argument[] = SPAWNER_ARGUMENT;
    char fd_text[] = "3";
    char flags[12];
    char *argv[] = {program, argument, link->state_path, fd_text, link->grace, flags, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int listener = -1;
    int failed;
    enum bt_code code = make_listener(link, &listener, err);

    if (code != BT_OK) {
        return code;
    }
    (void)snprintf(flags, sizeof flags, "%d",
                   (link->no_cgroup ? SPAWNER_NO_CGROUP : 0) |
                       (log_has_journal_prefix() ? SPAWNER_LOG_JOURNAL : 0) |
                       SPAWNER_LOG_LEVEL * (int)log_max_level());
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attr);
    failed = posix_spawn_file_actions_adddup2(&actions, listener, SPAWNER_LISTEN_FD);
    failed = failed != 0 ? failed : set_attributes(&attr);
    failed = failed != 0
                 ? failed
                 : posix_spawn(&link->child, "/proc/self/exe", &actions, &attr, argv, environ);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(listener);
    if (failed != 0) {
        link->child = 0;
        (void)unlinkat(link->state_dir, SOCKET_NAME, 0);
        return err_errno(err, failed, "starting the spawner");
    }
    return BT_OK;
}

void spawn_link_reap(struct spawn_link *link, bool wait)
{
    pid_t got;

    if (link->child == 0) {
        return;
    }
    do {
        got = waitpid(link->child, NULL, wait ? 0 : WNOHANG);
    } while (got < 0 && errno == EINTR);
    if (got != 0) {
        link->child = 0;
    }
}

void spawn_link_set_pid(struct spawn_link *link, pid_t pid)
{
    link->pid = pid;
    if (link->child == 0 && waitpid(pid, NULL, WNOHANG) == 0) {
        link->child = pid;
    }
}

static void watch_for_room(struct spawn_link *link, bool full)
{
    struct epoll_event ev = {.events = EPOLLIN | (full ? (uint32_t)EPOLLOUT : 0u)};

    if (link->full != full) {
        link->full = full;
        (void)epoll_ctl(link->epoll, EPOLL_CTL_MOD, link->sock, &ev);
    }
}

enum link_io spawn_link_send(struct spawn_link *link, const struct buf *packet)
{
    ssize_t n;

    if (link->sock < 0) {
        return LINK_LATER;
    }
    do {
        n = send(link->sock, packet->at, packet->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        bool full = errno == EAGAIN || errno == ENOBUFS;
        watch_for_room(link, full);
        return full ? LINK_LATER : LINK_BROKEN;
    }
    watch_for_room(link, false);
    return LINK_DONE;
}

enum link_io spawn_link_receive(struct spawn_link *link, uint8_t *bytes, size_t cap,
                                size_t *ret_len)
{
    ssize_t n;

    if (link->sock < 0) {
        return LINK_LATER;
    }
    do {
        n = recv(link->sock, bytes, cap, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN) {
        return LINK_LATER;
    }
    if (n <= 0) {
        return LINK_BROKEN;
    }
    *ret_len = (size_t)n;
    return LINK_DONE;
}

bool spawn_link_wait(const struct spawn_link *link, msec until)
{
    struct pollfd p = {.fd = link->sock, .events = POLLIN};
    int n;

    do {
        msec now = clock_mono_ms();
        n = poll(&p, 1, until > now ? (int)(until - now) : 0);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}
