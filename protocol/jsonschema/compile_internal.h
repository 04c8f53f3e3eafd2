/* The compiler's inside: what the readers of keywords may call. Private to this room. */
#ifndef JSONSCHEMA_COMPILE_INTERNAL_H
#define JSONSCHEMA_COMPILE_INTERNAL_H

#include "protocol/jsonschema/node_internal.h"

struct compiler {
    struct schema *s;
    struct bt_error *err;
    struct rule rules[RULE_COUNT]; /* of the node at work: one of each kind at most */
    uint32_t n_rules;
};

/* One keyword of one node. value is the keyword's value in schema.tree. */
struct keyword_ctx {
    uint32_t node;
    const char *keyword;
    cJSON *value;
    enum rule_kind kind;
};

/* Names the place ("#/properties/a/pattern: ...") and returns code. */
enum bt_code compile_error(struct compiler *k, const struct keyword_ctx *at, enum bt_code code,
                           const char *fmt, ...) BT_PRINTF(4, 5);
/* A subschema under the keyword (key NULL, ix NODE_NONE where they do not apply), to be compiled
 * later. */
BT_MUST_CHECK enum bt_code compile_child(struct compiler *k, const struct keyword_ctx *at,
                                         const char *key, uint32_t ix, cJSON *source,
                                         uint32_t *ret_node);
/* A zeroed rule of at->kind for the node at work; NULL when it has one of that kind already. */
struct rule *compile_rule(struct compiler *k, const struct keyword_ctx *at);
/* Zeroed memory that lives as long as the schema. */
BT_MUST_CHECK enum bt_code compile_alloc(struct compiler *k, size_t n, size_t size, void **ret);
/* A pattern, owned by the schema. */
BT_MUST_CHECK enum bt_code compile_pattern(struct compiler *k, const struct keyword_ctx *at,
                                           const char *text, pcre2_code **ret);

/* Reads the keyword `name` (at->keyword, at->kind are filled in here); unknown names are
 * annotations. */
BT_MUST_CHECK enum bt_code keyword_read(struct compiler *k, uint32_t node, cJSON *value);

/* Keywords that hold subschemas (applicators.c). */
enum bt_code keyword_schema(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_schema_list(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_members(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_items(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_dependencies(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_if(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_definitions(struct compiler *k, const struct keyword_ctx *at);

/* True when value is an array of strings without repetition. */
bool keyword_is_name_list(const cJSON *value);
/* The value that a local $ref ("#", "#/definitions/a~1b%25") leads to, or NULL. */
cJSON *schema_pointer(cJSON *root, const char *ref);

/* Memory of PCRE2 through malloc of this library, so that a failing allocation can be tested. */
void *pattern_alloc(size_t n, void *self);
void pattern_free(void *at, void *self);
#endif
