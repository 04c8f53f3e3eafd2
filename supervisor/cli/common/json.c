/* JSON values: members, the fields of a request, output. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"

void cli_print_json(const struct cJSON *value)
{
    char *text = cJSON_PrintUnformatted(value);

    if (text != NULL) {
        (void)puts(text);
    }
    cJSON_free(text);
}

const char *json_text(const struct cJSON *object, const char *name, const char *fallback)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(v) ? v->valuestring : fallback;
}

double json_number(const struct cJSON *object, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

cJSON *cli_fields(const char *name, const char *value)
{
    cJSON *fields = cJSON_CreateObject();

    if (value != NULL) {
        (void)cJSON_AddStringToObject(fields, name, value);
    }
    return fields;
}

void cli_add_value(const struct cli *cli, const char *option, cJSON *fields, const char *name)
{
    if (cli_value(cli, option) != NULL) {
        (void)cJSON_AddStringToObject(fields, name, cli_value(cli, option));
    }
}

static void scrub_all(struct cJSON *tree)
{
    for (struct cJSON *v = tree; v != NULL; v = v->next) {
        if (v->valuestring != NULL) {
            cli_scrub(v->valuestring);
        }
        scrub_all(v->child);
    }
}

void cli_scrub_tree(struct cJSON *tree)
{
    scrub_all(tree);
}
