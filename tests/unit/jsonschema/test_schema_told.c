/* What the validator says of many schemas and values, in schemas_told.txt: what each keyword makes
 * of each kind of value, whole messages, and the work of each check. BATON_WRITE=1 writes the file
 * anew: read the difference. */
#include "tests/unit/jsonschema/schema_test.h"

#include <inttypes.h>

#include "protocol/base/buf.h"
#include "protocol/jsonschema/check_internal.h"
#include "tests/support/golden.h"

/* ---- every keyword with every kind of value ---- */

static const char *const keywords[] = {"type",
                                       "const",
                                       "enum",
                                       "multipleOf",
                                       "minimum",
                                       "maximum",
                                       "exclusiveMinimum",
                                       "exclusiveMaximum",
                                       "minLength",
                                       "maxLength",
                                       "pattern",
                                       "minItems",
                                       "maxItems",
                                       "uniqueItems",
                                       "minProperties",
                                       "maxProperties",
                                       "required",
                                       "dependencies",
                                       "propertyNames",
                                       "properties",
                                       "patternProperties",
                                       "additionalProperties",
                                       "items",
                                       "additionalItems",
                                       "contains",
                                       "allOf",
                                       "anyOf",
                                       "oneOf",
                                       "not",
                                       "if",
                                       "then",
                                       "else",
                                       "definitions",
                                       "$defs",
                                       "$id",
                                       "$ref",
                                       "$anchor",
                                       "$dynamicRef",
                                       "$recursiveRef",
                                       "dependentRequired",
                                       "dependentSchemas",
                                       "prefixItems",
                                       "minContains",
                                       "maxContains",
                                       "unevaluatedItems",
                                       "unevaluatedProperties",
                                       "title",
                                       "none"};
static const char *const values[] = {"null",
                                     "true",
                                     "false",
                                     "0",
                                     "1",
                                     "2",
                                     "-1",
                                     "1.5",
                                     "9007199254740992",
                                     "9007199254740994",
                                     "1e400",
                                     "''",
                                     "'a'",
                                     "'('",
                                     "'null'",
                                     "'integer'",
                                     "'#'",
                                     "'#/'",
                                     "[]",
                                     "[1]",
                                     "['a']",
                                     "['a',1]",
                                     "['null','number']",
                                     "[{}]",
                                     "[true,false]",
                                     "[false,false]",
                                     "[{'type':'integer'},{'minimum':1}]",
                                     "{}",
                                     "{'a':1}",
                                     "{'a':true}",
                                     "{'a':false}",
                                     "{'a':['b']}",
                                     "{'a':['b',1]}",
                                     "{'a':{'type':'string'}}",
                                     "{'type':'integer'}",
                                     "{'(':true}",
                                     "{'^a':{'minimum':2}}"};
