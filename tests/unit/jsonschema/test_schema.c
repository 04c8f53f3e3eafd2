/* The validator's messages and their order. schema_suite tests the verdicts. */
#include "tests/unit/jsonschema/schema_test.h"

static void messages_say_what_was_expected_and_what_came(void **state)
{
    (void)state;
    expect_said("{'type':'string'}", "7", ": expected a string, got 7");
    expect_said("{'type':'integer'}", "7.5", ": expected an integer, got 7.5");
    expect_valid("{'type':'integer'}", "1.0");
    expect_said("{'type':['string','null']}", "[1]", ": expected a string or null, got an array");
    expect_said("{'const':[[0]]}", "[[2]]", ": expected [[0]], got [[2]]");
    expect_said("{'enum':[{'a':1},[]]}", "{'a':2}",
                ": expected one of {\"a\":1}, an empty array, got {\"a\":2}");
    expect_said("{'enum':['a','b']}", "'c'", ": expected one of \"a\", \"b\", got \"c\"");
    expect_said(
        "{'enum':['openai','ollama']}", "'opnai'",
        ": expected one of \"openai\", \"ollama\", got \"opnai\"; did you mean \"openai\"?");
    expect_said("{'const':'a'}", "{}", ": expected \"a\", got an empty object");
    expect_said("{'minimum':3}", "2", ": must be at least 3, got 2");
    expect_said("{'exclusiveMaximum':0.1}", "0.1", ": must be less than 0.1, got 0.1");
    expect_said("{'multipleOf':5}", "7", ": must be a multiple of 5, got 7");
    expect_said("{'minLength':1}", "''", ": must not be empty");
    expect_said("{'minLength':3}", "'ab'", ": must be at least 3 characters long, has 2");
    expect_said("{'maxLength':1}", "'ab'", ": must be at most 1 characters long");
    expect_said("{'pattern':'^a+$'}", "'b'", ": must match ^a+$, got \"b\"");
    expect_said("{'minItems':2}", "[1]", ": must have at least 2 items, has 1");
    expect_said("{'uniqueItems':true}", "[{'a':1,'b':2},0,{'b':2,'a':1.0}]",
                ": items must differ, but 0 and 2 are the same");
    expect_said("{'contains':{'type':'null'}}", "[1]",
                ": must have an item that matches \"contains\", none does");
    expect_said("{'not':{}}", "1", ": is what \"not\" forbids here");
    expect_said("false", "1", ": is not allowed here");
}

static void missing_and_unknown_members_are_named_with_a_neighbour(void **state)
{
    const char *closed = "{'properties':{'listen':{},'durability':{},'planner':{}},"
                         "'additionalProperties':false,'required':['planner']}";

    (void)state;
    expect_said(closed, "{'durabilty':1,'planner':1}",
                "/durabilty: is not allowed here; did you mean \"durability\"? allowed: listen, "
                "durability, planner");
    expect_said(closed, "{'zzz':1,'planner':1}",
                "/zzz: is not allowed here; allowed: listen, durability, planner");
    expect_said(closed, "{}", "/planner: is missing");
    expect_said("{'dependencies':{'a':['b']}}", "{'a':1}",
                "/b: is missing, it is needed beside \"a\"");
    expect_said("{'propertyNames':{'maxLength':2}}", "{'abc':1}",
                ": the name \"abc\" is not right: must be at most 2 characters long");
}

static void problems_come_in_the_order_of_the_document(void **state)
{
    (void)state;
    expect_said(
        "{'properties':{'b':{'type':'string'},'a':{'items':{'type':'null'}}},'required':['c']}",
        "{'a':[null,1,2],'b':3}",
        "/c: is missing; /a/1: expected null, got 1; /a/2: expected null, got 2; /b: expected "
        "a string, got 3");
}

static void a_value_of_the_wrong_kind_is_told_so_and_no_more(void **state)
{
    static const struct {
        const char *rules;
        uint32_t n;
    } rows[] = {{"'type':'string','minimum':9", 1},
                {"'const':7,'minimum':9", 1},
                {"'enum':[7,8],'minimum':9", 1},
                {"'multipleOf':2,'minimum':9", 2},
                {"'minimum':9,'exclusiveMaximum':1", 2}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char schema[100];
        (void)snprintf(schema, sizeof schema, "{%s}", rows[i].rules);
        if (outcome_of(schema, "3").n != rows[i].n) {
            fail_msg("%s: %u problems", schema, outcome_of(schema, "3").n);
        }
    }
}

