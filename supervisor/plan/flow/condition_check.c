/* The check of a condition when its plan is read. */
#include <string.h>

#include "protocol/base/suggest.h"
#include "supervisor/plan/flow/condition_internal.h"

struct checking {
    condition_on_ref *on_ref;
    void *self;
    struct bt_error *err;
    uint32_t tests;
};

bool condition_is_member(struct str name)
{
    return str_is(name, "when") || str_is(name, "if") || str_is(name, "condition") ||
           str_is(name, "onlyIf");
}

/* ---- references ---- */

static bool begins(struct str text, const char *word, struct str *ret_rest)
{
    const size_t n = strlen(word);
    if (text.len <= n || text.ptr[0] != word[0] || memcmp(text.ptr, word, n) != 0) {
        return false;
    }
    *ret_rest = (struct str){text.ptr + n, text.len - n};
    return true;
}

/* Names between single dots, without braces and control characters. */
static bool is_path(struct str path)
{
    size_t n = 0;
    for (size_t i = 0; i < path.len; i++) {
        const unsigned char c = (unsigned char)path.ptr[i];
        const bool brace = c == '{' || c == '}' || c == '[' || c == ']';
        if (c < 0x20 || c == 0x7f || brace || (c == '.' && n == 0)) {
            return false;
        }
        n = c == '.' ? 0 : n + 1;
    }
    return n > 0;
}

/* A word of forEach or repeat, alone or with a path. */
static bool is_scope(struct str text, bool checked)
{
    static const struct str words[] = {
        {"item", 4}, {"index", 5}, {"iteration", 9}, {"previous", 8}};
    for (size_t i = 0; i < 4 && text.len > 0; i++) {
        const size_t n = words[i].len;
        if (text.ptr[0] == words[i].ptr[0] && text.len >= n &&
            memcmp(text.ptr, words[i].ptr, n) == 0 &&
            (text.len == n || (text.ptr[n] == '.' && (checked || is_path(text))))) {
            return true;
        }
    }
    return false;
}

/* checked: it is known to be a reference, so its path is one. */
static bool read_ref(struct str text, bool checked, struct condition_ref *ret)
{
    static const char *const words[] = {[CONDITION_RESULT] = "results.",
                                        [CONDITION_STATUS] = "steps.",
                                        [CONDITION_INPUT] = "inputs.",
                                        [CONDITION_STATE] = "state."};
    const size_t end = strlen(".status");
    struct str rest;
    if (is_scope(text, checked)) {
        *ret = (struct condition_ref){CONDITION_SCOPE, text, text};
        return true;
    }
    for (int k = 0; k < 4; k++) {
        if (!begins(text, words[k], &rest) || (!checked && !is_path(rest))) {
            continue;
        }
        *ret = (struct condition_ref){(enum condition_kind)k, text, rest};
        if (k == CONDITION_STATUS) {
            const bool status =
                rest.len > end && memcmp(rest.ptr + rest.len - end, ".status", end) == 0;
            ret->name.len -= status ? end : 0;
            return status;
        }
        return true;
    }
    return false;
}

bool condition_ref_read(struct str text, struct condition_ref *ret)
{
    return read_ref(text, false, ret);
}

bool condition_ref_split(struct str text, struct condition_ref *ret)
{
    return read_ref(text, true, ret);
}

static enum bt_code no_reference(struct checking *c, struct str key)
{
    struct str rest;
    const int n = (int)(key.len < 60 ? key.len : 60);
    if (begins(key, "steps.", &rest)) {
        return err_set(c->err, BT_INVALID,
                       "\"%.*s\": of a step its status can be tested (steps.<stepId>.status), or "
                       "its result (results.<stepId>.<path>)",
                       n, key.ptr);
    }
    if (memchr(key.ptr, '{', key.len) != NULL) {
        return err_set(c->err, BT_INVALID,
                       "\"%.*s\": a reference of a condition has no braces; write "
                       "results.<stepId>.<path>",
                       n, key.ptr);
    }
    if (str_is(key, "and") || str_is(key, "or")) {
        return err_set(c->err, BT_INVALID,
                       "\"%.*s\": conditions are joined by %s: [...]; the others are %s: [...] and "
                       "not: {...}",
                       n, key.ptr, key.len == 3 ? "all" : "any", key.len == 3 ? "any" : "all");
    }
    return err_set(c->err, BT_INVALID,
                   "\"%.*s\" is no reference; expected results.<stepId>.<path>, "
                   "steps.<stepId>.status, inputs.<name>, state.<path>, all, any or not",
                   n, key.ptr);
}

