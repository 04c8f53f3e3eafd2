#include "agents/llm/model/answer_parser.h"

#include <cjson/cJSON.h>

#include "agents/llm/model/null_rules.h"
#include "protocol/jsonschema/schema.h"
#include "protocol/wire/doc.h"

enum { PROBLEMS_SHOWN = 3, STRICT_DEPTH = 10 };

/* ---- wrappings ---- */

static bool starts(struct str s, const char *with)
{
    size_t n = strlen(with);
    return s.len >= n && memcmp(s.ptr, with, n) == 0;
}

static struct str behind(struct str s, size_t n)
{
    return (struct str){s.ptr + n, s.len - n};
}

static const char *find(struct str s, const char *what)
{
    return s.len == 0 ? NULL : memmem(s.ptr, s.len, what, strlen(what));
}

/* The text after the reasoning. Only reasoning at the beginning is removed: a tag within an answer
 * may be part of it. */
static struct str skip_thinking(struct str s, const char *open, const char *close)
{
    const char *end;

    if (starts(s, open)) {
        end = find(s, close);
        if (end == NULL) {
            /* the reasoning has no end, so there is no answer */
            return (struct str){s.ptr + s.len, 0};
        }
        return str_trimmed(behind(s, (size_t)(end - s.ptr) + strlen(close)));
    }
    return s;
}

struct str answer_parser_clean(struct str text)
{
    const char *lone;

    if (starts(text, "\xef\xbb\xbf")) {
        text = behind(text, 3);
    }
    text = str_trimmed(text);
    for (size_t before = text.len + 1; text.len < before;) {
        before = text.len;
        text = skip_thinking(text, "<think>", "</think>");
        text = skip_thinking(text, "<thinking>", "</thinking>");
    }
    /* Some chat templates put the opening tag into the prompt: the output has only the closing
     * one. */
    lone = find(text, "</think>");
    if (lone != NULL) {
        const char *open = find(text, "<think>");
        if (open == NULL || open > lone) {
            text = str_trimmed(behind(text, (size_t)(lone - text.ptr) + strlen("</think>")));
        }
    }
    return text;
}

/* ---- the one JSON value ---- */

/* The length of the balanced value at the beginning of s; 0 when it has no end. */
static size_t balanced(struct str s)
{
    size_t depth = 0;
    bool quoted = false;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
            if (depth == 0) {
                return i + 1;
            }
        }
    }
    return 0;
}

static bool opens(char c)
{
    return c == '{' || c == '[';
}

struct search {
    cJSON *found;
    uint32_t values;
    bool cut;              /* a value has no end */
    struct bt_error first; /* why the first candidate is not a value */
    bool tried;
};

/* Arrays count only when the text has no other: prose has [1] and [sic]. */
static void try_one(struct search *s, struct str text)
{
    cJSON *value = NULL;
    struct bt_error why;

    if (json_parse(text, &value, &why) != BT_OK) {
        if (!s->tried) {
            s->first = why;
            s->tried = true;
        }
        return;
    }
    s->values++;
    if (s->found == NULL) {
        s->found = value;
    } else {
        cJSON_Delete(value);
    }
}

static void search_objects(struct search *s, struct str text)
{
    while (text.len > 0 && s->values < 2) {
        const char *at = memchr(text.ptr, '{', text.len);
        size_t n;
        if (at == NULL) {
            return;
        }
        text = behind(text, (size_t)(at - text.ptr));
        n = balanced(text);
        if (n == 0) {
            s->cut = true;
            return;
        }
        try_one(s, (struct str){text.ptr, n});
        text = behind(text, n);
    }
}

enum bt_code answer_parser_json(struct str text, cJSON **ret, struct bt_error *err)
{
    struct search s = {0};
    enum bt_code code = BT_OK;

    text = str_trimmed(text);
    if (text.len > 0 && opens(text.ptr[0]) && balanced(text) == text.len) {
        try_one(&s, text);
    }
    if (s.found == NULL) {
        search_objects(&s, text);
    }
    if (s.values == 1 && !s.cut) {
        *ret = s.found;
        return BT_OK;
    }
    if (s.values > 1) {
        code = err_set(err, BT_INVALID, "expected one JSON object, got more than one");
    } else if (s.cut) {
        code = err_set(err, BT_INVALID, "the JSON object is cut off: it never ends");
    } else if (s.tried) {
        code = err_set(err, BT_INVALID, "the JSON cannot be read: %s", s.first.msg);
    } else {
        code = err_set(err, BT_INVALID, "expected a JSON object, got none");
    }
    cJSON_Delete(s.found);
    return code;
}

/* ---- the schema ---- */

