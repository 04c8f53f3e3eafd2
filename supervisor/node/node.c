#include "supervisor/node/node.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/daemon.h"
#include "supervisor/node/balance.h"
#include "supervisor/node/node_internal.h"
#include "supervisor/notify.h"

enum {
    BEATS = 6, /* in a lease */
    AWAY_MS = 1000,
    SOON_MS = 100,
    AGAIN_MS = 1000, /* after a shard that ends again and again */
    SHORT_MS = 5000, /* a life */
    ARGS_MAX = 64
};

/* ---- signals ---- */

static int open_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool is_end(uint32_t signo)
{
    return signo == SIGTERM || signo == SIGINT;
}

static bool ends_within(int signals, int ms)
{
    struct pollfd fd = {.fd = signals, .events = POLLIN};
    struct signalfd_siginfo info;

    return poll(&fd, 1, ms) > 0 && read(signals, &info, sizeof info) == (ssize_t)sizeof info &&
           is_end(info.ssi_signo);
}

enum bt_code node_count_shards(const char *url, uint32_t lease_ms, uint32_t *ret, bool *ret_stop,
                               struct bt_error *err)
{
    const int signals = open_signals();
    struct journal_look *look = NULL;
    struct journal_owner now = {.shards = 0};
    bool said = false;
    enum bt_code code;

    *ret_stop = false;
    for (;;) {
        code = journal_look_open(url, lease_ms, 0, &look, err);
        code = code == BT_OK ? journal_look(look, &now, err) : code;
        journal_look_close(look);
        look = NULL;
        if (code != BT_UNAVAILABLE) {
            break;
        }
        if (!said) {
            log_info("supervisor.standby", "%s", err->msg);
            notify_service_manager("READY=1\nSTATUS=standby: PostgreSQL does not answer");
            said = true;
        }
        *ret_stop = ends_within(signals, AWAY_MS);
        if (*ret_stop) {
            code = BT_OK;
            break;
        }
    }
    *ret = now.shards == 0 ? 1 : now.shards;
    (void)close(signals);
    return code;
}

/* ---- the processes of shards ---- */

/* Its own state directory has the node's token: agents and clients know one. */
static bool prepare_dir(const struct node *n, uint32_t shard, char dir[NODE_PATH_MAX])
{
    char from[NODE_PATH_MAX + 16];
    char to[NODE_PATH_MAX + 16];
    struct bt_error err;

    node_shard_dir(n, shard, dir);
    if (state_dir_make(dir, &err) != BT_OK) {
        log_err("node.shard", "%s", err.msg);
        return false;
    }
    (void)snprintf(from, sizeof from, "%s/token", n->opt->state_dir);
    (void)snprintf(to, sizeof to, "%s/token", dir);
    if ((unlink(to) != 0 && errno != ENOENT) || link(from, to) != 0) {
        log_err("node.shard", "%s: %s", to, strerror(errno));
        return false;
    }
    return true;
}

/* The arguments of this process, but for the descriptor that is its own. */
static bool fill_arguments(char **argv, char *shard, char *dir, char *ret[ARGS_MAX])
{
    static char shard_flag[] = "--shard";
    static char state_flag[] = "--state";
    size_t n = 0;

    for (size_t i = 0; argv[i] != NULL; i++) {
        if (strcmp(argv[i], "--ready-fd") == 0 && argv[i + 1] != NULL) {
            i++;
        } else if (strncmp(argv[i], "--ready-fd=", 11) != 0) {
            if (n + 5 >= ARGS_MAX) {
                return false;
            }
            ret[n++] = argv[i];
        }
    }
    ret[n++] = shard_flag;
    ret[n++] = shard;
    ret[n++] = state_flag;
    ret[n++] = dir;
    ret[n] = NULL;
    return true;
}

static void start(struct node *n, uint32_t shard)
{
    struct node_child *c = &n->children[shard];
    char dir[NODE_PATH_MAX];
    char number[32];
    char *args[ARGS_MAX];
    const pid_t self = getpid();
    sigset_t none;

    (void)snprintf(number, sizeof number, "%" PRIu32 "/%" PRIu32, shard, n->all);
    c->started = clock_mono_ms();
    c->start_at = c->started + AGAIN_MS;
    if (!prepare_dir(n, shard, dir)) {
        return;
    }
    if (!fill_arguments(n->argv, number, dir, args)) {
        log_err("node.shard", "more than %d arguments", ARGS_MAX);
        return;
    }
    (void)fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)unsetenv("NOTIFY_SOCKET");
        /* who lost its node would lead on without a place in the map */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == self) {
            (void)execv("/proc/self/exe", args);
        }
        _exit(EXIT_FAILURE_TO_START);
    }
    if (c->pid < 0) {
        log_err("node.shard", "fork: %s", strerror(errno));
        c->pid = 0;
    }
}

