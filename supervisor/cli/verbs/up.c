/* up, down: start and stop the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/base/clock.h"
#include "protocol/client/state.h"
#include "supervisor/cli/common/agents.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/verbs/verbs.h"

enum { UP_TIMEOUT_MS = 20000, DOWN_TIMEOUT_MS = 15000, POLL_MS = 50, ARGS_MAX = 16 };
enum { LINES_MAX = 1024 * 1024 };

/* batond is in the same folder. */
static bool find_daemon(char *ret, size_t cap)
{
    ssize_t n = readlink("/proc/self/exe", ret, cap - 8);
    char *slash;

    if (n <= 0) {
        return false;
    }
    ret[n] = 0;
    slash = strrchr(ret, '/');
    (void)snprintf(slash + 1, cap - (size_t)(slash + 1 - ret), "batond");
    return access(ret, X_OK) == 0;
}

static int daemon_args(const struct cli *cli, const char *state, const char *ready, char **args)
{
    static const char *const passed[] = {"config", "listen-control", "listen-events", "durability",
                                         "log-level"};
    static char flags[sizeof passed / sizeof passed[0]][24];
    int n = 0;

    args[n++] = (char *)(uintptr_t) "batond";
    args[n++] = (char *)(uintptr_t) "--state";
    args[n++] = (char *)(uintptr_t)state;
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        const char *value = cli_value(cli, passed[i]);
        if (value != NULL) {
            (void)snprintf(flags[i], sizeof flags[i], "--%s", passed[i]);
            args[n++] = flags[i];
            args[n++] = (char *)(uintptr_t)value;
        }
    }
    if (ready != NULL) {
        args[n++] = (char *)(uintptr_t) "--ready-fd";
        args[n++] = (char *)(uintptr_t)ready;
    }
    args[n] = NULL;
    return n;
}

/* In the child: a new session, output to the log, only the ready pipe open. */
static void become_daemon(const char *program, char **args, const char *log, int ready_fd)
{
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)setsid();
    if (out < 0 || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
        fcntl(ready_fd, F_SETFD, 0) < 0) {
        _exit(126);
    }
    (void)execv(program, args);
    _exit(127);
}

static void print_tail(const char *log)
{
    FILE *f = fopen(log, "re");
    char lines[5][512] = {{0}};
    int n = 0;

    while (f != NULL && fgets(lines[n % 5], sizeof lines[0], f) != NULL) {
        n++;
    }
    for (int i = n < 5 ? 0 : n - 5; i < n; i++) {
        (void)fprintf(stderr, "  %s", lines[i % 5]);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

/* CLI_OK when the daemon is ready. */
static enum cli_exit await_ready(pid_t pid, int fd, const char *log, msec deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char text[8] = {0};
    int status = 0;
    msec now = clock_mono_ms();

    if (now < deadline && poll(&p, 1, (int)(deadline - now)) > 0 &&
        read(fd, text, sizeof text - 1) > 0) {
        return CLI_OK;
    }
    if (waitpid(pid, &status, WNOHANG) == pid || clock_mono_ms() < deadline) {
        (void)waitpid(pid, &status, 0);
        cli_error("the daemon ended before it was ready; the end of %s:", log);
        print_tail(log);
        return WIFEXITED(status) && WEXITSTATUS(status) == 2 ? CLI_USAGE : CLI_INTERNAL;
    }
    cli_error("the daemon was not ready in time; see %s", log);
    return CLI_TIMEOUT;
}

struct missing {
    int n, gave_up; /* gave_up: those of them that the daemon does not start any more */
    struct buf lines;
};

/* The configured agents that are not up, one line each. */
static void agents_missing(const cJSON *list, struct missing *ret)
{
    const cJSON *a;
    char why[AGENT_REASON_MAX];

    ret->n = 0;
    ret->gave_up = 0;
    buf_clear(&ret->lines);
    cJSON_ArrayForEach(a, cJSON_GetObjectItemCaseSensitive(list, "agents"))
    {
        if (strcmp(json_text(a, "state", ""), "down") == 0) {
            const cJSON *card = cJSON_GetObjectItemCaseSensitive(a, "card");
            agent_down_reason(a, why, sizeof why);
            buf_printf(&ret->lines, "  %s%s\n", json_text(card, "agentId", "?"), why);
            ret->n++;
            ret->gave_up += cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(a, "gaveUp")) ? 1 : 0;
        }
    }
}

/* With --json: {"stateDir", what: ...} on stdout. */
static void print_state_json(struct cli *cli, const char *what, bool yes)
{
    cJSON *row = cJSON_CreateObject();

    if (cli->json) {
        (void)cJSON_AddStringToObject(row, "stateDir", cli_state_dir(cli));
        (void)cJSON_AddBoolToObject(row, what, yes);
        cli_print_json(row);
    }
    cJSON_Delete(row);
}

static enum cli_exit await_agents_until(struct cli *cli, msec deadline, struct missing *missing)
{
    for (;;) {
        cJSON *list = NULL;
        enum cli_exit code = cli_call(cli, "agents.list", NULL, &list);
        int all = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(list, "agents"));
        agents_missing(list, missing);
        cJSON_Delete(list);
        if (code != CLI_OK) {
            return code;
        }
        if (missing->n == 0) {
            (void)fprintf(stderr, "baton is up: %d agents ready, state in %s\n", all,
                          cli_state_dir(cli));
            if (all == 0) {
                cli_note_no_agents();
            }
            print_state_json(cli, "ready", true);
            return CLI_OK;
        }
        if (missing->gave_up == missing->n || clock_mono_ms() >= deadline) {
            cli_error("up, but these agents are not ready (see also: baton doctor):");
            (void)fputs(buf_cstr(&missing->lines), stderr);
            print_state_json(cli, "ready", false);
            return CLI_INTERNAL;
        }
        (void)poll(NULL, 0, POLL_MS);
    }
}

