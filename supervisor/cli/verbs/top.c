/* top: shows agents, queues and plans: a screen on a terminal, every second; elsewhere a table. */
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
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/output.h"
#include "supervisor/cli/verbs/plans.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/load.h"
#include "supervisor/cli/view/screen.h"

enum {
    INTERVAL_MS = 1000,
    SLICE_MS = 100, /* a signal between two looks at its flag waits so long */
    ASK_MS = 3000,
    GONE_MS = 15000, /* as in `run`: after so long a silent daemon counts as gone */
    PLANS_MAX = 50,
    WAITS_MAX = 8, /* plans that are asked what they wait for */
    WAITS_STEPS_MAX = 200,
    SCHEDULES_MAX = 100
};

struct top {
    struct cli *cli;
    bool screen;           /* redrawn in place, keys are read */
    struct termios before; /* of the terminal */
    msec last_answer;
    cJSON *frame; /* {stats, plans, schedules} of the last answers */
    struct load *load;
};

static volatile sig_atomic_t stop, resized, suspended;

static void on_signal(int signal_number)
{
    (void)signal_number;
    stop = 1;
}

static void on_change(int signal_number)
{
    if (signal_number == SIGTSTP) {
        suspended = 1;
    } else {
        resized = 1;
    }
}

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static enum bt_code ask(struct cli *cli, const char *type, const char *fields, cJSON **ret,
                        struct bt_error *err)
{
    char *json = NULL;
    enum bt_code code;

    cli_limit_call(cli);
    code = bt_client_call(cli->client, type, fields, &json, err);

    *ret = code == BT_OK ? json_tree(json) : NULL;
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

/* Whether it is the daemon that does not answer. */
static bool is_gone(enum bt_code code)
{
    return code == BT_UNAVAILABLE || code == BT_TIMEOUT;
}

/* Plans of which no step runs get `waitsFor`: the newest ones, and no large ones. */
static enum bt_code add_waits(struct cli *cli, cJSON *plans, struct bt_error *err)
{
    enum bt_code code = BT_OK;
    int asked = 0;
    cJSON *p;

    cJSON_ArrayForEach(p, plans)
    {
        const cJSON *counts = get(p, "counts");
        char fields[96];
        cJSON *view = NULL;
        if (code != BT_OK || asked == WAITS_MAX || counts == NULL ||
            json_number(counts, "running") > 0 || json_number(counts, "total") > WAITS_STEPS_MAX) {
            continue;
        }
        asked++;
        (void)snprintf(fields, sizeof fields, "{\"planId\":\"%.36s\"}", json_text(p, "planId", ""));
        code = ask(cli, "plan.get", fields, &view, err);
        if (code == BT_OK && cli_plan_waits_for(view)[0] != 0) {
            (void)cJSON_AddStringToObject(p, "waitsFor", cli_plan_waits_for(view));
        }
        code = is_gone(code) ? code : BT_OK; /* deleted meanwhile */
        cJSON_Delete(view);
    }
    return code;
}

/* Fetches everything that is shown; keeps the last frame on an error. */
static enum bt_code fetch(struct top *t, struct bt_error *err)
{
    char all[32];
    cJSON *schedules = NULL;
    cJSON *stats = NULL;
    cJSON *plans = cJSON_CreateArray();
    enum bt_code code = ask(t->cli, "supervisor.stats", NULL, &stats, err);