/* The gateway of this host, for all shards. It finds them by fleet.json. */
static void start_gateway(struct node *n)
{
    struct node_child *c = &n->gateway;
    const pid_t self = getpid();
    sigset_t none;

    c->started = clock_mono_ms();
    c->start_at = c->started + AGAIN_MS;
    (void)fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)unsetenv("NOTIFY_SOCKET");
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == self &&
            setenv("BATON_STATE", n->opt->state_dir, 1) == 0) {
            (void)execv(n->opt->gateway[0], (char *const *)(uintptr_t)n->opt->gateway);
        }
        _exit(EXIT_FAILURE_TO_START);
    }
    if (c->pid < 0) {
        log_err("node.gateway", "fork: %s", strerror(errno));
        c->pid = 0;
    }
}

static void on_gateway_exit(struct node *n, int status)
{
    struct node_child *c = &n->gateway;

    c->fails = clock_mono_ms() - c->started < SHORT_MS ? c->fails + 1 : 0;
    c->pid = 0;
    c->start_at = clock_mono_ms() + (c->fails < 3 ? SOON_MS : AGAIN_MS);
    if (!n->stopping) {
        log_warn("node.gateway_ended", "exit=%d signal=%d",
                 WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
}

static void signal_all(const struct node *n, int signo)
{
    for (uint32_t i = 0; i < n->all; i++) {
        if (n->children[i].pid > 0) {
            (void)kill(n->children[i].pid, signo);
        }
    }
    if (n->gateway.pid > 0 && signo == SIGTERM) {
        (void)kill(n->gateway.pid, signo);
    }
}

static void begin_stop(struct node *n, int exit_code)
{
    if (!n->stopping) {
        n->exit_code = exit_code;
        notify_service_manager("STOPPING=1\nSTATUS=draining");
    }
    n->stopping = true;
    signal_all(n, SIGTERM);
}

/* A shard that was asked to stop, or cannot go on as it is configured, ends its node. */
static void on_exit_of(struct node *n, uint32_t shard, int status)
{
    struct node_child *c = &n->children[shard];
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const msec now = clock_mono_ms();

    c->fails = now - c->started < SHORT_MS ? c->fails + 1 : 0;
    c->pid = 0;
    c->start_at = now + (c->fails < 3 ? SOON_MS : AGAIN_MS);
    if (n->stopping) {
        return;
    }
    log_info("node.shard_ended", "shard=%" PRIu32 " exit=%d signal=%d", shard, code,
             WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    if (code == EXIT_STOPPED || code == EXIT_USAGE || code == EXIT_ESCALATED) {
        begin_stop(n, code);
    }
}

static void reap(struct node *n)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == n->gateway.pid) {
            on_gateway_exit(n, status);
        }
        for (uint32_t i = 0; i < n->all; i++) {
            if (n->children[i].pid == pid) {
                on_exit_of(n, i, status);
            }
        }
    }
}

/* ---- the fleet ---- */

static void forget_nodes(struct node *n)
{
    for (uint32_t i = 0; i < n->nodes_n; i++) {
        free(n->nodes[i].places);
    }
    n->nodes_n = 0;
}

static enum bt_code look(struct node *n, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (n->look == NULL) {
        code = journal_look_open(n->opt->fleet_url, n->opt->lease_ms, 0, &n->look, err);
        code = code == BT_OK ? journal_look_expand(n->look, err) : code;
    }
    node_find_places(n);
    if (code == BT_OK) {
        code = journal_look_beat(n->look, n->opt->name, buf_cstr(&n->places), n->opt->config, err);
    }
    if (code == BT_OK && !n->began) { /* a drain ends with the node that it was of */
        code = journal_look_drain(n->look, n->opt->name, false, err);
        n->began = code == BT_OK;
    }
    if (code == BT_OK) {
        code = journal_look_shards(n->look, n->shards, SHARDS_MAX, &n->shards_n, err);
    }
    if (code == BT_OK &&
        n->shards_n > n->all) { /* those that run end, and begin with the new number */
        log_info("node.grown", "shards=%" PRIu32 " before=%" PRIu32, n->shards_n, n->all);
        n->all = n->shards_n;
    }
    if (code == BT_OK) {
        forget_nodes(n);
        code = journal_look_nodes(n->look, n->nodes, NODES_MAX, &n->nodes_n, err);
    }
    return code;
}

