/* recipes: lists what can be run by name, and checks recipes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "protocol/base/arena.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"
#include "supervisor/plan/recipe.h"

enum { PROBLEMS_MAX = 200, NAME_MAX_LEN = 128 };

/*
 * Appends a recipe file as a document to the initialised *out. *ret_agents (may be NULL) gets the
 * agents that it names; free with cJSON_Delete. Prints the error and returns false.
 */
static bool read_document(const char *path, struct buf *out, cJSON **ret_agents)
{
    cJSON *tree = cli_read_tree(path);
    struct bt_error err;
    char *json = tree != NULL ? cjson_print(tree, false, &err) : NULL;
    bool ok = json != NULL && json_to_doc(str_from(json), NULL, out, &err) == BT_OK;

    if (tree != NULL && !ok) {
        cli_error("%s: %s", path, err.msg);
    }
    if (ret_agents != NULL) {
        *ret_agents = recipe_agents(tree);
    }
    cJSON_free(json);
    cJSON_Delete(tree);
    return ok;
}

/* Whether `recipes check` rejects it, with the reason in err. */
static bool is_broken(struct doc doc, struct bt_error *err)
{
    struct problem *list = calloc(PROBLEMS_MAX, sizeof *list);
    struct problems problems = {.at = list, .cap = PROBLEMS_MAX};
    bool broken = list != NULL && recipe_check(doc, NULL, &problems, err) == BT_INVALID;

    free(list);
    return broken;
}

static void add_text(cJSON *object, const char *name, struct str text)
{
    char line[2048];

    if (text.len > 0) {
        (void)snprintf(line, sizeof line, "%.*s", STR_ARG(text));
        cli_one_line(line, sizeof line, line);
        (void)cJSON_AddStringToObject(object, name, line);
    }
}

/* "report" of "/etc/report.yaml" */
static void name_of_file(const char *path, char ret[NAME_MAX_LEN])
{
    const char *slash = strrchr(path, '/');

    (void)snprintf(ret, NAME_MAX_LEN, "%s", slash != NULL ? slash + 1 : path);
    for (char *dot = strrchr(ret, '.'); dot != NULL; dot = NULL) {
        *dot = 0;
    }
}

static cJSON *describe_input(const struct recipe_input *in)
{
    cJSON *o = cJSON_CreateObject();
    struct buf json;

    add_text(o, "name", in->name);
    add_text(o, "type", in->type);
    (void)cJSON_AddBoolToObject(o, "required", in->required);
    add_text(o, "description", in->description);
    buf_init(&json, LIMIT_CONTROL_BYTES);
    if (in->default_value.ptr != NULL &&
        doc_to_json(in->default_value, false, &json, NULL) == BT_OK) {
        (void)cJSON_AddItemToObject(o, "default", cJSON_Parse(buf_cstr(&json)));
    }
    buf_done(&json);
    return o;
}

static cJSON *describe(const char *path, const struct recipe_about *about, struct doc doc,
                       cJSON *agents)
{
    cJSON *o = cJSON_CreateObject();
    struct bt_error err;
    char name[NAME_MAX_LEN];

    name_of_file(path, name);
    add_text(o, "name", about->name.len > 0 ? about->name : str_from(name));
    add_text(o, "title", about->title);
    add_text(o, "description", about->description);
    (void)cJSON_AddStringToObject(o, "path", path);
    (void)cJSON_AddNumberToObject(o, "steps", about->n_steps);
    (void)cJSON_AddItemToObject(o, "agents", agents);
    if (is_broken(doc, &err)) {
        add_text(o, "broken", str_from(err.msg));
    }
    (void)cJSON_AddItemToObject(o, "inputs", cJSON_CreateArray());
    for (uint32_t i = 0; i < about->n_inputs; i++) {
        (void)cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(o, "inputs"),
                                   describe_input(&about->inputs[i]));
    }
    return o;
}

/*
 * Adds the description of the file to the list; a plan without inputs is skipped. False when the
 * file cannot be read, or when it was named and is no recipe.
 */
static bool add_recipe(cJSON *list, const char *path, bool asked_for)
{
    struct recipe_about about;
    struct arena arena = {0};
    cJSON *agents = NULL;
    struct buf doc;
    struct bt_error err;
    bool ok;

    buf_init(&doc, LIMIT_CONTROL_BYTES);
    ok = read_document(path, &doc, &agents);
    if (ok && !recipe_is(doc_from_buf(&doc))) {
        ok = !asked_for;
        if (asked_for) {
            cli_error("%s: it is no recipe: it has no 'inputs'", path);
        }
    } else if (ok && recipe_describe(doc_from_buf(&doc), &arena, &about, &err) != BT_OK) {
        cli_error("%s: %s", path, err.msg);
        ok = false;
    } else if (ok) {
        (void)cJSON_AddItemToArray(list, describe(path, &about, doc_from_buf(&doc), agents));
        agents = NULL;
    }
    cJSON_Delete(agents);
    arena_done(&arena);
    buf_done(&doc);
    return ok;
}

