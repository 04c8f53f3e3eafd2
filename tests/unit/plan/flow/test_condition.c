/* Conditions: what is refused and how it is told, and every test over values. */
#include <stdio.h>
#include <string.h>

#include "supervisor/plan/flow/condition.h"
#include "supervisor/plan/flow/inputs.h"
#include "tests/support/cmocka.h"

/* JSON with ' for ", as msgpack. */
static struct doc doc_of(struct buf *out, const char *text)
{
    char json[65536];
    struct bt_error err;
    assert_true(strlen(text) < sizeof json);
    (void)snprintf(json, sizeof json, "%s", text);
    for (char *p = json; *p != '\0'; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    buf_init(out, 1024 * 1024);
    const enum bt_code code = json_to_doc(str_from(json), NULL, out, &err);
    assert_string_equal(code == BT_OK ? "" : err.msg, "");
    return doc_from_buf(out);
}

static struct bt_error why;

static const char *refused(const char *when)
{
    struct buf out;
    const enum bt_code code = condition_check(doc_of(&out, when), NULL, NULL, &why);
    buf_done(&out);
    assert_true(code == BT_OK || code == BT_LIMIT || code == BT_INVALID);
    assert_true(code == BT_OK || why.code == code);
    return code == BT_OK ? "" : why.msg;
}

static void bad_conditions_name_the_place_and_what_would_be_right(void **state)
{
    static const struct {
        const char *when, *says;
    } rows[] = {
        {"{}", "expected a condition such as {\"results.check.count\": {\"gt\": 3}}, got {}"},
        {"'results.a > 3'", "expected a condition such as {\"results.check.count\": {\"gt\": 3}}, "
                            "got \"results.a > 3\""},
        {"{'result.a': 1}", "\"result.a\" is no reference; expected results.<stepId>.<path>, "
                            "steps.<stepId>.status, inputs.<name>, state.<path>, all, any or not"},
        {"{'{{results.a}}': 1}", "\"{{results.a}}\": a reference of a condition has no braces; "
                                 "write results.<stepId>.<path>"},
        {"{'steps.a.result': 1}",
         "\"steps.a.result\": of a step its status can be tested (steps.<stepId>.status), or its "
         "result (results.<stepId>.<path>)"},
        {"{'results.a': {'gtt': 1}}", "results.a: \"gtt\" is no test; did you mean \"gt\"?"},
        {"{'results.a': {'between': 1}}",
         "results.a: \"between\" is no test; expected eq, ne, in, gt, gte, lt, lte, exists, "
         "matches, schema"},
        {"{'results.a': {}}", "results.a: has no test; expected eq, ne, in, gt, gte, lt, lte, "
                              "exists, matches, schema"},
        {"{'results.a': {'gt': true}}", "results.a: gt: expected a number or a text, got true"},
        {"{'results.a': {'in': 3}}", "results.a: in: expected a list of values, got 3"},
        {"{'results.a': {'exists': 'yes'}}",
         "results.a: exists: expected true or false, got \"yes\""},
        {"{'results.a': {'exists': false, 'gt': 3}}",
         "results.a: exists: false stands alone; what does not exist has no other test"},
        {"{'steps.a.status': 'done'}",
         "steps.a.status: eq: expected one of completed, failed, skipped, cancelled, got \"done\""},
        {"{'inputs.mode': {'eq': 'x'}}",
         "inputs.mode: a plan has no inputs; a recipe has them, and "
         "its plans are made from it"},
        {"{'all': {}}", "all: expected a list of conditions, got {}"},
        {"{'any': []}", "any: expected a list of conditions, got []"},
        {"{'not': 7}",
         "expected a condition such as {\"results.check.count\": {\"gt\": 3}}, got 7"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(refused(rows[i].when), rows[i].says);
    }
    assert_non_null(strstr(refused("{'results.a': {'matches': '('}}"), "results.a: matches: "));
    assert_non_null(
        strstr(refused("{'results.a': {'schema': {'type': 'strin'}}}"), "results.a: schema: "));
}

/* A condition with n tests. */
static const char *tests(uint32_t n)
{
    static char text[65536];
    size_t at = (size_t)snprintf(text, sizeof text, "{'all': [");
    for (uint32_t i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s{'results.a': %u}", i > 0 ? "," : "",
                               i);
    }
    (void)snprintf(text + at, sizeof text - at, "]}");
    return text;
}

static const char *deep(uint32_t n)
{
    static char text[1024];
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "{'not': ");
    }
    at += (size_t)snprintf(text + at, sizeof text - at, "{'results.a': 1}");
    for (uint32_t i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "}");
    }
    return text;
}

