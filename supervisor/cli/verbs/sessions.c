/* sessions: the sessions, or the messages and plans of one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/sessions.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"

enum {
    SESSIONS_SHOWN = 20,
    SESSIONS_MAX = 1000,
    MESSAGES_SHOWN = 100,
    NEWEST = 4,       /* messages in which the person's last one is searched */
    WORDS_SHOWN = 44, /* bytes, in the list */
    TEXT_SHOWN = 64,
    LINE_SHOWN = 512
};

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static enum cli_exit ask_list(struct cli *cli, uint64_t limit, cJSON **ret)
{
    cJSON *fields = cJSON_CreateObject();

    (void)cJSON_AddNumberToObject(fields, "limit", (double)limit);
    return cli_call(cli, "session.list", fields, ret);
}

/* The last message of a person, else the last message; NULL = none. */
static const cJSON *last_message(const cJSON *view)
{
    const cJSON *m;
    const cJSON *last = NULL;

    cJSON_ArrayForEach(m, get(view, "messages"))
    {
        if (last == NULL || strcmp(json_text(m, "role", ""), "user") == 0 ||
            strcmp(json_text(last, "role", ""), "user") != 0) {
            last = m;
        }
    }
    return last;
}

static const cJSON *last_of(const cJSON *list)
{
    return cJSON_GetArrayItem(list, cJSON_GetArraySize(list) - 1);
}

/* The status of the open plan; "" = none is open. */
static const char *open_status(const cJSON *view)
{
    const char *open = json_text(view, "openPlanId", "");
    const char *status = open[0] != 0 ? "open" : "";
    const cJSON *p;

    cJSON_ArrayForEach(p, get(view, "planHistory"))
    {
        if (strcmp(json_text(p, "planId", ""), open) == 0) {
            status = json_text(p, "status", status);
        }
    }
    return status;
}

/* Adds to a session of the list what only session.get returns: the last message, the last goal, the
 * open plan's status. */
static enum cli_exit add_details(struct cli *cli, cJSON *session)
{
    cJSON *fields = cli_fields("sessionId", json_text(session, "sessionId", ""));
    cJSON *view = NULL;
    enum cli_exit code;

    (void)cJSON_AddNumberToObject(fields, "limit", NEWEST);
    code = cli_call(cli, "session.get", fields, &view);
    if (code == CLI_OK) {
        const cJSON *newest = last_of(get(view, "messages"));
        const cJSON *message = last_message(view);
        const char *goal = json_text(last_of(get(view, "planHistory")), "task", "");
        const char *status = open_status(view);
        (void)cJSON_AddStringToObject(
            session, "lastMessageAt",
            json_text(newest, "timestamp", json_text(session, "updatedAt", "")));
        (void)cJSON_AddStringToObject(session, "lastWords", json_text(message, "text", ""));
        (void)cJSON_AddStringToObject(session, "lastGoal", goal);
        if (status[0] != 0) {
            (void)cJSON_AddStringToObject(session, "openPlanStatus", status);
        }
    }
    cJSON_Delete(view);
    return code;
}

static void print_sessions(const cJSON *sessions)
{
    static const char *const heads[] = {"session",   "last message", ">messages", "open plan",
                                        "last goal", "last words",   NULL};
    struct table *t = table_new(heads);
    const cJSON *s;

    cJSON_ArrayForEach(s, sessions)
    {
        const char *words = json_text(s, "lastWords", "");
        const char *status = json_text(s, "openPlanStatus", "");
        char when[CLI_TIME_MAX];
        char last[WORDS_SHOWN];
        char goal[WORDS_SHOWN];
        cli_cut_line(goal, sizeof goal, json_text(s, "lastGoal", ""));
        cli_cut_line(last, sizeof last,
                     strcmp(words, json_text(s, "lastGoal", "")) != 0 ? words : "");
        table_cell(t, "%s", json_text(s, "sessionId", ""));
        table_cell(t, "%s", cli_time(json_text(s, "lastMessageAt", ""), when));
        table_cell(t, "%.0f", json_number(s, "messagesTotal"));
        table_cell(t, status[0] != 0 ? "%s %s" : "%s%s", status[0] != 0 ? cli_mark(status) : "",
                   status);
        table_cell(t, "%s", goal);
        table_cell(t, "%s", last);
    }
    table_show(t);
}

