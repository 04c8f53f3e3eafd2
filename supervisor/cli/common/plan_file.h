/* Files that a verb reads: plans, recipes, any YAML or JSON. Each function prints its error, with
 * line and column where a file cannot be parsed, and returns NULL. */
#ifndef CLI_PLAN_FILE_H
#define CLI_PLAN_FILE_H

#include <stddef.h>

#include "supervisor/cli/common/cli.h"

struct cJSON;

/* A whole file ("-" = stdin) of at most max bytes, terminated; free with free(). */
char *cli_read_file(const char *path, size_t max, size_t *ret_len);
/* A plan file as JSON text; free with cJSON_free(). A recipe is filled in from the options inputs
 * and input. */
char *cli_read_plan(const struct cli *cli, const char *path);
/* Puts the documents of the recipes that steps name (`plan: {recipe: NAME}`) into the tree of a
 * plan. Prints the error and returns false: a recipe that is not there, or that runs itself. */
bool cli_inline_recipes(struct cJSON *plan);
/* Adds the NAME=VALUE of a repeated option to an object; a property of the JSON Schema (NULL =
 * none) gives its type. Prints the error and returns false. */
bool cli_read_pairs(const struct cli *cli, const char *option, const struct cJSON *schema,
                    struct cJSON *io);
/* Any YAML or JSON file; free with cJSON_Delete. */
struct cJSON *cli_read_tree(const char *path);
/* The value of an option FILE|JSON: the file of that name, "-" = stdin, else JSON. Free with
 * cJSON_Delete. */
struct cJSON *cli_read_value(const char *text, const char *what);
#endif