static void a_problem_found_twice_is_told_once(void **state)
{
    (void)state;
    expect_said("{'allOf':[{'type':'string'},{'type':'string'}]}", "1",
                ": expected a string, got 1");
}

static void problems_stop_at_the_room_given(void **state)
{
    struct outcome o = outcome_of("{'items':{'type':'null'}}", "[1,2,3,4,5,6,7,8,9,10,11,12]");

    (void)state;
    assert_int_equal(o.n, PROBLEMS);
    assert_string_equal(o.problems[PROBLEMS - 1].path, "/7");
}

static void without_room_the_error_still_names_the_first_problem(void **state)
{
    cJSON *tree = tree_of("{'properties':{'a':{'type':'string'}}}");
    cJSON *instance = tree_of("{'a':1}");
    struct schema *s = NULL;
    struct bt_error err = {0};
    uint32_t n = 9;

    (void)state;
    assert_int_equal(schema_compile(tree, &s, &err), BT_OK);
    assert_int_equal(schema_check(s, instance, NULL, 0, &n, &err), BT_INVALID);
    assert_int_equal(n, 0);
    assert_string_equal(err.msg, "/a: expected a string, got 1");
    schema_free(s);
    cJSON_Delete(tree);
    cJSON_Delete(instance);
}

static void the_nearest_alternative_explains_the_failure(void **state)
{
    (void)state;
    expect_said(
        "{'anyOf':[{'type':'null'},{'properties':{'a':{'type':'string'}},'type':'object'}]}",
        "{'a':1}",
        ": matches none of the 2 forms allowed here; the nearest: /a expected a string, got 1");
    expect_said("{'oneOf':[{'minimum':1},{'minimum':2}]}", "3",
                ": matches more than one of the 2 forms allowed here, must match exactly one");
}

static void paths_are_json_pointers(void **state)
{
    (void)state;
    expect_said("{'additionalProperties':{'items':{'type':'null'}}}", "{'a/b~c':[1]}",
                "/a~1b~0c/0: expected null, got 1");
}

static void text_for_people_holds_no_control_characters(void **state)
{
    (void)state;
    expect_said("{'type':'null'}", "'a\\u001b[31m\\u007f\\\\'",
                ": expected null, got \"a\\u001b[31m\\u007f\\\\\"");
}

static void wrong_schemas_are_refused_by_pointer(void **state)
{
    (void)state;
    expect_said("{'properties':{'a':{'pattern':'('}}}", "1",
                "#/properties/a/pattern: \"(\" is not a regular expression: missing closing "
                "parenthesis at byte 2");
    expect_said("{'items':[{},{'type':'strng'}]}", "1",
                "#/items/1/type: \"strng\" is not a type; the types are null, boolean, number, "
                "integer, string, array, object");
    expect_said("{'definitions':{'unused':{'minLength':-1}}}", "1",
                "#/definitions/unused/minLength: expected a whole number, 0 or more");
    expect_said("{'properties':{'a':1}}", "1",
                "#/properties: \"a\": a schema is an object or a boolean");
    expect_said("{'enum':[]}", "1", "#/enum: expected an array with at least one value");
    expect_said("{'prefixItems':[{}]}", "1",
                "#/prefixItems: belongs to a later draft and is not supported; this is JSON Schema "
                "draft 7");
    expect_said("[]", "1", "#: a schema is an object or a boolean");
    expect_said("{'pattern':'a\\\\Z'}", "1",
                "#/pattern: \"a\\Z\": \\Z is not an escape of ECMA-262");
}

