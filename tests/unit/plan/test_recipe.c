#include "fixture.h"

#include "supervisor/plan/recipe.h"

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

/* A value cannot name the results of other steps. */
static void a_value_cannot_name_results(void **state)
{
    struct bench *b = *state;
    static const char two[] = "{'inputs':{'type':'object','properties':{'a':{},'b':{}}},"
                              "'steps':[{'agentId':'files','skill':'read','task':'t',"
                              "'parameters':{'path':'x{{inputs.a}}{{inputs.b}} {{results.y}}',"
                              "'only':'{{inputs.a}}'}}]}";
    assert_null(fill(b, recipe, "{'file':'{{results.a.text}}'}"));
    assert_null(fill(b, recipe, "{'file':'x {{ results.a }} y'}"));
    assert_null(fill(b, two, "{'a':'{{res','b':'ults.secret}}'}"));
    assert_null(fill(b, two, "{'a':{'deep':['{{results.secret}}']},'b':''}"));
    assert_null(fill(b, two, "{'a':'','b':'{{results.secret}}{{'}"));
    assert_non_null(fill(b, two, "{'a':'{{.Names}}','b':'{{x}} results.y'}"));
}

/* ---- description ---- */

static const char described[] =
    "{'recipe':{'name':'look','title':'Look into a file','description':'Reads {{inputs.file}}.'},"
    "'inputs':{'type':'object','required':['file','n'],'properties':{"
    "'file':{'type':'string','description':'which one'},'n':{'type':'integer','default':3},"
    "'how':{'enum':['fast','slow'],'default':'fast'},'x':{'type':['string','null']},'y':{}}},"
    "'steps':[{'stepId':'a','agentId':'files','skill':'read','task':'read it {{inputs.how}} "
    "{{inputs.n}} {{inputs.x}} {{inputs.y}}','parameters':{'path':'{{inputs.file}}'}}]}";

static void a_recipe_says_what_it_takes(void **state)
{
    struct bench *b = *state;
    struct recipe_about about;
    assert_int_equal(recipe_describe(doc_of(b, described), &b->arena, &about, &b->err), BT_OK);
    assert_true(str_is(about.name, "look"));
    assert_true(str_is(about.title, "Look into a file"));
    assert_int_equal(about.n_steps, 1);
    assert_int_equal(about.n_inputs, 5);
    assert_true(about.inputs[0].required);
    assert_true(str_is(about.inputs[0].type, "string"));
    assert_true(str_is(about.inputs[0].description, "which one"));
    assert_false(about.inputs[1].required); /* it has a default */
    assert_string_equal(json_of(b, about.inputs[1].default_value), "3");
    assert_true(str_is(about.inputs[2].type, "one of fast, slow"));
    assert_true(str_is(about.inputs[3].type, "string or null"));
    assert_true(str_is(about.inputs[4].type, "any"));
    assert_int_equal(recipe_describe(doc_of(b, recipe), &b->arena, &about, &b->err), BT_OK);
    assert_int_equal(about.name.len, 0);
    assert_true(str_is(about.description, "count in {{inputs.file}}"));
    assert_int_equal(recipe_describe(doc_of(b, "{'steps':[]}"), &b->arena, &about, &b->err),
                     BT_INVALID);
    assert_int_equal(
        recipe_describe(doc_of(b, "{'recipe':7,'inputs':[]}"), &b->arena, &about, &b->err), BT_OK);
}

static void a_recipe_without_inputs_is_filled_with_nothing(void **state)
{
    struct bench *b = *state;
    const char *plain = "{'recipe':{'name':'p','description':'d'},'steps':[]}";
    assert_string_equal(fill(b, plain, NULL), "{'description':'d','steps':[]}");
    assert_null(fill(b, plain, "{'x':1}"));
    assert_string_equal(b->err.msg, "this recipe takes no inputs");
    assert_string_equal(
        fill(b, "{'recipe':{'name':'p','description':'d'},'description':'own','steps':[]}", NULL),
        "{'description':'own','steps':[]}");
    assert_string_equal(
        fill(b, "{'recipe':{'name':'p','description':'d'},'description':null,'steps':[]}", NULL),
        "{'description':'d','steps':[]}");
    assert_null(fill(b, "{'inputs':7,'steps':[]}", NULL));
}

/* ---- checks ---- */

static const char *checked(struct bench *b, const char *json)
{
    b->problems = (struct problems){.at = b->at, .cap = 100};
    const enum bt_code code = recipe_check(doc_of(b, json), b->registry, &b->problems, &b->err);
    assert_int_equal(code, b->problems.errors > 0 ? BT_INVALID : BT_OK);
    char *text = arena_alloc(&b->arena, 4000);
    assert_non_null(text);
    for (uint32_t i = 0; i < b->problems.n; i++) {
        (void)snprintf(text + strlen(text), 4000 - strlen(text), "%s%s", i > 0 ? " | " : "",
                       problem_of(b, i));
    }
    return text;
}

