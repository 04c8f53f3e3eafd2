#include "agents/llm/model/null_rules.h"

#include <string.h>

#include <cjson/cJSON.h>

#include "agents/llm/model/answer_parser.h"

enum { DEPTH_MAX = 32, VISITED_MAX = 50000 };

static cJSON *get(const cJSON *map, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(map, name);
}

static bool takes_null(const cJSON *type)
{
    return answer_parser_lists(type, "null") ||
           (cJSON_IsString(type) && strcmp(type->valuestring, "null") == 0);
}

/* Repairs one member. Only a type in the schema decides what null means. */
static bool repair_member(cJSON *value, const cJSON *schema, bool required)
{
    const cJSON *type = get(schema, "type");
    const char *name = schema->string;
    const cJSON *item = get(value, name);

    if (type == NULL) {
        return true;
    }
    if (item == NULL && required && takes_null(type)) {
        return cJSON_AddNullToObject(value, name) != NULL;
    }
    if (cJSON_IsNull(item) && !required && !takes_null(type)) {
        cJSON_DeleteItemFromObjectCaseSensitive(value, name);
    }
    return true;
}

static bool repair(cJSON *value, const cJSON *schema, unsigned depth, unsigned *visited)
{
    const cJSON *required = get(schema, "required");
    const cJSON *items = get(schema, "items");
    const cJSON *member = NULL;
    cJSON *item = NULL;
    bool ok = true;

    if (depth > DEPTH_MAX || value == NULL || *visited >= VISITED_MAX) {
        return true;
    }
    if (cJSON_IsObject(value)) {
        cJSON_ArrayForEach(member, get(schema, "properties"))
        {
            if (!ok || *visited >= VISITED_MAX) {
                return ok;
            }
            ++*visited;
            ok = repair_member(value, member, answer_parser_lists(required, member->string)) &&
                 repair(get(value, member->string), member, depth + 1, visited);
        }
    } else if (cJSON_IsArray(value) && cJSON_IsObject(items)) {
        cJSON_ArrayForEach(item, value)
        {
            ok = ok && repair(item, items, depth + 1, visited);
        }
    }
    return ok;
}

bool null_rules_apply(cJSON *value, const cJSON *schema)
{
    unsigned visited = 0;

    return repair(value, schema, 0, &visited);
}

cJSON *null_rules_schema(const cJSON *schema, const char *const *optional)
{
    cJSON *copy = cJSON_Duplicate(schema, true);
    cJSON *required = get(copy, "required");
    cJSON *item = required == NULL ? NULL : required->child;

    while (item != NULL) {
        cJSON *next = item->next;
        for (size_t i = 0; optional[i] != NULL; i++) {
            if (cJSON_IsString(item) && strcmp(item->valuestring, optional[i]) == 0) {
                cJSON_Delete(cJSON_DetachItemViaPointer(required, item));
                break;
            }
        }
        item = next;
    }
    return copy;
}