static const char *const instances[] = {"null",
                                        "true",
                                        "false",
                                        "0",
                                        "-0.0",
                                        "1",
                                        "2",
                                        "-1",
                                        "1.5",
                                        "''",
                                        "'a'",
                                        "'ab'",
                                        "[]",
                                        "[1]",
                                        "[1,1]",
                                        "[1,'a',1]",
                                        "['a']",
                                        "[null,null,null]",
                                        "{}",
                                        "{'a':1}",
                                        "{'b':1}",
                                        "{'a':1,'b':'x'}",
                                        "{'a':'x','b':[],'c':{}}"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* One letter for each instance, the first problem, and the work of all checks. */
static void tell_keyword(struct buf *out, const char *keyword, const char *value, cJSON **trees)
{
    char text[200];
    char first[512] = "";
    cJSON *tree;
    struct schema *s = NULL;
    struct bt_error err;
    enum bt_code code;
    uint64_t work = 0;

    (void)snprintf(text, sizeof text, "{'%s':%s}", keyword, value);
    tree = tree_of(text);
    code = schema_compile(tree, &s, &err);
    buf_printf(out, "%s ", text);
    cJSON_Delete(tree);
    if (code != BT_OK) {
        buf_printf(out, "%s %s\n", bt_code_name(code), err.msg);
        return;
    }
    for (size_t i = 0; i < COUNT(instances); i++) {
        struct schema_problem problems[4];
        struct problem_list list = {problems, 4, 0};
        struct checker c = {.s = s, .budget = 1000};
        uint32_t n;
        code = schema_check(s, trees[i], problems, 4, &n, &err);
        buf_add_byte(out, (uint8_t)(code == BT_OK ? '+' : code == BT_INVALID ? '0' + n : '?'));
        if (code != BT_OK && first[0] == 0) {
            (void)snprintf(first, sizeof first, " %s: %s", instances[i], err.msg);
        }
        (void)node_check(&c, 0, &(struct check_target){.item = trees[i], .problems = &list});
        pattern_matcher_free(c.matcher);
        work += 1000 - c.budget;
    }
    buf_printf(out, " %" PRIu64 "%s\n", work, first);
    schema_free(s);
}

static void tell_keywords(struct buf *out)
{
    cJSON *trees[COUNT(instances)];

    for (size_t i = 0; i < COUNT(instances); i++) {
        trees[i] = tree_of(instances[i]);
    }
    for (size_t i = 0; i < COUNT(keywords); i++) {
        for (size_t k = 0; k < COUNT(values); k++) {
            tell_keyword(out, keywords[i], values[k], trees);
        }
    }
    for (size_t i = 0; i < COUNT(instances); i++) {
        cJSON_Delete(trees[i]);
    }
}

/* ---- whole messages, and work ---- */

static const char *const pairs[][2] = {
    /* a keyword twice */
    {"{'type':'null','type':'null'}", "1"},
    {"{'const':1,'const':1}", "1"},
    {"{'enum':[1],'enum':[1]}", "1"},
    {"{'multipleOf':1,'multipleOf':1}", "1"},
    {"{'minLength':1,'minLength':1}", "1"},
    {"{'pattern':'a','pattern':'a'}", "1"},
    {"{'uniqueItems':true,'uniqueItems':true}", "1"},
    {"{'uniqueItems':false,'uniqueItems':false}", "1"},
    {"{'required':[],'required':[]}", "1"},
    {"{'dependencies':{},'dependencies':{}}", "1"},
    {"{'propertyNames':{},'propertyNames':{}}", "1"},
    {"{'properties':{'a':true},'properties':{'a':false}}", "{'a':1}"},
    {"{'items':true,'items':false}", "[1]"},
    {"{'allOf':[{}],'allOf':[{}]}", "1"},
    {"{'not':{},'not':{}}", "1"},
    {"{'if':{},'if':{}}", "1"},
    {"{'minimum':1,'maximum':2}", "3"},
    /* where a wrong schema is */
    {"{'properties':{'a':{'items':[{},{'allOf':[{'minLength':'1'}]}]}}}", "1"},
    {"{'properties':{'a/b~c':{'patternProperties':{'^x/~':{'type':1}}}}}", "1"},
    {"{'patternProperties':{'^x':1}}", "1"},
    {"{'additionalProperties':{'enum':1}}", "1"},
    {"{'items':[],'additionalItems':{'const':1,'type':2}}", "1"},
    {"{'items':[],'additionalItems':3}", "1"},
    {"{'dependencies':{'a':{'not':3}}}", "1"},
    {"{'dependencies':{'a':3}}", "1"},
    {"{'if':true,'then':{'type':2}}", "1"},
    {"{'if':true,'then':2}", "1"},
    {"{'if':true,'else':{'type':2}}", "1"},
    {"{'if':true,'else':2}", "1"},
    {"{'definitions':{'a':{'type':2}}}", "1"},
    {"{'$defs':{'a':{'type':2}}}", "1"},
    {"{'$ref':'#/x','x':{'type':2}}", "1"},
    {"{'$ref':'#/x','x':2}", "1"},
    {"{'items':{'$ref':''}}", "[[[1]]]"},
    {"{'$ref':'#/a','a':{'$ref':'#/b'},'b':{'$ref':'#/a'}}", "1"},
    {"{'$ref':'#/a','a':{'$ref':'#/b'},'b':{'$ref':'#/c'},'c':{'type':'null'}}", "1"},
    {"{'$ref':'#/a','a':{'$ref':'#/a'}}", "1"},
    {"{'$ref':'#/a/b/0/c','a':{'b':[{'c':{'type':'null'}}]}}", "1"},
    {"{'$ref':'#/a~2','a~2':{}}", "1"},
    {"{'$ref':'#/a~','a~':{}}", "1"},
    {"{'$ref':'#/title/x','title':'t'}", "1"},
    {"{'type':'strng'}", "1"},
    {"{'type':['null',1]}", "1"},
    {"{'type':['null','strng']}", "1"},
    {"{'type':'0123456789012345678901234567890123456789012345678901234567890'}", "1"},
    {"{'pattern':'a[b'}", "1"},
    {"{'pattern':'\\\\'}", "1"},
    {"{'pattern':'\\\\Aa'}", "'Aa'"},
    {"{'pattern':'\\\\za'}", "'za'"},
    {"{'pattern':'\\\\wa\\\\-\\\\/'}", "'xa-/'"},
    {"{'pattern':'\\\\Q'}", "1"},
    {"{'pattern':'\\\\@\\\\[\\\\`\\\\{'}", "'@[`{'"},
    {"{'patternProperties':{'\\\\Z':true}}", "1"},
    /* types and values in words */
    {"{'type':['object','array','string','number','integer','boolean','null']}", "1"},
    {"{'type':['object','array','string','integer','boolean','null']}", "1.5"},
    {"{'type':['object','array','string','number','boolean','null']}", "1.5"},
    {"{'type':['object','array']}", "1e300"},
    {"{'type':['string','boolean','null']}", "0.1"},
    {"{'type':['number','integer']}", "'1'"},
    {"{'type':'boolean'}", "123456789012345680"},
    {"{'type':'number'}", "true"},
    {"{'type':'number'}", "false"},
    {"{'type':'number'}", "[]"},
    {"{'type':'number'}", "[0]"},
    {"{'type':'number'}", "{}"},
    {"{'type':'number'}", "{'a':0}"},
    {"{'type':'number'}", "null"},
    {"{'type':'null'}", "0.1234567890123456"},
    {"{'type':'null'}", "0.30000000000000004"},
    {"{'type':'null'}", "'0123456789012345678901234567890123456789'"},
    {"{'type':'null'}", "'01234567890123456789012345678901234567890'"},
    {"{'type':'null'}", "'012345678901234567890123456789012345678\xc3\xa9'"},
    {"{'type':'null'}", "'\\u001f\\u0020\\u007e\\u007f\\\"\\\\'"},
    {"{'const':[1,[2,{'a':'b'}]]}", "{'a':[1,2]}"},
    {"{'const':['0123456789012345678901234567890123456789012345678901234567890123456789012345']}",
     "['012345678901234567890123456789012345678901234567890123456789012345678901234567']"},
    {"{'const':'x'}", "'y'"},
    {"{'const':{'a':1,'b':[1,2]}}", "{'b':[1,2],'a':1}"},
    {"{'const':{'a':1,'b':[1,2]}}", "{'b':[1,2],'a':1,'c':0}"},
    {"{'const':{'a':1,'b':[1,2]}}", "{'b':[1,2]}"},
    {"{'const':[1,2]}", "[1]"},
    {"{'const':[1]}", "[1,2]"},
    {"{'const':true}", "false"},
    {"{'const':null}", "null"},
    {"{'enum':[1]}", "2"},
    {"{'enum':[1,2,3,4,5,6,7,8]}", "9"},
    {"{'enum':[1,2,3,4,5,6,7,8,9]}", "0"},
    {"{'enum':[1,2,3,4,5,6,7,8,9,10]}", "0"},
    {"{'enum':['alpha','beta',3]}", "'alpah'"},
    {"{'enum':['alpha','beta',3]}", "4"},
    {"{'enum':['alpha',3]}", "3.0"},
    {"{'enum':['0123456789012345678901234567890123456789','b']}", "[1]"},
    {"{'multipleOf':0.1}", "1.0000000005"},
    {"{'multipleOf':0.1}", "1.000000002"},
    {"{'multipleOf':0.0001}", "0.0075"},
    {"{'multipleOf':3}", "1e300"},
    {"{'multipleOf':1e-308}", "1e308"},
    {"{'multipleOf':0.5}", "3"},
    {"{'multipleOf':0.5}", "3.25"},
    {"{'multipleOf':2}", "3.0000000001"},
    {"{'multipleOf':0.5}", "0.0000000002"},
    {"{'multipleOf':0.5}", "0.000000002"},
    {"{'minimum':0.1}", "0.05"},
    {"{'maximum':2}", "2.5"},
    {"{'exclusiveMinimum':2}", "2"},
    {"{'exclusiveMaximum':2}", "2"},
    {"{'minLength':2}", "'\xc3\xa9'"},
    {"{'minLength':2}", "'\xc3\xa9\xe2\x82\xac'"},
    {"{'maxLength':2}", "'\xc3\xa9\xe2\x82\xacx'"},
    {"{'minLength':0}", "''"},
    {"{'pattern':'^a'}", "'ba'"},
    {"{'pattern':'(a)(b)'}", "'ab'"},
    {"{'pattern':'(a)(b)'}", "'ba'"},
    /* lists */
    {"{'minItems':1}", "[]"},
    {"{'maxItems':1}", "[1,2]"},
    {"{'uniqueItems':true}", "[5,1,5,2,5,1]"},
    {"{'uniqueItems':true}", "[[1,2],[2,1],[1,2]]"},
    {"{'uniqueItems':true}", "[0,-0.0]"},
    {"{'uniqueItems':true}", "[true,1,'1',null,false,0,'',[],{},[null],[[]],{'a':null}]"},
    {"{'uniqueItems':true}", "[true,true]"},
    {"{'uniqueItems':true}", "[null,null]"},
    {"{'uniqueItems':true}", "['a','b','a']"},
    {"{'uniqueItems':true}", "[{'a':1,'b':2},{'a':2,'b':1},{'b':2,'a':1}]"},
    {"{'uniqueItems':true,'minItems':3}", "[1,1]"},
    {"{'items':{'type':'null'},'minItems':9}", "[1,null,2]"},
    {"{'items':[{'type':'null'},{'type':'null'}],'additionalItems':{'type':'string'}}", "[1,2,3]"},
    {"{'items':[{'type':'null'}]}", "[1,2,3]"},
    {"{'items':[{'type':'null'}],'additionalItems':false}", "[null,2]"},
    {"{'additionalItems':false}", "[1]"},
    {"{'contains':{'minimum':5}}", "[1,2,5,1]"},
    {"{'contains':{'minimum':5}}", "[1,2]"},
    /* objects */
    {"{'minProperties':2}", "{'a':1}"},
    {"{'maxProperties':1}", "{'a':1,'b':2}"},
    {"{'required':['a','b','c']}", "{'b':1}"},
    {"{'dependencies':{'a':['b','c'],'x':['y'],'d':{'required':['e']}}}", "{'a':1,'d':2}"},
    {"{'dependencies':{'a':{'required':['e']},'b':['c']}}", "{'a':1,'b':2}"},
    {"{'propertyNames':{'pattern':'^a'}}", "{'ab':1,'b':2,'c':3}"},
    {"{'propertyNames':false}", "{'a':1}"},
    {"{'propertyNames':{'anyOf':[{'const':'a'},{'const':'b'}]}}", "{'a':1,'c':2}"},
    {"{'properties':{'a':{'type':'null'}},'patternProperties':{'a':{'type':'string'}},"
     "'additionalProperties':{'type':'boolean'}}",
     "{'a':1,'ba':2,'c':3}"},
    {"{'patternProperties':{'a':true},'additionalProperties':false}", "{'a':1,'c':3}"},
    {"{'patternProperties':{'a':false,'b':{'minimum':5}}}", "{'ab':1}"},
    {"{'properties':{'name':true,'size':true},'additionalProperties':false}", "{'nmae':1,'q':2}"},
    {"{'properties':{},'additionalProperties':false}", "{'a':1}"},
    {"{'additionalProperties':false}", "{'a':1}"},
    {"{'properties':{'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa':true,"
     "'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb':true,'cccccccccccccccccccccccccccccccccccccccc':"
     "true,"
     "'dddddddddddddddddddddddddddddddddd':true},'additionalProperties':false}",
     "{'q':1}"},
    {"{'properties':{'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa':true,"
     "'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb':true,'cccccccccccccccccccccccccccccccccccccccc':"
     "true,"
     "'ddddddddddddddddddddddddddddddddddd':true,'e':true},'additionalProperties':false}",
     "{'q':1}"},
    /* several schemas */
    {"{'allOf':[{'type':'null'},{'minimum':5},{'type':'null'}]}", "1"},
    {"{'anyOf':[{'type':'null'},{'minimum':5}]}", "1"},
    {"{'anyOf':[false,{'properties':{'a':{'items':{'type':'null'}}}}]}", "{'a':[1]}"},
    {"{'anyOf':[{'properties':{'a':{'items':{'type':'null'}}}},{'properties':{'a':false}}]}",
     "{'a':[1]}"},
    {"{'anyOf':[{'properties':{'a':false}},{'properties':{'a':{'type':'null'}}}]}", "{'a':[1]}"},
    {"{'oneOf':[{'type':'null'},{'minimum':5}]}", "1"},
    {"{'oneOf':[{'type':'null'},{'minimum':5},{'minimum':6},{'minimum':7}]}", "8"},
    {"{'oneOf':[{'type':'null'},{'minimum':5}]}", "8"},
    {"{'oneOf':[{'anyOf':[{'type':'null'}]},{'type':'null'}]}", "8"},
    {"{'not':{'anyOf':[{'type':'null'},{'minimum':5}]}}", "8"},
    {"{'not':{'oneOf':[{'type':'null'},{'minimum':5}]}}", "1"},
    {"{'not':{'not':{'type':'null'}}}", "1"},
    {"{'if':{'minimum':5},'then':{'maximum':7},'else':{'type':'null'}}", "8"},
    {"{'if':{'minimum':5},'then':{'maximum':7},'else':{'type':'null'}}", "6"},
    {"{'if':{'minimum':5},'then':{'maximum':7},'else':{'type':'null'}}", "1"},
    {"{'if':{'minimum':5}}", "1"},
    {"{'then':false,'else':false}", "1"},
    {"{'allOf':[{'properties':{'a':{'type':'null'}}},{'properties':{'a':{'type':'null'},"
     "'b':false}}]}",
     "{'a':1,'b':2}"},
};

static void tell_pair(struct buf *out, const char *schema, const char *instance)
{
    cJSON *tree = tree_of(schema);
    cJSON *item = tree_of(instance);
    struct schema *s = NULL;
    struct schema_problem problems[4];
    struct problem_list list = {problems, 4, 0};
    struct bt_error err;
    uint32_t n;
    enum bt_code code = schema_compile(tree, &s, &err);

    buf_printf(out, "%s | %s\n", schema, instance);
    if (code != BT_OK) {
        buf_printf(out, "  %s %s\n", bt_code_name(code), err.msg);
    } else {
        struct checker c = {.s = s, .budget = 100000};
        (void)node_check(&c, 0, &(struct check_target){.item = item, .problems = &list});
        pattern_matcher_free(c.matcher);
        code = schema_check(s, item, problems, 4, &n, &err);
        buf_printf(out, "  %s, %u problems, work %" PRIu64 "\n", bt_code_name(code), n,
                   100000 - c.budget);
        for (uint32_t i = 0; code != BT_OK && i < n; i++) {
            buf_printf(out, "  %s: %s\n", problems[i].path, problems[i].message);
        }
    }
    schema_free(s);
    cJSON_Delete(tree);
    cJSON_Delete(item);
}

static void every_schema_and_value_is_told_as_it_was(void **state)
{
    char *was = golden_read(TOLD);
    struct buf out;

    (void)state;
    buf_init(&out, GOLDEN_MAX);
    tell_keywords(&out);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        tell_pair(&out, pairs[i][0], pairs[i][1]);
    }
    golden_keep(TOLD, was, buf_cstr(&out));
    buf_done(&out);
    free(was);
}

