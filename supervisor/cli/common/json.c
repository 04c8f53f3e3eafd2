/* JSON values: members, the fields of a request. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "protocol/wire/doc.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"

struct cJSON *json_tree(const char *json)
{
    struct bt_error err;
    cJSON *tree = NULL;

    return json != NULL && json_parse_exact(str_from(json), &tree, &err) == BT_OK ? tree : NULL;
}

const char *json_text(const struct cJSON *object, const char *name, const char *fallback)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(v) ? v->valuestring : fallback;
}

const char *json_line(const struct cJSON *object, const char *name, const char *fallback)
{
    cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!cJSON_IsString(v)) {
        return fallback;
    }
    for (char *at = v->valuestring; *at != 0; at++) {
        *at = *at == '\n' || *at == '\r' || *at == '\v' || *at == '\f' ? ' ' : *at;
    }
    return v->valuestring;
}

double json_number(const struct cJSON *object, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsRaw(v) ? strtod(v->valuestring, NULL) : cJSON_IsNumber(v) ? v->valuedouble : 0;
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
