/* top: shows agents, queues and plans every second: a screen on a terminal, tables elsewhere. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"

enum {
    INTERVAL_MS = 1000,
    ASK_MS = 3000,
    GONE_MS = 15000, /* as in `run`: after so long a silent daemon counts as gone */
    PLANS_MAX = 50,
    FRAME_BYTES_MAX = 4 << 20
};

struct top {
    struct cli *cli;
    bool screen;           /* redrawn in place, keys are read */
    struct termios before; /* of the terminal */
    msec last_answer;
    cJSON *frame; /* {stats, plans} of the last answer */
};

static volatile sig_atomic_t stop;

static void on_signal(int signal_number)
{
    (void)signal_number;
    stop = 1;
}

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static enum bt_code ask(struct cli *cli, const char *type, const char *fields, cJSON **ret,
                        struct bt_error *err)
{
    char *json = NULL;
    enum bt_code code = bt_client_call(cli->client, type, fields, &json, err);

    *ret = code == BT_OK ? cJSON_Parse(json) : NULL;
    bt_free(json);
    if (!cli->json) {
        cli_scrub_tree(*ret);
    }
    return code;
}

/* Appends the plans with that status. */
static enum bt_code add_plans(struct cli *cli, const char *status, cJSON *plans,
                              struct bt_error *err)
{
    char fields[64];
    cJSON *answer = NULL;
    cJSON *list;
    enum bt_code code;

    (void)snprintf(fields, sizeof fields, "{\"status\":\"%s\",\"limit\":%d}", status, PLANS_MAX);
    code = ask(cli, "plan.list", fields, &answer, err);
    list = cJSON_GetObjectItemCaseSensitive(answer, "plans");
    while (cJSON_GetArraySize(list) > 0) {
        (void)cJSON_AddItemToArray(plans, cJSON_DetachItemFromArray(list, 0));
    }
    cJSON_Delete(answer);
    return code;
}

/* Fetches everything that is shown; keeps the last frame on an error. */
static enum bt_code fetch(struct top *t, struct bt_error *err)
{
    cJSON *stats = NULL;
    cJSON *plans = cJSON_CreateArray();
    enum bt_code code = ask(t->cli, "supervisor.stats", NULL, &stats, err);

    if (code == BT_OK) {
        code = add_plans(t->cli, "waiting", plans, err);
    }
    if (code == BT_OK) {
        code = add_plans(t->cli, "running", plans, err);
    }
    if (code != BT_OK) {
        cJSON_Delete(stats);
        cJSON_Delete(plans);
        return code;
    }
    cJSON_Delete(t->frame);
    t->frame = cJSON_CreateObject();
    (void)cJSON_AddItemToObject(t->frame, "stats", stats);
    (void)cJSON_AddItemToObject(t->frame, "plans", plans);
    t->last_answer = clock_mono_ms();
    return BT_OK;
}

static void put_head(const cJSON *s, struct buf *out)
{
    double most = json_number(s, "inFlightMax");
    char limit[32] = "";

    if (most > 0) {
        (void)snprintf(limit, sizeof limit, " of %.0f", most);
    }
    buf_printf(out,
               "plans %.0f open, %.0f waiting, %.0f done   steps %.0f%s in flight, %.0f queued   "
               "reviews %.0f\n",
               json_number(s, "plansOpen"), json_number(s, "plansWaiting"),
               json_number(s, "plansDone"), json_number(s, "inFlight"), limit,
               json_number(s, "queued"), json_number(s, "reviewsOpen"));
    buf_printf(out,
               "dispatched %.0f, retried %.0f, fallbacks %.0f, replans %.0f   refused %.0f   "
               "memory %.1f MiB\n\n",
               json_number(s, "stepsDispatched"), json_number(s, "stepsRetried"),
               json_number(s, "fallbacks"), json_number(s, "replans"),
               json_number(s, "refusedBusy"), json_number(s, "rssBytes") / (1 << 20));
}