/* ---- work ---- */

/* The units of a check that ends. */
static uint64_t work_of(const cJSON *schema, const cJSON *item)
{
    struct schema *s = NULL;
    struct bt_error err;
    struct checker c = {.budget = 10000000};

    assert_int_equal(schema_compile(schema, &s, &err), BT_OK);
    c.s = s;
    (void)node_check(&c, 0, &(struct check_target){.item = item});
    assert_int_equal(c.abort_code, BT_OK);
    pattern_matcher_free(c.matcher);
    schema_free(s);
    return 10000000 - c.budget;
}

/* A list of n numbers, or an object of n members. */
static cJSON *many(bool object, int n)
{
    cJSON *v = object ? cJSON_CreateObject() : cJSON_CreateArray();
    char name[20];

    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "m%d", i);
        assert_true(object ? cJSON_AddItemToObject(v, name, cJSON_CreateNumber(i))
                           : cJSON_AddItemToArray(v, cJSON_CreateNumber(i)));
    }
    return v;
}

static cJSON *text_of(size_t n)
{
    static char text[20001];

    memset(text, 'x', sizeof text - 1);
    text[n] = 0;
    return cJSON_CreateString(text);
}

/* A list and an object cost a unit for 16 of them, a text one for 256 bytes of its length, and for
 * 64 bytes that are searched. */
