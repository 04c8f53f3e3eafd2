#include "protocol/jsonschema/compile_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/buf.h"

enum { ERROR_TEXT = 320 };

struct schema_size {
    uint32_t values;
    size_t bytes;
};

/* Bounds the cost of a schema before it is copied. */
static enum bt_code check_size(const cJSON *v, uint32_t depth, struct schema_size *size,
                               struct bt_error *err)
{
    if (depth > SCHEMA_DEPTH) {
        return err_set(err, BT_LIMIT, "#: the schema nests deeper than %d levels", SCHEMA_DEPTH);
    }
    if (++size->values > SCHEMA_VALUES) {
        return err_set(err, BT_LIMIT, "#: the schema has more than %d values", SCHEMA_VALUES);
    }
    if (node_type(v) == 0 || (cJSON_IsString(v) && v->valuestring == NULL)) {
        return err_set(err, BT_INVALID, "#: the schema holds something that is not JSON");
    }
    size->bytes += 4 + (v->string == NULL ? 0 : strlen(v->string) + 3);
    size->bytes += cJSON_IsString(v) ? strlen(v->valuestring) : 0;
    if (size->bytes > SCHEMA_BYTES) {
        return err_set(err, BT_LIMIT, "#: the schema is larger than %d KiB", SCHEMA_BYTES / 1024);
    }
    if (cJSON_IsArray(v) || cJSON_IsObject(v)) {
        for (const cJSON *child = v->child; child != NULL; child = child->next) {
            enum bt_code code = check_size(child, depth + 1, size, err);
            if (code != BT_OK) {
                return code;
            }
        }
    }
    return BT_OK;
}

/* In our copy valueint holds the node index + 1, so that two $refs to one place share a node. */
static void clear_node_marks(cJSON *v)
{
    v->valueint = 0;
    if (cJSON_IsArray(v) || cJSON_IsObject(v)) {
        for (cJSON *child = v->child; child != NULL; child = child->next) {
            clear_node_marks(child);
        }
    }
}

static void add_token(struct buf *out, const char *token)
{
    buf_add_byte(out, '/');
    for (const char *at = token; *at != '\0'; at++) {
        if (*at == '~') {
            buf_add_cstr(out, "~0");
        } else if (*at == '/') {
            buf_add_cstr(out, "~1");
        } else {
            buf_add_byte(out, (uint8_t)*at);
        }
    }
}

/* Recursion is at most SCHEMA_DEPTH deep: a node's parent is nearer to the root. */
static void add_schema_path(const struct schema *s, uint32_t ix, struct buf *out)
{
    const struct node *node = &s->nodes[ix];

    if (node->parent == NODE_NONE) {
        buf_add_cstr(out, node->keyword);
        return;
    }
    add_schema_path(s, node->parent, out);
    add_token(out, node->keyword);
    if (node->key != NULL) {
        add_token(out, node->key);
    } else if (node->ix != NODE_NONE) {
        buf_printf(out, "/%u", node->ix);
    }
}

enum bt_code compile_error(struct compiler *k, const struct keyword_ctx *at, enum bt_code code,
                           const char *fmt, ...)
{
    char text[ERROR_TEXT];
    struct buf path;
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    buf_init(&path, (size_t)SCHEMA_BYTES * 2);
    add_schema_path(k->s, at->node, &path);
    if (at->keyword != NULL) {
        add_token(&path, at->keyword);
    }
    code = err_set(k->err, code, "%.180s: %s", buf_cstr(&path), text);
    buf_done(&path);
    return code;
}

enum bt_code compile_alloc(struct compiler *k, size_t n, size_t size, void **ret)
{
    *ret = arena_alloc(&k->s->arena, n * size);
    return *ret != NULL ? BT_OK : err_set(k->err, BT_NOMEM, "out of memory for a schema");
}

struct rule *compile_rule(struct compiler *k, const struct keyword_ctx *at)
{
    struct rule *rule = &k->rules[k->n_rules++];

    *rule = (struct rule){.kind = at->kind};
    return rule;
}