static const char *listed(uint32_t n)
{
    static char text[65536];
    size_t at = (size_t)snprintf(text, sizeof text, "{'results.a': {'in': [");
    for (uint32_t i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u", i > 0 ? "," : "", i);
    }
    (void)snprintf(text + at, sizeof text - at, "]}}");
    return text;
}

static const char *long_text(uint32_t n)
{
    static char text[65536];
    (void)snprintf(text, sizeof text, "{'results.a': '%0*d'}", (int)n, 0);
    return text;
}

static void caps_hold_at_n_and_refuse_n_plus_1(void **state)
{
    (void)state;
    assert_string_equal(refused(tests(CONDITION_TESTS_MAX)), "");
    assert_string_equal(refused(tests(CONDITION_TESTS_MAX + 1)),
                        "more than the 64 tests of one condition");
    assert_string_equal(refused(deep(CONDITION_DEPTH_MAX)), "");
    assert_string_equal(refused(deep(CONDITION_DEPTH_MAX + 1)),
                        "all, any and not stand more than 6 deep in each other");
    assert_string_equal(refused(listed(CONDITION_IN_MAX)), "");
    assert_string_equal(refused(listed(CONDITION_IN_MAX + 1)),
                        "results.a: in: 257 values, at most 256");
    const uint32_t around = 1 + 10 + 3; /* the heads and the name */
    assert_string_equal(refused(long_text(CONDITION_BYTES_MAX - around)), "");
    assert_string_equal(refused(long_text(CONDITION_BYTES_MAX - around + 1)),
                        "16385 bytes, at most 16384");
}

/* ---- evaluation ---- */

/* The values: a map by the names of references. */
static enum bt_code value_of(void *self, const struct condition_ref *ref, struct doc *ret,
                             struct bt_error *err)
{
    const struct doc *values = self;
    (void)err;
    *ret = doc_get(*values, ref->text);
    return BT_OK;
}

static struct buf tested;

/* 't', 'f', or '!' for no verdict. */
static char verdict(const char *when, const char *values)
{
    struct buf w;
    struct buf v;
    struct doc condition = doc_of(&w, when);
    struct doc of = doc_of(&v, values);
    bool holds = false;
    assert_int_equal(condition_check(condition, NULL, NULL, &why), BT_OK);
    buf_clear(&tested);
    const enum bt_code code = condition_evaluate(condition, value_of, &of, &holds, &tested, &why);
    buf_done(&w);
    buf_done(&v);
    return code != BT_OK ? '!' : holds ? 't' : 'f';
}

#define VALUES                                                                                     \
    "{'results.n': 7, 'results.f': 7.5, 'results.neg': -3, 'results.big': 18446744073709551615,"   \
    "'results.least': -9007199254740993,"                                                          \
    "'results.s': 'Ada', 'results.l': [1, 2], 'results.m': {'a': 1, 'b': 2}, 'results.z': null,"   \
    "'results.t': true, 'steps.a.status': 'failed', 'state.k': 'v'}"

