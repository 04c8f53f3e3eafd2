/* Requests to the daemon: the connection, one call, and a plan with all its steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/client/state.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/remote.h"
#include "supervisor/cli/common/text.h"

enum {
    NAMES_MAX = 256,
    NOT_WHOLE_NAMED = 10,
    NOT_WHOLE_BYTES = 1024,
    CALL_MS = 10000,
    HANGS_MS = 100
};

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

void cli_limit_call(struct cli *cli)
{
    bt_client_timeout(cli->client, deadline_left(cli->call_ms != 0 ? cli->call_ms : CALL_MS));
}

enum cli_exit cli_connect(struct cli *cli)
{
    struct bt_error err;
    char via[64];

    if (cli->client == NULL && cli_open(cli, &cli->client, &err) != BT_OK) {
        (void)cli_fail(&err);
        return err.code == BT_NOT_FOUND || err.code == BT_UNAUTHORIZED ? CLI_UNREACHABLE
                                                                       : cli_exit_of(err.code);
    }
    cli_limit_call(cli);
    (void)snprintf(via, sizeof via, "baton %s", cli->verb->name);
    bt_client_via(cli->client, via);
    return CLI_OK;
}

/* Results are data: a file gets the exact bytes. What a person decides on is made visible where it
 * is printed. */
static bool is_data(const char *type)
{
    return strcmp(type, "plan.result") == 0 || strcmp(type, "review.list") == 0 ||
           strcmp(type, "review.get") == 0 || strcmp(type, "journal.export") == 0;
}

/* What a list of a fleet does not have is said beside it. */
static void warn_of_missing(const struct cJSON *answer)
{
    const cJSON *missing = cJSON_GetObjectItemCaseSensitive(answer, "missingShards");
    const cJSON *one;
    char text[256] = "";
    size_t n = 0;

    cJSON_ArrayForEach(one, missing)
    {
        n += (size_t)snprintf(text + n, n < sizeof text ? sizeof text - n : 0, "%s%d",
                              n > 0 ? ", " : "", (int)one->valuedouble);
        n = n < sizeof text ? n : sizeof text - 1;
    }
    if (n > 0) {
        (void)fprintf(
            stderr,
            "baton: warning: shards that do not answer: %s; what they have is missing here\n",
            text);
    }
}

enum cli_exit cli_call(struct cli *cli, const char *type, struct cJSON *fields, struct cJSON **ret)
{
    return cli_call_unless(cli, type, fields, BT_OK, ret);
}

enum cli_exit cli_call_unless(struct cli *cli, const char *type, struct cJSON *fields,
                              enum bt_code unless, struct cJSON **ret)
{
    char *json = NULL;
    struct bt_error err;
    char *text = fields != NULL ? cjson_print(fields, false, &err) : NULL;
    enum cli_exit code = fields != NULL && text == NULL ? cli_fail(&err) : cli_connect(cli);

    *ret = NULL;
    if (code == CLI_OK) {
        const bool had_time = deadline_left(HANGS_MS) == HANGS_MS;
        enum bt_code called = bt_client_call(cli->client, type, text, &json, &err);
        code = CLI_OK;
        if ((called == BT_TIMEOUT || called == BT_UNAVAILABLE) && deadline_is_over() && !had_time) {
            code = deadline_report(); /* the request came when hardly any time was left */
        } else if (called != BT_OK && called != unless) {
            code = cli_rejected(cli, &err, json);
        } else if (called == BT_OK) {
            *ret = json_tree(json);
            if (!cli->json && !is_data(type)) {
                cli_scrub_tree(*ret);
            }
            if (*ret == NULL) {
                cli_error("the daemon's answer could not be read");
                code = CLI_INTERNAL;
            }
            warn_of_missing(*ret);
        }
    }
    cJSON_Delete(fields);
    cJSON_free(text);
    bt_free(json);
    return code;
}

static bool is_cut(const cJSON *view)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(view, "stepsTruncated"));
}

/* Appends the steps of `page` to those of `view`; returns their number. */
static int take_steps(cJSON *view, cJSON *page)
{
    cJSON *to = cJSON_GetObjectItemCaseSensitive(view, "steps");
    cJSON *from = cJSON_GetObjectItemCaseSensitive(page, "steps");
    int n = cJSON_GetArraySize(from);

    if (to == NULL && n > 0) {
        to = cJSON_AddArrayToObject(view, "steps"); /* the first page had room for none */
    }
    while (cJSON_GetArraySize(from) > 0) {
        (void)cJSON_AddItemToArray(to, cJSON_DetachItemFromArray(from, 0));
    }
    if (n > 0 && !is_cut(page)) {
        cJSON_DeleteItemFromObjectCaseSensitive(view, "stepsTruncated");
    }
    return n;
}