/* The arrays have room for every value, and a value becomes at most one node. */
static uint32_t add_node(struct schema *s, const struct node *node, cJSON *source)
{
    ASSERT(s->n_nodes < s->max_nodes);
    s->nodes[s->n_nodes] = *node;
    s->nodes[s->n_nodes].source = source;
    source->valueint = (int)++s->n_nodes;
    return s->n_nodes - 1;
}

enum bt_code compile_child(struct compiler *k, const struct keyword_ctx *at, const char *key,
                           uint32_t ix, cJSON *source, uint32_t *ret_node)
{
    struct node node = {.parent = at->node, .keyword = at->keyword, .key = key, .ix = ix};

    if (!cJSON_IsObject(source) && !cJSON_IsBool(source)) {
        return compile_error(k, at, BT_INVALID, "%s%s%sa schema is an object or a boolean",
                             key == NULL ? "" : "\"", key == NULL ? "" : key,
                             key == NULL ? "" : "\": ");
    }
    *ret_node =
        source->valueint != 0 ? (uint32_t)source->valueint - 1 : add_node(k->s, &node, source);
    return BT_OK;
}

/* $ref overrides its sibling keywords (draft 7, section 8.3). */
static enum bt_code read_ref(struct compiler *k, uint32_t ix, cJSON *value)
{
    struct keyword_ctx at = {.node = ix, .keyword = "$ref", .value = value};
    cJSON *target;
    const char *ref = value->valuestring;

    if (!cJSON_IsString(value)) {
        return compile_error(k, &at, BT_INVALID,
                             "expected a string, for example \"#/definitions/x\"");
    }
    if (strlen(ref) > SCHEMA_POINTER_BYTES) {
        return compile_error(k, &at, BT_LIMIT, "longer than %d bytes", SCHEMA_POINTER_BYTES);
    }
    if (ref[0] != '#' && ref[0] != '\0') {
        return compile_error(k, &at, BT_INVALID,
                             "\"%.80s\" leads outside of this schema, which is not supported; copy "
                             "its text under \"definitions\" and refer to \"#/definitions/NAME\"",
                             ref);
    }
    if (ref[0] == '#' && ref[1] != '/' && ref[1] != '\0') {
        return compile_error(k, &at, BT_INVALID,
                             "\"%.80s\" needs resolution by \"$id\", which is not supported; use a "
                             "JSON pointer such as \"#/definitions/NAME\"",
                             ref);
    }
    target = schema_pointer(k->s->tree, ref);
    if (target == NULL || (!cJSON_IsObject(target) && !cJSON_IsBool(target))) {
        return compile_error(k, &at, BT_INVALID, "\"%.160s\" %s", ref,
                             target == NULL ? "leads nowhere" : "does not lead to a schema");
    }
    k->s->nodes[ix].kind = NODE_REF;
    if (target->valueint != 0) {
        k->s->nodes[ix].ref = (uint32_t)target->valueint - 1;
    } else {
        struct node node = {.parent = NODE_NONE, .keyword = ref[0] == '\0' ? "#" : ref};
        k->s->nodes[ix].ref = add_node(k->s, &node, target);
    }
    return BT_OK;
}

static void sort_rules(struct rule *rules, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct rule moving = rules[i];
        uint32_t at = i;
        for (; at > 0 && rules[at - 1].kind > moving.kind; at--) {
            rules[at] = rules[at - 1];
        }
        rules[at] = moving;
    }
}

static enum bt_code compile_node(struct compiler *k, uint32_t ix)
{
    cJSON *source = k->s->nodes[ix].source;
    cJSON *ref = cJSON_GetObjectItemCaseSensitive(source, "$ref");
    enum bt_code code;
    void *kept;

