/* doctor: checks everything that Baton needs, one line each. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cjson/cJSON.h>

#include "protocol/client/credential.h"
#include "protocol/client/state.h"
#include "supervisor/cli/common/agents.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/program.h"
#include "supervisor/cli/common/started.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/doctor_internal.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/config/config.h"
#include "supervisor/journal/faults.h"
#include "supervisor/journal/journal.h"
#include "supervisor/spawn/apart.h"

enum { PROBLEMS_SHOWN = 50 };
/* How journal_inspect begins when plans wait for a person, in a sound journal, too. */
#define QUARANTINED "quarantined: "

struct doctor {
    struct cli *cli;
    cJSON *findings;
    int bad;
};

static void finding(struct doctor *d, bool ok, const char *what, const char *detail)
{
    cJSON *row = cJSON_CreateObject();

    d->bad += !ok;
    (void)cJSON_AddStringToObject(row, "check", what);
    (void)cJSON_AddBoolToObject(row, "ok", ok);
    (void)cJSON_AddStringToObject(row, "detail", detail);
    (void)cJSON_AddItemToArray(d->findings, row);
    if (!d->cli->json) {
        (void)printf("%s %-18s ", ok ? "✓" : "✗", what);
        cli_print_safe(detail);
        (void)putchar('\n');
    }
}

static void check_agent_binary(struct doctor *d, const struct config_agent *a)
{
    char detail[4300];
    const char *program = a->command[0];
    const bool found = cli_program_is_there(program);

    (void)snprintf(
        detail, sizeof detail, "%s: %s%s", a->agent_id, program,
        found ? ""
              : ": not found or not executable; correct agents[].command in the configuration");
    finding(d, found, "agent binary", detail);
}

/* Without a daemon only: a running one may have other variables, and reports them itself. */
static void check_held_back(struct doctor *d, const struct config_agent *a, bool daemon_runs)
{
    char detail[1024];

    if (a->held_back != NULL && !daemon_runs) {
        (void)snprintf(detail, sizeof detail, "%s would not be started: %s", a->agent_id,
                       a->held_back);
        finding(d, false, "agent", detail);
    }
}

/* The same: what a service may set apart, a shell may not. */
static void check_apart(struct doctor *d, const struct config_agent *a, const char *state,
                        bool daemon_runs)
{
    char why[APART_WHY_BYTES];
    char detail[512];

    if (!daemon_runs && !apart_available(a->apart, state, why)) {
        (void)snprintf(detail, sizeof detail, "a daemon of this shell would not start: %.64s: %s",
                       a->agent_id, why);
        finding(d, false, "agent", detail);
    }
}

/* Settings with providers belong to agents with models; a replay uses none. */
static void check_models(struct doctor *d, const struct config_agent *a)
{
    const cJSON *replay = cJSON_GetObjectItemCaseSensitive(a->settings, "replay");
    const cJSON *p = NULL;
    char detail[1024];

    cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(a->settings, "providers"))
    {
        if (replay == NULL && json_text(p, "api", NULL) != NULL) {
            bool there = doctor_check_model(p, detail, sizeof detail);
            finding(d, there, "model", detail);
        }
    }
}

/* Whether another program has the port that the daemon would listen on. */
static void check_port(struct doctor *d, const char *what, const char *url, bool daemon_runs)
{
    const char *colon = strrchr(url, ':');
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    char detail[400];
    int one = 1;
    int why = 0;
    int fd;

    at.sin_port = htons((uint16_t)(colon != NULL ? strtoul(colon + 1, NULL, 10) : 0));
    if (daemon_runs || at.sin_port == 0) {
        return;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        why = errno;
    }
    (void)snprintf(detail, sizeof detail, "%s %s%s", url, why == 0 ? "is free" : strerror(why),
                   why == EADDRINUSE ? ": another program listens there; set listen.control or "
                                       "listen.events to another port, or 0"
                                     : "");
    finding(d, why == 0, what, detail);
    if (fd >= 0) {
        (void)close(fd);
    }
}

static struct config *check_config(struct doctor *d)
{
    struct config_request request = {.state_dir = cli_value(d->cli, "state"),
                                     .file = cli_value(d->cli, "config"),
                                     .check_only = true};
    struct config *config = NULL;
    struct buf notes;
    struct bt_error err;
    bool ok;

    buf_init(&notes, 1024 * 1024);
    ok = config_load(&request, &config, &notes, &err) == BT_OK;
    finding(d, ok, "configuration", ok ? "valid" : err.msg);
    if (ok) {
        (void)fputs(buf_cstr(&notes), stderr);
    } else {
        cli_print_notes(buf_cstr(&notes), &err);
    }
    buf_done(&notes);
    return config;
}

/* A file that the daemon refuses: its client is nobody. */
static void check_credential(void *self, const char *name, const struct credential *c,
                             const struct bt_error *why)
{
    (void)name;
    if (c == NULL) {
        finding(self, false, "credential", why->msg);
    }
}