/* At most one in a lease: the other node has it by then, or has died. */
static enum bt_code balance(struct node *n, struct bt_error *err)
{
    uint32_t shard = 0;
    const struct journal_node *to =
        balance_give(n->opt->name, n->shards, n->shards_n, n->nodes, n->nodes_n, &shard);

    if (to == NULL || clock_mono_ms() - n->moved_at < n->opt->lease_ms) {
        return BT_OK;
    }
    n->moved_at = clock_mono_ms();
    log_info("node.gives", "shard=%" PRIu32 " to=\"%s\"", shard, to->node);
    return journal_look_move(n->look, shard, to->node, err);
}

static void say_state(struct node *n, bool all)
{
    if (n->ready || !all) {
        return;
    }
    n->ready = true;
    if (n->opt->ready_fd >= 0) {
        (void)!write(n->opt->ready_fd, "ready\n", 6);
        (void)close(n->opt->ready_fd);
    }
    notify_service_manager("READY=1\nSTATUS=serving");
    log_info("node.ready", "every shard has a leader");
}

static void beat(struct node *n)
{
    struct bt_error err;
    enum bt_code code = look(n, &err);

    if (code == BT_OK) {
        say_state(n, node_write_map(n));
        code = balance(n, &err);
    }
    if (code != BT_OK) {
        log_warn("node.fleet", "%s", err.msg);
        journal_look_close(n->look);
        n->look = NULL;
    }
}

static void on_signals(struct node *n)
{
    struct signalfd_siginfo info;

    while (read(n->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (is_end(info.ssi_signo)) {
            begin_stop(n, EXIT_STOPPED);
        } else if (info.ssi_signo == SIGHUP) {
            signal_all(n, SIGHUP);
        }
    }
    reap(n);
}

static bool is_over(const struct node *n)
{
    for (uint32_t i = 0; i < n->all; i++) {
        if (n->children[i].pid > 0) {
            return false;
        }
    }
    return n->stopping && n->gateway.pid == 0;
}

static void start_due(struct node *n)
{
    for (uint32_t i = 0; !n->stopping && i < n->all; i++) {
        if (n->children[i].pid == 0 && clock_mono_ms() >= n->children[i].start_at) {
            start(n, i);
        }
    }
    if (!n->stopping && n->opt->gateway != NULL && n->ready && n->gateway.pid == 0 &&
        clock_mono_ms() >= n->gateway.start_at) {
        start_gateway(n);
    }
}

/* Frees it; its exit code. */
static int done(struct node *n)
{
    const int code = n->exit_code;

    forget_nodes(n);
    journal_look_close(n->look);
    buf_done(&n->written);
    buf_done(&n->places);
    (void)close(n->signals);
    free(n);
    return code;
}

int node_run(const struct node_options *opt, char **argv)
{
    struct node *n = calloc(1, sizeof *n);
    struct pollfd fd = {.events = POLLIN};
    const msec every = opt->lease_ms / BEATS;
    struct bt_error err;
    msec beat_at = 0;

    if (n == NULL || journal_lock_dir(opt->state_dir, &err) != BT_OK) {
        const int code = n == NULL ? EXIT_FAILURE_TO_START : EXIT_LOCKED;
        log_err("supervisor.start", "%s", n == NULL ? "out of memory" : err.msg);
        free(n);
        return code;
    }
    *n = (struct node){.opt = opt,
                       .argv = argv,
                       .signals = open_signals(),
                       .all = opt->shards,
                       .instance = uuid_new()};
    buf_init(&n->written, JOURNAL_PLACES_MAX * 4);
    buf_init(&n->places, JOURNAL_PLACES_MAX);
    fd.fd = n->signals;
    log_info("node.started", "node=\"%s\" shards=%" PRIu32, opt->name, opt->shards);
    while (!is_over(n)) {
        const msec now = clock_mono_ms();
        start_due(n);
        if (now >= beat_at) {
            beat(n);
            beat_at = now + every;
        }
        (void)poll(&fd, 1, (int)(every / 2 + 1));
        on_signals(n);
    }
    if (n->look == NULL || journal_look_leave(n->look, opt->name, &err) != BT_OK) {
        log_debug("node.left", "its lease ends by itself");
    }
    if (state_endpoints_remove(opt->state_dir, n->instance, &err) != BT_OK) {
        log_warn("supervisor.stop", "%s", err.msg);
    }
    log_info("supervisor.stopped", "node=\"%s\"", opt->name);
    return done(n);
}