/* ---- tests ---- */

static enum bt_code bad_operand(struct checking *c, struct str ref, enum condition_test t,
                                const char *expected, struct doc got)
{
    char text[80];
    condition_describe(got, text, sizeof text);
    return err_set(c->err, BT_INVALID, "%.*s: %s: expected %s, got %s", STR_ARG(ref),
                   condition_test_name(t), expected, text);
}

static enum bt_code unknown_test(struct checking *c, struct str ref, struct str name)
{
    struct suggest near = suggest_start(name);
    const int n = (int)(name.len < 40 ? name.len : 40);
    for (int t = 0; t < TEST_VALUE; t++) {
        suggest_offer(&near, str_from(condition_test_name((enum condition_test)t)));
    }
    if (near.best.ptr != NULL) {
        return err_set(c->err, BT_INVALID, "%.*s: \"%.*s\" is no test; did you mean \"%.*s\"?",
                       STR_ARG(ref), n, name.ptr, STR_ARG(near.best));
    }
    return err_set(c->err, BT_INVALID, "%.*s: \"%.*s\" is no test; expected " CONDITION_TESTS,
                   STR_ARG(ref), n, name.ptr);
}

/* What a status may be compared with. */
static bool is_end(struct doc v)
{
    const struct str s = doc_string(v);
    return str_is(s, "completed") || str_is(s, "failed") || str_is(s, "skipped") ||
           str_is(s, "cancelled");
}

static enum bt_code check_status(struct checking *c, struct str ref, enum condition_test t,
                                 struct doc operand)
{
    const bool one = t == TEST_EQ || t == TEST_NE;
    bool fits = one ? is_end(operand) : true;
    for (uint32_t i = 0; t == TEST_IN && fits && i < doc_head(operand).n; i++) {
        fits = is_end(doc_at(operand, i));
    }
    return fits ? BT_OK
                : bad_operand(c, ref, t, "one of completed, failed, skipped, cancelled", operand);
}

static enum bt_code check_operand(struct checking *c, struct str ref, enum condition_test t,
                                  struct doc operand)
{
    const struct doc_head head = doc_head(operand);
    switch (t) {
    case TEST_IN:
        if (head.kind != DOC_ARRAY || head.n == 0) {
            return bad_operand(c, ref, t, "a list of values", operand);
        }
        return head.n <= CONDITION_IN_MAX
                   ? BT_OK
                   : err_set(c->err, BT_LIMIT, "%.*s: in: %u values, at most %d", STR_ARG(ref),
                             head.n, CONDITION_IN_MAX);
    case TEST_GT:
    case TEST_GTE:
    case TEST_LT:
    case TEST_LTE:
        return is_number(head.kind) || head.kind == DOC_STR
                   ? BT_OK
                   : bad_operand(c, ref, t, "a number or a text", operand);
    case TEST_EXISTS:
        return head.kind == DOC_BOOL ? BT_OK : bad_operand(c, ref, t, "true or false", operand);
    case TEST_MATCHES:
        if (head.kind != DOC_STR) {
            return bad_operand(c, ref, t, "a pattern", operand);
        }
        break;
    case TEST_SCHEMA:
        if (head.kind != DOC_MAP && head.kind != DOC_BOOL) {
            return bad_operand(c, ref, t, "a JSON Schema", operand);
        }
        break;
    case TEST_EQ:
    case TEST_NE:
    case TEST_VALUE:
    case TEST_COUNT:
        return BT_OK;
    }
    const enum bt_code code = condition_operand_compiles(t, operand, c->err);
    if (code != BT_OK && code != BT_NOMEM) {
        (void)err_wrap(c->err, "%.*s: %s", STR_ARG(ref), condition_test_name(t));
    }
    return code;
}

static enum bt_code count_test(struct checking *c)
{
    return ++c->tests <= CONDITION_TESTS_MAX
               ? BT_OK
               : err_set(c->err, BT_LIMIT, "more than the %d tests of one condition",
                         CONDITION_TESTS_MAX);
}

