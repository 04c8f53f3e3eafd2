/* Plan files in YAML or JSON. Recipes are filled in before the daemon gets the plan. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/config/yaml.h"
#include "supervisor/plan/recipe.h"

enum { NAME_BYTES_MAX = 256 };

char *cli_read_file(const char *path, size_t max, size_t *ret_len)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct buf bytes;
    ssize_t n = 1;

    if (fd < 0) {
        cli_error("%s: %s", path, strerror(errno));
        return NULL;
    }
    buf_init(&bytes, max);
    while (n > 0 && bytes.bad == BT_OK) {
        char part[65536];
        n = read(fd, part, sizeof part);
        if (n > 0) {
            buf_add(&bytes, part, (size_t)n);
        }
    }
    if (n < 0 || bytes.bad != BT_OK) {
        if (n < 0) {
            cli_error("%s: %s", path, strerror(errno));
        } else {
            cli_error(
                "%s: has more than %zu bytes; keep large data in a file of its own, which a step "
                "reads (files.read, artifact: true)",
                path, max);
        }
    }
    if (fd != STDIN_FILENO) {
        (void)close(fd);
    }
    if (n < 0 || bytes.bad != BT_OK) {
        buf_done(&bytes);
        return NULL;
    }
    (void)buf_cstr(&bytes); /* adds the terminating zero, also to an empty file */
    return (char *)buf_take(&bytes, ret_len);
}

cJSON *cli_read_tree(const char *path)
{
    size_t len = 0;
    char *text = cli_read_file(path, LIMIT_CONTROL_BYTES, &len);
    cJSON *tree = NULL;
    struct bt_error err;

    if (text != NULL && yaml_read((struct str){text, len}, path, &tree, NULL, &err) != BT_OK) {
        cli_error("%s", err.msg);
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
    tree = json_tree(text);
    if (tree == NULL) {
        cli_error("%s: neither a file nor JSON: '%.200s'", what, text);
    }
    return tree;
}

/* Whether the list contains the text. */
static bool holds(const cJSON *list, const char *text)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, list)
    {
        if (cJSON_IsString(v) && strcmp(v->valuestring, text) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the schema accepts the text as a string, even if it is valid JSON. */
static bool takes_text(const cJSON *schema, const char *text)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(schema, "type");

    return strcmp(json_text(schema, "type", ""), "string") == 0 ||
           (cJSON_IsArray(type) && holds(type, "string") && strcmp(text, "null") != 0) ||
           holds(cJSON_GetObjectItemCaseSensitive(schema, "enum"), text);
}

/* The value of NAME=VALUE, with the type that the schema says. Prints the error and returns NULL.
 */
static cJSON *typed_value(const char *option, const cJSON *of, const char *name, const char *text)
{
    const cJSON *schema =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(of, "properties"), name);
    const char *type = json_text(schema, "type", "");
    cJSON *value = takes_text(schema, text) ? cJSON_CreateString(text) : json_tree(text);

    if (value == NULL && type[0] != 0) {
        cli_error("--%s %s: expected a value of type %s as JSON, got '%.200s'", option, name, type,
                  text);
        return NULL;
    }
    return value != NULL ? value : cJSON_CreateString(text);
}

bool cli_read_pairs(const struct cli *cli, const char *option, const cJSON *schema, cJSON *io)
{
    const char *pair;

    for (int i = 0; (pair = cli_nth_value(cli, option, i)) != NULL; i++) {
        char name[NAME_BYTES_MAX];
        size_t n = strcspn(pair, "=");
        cJSON *value = NULL;
        if (pair[n] == 0 || n == 0 || n >= sizeof name) {
            cli_error("--%s: expected NAME=VALUE, got '%.200s'", option, pair);
            return false;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)n, pair);
        value = typed_value(option, schema, name, pair + n + 1);
        if (value == NULL) {
            return false;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(io, name);
        (void)cJSON_AddItemToObject(io, name, value);
    }
    return true;
}

/*
 * The values of --inputs and --input as JSON, to be freed with cJSON_free; "" without any. Prints
 * the error and returns NULL.
 */
static char *read_inputs(const struct cli *cli, const cJSON *recipe)
{
    const char *given = cli_value(cli, "inputs");
    cJSON *values;
    char *json = NULL;
    struct bt_error err;
    bool ok = true;

    if (cli_value(cli, "input") == NULL) {
        return strdup(given != NULL ? given : "");
    }
    values = given != NULL ? json_tree(given) : cJSON_CreateObject();
    if (!cJSON_IsObject(values)) {
        cli_error("--inputs: expected a JSON object, got '%.200s'", given != NULL ? given : "");
        ok = false;
    }
    ok = ok &&
         cli_read_pairs(cli, "input", cJSON_GetObjectItemCaseSensitive(recipe, "inputs"), values);
    if (ok) {
        json = cjson_print(values, false, &err);
        if (json == NULL) {
            cli_error("--input: %s", err.msg);
        }
    }
    cJSON_Delete(values);
    return json;
}

/* Appends the filled-in recipe as JSON. A plan without inputs stays as it is; inputs for it are an
 * error. */
static enum bt_code fill(const char *json, const char *inputs, struct buf *out,
                         struct bt_error *err)
{
    struct buf doc;
    struct buf values;
    struct buf filled;
    struct bt_error plain;
    enum bt_code code;

    buf_init(&doc, json_doc_capacity(strlen(json)));
    buf_init(&values, json_doc_capacity(strlen(inputs)));
    buf_init(&filled, LIMIT_CONTROL_BYTES);
    if (json_to_doc(str_from(json), NULL, &doc, &plain) != BT_OK ||
        !recipe_is(doc_from_buf(&doc))) {
        code = BT_OK; /* plan_read reports the problems of a plan */
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

/* A copy of out that cJSON_free takes. */
static char *take_text(struct buf *out)
{
    char *text = cJSON_malloc(out->len + 1);

    if (text == NULL) {
        cli_error("out of memory");
    } else {
        memcpy(text, buf_cstr(out), out->len + 1);
    }
    return text;
}

/* NULL after an error; an empty file is one. */
static cJSON *read_tree_of_plan(const char *path)
{
    cJSON *tree = cli_read_tree(path);

    if (cJSON_IsNull(tree)) {
        cli_error("%s: has nothing in it; a plan has at least a list of steps, as in "
                  "steps: [{agentId: AGENT, task: WHAT TO DO}]",
                  path);
        cJSON_Delete(tree);
        tree = NULL;
    }
    if (tree != NULL && !cli_inline_recipes(tree)) {
        cJSON_Delete(tree);
        tree = NULL;
    }
    return tree;
}

char *cli_read_plan(const struct cli *cli, const char *path)
{
    cJSON *tree = read_tree_of_plan(path);
    char *inputs = tree != NULL ? read_inputs(cli, tree) : NULL;
    struct bt_error err;
    char *json = inputs != NULL ? cjson_print(tree, false, &err) : NULL;
    struct buf out;

    buf_init(&out, LIMIT_CONTROL_BYTES);
    if (inputs != NULL && json == NULL) {
        cli_error("%s: %s", path, err.msg);
    } else if (json != NULL && fill(json, inputs, &out, &err) != BT_OK) {
        cli_error("%s: %s", path, err.msg);
        cJSON_free(json);
        json = NULL;
    } else if (json != NULL && out.len > 0) {
        cJSON_free(json);
        json = take_text(&out);
    }
    buf_done(&out);
    cJSON_Delete(tree);
    free(inputs);
    return json;
}