/* A request whose answer has steps, over as many pages as it takes. */
static enum cli_exit call_paged(struct cli *cli, const char *type, const char *plan_id, cJSON **ret)
{
    enum cli_exit code = cli_call(cli, type, cli_fields("planId", plan_id), ret);
    bool more = code == CLI_OK;

    while (more && is_cut(*ret)) {
        cJSON *fields = cli_fields("planId", plan_id);
        cJSON *page = NULL;
        int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(*ret, "steps"));
        (void)cJSON_AddNumberToObject(fields, "fromStep", n);
        code = cli_call(cli, type, fields, &page);
        more = code == CLI_OK && take_steps(*ret, page) > 0;
        if (more && cJSON_GetObjectItemCaseSensitive(page, "plan") != NULL) {
            (void)take_steps(cJSON_GetObjectItemCaseSensitive(*ret, "plan"),
                             cJSON_GetObjectItemCaseSensitive(page, "plan"));
        }
        cJSON_Delete(page);
    }
    if (code != CLI_OK) {
        cJSON_Delete(*ret);
        *ret = NULL;
    }
    return code;
}

enum cli_exit cli_plan_view(struct cli *cli, const char *plan_id, cJSON **ret)
{
    return call_paged(cli, "plan.get", plan_id, ret);
}

static bool has_dependencies(const cJSON *steps)
{
    const cJSON *step;

    cJSON_ArrayForEach(step, steps)
    {
        if (cJSON_GetObjectItemCaseSensitive(step, "dependsOn") != NULL) {
            return true;
        }
    }
    return false;
}

enum cli_exit cli_plan_chain(struct cli *cli, const cJSON *plan_view, bool *ret)
{
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(plan_view, "steps");
    cJSON *fields = cli_fields("planId", json_text(plan_view, "planId", ""));
    cJSON *answer = NULL;
    enum cli_exit code;

    *ret = false;
    (void)cJSON_AddTrueToObject(fields, "document");
    (void)cJSON_AddFalseToObject(fields, "steps");
    if (cJSON_GetArraySize(steps) < 2 || has_dependencies(steps)) {
        cJSON_Delete(fields);
        return CLI_OK;
    }
    code = cli_call(cli, "plan.get", fields, &answer);
    steps = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(answer, "document"),
                                             "steps");
    *ret = code == CLI_OK && cJSON_IsArray(steps) && !has_dependencies(steps);
    cJSON_Delete(answer);
    return code;
}

enum cli_exit cli_plan_result(struct cli *cli, const char *plan_id, cJSON **ret)
{
    cJSON *fields;

    if (cli->json) {
        return call_paged(cli, "plan.result", plan_id, ret);
    }
    fields = cli_fields("planId", plan_id);
    (void)cJSON_AddFalseToObject(fields, "steps");
    return cli_call(cli, "plan.result", fields, ret);
}

static void report_steps(const cJSON *result, const char *member, const char *member_total,
                         const char *what)
{
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(result, member);
    const double total = json_number(result, member_total);
    const int n = cJSON_GetArraySize(steps);
    char names[NOT_WHOLE_BYTES] = "";
    int named = 0;
    const cJSON *s;

    cJSON_ArrayForEach(s, steps)
    {
        const size_t used = strlen(names);
        const char *id = cJSON_IsString(s) ? s->valuestring : "";
        if (named == NOT_WHOLE_NAMED || used + strlen(id) + 3 > sizeof names) {
            break;
        }
        (void)snprintf(names + used, sizeof names - used, "%s%s", named > 0 ? ", " : "", id);
        named++;
    }
    if (n > 0) {
        const double more = (total > n ? total : n) - named;
        char rest[32] = "";
        if (more > 0) {
            (void)snprintf(rest, sizeof rest, " and %.0f more", more);
        }
        cli_error("%s: %s%s", what, names, rest);
    }
}

void cli_report_not_whole(const cJSON *result)
{
    report_steps(result, "truncatedSteps", "truncatedStepsTotal", "results are not whole");
    report_steps(result, "contextTruncatedSteps", "contextTruncatedStepsTotal",
                 "steps read only a part of the results before them");
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
