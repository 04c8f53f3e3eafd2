/* What the check and the evaluation of conditions share. Private to this room. */
#ifndef PLAN_CONDITION_INTERNAL_H
#define PLAN_CONDITION_INTERNAL_H

#include "supervisor/plan/flow/condition.h"

enum condition_test {
    TEST_EQ,
    TEST_NE,
    TEST_IN,
    TEST_GT,
    TEST_GTE,
    TEST_LT,
    TEST_LTE,
    TEST_EXISTS,
    TEST_MATCHES,
    TEST_SCHEMA,
    TEST_VALUE, /* of an input, written by the recipe: no test */
    TEST_COUNT
};

/* TEST_COUNT: no test has the name. */
enum condition_test condition_test_of(struct str name);
const char *condition_test_name(enum condition_test t);
/* The names of all tests, for messages. */
#define CONDITION_TESTS "eq, ne, in, gt, gte, lt, lte, exists, matches, schema"

/* Whether it is a name of the condition of a step: when, or another one. */
bool condition_is_member(struct str name);

/* condition_ref_read of a reference of a condition that was checked: it does not check it again. */
bool condition_ref_split(struct str text, struct condition_ref *ret);

/* The members of a map in turn. */
struct members {
    struct doc_cursor at;
    uint32_t left;
    bool open; /* of member_open: the cursor stands before the value that it gave */
};
static inline struct members members_of(struct doc map)
{
    struct members m = {.at = doc_cursor(map)};
    struct doc_head head;
    if (map.ptr != NULL && doc_next(&m.at, &head) && head.kind == DOC_MAP) {
        m.left = head.n;
    }
    return m;
}
static inline bool member_next(struct members *m, struct str *key, struct doc *value)
{
    if (m->left == 0) {
        return false;
    }
    m->left--;
    *key = doc_key(&m->at);
    *value = doc_skip(&m->at);
    return true;
}
/* The same without an end of the value: it is not walked over until the next member is asked for,
 * and the last one never. */
static inline bool member_open(struct members *m, struct str *key, struct doc *value)
{
    if (m->left == 0) {
        return false;
    }
    if (m->open) {
        (void)doc_skip(&m->at);
    }
    m->left--;
    m->open = true;
    *key = doc_key(&m->at);
    *value = (struct doc){m->at.at, (size_t)(m->at.end - m->at.at)};
    return true;
}

static inline bool is_number(enum doc_kind k)
{
    return k == DOC_INT || k == DOC_UINT || k == DOC_FLOAT;
}

/* Whether the value passes one test that is neither EXISTS nor VALUE. BT_INVALID: it is of a type
 * that the test does not fit. */
BT_MUST_CHECK enum bt_code condition_test_holds(enum condition_test t, struct doc operand,
                                                struct doc value, bool *ret, struct bt_error *err);
/* Whether the pattern or the schema can be used. */
BT_MUST_CHECK enum bt_code condition_operand_compiles(enum condition_test t, struct doc operand,
                                                      struct bt_error *err);
enum { DESCRIBE_MIN = 32 };
/* Text for messages: the value as JSON, or the beginning of it, in at most `size` bytes with the
 * zero at its end, of which there are DESCRIBE_MIN or more. Returns its length. */
size_t condition_describe(struct doc value, char *ret, size_t size);
#endif