/* A folder or a file. */
static bool add_place(cJSON *list, const char *path, bool must_exist)
{
    struct stat st;
    char **files;
    int n = 0;
    bool ok = true;

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return (!must_exist && !recipes_is_file(path)) || add_recipe(list, path, true);
    }
    files = recipes_list(path, &n);
    for (int i = 0; files != NULL && i < n; i++) {
        ok = add_recipe(list, files[i], false) && ok;
    }
    recipes_free_list(files, n);
    return ok;
}

static void print_recipe(const cJSON *r)
{
    static const char *const heads[] = {"", "input", "type", "", "description", NULL};
    const char *about = json_text(r, "title", json_text(r, "description", ""));
    char *agents = recipe_agents_text(cJSON_GetObjectItemCaseSensitive(r, "agents"));
    const cJSON *in;
    struct table *t;

    (void)printf("%s%s%s  (%.0f step%s, %s)\n", json_text(r, "name", ""), about[0] != 0 ? ": " : "",
                 about, json_number(r, "steps"), json_number(r, "steps") == 1 ? "" : "s",
                 json_text(r, "path", ""));
    if (json_text(r, "broken", NULL) != NULL) {
        (void)printf("    broken: %s; see: baton recipes check %s\n", json_text(r, "broken", ""),
                     json_text(r, "path", ""));
    }
    if (agents != NULL) {
        cli_scrub(agents);
        (void)printf("    needs the agents %s\n", agents);
    }
    free(agents);
    t = table_new(heads);
    cJSON_ArrayForEach(in, cJSON_GetObjectItemCaseSensitive(r, "inputs"))
    {
        const cJSON *default_value = cJSON_GetObjectItemCaseSensitive(in, "default");
        char *text = default_value != NULL ? cjson_print(default_value, false, NULL) : NULL;
        table_cell(t, "%s", "   ");
        table_cell(t, "%s", json_text(in, "name", ""));
        table_cell(t, "%s", json_text(in, "type", ""));
        table_cell(t, text != NULL ? "else %s" : "%s",
                   text != NULL                                                     ? text
                   : cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(in, "required")) ? "required"
                                                                                    : "");
        table_cell(t, "%s", json_text(in, "description", ""));
        cJSON_free(text);
    }
    table_show(t);
}

static enum cli_exit list_recipes(struct cli *cli)
{
    char dirs[RECIPE_DIRS_MAX][RECIPE_PATH_MAX];
    cJSON *list = cJSON_CreateArray();
    const char *dir;
    const cJSON *r;
    bool ok = true;
    int n = cli->argc > 0 ? 0 : recipes_dirs(dirs);

    for (int i = 0; i < cli->argc; i++) {
        ok = add_place(list, cli->argv[i], true) && ok;
    }
    for (int i = 0; (dir = cli_nth_value(cli, "dir", i)) != NULL; i++) {
        ok = add_place(list, dir, true) && ok;
    }
    for (int i = 0; i < n; i++) {
        ok = add_place(list, dirs[i], false) && ok;
    }
    if (cli->json) {
        cli_print_json(list);
    } else {
        cJSON_ArrayForEach(r, list)
        {
            print_recipe(r);
        }
    }
    if (cJSON_GetArraySize(list) == 0 && ok && !cli->json) {
        cli_note("no recipes%s%s\n", n > 0 ? "; they are looked for in " : "",
                 n > 0 ? dirs[0] : "");
    }
    cJSON_Delete(list);
    return ok ? CLI_OK : CLI_USAGE;
}

static enum cli_exit check_recipe(struct cli *cli, const char *name)
{
    struct problem *list = calloc(PROBLEMS_MAX, sizeof *list);
    struct problems problems = {.at = list, .cap = PROBLEMS_MAX};
    char path[RECIPE_PATH_MAX];
    struct buf doc;
    struct bt_error err;
    enum bt_code code = BT_INVALID;

    buf_init(&doc, LIMIT_CONTROL_BYTES);
    if (list == NULL) {
        cli_error("out of memory");
        return CLI_INTERNAL;
    }
    if (!recipes_find(name, path) || !read_document(path, &doc, NULL)) {
        goto out;
    }
    if (!recipe_is(doc_from_buf(&doc))) {
        cli_error("%s: it is no recipe: it has no 'inputs'; for a plan: baton plan check %s", path,
                  path);
        goto out;
    }
    code = recipe_check(doc_from_buf(&doc), NULL, &problems, &err);
    cli_print_found(cli, &problems, code == BT_OK);
    if (code != BT_OK) {
        if (problems.errors > 0) { /* they were printed */
            cli_error("%s: %u problem%s", path, problems.errors, problems.errors == 1 ? "" : "s");
        } else {
            cli_error("%s: %s", path, err.msg);
        }
    } else {
        cli_note("valid as far as it can be checked without its inputs and without agents\n");
    }
out:
    buf_done(&doc);
    free(list);
    return code == BT_OK ? CLI_OK : cli_exit_of(code);
}

enum cli_exit verb_recipes(struct cli *cli)
{
    if (cli->argc > 0 && strcmp(cli->argv[0], "check") == 0) {
        if (cli->argc != 2) {
            cli_error("usage: baton recipes check FILE");
            return CLI_USAGE;
        }
        return check_recipe(cli, cli->argv[1]);
    }
    return list_recipes(cli);
}