static enum cli_exit list_sessions(struct cli *cli, uint64_t limit)
{
    cJSON *answer = NULL;
    cJSON *sessions;
    cJSON *s;
    enum cli_exit code = ask_list(cli, limit, &answer);

    sessions = cJSON_GetObjectItemCaseSensitive(answer, "sessions");
    cJSON_ArrayForEach(s, sessions)
    {
        code = code == CLI_OK ? add_details(cli, s) : code;
    }
    if (code == CLI_OK && cli->json) {
        cli_print_json(sessions);
    } else if (code == CLI_OK && cJSON_GetArraySize(sessions) == 0) {
        cli_note("no sessions yet: baton chat creates one\n");
    } else if (code == CLI_OK) {
        print_sessions(sessions);
        cli_note("to continue one: baton chat --session ID; its messages: baton sessions ID\n");
    }
    cJSON_Delete(answer);
    return code;
}

static void print_line(const char *when, const char *mark, const char *text)
{
    char line[LINE_SHOWN];
    char local[CLI_TIME_MAX];

    cli_cut_line(line, sizeof line, text);
    (void)printf("%s  %s %s\n", cli_time(when, local), mark, line);
}

static void print_session(const cJSON *view)
{
    const double n = json_number(view, "messagesTotal");
    char when[CLI_TIME_MAX];
    const cJSON *v;

    (void)printf("%s  %.0f message%s since %s\n", json_text(view, "sessionId", ""), n,
                 n == 1 ? "" : "s", cli_time(json_text(view, "createdAt", ""), when));
    if (json_text(view, "summary", "")[0] != 0) {
        char line[LINE_SHOWN];
        cli_cut_line(line, sizeof line, json_text(view, "summary", ""));
        (void)printf("  summary of the first %.0f: %s\n", json_number(view, "summarized"), line);
    }
    cJSON_ArrayForEach(v, get(view, "messages"))
    {
        print_line(json_text(v, "timestamp", ""),
                   strcmp(json_text(v, "role", ""), "user") == 0 ? ">" : " ",
                   json_text(v, "text", ""));
    }
    if (cJSON_GetArraySize(get(view, "planHistory")) > 0) {
        (void)puts("plans");
    }
    cJSON_ArrayForEach(v, get(view, "planHistory"))
    {
        char task[TEXT_SHOWN];
        const char *status = json_text(v, "status", "");
        cli_cut_line(task, sizeof task, json_text(v, "task", ""));
        (void)printf("%s  %s %s %-10s %s\n", cli_time(json_text(v, "createdAt", ""), when),
                     cli_mark(status), json_text(v, "planId", ""), status, task);
    }
}

static enum cli_exit show_session(struct cli *cli, const char *id, uint64_t limit)
{
    cJSON *fields = cli_fields("sessionId", id);
    char *text;
    char *json = NULL;
    cJSON *view = NULL;
    struct bt_error err;
    enum bt_code called;
    enum cli_exit code = cli_connect(cli);

    (void)cJSON_AddNumberToObject(fields, "limit", (double)limit);
    text = cJSON_PrintUnformatted(fields);
    if (code != CLI_OK) {
        goto out;
    }
    called = bt_client_call(cli->client, "session.get", text, &json, &err);
    if (called == BT_NOT_FOUND) {
        cli_report_no_session(cli, id, "");
        code = CLI_NOT_FOUND;
    } else if (called != BT_OK) {
        code = cli_fail(&err);
    } else if ((view = json_tree(json)) == NULL) {
        cli_error("the daemon's answer could not be read");
        code = CLI_INTERNAL;
    } else if (cli->json) {
        cli_print_json(view);
    } else {
        cli_scrub_tree(view);
        print_session(view);
        cli_note("to continue: baton chat --session %s\n", id);
    }
out:
    bt_free(json);
    cJSON_free(text);
    cJSON_Delete(view);
    cJSON_Delete(fields);
    return code;
}

enum cli_exit verb_sessions(struct cli *cli)
{
    const char *given = cli_value(cli, "limit");
    uint64_t limit = cli->argc == 1 ? MESSAGES_SHOWN : SESSIONS_SHOWN;

    if (given != NULL && !cli_number(given, "--limit", &limit)) {
        return CLI_USAGE;
    }
    limit = limit > SESSIONS_MAX ? SESSIONS_MAX : limit;
    return cli->argc == 1 ? show_session(cli, cli->argv[0], limit) : list_sessions(cli, limit);
}
