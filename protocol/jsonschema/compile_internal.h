/* The compiler: what readers of keywords may call. Private to this room. */
#ifndef JSONSCHEMA_COMPILE_INTERNAL_H
#define JSONSCHEMA_COMPILE_INTERNAL_H

#include "protocol/jsonschema/node_internal.h"

struct compiler {
    struct schema *s;
    struct bt_error *err;
    bool exact;                    /* an unknown name is an error */
    struct rule rules[RULE_COUNT]; /* of the current node; at most one of each kind */
    uint32_t n_rules;
};

/* One keyword of one node; value is its value in schema.tree. */
struct keyword_ctx {
    uint32_t node;
    const char *keyword;
    cJSON *value;
    enum rule_kind kind;
};

/* Sets an error with the path ("#/properties/a/pattern: ...") and returns code. */
enum bt_code compile_error(struct compiler *k, const struct keyword_ctx *at, enum bt_code code,
                           const char *fmt, ...) BT_PRINTF(4, 5);
/* Adds a subschema under the keyword to the worklist. key is NULL and ix NODE_NONE where they do
 * not apply. */
BT_MUST_CHECK enum bt_code compile_child(struct compiler *k, const struct keyword_ctx *at,
                                         const char *key, uint32_t ix, cJSON *source,
                                         uint32_t *ret_node);
/* Returns a zeroed rule of at->kind for the current node, which has none yet. */
struct rule *compile_rule(struct compiler *k, const struct keyword_ctx *at);
/* Allocates zeroed memory that lives as long as the schema. */
BT_MUST_CHECK enum bt_code compile_alloc(struct compiler *k, size_t n, size_t size, void **ret);
/* Compiles a pattern, which the schema owns. */
BT_MUST_CHECK enum bt_code compile_pattern(struct compiler *k, const struct keyword_ctx *at,
                                           const char *text, pcre2_code **ret);

/* Reads one keyword and fills in at->keyword and at->kind. An unknown name is an annotation,
 * or an error in an exact schema. */
BT_MUST_CHECK enum bt_code keyword_read(struct compiler *k, uint32_t node, cJSON *value);

/* Readers of keywords that hold subschemas (applicators.c). */
enum bt_code keyword_schema(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_schema_list(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_members(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_items(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_dependencies(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_if(struct compiler *k, const struct keyword_ctx *at);
enum bt_code keyword_definitions(struct compiler *k, const struct keyword_ctx *at);

/* True when value is an array of strings. */
bool keyword_is_name_list(const cJSON *value);
/* Returns the value that a local $ref ("#", "#/definitions/a~1b%25") of at most
 * SCHEMA_POINTER_BYTES names, or NULL. */
cJSON *schema_pointer(cJSON *root, const char *ref);

/* PCRE2 allocates through this library's malloc, so that tests can make an allocation fail. */
void *pattern_alloc(size_t n, void *self);
void pattern_free(void *at, void *self);
#endif
