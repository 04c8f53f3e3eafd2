/* The i-th allocation fails, for every i: BT_NOMEM or a correct answer. ASan reports leaks. */
#include "tests/unit/jsonschema/schema_test.h"

/* malloc of the library under test goes through these (linker option --wrap); cJSON's through its
 * hooks. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t n);

static long countdown = -1; /* -1 = never */

static bool fails(void)
{
    if (countdown < 0) {
        return false;
    }
    return countdown == 0 || countdown-- == 0;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *at, size_t n)
{
    return fails() ? NULL : __real_realloc(at, n);
}

static void *hooked_malloc(size_t n)
{
    return __wrap_malloc(n);
}

static const char *const SCHEMA =
    "{'type':'object','properties':{'a':{'enum':[1,2]},'b':{'items':[{'pattern':'^x'}],'"
    "uniqueItems':true},"
    "'c':{'$ref':'#/definitions/t'},'d':{'anyOf':[{'type':'null'},{'minLength':3}]}},"
    "'patternProperties':{'^z':{'const':{'k':[1]}}},'additionalProperties':false,"
    "'dependencies':{'a':['b'],'b':{'required':['c']}},'definitions':{'t':{'type':'object'}}}";

static void every_failing_allocation_is_reported(void **state)
{
    cJSON *schema = tree_of(SCHEMA);
    cJSON *instance = tree_of("{'a':3,'b':['y',1,1],'c':1,'d':'x','zz':{'k':[1]},'e':1}");
    long i;

    (void)state;
    for (i = 0; i < 500; i++) {
        struct outcome o;
        countdown = i;
        o = outcome_of_trees(schema, instance);
        if (countdown > 0) {
            countdown = -1;
            assert_int_equal(o.code, BT_INVALID);
            assert_int_equal(o.n, 6);
            break;
        }
        countdown = -1;
        /* Without memory a problem may lose its message, never its verdict. */
        assert_true(o.code == BT_NOMEM || (o.compiled && o.code == BT_INVALID && o.n >= 1));
    }
    assert_in_range(i, 10, 499);
    cJSON_Delete(schema);
    cJSON_Delete(instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failing_allocation_is_reported)};
    cJSON_Hooks hooks = {hooked_malloc, free};

    cJSON_InitHooks(&hooks);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
