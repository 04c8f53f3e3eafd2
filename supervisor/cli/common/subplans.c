/* Recipes that steps name (`plan: {recipe: NAME}`): their documents take the place of the names,
 * because the daemon has no recipes. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/plan/flow/child.h"

struct inlining {
    char paths[CHILD_DEPTH_MAX][RECIPE_PATH_MAX]; /* of the recipes that are inside each other */
    int n;
    int depth; /* of the walk */
};

enum { WALK_MAX = 64 };

static bool walk(struct inlining *in, cJSON *node);

/* Members whose content is no part of a plan. */
static bool is_data(const char *name)
{
    return name != NULL && (strcmp(name, "parameters") == 0 || strcmp(name, "verify") == 0 ||
                            strcmp(name, "inputs") == 0);
}

static bool is_inside(const struct inlining *in, const char *path)
{
    for (int i = 0; i < in->n; i++) {
        if (strcmp(in->paths[i], path) == 0) {
            return true;
        }
    }
    return false;
}

/* plan: {recipe: NAME} becomes plan: {document: {...}}. Prints the error and returns false. */
static bool take_recipe(struct inlining *in, cJSON *plan, const char *name)
{
    char path[RECIPE_PATH_MAX];
    cJSON *document;
    bool ok;

    if (!recipes_find(name, path)) {
        return false;
    }
    if (is_inside(in, path) || in->n == CHILD_DEPTH_MAX) {
        cli_error("%s: the recipe runs itself, or recipes are more than %d deep: a plan inside "
                  "itself never ends",
                  path, (int)CHILD_DEPTH_MAX);
        return false;
    }
    document = cli_read_tree(path);
    if (document == NULL) {
        return false;
    }
    (void)snprintf(in->paths[in->n++], RECIPE_PATH_MAX, "%s", path);
    ok = walk(in, document);
    in->n--;
    cJSON_DeleteItemFromObjectCaseSensitive(plan, "recipe");
    (void)cJSON_AddItemToObject(plan, "document", document);
    return ok;
}

static bool visit(struct inlining *in, cJSON *child)
{
    cJSON *recipe = cJSON_GetObjectItemCaseSensitive(child, "recipe");

    if (child->string != NULL && strcmp(child->string, "plan") == 0 && cJSON_IsString(recipe) &&
        cJSON_GetObjectItemCaseSensitive(child, "document") == NULL) {
        char name[RECIPE_PATH_MAX];
        (void)snprintf(name, sizeof name, "%s", recipe->valuestring);
        return take_recipe(in, child, name);
    }
    return is_data(child->string) || walk(in, child);
}

static bool walk(struct inlining *in, cJSON *node)
{
    cJSON *child;
    bool ok = true;

    if (in->depth == WALK_MAX) {
        return true; /* deeper than the daemon reads a plan */
    }
    in->depth++;
    cJSON_ArrayForEach(child, node)
    {
        ok = ok && visit(in, child);
    }
    in->depth--;
    return ok;
}

bool cli_inline_recipes(struct cJSON *plan)
{
    static struct inlining in; /* 32 KiB; the command line has one thread */

    in = (struct inlining){.n = 0};
    return walk(&in, plan);
}