#define PROPERTIES(p) "{'inputs':{'type':'object','properties':{" p "}},"
#define READ(task, path)                                                                           \
    "'steps':[{'stepId':'a','agentId':'files','skill':'read','task':'" task                        \
    "','parameters':{'path':'" path "'}}]}"

static void a_right_recipe_is_right(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_string_equal(checked(b, PROPERTIES("'f':{'type':'string','default':'x.txt'}")
                                       READ("read the file {{inputs.f}}", "{{inputs.f}}")),
                        "");
    assert_string_equal(
        checked(b, "{'recipe':{'name':'a','description':'d'}," READ("read the one file", "x.txt")),
        "");
}

static void what_is_wrong_with_a_recipe_is_told_at_once(void **state)
{
    struct bench *b = *state;
    add_house(b);
    static const struct {
        const char *json, *problem;
    } bad[] = {
        {"{'steps':[]}", "invalid_field - recipe: expected a recipe"},
        {"7", "expected a recipe"},
        {"{'inputs':{'type':'string'},'steps':[]}", "with \"type\": \"object\""},
        {"{'inputs':[],'steps':[]}", "with \"type\": \"object\""},
        {"{'inputs':{'type':'object','properties':{'a':{'type':'nonsense'}}}," READ("t",
                                                                                    "{{inputs.a}}"),
         "invalid_field - inputs: "},
        {PROPERTIES("'f':{'type':'string'}") READ("read {{inputs.g}} and so on", "{{inputs.f}}"),
         "bad_template - inputs: {{inputs.g}} names no input of this recipe"},
        {PROPERTIES("'f':{'type':'string'}") READ("read {{inputs.f..x}} now", "{{inputs.f}}"),
         "bad_template - steps: template"},
        {PROPERTIES("'f':{'type':'string','default':7}") READ("read the file now", "{{inputs.f}}"),
         "inputs.properties.f.default: expected a string, got 7"},
        {PROPERTIES("'f':{'type':'string','default':'x'},'g':{}") READ("read it", "{{inputs.f}}"),
         "style - inputs.properties.g: is used nowhere in the recipe"},
        {PROPERTIES("'f':{'type':'string'}") READ("read the file now", "{{inputs.f}}"),
         "style - inputs.properties.f: is used but may be missing"},
        {PROPERTIES("'n':{'type':'integer','default':7}") READ("read the file now", "{{inputs.n}}"),
         "invalid_params a parameters.path: Invalid params - expected a string, got 7"},
        {PROPERTIES("'f':{'type':'string'}") "'steps':[{'stepId':'a','agentId':'nobody','task':"
                                             "'read {{inputs.f}}','dependsOn':['z']}]}",
         "missing_dependency a dependsOn"},
        {"{'recipe':{'name':'a b','titel':1}," READ("read the one file", "x.txt"),
         "recipe.name: \"a b\" is no name"},
        {"{'recipe':{}," READ("read the one file", "x.txt"), "recipe.name: is missing"},
        {"{'recipe':[]," READ("read the one file", "x.txt"), "recipe: expected a map"},
        {"{'recipe':{'name':'a'}," READ("read the one file", "x.txt"),
         "say what the recipe is for"},
        {"{'recipe':{'name':'a'},'steps':[]}", "empty_plan"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *found = checked(b, bad[i].json);
        if (strstr(found, bad[i].problem) == NULL) {
            fail_msg("%s: \"%s\" is not in \"%s\"", bad[i].json, bad[i].problem, found);
        }
    }
}

/* A recipe whose inputs have no defaults is checked for what the inputs cannot change. */
static void what_depends_on_inputs_is_not_held_against_a_recipe(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_string_equal(
        checked(b, "{'inputs':{'type':'object','required':['n','who'],'properties':{"
                   "'n':{'type':'integer'},'who':{'type':'string'}}},'policy':{'maxRetries':"
                   "'{{inputs.n}}'},'steps':[{'stepId':'a','agentId':'{{inputs.who}}','task':"
                   "'do something worth doing','timeoutMs':'{{inputs.n}}'}]}"),
        "");
}

static void too_many_inputs_are_told(void **state)
{
    struct bench *b = *state;
    char json[4000];
    (void)snprintf(json, sizeof json, "{'inputs':{'type':'object','properties':{");
    for (int i = 0; i < 65; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "%s'p%d':{}",
                       i > 0 ? "," : "", i);
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "}},'steps':[]}");
    assert_non_null(strstr(checked(b, json), "more than the 64"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(inputs_are_put_in_with_their_types_and_defaults),
        RULE(values_have_to_fit_the_schema),
        RULE(a_template_without_an_input_is_refused),
        RULE(only_a_map_with_inputs_is_a_recipe),
        RULE(a_value_cannot_name_results),
        RULE(an_input_that_looks_like_a_template_is_not_filled_again),
        RULE(a_recipe_says_what_it_takes),
        RULE(a_recipe_without_inputs_is_filled_with_nothing),
        RULE(a_right_recipe_is_right),
        RULE(what_is_wrong_with_a_recipe_is_told_at_once),
        RULE(what_depends_on_inputs_is_not_held_against_a_recipe),
        RULE(too_many_inputs_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
