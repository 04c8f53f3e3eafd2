/* Where recipes lie: folders of plan files with inputs. */
#ifndef CLI_RECIPES_H
#define CLI_RECIPES_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

enum { RECIPE_PATH_MAX = 4096, RECIPE_DIRS_MAX = 3 };

/* The folders that are searched, nearest first: $XDG_CONFIG_HOME/baton/recipes (else
 * ~/.config/baton/recipes), and the installed examples. How many. */
int recipes_dirs(char ret[RECIPE_DIRS_MAX][RECIPE_PATH_MAX]);
/* Whether the name of a file is that of a plan: .yaml, .yml, .json. */
bool recipes_is_file(const char *name);
/* The file that a name or path stands for; false after saying that there is none. */
bool recipes_find(const char *name, char ret_path[RECIPE_PATH_MAX]);
/* Reads it as cli_read_plan does; NULL after printing the error. */
char *cli_read_recipe(const struct cli *cli, const char *name);
/* Every plan file of the folder, in alphabetical order (free with recipes_free_list); NULL when
 * there is no such folder. */
char **recipes_list(const char *dir, int *ret_n);
void recipes_free_list(char **list, int n);
/* The agents that the steps of a plan or recipe name, each once, in their order; cJSON_Delete it.
 */
struct cJSON *recipe_agents(const struct cJSON *plan);
/* "files, sql"; NULL when there are none, else free with free(). */
char *recipe_agents_text(const struct cJSON *agents);
#endif