static void put_agents(const cJSON *agents, int width, int rows, struct buf *out)
{
    static const char *const heads[] = {"agent",    "state",   "breaker", ">instances",
                                        ">busy",    ">queued", ">steps",  ">errors",
                                        ">average", ">max",    ">tokens", NULL};
    struct table *t = table_new(heads);
    const cJSON *a;

    cJSON_ArrayForEach(a, agents)
    {
        char average[24];
        char max[24];
        cli_format_ms(json_number(a, "averageMs"), average, sizeof average);
        cli_format_ms(json_number(a, "maxMs"), max, sizeof max);
        table_cell(t, "%s", json_text(a, "agentId", ""));
        table_cell(t, "%s %s", cli_mark(json_text(a, "state", "")), json_text(a, "state", ""));
        table_cell(t, "%s", json_text(a, "breaker", ""));
        table_cell(t, "%.0f", json_number(a, "instances"));
        table_cell(t, "%.0f/%.0f", json_number(a, "inFlight"), json_number(a, "capacity"));
        table_cell(t, "%.0f", json_number(a, "queued"));
        table_cell(t, "%.0f", json_number(a, "steps"));
        table_cell(t, "%.0f", json_number(a, "errors"));
        table_cell(t, "%s", average);
        table_cell(t, "%s", max);
        table_cell(t, "%.0f", json_number(a, "tokens"));
    }
    table_write(t, width, rows, out);
    table_free(t);
}

static void put_plans(const cJSON *plans, int width, int rows, struct buf *out)
{
    static const char *const heads[] = {"plan",  "status",   "phase", "paused",
                                        ">done", "position", "goal",  NULL};
    struct table *t = table_new(heads);
    const cJSON *p;

    cJSON_ArrayForEach(p, plans)
    {
        const cJSON *counts = get(p, "counts");
        const cJSON *paused = cJSON_GetArrayItem(get(p, "paused"), 0);
        const char *phase = json_text(p, "phase", "");
        table_cell(t, "%s", json_text(p, "planId", ""));
        table_cell(t, "%s %s", cli_mark(json_text(p, "status", "")), json_text(p, "status", ""));
        table_cell(t, "%s", strcmp(phase, "execution") == 0 ? "" : phase);
        table_cell(t, "%s", cJSON_IsString(paused) ? paused->valuestring : "");
        table_cell(t, "%.0f/%.0f", json_number(counts, "completed"), json_number(counts, "total"));
        table_cell(t, "%s", json_text(p, "position", ""));
        table_cell(t, "%.80s", json_text(p, "query", ""));
    }
    table_write(t, width, rows, out);
    table_free(t);
}

static int lines_of(struct buf *out)
{
    int n = 0;

    for (const char *p = buf_cstr(out); *p != 0; p++) {
        n += *p == '\n';
    }
    return n;
}

/* Appends the frame for people; width and height 0 = no terminal, no limits. */
static void put_frame(const struct top *t, int width, int height, struct buf *out)
{
    const cJSON *stats = get(t->frame, "stats");
    int left;

    put_head(stats, out);
    put_agents(get(stats, "agents"), width, height > 8 ? height / 2 : 0, out);
    left = height == 0 ? 0 : height - lines_of(out) - 3;
    if (cJSON_GetArraySize(get(t->frame, "plans")) > 0 && (height == 0 || left > 0)) {
        buf_add_byte(out, '\n');
        put_plans(get(t->frame, "plans"), width, left, out);
    }
}

