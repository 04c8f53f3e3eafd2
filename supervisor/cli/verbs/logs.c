/* logs: what agent processes printed, and what the log files of the state directory say about a
 * plan. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/output.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"

enum { FILES_MAX = 512, PATH_BYTES = 4400, NAME_BYTES = 128, TIME_LEN = 24, POLL_MS = 250 };

struct file {
    char path[PATH_BYTES];
    char name[NAME_BYTES];   /* "calc#1", "batond" */
    char time[TIME_LEN + 1]; /* of its newest line that has one */
    FILE *at;
    unsigned long long inode;
};

/* A line that is printed later, in the order of time. */
struct line {
    char *text;
    const struct file *file;
    char time[TIME_LEN + 1];
    size_t number;
};

struct logs {
    struct cli *cli;
    struct file *files;
    int n_files;
    const char *plan;         /* NULL = every line */
    char id[CLI_ID_MAX];      /* of the plan */
    char step[NAME_BYTES];    /* " step=ID"; "" = all steps */
    char since[TIME_LEN + 1]; /* when this daemon started; "" = all lines */
    size_t old;               /* lines before it, left out */
    struct line *lines;
    size_t n, cap;
    bool names; /* print the name of the file before each line */
};

static volatile sig_atomic_t stop;

static void on_signal(int signal_number)
{
    (void)signal_number;
    stop = 1;
}

/* Whether the text begins as "2026-11-23T12:50:42.241Z". */
static bool has_time(const char *text)
{
    static const char form[] = "0000-00-00T00:00:00.000Z";

    for (size_t i = 0; i < TIME_LEN; i++) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == '0' ? !digit : text[i] != form[i]) {
            return false;
        }
    }
    return true;
}

/* ---- which files ---- */

/* Whether `name` is AGENT#N.log, or AGENT#N.log when the agent is given as AGENT#N. */
static bool is_of_agent(const char *name, const char *agent)
{
    const size_t n = strlen(agent);
    const char *rest = name + n;

    if (strncmp(name, agent, n) != 0) {
        return false;
    }
    if (*rest == '#') {
        rest += 1 + strspn(rest + 1, "0123456789");
    }
    return strcmp(rest, ".log") == 0 && strchr(name, '#') != NULL;
}

