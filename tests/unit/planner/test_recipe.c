#include "fixture.h"

#include "supervisor/planner/recipe.h"

static const char recipe[] =
    "{'goal':'count in {{inputs.file}}','inputs':{'type':'object','properties':{"
    "'file':{'type':'string'},'n':{'type':'integer','default':3}},'required':['file'],"
    "'additionalProperties':false},'steps':[{'stepId':'a','agentId':'files','skill':'read',"
    "'task':'read {{inputs.file}} for {{inputs.n}}','parameters':{'path':'{{inputs.file}}',"
    "'n':'{{inputs.n}}'}},{'stepId':'b','agentId':'calc','task':'use {{results.a}}'}]}";

static const char *fill(struct bench *b, const char *from, const char *values)
{
    struct buf out;
    const char *json = NULL;
    buf_init(&out, 10000);
    const struct doc v = values == NULL ? (struct doc){NULL, 0} : doc_of(b, values);
    if (recipe_fill(doc_of(b, from), v, &out, &b->err) == BT_OK) {
        json = json_of(b, doc_from_buf(&out));
    }
    buf_done(&out);
    return json;
}

static void inputs_are_put_in_with_their_types_and_defaults(void **state)
{
    struct bench *b = *state;
    assert_string_equal(fill(b, recipe, "{'file':'/x'}"),
                        "{'goal':'count in /x','steps':[{'stepId':'a','agentId':'files',"
                        "'skill':'read','task':'read /x for 3','parameters':{'path':'/x','n':3}},"
                        "{'stepId':'b','agentId':'calc','task':'use {{results.a}}'}]}");
    assert_non_null(strstr(fill(b, recipe, "{'file':'/x','n':9}"), "'n':9"));
}

static void values_have_to_fit_the_schema(void **state)
{
    struct bench *b = *state;
    assert_null(fill(b, recipe, "{}"));
    assert_string_equal(b->err.msg, "input/file is missing");
    assert_null(fill(b, recipe, NULL));
    assert_null(fill(b, recipe, "{'file':1}"));
    assert_null(fill(b, recipe, "{'file':'x','other':1}"));
    assert_null(fill(b, recipe, "[1]"));
}

static void a_template_without_an_input_is_refused(void **state)
{
    struct bench *b = *state;
    assert_null(fill(b, "{'inputs':{},'steps':['{{inputs.nobody}}']}", "{}"));
    assert_string_equal(b->err.msg, "{{inputs.nobody}} names no input of this recipe");
}

static void only_a_map_with_inputs_is_a_recipe(void **state)
{
    struct bench *b = *state;
    assert_true(recipe_is(doc_of(b, recipe)));
    assert_false(recipe_is(doc_of(b, "{'steps':[]}")));
    assert_false(recipe_is(doc_of(b, "{'inputs':null}")));
    assert_false(recipe_is(doc_of(b, "[]")));
    assert_null(fill(b, "{'steps':[]}", "{}"));
    assert_null(fill(b, "{'inputs':{'type':'nonsense'},'steps':[]}", "{}"));
}

static void an_input_that_looks_like_a_template_is_not_filled_again(void **state)
{
    struct bench *b = *state;
    assert_non_null(strstr(fill(b, recipe, "{'file':'{{inputs.n}}'}"), "'path':'{{inputs.n}}'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(inputs_are_put_in_with_their_types_and_defaults),
        RULE(values_have_to_fit_the_schema),
        RULE(a_template_without_an_input_is_refused),
        RULE(only_a_map_with_inputs_is_a_recipe),
        RULE(an_input_that_looks_like_a_template_is_not_filled_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