static void references_outside_are_refused(void **state)
{
    (void)state;
    expect_said(
        "{'$ref':'http://x/y'}", "1",
        "#/$ref: \"http://x/y\" leads outside of this schema, which is not supported; copy its "
        "text under \"definitions\" and refer to \"#/definitions/NAME\"");
    expect_said(
        "{'items':{'$ref':'#anchor'}}", "[]",
        "#/items/$ref: \"#anchor\" needs resolution by \"$id\", which is not supported; use a "
        "JSON pointer such as \"#/definitions/NAME\"");
    expect_said("{'$ref':'#/nowhere'}", "1", "#/$ref: \"#/nowhere\" leads nowhere");
    expect_said("{'$ref':'#/definitions/%2'}", "1", "#/$ref: \"#/definitions/%2\" leads nowhere");
    expect_said("{'items':{'$id':'folder/'}}", "1",
                "#/items/$id: resolution by \"$id\" is not supported; remove it, and refer to this "
                "place by a JSON pointer such as \"#/definitions/NAME\"");
    expect_valid("{'$id':'https://example.org/card','$ref':'#/definitions/a~1b%25c~0',"
                 "'definitions':{'a/b%c~':{'type':'null'}}}",
                 "null");
}

/* Each hexadecimal digit of an escape, and the characters beside them; tokens of an array. */
static void a_pointer_is_read_by_its_escapes(void **state)
{
    static const char *const right[] = {"%30", "%39", "%4a", "%4A", "%4f", "%4F", "%7e0", "%20"};
    static const char *const names[] = {"0", "9", "J", "J", "O", "O", "~", " "};
    static const char wrong[] = "/:@G`g";
    char schema[160], said[160];

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        (void)snprintf(schema, sizeof schema,
                       "{'$ref':'#/definitions/%s','definitions':{'%s':{'type':'null'}}}", right[i],
                       names[i]);
        expect_valid(schema, "null");
        expect_said(schema, "1", ": expected null, got 1");
    }
    for (const char *c = wrong; *c != 0; c++) {
        for (int low = 0; low < 2; low++) {
            (void)snprintf(schema, sizeof schema, "{'$ref':'#/a%%%s%c%s'}", low ? "4" : "", *c,
                           low ? "" : "4");
            (void)snprintf(said, sizeof said, "#/$ref: \"#/a%%%s%c%s\" leads nowhere",
                           low ? "4" : "", *c, low ? "" : "4");
            expect_said(schema, "1", said);
        }
    }
    expect_said("{'$ref':'#/a%00'}", "1", "#/$ref: \"#/a%00\" leads nowhere");
    expect_valid("{'$ref':'#/anyOf/0','anyOf':[{'type':'null'},true]}", "null");
    expect_valid("{'$ref':'#/anyOf/1','anyOf':[{'type':'null'},true]}", "1");
    expect_said("{'$ref':'#/anyOf/2','anyOf':[true,true]}", "1",
                "#/$ref: \"#/anyOf/2\" leads nowhere");
    expect_said("{'$ref':'#/anyOf/01','anyOf':[true,true]}", "1",
                "#/$ref: \"#/anyOf/01\" leads nowhere");
    expect_said("{'$ref':'#/anyOf/','anyOf':[true,true]}", "1",
                "#/$ref: \"#/anyOf/\" leads nowhere");
    expect_said("{'$ref':'#/anyOf/:','anyOf':[true,true]}", "1",
                "#/$ref: \"#/anyOf/:\" leads nowhere");
    expect_said("{'$ref':'#/anyOf/4294967297','anyOf':[true,true]}", "1",
                "#/$ref: \"#/anyOf/4294967297\" leads nowhere");
}

/* A tree of cJSON may hold what no text can. */
static void a_tree_that_is_not_json_is_no_schema(void **state)
{
    cJSON *one = cJSON_CreateTrue();
    struct outcome o;

    (void)state;
    for (int i = 0; i < 3; i++) {
        cJSON *schema = cJSON_CreateObject();
        cJSON *odd = i == 0 ? cJSON_CreateRaw("{}") : cJSON_CreateStringReference(NULL);
        if (i == 2) {
            odd->type = cJSON_Invalid;
        }
        assert_true(cJSON_AddItemToObject(schema, "title", odd));
        o = outcome_of_trees(schema, one);
        assert_int_equal(o.code, BT_INVALID);
        assert_string_equal(o.err.msg, "#: the schema holds something that is not JSON");
        cJSON_Delete(schema);
    }
    cJSON_Delete(one);
}

