/* The table of keywords, and the readers of those without subschemas. */
#include <math.h>

#include "protocol/base/suggest.h"
#include "protocol/jsonschema/compile_internal.h"

static const struct {
    const char *name;
    uint32_t bit;
} type_names[] = {
    {"null", TYPE_NULL},     {"boolean", TYPE_BOOLEAN}, {"number", TYPE_NUMBER | TYPE_INTEGER},
    {"string", TYPE_STRING}, {"array", TYPE_ARRAY},     {"integer", TYPE_INTEGER},
    {"object", TYPE_OBJECT},
};

static enum bt_code add_type(struct compiler *k, const struct keyword_ctx *at, const cJSON *name,
                             struct rule *rule)
{
    for (size_t i = 0; cJSON_IsString(name) && i < sizeof type_names / sizeof type_names[0]; i++) {
        if (strcmp(type_names[i].name, name->valuestring) == 0) {
            rule->u.types |= type_names[i].bit;
            return BT_OK;
        }
    }
    return compile_error(k, at, BT_INVALID,
                         "%s%.40s%s is not a type; the types are null, boolean, number, integer, "
                         "string, array, object",
                         cJSON_IsString(name) ? "\"" : "",
                         cJSON_IsString(name) ? name->valuestring : "this value",
                         cJSON_IsString(name) ? "\"" : "");
}

static enum bt_code read_type(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);
    const cJSON *name;

    if (!cJSON_IsArray(at->value)) {
        return add_type(k, at, at->value, rule);
    }
    cJSON_ArrayForEach(name, at->value)
    {
        enum bt_code code = add_type(k, at, name, rule);
        if (code != BT_OK) {
            return code;
        }
    }
    return rule->u.types != 0 ? BT_OK : compile_error(k, at, BT_INVALID, "names no type");
}

static enum bt_code read_json(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);

    rule->u.json = at->value;
    return BT_OK;
}

static enum bt_code read_enum(struct compiler *k, const struct keyword_ctx *at)
{
    if (!cJSON_IsArray(at->value) || at->value->child == NULL) {
        return compile_error(k, at, BT_INVALID, "expected an array with at least one value");
    }
    return read_json(k, at);
}

bool keyword_is_name_list(const cJSON *value)
{
    if (!cJSON_IsArray(value)) {
        return false;
    }
    for (const cJSON *a = value->child; a != NULL; a = a->next) {
        if (!cJSON_IsString(a)) {
            return false;
        }
    }
    return true;
}

static enum bt_code read_names(struct compiler *k, const struct keyword_ctx *at)
{
    if (!keyword_is_name_list(at->value)) {
        return compile_error(k, at, BT_INVALID, "expected an array of strings");
    }
    return read_json(k, at);
}

static enum bt_code read_number(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);

    if (!cJSON_IsNumber(at->value) || !isfinite(at->value->valuedouble)) {
        return compile_error(k, at, BT_INVALID, "expected a number");
    }
    rule->u.number = at->value->valuedouble;
    if (at->kind == RULE_MULTIPLE_OF && rule->u.number <= 0) {
        return compile_error(k, at, BT_INVALID, "expected a number above 0");
    }
    return BT_OK;
}

static enum bt_code read_count(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);
    double v = at->value->valuedouble;

    if (!cJSON_IsNumber(at->value) || !(v >= 0 && v <= 9007199254740992.0) || floor(v) != v) {
        return compile_error(k, at, BT_INVALID, "expected a whole number, 0 or more");
    }
    rule->u.count = (uint64_t)v;
    return BT_OK;
}

static enum bt_code read_pattern(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);

    if (!cJSON_IsString(at->value)) {
        return compile_error(k, at, BT_INVALID, "expected a regular expression as a string");
    }
    rule->u.pattern.text = at->value->valuestring;
    return compile_pattern(k, at, at->value->valuestring, &rule->u.pattern.code);
}

static enum bt_code read_unique(struct compiler *k, const struct keyword_ctx *at)
{
    if (!cJSON_IsBool(at->value)) {
        return compile_error(k, at, BT_INVALID, "expected true or false");
    }
    return cJSON_IsTrue(at->value) ? read_json(k, at) : BT_OK;
}

/* $id at the root is an annotation. Inside a schema it would change the meaning of "#/..." below
 * it. */
static enum bt_code read_id(struct compiler *k, const struct keyword_ctx *at)
{
    if (!cJSON_IsString(at->value)) {
        return compile_error(k, at, BT_INVALID, "expected a string");
    }
    if (at->node != 0) {
        return compile_error(k, at, BT_INVALID,
                             "resolution by \"$id\" is not supported; remove it, and refer to this "
                             "place by a JSON pointer such as \"#/definitions/NAME\"");
    }
    return BT_OK;
}

static enum bt_code reject_later_draft(struct compiler *k, const struct keyword_ctx *at)
{
    return compile_error(
        k, at, BT_INVALID,
        "belongs to a later draft and is not supported; this is JSON Schema draft 7");
}

