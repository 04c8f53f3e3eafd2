/* delete, prune: plans and sessions go for good. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"

enum { GOAL_BYTES = 60 };

/* ---- delete ---- */

/* Of a plan with many plans inside it a request deletes some, and the next one goes on. */
static bool is_unfinished(const char *error_json)
{
    cJSON *error = json_tree(error_json);
    const cJSON *details = cJSON_GetObjectItemCaseSensitive(error, "details");
    const bool unfinished = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(details, "unfinished"));

    cJSON_Delete(error);
    return unfinished;
}

static enum cli_exit send_delete(struct cli *cli, const char *fields, cJSON **ret)
{
    enum cli_exit code = cli_connect(cli);
    bool more = code == CLI_OK;

    while (more) {
        char *json = NULL;
        struct bt_error err;
        const enum bt_code called = bt_client_call(cli->client, "plan.delete", fields, &json, &err);
        more = called == BT_BUSY && is_unfinished(json) && !deadline_is_over();
        if (called == BT_OK) {
            *ret = json_tree(json);
        } else if (!more) {
            code = cli_rejected(cli, &err, json);
        }
        bt_free(json);
    }
    return code;
}

static enum cli_exit delete_plan(struct cli *cli, const char *id)
{
    cJSON *fields = cli_fields("planId", id);
    cJSON *answer = NULL;
    char *text = NULL;
    enum cli_exit code;

    cli_add_value(cli, "reason", fields, "reason");
    text = cJSON_PrintUnformatted(fields);
    code = send_delete(cli, text, &answer);
    cJSON_free(text);
    cJSON_Delete(fields);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        (void)printf("%s deleted\n", json_text(answer, "planId", ""));
    }
    cJSON_Delete(answer);
    return code;
}

static enum cli_exit delete_session(struct cli *cli, const char *given)
{
    char id[CLI_ID_MAX];
    cJSON *answer = NULL;
    enum cli_exit code = cli_session_id(cli, given, id);

    if (code == CLI_OK) {
        code = cli_call(cli, "session.delete", cli_fields("sessionId", id), &answer);
    }
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        cli_scrub_tree(answer);
        (void)printf("session %s deleted; its plans stay\n", json_text(answer, "sessionId", ""));
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_delete(struct cli *cli)
{
    const char *session = cli_value(cli, "session");

    if ((session == NULL) == (cli->argc == 0)) {
        cli_error("delete: expected either plans or --session SESSION; see: baton delete --help");
        return CLI_USAGE;
    }
    return session != NULL ? delete_session(cli, session) : cli_each(cli, delete_plan);
}

/* ---- prune ---- */

static void print_plan(const cJSON *p)
{
    char goal[GOAL_BYTES];

    cli_cut_line(goal, sizeof goal, json_text(p, "query", ""));
    (void)printf("%s  %-10s %s  %s\n", json_text(p, "planId", ""), json_text(p, "status", ""),
                 json_text(p, "completedAt", ""), goal);
}

/* One page; its plans move to `all`. */
static enum cli_exit prune_page(struct cli *cli, uint64_t age, const char *cursor, cJSON *all,
                                char ret_cursor[64])
{
    cJSON *fields = cJSON_CreateObject();
    cJSON *answer = NULL;
    cJSON *plans;
    enum cli_exit code;

    (void)cJSON_AddNumberToObject(fields, "olderThanMs", (double)age);
    (void)cJSON_AddBoolToObject(fields, "dryRun", cli_flag(cli, "dry-run"));
    (void)cJSON_AddStringToObject(fields, "cursor", cursor);
    cli_add_value(cli, "status", fields, "status");
    code = cli_call(cli, "plan.prune", fields, &answer);
    (void)snprintf(ret_cursor, 64, "%s", json_text(answer, "cursor", ""));
    plans = cJSON_GetObjectItemCaseSensitive(answer, "plans");
    while (plans != NULL && plans->child != NULL) {
        cJSON *p = cJSON_DetachItemFromArray(plans, 0);
        if (!cli->json) {
            print_plan(p);
        }
        (void)cJSON_AddItemToArray(all, p);
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_prune(struct cli *cli)
{
    const char *older = cli_value(cli, "older-than");
    const bool dry = cli_flag(cli, "dry-run");
    char cursor[64] = "";
    uint64_t age = 0;
    cJSON *all;
    enum cli_exit code = CLI_OK;

    if (older == NULL) {
        cli_error_hint("baton prune --dry-run --older-than 30d shows what would go",
                       "prune: --older-than is missing");
        return CLI_USAGE;
    }
    if (!cli_age(older, "--older-than", &age)) {
        return CLI_USAGE;
    }
    all = cJSON_CreateArray();
    do {
        char next[64];
        code = prune_page(cli, age, cursor, all, next);
        memcpy(cursor, next, sizeof cursor);
    } while (code == CLI_OK && cursor[0] != 0);
    if (code == CLI_OK && cli->json) {
        cli_print_json(all);
    } else if (code == CLI_OK) {
        const int n = cJSON_GetArraySize(all);
        cli_note("%d plan%s %s\n", n, n == 1 ? "" : "s", dry ? "would be deleted" : "deleted");
    }
    cJSON_Delete(all);
    return code;
}
