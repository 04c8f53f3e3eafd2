/* plan diff: compares two plans, or two revisions of one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/arena.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/diff.h"
#include "supervisor/plan/diff.h"
#include "supervisor/plan/read.h"

enum { PROBLEMS_MAX = 200, ID_MAX = 64 };

/*
 * Appends the canonical document of a file, so that aliases and defaults make no difference. A plan
 * with problems is compared as it is.
 */
static enum bt_code canonical(struct doc plan, struct buf *out, struct bt_error *err)
{
    struct plan_defaults defaults = plan_defaults_builtin();
    struct problem *list = calloc(PROBLEMS_MAX, sizeof *list);
    struct problems problems = {.at = list, .cap = PROBLEMS_MAX};
    struct arena arena = {0};
    struct plan *read = NULL;
    enum bt_code code = list == NULL ? err_set(err, BT_NOMEM, "out of memory") : BT_OK;

    if (code == BT_OK) {
        code = plan_read(plan, &defaults, NULL, &arena, &read, &problems, out, err);
    }
    if (code == BT_INVALID) {
        buf_clear(out);
        doc_put_doc(out, plan);
        code = buf_check(out, err);
    }
    arena_done(&arena);
    free(list);
    return code;
}

static enum cli_exit from_file(const struct cli *cli, const char *path, struct buf *out)
{
    char *json = cli_read_plan(cli, path);
    struct buf doc;
    struct bt_error err;
    enum bt_code code = BT_OK;

    if (json == NULL) {
        return CLI_USAGE;
    }
    buf_init(&doc, LIMIT_CONTROL_BYTES);
    code = json_to_doc(str_from(json), NULL, &doc, &err);
    if (code == BT_OK) {
        code = canonical(doc_from_buf(&doc), out, &err);
    }
    if (code != BT_OK) {
        cli_error("%s: %s", path, err.msg);
    }
    buf_done(&doc);
    cJSON_free(json);
    return cli_exit_of(code);
}

/* PLAN_ID or PLAN_ID@REVISION */
static enum cli_exit from_daemon(struct cli *cli, const char *given, struct buf *out)
{
    char name[CLI_ID_MAX];
    char id[ID_MAX + 1];
    const char *at;
    cJSON *fields;
    cJSON *view = NULL;
    char *json = NULL;
    struct bt_error err;
    uint64_t revision = 0;
    enum cli_exit code;

    code = cli_plan_id(cli, given, name);
    if (code != CLI_OK) {
        return code;
    }
    at = strchr(name, '@');
    (void)snprintf(id, sizeof id, "%.*s", (int)(at != NULL ? at - name : ID_MAX), name);
    if (at != NULL && !cli_number(at + 1, "the revision", &revision)) {
        return CLI_USAGE;
    }
    fields = cli_fields("planId", id);
    (void)cJSON_AddTrueToObject(fields, "document");
    (void)cJSON_AddFalseToObject(fields, "steps");
    if (at != NULL) {
        (void)cJSON_AddNumberToObject(fields, "revision", (double)revision);
    }
    code = cli_call(cli, "plan.get", fields, &view);
    if (code == CLI_OK) {
        json = cjson_print(cJSON_GetObjectItemCaseSensitive(view, "document"), false, NULL);
        if (json == NULL || json_to_doc(str_from(json), NULL, out, &err) != BT_OK) {
            cli_error("%s has no document", name);
            code = CLI_NOT_FOUND;
        }
    }
    cJSON_free(json);
    cJSON_Delete(view);
    return code;
}

static enum cli_exit read_side(struct cli *cli, const char *name, struct buf *out)
{
    return strcmp(name, "-") == 0 || recipes_is_file(name) || access(name, F_OK) == 0
               ? from_file(cli, name, out)
               : from_daemon(cli, name, out);
}

/* False when out of memory. */
static bool print(const struct cli *cli, const struct plan_diff *diff)
{
    struct buf out;
    struct buf json;
    bool ok;

    buf_init(&out, LIMIT_STEP_BYTES);
    buf_init(&json, 8 * (size_t)LIMIT_STEP_BYTES);
    if (cli->json) {
        plan_diff_doc(diff, &out);
        ok = doc_to_json(doc_from_buf(&out), false, &json, NULL) == BT_OK;
        ok = ok && cli_print_json_text(buf_cstr(&json));
    } else {
        plan_diff_text(diff, &out);
        ok = out.bad == BT_OK;
        cli_print_safe(buf_cstr(&out));
    }
    buf_done(&out);
    buf_done(&json);
    return ok;
}

enum cli_exit cli_plan_diff(struct cli *cli, const char *a, const char *b)
{
    struct arena arena = {0};
    struct plan_diff diff = {0};
    struct buf before;
    struct buf after;
    struct bt_error err;
    enum cli_exit code;

    buf_init(&before, LIMIT_CONTROL_BYTES);
    buf_init(&after, LIMIT_CONTROL_BYTES);
    code = read_side(cli, a, &before);
    if (code == CLI_OK) {
        code = read_side(cli, b, &after);
    }
    if (code == CLI_OK &&
        plan_diff(doc_from_buf(&before), doc_from_buf(&after), &arena, &diff, &err) != BT_OK) {
        code = cli_fail(&err);
    }
    if (code == CLI_OK && !print(cli, &diff)) {
        cli_error("out of memory");
        code = CLI_INTERNAL;
    }
    if (code == CLI_OK && diff.left_out > 0) {
        cli_note("%u more differences\n", diff.left_out);
    }
    arena_done(&arena);
    buf_done(&before);
    buf_done(&after);
    return code;
}
