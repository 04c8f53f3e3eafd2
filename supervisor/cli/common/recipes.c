#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/common/copy.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"

enum { FILES_MAX = 1000, AGENTS_BYTES_MAX = 65536 };

static const char *const endings[] = {".yaml", ".yml", ".json"};

bool recipes_examples_dir(char ret[RECIPE_PATH_MAX])
{
    char self[RECIPE_PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

    self[len > 0 ? len : 0] = 0;
    for (int up = 0; up < 2; up++) { /* <prefix>/bin/baton */
        char *slash = strrchr(self, '/');
        if (slash != NULL) {
            *slash = 0;
        }
    }
    (void)snprintf(ret, RECIPE_PATH_MAX, "%.3800s/%s/examples", self, BATON_DATA_DIR);
    return access(ret, R_OK) == 0;
}

static bool has_file(const char *dir, const char *name)
{
    char path[RECIPE_PATH_MAX + 64];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool recipes_is_example(const char *dir)
{
    return has_file(dir, "baton.yaml") && has_file(dir, "plan.yaml");
}

bool recipes_examples(const char *root, struct copy_list *ret)
{
    char path[RECIPE_PATH_MAX + 256];
    size_t kept = 0;

    if (!copy_list_read(root, false, ret)) {
        return false;
    }
    for (size_t i = 0; i < ret->n; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", root, ret->at[i].path);
        if (ret->at[i].is_dir && recipes_is_example(path)) {
            const struct copy_entry swap = ret->at[kept];
            ret->at[kept++] = ret->at[i];
            ret->at[i] = swap;
        }
    }
    for (size_t i = kept; i < ret->n; i++) {
        free(ret->at[i].path);
    }
    ret->n = kept;
    return true;
}

int recipes_dirs(char ret[RECIPE_DIRS_MAX][RECIPE_PATH_MAX])
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char examples[RECIPE_PATH_MAX];
    int n = 0;

    if (xdg != NULL && xdg[0] == '/') {
        (void)snprintf(ret[n++], RECIPE_PATH_MAX, "%s/baton/recipes", xdg);
    } else if (home != NULL && home[0] == '/') {
        (void)snprintf(ret[n++], RECIPE_PATH_MAX, "%s/.config/baton/recipes", home);
    }
    if (recipes_examples_dir(examples)) {
        (void)snprintf(ret[n++], RECIPE_PATH_MAX, "%.3800s/recipes", examples);
        (void)snprintf(ret[n++], RECIPE_PATH_MAX, "%.3800s", examples);
    }
    return n;
}

bool recipes_is_file(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t end = strlen(endings[i]);
        if (n > end && strcmp(name + n - end, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the recipe in the file has that name. */
static bool is_called(const char *path, const char *name)
{
    cJSON *tree = cli_read_tree(path);
    bool yes =
        strcmp(json_text(cJSON_GetObjectItemCaseSensitive(tree, "recipe"), "name", ""), name) == 0;

    cJSON_Delete(tree);
    return yes;
}

static bool find_called(const char *dir, const char *name, char ret_path[RECIPE_PATH_MAX])
{
    int n = 0;
    char **files = recipes_list(dir, &n);
    bool found = false;

    for (int i = 0; files != NULL && i < n && !found; i++) {
        found = is_called(files[i], name);
        if (found) {
            (void)snprintf(ret_path, RECIPE_PATH_MAX, "%s", files[i]);
        }
    }
    recipes_free_list(files, n);
    return found;
}

bool recipes_find(const char *name, char ret_path[RECIPE_PATH_MAX])
{
    char dirs[RECIPE_DIRS_MAX][RECIPE_PATH_MAX];
    int n = recipes_dirs(dirs);

    (void)snprintf(ret_path, RECIPE_PATH_MAX, "%s", name);
    if (strcmp(name, "-") == 0 || strchr(name, '/') != NULL || recipes_is_file(name) ||
        access(name, F_OK) == 0) {
        return true; /* the function that reads the file reports its errors */
    }
    for (int i = 0; i < n; i++) {
        for (size_t e = 0; e < sizeof endings / sizeof endings[0]; e++) {
            (void)snprintf(ret_path, RECIPE_PATH_MAX, "%.3000s/%.500s%s", dirs[i], name,
                           endings[e]);
            if (access(ret_path, R_OK) == 0) {
                return true;
            }
        }
    }
    for (int i = 0; i < n; i++) {
        if (find_called(dirs[i], name, ret_path)) {
            return true;
        }
    }
    cli_error_hint("see: baton recipes", "there is no file and no recipe '%s'", name);
    return false;
}

char *cli_read_recipe(const struct cli *cli, const char *name)
{
    char path[RECIPE_PATH_MAX];

    return recipes_find(name, path) ? cli_read_plan(cli, path) : NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **recipes_list(const char *dir, int *ret_n)
{
    DIR *d = opendir(dir);
    char **list = d != NULL ? calloc(FILES_MAX, sizeof *list) : NULL;
    const struct dirent *e;
    int n = 0;

    while (list != NULL && n < FILES_MAX && (e = readdir(d)) != NULL) {
        char path[RECIPE_PATH_MAX];
        if (e->d_name[0] == '.' || !recipes_is_file(e->d_name)) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%.3800s/%s", dir, e->d_name);
        list[n] = strdup(path);
        if (list[n] == NULL) {
            break;
        }
        n++;
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    if (list != NULL) {
        qsort(list, (size_t)n, sizeof *list, by_name);
    }
    *ret_n = n;
    return list;
}

void recipes_free_list(char **list, int n)
{
    for (int i = 0; list != NULL && i < n; i++) {
        free(list[i]);
    }
    free(list);
}

cJSON *recipe_agents(const cJSON *plan)
{
    cJSON *list = cJSON_CreateArray();
    const cJSON *s;
    const cJSON *known;

    cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(plan, "steps"))
    {
        const char *agent = json_text(s, "agentId", "");
        bool is_new = agent[0] != 0 && strstr(agent, "{{") == NULL;
        cJSON_ArrayForEach(known, list)
        {
            is_new = is_new && strcmp(known->valuestring, agent) != 0;
        }
        if (is_new) {
            (void)cJSON_AddItemToArray(list, cJSON_CreateString(agent));
        }
    }
    return list;
}

char *recipe_agents_text(const cJSON *agents)
{
    const cJSON *a;
    struct buf text;
    size_t len;

    buf_init(&text, AGENTS_BYTES_MAX);
    cJSON_ArrayForEach(a, agents)
    {
        buf_printf(&text, "%s%s", text.len > 0 ? ", " : "", a->valuestring);
    }
    if (text.len == 0 || text.bad != BT_OK) {
        buf_done(&text);
        return NULL;
    }
    (void)buf_cstr(&text);
    return (char *)buf_take(&text, &len);
}
