/* The readers of keywords that hold subschemas. */
#include "protocol/jsonschema/compile_internal.h"

enum bt_code keyword_schema(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);

    return compile_child(k, at, NULL, NODE_NONE, at->value, &rule->u.node);
}

static enum bt_code read_list(struct compiler *k, const struct keyword_ctx *at,
                              struct node_list *ret)
{
    uint32_t n = (uint32_t)cJSON_GetArraySize(at->value);
    cJSON *v = at->value->child;
    void *list = NULL;
    enum bt_code code = compile_alloc(k, n, sizeof *ret->at, &list);

    ret->at = list;
    ret->n = n;
    for (uint32_t i = 0; code == BT_OK && i < n; i++, v = v->next) {
        code = compile_child(k, at, NULL, i, v, &ret->at[i]);
    }
    return code;
}

enum bt_code keyword_schema_list(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);

    if (!cJSON_IsArray(at->value) || at->value->child == NULL) {
        return compile_error(k, at, BT_INVALID, "expected an array with at least one schema");
    }
    return read_list(k, at, &rule->u.list);
}

/* Returns another keyword of the same node; .value NULL when the node does not have it. */
static struct keyword_ctx sibling_keyword(struct compiler *k, const struct keyword_ctx *at,
                                          const char *name)
{
    const cJSON *source = k->s->nodes[at->node].source;

    return (struct keyword_ctx){.node = at->node,
                                .keyword = name,
                                .value = cJSON_GetObjectItemCaseSensitive(source, name),
                                .kind = at->kind};
}

static enum bt_code expect_object(struct compiler *k, const struct keyword_ctx *at)
{
    return cJSON_IsObject(at->value) ? BT_OK
                                     : compile_error(k, at, BT_INVALID, "expected an object");
}

static enum bt_code read_properties(struct compiler *k, const struct keyword_ctx *at,
                                    struct members *m)
{
    enum bt_code code = expect_object(k, at);

    if (code != BT_OK) {
        return code;
    }
    m->names = at->value;
    for (cJSON *v = at->value->child; code == BT_OK && v != NULL; v = v->next) {
        uint32_t node = 0;
        code = compile_child(k, at, v->string, NODE_NONE, v, &node);
        if (code == BT_OK && map_put(&m->by_name, str_from(v->string), node) != BT_OK) {
            code = err_set(k->err, BT_NOMEM, "out of memory for a schema");
        }
    }
    return code;
}

static enum bt_code read_pattern_properties(struct compiler *k, const struct keyword_ctx *at,
                                            struct members *m)
{
    enum bt_code code = expect_object(k, at);
    void *list = NULL;

    if (code == BT_OK) {
        code = compile_alloc(k, (size_t)cJSON_GetArraySize(at->value), sizeof *m->patterns, &list);
    }
    if (code != BT_OK) {
        return code;
    }
    m->patterns = list;
    for (cJSON *v = at->value->child; code == BT_OK && v != NULL; v = v->next) {
        struct member_pattern *p = &m->patterns[m->n_patterns++];
        code = compile_pattern(k, at, v->string, &p->code);
        if (code == BT_OK) {
            code = compile_child(k, at, v->string, NODE_NONE, v, &p->node);
        }
    }
    return code;
}

enum bt_code keyword_members(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);
    struct keyword_ctx names = sibling_keyword(k, at, "properties");
    struct keyword_ctx patterns = sibling_keyword(k, at, "patternProperties");
    struct keyword_ctx rest = sibling_keyword(k, at, "additionalProperties");
    void *at_members = NULL;
    struct members *m;
    enum bt_code code;

    code = compile_alloc(k, 1, sizeof *m, &at_members);
    if (code != BT_OK) {
        return code;
    }
    m = at_members;
    m->next = k->s->members;
    m->additional = NODE_NONE;
    k->s->members = m;
    rule->u.members = m;
    if (names.value != NULL) {
        code = read_properties(k, &names, m);
    }
    if (code == BT_OK && patterns.value != NULL) {
        code = read_pattern_properties(k, &patterns, m);
    }
    if (code == BT_OK && rest.value != NULL) {
        code = compile_child(k, &rest, NULL, NODE_NONE, rest.value, &m->additional);
    }
    return code;
}

/* additionalItems only applies when items is an array (draft 7, section 6.4.2). */
enum bt_code keyword_items(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);
    struct keyword_ctx items = sibling_keyword(k, at, "items");
    struct keyword_ctx rest = sibling_keyword(k, at, "additionalItems");
    enum bt_code code;

    rule->u.items.rest = NODE_NONE;
    if (items.value == NULL) {
        return BT_OK;
    }
    if (!cJSON_IsArray(items.value)) {
        return compile_child(k, &items, NULL, NODE_NONE, items.value, &rule->u.items.rest);
    }
    code = read_list(k, &items, &rule->u.items.tuple);
    if (code == BT_OK && rest.value != NULL) {
        code = compile_child(k, &rest, NULL, NODE_NONE, rest.value, &rule->u.items.rest);
    }
    return code;
}

enum bt_code keyword_dependencies(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);
    enum bt_code code = expect_object(k, at);
    struct dependencies *d;
    void *list = NULL;

    if (code == BT_OK) {
        code = compile_alloc(k, (size_t)cJSON_GetArraySize(at->value), sizeof *d->at, &list);
    }
    if (code != BT_OK) {
        return code;
    }
    d = &rule->u.dependencies;
    d->at = list;
    for (cJSON *v = at->value->child; code == BT_OK && v != NULL; v = v->next) {
        struct dependency *one = &d->at[d->n++];
        one->name = v->string;
        if (keyword_is_name_list(v)) {
            one->needs = v;
        } else if (cJSON_IsArray(v)) {
            code = compile_error(k, at, BT_INVALID, "\"%.60s\": expected an array of strings",
                                 v->string);
        } else {
            code = compile_child(k, at, v->string, NODE_NONE, v, &one->node);
        }
    }
    return code;
}

enum bt_code keyword_if(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = compile_rule(k, at);
    struct keyword_ctx then_at = sibling_keyword(k, at, "then");
    struct keyword_ctx else_at = sibling_keyword(k, at, "else");
    struct conditional *b;
    enum bt_code code;

    b = &rule->u.conditional;
    b->then_node = NODE_NONE;
    b->else_node = NODE_NONE;
    code = compile_child(k, at, NULL, NODE_NONE, at->value, &b->if_node);
    if (code == BT_OK && then_at.value != NULL) {
        code = compile_child(k, &then_at, NULL, NODE_NONE, then_at.value, &b->then_node);
    }
    if (code == BT_OK && else_at.value != NULL) {
        code = compile_child(k, &else_at, NULL, NODE_NONE, else_at.value, &b->else_node);
    }
    return code;
}

/* Compiles definitions although no $ref may use them, so that an error is found at compile time. */
enum bt_code keyword_definitions(struct compiler *k, const struct keyword_ctx *at)
{
    enum bt_code code = expect_object(k, at);

    for (cJSON *v = at->value->child; code == BT_OK && v != NULL; v = v->next) {
        uint32_t node;
        code = compile_child(k, at, v->string, NODE_NONE, v, &node);
    }
    return code;
}
