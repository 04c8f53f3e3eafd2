/* The evaluation of a condition that was checked: bounded by its size, left to right. */
#include <string.h>

#include "supervisor/plan/flow/condition_internal.h"

/* References whose value was described, to describe each once. */
enum { TOLD_MAX = 16, REF_BYTES_MAX = 200, VALUE_BYTES_MAX = 100 };

struct evaluation {
    condition_value *value;
    void *self;
    struct buf *tested;
    size_t tested_at;
    struct bt_error *err;
    struct str told[TOLD_MAX];
    uint32_t told_n; /* also of those that found no place */
};

/* Two branches of a switch test one value. */
static bool is_told(const struct evaluation *e, struct str ref)
{
    for (uint32_t i = 0; i < e->told_n && i < TOLD_MAX; i++) {
        if (str_eq(e->told[i], ref)) {
            return true;
        }
    }
    return false;
}

/* What was tested goes into the event of the skip, so it is short. */
static void tell(struct evaluation *e, struct str ref, struct doc value)
{
    static const char is[] = " is ";
    char line[2 + REF_BYTES_MAX + sizeof is + VALUE_BYTES_MAX];
    const size_t from = e->told_n == 0 ? 2 : 0; /* the first has nothing before it */
    size_t n = 2;
    if (is_told(e, ref)) {
        return;
    }
    memcpy(line, "; ", n);
    const size_t ref_n = ref.len < REF_BYTES_MAX ? ref.len : REF_BYTES_MAX;
    memcpy(line + n, ref.ptr, ref_n);
    n += ref_n;
    memcpy(line + n, is, sizeof is - 1);
    n += sizeof is - 1;
    n += condition_describe(value, line + n, VALUE_BYTES_MAX);
    if (e->tested->len - e->tested_at + n - from <= CONDITION_TESTED_MAX) {
        buf_add(e->tested, line + from, n - from);
        e->told[e->told_n % TOLD_MAX] = ref;
        e->told_n++;
    }
}

static enum bt_code no_value(struct evaluation *e, struct str ref)
{
    return err_set(e->err, BT_INVALID,
                   "%.*s: there is no such value; test it with exists first, or name what the "
                   "result has",
                   STR_ARG(ref));
}

static enum bt_code find(struct evaluation *e, const struct condition_ref *ref, struct doc tests,
                         struct doc *ret)
{
    if (ref->kind != CONDITION_INPUT) {
        return e->value(e->self, ref, ret, e->err);
    }
    *ret = doc_get(tests, STR_LIT("value"));
    return BT_OK;
}

static bool exists(struct doc value)
{
    return value.ptr != NULL && doc_head(value).kind != DOC_NIL;
}

static enum bt_code one_test(struct evaluation *e, struct str ref, enum condition_test t,
                             struct doc operand, struct doc value, bool *ret)
{
    const enum bt_code code = condition_test_holds(t, operand, value, ret, e->err);
    if (code == BT_INVALID) {
        (void)err_wrap(e->err, "%.*s", STR_ARG(ref));
    }
    return code;
}

static enum bt_code run_tests(struct evaluation *e, struct str ref, struct doc tests,
                              struct doc value, bool *ret)
{
    const struct doc wanted = doc_get(tests, STR_LIT("exists"));
    struct members m = members_of(tests);
    struct str name;
    struct doc operand;
    enum bt_code code = BT_OK;
    *ret = true;
    if (wanted.ptr != NULL && doc_head(wanted).b != exists(value)) {
        *ret = false;
        return BT_OK;
    }
    if (wanted.ptr != NULL && !exists(value)) {
        return BT_OK;
    }
    if (value.ptr == NULL) {
        return no_value(e, ref);
    }
    while (code == BT_OK && *ret && member_next(&m, &name, &operand)) {
        const enum condition_test t = condition_test_of(name);
        if (t != TEST_EXISTS && t != TEST_VALUE) {
            code = one_test(e, ref, t, operand, value, ret);
        }
    }
    return code;
}

static enum bt_code reference(struct evaluation *e, struct str key, struct doc tests, bool *ret)
{
    struct condition_ref ref;
    struct doc value = {NULL, 0};
    if (!condition_ref_split(key, &ref)) {
        return err_set(e->err, BT_INVALID, "%.*s is no reference", STR_ARG(key));
    }
    const enum bt_code code = find(e, &ref, tests, &value);
    if (code != BT_OK) {
        return code;
    }
    tell(e, key, value);
    if (doc_head(tests).kind == DOC_MAP) {
        return run_tests(e, key, tests, value, ret);
    }
    return value.ptr == NULL ? no_value(e, key) : one_test(e, key, TEST_EQ, tests, value, ret);
}

static enum bt_code node(struct evaluation *e, struct doc when, bool *ret);

static enum bt_code list(struct evaluation *e, struct doc conditions, bool all, bool *ret)
{
    struct doc_cursor at = doc_cursor(conditions);
    struct doc_head head;
    enum bt_code code = BT_OK;
    *ret = all;
    if (!doc_next(&at, &head)) {
        return BT_OK;
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK && *ret == all; i++) {
        const struct doc from_here = {at.at, (size_t)(at.end - at.at)};
        code = node(e, from_here, ret);
        if (i + 1 < head.n && code == BT_OK && *ret == all) {
            (void)doc_skip(&at);
        }
    }
    return code;
}

static enum bt_code node(struct evaluation *e, struct doc when, bool *ret)
{
    struct members m = members_of(when);
    struct str key;
    struct doc value;
    enum bt_code code = BT_OK;
    *ret = true;
    while (code == BT_OK && *ret && member_open(&m, &key, &value)) {
        const bool word = key.len == 3; /* no reference is as short */
        if (word && (str_is(key, "all") || str_is(key, "any"))) {
            code = list(e, value, str_is(key, "all"), ret);
        } else if (word && str_is(key, "not")) {
            code = node(e, value, ret);
            *ret = !*ret;
        } else {
            code = reference(e, key, value, ret);
        }
    }
    return code;
}

enum bt_code condition_evaluate(struct doc when, condition_value *value, void *self, bool *ret,
                                struct buf *tested, struct bt_error *err)
{
    struct evaluation e; /* without zeros in told: most conditions have one reference */
    e.value = value;
    e.self = self;
    e.tested = tested;
    e.tested_at = tested->len;
    e.err = err;
    e.told_n = 0;
    return node(&e, when, ret);
}