static void add_file(struct logs *l, const char *dir, const char *name)
{
    struct file *f = &l->files[l->n_files];

    if (l->n_files == FILES_MAX) {
        return;
    }
    *f = (struct file){.at = NULL};
    if (snprintf(f->path, sizeof f->path, "%s/%s", dir, name) < (int)sizeof f->path) {
        (void)snprintf(f->name, sizeof f->name, "%.*s", (int)strcspn(name, "."), name);
        l->n_files++;
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

/* The log files of an agent; of all agents with NULL. */
static void find_agent_files(struct logs *l, const char *state, const char *agent)
{
    char dir[PATH_BYTES];
    struct dirent **names = NULL;
    int n;

    (void)snprintf(dir, sizeof dir, "%s/log", state);
    n = scandir(dir, &names, NULL, by_name);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        const size_t len = strlen(name);
        const bool is_log = len > 4 && strcmp(name + len - 4, ".log") == 0;
        if (agent != NULL ? is_of_agent(name, agent) : is_log) {
            add_file(l, dir, name);
        }
        free(names[i]);
    }
    free(names);
}

/* ---- their lines ---- */

static bool is_wanted(const struct logs *l, const char *text)
{
    const char *at = l->step[0] != 0 ? strstr(text, l->step) : NULL;

    if (l->plan == NULL) {
        return true;
    }
    if (strstr(text, l->plan) == NULL) {
        return false;
    }
    return l->step[0] == 0 ||
           (at != NULL && (at[strlen(l->step)] == ' ' || at[strlen(l->step)] == 0));
}

/* Prints the error and returns false. */
static bool keep_line(struct logs *l, const struct file *f, const char *text)
{
    if (l->n == l->cap) {
        const size_t cap = l->cap == 0 ? 256 : 2 * l->cap;
        struct line *more = realloc(l->lines, cap * sizeof *more);
        if (more == NULL) {
            cli_error("out of memory");
            return false;
        }
        l->lines = more;
        l->cap = cap;
    }
    l->lines[l->n] = (struct line){.text = strdup(text), .file = f, .number = l->n};
    if (l->lines[l->n].text == NULL) {
        cli_error("out of memory");
        return false;
    }
    memcpy(l->lines[l->n++].time, f->time, sizeof f->time);
    return true;
}

/* Lines of programs have no time. Those before the first one that has one count as this daemon's
 * when the file was written since its start. */
static void guess_time(const struct logs *l, struct file *f, const struct stat *st)
{
    char written[TIME_LEN + 1] = "";
    struct tm utc;

    if (f->time[0] == 0 && gmtime_r(&st->st_mtim.tv_sec, &utc) != NULL) {
        (void)strftime(written, sizeof written, "%Y-%m-%dT%H:%M:%S.999Z", &utc);
        if (strcmp(written, l->since) >= 0) {
            memcpy(f->time, l->since, sizeof l->since);
        }
    }
}

/* Opens the file; again when another one has its place. A file that is not there has no lines. */
static void open_again(const struct logs *l, struct file *f)
{
    struct stat st;

    if (stat(f->path, &st) != 0) {
        return;
    }
    if (f->at != NULL && st.st_ino == f->inode && ftell(f->at) <= st.st_size) {
        clearerr(f->at);
        return;
    }
    if (f->at != NULL) {
        (void)fclose(f->at);
    }
    f->at = fopen(f->path, "re");
    f->inode = st.st_ino;
    guess_time(l, f, &st);
}

/* Takes the lines that have come; one without its end stays for the next time. False on an error,
 * which it prints. */
static bool read_file(struct logs *l, struct file *f)
{
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;
    bool ok = true;

    open_again(l, f);
    while (ok && f->at != NULL && (n = getline(&text, &cap, f->at)) > 0) {
        if (text[n - 1] != '\n') {
            (void)fseek(f->at, -n, SEEK_CUR);
            break;
        }
        text[n - 1] = 0;
        if (has_time(text)) {
            memcpy(f->time, text, TIME_LEN);
        }
        if (strcmp(f->time, l->since) < 0) {
            l->old++;
        } else if (is_wanted(l, text)) {
            ok = keep_line(l, f, text);
        }
    }
    free(text);
    return ok;
}

static int compare(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    const int by_time = strcmp(x->time, y->time);

    return by_time != 0 ? by_time : x->number < y->number ? -1 : x->number > y->number;
}

static void print_line(const struct logs *l, const struct line *line)
{
    cJSON *json;

    if (l->cli->json) {
        json = cli_fields("log", line->file->name);
        (void)cJSON_AddStringToObject(json, "line", line->text);
        cli_print_json(json);
        cJSON_Delete(json);
        return;
    }
    if (l->names) {
        (void)printf("%-10s ", line->file->name);
    }
    cli_print_safe(line->text);
    (void)fputc('\n', stdout);
}

/* Prints the last `tail` of the lines that were taken, and forgets all. */
static void print_lines(struct logs *l, size_t tail)
{
    if (l->n > 1) {
        qsort(l->lines, l->n, sizeof *l->lines, compare);
    }
    for (size_t i = 0; i < l->n; i++) {
        if (i + tail >= l->n) {
            print_line(l, &l->lines[i]);
        }
        free(l->lines[i].text);
    }
    l->n = 0;
}

/* ---- which lines ---- */

/* The start of the daemon: older lines are those of an earlier one. Without a daemon all are. */
static void find_start(struct logs *l, const char *state)
{
    char *json = NULL;
    cJSON *info = NULL;
    struct bt_error err;

    if (cli_flag(l->cli, "all") || bt_client_open(state, &l->cli->client, &err) != BT_OK) {
        return;
    }
    cli_limit_call(l->cli);
    if (bt_client_call(l->cli->client, "supervisor.info", NULL, &json, &err) == BT_OK) {
        info = json_tree(json);
        (void)snprintf(l->since, sizeof l->since, "%s", json_text(info, "startedAt", ""));
    }
    cJSON_Delete(info);
    bt_free(json);
}

/* Whether the plan has ended; an unknown one is an error. With a step: its mark in the lines. */
static enum cli_exit look_at_plan(struct logs *l, const char *step, bool *ret_over)
{
    cJSON *view = NULL;
    enum cli_exit code = cli_plan_view(l->cli, l->plan, &view);
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(view, "steps");
    const int index = code == CLI_OK && step != NULL ? cli_step_index(view, step) : 0;

    if (index < 0) {
        code = CLI_NOT_FOUND;
    } else if (step != NULL) {
        (void)snprintf(l->step, sizeof l->step, " step=%s",
                       json_text(cJSON_GetArrayItem(steps, index), "stepId", step));
    }
    *ret_over = cJSON_GetObjectItemCaseSensitive(view, "completedAt") != NULL;
    cJSON_Delete(view);
    return code;
}

/* Chooses the files and what their lines must say. */
static enum cli_exit choose(struct logs *l, const char *state)
{
    struct cli *cli = l->cli;
    const char *what = cli->argc > 0 ? cli->argv[0] : NULL;
    const char *step = cli->argc > 1 ? cli->argv[1] : NULL;
    enum cli_exit code;
    bool over;

    if (what == NULL) {
        add_file(l, state, "batond.log");
        find_start(l, state);
        return CLI_OK;
    }
    find_agent_files(l, state, what);
    if (l->n_files > 0 && step == NULL) {
        l->names = l->n_files > 1;
        find_start(l, state);
        return CLI_OK;
    }
    l->n_files = 0;
    if (strcmp(cli->verb->name, "agents") == 0) {
        cli_error_hint("see: baton agents", "agent '%s' has no log", what);
        return CLI_NOT_FOUND;
    }
    code = cli_plan_id(cli, what, l->id); /* only here: an agent's log needs no daemon */
    if (code != CLI_OK) {
        return code;
    }
    l->plan = l->id;
    l->names = true;
    find_agent_files(l, state, NULL);
    add_file(l, state, "batond.log");
    return look_at_plan(l, step, &over);
}

static enum cli_exit follow(struct logs *l)
{
    msec look_at = 0;
    bool over = false;

    while (stop == 0) {
        enum cli_exit code = CLI_OK;
        const bool was_over = over; /* before its last lines were read */
        for (int i = 0; i < l->n_files; i++) {
            if (!read_file(l, &l->files[i])) {
                return CLI_INTERNAL;
            }
        }
        print_lines(l, SIZE_MAX / 2);
        if (!output_flush() || was_over) {
            return CLI_OK;
        }
        if (deadline_is_over()) {
            return CLI_TIMEOUT;
        }
        if (l->plan != NULL && clock_mono_ms() >= look_at) {
            code = look_at_plan(l, NULL, &over);
            look_at = clock_mono_ms() + 4 * POLL_MS;
        }
        if (code != CLI_OK) {
            return code;
        }
        (void)poll(NULL, 0, (int)deadline_left(POLL_MS));
    }
    return CLI_INTERRUPTED;
}

/* Prints what there is, then what comes. */
static enum cli_exit show(struct logs *l)
{
    const char *tail = cli_value(l->cli, "tail");
    uint64_t n = SIZE_MAX / 2;

    if (tail != NULL && !cli_number(tail, "--tail", &n)) {
        return CLI_USAGE;
    }
    for (int i = 0; i < l->n_files; i++) {
        if (!read_file(l, &l->files[i])) {
            return CLI_INTERNAL;
        }
    }
    if (l->n_files == 1 && l->files[0].at == NULL) {
        cli_error("%s: %s; a daemon that `baton up` did not start writes to where its starter "
                  "has its stderr; a service: journalctl -u baton",
                  l->files[0].path, strerror(errno));
        return CLI_NOT_FOUND;
    }
    if (l->old > 0) {
        cli_note("(%zu lines of earlier daemons are left out; --all prints them)\n", l->old);
    }
    print_lines(l, n < SIZE_MAX / 2 ? (size_t)n : SIZE_MAX / 2);
    return cli_flag(l->cli, "follow") ? follow(l) : CLI_OK;
}

enum cli_exit verb_logs(struct cli *cli)
{
    const struct sigaction action = {.sa_handler = on_signal};
    const char *state = cli_state_dir(cli);
    struct logs l = {.cli = cli, .files = calloc(FILES_MAX, sizeof *l.files)};
    enum cli_exit code;

    if (state == NULL || l.files == NULL) {
        free(l.files);
        return state == NULL ? CLI_USAGE : CLI_INTERNAL;
    }
    code = choose(&l, state);
    if (cli_flag(cli, "follow")) {
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
    }
    code = code == CLI_OK ? show(&l) : code;
    for (int i = 0; i < l.n_files; i++) {
        if (l.files[i].at != NULL) {
            (void)fclose(l.files[i].at);
        }
    }
    for (size_t i = 0; i < l.n; i++) {
        free(l.lines[i].text);
    }
    free(l.lines);
    free(l.files);
    return code;
}
