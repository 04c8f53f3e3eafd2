/* The folders of recipes. */
#ifndef CLI_RECIPES_H
#define CLI_RECIPES_H

#include "supervisor/cli/common/cli.h"

struct cJSON;
struct copy_list;

enum { RECIPE_PATH_MAX = 4096, RECIPE_DIRS_MAX = 3 };

/*
 * The folders that are searched, nearest first: $XDG_CONFIG_HOME/baton/recipes (else
 * ~/.config/baton/recipes), then the installed examples. Returns their number.
 */
int recipes_dirs(char ret[RECIPE_DIRS_MAX][RECIPE_PATH_MAX]);
/* The directory of the installed examples: share/baton/examples beside the bin of this program.
 * False when it is not there. */
bool recipes_examples_dir(char ret[RECIPE_PATH_MAX]);
/* Whether the directory is an example: it has a configuration and a plan. */
bool recipes_is_example(const char *dir);
/* The names of the examples in `root`, in alphabetical order; free with copy_list_free in any case.
 * Prints the error and returns false. */
bool recipes_examples(const char *root, struct copy_list *ret);
/* Whether the file name ends as a plan's: .yaml, .yml, .json. */
bool recipes_is_file(const char *name);
/* The file of a recipe's name or path. Prints the error and returns false. */
bool recipes_find(const char *name, char ret_path[RECIPE_PATH_MAX]);
/* Reads it as cli_read_plan does; NULL after printing the error. */
char *cli_read_recipe(const struct cli *cli, const char *name);
/*
 * The plan files of the folder in alphabetical order, *ret_n of them; free with recipes_free_list.
 * NULL when there is no such folder.
 */
char **recipes_list(const char *dir, int *ret_n);
void recipes_free_list(char **list, int n);
/* The agents that the steps of a plan or recipe name, each once, in their order; free with
 * cJSON_Delete. */
struct cJSON *recipe_agents(const struct cJSON *plan);
/* "files, sql"; NULL when there are none, else free with free(). */
char *recipe_agents_text(const struct cJSON *agents);
#endif