/* Each line wipes the rest of the old one, so nothing flickers. */
static void draw(const struct top *t, const char *trouble)
{
    struct winsize size = {0};
    struct buf out;
    int line = 0;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2 || size.ws_col < 2) {
        size =
            (struct winsize){.ws_row = 24, .ws_col = 80}; /* the terminal does not know its size */
    }
    buf_init(&out, FRAME_BYTES_MAX);
    put_frame(t, size.ws_col, size.ws_row, &out);
    (void)fputs("\033[H", stdout);
    for (const char *p = buf_cstr(&out); *p != 0 && line < size.ws_row - 1; line++) {
        size_t n = strcspn(p, "\n");
        (void)printf("%.*s\033[K\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
    (void)printf("\033[J%.*s", size.ws_col - 1, trouble != NULL ? trouble : "q ends");
    buf_done(&out);
}

static void show(const struct top *t, const char *trouble)
{
    struct buf out;

    if (t->screen) {
        draw(t, trouble);
    } else if (trouble == NULL && t->cli->json) {
        cli_print_json(t->frame);
    } else if (trouble == NULL) {
        buf_init(&out, FRAME_BYTES_MAX);
        put_frame(t, 0, 0, &out);
        (void)printf("%s%s", buf_cstr(&out), cli_flag(t->cli, "once") ? "" : "\n");
        buf_done(&out);
    }
}

/* The alternate screen, no cursor, keys without Enter. */
static void enter_screen(struct top *t)
{
    const char *term = getenv("TERM");
    struct termios raw;

    if (t->cli->json || cli_flag(t->cli, "once") || isatty(STDOUT_FILENO) != 1 ||
        isatty(STDIN_FILENO) != 1 || (term != NULL && strcmp(term, "dumb") == 0) ||
        tcgetattr(STDIN_FILENO, &t->before) != 0) {
        return;
    }
    raw = t->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    (void)fputs("\033[?1049h\033[?25l\033[2J", stdout);
    t->screen = true;
}

static void leave_screen(struct top *t)
{
    if (t->screen) {
        (void)fputs("\033[?25h\033[?1049l", stdout);
        (void)fflush(stdout);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
    }
}

/* Waits for the next frame; false after `q` or a signal. */
static bool wait_for_next(const struct top *t, uint32_t interval_ms)
{
    struct pollfd keys = {.fd = t->screen ? STDIN_FILENO : -1, .events = POLLIN};
    msec until = clock_mono_ms() + interval_ms;
    msec now = clock_mono_ms();

    while (stop == 0 && now < until) {
        char key = 0;
        if (poll(&keys, 1, (int)(until - now)) > 0 &&
            (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == 4)) {
            return false;
        }
        now = clock_mono_ms();
    }
    return stop == 0;
}

static enum cli_exit run(struct top *t, uint32_t interval_ms)
{
    struct bt_error err;

    do {
        enum bt_code code = fetch(t, &err);
        if (code != BT_OK && (t->frame == NULL || (code != BT_UNAVAILABLE && code != BT_TIMEOUT) ||
                              clock_mono_ms() - t->last_answer > GONE_MS)) {
            leave_screen(t);
            t->screen = false;
            return cli_fail(&err);
        }
        show(t, code == BT_OK ? NULL : err.msg);
        if (fflush(stdout) != 0 || cli_flag(t->cli, "once")) {
            return CLI_OK; /* or the reader has closed the pipe */
        }
    } while (wait_for_next(t, interval_ms));
    return stop != 0 ? CLI_INTERRUPTED : CLI_OK;
}

enum cli_exit verb_top(struct cli *cli)
{
    struct sigaction action = {.sa_handler = on_signal};
    const char *interval = cli_value(cli, "interval");
    struct top t = {.cli = cli};
    uint32_t interval_ms = INTERVAL_MS;
    enum cli_exit code;

    if (interval != NULL && !cli_duration(interval, "--interval", &interval_ms)) {
        return CLI_USAGE;
    }
    code = cli_connect(cli);
    if (code != CLI_OK) {
        return code;
    }
    bt_client_timeout(cli->client, ASK_MS);
    if (!cli_flag(cli, "once")) {
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
        (void)sigaction(SIGHUP, &action, NULL);
    }
    enter_screen(&t);
    code = run(&t, interval_ms);
    leave_screen(&t);
    cJSON_Delete(t.frame);
    return code;
}
