/* up, down: start and stop the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/base/clock.h"
#include "protocol/client/state.h"
#include "supervisor/cli/common/agents.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/program.h"
#include "supervisor/cli/common/started.h"
#include "supervisor/cli/verbs/reload.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/last_lines.h"

enum { UP_TIMEOUT_MS = 20000, DOWN_TIMEOUT_MS = 15000, POLL_MS = 50, ARGS_MAX = 16 };
enum { SAID_MAX = 50, LINE_BYTES = 2048, SAID_LINE = 4400, ENDING_MS = 3000 };
enum { LINES_MAX = 1024 * 1024 };

/* The options that the daemon gets. */
static const char *const passed[] = {"config", "listen-control", "listen-events", "durability",
                                     "log-level"};

static int daemon_args(const struct cli *cli, const char *state, const char *ready, char **args)
{
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

/* The log of the daemon, and its length before this daemon wrote to it. */
struct log {
    char path[4200];
    long from;
};

static void find_log(const char *state, struct log *ret)
{
    struct stat st;

    (void)snprintf(ret->path, sizeof ret->path, "%s/batond.log", state);
    ret->from = stat(ret->path, &st) == 0 ? (long)st.st_size : 0;
}

/* What a person needs of a line: of an error in the log its text; NULL for what only the log needs.
 */
static const char *reason_in(const char *line)
{
    static const char stamp[] = "0000-00-00T00:00:00.000Z ";
    static const char error[] = "err ";
    size_t i = 0;

    while (stamp[i] != 0 && line[i] != 0 &&
           (stamp[i] == '0' ? line[i] >= '0' && line[i] <= '9' : line[i] == stamp[i])) {
        i++;
    }
    if (stamp[i] != 0) {
        return line; /* not of the log: written before it was open, or by another */
    }
    if (strncmp(line + i, error, sizeof error - 1) != 0) {
        return NULL;
    }
    line = strchr(line + i + sizeof error - 1, ' '); /* behind the event */
    return line != NULL ? line + 1 : NULL;
}

static const char *line_of(const struct last_lines *l, size_t i)
{
    return l->at[(l->first + i) % l->cap];
}

/* The reasons, or all lines when none of them is one. */
static void print_reasons(const struct last_lines *l, size_t n)
{
    size_t reasons = 0;

    for (size_t i = 0; i < l->n; i++) {
        reasons += reason_in(line_of(l, i)) != NULL ? 1 : 0;
    }
    if (n > l->n && reasons == 0) {
        cli_note("  (%zu line%s before these)\n", n - l->n, n - l->n == 1 ? "" : "s");
    }
    for (size_t i = 0; i < l->n; i++) {
        const char *line = reasons > 0 ? reason_in(line_of(l, i)) : line_of(l, i);
        if (line != NULL) {
            cli_note("  %s", line);
        }
    }
}

/* A daemon that could not write to its log: ret says why, "" = the log can be written. */
static void why_silent(const struct log *log, char *ret, size_t cap)
{
    const int fd = open(log->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

    ret[0] = 0;
    if (fd < 0 || (fallocate(fd, FALLOC_FL_KEEP_SIZE, log->from, LINE_BYTES) != 0 &&
                   (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EROFS))) {
        (void)snprintf(ret, cap, "%s cannot be written: %s", log->path, strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* How it ended, when it wrote nothing. */
static void print_nothing_said(const struct log *log, int status)
{
    char why[SAID_LINE];

    why_silent(log, why, sizeof why);
    if (why[0] != 0) {
        cli_note("  nothing: %s\n", why);
    } else if (WIFSIGNALED(status)) {
        cli_note("  nothing; it was ended by signal %d (%s)\n", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        cli_note("  nothing; its exit code was %d\n", WEXITSTATUS(status));
    }
}

/* Prints why it ended, from what this daemon wrote; its number of lines. */
static size_t print_said(const struct log *log)
{
    FILE *f = fopen(log->path, "re");
    char line[LINE_BYTES];
    struct last_lines last;
    size_t n = 0;

    if (f == NULL || fseek(f, log->from, SEEK_SET) != 0 || !last_lines_init(&last, SAID_MAX)) {
        cli_error("%s cannot be read: %s", log->path, strerror(errno));
        if (f != NULL) {
            (void)fclose(f);
        }
        return 1;
    }
    for (; fgets(line, sizeof line, f) != NULL; n++) {
        last_lines_add(&last, line);
    }
    (void)fclose(f);
    print_reasons(&last, n);
    last_lines_done(&last);
    return n;
}

/* CLI_OK when the daemon is ready. */
static enum cli_exit await_ready(pid_t pid, int fd, const struct log *log, msec deadline)
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
        cli_error("the daemon ended before it was ready; it wrote to %s:", log->path);
        if (print_said(log) == 0) {
            print_nothing_said(log, status);
        }
        return WIFEXITED(status) && WEXITSTATUS(status) == 2 ? CLI_USAGE : CLI_INTERNAL;
    }
    cli_error("the daemon was not ready in time; it wrote to %s:", log->path);
    (void)print_said(log);
    return CLI_TIMEOUT;
}

struct missing {
    int n, gave_up; /* gave_up: those of them that the daemon does not start any more */
    int ready;
    struct buf lines;
};

/* The configured agents that are not up, one line each. The others come and go as they like. */
static void agents_missing(const cJSON *list, struct missing *ret)
{
    const cJSON *a;
    char why[AGENT_REASON_MAX];

    ret->n = 0;
    ret->gave_up = 0;
    ret->ready = 0;
    buf_clear(&ret->lines);
    cJSON_ArrayForEach(a, cJSON_GetObjectItemCaseSensitive(list, "agents"))
    {
        const bool down = strcmp(json_text(a, "state", ""), "down") == 0;
        ret->ready += down ? 0 : 1;
        if (down && !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(a, "external"))) {
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
        agents_missing(list, missing);
        cJSON_Delete(list);
        if (code != CLI_OK) {
            return code;
        }
        if (missing->n == 0) {
            (void)fprintf(stderr, "baton is up: %d agent%s ready, state in %s\n", missing->ready,
                          missing->ready == 1 ? "" : "s", cli_state_dir(cli));
            if (missing->ready == 0) {
                cli_note_no_agents();
            }
            print_state_json(cli, "ready", true);
            return CLI_OK;
        }
        if (missing->gave_up == missing->n || clock_mono_ms() + POLL_MS >= deadline) {
            cli_error("up, but these agents are not ready (see also: baton doctor):");
            (void)fputs(buf_cstr(&missing->lines), stderr);
            print_state_json(cli, "ready", false);
            return missing->gave_up == missing->n ? CLI_INTERNAL : CLI_TIMEOUT;
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

/* Whether a daemon runs. One that is ending keeps the lock for a moment after its process is gone:
 * it is waited for. */
static bool daemon_runs(const char *state)
{
    const msec until = clock_mono_ms() + ENDING_MS;
    struct state_endpoints at;

    while (lock_is_held(state)) {
        const bool ended =
            state_endpoints_read(state, &at, NULL) == BT_OK && state_daemon_ended(&at);
        if (!ended || clock_mono_ms() >= until) {
            return true;
        }
        (void)poll(NULL, 0, POLL_MS);
    }
    return false;
}

/* Options that only a start can take: told that they have no effect on a daemon that runs. */
static enum cli_exit note_without_effect(struct cli *cli)
{
    static const char *const at_start[] = {"listen-control", "listen-events", "durability",
                                           "log-level"};
    cJSON *info = NULL;
    enum cli_exit code = CLI_OK;

    for (size_t i = 0; code == CLI_OK && i < sizeof at_start / sizeof at_start[0]; i++) {
        const char *value = cli_value(cli, at_start[i]);
        const char *now = NULL;
        if (value != NULL && info == NULL) {
            code = cli_call(cli, "supervisor.info", NULL, &info);
        }
        now = strcmp(at_start[i], "durability") == 0 ? json_text(info, at_start[i], NULL) : NULL;
        if (value != NULL && code == CLI_OK && (now == NULL || strcmp(now, value) != 0)) {
            cli_note("--%s %s has no effect on it: baton down, then baton up --%s %s\n",
                     at_start[i], value, at_start[i], value);
        }
    }
    cJSON_Delete(info);
    return code;
}

/* Whether a daemon is there that has not ended while it was asked. Errors are for the next call,
 * but that of a daemon that is silent, which costs time. */
static bool daemon_answers(struct cli *cli, const char *state, enum cli_exit *ret)
{
    struct bt_error err;

    *ret = CLI_OK;

    if (!daemon_runs(state)) {
        return false;
    }
    if (bt_client_open(state, &cli->client, &err) == BT_OK) {
        cli_limit_call(cli);
        if (bt_client_call(cli->client, "supervisor.info", NULL, NULL, &err) == BT_OK) {
            return true;
        }
    }
    bt_client_close(cli->client);
    cli->client = NULL;
    *ret = err.code == BT_TIMEOUT ? cli_fail(&err) : CLI_OK;
    return err.code != BT_UNAVAILABLE || daemon_runs(state);
}

/* The daemon is there already: whether it is the one that is asked for, and its agents. */
static enum cli_exit up_already(struct cli *cli, msec deadline)
{
    enum cli_exit code;

    (void)fprintf(stderr, "baton: a daemon runs already in %s\n", cli_state_dir(cli));
    code = cli_value(cli, "config") != NULL ? cli_compare_config(cli) : CLI_OK;
    code = code == CLI_OK ? note_without_effect(cli) : code;
    return code == CLI_OK ? await_agents(cli, deadline) : code;
}

/* Only a project (`baton init`) reads the baton.yaml of its directory. */
static void note_other_file(const struct cli *cli, const char *state)
{
    const size_t n = strlen(state);
    const size_t own = strlen("/" STATE_PROJECT_DIR);

    if (cli_value(cli, "config") == NULL && access("baton.yaml", F_OK) == 0 &&
        (n < own || strcmp(state + n - own, "/" STATE_PROJECT_DIR) != 0)) {
        cli_note("./baton.yaml is not read: --config baton.yaml reads it; a directory .baton (mode "
                 "700) beside "
                 "it makes both a project with a state of its own\n");
    }
}

enum cli_exit verb_up(struct cli *cli)
{
    const char *state = cli_state_dir(cli);
    const msec deadline = deadline_or(UP_TIMEOUT_MS);
    char program[4096];
    struct log log;
    char ready[16];
    char *args[ARGS_MAX];
    struct bt_error err;
    enum cli_exit code;
    int fds[2];
    pid_t pid;

    if (state == NULL) {
        return CLI_USAGE;
    }
    if (daemon_answers(cli, state, &code)) {
        return code == CLI_OK ? up_already(cli, deadline) : code;
    }
    note_other_file(cli, state);
    if (!cli_program_beside("batond", program, sizeof program) || access(program, X_OK) != 0) {
        cli_error("batond was not found beside this program (%s)", program);
        return CLI_INTERNAL;
    }
    if (state_dir_make(state, &err) != BT_OK) {
        cli_error_hint("give another one: --state DIR", "%s", err.msg);
        return err.code == BT_NOMEM ? CLI_INTERNAL : CLI_USAGE;
    }
    if (cli_flag(cli, "foreground")) {
        (void)daemon_args(cli, state, NULL, args);
        deadline_stop();
        (void)execv(program, args);
        cli_error("%s: %s", program, strerror(errno));
        return CLI_INTERNAL;
    }
    find_log(state, &log);
    if (pipe2(fds, O_CLOEXEC) != 0) {
        cli_error("pipe: %s", strerror(errno));
        return CLI_INTERNAL;
    }
    (void)snprintf(ready, sizeof ready, "%d", fds[1]);
    (void)daemon_args(cli, state, ready, args);
    pid = fork();
    if (pid == 0) {
        become_daemon(program, args, log.path, fds[1]);
    }
    (void)close(fds[1]);
    if (pid == -1) {
        cli_error("fork: %s", strerror(errno));
        code = CLI_INTERNAL;
    } else {
        code = await_ready(pid, fds[0], &log, deadline);
    }
    (void)close(fds[0]);
    if (code != CLI_OK) {
        return code;
    }
    started_write(cli, state, passed, sizeof passed / sizeof passed[0]);
    return await_agents(cli, deadline);
}

enum cli_exit verb_down(struct cli *cli)
{
    const char *state = cli_state_dir(cli);
    const msec deadline = deadline_or(DOWN_TIMEOUT_MS);
    cJSON *answer = NULL;
    enum cli_exit code;

    if (state == NULL) {
        return CLI_USAGE;
    }
    if (!daemon_runs(state)) {
        (void)fprintf(stderr, "baton: no daemon runs in %s\n", state);
        print_state_json(cli, "stopped", false);
        return CLI_OK;
    }
    code = cli_call(cli, "supervisor.drain", NULL, &answer);
    cJSON_Delete(answer);
    if (code != CLI_OK) {
        return code;
    }
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
