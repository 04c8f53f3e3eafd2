/* Requests to the daemon: the connection, one call, and a plan with all its steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/client/state.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/text.h"

enum { NAMES_MAX = 256 };

const char *cli_state_dir(const struct cli *cli)
{
    static struct buf path;
    struct bt_error err;

    if (path.len == 0) {
        buf_init(&path, 4096);
        if (state_dir_find(cli_value(cli, "state"), &path, &err) != BT_OK) {
            cli_error("%s", err.msg);
            return NULL;
        }
    }
    return buf_cstr(&path);
}

enum cli_exit cli_connect(struct cli *cli)
{
    struct bt_error err;

    if (cli->client == NULL &&
        bt_client_open(cli_value(cli, "state"), &cli->client, &err) != BT_OK) {
        (void)cli_fail(&err);
        return err.code == BT_NOT_FOUND || err.code == BT_UNAUTHORIZED ? CLI_UNREACHABLE
                                                                       : cli_exit_of(err.code);
    }
    return CLI_OK;
}

enum cli_exit cli_call(struct cli *cli, const char *type, struct cJSON *fields, struct cJSON **ret)
{
    char *text = fields != NULL ? cJSON_PrintUnformatted(fields) : NULL;
    char *json = NULL;
    struct bt_error err;
    enum cli_exit code = cli_connect(cli);

    *ret = NULL;
    if (code == CLI_OK) {
        enum bt_code called = bt_client_call(cli->client, type, text, &json, &err);
        code = CLI_OK;
        if (called != BT_OK) {
            code = cli_rejected(cli, &err, json);
        } else {
            *ret = cJSON_Parse(json);
            if (!cli->json && strcmp(type, "plan.result") !=
                                  0) { /* results are data: a file gets the exact bytes */
                cli_scrub_tree(*ret);
            }
            if (*ret == NULL) {
                cli_error("the daemon's answer could not be read");
                code = CLI_INTERNAL;
            }
        }
    }
    cJSON_Delete(fields);
    cJSON_free(text);
    bt_free(json);
    return code;
}

/* Appends the steps of `page` to those of `view`; returns their number. */
static int take_steps(cJSON *view, cJSON *page)
{
    cJSON *to = cJSON_GetObjectItemCaseSensitive(view, "steps");
    cJSON *from = cJSON_GetObjectItemCaseSensitive(page, "steps");
    int n = cJSON_GetArraySize(from);

    while (cJSON_GetArraySize(from) > 0) {
        (void)cJSON_AddItemToArray(to, cJSON_DetachItemFromArray(from, 0));
    }
    return n;
}

enum cli_exit cli_plan_view(struct cli *cli, const char *plan_id, cJSON **ret)
{
    enum cli_exit code = cli_call(cli, "plan.get", cli_fields("planId", plan_id), ret);
    bool more = code == CLI_OK;

    while (more && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(*ret, "stepsTruncated"))) {
        cJSON *fields = cli_fields("planId", plan_id);
        cJSON *page = NULL;
        int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(*ret, "steps"));
        (void)cJSON_AddNumberToObject(fields, "fromStep", n);
        code = cli_call(cli, "plan.get", fields, &page);
        more = code == CLI_OK && take_steps(*ret, page) > 0;
        if (more && !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(page, "stepsTruncated"))) {
            cJSON_DeleteItemFromObjectCaseSensitive(*ret, "stepsTruncated");
        }
        cJSON_Delete(page);
    }
    if (code != CLI_OK) {
        cJSON_Delete(*ret);
        *ret = NULL;
    }
    return code;
}

/* 0 when the text is no number. */
static int number(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && n < 6 && strspn(text, "0123456789") == n ? (int)strtol(text, NULL, 10) : 0;
}

int cli_step_index(const cJSON *plan_view, const char *step)
{
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(plan_view, "steps");
    const char *names[NAMES_MAX + 1];
    const char *near;
    const cJSON *s;
    int found = -1;
    int i = 0;
    int n = 0;

    cJSON_ArrayForEach(s, steps)
    {
        const char *id = json_text(s, "stepId", "");
        bool gone = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(s, "superseded"));
        if (strcmp(id, step) == 0 && (found < 0 || !gone)) {
            found = i;
        }
        if (n < NAMES_MAX && !gone) {
            names[n++] = id;
        }
        i++;
    }
    names[n] = NULL;
    if (found < 0 && number(step) >= 1 && number(step) <= i) {
        found = number(step) - 1;
    }
    if (found < 0) {
        near = cli_did_you_mean(step, names);
        cli_error("plan %s has no step '%s'%s%s%s; it has %d", json_text(plan_view, "planId", ""),
                  step, near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                  near != NULL ? "'?" : "", i);
    }
    return found;
}
