/* init: makes a directory with a configuration, a plan and what they need, out of an example. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/suggest.h"
#include "protocol/client/state.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/copy.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"

enum { HEAD_BYTES_MAX = 65536, PATH_BYTES = 4096 };

static const char FIRST_EXAMPLE[] = "hello";

static enum cli_exit print_list(const struct cli *cli, const char *root)
{
    static const char *const heads[] = {"example", "what it shows", NULL};
    struct table *t = cli->json ? NULL : table_new(heads);
    cJSON *rows = cJSON_CreateArray();
    struct copy_list names = {.n = 0};
    bool ok = recipes_examples(root, &names);

    for (size_t i = 0; ok && i < names.n; i++) {
        char path[RECIPE_PATH_MAX + 256];
        cJSON *row = cJSON_CreateObject();
        cJSON *plan;
        (void)snprintf(path, sizeof path, "%s/%s/plan.yaml", root, names.at[i].path);
        plan = cli_read_tree(path);
        (void)cJSON_AddStringToObject(row, "name", names.at[i].path);
        (void)cJSON_AddStringToObject(row, "description", json_text(plan, "description", ""));
        (void)cJSON_AddStringToObject(row, "path", path);
        (void)cJSON_AddItemToArray(rows, row);
        if (t != NULL) {
            table_cell(t, "%s", names.at[i].path);
            table_cell(t, "%s", json_text(plan, "description", ""));
        }
        cJSON_Delete(plan);
    }
    if (ok && cli->json) {
        cli_print_json(rows);
    }
    if (ok && t != NULL) {
        table_show(t);
    } else {
        table_free(t);
    }
    copy_list_free(&names);
    cJSON_Delete(rows);
    return ok ? CLI_OK : CLI_INTERNAL;
}

static enum cli_exit unknown_example(const char *root, const char *name)
{
    struct suggest nearest = suggest_start(str_from(name));
    struct copy_list names = {.n = 0};

    if (recipes_examples(root, &names)) {
        for (size_t i = 0; i < names.n; i++) {
            suggest_offer(&nearest, str_from(names.at[i].path));
        }
    }
    if (nearest.best.ptr != NULL) {
        cli_error("there is no example '%s'; did you mean '%.*s'? See: baton init --list", name,
                  STR_ARG(nearest.best));
    } else {
        cli_error_hint("see: baton init --list", "there is no example '%s'", name);
    }
    copy_list_free(&names);
    return CLI_NOT_FOUND;
}

/* The directory of an example, in ret; a name with a slash is none. */
static bool example_dir(const char *root, const char *name, char ret[PATH_BYTES])
{
    const int n = snprintf(ret, PATH_BYTES, "%s/%s", root, name);

    return n > 0 && n < PATH_BYTES && name[0] != '.' && strchr(name, '/') == NULL &&
           recipes_is_example(ret);
}

/* The state directory of the project, which is this user's alone; nothing of it goes into git.
 * Leaves nothing when it fails. */
static bool make_state(const char *dir)
{
    static const char ignore[] = "*\n";
    char state[PATH_BYTES];
    char path[PATH_BYTES + 16];
    FILE *f;
    bool ok;

    (void)snprintf(state, sizeof state, "%.4000s/" STATE_PROJECT_DIR, dir);
    (void)snprintf(path, sizeof path, "%s/.gitignore", state);
    if (mkdir(state, 0700) != 0) {
        cli_error("%s: %s", state, strerror(errno));
        return false;
    }
    f = fopen(path, "wxe");
    ok = f != NULL && fputs(ignore, f) >= 0;
    ok = f != NULL && fclose(f) == 0 && ok;
    if (!ok) {
        cli_error("%s: %s", path, strerror(errno));
        (void)unlink(path);
        (void)rmdir(state);
    }
    return ok;
}

/* All of it, or nothing. */
static bool write_project(const char *from, const char *dir, struct copy_list *files)
{
    if (copy_tree(from, dir, files) && make_state(dir)) {
        return true;
    }
    if (copy_tree_remove(dir, files)) {
        cli_note("what was written is removed again\n");
    }
    return false;
}