static enum bt_code exact(const char *schema, struct bt_error *err)
{
    struct schema *s = NULL;
    cJSON *tree = tree_of(schema);
    const enum bt_code code = schema_compile_exact(tree, &s, err);

    schema_free(s);
    cJSON_Delete(tree);
    return code;
}

static void an_exact_schema_has_no_name_that_means_nothing(void **state)
{
    static const char *const known[] = {
        "{'$schema':'x','$comment':'c','title':'t','description':'d','default':1,'examples':[1]}",
        "{'contentMediaType':'a/b','contentEncoding':'base64','readOnly':true,'writeOnly':true}",
        "{'deprecated':true,'format':'date','then':{},'else':{},'x-mine':1}",
        "{'$id':'http://x/y','type':'object','properties':{'tpye':{}},'required':['tpye']}"};
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(exact(known[i], &err), BT_OK);
    }
    assert_int_equal(exact("{'tpye':'object'}", &err), BT_INVALID);
    assert_string_equal(err.msg, "#/tpye: is no keyword of JSON Schema; did you mean `type`?");
    assert_int_equal(exact("{'items':{'zzzzzz':1}}", &err), BT_INVALID);
    assert_string_equal(err.msg, "#/items/zzzzzz: is no keyword of JSON Schema");
    assert_int_equal(outcome_of("{'tpye':'object'}", "1").code, BT_OK);
}

static void what_is_of_a_later_draft_or_of_another_place_is_refused(void **state)
{
    static const char *const later[] = {"prefixItems",      "minContains",           "maxContains",
                                        "unevaluatedItems", "unevaluatedProperties", "$dynamicRef"};
    (void)state;
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        char schema[80];
        struct outcome o;
        (void)snprintf(schema, sizeof schema, "{'%s':1}", later[i]);
        o = outcome_of(schema, "1");
        if (o.code != BT_INVALID || o.compiled || strstr(o.err.msg, "a later draft") == NULL) {
            fail_msg("%s: %s", later[i], o.err.msg);
        }
    }
    expect_said("{'$id':7}", "1", "#/$id: expected a string");
    expect_said("{'uniqueItems':1}", "1", "#/uniqueItems: expected true or false");
}

static void annotations_are_ignored(void **state)
{
    (void)state;
    expect_valid("{'$schema':'http://json-schema.org/draft-07/schema#','title':1,'format':'email',"
                 "'x-icon':{'type':'nothing'},'default':3}",
                 "'no email'");
}

static void patterns_are_those_of_ecma(void **state)
{
    (void)state;
    expect_said("{'pattern':'^a$'}", "'a\\n'", ": must match ^a$, got \"a\\u000a\"");
    expect_valid("{'pattern':'^\\\\u00e9$'}", "'é'");
    expect_valid("{'pattern':'^.$'}", "'€'");
    expect_said("{'pattern':'^\\\\d$'}", "'\u0663'", ": must match ^\\d$, got \"\u0663\"");
    expect_valid("{'maxLength':2}", "'€€'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_say_what_was_expected_and_what_came),
        cmocka_unit_test(missing_and_unknown_members_are_named_with_a_neighbour),
        cmocka_unit_test(problems_come_in_the_order_of_the_document),
        cmocka_unit_test(a_value_of_the_wrong_kind_is_told_so_and_no_more),
        cmocka_unit_test(a_problem_found_twice_is_told_once),
        cmocka_unit_test(problems_stop_at_the_room_given),
        cmocka_unit_test(without_room_the_error_still_names_the_first_problem),
        cmocka_unit_test(the_nearest_alternative_explains_the_failure),
        cmocka_unit_test(paths_are_json_pointers),
        cmocka_unit_test(text_for_people_holds_no_control_characters),
        cmocka_unit_test(wrong_schemas_are_refused_by_pointer),
        cmocka_unit_test(references_outside_are_refused),
        cmocka_unit_test(a_pointer_is_read_by_its_escapes),
        cmocka_unit_test(a_tree_that_is_not_json_is_no_schema),
        cmocka_unit_test(an_exact_schema_has_no_name_that_means_nothing),
        cmocka_unit_test(what_is_of_a_later_draft_or_of_another_place_is_refused),
        cmocka_unit_test(annotations_are_ignored),
        cmocka_unit_test(patterns_are_those_of_ecma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
