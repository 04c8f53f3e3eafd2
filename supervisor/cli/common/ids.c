#include "supervisor/cli/common/ids.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/form.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"

enum { MATCHES_SHOWN = 10, SESSIONS_MAX = 1000, GOAL_SHOWN = 64, NAME_MAX_BYTES = 64 };

static const char last_name[] = "last";
static const char digits[] = "0123456789abcdefABCDEF-";

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* The bytes of the plan's id before a step or a revision. */
static size_t plan_part(const char *text)
{
    return strcspn(text, "/@");
}

static bool is_last(const char *text, size_t n)
{
    return n == strlen(last_name) && strncmp(text, last_name, n) == 0;
}

bool cli_names_plan(const char *text)
{
    const size_t n = plan_part(text);

    return is_last(text, n) || (n == BT_ID_LEN && strspn(text, digits) == n);
}

static void keep(char ret[CLI_ID_MAX], const char *id, const char *rest)
{
    (void)snprintf(ret, CLI_ID_MAX, "%s%s", id, rest);
}

/* Reports the several things that a short name could be. Takes matches. */
static enum cli_exit report_several(struct cli *cli, const char *name, const char *what,
                                    const char *id, cJSON *matches)
{
    const cJSON *m;

    if (cli->json) {
        cJSON *error = cli_fields("code", bt_code_name(BT_INVALID));
        char text[CLI_ID_MAX];
        (void)snprintf(text, sizeof text, "several %ss begin with '%.100s'", what, name);
        (void)cJSON_AddStringToObject(error, "message", text);
        (void)cJSON_AddItemToObject(cJSON_AddObjectToObject(error, "details"), "matches", matches);
        cli_error_keep(error);
        return CLI_USAGE;
    }
    cli_error("several %ss begin with '%s':", what, name);
    cJSON_ArrayForEach(m, matches)
    {
        char goal[GOAL_SHOWN];
        char when[CLI_TIME_MAX];
        cli_cut_line(goal, sizeof goal, json_text(m, "query", ""));
        cli_note("  %s  %-10s %s  %s\n", json_text(m, id, ""), json_text(m, "status", ""),
                 cli_time(json_text(m, "createdAt", ""), when), goal);
    }
    cJSON_Delete(matches);
    return CLI_USAGE;
}

/* One of the matches, or the error that there are several. Takes matches. */
static enum cli_exit choose(struct cli *cli, const char *given, const char *what, const char *id,
                            cJSON *matches, const char *rest, char ret[CLI_ID_MAX])
{
    const int n = cJSON_GetArraySize(matches);

    if (n > 1) {
        return report_several(cli, given, what, id, matches);
    }
    if (n == 1) {
        keep(ret, json_text(matches->child, id, ""), rest);
    }
    cJSON_Delete(matches);
    return CLI_OK;
}

static enum cli_exit newest_plan(struct cli *cli, const char *rest, char ret[CLI_ID_MAX])
{
    cJSON *fields = cJSON_CreateObject();
    cJSON *answer = NULL;
    const cJSON *plans;
    enum cli_exit code;

    (void)cJSON_AddNumberToObject(fields, "limit", 1);
    code = cli_call(cli, "plan.list", fields, &answer);
    plans = get(answer, "plans");
    if (code == CLI_OK && cJSON_GetArraySize(plans) == 0) {
        cli_error("there is no last plan: none was submitted yet");
        code = CLI_NOT_FOUND;
    } else if (code == CLI_OK) {
        keep(ret, json_text(plans->child, "planId", ""), rest);
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit cli_plan_id(struct cli *cli, const char *given, char ret[CLI_ID_MAX])
{
    const size_t n = plan_part(given);
    char name[NAME_MAX_BYTES];
    cJSON *fields;
    cJSON *answer = NULL;
    enum cli_exit code;

    keep(ret, given, "");
    if (is_last(given, n)) {
        return newest_plan(cli, given + n, ret);
    }
    if (n == 0 || n >= BT_ID_LEN || given[0] == '-' || strspn(given, digits) < n) {
        return CLI_OK;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)n, given);
    fields = cli_fields("idPrefix", name);
    (void)cJSON_AddNumberToObject(fields, "limit", MATCHES_SHOWN);
    code = cli_call(cli, "plan.list", fields, &answer);
    if (code == CLI_OK) {
        code = choose(cli, name, "plan", "planId",
                      cJSON_DetachItemFromObjectCaseSensitive(answer, "plans"), given + n, ret);
    }
    cJSON_Delete(answer);
    return code;
}

/* The child plan of the step; "" after printing why there is none. */
static void child_of(const cJSON *view, const char *step_id, char ret[CLI_ID_MAX])
{
    const char *plan = json_text(view, "planId", "");
    const cJSON *step;
    const cJSON *found = NULL;
    const char *id;

    cJSON_ArrayForEach(step, get(view, "steps"))
    {
        const bool meant = strcmp(json_text(step, "stepId", ""), step_id) == 0;
        found = meant && !cJSON_IsTrue(get(step, "superseded")) ? step : found;
    }
    id = json_text(get(found, "children"), "planId", "");
    if (found == NULL) {
        cli_error("plan %s has no step '%s'; see: baton status %s", plan, step_id, plan);
    } else if (get(found, "children") == NULL) {
        cli_error("step %s of plan %s is no plan of its own: forEach, repeat and plan are; its "
                  "result: baton result %s %s",
                  step_id, plan, plan, step_id);
    } else if (id[0] == 0) {
        cli_error("step %s of plan %s has not begun", step_id, plan);
    }
    keep(ret, id, "");
}

enum cli_exit cli_child_id(struct cli *cli, const char *given, char ret[CLI_ID_MAX])
{
    const char *rest = strchr(given, '/');
    enum cli_exit code = CLI_OK;