static bool check_state(struct doctor *d, const char *state)
{
    char token[STATE_TOKEN_LEN + 1];
    char path[4200];
    char detail[4400];
    struct stat st;
    struct bt_error err;
    bool held = false;
    int fd;

    if (stat(state, &st) != 0) {
        (void)snprintf(detail, sizeof detail, "%s: %s; `baton up` makes it", state,
                       strerror(errno));
        finding(d, false, "state directory", detail);
        return false;
    }
    (void)snprintf(detail, sizeof detail, "%s%s", state,
                   (st.st_mode & 077) != 0 ? ": others may enter it; chmod 700" : "");
    finding(d, (st.st_mode & 077) == 0, "state directory", detail);
    if (state_token_read(state, token, &err) != BT_OK) {
        finding(d, false, "token", err.msg);
    } else {
        finding(d, true, "token", "there, readable only by you");
    }
    if (credential_each(state, check_credential, d, &err) != BT_OK) {
        finding(d, false, "credential", err.msg);
    }
    (void)snprintf(path, sizeof path, "%s/lock", state);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        held = flock(fd, LOCK_SH | LOCK_NB) != 0;
        (void)close(fd);
    }
    return held;
}

/* One line that is written again and again, for people who watch. */
static void progress(const struct doctor *d, uint64_t checked, uint64_t total)
{
    if (!d->cli->json && isatty(STDERR_FILENO) && total > 0) {
        (void)fprintf(stderr, checked < total ? "\rjournal: %3u %%" : "\r%*s\r",
                      checked < total ? (unsigned)(checked * 100 / total) : 16, "");
    }
}

static void on_progress(const struct journal_scrub *at, void *self)
{
    progress(self, at->done ? at->total : at->checked, at->total);
}

static void check_stopped_journal(struct doctor *d, const char *state)
{
    struct buf report;
    struct bt_error err;
    enum bt_code code;

    buf_init(&report, 1024 * 1024);
    code = journal_inspect(state, on_progress, d, &report, &err);
    finding(d, code == BT_OK || code == BT_NOT_FOUND, "journal",
            code == BT_OK          ? "sound"
            : code == BT_NOT_FOUND ? "none yet"
                                   : err.msg);
    if (!d->cli->json && report.len > 0 &&
        (code != BT_OK || strncmp(buf_cstr(&report), QUARANTINED, strlen(QUARANTINED)) == 0)) {
        (void)fputs(buf_cstr(&report), stderr);
    }
    buf_done(&report);
}

static uint64_t count_of(const cJSON *object, const char *name)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(n) && n->valuedouble > 0 ? (uint64_t)n->valuedouble : 0;
}

/* What one part of a running daemon's journal had. False: there is nothing more to ask. */
static bool take_part(struct doctor *d, const cJSON *part, uint64_t *io_checked, uint64_t *io_total,
                      uint32_t *io_bad, char *first, size_t cap)
{
    const cJSON *problem;

    *io_checked += count_of(part, "checked");
    *io_total += count_of(part, "total");
    cJSON_ArrayForEach(problem, cJSON_GetObjectItemCaseSensitive(part, "problems"))
    {
        if ((*io_bad)++ == 0) {
            (void)snprintf(first, cap, "%s", problem->valuestring);
        }
        if (!d->cli->json && *io_bad <= PROBLEMS_SHOWN) {
            (void)fprintf(stderr, "damaged: %s\n", problem->valuestring);
        }
    }
    progress(d, *io_checked, *io_total);
    return json_text(part, "cursor", NULL) != NULL;
}

/* The daemon checks part by part, between its other work; only it may read the file (Q14). */
static void check_running_journal(struct doctor *d)
{
    char cursor[96] = "{}";
    char first[512] = "";
    char detail[700];
    uint64_t checked = 0;
    uint64_t total = 0;
    uint32_t bad = 0;
    struct bt_error err;
    bool more = true;

    while (more && !deadline_is_over()) {
        char *json = NULL;
        cJSON *part;
        bt_client_timeout(d->cli->client, deadline_left(30000));
        if (bt_client_call(d->cli->client, "supervisor.scrub", cursor, &json, &err) != BT_OK) {
            bt_free(json);
            finding(d, false, "journal", err.msg);
            return;
        }
        part = json_tree(json);
        more = take_part(d, part, &checked, &total, &bad, first, sizeof first);
        (void)snprintf(cursor, sizeof cursor, "{\"cursor\": \"%s\"}",
                       json_text(part, "cursor", ""));
        cJSON_Delete(part);
        bt_free(json);
    }
    progress(d, 1, 1);
    (void)snprintf(detail, sizeof detail,
                   bad == 0 ? "sound: %llu checksums, while the daemon runs"
                            : "damaged: %llu checksums, %u are wrong, first: %s",
                   (unsigned long long)checked, bad, first);
    finding(d, bad == 0, "journal", detail);
}