/* What would be overwritten is named, and nothing is written. */
static bool is_free(const char *dir, const struct copy_list *files)
{
    struct stat st;
    char path[PATH_BYTES + 256];

    for (size_t i = 0; i < files->n; i++) {
        (void)snprintf(path, sizeof path, "%.4000s/%s", dir, files->at[i].path);
        if (lstat(path, &st) == 0 && !(files->at[i].is_dir && S_ISDIR(st.st_mode))) {
            cli_error("%s is there already; nothing was written", path);
            return false;
        }
    }
    (void)snprintf(path, sizeof path, "%.4000s/" STATE_PROJECT_DIR, dir);
    if (lstat(path, &st) == 0) {
        cli_error("%s is there already: this is a project; nothing was written", path);
        return false;
    }
    return true;
}

/* The commands in the comment at the head of the plan: its lines that begin with "#   ". */
static void print_commands(const char *dir)
{
    static const char mark[] = "#   baton ";
    char path[PATH_BYTES + 16];
    size_t len = 0;
    char *text;

    (void)snprintf(path, sizeof path, "%.4000s/plan.yaml", dir);
    text = cli_read_file(path, HEAD_BYTES_MAX, &len);
    for (char *line = text; line != NULL && line[0] == '#';) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end++ = '\0';
        }
        if (strncmp(line, mark, sizeof mark - 1) == 0 || strncmp(line, "#   ./", 6) == 0) {
            (void)fprintf(stderr, "  %s\n", line + 4);
        }
        line = end;
    }
    free(text);
}

static void print_next(const struct cli *cli, const char *dir, const char *example)
{
    const char *const state = getenv("BATON_STATE");

    if (cli->json) {
        cJSON *row = cJSON_CreateObject();
        (void)cJSON_AddStringToObject(row, "dir", dir);
        (void)cJSON_AddStringToObject(row, "example", example);
        cli_print_json(row);
        cJSON_Delete(row);
        return;
    }
    (void)fprintf(stderr, "the example %s is in %s; next:\n", example, dir);
    if (strcmp(dir, ".") != 0) {
        (void)fprintf(stderr, "  cd %s\n", dir);
    }
    (void)fprintf(stderr, "  baton up\n");
    print_commands(dir);
    if (state != NULL && state[0] != '\0') {
        cli_error("BATON_STATE is set to %s, so the commands there will not use the project; "
                  "unset it first",
                  state);
    }
}

enum cli_exit verb_init(struct cli *cli)
{
    const char *const asked = cli_value(cli, "example");
    const char *const name = asked != NULL ? asked : FIRST_EXAMPLE;
    const char *const dir = cli->argc > 0 ? cli->argv[0] : ".";
    struct copy_list files = {.n = 0};
    char root[RECIPE_PATH_MAX];
    char from[PATH_BYTES];
    enum cli_exit code = CLI_INTERNAL;

    if (!recipes_examples_dir(root)) {
        cli_error("the examples were not found in %s; they are installed with Baton", root);
        return CLI_INTERNAL;
    }
    if (cli_flag(cli, "list")) {
        return print_list(cli, root);
    }
    if (dir[0] == '\0' || strlen(dir) > PATH_BYTES - 128) {
        cli_error("DIR: expected the path of a directory, of at most %d bytes", PATH_BYTES - 128);
        return CLI_USAGE;
    }
    if (!example_dir(root, name, from)) {
        return unknown_example(root, name);
    }
    if (copy_list_read(from, true, &files)) {
        code = is_free(dir, &files) ? CLI_OK : CLI_USAGE;
        if (code == CLI_OK && !write_project(from, dir, &files)) {
            code = CLI_INTERNAL;
        }
    }
    copy_list_free(&files);
    if (code == CLI_OK) {
        print_next(cli, dir, name);
    }
    return code;
}
