/* reload: the daemon reads its configuration again. */
#include "supervisor/cli/verbs/reload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/verbs/verbs.h"

/* supervisor.reload with the file of --config. The caller frees *ret. */
static enum cli_exit ask(struct cli *cli, bool check, cJSON **ret)
{
    const char *file = cli_value(cli, "config");
    cJSON *fields = cJSON_CreateObject();
    char *path = file != NULL ? realpath(file, NULL) : NULL; /* the daemon is somewhere else */

    *ret = NULL;
    if (file != NULL && path == NULL) {
        cli_error("%s: %s", file, strerror(errno));
        cJSON_Delete(fields);
        return CLI_USAGE;
    }
    if (path != NULL) {
        (void)cJSON_AddStringToObject(fields, "file", path);
    }
    if (check) {
        (void)cJSON_AddTrueToObject(fields, "check");
    }
    free(path);
    return cli_call(cli, "supervisor.reload", fields, ret);
}

/* "policy.maxRetries: 2, in the file 5" */
static void describe(const cJSON *change, char *ret, size_t cap)
{
    const char *running = json_text(change, "running", "");
    const char *file = json_text(change, "file", "");
    const char *key = json_text(change, "key", "");

    if (running[0] != 0) {
        (void)snprintf(ret, cap, "%s: %s, in the file %s", key, running, file);
    } else {
        (void)snprintf(ret, cap, "%s: %s", key, file[0] != 0 ? file : "differs");
    }
}

enum cli_exit cli_compare_config(struct cli *cli)
{
    cJSON *answer = NULL;
    enum cli_exit code = ask(cli, true, &answer);
    const cJSON *changes = cJSON_GetObjectItemCaseSensitive(answer, "changes");
    const cJSON *c;
    char text[2600];

    if (code == CLI_OK && cJSON_GetArraySize(changes) > 0) {
        cli_error("the running daemon has another configuration:");
        cJSON_ArrayForEach(c, changes)
        {
            describe(c, text, sizeof text);
            cli_note("  %s\n", text);
        }
        cli_note("baton reload --config FILE applies what needs no restart; for the rest: baton "
                 "down, then baton up --config FILE\n");
        code = CLI_INTERNAL;
    }
    cJSON_Delete(answer);
    return code;
}

/* Whether the daemon put all schedules that the file declares. *ret: those that it refused, which
 * the caller deletes; NULL = none, or after the error. */
static enum cli_exit look_at_schedules(struct cli *cli, cJSON **ret)
{
    cJSON *answer = NULL;
    const enum cli_exit code = cli_call(cli, "schedule.list", cJSON_CreateObject(), &answer);

    *ret = cJSON_DetachItemFromObjectCaseSensitive(answer, "refused");
    cJSON_Delete(answer);
    return code == CLI_OK && cJSON_GetArraySize(*ret) > 0 ? CLI_INTERNAL : code;
}

/* The answer of the daemon, which knows what it applied, and what came of its schedules. */
static enum cli_exit show_json(struct cli *cli, cJSON *answer, bool check)
{
    cJSON *refused = NULL;
    const enum cli_exit code = check ? CLI_OK : look_at_schedules(cli, &refused);

    if (code != CLI_OK && refused == NULL) {
        return code;
    }
    if (refused != NULL) {
        cJSON_DeleteItemFromObjectCaseSensitive(answer, "ok");
        (void)cJSON_AddBoolToObject(answer, "ok", code == CLI_OK);
        (void)cJSON_AddItemToObject(answer, "refused", refused);
    }
    cli_print_json(answer);
    return code;
}

static enum cli_exit show_refused(struct cli *cli)
{
    cJSON *refused = NULL;
    const enum cli_exit code = look_at_schedules(cli, &refused);
    const cJSON *r;

    cJSON_ArrayForEach(r, refused)
    {
        (void)printf("%-8s schedules.%s: %s\n", "refused", json_text(r, "name", ""),
                     json_text(r, "error", ""));
    }
    cJSON_Delete(refused);
    return code;
}

enum cli_exit verb_reload(struct cli *cli)
{
    const bool check = cli_flag(cli, "check");
    cJSON *answer = NULL;
    enum cli_exit code = ask(cli, check, &answer);
    const cJSON *c;
    char text[2600];
    int fixed = 0;

    if (code != CLI_OK) {
        return code;
    }
    if (cli->json) {
        code = show_json(cli, answer, check);
        cJSON_Delete(answer);
        return code;
    }
    cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(answer, "changes"))
    {
        const bool live = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(c, "live"));
        describe(c, text, sizeof text);
        (void)printf("%-8s %s\n", !live ? "restart" : check ? "differs" : "applied", text);
        fixed += live ? 0 : 1;
    }
    if (cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(answer, "changes")) == 0) {
        (void)printf("nothing differs\n");
    }
    if (fixed > 0) {
        cli_note("what is marked restart needs one: baton down, then baton up; a service: "
                 "systemctl restart baton\n");
    }
    cJSON_Delete(answer);
    return check ? CLI_OK : show_refused(cli);
}
