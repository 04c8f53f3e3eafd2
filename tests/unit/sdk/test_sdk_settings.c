/* Members of settings, and schemas of other documents: what is taken, and what is refused by its
 * name. */
#include <stdio.h>
#include <string.h>

#include "agents/sdk/documents/flatten.h"
#include "agents/sdk/settings/fields.h"
#include "protocol/limits.h"
#include "tests/support/cmocka.h"

static struct arena arena;
static struct buf docs[4];
static uint32_t docs_n;
static struct bt_error err;

/* JSON with ' for ", until the end of the test. */
static struct doc doc_of(const char *text)
{
    static char json[65536];
    struct buf *out = &docs[docs_n++ % 4];

    (void)snprintf(json, sizeof json, "%s", text);
    for (char *at = json; (at = strchr(at, '\'')) != NULL;) {
        *at = '"';
    }
    buf_done(out);
    buf_init(out, 1024 * 1024);
    if (json_to_doc(str_from(json), NULL, out, &err) != BT_OK) {
        fail_msg("%s: %s", json, err.msg);
    }
    return doc_from_buf(out);
}

static int set_up(void **state)
{
    (void)state;
    arena = (struct arena){.max = 1024 * 1024};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_done(&arena);
    for (size_t i = 0; i < 4; i++) {
        buf_done(&docs[i]);
    }
    return 0;
}

static void is_refused(enum bt_code code, const char *says)
{
    if (code != BT_INVALID || strstr(err.msg, says) == NULL) {
        fail_msg("%s \"%s\", not \"%s\"", bt_code_name(code), err.msg, says);
    }
}

static void a_text_is_one_with_letters(void **state)
{
    const char *got = "before";

    (void)state;
    assert_int_equal(field_text(&arena, doc_of("{'a':'x'}"), "a", true, &got, &err), BT_OK);
    assert_string_equal(got, "x");
    assert_int_equal(field_text(&arena, doc_of("{}"), "a", false, &got, &err), BT_OK);
    assert_null(got);
    is_refused(field_text(&arena, doc_of("{}"), "a", true, &got, &err), "a: is missing");
    is_refused(field_text(&arena, doc_of("{'a':''}"), "a", false, &got, &err),
               "a: expected a text");
    is_refused(field_text(&arena, doc_of("{'a':7}"), "a", false, &got, &err), "a: expected a text");
}

static void a_list_has_at_most_so_many_texts(void **state)
{
    const char *const *got = NULL;

    (void)state;
    assert_int_equal(field_list(&arena, doc_of("{'a':['x','y']}"), "a", 2, &got, &err), BT_OK);
    assert_string_equal(got[0], "x");
    assert_string_equal(got[1], "y");
    assert_null(got[2]);
    assert_int_equal(field_list(&arena, doc_of("{'a':[]}"), "a", 2, &got, &err), BT_OK);
    assert_null(got[0]);
    assert_int_equal(field_list(&arena, doc_of("{}"), "a", 2, &got, &err), BT_OK);
    assert_null(got);
    is_refused(field_list(&arena, doc_of("{'a':['x','y','z']}"), "a", 2, &got, &err),
               "a: expected a list of at most 2 texts");
    is_refused(field_list(&arena, doc_of("{'a':'x'}"), "a", 2, &got, &err), "a: expected a list");
    is_refused(field_list(&arena, doc_of("{'a':['x',1]}"), "a", 2, &got, &err),
               "a[1]: expected a text");
}

static void choices_flags_and_numbers_keep_what_was_before(void **state)
{
    static const char *const names[] = {"one", "two", "three"};
    uint64_t number = 5;
    unsigned choice = 7;
    bool flag = true;

    (void)state;
    assert_int_equal(field_choice(doc_of("{}"), "a", names, 3, &choice, &err), BT_OK);
    assert_int_equal(choice, 7);
    assert_int_equal(field_choice(doc_of("{'a':'three'}"), "a", names, 3, &choice, &err), BT_OK);
    assert_int_equal(choice, 2);
    is_refused(field_choice(doc_of("{'a':'three'}"), "a", names, 2, &choice, &err),
               "a: expected one of one, two");
    is_refused(field_choice(doc_of("{'a':1}"), "a", names, 3, &choice, &err),
               "a: expected one of one, two, three");
    assert_int_equal(field_bool(doc_of("{}"), "a", &flag, &err), BT_OK);
    assert_true(flag);
    assert_int_equal(field_bool(doc_of("{'a':false}"), "a", &flag, &err), BT_OK);
    assert_false(flag);
    is_refused(field_bool(doc_of("{'a':'yes'}"), "a", &flag, &err), "a: expected true or false");
    assert_int_equal(field_number(doc_of("{}"), "a", 2, 9, &number, &err), BT_OK);
    assert_int_equal(number, 5);
    assert_int_equal(field_number(doc_of("{'a':2}"), "a", 2, 9, &number, &err), BT_OK);
    assert_int_equal(field_number(doc_of("{'a':9}"), "a", 2, 9, &number, &err), BT_OK);
    assert_int_equal(number, 9);
    is_refused(field_number(doc_of("{'a':1}"), "a", 2, 9, &number, &err), "a number from 2 to 9");
    is_refused(field_number(doc_of("{'a':10}"), "a", 2, 9, &number, &err), "a number from 2 to 9");
    is_refused(field_number(doc_of("{'a':2.5}"), "a", 2, 9, &number, &err), "a number from 2 to 9");
    is_refused(field_number(doc_of("{'a':'3'}"), "a", 2, 9, &number, &err), "a number from 2 to 9");
}

