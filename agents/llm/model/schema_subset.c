#include "agents/llm/model/schema_subset.h"

#include <string.h>

#include <cjson/cJSON.h>

#include "agents/llm/model/answer_parser.h"

enum { DEPTH_MAX = 16, OPTIONAL_MAX = 24, UNION_MAX = 16 };

struct subset_state {
    unsigned optional;
    unsigned unions;
    bool failed; /* no such copy exists, or out of memory */
};

static cJSON *narrow(struct subset_state *n, const cJSON *node, unsigned depth);

static const cJSON *get(const cJSON *map, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(map, name);
}

static void put(struct subset_state *n, cJSON *to, const char *name, cJSON *item)
{
    bool ok = item != NULL && (name == NULL ? cJSON_AddItemToArray(to, item)
                                            : cJSON_AddItemToObject(to, name, item));

    if (!ok) {
        cJSON_Delete(item);
        n->failed = true;
    }
}

/* Copies a map of schemas (properties, $defs) or a list of them (anyOf). */
static cJSON *each(struct subset_state *n, const cJSON *from, unsigned depth)
{
    cJSON *to = cJSON_IsArray(from) ? cJSON_CreateArray() : cJSON_CreateObject();
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, from)
    {
        if (to != NULL && !n->failed) {
            put(n, to, cJSON_IsArray(from) ? NULL : item->string, narrow(n, item, depth));
        }
    }
    return to;
}

static bool may_be_object(const cJSON *node)
{
    const cJSON *type = get(node, "type");

    return (cJSON_IsString(type) && strcmp(type->valuestring, "object") == 0) ||
           answer_parser_lists(type, "object") || get(node, "properties") != NULL;
}

/* Closes an object that names its members and does not mention others. */
static void close_object(struct subset_state *n, const cJSON *node, cJSON *to)
{
    const cJSON *more = get(node, "additionalProperties");
    const cJSON *properties = get(node, "properties");
    const cJSON *p = NULL;

    if (!may_be_object(node)) {
        return;
    }
    if ((more != NULL && !cJSON_IsFalse(more)) || get(node, "patternProperties") != NULL ||
        (more == NULL && (properties == NULL || properties->child == NULL))) {
        n->failed = true;
        return;
    }
    put(n, to, "additionalProperties", cJSON_CreateFalse());
    cJSON_ArrayForEach(p, properties)
    {
        n->optional += answer_parser_lists(get(node, "required"), p->string) ? 0 : 1;
    }
}

static void copy_words(struct subset_state *n, const cJSON *node, cJSON *to)
{
    static const char *const words[] = {"type", "required", "enum",       "const",
                                        "$ref", "title",    "description"};
    const cJSON *least = get(node, "minItems");

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (get(node, words[i]) != NULL) {
            put(n, to, words[i], cJSON_Duplicate(get(node, words[i]), true));
        }
    }
    if (cJSON_IsNumber(least) && (least->valuedouble == 0 || least->valuedouble == 1)) {
        put(n, to, "minItems", cJSON_CreateNumber(least->valuedouble));
    }
}

static cJSON *narrow(struct subset_state *n, const cJSON *node, unsigned depth)
{
    static const char *const inner[][2] = {
        {"properties", "properties"}, {"$defs", "$defs"}, {"definitions", "definitions"},
        {"anyOf", "anyOf"},           {"oneOf", "anyOf"}, {"allOf", "allOf"}};
    cJSON *to = cJSON_CreateObject();

    if (to == NULL || !cJSON_IsObject(node) || depth > DEPTH_MAX) {
        n->failed = true;
        return to;
    }
    copy_words(n, node, to);
    close_object(n, node, to);
    for (size_t i = 0; i < sizeof inner / sizeof inner[0] && !n->failed; i++) {
        const cJSON *part = get(node, inner[i][0]);
        if (part != NULL && get(to, inner[i][1]) == NULL) {
            put(n, to, inner[i][1], each(n, part, depth + 1));
            n->unions += strcmp(inner[i][1], "anyOf") == 0 ? 1 : 0;
        }
    }
    n->unions += cJSON_IsArray(get(node, "type")) ? 1 : 0;
    if (get(node, "items") != NULL && !n->failed) {
        put(n, to, "items", narrow(n, get(node, "items"), depth + 1));
    }
    return to;
}

cJSON *schema_subset(const cJSON *schema)
{
    struct subset_state n = {0};
    cJSON *to = narrow(&n, schema, 0);

    if (n.failed || n.optional > OPTIONAL_MAX || n.unions > UNION_MAX) {
        cJSON_Delete(to);
        return NULL;
    }
    return to;
}

bool schema_subset_can(const cJSON *schema)
{
    cJSON *copy = schema_subset(schema);

    cJSON_Delete(copy);
    return copy != NULL;
}