static void every_test_over_every_kind_of_value(void **state)
{
    static const struct {
        const char *when;
        char is;
    } rows[] = {
        {"{'results.n': 7}", 't'},
        {"{'results.n': 7.0}", 't'},
        {"{'results.n': '7'}", 'f'},
        {"{'results.n': {'ne': 8, 'gt': 6, 'gte': 7, 'lt': 8, 'lte': 7}}", 't'},
        {"{'results.n': {'gt': 7}}", 'f'},
        {"{'results.n': {'lt': 7}}", 'f'},
        {"{'results.f': {'gt': 7, 'lt': 8}}", 't'},
        {"{'results.neg': {'lt': 0, 'gt': -4}}", 't'},
        {"{'results.big': {'gt': 18446744073709551614}}", 't'},
        {"{'results.big': {'gt': 18446744073709551615}}", 'f'},
        /* Whole numbers are compared whole, also where a double has no place for them. */
        {"{'results.least': {'lt': -9007199254740992}}", 't'},
        {"{'results.least': {'gte': -9007199254740992}}", 'f'},
        {"{'results.least': {'gt': -9007199254740994, 'lt': 0}}", 't'},
        {"{'results.neg': {'lt': 18446744073709551615}}", 't'},
        {"{'results.big': {'gt': -1}}", 't'},
        {"{'results.neg': {'gt': -3.5, 'lt': -2.5}}", 't'},
        {"{'results.s': {'gt': ''}}", 't'}, /* any text comes after none */
        {"{'results.s': {'lte': ''}}", 'f'},
        {"{'results.s': {'gt': 'Ad', 'lt': 'Adb', 'matches': '^A.a$', 'in': ['x', 'Ada']}}", 't'},
        {"{'results.s': {'in': ['x', 'y']}}", 'f'},
        {"{'results.s': {'matches': 'x'}}", 'f'},
        {"{'results.l': [1, 2]}", 't'},
        {"{'results.l': {'schema': {'minItems': 2}}}", 't'},
        {"{'results.l': {'schema': {'minItems': 3}}}", 'f'},
        {"{'results.m': {'eq': {'b': 2, 'a': 1}}}", 't'},
        {"{'results.z': {'exists': false}}", 't'},
        {"{'results.z': {'exists': true}}", 'f'},
        {"{'results.z': null}", 't'},
        {"{'results.gone': {'exists': false}}", 't'},
        {"{'results.gone': {'exists': true, 'gt': 3}}", 'f'},
        {"{'results.n': {'exists': true, 'gt': 3}}", 't'},
        {"{'steps.a.status': {'in': ['failed', 'cancelled']}}", 't'},
        {"{'state.k': 'v'}", 't'},
        {"{'not': {'results.t': true}}", 'f'},
        {"{'all': [{'results.t': true}, {'results.n': 8}]}", 'f'},
        {"{'any': [{'results.n': 8}, {'results.t': true}]}", 't'},
        {"{'any': [{'results.n': 8}, {'results.n': 9}]}", 'f'},
        /* No verdict. */
        {"{'results.gone': 1}", '!'},
        {"{'results.gone': {'gt': 1}}", '!'},
        {"{'results.s': {'gt': 1}}", '!'},
        {"{'results.n': {'gt': 'a'}}", '!'},
        {"{'results.n': {'matches': '7'}}", '!'},
        {"{'results.z': {'gt': 1}}", '!'},
        /* No further than needed. */
        {"{'any': [{'results.t': true}, {'results.gone': 1}]}", 't'},
        {"{'all': [{'results.gone': {'exists': true}}, {'results.gone': 1}]}", 'f'},
        {"{'results.n': 8, 'results.gone': 1}", 'f'},
    };
    (void)state;
    buf_init(&tested, 8192);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char is = verdict(rows[i].when, VALUES);
        if (is != rows[i].is) {
            fail_msg("%s is %c, not %c: %s", rows[i].when, is, rows[i].is,
                     is == '!' ? why.msg : "");
        }
    }
    assert_int_equal(verdict("{'results.s': {'gt': 1}}", VALUES), '!');
    assert_string_equal(why.msg, "results.s: gt needs a number, got \"Ada\"");
    assert_int_equal(verdict("{'results.gone': {'gt': 1}}", VALUES), '!');
    assert_string_equal(why.msg, "results.gone: there is no such value; test it with exists first, "
                                 "or name what the result has");
    buf_done(&tested);
}