static void work_grows_with_the_value(void **state)
{
    static const struct {
        const char *schema;
        char kind; /* list, object, text */
        int n;
        uint64_t work;
    } rows[] = {
        {"{'minItems':1}", 'l', 15, 1},
        {"{'minItems':1}", 'l', 16, 2},
        {"{'maxItems':999}", 'l', 31, 2},
        {"{'maxItems':999}", 'l', 32, 3},
        {"{'minProperties':1}", 'o', 15, 1},
        {"{'minProperties':1}", 'o', 16, 2},
        {"{'maxProperties':999}", 'o', 63, 4},
        {"{'maxProperties':999}", 'o', 64, 5},
        {"{'required':['m0','m1']}", 'o', 15, 3},
        {"{'required':['m0','m1']}", 'o', 16, 5},
        {"{'required':['m0','m1']}", 'o', 32, 7},
        {"{'dependencies':{'m0':true,'zz':true}}", 'o', 15, 4},
        {"{'dependencies':{'m0':true,'zz':true}}", 'o', 16, 6},
        {"{'dependencies':{'m0':['m1']}}", 'o', 16, 5},
        {"{'properties':{'m0':true}}", 'o', 5, 7},
        {"{'additionalProperties':true}", 'o', 5, 11},
        {"{'propertyNames':true}", 'o', 5, 6},
        {"{'items':true}", 'l', 5, 6},
        {"{'contains':false}", 'l', 5, 6},
        {"{'uniqueItems':true}", 'l', 1, 1},
        {"{'uniqueItems':true}", 'l', 2, 5},
        {"{'uniqueItems':true}", 'l', 9, 19},
        {"{'maxLength':99999}", 't', 255, 1},
        {"{'maxLength':99999}", 't', 256, 2},
        {"{'maxLength':99999}", 't', 512, 3},
        {"{'maxLength':9}", 't', 5000, 1},
        {"{'minLength':300}", 't', 5000, 2},
        {"{'pattern':'^x'}", 't', 63, 3},
        {"{'pattern':'^x'}", 't', 64, 4},
        {"{'pattern':'^x'}", 't', 128, 5},
        {"{'pattern':'x$'}", 't', 128, 5},
        {"{'pattern':'(x+x+)+[yz]'}", 't', 3, 3},
        {"{'pattern':'(x+x+)+[yz]'}", 't', 5, 37},
        {"{'pattern':'(x+x+)+[yz]'}", 't', 8, 601},
        {"{'patternProperties':{'^m':true,'9$':true}}", 'o', 10, 62},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        cJSON *schema = tree_of(rows[i].schema);
        cJSON *item =
            rows[i].kind == 't' ? text_of((size_t)rows[i].n) : many(rows[i].kind == 'o', rows[i].n);
        const uint64_t work = work_of(schema, item);
        if (work != rows[i].work) {
            fail_msg("%s of %d: %" PRIu64, rows[i].schema, rows[i].n, work);
        }
        cJSON_Delete(schema);
        cJSON_Delete(item);
    }
}