    if (code == BT_OK) {
        code = add_plans(t->cli, "waiting", plans, err);
    }
    if (code == BT_OK) {
        code = add_plans(t->cli, "running", plans, err);
    }
    if (code == BT_OK) {
        code = add_waits(t->cli, plans, err);
    }
    (void)snprintf(all, sizeof all, "{\"limit\":%d}", SCHEDULES_MAX);
    if (code == BT_OK) {
        code = ask(t->cli, "schedule.list", all, &schedules, err);
        code = is_gone(code) ? code : BT_OK; /* the frame does without */
    }
    if (code != BT_OK) {
        cJSON_Delete(schedules);
        cJSON_Delete(stats);
        cJSON_Delete(plans);
        return code;
    }
    cJSON_Delete(t->frame);
    t->frame = cJSON_CreateObject();
    (void)cJSON_AddItemToObject(t->frame, "stats", stats);
    (void)cJSON_AddItemToObject(t->frame, "plans", plans);
    (void)cJSON_AddItemToObject(t->frame, "schedules",
                                cJSON_DetachItemFromObjectCaseSensitive(schedules, "schedules"));
    cJSON_Delete(schedules);
    t->last_answer = clock_mono_ms();
    load_take(t->load, stats, (double)t->last_answer);
    return BT_OK;
}

/* Each line wipes the rest of the old one, so nothing flickers. */
static void draw(const struct top *t, const char *trouble)
{
    struct look look = screen_look(t->cli);
    struct winsize size = {0};
    struct buf out;
    int line = 0;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2 || size.ws_col < 2) {
        size =
            (struct winsize){.ws_row = 24, .ws_col = 80}; /* the terminal does not know its size */
    }
    look.width = size.ws_col;
    buf_init(&out, SCREEN_BYTES_MAX);
    load_frame(t->load, t->frame, &look, size.ws_row - 1, &out);
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
        const struct look look = {.width = 0};
        buf_init(&out, SCREEN_BYTES_MAX);
        load_frame(t->load, t->frame, &look, 0, &out);
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

/* The terminal is as it was until the process continues. */
static void suspend(struct top *t)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    suspended = 0;
    leave_screen(t);
    (void)sigaction(SIGTSTP, &action, NULL);
    (void)raise(SIGTSTP); /* returns when the process continues */
    action.sa_handler = on_change;
    (void)sigaction(SIGTSTP, &action, NULL);
    enter_screen(t);
    resized = 1; /* all is drawn again */
}

/* Waits for the next frame; draws the same one again when the terminal has another size. False
 * after `q` or a signal. */
static bool wait_for_next(struct top *t, uint32_t interval_ms, const char *trouble)
{
    struct pollfd keys = {.fd = t->screen ? STDIN_FILENO : -1, .events = POLLIN};
    msec until = clock_mono_ms() + interval_ms;
    msec now = clock_mono_ms();

    while (stop == 0 && now < until) {
        char key = 0;
        if (poll(&keys, 1, until - now < SLICE_MS ? (int)(until - now) : SLICE_MS) > 0 &&
            (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == 4)) {
            return false;
        }
        if (suspended != 0) {
            suspend(t);
        }
        if (resized != 0) {
            resized = 0;
            show(t, trouble);
            (void)fflush(stdout);
        }
        now = clock_mono_ms();
    }
    return stop == 0;
}

static enum cli_exit run(struct top *t, uint32_t interval_ms)
{
    const bool once =
        cli_flag(t->cli, "once") || (!t->screen && cli_value(t->cli, "interval") == NULL);
    const char *trouble;
    struct bt_error err;

    do {
        enum bt_code code = fetch(t, &err);
        if (stop != 0) {
            break;
        }
        if (code != BT_OK && (t->frame == NULL || (code != BT_UNAVAILABLE && code != BT_TIMEOUT) ||
                              clock_mono_ms() - t->last_answer > GONE_MS)) {
            leave_screen(t);
            t->screen = false;
            return cli_fail(&err);
        }
        trouble = code == BT_OK ? NULL : err.msg;
        show(t, trouble);
        if (!output_flush() || once) {
            return CLI_OK; /* main prints why */
        }
        if (deadline_is_over()) {
            return CLI_TIMEOUT;
        }
    } while (wait_for_next(t, deadline_left(interval_ms), trouble));
    return stop != 0 ? CLI_INTERRUPTED : CLI_OK;
}

enum cli_exit verb_top(struct cli *cli)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction change = {.sa_handler = on_change};
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
    cli->call_ms = ASK_MS;
    t.load = load_new();
    if (t.load == NULL) {
        cli_error("out of memory");
        return CLI_INTERNAL;
    }
    if (!cli_flag(cli, "once")) {
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
        (void)sigaction(SIGHUP, &action, NULL);
    }
    enter_screen(&t);
    if (t.screen) {
        (void)sigaction(SIGWINCH, &change, NULL);
        (void)sigaction(SIGTSTP, &change, NULL);
    }
    code = run(&t, interval_ms);
    leave_screen(&t);
    cJSON_Delete(t.frame);
    load_free(t.load);
    return code;
}