static enum bt_code fits(const struct schema *schema, const cJSON *value, struct bt_error *err)
{
    struct schema_problem problems[PROBLEMS_SHOWN];
    uint32_t n = 0;
    struct buf all;
    enum bt_code code = schema_check(schema, value, problems, PROBLEMS_SHOWN, &n, err);

    if (code != BT_INVALID) {
        return code;
    }
    buf_init(&all, 4096);
    for (uint32_t i = 0; i < n && i < PROBLEMS_SHOWN; i++) {
        buf_printf(&all, "%s%s %s", i > 0 ? "; " : "",
                   problems[i].path[0] != 0 ? problems[i].path : "the value", problems[i].message);
    }
    code = err_set(err, BT_INVALID, "%.480s", buf_cstr(&all));
    buf_done(&all);
    return code;
}

/* The error describes the value before repair. */
static enum bt_code fits_or_repaired(const struct schema *schema, const cJSON *tree, cJSON *value,
                                     struct bt_error *err)
{
    enum bt_code code = fits(schema, value, err);

    if (code == BT_INVALID && tree != NULL) {
        if (!null_rules_apply(value, tree)) {
            return err_set(err, BT_NOMEM, "out of memory for an answer");
        }
        code = fits(schema, value, NULL) == BT_OK ? BT_OK : code;
    }
    return code;
}

/* Unwraps {"name", "arguments": {} or "{}"}: moves the arguments out of the tree when they fit. */
static cJSON *unwrap(cJSON *value, const struct schema *schema, const cJSON *tree)
{
    static const char *const members[] = {"arguments", "parameters", "input"};
    cJSON *inner = NULL;

    if (cJSON_GetObjectItemCaseSensitive(value, "name") == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof members / sizeof members[0] && inner == NULL; i++) {
        cJSON *at = cJSON_GetObjectItemCaseSensitive(value, members[i]);
        if (cJSON_IsObject(at)) {
            inner = cJSON_Duplicate(at, true);
        } else if (cJSON_IsString(at)) {
            (void)!answer_parser_json(str_from(at->valuestring), &inner, NULL);
        }
        if (inner != NULL && fits_or_repaired(schema, tree, inner, NULL) != BT_OK) {
            cJSON_Delete(inner);
            inner = NULL;
        }
    }
    return inner;
}

enum bt_code answer_parser_fit(struct str text, const struct schema *schema, const cJSON *tree,
                               cJSON **ret, struct bt_error *err)
{
    cJSON *value = NULL;
    cJSON *inner;
    enum bt_code code = answer_parser_json(text, &value, err);

    if (code == BT_OK) {
        code = fits_or_repaired(schema, tree, value, err);
    }
    if (code == BT_INVALID && value != NULL) {
        inner = unwrap(value, schema, tree);
        if (inner != NULL) {
            cJSON_Delete(value);
            value = inner;
            code = BT_OK;
        }
    }
    if (code == BT_OK) {
        *ret = value;
        return BT_OK;
    }
    cJSON_Delete(value);
    return code;
}

/* ---- strict schemas ---- */

bool answer_parser_lists(const cJSON *list, const char *name)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item) && strcmp(item->valuestring, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool all_required(const cJSON *properties, const cJSON *required)
{
    const cJSON *p = NULL;

    cJSON_ArrayForEach(p, properties)
    {
        if (!answer_parser_lists(required, p->string)) {
            return false;
        }
    }
    return true;
}

static bool strict_node(const cJSON *node, unsigned depth)
{
    static const char *const failed[] = {"default",           "allOf", "not", "if",
                                         "patternProperties", "oneOf"};
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(node, "type");
    const cJSON *properties = cJSON_GetObjectItemCaseSensitive(node, "properties");
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(node, "items");
    const cJSON *p = NULL;

    if (!cJSON_IsObject(node) || type == NULL || depth > STRICT_DEPTH) {
        return cJSON_GetObjectItemCaseSensitive(node, "enum") != NULL && depth <= STRICT_DEPTH;
    }
    for (size_t i = 0; i < sizeof failed / sizeof failed[0]; i++) {
        if (cJSON_GetObjectItemCaseSensitive(node, failed[i]) != NULL) {
            return false;
        }
    }
    if (cJSON_IsString(type) && strcmp(type->valuestring, "object") == 0 &&
        (!cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(node, "additionalProperties")) ||
         !all_required(properties, cJSON_GetObjectItemCaseSensitive(node, "required")))) {
        return false;
    }
    cJSON_ArrayForEach(p, properties)
    {
        if (!strict_node(p, depth + 1)) {
            return false;
        }
    }
    return items == NULL || strict_node(items, depth + 1);
}

bool answer_parser_is_strict(const cJSON *schema)
{
    return strict_node(schema, 0);
}