/* Two objects that are equal: a unit for each value, for 4 members, and for 16 of each member. */
static void comparing_grows_with_both_values(void **state)
{
    static const int sizes[] = {1, 3, 4, 15, 16, 32};
    static const uint64_t work[] = {3, 5, 7, 20, 38, 106};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        cJSON *schema = cJSON_CreateObject();
        cJSON *item = many(true, sizes[i]);
        assert_true(cJSON_AddItemToObject(schema, "const", many(true, sizes[i])));
        if (work_of(schema, item) != work[i]) {
            fail_msg("%d members: %" PRIu64, sizes[i], work_of(schema, item));
        }
        cJSON_Delete(schema);
        cJSON_Delete(item);
    }
}

/* allOf of n times true, and of `hundreds` of a schema that costs 100. */
static enum bt_code check_costs(int hundreds, int ones, const cJSON *item)
{
    struct buf text;
    struct outcome o;
    cJSON *schema;

    buf_init(&text, 65536);
    buf_add_cstr(&text, "{'definitions':{'c':{'allOf':[true");
    for (int i = 1; i < 99; i++) {
        buf_add_cstr(&text, ",true");
    }
    buf_add_cstr(&text, "]}},'allOf':[true");
    for (int i = 0; i < hundreds; i++) {
        buf_add_cstr(&text, ",{'$ref':'#/definitions/c'}");
    }
    for (int i = 0; i < ones; i++) {
        buf_add_cstr(&text, ",true");
    }
    buf_add_cstr(&text, "]}");
    schema = tree_of(buf_cstr(&text));
    o = outcome_of_trees(schema, item);
    assert_true(o.compiled);
    cJSON_Delete(schema);
    buf_done(&text);
    return o.code;
}

