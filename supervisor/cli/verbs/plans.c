#include "supervisor/cli/verbs/plans.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/output.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/view/children.h"
#include "supervisor/cli/view/table.h"

enum {
    LIMIT = 20,
    PAGE_MAX = 100,
    SCANNED_MAX = 1000, /* with --agent: each plan is asked for its steps */
    GOAL_BYTES = 48,
    GOAL_WIDE = 100, /* on a terminal of WIDE columns */
    WIDE = 160,
    REASON_BYTES = 160,
    NARROW = 110,  /* on fewer columns ids are cut: */
    ID_SHOWN = 18, /* time and counter of an id; the first characters are enough for each verb */
    GOAL_NARROW = 20,
    INTERVAL_MS = 1000,
    FRAME_MAX = 4 << 20
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

/* A timestamp of the daemon in ms since 1970; 0 = none. */
static msec time_of(const cJSON *plan, const char *name)
{
    struct tm tm = {0};
    const char *end = strptime(json_text(plan, name, ""), "%Y-%m-%dT%H:%M:%S", &tm);
    int ms = 0;

    if (end == NULL) {
        return 0;
    }
    (void)sscanf(end, ".%3dZ", &ms);
    return (msec)timegm(&tm) * 1000 + (msec)ms;
}

/* "350ms", "45s", "12m", "3h", "5d" */
static void format_span(msec ms, char *ret, size_t cap)
{
    static const struct {
        msec below, unit;
        const char *name;
    } units[] = {{1000, 1, "ms"},
                 {120000, 1000, "s"},
                 {7200000, 60000, "m"},
                 {172800000, 3600000, "h"},
                 {MSEC_NEVER, 86400000, "d"}};
    size_t i = 0;

    i = ms == 0 ? 1 : 0;
    while (ms >= units[i].below) {
        i++;
    }
    (void)snprintf(ret, cap, "%llu%s", (unsigned long long)(ms / units[i].unit), units[i].name);
}

static bool is_ended(const char *status)
{
    return strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0 ||
           strcmp(status, "cancelled") == 0 || strcmp(status, "planned") == 0 ||
           strcmp(status, "quarantined") == 0;
}

const char *cli_plan_waits_for(const cJSON *view)
{
    const char *begun = "";
    const char *text = "";
    const cJSON *s;

    cJSON_ArrayForEach(s, get(view, "steps"))
    {
        const char *status = json_text(s, "status", "");
        const char *wait = json_text(children_wait(s), "text", "");
        if (strcmp(status, "in_progress") == 0 && wait[0] == 0) {
            return "";
        }
        if (strcmp(status, "in_progress") == 0) {
            begun = begun[0] == 0 ? wait : begun;
        } else {
            text = text[0] == 0 ? wait : text;
        }
    }
    return begun[0] != 0 ? begun : text;
}

/* Why the plan is as it is: why it failed, what it waits for, where it is. */
static void reason_of(const cJSON *view, char *ret, size_t cap)
{
    const char *failure = json_text(view, "failureReason", "");
    const char *waits = cli_plan_waits_for(view);
    const cJSON *why = get(view, "paused") != NULL ? get(view, "paused")->child : NULL;
    char text[2 * REASON_BYTES];

    if (failure[0] != 0 || is_ended(json_text(view, "status", ""))) {
        (void)snprintf(text, sizeof text, "%s", failure);
    } else if (why != NULL) {
        (void)snprintf(text, sizeof text, "paused (%s)%s%s",
                       cJSON_IsString(why) ? why->valuestring : "", waits[0] != 0 ? ": " : "",
                       waits);
    } else {
        const char *position = json_text(view, "position", "");
        (void)snprintf(text, sizeof text, "%s%s%s", position,
                       position[0] != 0 && waits[0] != 0 ? ": " : "", waits);
    }
    cli_cut_line(ret, cap, text);
}

static bool has_agent(const cJSON *view, const char *agent)
{
    const cJSON *s;

    cJSON_ArrayForEach(s, get(view, "steps"))
    {
        if (strcmp(json_text(s, "agentId", ""), agent) == 0) {
            return true;
        }
    }
    return false;
}

static void add_row(struct table *t, const cJSON *plan, const cJSON *view, int columns)
{
    const char *status = json_text(plan, "status", "");
    const msec now = clock_wall_ms();
    const msec begun = time_of(plan, "createdAt");
    const msec ended = time_of(plan, "completedAt");
    char age[24];
    char took[24];
    const bool narrow = columns > 0 && columns < NARROW;
    const size_t room = narrow ? GOAL_NARROW : columns >= WIDE ? GOAL_WIDE : GOAL_BYTES;
    char goal[GOAL_WIDE];
    char reason[REASON_BYTES] = "";

    format_span(now > begun ? (now - begun) / 1000 * 1000 : 0, age, sizeof age);
    format_span(ended > begun               ? ended - begun
                : ended == 0 && now > begun ? now - begun
                                            : 0,
                took, sizeof took);
    cli_cut_line(goal, room, json_text(plan, "query", ""));
    if (view != NULL) {
        reason_of(view, reason, sizeof reason);
    }
    table_cell(t, "%s %.*s", cli_mark(status), narrow ? ID_SHOWN : BT_ID_LEN,
               json_text(plan, "planId", ""));
    table_cell(t, "%s",
               strcmp(json_text(plan, "outcome", ""), "partial") == 0 ? "partial" : status);
    table_cell(t, "%s", age);
    table_cell(t, "%s", took);
    table_cell(t, "%s", goal);
    table_cell(t, "%s", reason);
}

struct list {
    const char *agent, *schedule; /* NULL = all */
    uint64_t wanted, shown, scanned;
    int columns;  /* of the terminal; 0 = there is none */
    cJSON *plans; /* the ones that are let through */
    struct table *table;
};

/* Takes one plan of the list; its steps are asked for only when they are needed. */
static enum cli_exit take(struct cli *cli, struct list *l, const cJSON *plan)
{
    const bool meant =
        l->schedule == NULL || strcmp(json_text(plan, "schedule", ""), l->schedule) == 0;
    const bool asks = l->agent != NULL || strcmp(json_text(plan, "status", ""), "completed") != 0;
    cJSON *view = NULL;
    enum cli_exit code = CLI_OK;