static void what_was_tested_is_told_and_bounded(void **state)
{
    char values[8192];
    (void)state;
    buf_init(&tested, 8192);
    assert_int_equal(verdict("{'results.n': 7, 'results.gone': {'exists': true}}", VALUES), 'f');
    assert_string_equal(buf_cstr(&tested), "results.n is 7; results.gone is missing");
    assert_int_equal(verdict("{'all': [{'not': {'results.n': 1}}, {'results.n': {'lt': 9}}, "
                             "{'results.n': {'gt': 8}}]}",
                             VALUES),
                     'f');
    assert_string_equal(buf_cstr(&tested), "results.n is 7");
    (void)snprintf(values, sizeof values, "{'results.a': '%04000d'}", 0);
    assert_int_equal(verdict("{'results.a': 'x'}", values), 'f');
    assert_true(tested.len < 150);
    assert_int_equal(verdict(tests(CONDITION_TESTS_MAX), "{'results.a': 0}"), 'f');
    assert_true(tested.len <= CONDITION_TESTED_MAX);
    buf_done(&tested);
}

static void a_recipe_writes_its_inputs_beside_the_tests(void **state)
{
    struct buf plan, values, schema, out, want;
    (void)state;
    buf_init(&out, 8192);
    const struct doc recipe = doc_of(
        &plan, "{'steps': [{'when': {'any': [{'inputs.mode': 'full'}, {'inputs.n': {'gt': 3}}]},"
               "'parameters': {'when': {'inputs.mode': 1}}}, {'if': {'inputs.o': {'exists': true}}}"
               "]}");
    const struct doc given = doc_of(&values, "{'mode': 'short', 'n': 5}");
    const struct doc says = doc_of(&schema, "{'properties': {'mode': {}, 'n': {}, 'o': {}}}");
    assert_int_equal(condition_fill_inputs(recipe, given, says, &out, &why), BT_OK);
    assert_true(doc_eq(
        doc_from_buf(&out),
        doc_of(&want,
               "{'steps': [{'when': {'any': [{'inputs.mode': {'eq': 'full', 'value': 'short'}},"
               "{'inputs.n': {'gt': 3, 'value': 5}}]}, 'parameters': {'when': {'inputs.mode': 1}}},"
               "{'if': {'inputs.o': {'exists': true, 'value': null}}}]}")));
    buf_init(&tested, 1024);
    assert_int_equal(verdict("{'inputs.n': {'gt': 3, 'value': 5}}", "{}"), 't');
    assert_int_equal(verdict("{'inputs.o': {'exists': true, 'value': null}}", "{}"), 'f');
    buf_done(&tested);
    buf_clear(&out);
    buf_done(&plan);
    const struct doc wrong = doc_of(&plan, "{'steps': [{'when': {'inputs.zzz': 1}}]}");
    assert_int_equal(condition_fill_inputs(wrong, given, says, &out, &why), BT_INVALID);
    assert_string_equal(why.msg, "when: inputs.zzz names no input of this recipe");
    buf_done(&plan);
    buf_done(&values);
    buf_done(&schema);
    buf_done(&want);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests_of[] = {
        cmocka_unit_test(bad_conditions_name_the_place_and_what_would_be_right),
        cmocka_unit_test(caps_hold_at_n_and_refuse_n_plus_1),
        cmocka_unit_test(every_test_over_every_kind_of_value),
        cmocka_unit_test(what_was_tested_is_told_and_bounded),
        cmocka_unit_test(a_recipe_writes_its_inputs_beside_the_tests),
    };
    return cmocka_run_group_tests(tests_of, NULL, NULL);
}