    (void)snprintf(ret, CLI_ID_MAX, "%.*s", (int)strcspn(given, "/"), given);
    while (code == CLI_OK && rest != NULL) {
        char step[CLI_ID_MAX];
        cJSON *view = NULL;
        (void)snprintf(step, sizeof step, "%.*s", (int)strcspn(rest + 1, "/"), rest + 1);
        rest = strchr(rest + 1, '/');
        code = cli_plan_view(cli, ret, &view);
        if (code == CLI_OK) {
            child_of(view, step, ret);
            code = ret[0] != 0 ? CLI_OK : CLI_NOT_FOUND;
        }
        cJSON_Delete(view);
    }
    return code;
}

/* The sessions whose ids begin with the text. Takes sessions. */
static cJSON *sessions_with(cJSON *sessions, const char *prefix)
{
    cJSON *matches = cJSON_CreateArray();

    while (cJSON_GetArraySize(sessions) > 0) {
        cJSON *s = cJSON_DetachItemFromArray(sessions, 0);
        if (strncmp(json_text(s, "sessionId", ""), prefix, strlen(prefix)) == 0) {
            (void)cJSON_AddItemToArray(matches, s);
        } else {
            cJSON_Delete(s);
        }
    }
    cJSON_Delete(sessions);
    return matches;
}

/* Whether there is a session of exactly this id. Other errors are for the verb to report. */
static bool is_session(struct cli *cli, const char *id)
{
    cJSON *fields = cli_fields("sessionId", id);
    char *text;
    struct bt_error err;
    enum bt_code called;

    (void)cJSON_AddNumberToObject(fields, "limit", 1);
    text = cJSON_PrintUnformatted(fields);
    cli_limit_call(cli);
    called = bt_client_call(cli->client, "session.get", text, NULL, &err);
    cJSON_free(text);
    cJSON_Delete(fields);
    return called != BT_NOT_FOUND;
}

enum cli_exit cli_session_id(struct cli *cli, const char *given, char ret[CLI_ID_MAX])
{
    const bool newest = strcmp(given, last_name) == 0;
    cJSON *fields;
    cJSON *answer = NULL;
    cJSON *sessions;
    enum cli_exit code = cli_connect(cli);

    keep(ret, given, "");
    if (code != CLI_OK || given[0] == 0 || strlen(given) > NAME_MAX_BYTES ||
        (!newest && is_session(cli, given))) {
        return code;
    }
    fields = cJSON_CreateObject();
    (void)cJSON_AddNumberToObject(fields, "limit", newest ? 1 : SESSIONS_MAX);
    code = cli_call(cli, "session.list", fields, &answer);
    sessions = cJSON_DetachItemFromObjectCaseSensitive(answer, "sessions");
    if (code == CLI_OK && newest && cJSON_GetArraySize(sessions) == 0) {
        cli_error("there is no last session: none was begun yet");
        code = CLI_NOT_FOUND;
        cJSON_Delete(sessions);
    } else if (code == CLI_OK) {
        code = choose(cli, given, "session", "sessionId",
                      newest ? sessions : sessions_with(sessions, given), "", ret);
    }
    cJSON_Delete(answer);
    return code;
}

/* The worse one of two exit codes: a plan that did not do all, one that failed, no answer. */
static enum cli_exit worse(enum cli_exit a, enum cli_exit b)
{
    static const enum cli_exit order[] = {
        CLI_OK,        CLI_PARTIAL, CLI_NEEDS_HUMAN, CLI_CANCELLED, CLI_TIMEOUT,    CLI_FAILED,
        CLI_NOT_FOUND, CLI_USAGE,   CLI_UNREACHABLE, CLI_INTERNAL,  CLI_INTERRUPTED};

    for (size_t i = sizeof order / sizeof order[0]; i-- > 0;) {
        if (order[i] == a || order[i] == b) {
            return order[i];
        }
    }
    return CLI_INTERNAL;
}

enum cli_exit cli_each(struct cli *cli, enum cli_exit (*one)(struct cli *cli, const char *id))
{
    enum cli_exit worst = CLI_OK;
    enum cli_exit code = CLI_OK;

    if (cli->argc == 1) {
        return one(cli, cli->argv[0]);
    }
    if (cli->json) {
        cli_list_begin();
    }
    for (int i = 0; i < cli->argc && code != CLI_UNREACHABLE; i++) {
        cli_list_item();
        cli_errors_about(cli->argv[i]);
        code = one(cli, cli->argv[i]);
        cli_errors_end(code);
        worst = worse(worst, code);
    }
    cli_errors_about(NULL);
    if (cli->json) {
        cli_list_end();
    }
    return worst;
}