static const struct keyword {
    const char *name;
    enum bt_code (*read)(struct compiler *k, const struct keyword_ctx *at);
    enum rule_kind kind;
} keywords[] = {
    {"type", read_type, RULE_TYPE},
    {"const", read_json, RULE_CONST},
    {"enum", read_enum, RULE_ENUM},
    {"multipleOf", read_number, RULE_MULTIPLE_OF},
    {"minimum", read_number, RULE_MINIMUM},
    {"maximum", read_number, RULE_MAXIMUM},
    {"exclusiveMinimum", read_number, RULE_EXCLUSIVE_MINIMUM},
    {"exclusiveMaximum", read_number, RULE_EXCLUSIVE_MAXIMUM},
    {"minLength", read_count, RULE_MIN_LENGTH},
    {"maxLength", read_count, RULE_MAX_LENGTH},
    {"pattern", read_pattern, RULE_PATTERN},
    {"minItems", read_count, RULE_MIN_ITEMS},
    {"maxItems", read_count, RULE_MAX_ITEMS},
    {"uniqueItems", read_unique, RULE_UNIQUE_ITEMS},
    {"minProperties", read_count, RULE_MIN_PROPERTIES},
    {"maxProperties", read_count, RULE_MAX_PROPERTIES},
    {"required", read_names, RULE_REQUIRED},
    {"dependencies", keyword_dependencies, RULE_DEPENDENCIES},
    {"propertyNames", keyword_schema, RULE_PROPERTY_NAMES},
    {"properties", keyword_members, RULE_MEMBERS},
    {"patternProperties", keyword_members, RULE_MEMBERS},
    {"additionalProperties", keyword_members, RULE_MEMBERS},
    {"items", keyword_items, RULE_ITEMS},
    {"additionalItems", keyword_items, RULE_ITEMS},
    {"contains", keyword_schema, RULE_CONTAINS},
    {"allOf", keyword_schema_list, RULE_ALL_OF},
    {"anyOf", keyword_schema_list, RULE_ANY_OF},
    {"oneOf", keyword_schema_list, RULE_ONE_OF},
    {"not", keyword_schema, RULE_NOT},
    {"if", keyword_if, RULE_IF},
    {"definitions", keyword_definitions, RULE_COUNT},
    {"$defs", keyword_definitions, RULE_COUNT},
    {"$id", read_id, RULE_COUNT},
    {"$anchor", reject_later_draft, RULE_COUNT},
    {"$dynamicRef", reject_later_draft, RULE_COUNT},
    {"$recursiveRef", reject_later_draft, RULE_COUNT},
    {"dependentRequired", reject_later_draft, RULE_COUNT},
    {"dependentSchemas", reject_later_draft, RULE_COUNT},
    {"prefixItems", reject_later_draft, RULE_COUNT},
    {"minContains", reject_later_draft, RULE_COUNT},
    {"maxContains", reject_later_draft, RULE_COUNT},
    {"unevaluatedItems", reject_later_draft, RULE_COUNT},
    {"unevaluatedProperties", reject_later_draft, RULE_COUNT},
};

static const char *const annotations[] = {"$schema",
                                          "$comment",
                                          "title",
                                          "description",
                                          "default",
                                          "examples",
                                          "contentMediaType",
                                          "contentEncoding",
                                          "readOnly",
                                          "writeOnly",
                                          "deprecated",
                                          "format",
                                          "then",
                                          "else"};

/* What an exact schema makes of a name that is no keyword. */
static enum bt_code read_other(struct compiler *k, uint32_t node, cJSON *value)
{
    struct keyword_ctx at = {.node = node, .keyword = value->string, .value = value};
    struct suggest near = suggest_start(str_from(value->string));

    for (size_t i = 0; i < sizeof annotations / sizeof annotations[0]; i++) {
        if (strcmp(annotations[i], value->string) == 0) {
            return BT_OK;
        }
    }
    if (strncmp(value->string, "x-", 2) == 0) {
        return BT_OK;
    }
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        suggest_offer(&near, str_from(keywords[i].name));
    }
    return compile_error(k, &at, BT_INVALID, "is no keyword of JSON Schema%s%.*s%s",
                         near.best.ptr != NULL ? "; did you mean `" : "", (int)near.best.len,
                         near.best.ptr != NULL ? near.best.ptr : "",
                         near.best.ptr != NULL ? "`?" : "");
}

static bool has_rule(const struct compiler *k, enum rule_kind kind)
{
    bool has = false;

    for (uint32_t i = 0; i < k->n_rules; i++) {
        has = has || k->rules[i].kind == kind;
    }
    return has;
}

/* Several keywords may be one rule, which the first of them has read. */
static enum bt_code read_again(struct compiler *k, const struct keyword_ctx *at)
{
    return at->kind == RULE_MEMBERS || at->kind == RULE_ITEMS
               ? BT_OK
               : compile_error(k, at, BT_INVALID, "appears twice here");
}

enum bt_code keyword_read(struct compiler *k, uint32_t node, cJSON *value)
{
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        if (strcmp(keywords[i].name, value->string) == 0) {
            struct keyword_ctx at = {node, keywords[i].name, value, keywords[i].kind};
            return has_rule(k, at.kind) ? read_again(k, &at) : keywords[i].read(k, &at);
        }
    }
    return k->exact ? read_other(k, node, value) : BT_OK;
}