/* 100,000 units, and 4 more for each value: of those that are nested 256 deep, and no deeper. */
static void a_check_may_cost_so_much_and_no_more(void **state)
{
    cJSON *one = cJSON_CreateNull();
    cJSON *list = many(false, 9);
    cJSON *object = many(true, 20);
    cJSON *deep = cJSON_CreateArray();

    (void)state;
    for (int i = 1; i < 300; i++) { /* 300 levels, of which 257 are counted */
        cJSON *outer = cJSON_CreateArray();
        assert_true(cJSON_AddItemToArray(outer, deep));
        deep = outer;
    }
    assert_int_equal(check_costs(1000, 2, one), BT_OK); /* and the node itself, and a true */
    assert_int_equal(check_costs(1000, 3, one), BT_LIMIT);
    assert_int_equal(check_costs(1000, 38, list), BT_OK);
    assert_int_equal(check_costs(1000, 39, list), BT_LIMIT);
    assert_int_equal(check_costs(1000, 82, object), BT_OK);
    assert_int_equal(check_costs(1000, 83, object), BT_LIMIT);
    assert_int_equal(check_costs(1010, 26, deep), BT_OK);
    assert_int_equal(check_costs(1010, 27, deep), BT_LIMIT);
    cJSON_Delete(one);
    cJSON_Delete(list);
    cJSON_Delete(object);
    cJSON_Delete(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schema_and_value_is_told_as_it_was),
        cmocka_unit_test(work_grows_with_the_value),
        cmocka_unit_test(comparing_grows_with_both_values),
        cmocka_unit_test(a_check_may_cost_so_much_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
