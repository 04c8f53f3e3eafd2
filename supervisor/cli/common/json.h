/* Members of JSON values, the fields of a request, and values on stdout. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

/* The tree of an answer or an event, which the caller frees with cJSON_Delete; NULL when it is no
 * JSON. An integer over 2^53 is an item of the type cJSON_Raw: it is printed with all its digits.
 */
struct cJSON *json_tree(const char *json);
/* A member of an object; the fallback when it is missing or no string. Borrowed. */
const char *json_text(const struct cJSON *object, const char *name, const char *fallback);
/* The same, with spaces in the place of line ends, in the tree too: what others wrote makes no line
 * of its own in a list. */
const char *json_line(const struct cJSON *object, const char *name, const char *fallback);
/* The same of a number; 0 when it is missing. */
double json_number(const struct cJSON *object, const char *name);
/* Prints the value on stdout in the form of --output (form.h). */
void cli_print_json(const struct cJSON *value);
/* The same of JSON text; an object keeps its bytes where the form is JSON. False when it is no
 * JSON, or out of memory. */
bool cli_print_json_text(const char *json);
/* A new object {name: value}; value NULL = {}. */
struct cJSON *cli_fields(const char *name, const char *value);
/* Adds the value of the option under `name` when it was given. */
void cli_add_value(const struct cli *cli, const char *option, struct cJSON *fields,
                   const char *name);
/* Replaces control characters in every string of a tree, in place. NULL is allowed. */
void cli_scrub_tree(struct cJSON *tree);
#endif
