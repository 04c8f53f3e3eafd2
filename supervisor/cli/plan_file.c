/* Plan files: YAML or JSON, and recipes, whose inputs are filled in before the daemon sees the
 * plan. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/cli.h"
#include "supervisor/config/yaml.h"
#include "supervisor/planner/recipe.h"

cJSON *cli_read_tree(const char *path)
{
    size_t len = 0;
    char *text = cli_read_file(path, LIMIT_CONTROL_BYTES, &len);
    cJSON *tree = NULL;
    struct bt_error err;

    if (text != NULL && yaml_read((struct str){text, len}, path, &tree, NULL, &err) != BT_OK) {
        cli_say("%s", err.msg);
        cJSON_Delete(tree);
        tree = NULL;
    }
    free(text);
    return tree;
}

cJSON *cli_read_value(const char *text, const char *what)
{
    cJSON *tree;

    if (strcmp(text, "-") == 0 || access(text, F_OK) == 0) {
        return cli_read_tree(text);
    }
    tree = cJSON_ParseWithOpts(text, NULL, true);
    if (tree == NULL) {
        cli_say("%s: neither a file nor JSON: '%.200s'", what, text);
    }
    return tree;
}

/* The file as JSON; cJSON_free it. NULL after saying what is wrong. */
static char *read_as_json(const char *path)
{
    cJSON *tree = cli_read_tree(path);
    char *json = tree != NULL ? cJSON_PrintUnformatted(tree) : NULL;

    cJSON_Delete(tree);
    return json;
}

/* Fills the recipe in; appends JSON. A plan without inputs is left as it is, unless inputs were
 * given. */
static enum bt_code fill(const char *json, const char *inputs, struct buf *out,
                         struct bt_error *err)
{
    struct buf doc;
    struct buf values;
    struct buf filled;
    struct bt_error plain;
    enum bt_code code;

    buf_init(&doc, json_doc_room(strlen(json)));
    buf_init(&values, json_doc_room(strlen(inputs)));
    buf_init(&filled, LIMIT_CONTROL_BYTES);
    if (json_to_doc(str_from(json), NULL, &doc, &plain) != BT_OK ||
        !recipe_is(doc_from_buf(&doc))) {
        code = BT_OK; /* what is wrong with a plan is for plan_read to say */
        if (inputs[0] != 0) {
            code = err_set(err, BT_INVALID, "the plan has no 'inputs' to fill in");
        }
        goto out;
    }
    code = json_to_doc(str_from(inputs[0] != 0 ? inputs : "{}"), NULL, &values, err);
    if (code != BT_OK) {
        (void)err_wrap(err, "--inputs");
        goto out;
    }
    code = recipe_fill(doc_from_buf(&doc), doc_from_buf(&values), &filled, err);
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&filled), false, out, err);
    }
out:
    buf_done(&filled);
    buf_done(&values);
    buf_done(&doc);
    return code;
}

char *cli_read_plan(const struct cli *cli, const char *path)
{
    const char *inputs = cli_value(cli, "inputs");
    char *json = read_as_json(path);
    struct bt_error err;
    struct buf out;

    buf_init(&out, LIMIT_CONTROL_BYTES);
    if (json != NULL && fill(json, inputs != NULL ? inputs : "", &out, &err) != BT_OK) {
        cli_say("%s: %s", path, err.msg);
        cJSON_free(json);
        json = NULL;
    } else if (json != NULL && out.len > 0) {
        cJSON_free(json);
        json = cJSON_malloc(out.len + 1);
        if (json == NULL) {
            cli_say("out of memory");
        } else {
            memcpy(json, buf_cstr(&out), out.len + 1);
        }
    }
    buf_done(&out);
    return json;
}