static enum cli_exit await_agents(struct cli *cli, msec deadline)
{
    struct missing missing = {.n = 0};
    enum cli_exit code;

    buf_init(&missing.lines, LINES_MAX);
    code = await_agents_until(cli, deadline, &missing);
    buf_done(&missing.lines);
    return code;
}

static bool lock_is_held(const char *state)
{
    char path[4200];
    bool held;
    int fd;

    (void)snprintf(path, sizeof path, "%s/lock", state);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    held = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    (void)close(fd);
    return held;
}

enum cli_exit verb_up(struct cli *cli)
{
    const char *state = cli_state_dir(cli);
    const char *timeout = cli_value(cli, "timeout");
    uint32_t timeout_ms = UP_TIMEOUT_MS;
    char program[4096];
    char log[4200];
    char ready[16];
    char *args[ARGS_MAX];
    struct bt_error err;
    enum cli_exit code;
    msec deadline;
    int fds[2];
    pid_t pid;

    if (state == NULL || (timeout != NULL && !cli_duration(timeout, "--timeout", &timeout_ms))) {
        return CLI_USAGE;
    }
    deadline = clock_mono_ms() + timeout_ms;
    if (lock_is_held(state)) {
        (void)fprintf(stderr, "baton: a daemon runs already in %s\n", state);
        return await_agents(cli, deadline);
    }
    if (!find_daemon(program, sizeof program)) {
        cli_error("batond was not found beside this program (%s)", program);
        return CLI_INTERNAL;
    }
    if (state_dir_make(state, &err) != BT_OK) {
        return cli_fail(&err);
    }
    if (cli_flag(cli, "foreground")) {
        (void)daemon_args(cli, state, NULL, args);
        (void)execv(program, args);
        cli_error("%s: %s", program, strerror(errno));
        return CLI_INTERNAL;
    }
    (void)snprintf(log, sizeof log, "%s/batond.log", state);
    if (pipe2(fds, O_CLOEXEC) != 0) {
        cli_error("pipe: %s", strerror(errno));
        return CLI_INTERNAL;
    }
    (void)snprintf(ready, sizeof ready, "%d", fds[1]);
    (void)daemon_args(cli, state, ready, args);
    pid = fork();
    if (pid == 0) {
        become_daemon(program, args, log, fds[1]);
    }
    (void)close(fds[1]);
    code = pid < 0 ? CLI_INTERNAL : await_ready(pid, fds[0], log, deadline);
    (void)close(fds[0]);
    return code == CLI_OK ? await_agents(cli, deadline) : code;
}

enum cli_exit verb_down(struct cli *cli)
{
    const char *state = cli_state_dir(cli);
    const char *timeout = cli_value(cli, "timeout");
    uint32_t timeout_ms = DOWN_TIMEOUT_MS;
    cJSON *answer = NULL;
    enum cli_exit code;
    msec deadline;

    if (state == NULL || (timeout != NULL && !cli_duration(timeout, "--timeout", &timeout_ms))) {
        return CLI_USAGE;
    }
    if (!lock_is_held(state)) {
        (void)fprintf(stderr, "baton: no daemon runs in %s\n", state);
        print_state_json(cli, "stopped", false);
        return CLI_OK;
    }
    code = cli_call(cli, "supervisor.drain", NULL, &answer);
    cJSON_Delete(answer);
    if (code != CLI_OK) {
        return code;
    }
    deadline = clock_mono_ms() + timeout_ms;
    while (lock_is_held(state)) {
        if (clock_mono_ms() >= deadline) {
            cli_error("the daemon is still draining; it will end by itself (log: %s/batond.log)",
                      state);
            return CLI_TIMEOUT;
        }
        (void)poll(NULL, 0, POLL_MS);
    }
    (void)fprintf(stderr, "baton is down\n");
    print_state_json(cli, "stopped", true);
    return CLI_OK;
}