    if (!cJSON_IsObject(source)) {
        k->s->nodes[ix].kind = cJSON_IsTrue(source) ? NODE_RULES : NODE_FALSE;
        return BT_OK;
    }
    if (ref != NULL) {
        return read_ref(k, ix, ref);
    }
    k->n_rules = 0;
    for (cJSON *v = source->child; v != NULL; v = v->next) {
        code = keyword_read(k, ix, v);
        if (code != BT_OK) {
            return code;
        }
    }
    sort_rules(k->rules, k->n_rules);
    code = compile_alloc(k, k->n_rules + 1, sizeof k->rules[0], &kept);
    if (code == BT_OK) {
        memcpy(kept, k->rules, k->n_rules * sizeof k->rules[0]);
        k->s->nodes[ix].rules = kept;
        k->s->nodes[ix].n_rules = k->n_rules;
    }
    return code;
}

/* Replaces a chain of $refs by one step. A chain that leads to itself has no meaning and is
 * rejected. */
static enum bt_code resolve_ref_chains(struct compiler *k)
{
    struct schema *s = k->s;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        uint32_t target = i;
        uint32_t hops = 0;
        while (s->nodes[target].kind == NODE_REF && hops++ <= s->n_nodes) {
            target = s->nodes[target].ref;
        }
        if (s->nodes[target].kind == NODE_REF) {
            struct keyword_ctx at = {.node = i, .keyword = "$ref"};
            return compile_error(k, &at, BT_INVALID, "leads back to itself");
        }
        s->nodes[i].ref = target;
    }
    return BT_OK;
}

static enum bt_code build(struct compiler *k, const cJSON *tree, uint32_t values)
{
    struct schema *s = k->s;
    struct node root = {.parent = NODE_NONE, .keyword = "#"};
    struct keyword_ctx at = {.node = 0};
    void *nodes = NULL;
    void *codes = NULL;

    s->max_nodes = values;
    s->tree = cJSON_Duplicate(tree, true);
    if (s->tree == NULL) {
        return err_set(k->err, BT_NOMEM, "out of memory for a schema");
    }
    clear_node_marks(s->tree);
    if (compile_alloc(k, values, sizeof *s->nodes, &nodes) != BT_OK ||
        compile_alloc(k, values, sizeof(pcre2_code *), &codes) != BT_OK) {
        return BT_NOMEM;
    }
    s->nodes = nodes;
    s->codes = codes;
    (void)add_node(s, &root, s->tree);
    if (!cJSON_IsObject(s->tree) && !cJSON_IsBool(s->tree)) {
        return compile_error(k, &at, BT_INVALID, "a schema is an object or a boolean");
    }
    for (uint32_t i = 0; i < s->n_nodes;
         i++) { /* n_nodes grows in the loop: this is the worklist */
        enum bt_code code = compile_node(k, i);
        if (code != BT_OK) {
            return code;
        }
    }
    return resolve_ref_chains(k);
}

static enum bt_code compile(const struct cJSON *tree, bool exact, struct schema **ret,
                            struct bt_error *err)
{
    struct bt_error own_err = {0};
    struct compiler k = {.err = err != NULL ? err : &own_err, .exact = exact};
    struct schema_size size = {0};
    enum bt_code code;

    if (tree == NULL) {
        return err_set(err, BT_INVALID, "#: there is no schema");
    }
    code = check_size(tree, 1, &size, err);
    if (code != BT_OK) {
        return code;
    }
    k.s = calloc(1, sizeof *k.s);
    if (k.s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a schema");
    }
    code = build(&k, tree, size.values);
    if (code != BT_OK) {
        schema_free(k.s);
        return code;
    }
    *ret = k.s;
    return BT_OK;
}

enum bt_code schema_compile(const struct cJSON *tree, struct schema **ret, struct bt_error *err)
{
    return compile(tree, false, ret, err);
}

enum bt_code schema_compile_exact(const struct cJSON *tree, struct schema **ret,
                                  struct bt_error *err)
{
    return compile(tree, true, ret, err);
}

void schema_free(struct schema *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; i < s->n_codes; i++) {
        pcre2_code_free(s->codes[i]);
    }
    for (struct members *m = s->members; m != NULL; m = m->next) {
        map_done(&m->by_name);
    }
    cJSON_Delete(s->tree);
    arena_done(&s->arena);
    free(s);
}
