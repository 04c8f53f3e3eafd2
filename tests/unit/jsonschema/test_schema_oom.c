/* The i-th allocation fails, for every i: BT_NOMEM or a correct answer, and nothing is left. */
#include "tests/support/memory.h"
#include "tests/unit/jsonschema/schema_test.h"

static const char *const SCHEMA =
    "{'type':'object','properties':{'a':{'enum':[1,2]},'b':{'items':[{'pattern':'^x'}],'"
    "uniqueItems':true},"
    "'c':{'$ref':'#/definitions/t'},'d':{'anyOf':[{'type':'null'},{'minLength':3}]}},"
    "'patternProperties':{'^z':{'const':{'k':[1]}}},'additionalProperties':false,"
    "'dependencies':{'a':['b'],'b':{'required':['c']}},'definitions':{'t':{'type':'object'}}}";

static const char *const INSTANCE = "{'a':3,'b':['y',1,1],'c':1,'d':'x','zz':{'k':[1]},'e':1}";

static void every_failing_allocation_is_reported(void **state)
{
    cJSON *schema = tree_of(SCHEMA);
    cJSON *instance = tree_of(INSTANCE);
    bool failed = true;
    long n;

    (void)state;
    for (n = 1; failed; n++) {
        struct outcome o;
        memory_begin(n);
        o = outcome_of_trees(schema, instance);
        failed = memory_end();
        assert_true(n < 500);
        if (!failed) {
            assert_int_equal(o.code, BT_INVALID);
            assert_int_equal(o.n, 6);
        } else if (o.code == BT_NOMEM) {
            /* "out of memory for a schema", or for what of it; and then it ends. */
            assert_memory_equal(o.err.msg, "out of memory for a ", 20);
            assert_in_range(memory_made, n, n + 1);
        } else {
            /* Without memory a problem may lose its message, never its verdict. */
            assert_true(o.compiled && o.code == BT_INVALID && o.n >= 1);
        }
    }
    assert_in_range(n, 40, 499);
    cJSON_Delete(schema);
    cJSON_Delete(instance);
}

/* The allocations of a check that gives no messages. */
static long made_by(const char *text, const char *value, enum bt_code want)
{
    cJSON *tree = tree_of(text);
    cJSON *instance = tree_of(value);
    struct schema *s = NULL;
    struct bt_error err;
    uint32_t n;
    enum bt_code code;

    assert_int_equal(schema_compile(tree, &s, &err), BT_OK);
    memory_begin(0);
    code = schema_check(s, instance, NULL, 0, &n, &err);
    (void)memory_end();
    if (code != want) {
        fail_msg("%s: %s", text, err.msg);
    }
    schema_free(s);
    cJSON_Delete(tree);
    cJSON_Delete(instance);
    return memory_made;
}

/* A result of many rows is asked for a verdict often. */
static void only_a_problem_that_is_told_needs_memory(void **state)
{
    static const char *const broken[] = {
        "{'type':'null'}",
        "{'const':{'a':2}}",
        "{'enum':['a','b']}",
        "{'properties':{'a':{'minimum':5}}}",
        "{'properties':{'a':{'multipleOf':5}}}",
        "{'properties':{'b':{'minLength':5}}}",
        "{'properties':{'b':{'maxLength':0}}}",
        "{'minProperties':9}",
        "{'required':['z']}",
        "{'dependencies':{'a':['z']}}",
        "{'propertyNames':{'const':'a'}}",
        "{'properties':{'a':true},'additionalProperties':false}",
        "{'anyOf':[{'type':'null'},{'type':'string'}]}",
        "{'oneOf':[true,true]}",
        "{'allOf':[{'type':'null'},{'type':'string'}]}",
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        (void)snprintf(text, sizeof text, "{'not':%s}", broken[i]);
        assert_int_equal(made_by(text, "{'a':1,'b':'x'}", BT_OK), 0);
        (void)snprintf(text, sizeof text, "{'if':%s,'then':false}", broken[i]);
        assert_int_equal(made_by(text, "{'a':1,'b':'x'}", BT_OK), 0);
        (void)snprintf(text, sizeof text, "{'contains':%s}", broken[i]);
        assert_int_equal(made_by(text, "[{'a':1,'b':'x'}]", BT_INVALID), 0);
    }
    assert_int_equal(made_by("{'not':{'pattern':'a'}}", "'b'", BT_OK),
                     made_by("{'pattern':'a'}", "'a'", BT_OK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(only_a_problem_that_is_told_needs_memory),
    };
    cJSON_Hooks hooks = {malloc, free};

    cJSON_InitHooks(&hooks);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