    l->scanned++;
    if (!meant) {
        return CLI_OK;
    }
    if (asks && (l->agent != NULL || !cli->json)) {
        code = cli_plan_view(cli, json_text(plan, "planId", ""), &view);
    }
    if (code == CLI_OK && (l->agent == NULL || has_agent(view, l->agent))) {
        l->shown++;
        (void)cJSON_AddItemToArray(l->plans, cJSON_Duplicate(plan, true));
        add_row(l->table, plan, view, l->columns);
    }
    cJSON_Delete(view);
    return code;
}

/* Takes plans page by page until there are enough. */
static enum cli_exit take_pages(struct cli *cli, struct list *l)
{
    char cursor[80] = "";
    enum cli_exit code = CLI_OK;

    do {
        const uint64_t left = l->schedule != NULL ? PAGE_MAX : l->wanted - l->shown;
        cJSON *fields = cJSON_CreateObject();
        cJSON *answer = NULL;
        const cJSON *p;
        (void)cJSON_AddNumberToObject(fields, "limit", (double)(left > PAGE_MAX ? PAGE_MAX : left));
        cli_add_value(cli, "status", fields, "status");
        cli_add_value(cli, "session", fields, "sessionId");
        if (cursor[0] != 0) {
            (void)cJSON_AddStringToObject(fields, "cursor", cursor);
        }
        code = cli_call(cli, "plan.list", fields, &answer);
        cJSON_ArrayForEach(p, get(answer, "plans"))
        {
            code = code == CLI_OK && l->shown < l->wanted ? take(cli, l, p) : code;
        }
        (void)snprintf(cursor, sizeof cursor, "%s", json_text(answer, "cursor", ""));
        cJSON_Delete(answer);
    } while (code == CLI_OK && cursor[0] != 0 && l->shown < l->wanted &&
             ((l->agent == NULL && l->schedule == NULL) || l->scanned < SCANNED_MAX));
    if (code == CLI_OK && cursor[0] != 0 && l->shown < l->wanted) {
        cli_note("only the newest %llu plans were looked at\n", (unsigned long long)l->scanned);
    }
    return code;
}

enum cli_exit cli_check_filters(struct cli *cli)
{
    static const struct {
        const char *option, *type, *member;
    } filters[] = {{"schedule", "schedule.get", "name"},
                   {"agent", "agents.get", "agentId"},
                   {"session", "session.get", "sessionId"}};
    enum cli_exit code = CLI_OK;