/* A wrong one runs an action twice that must not run twice. */
static void effects_are_those_of_the_first_glob_that_fits(void **state)
{
    struct doc effects;

    (void)state;
    assert_int_equal(field_effects(&arena,
                                   doc_of("{'effects':{'get_*':'none','get_and_put':'unsafe',"
                                          "'put':'idempotent','*':'unsafe'}}"),
                                   4, &effects, &err),
                     BT_OK);
    assert_string_equal(field_effect(effects, STR_LIT("get_x"), "f"), "none");
    assert_string_equal(field_effect(effects, STR_LIT("get_and_put"), "f"), "none");
    assert_string_equal(field_effect(effects, STR_LIT("put"), "f"), "idempotent");
    assert_string_equal(field_effect(effects, STR_LIT("other"), "f"), "unsafe");
    assert_int_equal(field_effects(&arena, doc_of("{'effects':{'a':'none'}}"), 4, &effects, &err),
                     BT_OK);
    assert_string_equal(field_effect(effects, STR_LIT("b"), "unsafe"), "unsafe");
    assert_int_equal(field_effects(&arena, doc_of("{}"), 4, &effects, &err), BT_OK);
    assert_string_equal(field_effect(effects, STR_LIT("a"), "unsafe"), "unsafe");
    is_refused(
        field_effects(&arena, doc_of("{'effects':{'a':'none','b':'safe'}}"), 4, &effects, &err),
        "effects.b: expected one of none, idempotent, unsafe");
    is_refused(field_effects(&arena, doc_of("{'effects':{'a':1}}"), 4, &effects, &err),
               "effects.a: expected a text");
    is_refused(
        field_effects(&arena, doc_of("{'effects':{'a':'none','b':'none'}}"), 1, &effects, &err),
        "effects: expected an object of at most 1 texts");
    is_refused(field_effects(&arena, doc_of("{'effects':['none']}"), 4, &effects, &err),
               "effects: expected an object");
}

static void a_name_from_elsewhere_becomes_the_id_of_a_skill(void **state)
{
    static const char *const cases[][2] = {
        {"getPet", "getPet"},   {"get pet/7", "get_pet_7"}, {"-x", "_x"},           {".x", "_x"},
        {"a-b.c_d", "a-b.c_d"}, {"AZaz09", "AZaz09"},       {"a@[`{:/", "a______"}, {"", ""}};
    char longest[LIMIT_ID_BYTES + 2];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(field_skill_id(&arena, str_from(cases[i][0])), cases[i][1]);
    }
    memset(longest, 'x', sizeof longest);
    assert_int_equal(strlen(field_skill_id(&arena, (struct str){longest, sizeof longest})),
                     LIMIT_ID_BYTES);
}

static void the_environment_has_what_is_not_the_agents_own(void **state)
{
    const char *const *got = NULL;
    char many[4096] = "{'env':{";

    (void)state;
    assert_int_equal(field_env(&arena, doc_of("{'env':{'A':'1','B':'','BATONX':'2'}}"), &got, &err),
                     BT_OK);
    assert_string_equal(got[0], "A=1");
    assert_string_equal(got[1], "B=");
    assert_string_equal(got[2], "BATONX=2");
    assert_null(got[3]);
    assert_int_equal(field_env(&arena, doc_of("{}"), &got, &err), BT_OK);
    assert_null(got);
    is_refused(field_env(&arena, doc_of("{'env':{'BATON_X':'1'}}"), &got, &err),
               "'BATON_X' is not");
    is_refused(field_env(&arena, doc_of("{'env':{'TRACEPARENT':'1'}}"), &got, &err), "TRACEPARENT");
    is_refused(field_env(&arena, doc_of("{'env':{'':'1'}}"), &got, &err), "'' is not");
    is_refused(field_env(&arena, doc_of("{'env':{'A=B':'1'}}"), &got, &err), "'A=B' is not");
    is_refused(field_env(&arena, doc_of("{'env':{'A':1}}"), &got, &err), "env.A: expected a text");
    is_refused(field_env(&arena, doc_of("{'env':['A']}"), &got, &err), "env: expected an object");
    for (int i = 0; i <= FIELD_ENV_MAX; i++) {
        (void)snprintf(many + strlen(many), sizeof many - strlen(many), "%s'V%d':''",
                       i > 0 ? "," : "", i);
        if (i + 1 == FIELD_ENV_MAX) {
            char whole[4200];
            (void)snprintf(whole, sizeof whole, "%s}}", many);
            assert_int_equal(field_env(&arena, doc_of(whole), &got, &err), BT_OK);
        }
    }
    (void)snprintf(many + strlen(many), sizeof many - strlen(many), "}}");
    is_refused(field_env(&arena, doc_of(many), &got, &err), "at most 64 texts");
}