static enum bt_code check_tests(struct checking *c, const struct condition_ref *ref,
                                struct doc tests)
{
    struct members m = members_of(tests);
    struct str name;
    struct doc operand;
    uint32_t others = 0;
    bool absent = false;
    bool filled = false;
    enum bt_code code = BT_OK;
    while (code == BT_OK && member_next(&m, &name, &operand)) {
        const enum condition_test t = condition_test_of(name);
        if (t == TEST_VALUE && ref->kind == CONDITION_INPUT) {
            filled = true;
            continue;
        }
        if (t >= TEST_VALUE) {
            return unknown_test(c, ref->text, name);
        }
        code = count_test(c);
        code = code == BT_OK ? check_operand(c, ref->text, t, operand) : code;
        if (code == BT_OK && ref->kind == CONDITION_STATUS) {
            code = check_status(c, ref->text, t, operand);
        }
        absent = absent || (t == TEST_EXISTS && !doc_head(operand).b);
        others += t == TEST_EXISTS ? 0 : 1;
    }
    if (code == BT_OK && ref->kind == CONDITION_INPUT && !filled) {
        return err_set(c->err, BT_INVALID,
                       "%.*s: a plan has no inputs; a recipe has them, and its plans are made from "
                       "it",
                       STR_ARG(ref->text));
    }
    if (code == BT_OK && absent && others > 0) {
        return err_set(c->err, BT_INVALID,
                       "%.*s: exists: false stands alone; what does not exist has no other test",
                       STR_ARG(ref->text));
    }
    if (code == BT_OK && others == 0 && doc_get(tests, STR_LIT("exists")).ptr == NULL) {
        return err_set(c->err, BT_INVALID, "%.*s: has no test; expected " CONDITION_TESTS,
                       STR_ARG(ref->text));
    }
    return code;
}

/* ---- conditions ---- */

static enum bt_code check_node(struct checking *c, struct doc node, uint32_t depth);

static enum bt_code check_list(struct checking *c, const char *word, struct doc list,
                               uint32_t depth)
{
    const struct doc_head head = doc_head(list);
    char text[80];
    enum bt_code code = BT_OK;
    if (head.kind != DOC_ARRAY || head.n == 0) {
        condition_describe(list, text, sizeof text);
        return err_set(c->err, BT_INVALID, "%s: expected a list of conditions, got %s", word, text);
    }
    struct doc_cursor at = doc_cursor(list);
    struct doc_head first;
    (void)doc_next(&at, &first);
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        code = check_node(c, doc_skip(&at), depth);
    }
    return code;
}

static enum bt_code check_member(struct checking *c, struct str key, struct doc value,
                                 uint32_t depth)
{
    struct condition_ref ref;
    if (str_is(key, "all") || str_is(key, "any")) {
        return check_list(c, str_is(key, "all") ? "all" : "any", value, depth + 1);
    }
    if (str_is(key, "not")) {
        return check_node(c, value, depth + 1);
    }
    if (!condition_ref_read(key, &ref)) {
        return no_reference(c, key);
    }
    if (c->on_ref != NULL) {
        c->on_ref(c->self, &ref);
    }
    if (doc_head(value).kind == DOC_MAP) {
        return check_tests(c, &ref, value);
    }
    if (ref.kind == CONDITION_INPUT) { /* a recipe turns it into {eq, value} */
        return check_tests(c, &ref, (struct doc){(const uint8_t *)"\x80", 1});
    }
    const enum bt_code code = count_test(c);
    return code == BT_OK && ref.kind == CONDITION_STATUS ? check_status(c, key, TEST_EQ, value)
                                                         : code;
}

static enum bt_code check_node(struct checking *c, struct doc node, uint32_t depth)
{
    struct members m = members_of(node);
    struct str key;
    struct doc value;
    char text[80];
    enum bt_code code = BT_OK;
    if (depth > CONDITION_DEPTH_MAX) {
        return err_set(c->err, BT_LIMIT, "all, any and not stand more than %d deep in each other",
                       CONDITION_DEPTH_MAX);
    }
    if (m.left == 0) {
        condition_describe(node, text, sizeof text);
        return err_set(c->err, BT_INVALID,
                       "expected a condition such as {\"results.check.count\": {\"gt\": 3}}, got "
                       "%s",
                       text);
    }
    while (code == BT_OK && member_next(&m, &key, &value)) {
        code = key.ptr == NULL ? err_set(c->err, BT_INVALID, "a name of a condition is no text")
                               : check_member(c, key, value, depth);
    }
    return code;
}

enum bt_code condition_check(struct doc when, condition_on_ref *on_ref, void *self,
                             struct bt_error *err)
{
    struct checking c = {.on_ref = on_ref, .self = self, .err = err};
    if (when.len > CONDITION_BYTES_MAX) {
        return err_set(err, BT_LIMIT, "%zu bytes, at most %d", when.len, CONDITION_BYTES_MAX);
    }
    return check_node(&c, when, 0);
}