    for (size_t i = 0; i < sizeof filters / sizeof filters[0] && code == CLI_OK; i++) {
        const char *given = cli_value(cli, filters[i].option);
        cJSON *answer = NULL;
        if (given != NULL) {
            code = cli_call(cli, filters[i].type, cli_fields(filters[i].member, given), &answer);
        }
        cJSON_Delete(answer);
    }
    return code;
}

enum cli_exit cli_show_plans(struct cli *cli, int columns, int rows, bool *ret_over)
{
    static const char *const heads[] = {"PLAN", "STATUS", ">AGE", ">TIME", "GOAL", "REASON", NULL};
    const char *limit = cli_value(cli, "limit");
    struct list l = {.agent = cli_value(cli, "agent"),
                     .schedule = cli_value(cli, "schedule"),
                     .wanted = LIMIT,
                     .columns = columns};
    struct buf out;
    enum cli_exit code;

    if (limit != NULL && !cli_number(limit, "--limit", &l.wanted)) {
        return CLI_USAGE;
    }
    l.plans = cJSON_CreateArray();
    l.table = table_new(heads);
    code = l.wanted > 0 ? take_pages(cli, &l) : CLI_OK;
    if (code == CLI_OK && l.shown == 0 && l.wanted > 0) {
        code = cli_check_filters(cli);
    }
    if (code == CLI_OK && cli->json) {
        cli_print_json(l.plans);
    } else if (code == CLI_OK) {
        *ret_over = l.shown == 0 && l.wanted > 0 && !cli_flag(cli, "watch");
        buf_init(&out, FRAME_MAX);
        table_write(l.table, columns, rows > 2 ? rows - 2 : 0, &out);
        (void)fputs(l.shown == 0 && columns > 0 && cli_flag(cli, "watch") ? "no plans yet\n"
                                                                          : buf_cstr(&out),
                    stdout);
        buf_done(&out);
    }
    table_free(l.table);
    cJSON_Delete(l.plans);
    return code;
}

/* A plan in quarantine needs a person, and may be older than what the list shows. */
static void note_quarantined(struct cli *cli)
{
    cJSON *fields = cli_fields("status", "quarantined");
    cJSON *answer = NULL;

    if (cli_call(cli, "plan.list", fields, &answer) == CLI_OK) {
        const int n = cJSON_GetArraySize(get(answer, "plans"));
        if (n > 0) {
            cli_note("%d%s plan%s in quarantine: baton status --status quarantined; baton retry "
                     "PLAN_ID\n",
                     n, json_text(answer, "cursor", "")[0] != 0 ? " or more" : "",
                     n == 1 ? " is" : "s are");
        }
    }
    cJSON_Delete(answer);
}

enum cli_exit cli_list_plans(struct cli *cli)
{
    struct winsize size = {0};
    enum cli_exit code;
    bool over = false; /* there are none */

    if (cli_on_terminal()) { /* stdout itself may be a pager */
        (void)ioctl(isatty(STDOUT_FILENO) == 1 ? STDOUT_FILENO : STDERR_FILENO, TIOCGWINSZ, &size);
    }
    code = cli_show_plans(cli, size.ws_col, 0, &over);
    if (code == CLI_OK && !cli->json && over) {
        cli_note(cli_value(cli, "status") != NULL || cli_value(cli, "agent") != NULL ||
                         cli_value(cli, "session") != NULL || cli_value(cli, "schedule") != NULL
                     ? "no such plans\n"
                     : "no plans yet: baton run 'GOAL', or baton run -f plan.yaml\n");
    }
    if (code == CLI_OK && !cli->json && cli_value(cli, "status") == NULL) {
        note_quarantined(cli);
    }
    return code;
}

/* False after a signal. */
static bool wait_a_little(void)
{
    const msec until = clock_mono_ms() + deadline_left(INTERVAL_MS);
    msec now = clock_mono_ms();

    while (stop == 0 && now < until) {
        (void)poll(NULL, 0, (int)(until - now));
        now = clock_mono_ms();
    }
    return stop == 0;
}

enum cli_exit cli_watch(struct cli *cli, enum cli_exit (*show)(struct cli *cli, int columns,
                                                               int rows, bool *ret_over))
{
    const struct sigaction action = {.sa_handler = on_signal};
    const bool screen = isatty(STDOUT_FILENO) == 1 && !cli->json;
    bool first = true;

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    do {
        struct winsize size = {0};
        enum cli_exit code;
        bool over = false;
        if (screen) {
            (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
            (void)fputs("\033[H\033[2J", stdout);
        } else if (!first && !cli->json) {
            (void)fputc('\n', stdout);
        }
        first = false;
        code = show(cli, size.ws_col, size.ws_row, &over);
        if (code != CLI_OK || over || !output_flush()) {
            return code; /* main prints why output was lost */
        }
        if (deadline_is_over()) {
            return CLI_TIMEOUT;
        }
    } while (wait_a_little());
    return CLI_INTERRUPTED;
}