/* ---- schemas ---- */

static const char *flat(const char *root, const char *schema, const char *about, int around)
{
    static char text[70000];
    struct buf out;
    enum bt_code code;

    buf_init(&out, 1024 * 1024);
    code = schema_flatten(doc_of(root), doc_of(schema), str_from(about), around, &out, &err);
    (void)snprintf(text, sizeof text, "%s", code == BT_OK ? buf_cstr(&out) : err.msg);
    for (char *at = text; (at = strchr(at, '"')) != NULL;) {
        *at = '\'';
    }
    buf_done(&out);
    return text;
}

static void a_schema_comes_out_in_one_piece(void **state)
{
    static const char root[] = "{'defs':{'pet':{'type':'object','properties':{'n':{'$ref':"
                               "'#/defs/name'}}},'name':{'type':'string'},"
                               "'loop':{'$ref':'#/defs/loop'},"
                               "'tree':{'properties':{'up':{'$ref':'#/defs/tree'}}}}}";
    static const char *const cases[][3] = {
        {"{'$ref':'#/defs/pet'}", "", "{'type':'object','properties':{'n':{'type':'string'}}}"},
        {"{'type':'string','description':'old','x-other':{'a':1},'default':3}", "new",
         "{'description':'new','type':'string'}"},
        {"{'description':'old'}", "", "{'description':'old'}"},
        {"{'anyOf':[{'$ref':'#/defs/name'},{'type':['null','integer']}],'enum':[1,'a']}", "",
         "{'anyOf':[{'type':'string'},{'type':['null','integer']}],'enum':[1,'a']}"},
        {"{'type':'string','nullable':true}", "", "{'anyOf':[{'type':'null'},{'type':'string'}]}"},
        {"{'type':'string','nullable':false}", "", "{'type':'string'}"},
        {"{'exclusiveMinimum':true,'minimum':1}", "", "{'minimum':1}"},
        {"{'exclusiveMaximum':5}", "", "{'exclusiveMaximum':5}"},
        {"{'items':{'type':'string'},'additionalProperties':false}", "",
         "{'items':{'type':'string'},'additionalProperties':false}"},
        {"{'enum':[{'a':1}],'const':{'a':1}}", "", "{}"}, /* the service checks it */
        {"true", "", "{}"},
        {"{'$ref':'#/defs/none'}", "", "$ref #/defs/none: leads to nothing in this document"},
        {"{'items':{'$ref':'other.json#/x'}}", "", "$ref other.json#/x: leads to nothing"},
        {"{'$ref':'#/defs/loop'}", "", "{}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *got = flat(root, cases[i][0], cases[i][1], 0);
        if (strncmp(got, cases[i][2], strlen(cases[i][2])) != 0 ||
            (cases[i][2][0] == '{' && strcmp(got, cases[i][2]) != 0)) {
            fail_msg("%s is %s, not %s", cases[i][0], got, cases[i][2]);
        }
    }
    assert_non_null(strstr(flat(root, "{'$ref':'#/defs/tree'}", "", 0), "'up':{}}")); /* it ends */
}

static void what_lies_too_deep_or_is_too_large_becomes_anything(void **state)
{
    static char large[50100];
    static const char inner[] = "{'items':{'type':'string'}}";

    (void)state;
    assert_string_equal(flat("{}", inner, "", LIMIT_DEPTH - 9), inner);
    assert_string_equal(flat("{}", inner, "", LIMIT_DEPTH - 8), "{'items':{}}");
    assert_string_equal(flat("{}", inner, "", LIMIT_DEPTH - 7), "{}");
    (void)snprintf(large, sizeof large, "{'pattern':'");
    memset(large + strlen(large), 'x', 49200);
    (void)snprintf(large + strlen(large), 4, "'}");
    assert_string_equal(flat("{}", large, "", 0), "{}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_text_is_one_with_letters),
        TEST(a_list_has_at_most_so_many_texts),
        TEST(choices_flags_and_numbers_keep_what_was_before),
        TEST(effects_are_those_of_the_first_glob_that_fits),
        TEST(a_name_from_elsewhere_becomes_the_id_of_a_skill),
        TEST(the_environment_has_what_is_not_the_agents_own),
        TEST(a_schema_comes_out_in_one_piece),
        TEST(what_lies_too_deep_or_is_too_large_becomes_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