/* Plans over which a daemon crashed, and that have not ended: one line each. */
static void check_faults(struct doctor *d, const char *state)
{
    char detail[300];
    char id[UUID_TEXT_LEN + 1];
    struct faults *f = malloc(sizeof *f);
    struct bt_error err;

    if (f == NULL || faults_read(state, f, &err) != BT_OK) {
        finding(d, false, "faults", f == NULL ? "out of memory" : err.msg);
        free(f);
        return;
    }
    for (uint32_t i = 0; i < f->n; i++) {
        const struct uuid plan = faults_plan(f, i);
        bool seen = false;
        for (uint32_t k = 0; k < i; k++) {
            seen = seen || uuid_eq(faults_plan(f, k), plan);
        }
        if (!seen) {
            const uint32_t n = faults_count(f, plan);
            uuid_format(plan, id);
            (void)snprintf(detail, sizeof detail,
                           "the daemon crashed %s over plan %s; the third time puts it in "
                           "quarantine. Report it, with the daemon's log",
                           n == 1   ? "once"
                           : n == 2 ? "twice"
                                    : "three times",
                           id);
            finding(d, false, "suspect", detail);
        }
    }
    free(f);
}

/* Whether the disk of the state directory has room for new work. */
static void check_storage(struct doctor *d, const char *state)
{
    char *json = NULL;
    char detail[4400];
    struct bt_error err;
    cJSON *info;
    const char *storage;

    if (bt_client_call(d->cli->client, "supervisor.info", NULL, &json, &err) != BT_OK) {
        finding(d, false, "storage", err.msg);
        bt_free(json);
        return;
    }
    info = json_tree(json);
    storage = json_text(info, "storage", NULL);
    (void)snprintf(detail, sizeof detail,
                   storage == NULL                ? "room for new work"
                   : strcmp(storage, "full") == 0 ? "the disk of %s is full: everything waits, "
                                                    "results too. Free some room"
                                                  : "the disk of %s is nearly full: no new work is "
                                                    "taken, running plans go on. Free some room",
                   state);
    finding(d, storage == NULL, "storage", detail);
    cJSON_Delete(info);
    bt_free(json);
}

static void check_daemon(struct doctor *d, const char *state, bool daemon_runs)
{
    char *json = NULL;
    struct bt_error err;
    cJSON *list;
    const cJSON *a;

    if (!daemon_runs) {
        char options[STARTED_MAX];
        char detail[STARTED_MAX + 64];
        started_options(d->cli, options);
        (void)snprintf(detail, sizeof detail, "does not run; start it with: baton up%s", options);
        finding(d, false, "daemon", detail);
        return;
    }
    if (bt_client_open(state, &d->cli->client, &err) != BT_OK) {
        finding(d, false, "daemon", err.msg);
        return;
    }
    bt_client_timeout(d->cli->client, deadline_left(3000));
    if (bt_client_call(d->cli->client, "agents.list", NULL, &json, &err) != BT_OK) {
        finding(d, false, "daemon", err.msg);
        bt_free(json);
        return;
    }
    finding(d, true, "daemon", "answers");
    check_storage(d, state);
    check_running_journal(d);
    list = json_tree(json);
    cJSON_ArrayForEach(a, cJSON_GetObjectItemCaseSensitive(list, "agents"))
    {
        char detail[AGENT_REASON_MAX + 200];
        const char *state_name = json_text(a, "state", "");
        const char *id = json_text(cJSON_GetObjectItemCaseSensitive(a, "card"), "agentId", "");
        bool up = strcmp(state_name, "up") == 0;
        int n = snprintf(detail, sizeof detail, "%s is %s", id, state_name);
        if (!up) {
            agent_down_reason(a, detail + n, sizeof detail - (size_t)n);
        }
        finding(d, up, "agent", detail);
    }
    cJSON_Delete(list);
    bt_free(json);
}

enum cli_exit verb_doctor(struct cli *cli)
{
    struct doctor d = {.cli = cli, .findings = cJSON_CreateArray()};
    const char *state = cli_state_dir(cli);
    struct config *config;
    bool daemon_runs;

    if (state == NULL) {
        cJSON_Delete(d.findings);
        return CLI_USAGE;
    }
    config = check_config(&d);
    daemon_runs = check_state(&d, state);
    for (uint32_t i = 0; config != NULL && i < config->n_agents; i++) {
        check_agent_binary(&d, &config->agents[i]);
        check_held_back(&d, &config->agents[i], daemon_runs);
        check_apart(&d, &config->agents[i], state, daemon_runs);
        check_models(&d, &config->agents[i]);
    }
    if (config != NULL) {
        check_port(&d, "control port", config->listen_control, daemon_runs);
        check_port(&d, "events port", config->listen_events, daemon_runs);
    }
    if (!daemon_runs) {
        check_stopped_journal(&d, state);
    }
    check_faults(&d, state);
    check_daemon(&d, state, daemon_runs);
    if (cli->json) {
        cli_print_json(d.findings);
    } else {
        (void)printf("%s\n",
                     d.bad == 0 ? "all is well" : "something is wrong, see the lines marked ✗");
    }
    cJSON_Delete(d.findings);
    config_free(config);
    if (deadline_is_over()) {
        cli_error("doctor has not made all checks within the timeout");
        return CLI_TIMEOUT;
    }
    return d.bad == 0 ? CLI_OK : CLI_INTERNAL;
}
