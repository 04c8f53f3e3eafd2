#include <cjson/cJSON.h>
#include <locale.h>

#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "protocol/wire/mp_validate.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/unit/wire/generate.h"

/* Reads, validates the output, and writes it again. */
static void assert_becomes(const char *json, const char *expected)
{
    struct bt_error err = {.code = BT_OK};
    struct buf doc;
    struct buf back;

    buf_init(&doc, 1 << 20);
    buf_init(&back, 1 << 20);
    if (json_to_doc(str_from(json), NULL, &doc, &err) != BT_OK) {
        fail_msg("%s: %s", json, err.msg);
    }
    assert_int_equal(mp_validate(doc.at, doc.len, NULL, &err), BT_OK);
    assert_int_equal(doc_to_json(doc_from_buf(&doc), false, &back, &err), BT_OK);
    assert_string_equal(buf_cstr(&back), expected);
    buf_done(&doc);
    buf_done(&back);
}

static void assert_refused_text(struct str json, enum bt_code code, const char *says)
{
    struct bt_error err = {.code = BT_OK};
    struct buf doc;

    buf_init(&doc, 1 << 20);
    buf_add_cstr(&doc, "kept");
    if (json_to_doc(json, NULL, &doc, &err) != code || strstr(err.msg, says) == NULL) {
        fail_msg("%.*s: expected '%s', got %s '%s'", STR_ARG(json), says, bt_code_name(err.code),
                 err.msg);
    }
    assert_string_equal(buf_cstr(&doc), "kept");
    buf_done(&doc);
}

static void assert_refused(const char *json, const char *says)
{
    assert_refused_text(str_from(json), BT_INVALID, says);
}

static void values_come_back_as_they_were(void **state)
{
    (void)state;
    assert_becomes(" null ", "null");
    assert_becomes("[true,false,\t\r\n{}, [ ] ]", "[true,false,{},[]]");
    assert_becomes("{\"b\":1,\"a\":{\"\":2}}", "{\"b\":1,\"a\":{\"\":2}}"); /* order is kept */
    assert_becomes("\"\\u007f\\u0080\\u07ff\\u0800\\u20ac\\ufffd\\uD800\\uDC00\"",
                   "\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xe2\x82\xac\xef\xbf\xbd\xf0\x90\x80\x80\"");
    assert_becomes("\"\\u00e9\\uD83D\\uDE00\\/\\b\\f\\n\\r\\t\\\\\\\"\"",
                   "\"\xC3\xA9\xF0\x9F\x98\x80/\\b\\f\\n\\r\\t\\\\\\\"\"");
    assert_becomes("\"\\u001f\x7F\"", "\"\\u001F\x7F\"");
    assert_becomes("\"\xEF\xBF\xBF\"", "\"\xEF\xBF\xBF\"");
}

static void integers_are_exact_and_floats_stay_floats(void **state)
{
    (void)state;
    assert_becomes("9007199254740993", "9007199254740993");
    assert_becomes("18446744073709551615", "18446744073709551615");
    assert_becomes("-9223372036854775808", "-9223372036854775808");
    assert_becomes("-0", "0");
    assert_becomes("-0.0", "-0.0");
    assert_becomes("1.0", "1.0");
    assert_becomes("1e3", "1000.0");
    assert_becomes("1E+2", "100.0");
    assert_becomes("0.1", "0.1");
    assert_becomes("5e-324", "4.94065645841247e-324");
    assert_becomes("1.7976931348623157e308", "1.7976931348623157e+308");
    assert_becomes("1e-400", "0.0");
}

static void text_that_is_no_json_is_refused_with_its_place(void **state)
{
    (void)state;
    assert_refused("", "line 1 column 1: the text ends here");
    assert_refused("  \n ", "line 2 column 2");
    assert_refused("{\"a\":1,}", "line 1 column 8: expected a key");
    assert_refused("[1,]", "column 4: expected a JSON value, got ']'");
    assert_refused("[1 2]", "expected ',' or ']'");
    assert_refused("{\"a\" 1}", "expected ':'");
    assert_refused("{a:1}", "expected a key in double quotes");
    assert_refused("{'a':1}", "expected a key in double quotes");
    assert_refused("[1}", "expected ',' or ']'");
    assert_refused("[[1]", "the text ends here");
    assert_refused("{", "the text ends here");
    assert_refused("1 2", "expected the end of the text");
    assert_refused("{}\n{}", "line 2 column 1: expected the end of the text");
    assert_refused("nul", "expected a JSON value");
    assert_refused("nullx", "expected the end of the text, got 'x'");
    assert_refused("NaN", "expected a JSON value");
    assert_refused("-Infinity", "digit after '-'");
    assert_refused("[1, // no\n2]", "got '/'");
    assert_refused("\xEF\xBB\xBF{}", "byte order mark");
    assert_refused("\"\xC3\xA9\", x", "line 1 column 4"); /* columns are characters */
    assert_refused_text((struct str){"1\0", 2}, BT_INVALID, "got byte 0x00");
}

static void numbers_outside_the_grammar_or_the_range_are_refused(void **state)
{
    (void)state;
    assert_refused("012", "must not start with a zero");
    assert_refused("-01", "must not start with a zero");
    assert_refused("+1", "expected a JSON value, got '+'");
    assert_refused(".5", "expected a JSON value, got '.'");
    assert_refused("1.", "digit after '.'");
    assert_refused("1.e3", "digit after '.'");
    assert_refused("1e", "digit after 'e'");
    assert_refused("1e+", "digit after 'e'");
    assert_refused("0x10", "expected the end of the text, got 'x'");
    assert_refused("1e999", "too large");
    assert_refused("-1e999", "too large");
    assert_refused("18446744073709551616", "does not fit in 64 bits");
    assert_refused("-9223372036854775809", "does not fit in 64 bits");
    assert_refused("100000000000000000000000000000000", "does not fit in 64 bits");
}

static void strings_that_lie_are_refused(void **state)
{
    (void)state;
    assert_refused("\"a\\u0000b\"", "line 1 column 3: \\u0000");
    assert_refused("\"\\uD800\"", "surrogate");
    assert_refused("\"\\uDC00\"", "surrogate");
    assert_refused("\"\\uD800\\n\"", "surrogate");
    assert_refused("\"\\uD800\\uD800\"", "surrogate");
    assert_refused("\"\\uD800\\u00e9\"", "surrogate");
    assert_refused("\"\\uD800\\uE000\"", "surrogate");
    assert_refused("\"\\u12g4\"", "four hex digits");
    assert_refused("\"\\u12", "four hex digits");
    assert_refused("\"\\x41\"", "no such escape");
    assert_refused("\"\\", "ends inside a string");
    assert_refused("\"a\nb\"", "control character 0x0A");
    assert_refused("\"abc", "has no end");
    assert_refused("\"\xFF\"", "not UTF-8");
    assert_refused("\"\xC0\x80\"", "not UTF-8");
    assert_refused("\"\xED\xA0\x80\"", "not UTF-8");
    assert_refused("[\xFF]", "got byte 0xFF");
}

static void a_key_that_is_there_twice_is_named_with_its_place(void **state)
{
    (void)state;
    assert_refused("{\"a\":1,\"a\":1}", "line 1 column 8: the key 'a' is there twice");
    assert_refused("{\"a\":1,\n \"b\":{\"c\":\"}\\\\\\\"\"},\"a\":[2]}",
                   "line 2 column 20: the key 'a' is there twice");
    assert_refused("[{\"x\":{\"a\":[{\"q\":1},2],\"b\":\"a\",\"\\u0061\":0}}]",
                   "column 32: the key 'a' is there twice");
}

static void limits_are_limits(void **state)
{
    const struct json_limits small = {10, 2, 5};
    char nested[2 * LIMIT_DEPTH + 3];
    struct buf doc;

    (void)state;
    memset(nested, '[', LIMIT_DEPTH + 1);
    memset(nested + LIMIT_DEPTH + 1, ']', LIMIT_DEPTH + 1);
    assert_refused_text((struct str){nested, 2 * LIMIT_DEPTH + 2}, BT_LIMIT,
                        "column 17: nested deeper than 16");
    buf_init(&doc, 1000);
    assert_int_equal(json_to_doc(STR_LIT("[[1,2,3]]"), &small, &doc, NULL), BT_OK);
    assert_int_equal(json_to_doc(STR_LIT("[[1,2,3] ]"), &small, &doc, NULL), BT_OK);
    assert_int_equal(json_to_doc(STR_LIT("[[1,2,3]  ]"), &small, &doc, NULL), BT_LIMIT);
    assert_int_equal(json_to_doc(STR_LIT("[1,2,3,4]"), &small, &doc, NULL), BT_OK);
    assert_int_equal(json_to_doc(STR_LIT("[1,2,3,[]]"), &small, &doc, NULL), BT_OK);
    assert_int_equal(json_to_doc(STR_LIT("[1,2,3,4,5]"), &small, &doc, NULL), BT_LIMIT);
    assert_int_equal(json_to_doc(STR_LIT("[[[]]]"), &small, &doc, NULL), BT_LIMIT);
    buf_done(&doc);
    buf_init(&doc, 4);
    assert_int_equal(json_to_doc(STR_LIT("\"12345\""), NULL, &doc, NULL), BT_LIMIT);
    buf_done(&doc);
}

/* As in msgpack: a list is a value, and so is each of its elements. */
static void a_text_has_as_many_values_and_levels_as_the_page_says(void **state)
{
    char nested[2 * LIMIT_DEPTH + 1];
    struct buf json;
    struct buf doc;

    (void)state;
    memset(nested, '[', LIMIT_DEPTH);
    memset(nested + LIMIT_DEPTH, ']', LIMIT_DEPTH);
    buf_init(&doc, 1 << 20);
    assert_int_equal(json_to_doc((struct str){nested, 2 * LIMIT_DEPTH}, NULL, &doc, NULL), BT_OK);
    buf_done(&doc);
    for (uint32_t n = LIMIT_NODES - 1; n <= LIMIT_NODES; n++) {
        buf_init(&json, 1 << 20);
        buf_init(&doc, 1 << 20);
        buf_add_byte(&json, '[');
        for (uint32_t i = 0; i < n; i++) {
            buf_add_cstr(&json, i == 0 ? "1" : ",1");
        }
        buf_add_byte(&json, ']');
        assert_int_equal(json_to_doc(buf_str(&json), NULL, &doc, NULL),
                         n < LIMIT_NODES ? BT_OK : BT_LIMIT);
        buf_done(&json);
        buf_done(&doc);
    }
}

static void heads_are_the_shortest_at_every_width(void **state)
{
    static const uint32_t sizes[] = {0, 1, 15, 16, 17, 65535, 65536};
    struct buf json;
    struct buf doc;
    struct buf expected;

    (void)state;
    buf_init(&json, 1 << 20);
    buf_init(&doc, 1 << 20);
    buf_init(&expected, 1 << 20);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        buf_clear(&json);
        buf_clear(&doc);
        buf_clear(&expected);
        buf_add_cstr(&json, "[[");
        doc_put_array(&expected, 2);
        doc_put_array(&expected, sizes[s]);
        for (uint32_t i = 0; i < sizes[s]; i++) {
            buf_add_cstr(&json, i > 0 ? ",7" : "7");
            doc_put_u64(&expected, 7);
        }
        buf_add_cstr(&json, "],\"x\"]");
        doc_put_cstr(&expected, "x");
        assert_int_equal(json_to_doc(buf_str(&json), NULL, &doc, NULL), BT_OK);
        assert_int_equal(doc.len, expected.len);
        assert_memory_equal(doc.at, expected.at, doc.len);
    }
    buf_done(&json);
    buf_done(&doc);
    buf_done(&expected);
}

static void random_documents_survive_the_way_there_and_back(void **state)
{
    struct rng rng = rng_seeded("json round trip");
    struct buf doc;
    struct buf json;
    struct buf back;
    struct bt_error err = {.code = BT_OK};

    (void)state;
    buf_init(&doc, 1 << 20);
    buf_init(&json, 1 << 22);
    buf_init(&back, 1 << 22);
    for (int round = 0; round < 3000; round++) {
        buf_clear(&doc);
        buf_clear(&json);
        buf_clear(&back);
        generate_doc(&rng, (struct generate_options){6, false, true}, &doc);
        assert_int_equal(doc_to_json(doc_from_buf(&doc), round % 2 == 0, &json, &err), BT_OK);
        if (json_to_doc(buf_str(&json), NULL, &back, &err) != BT_OK) {
            fail_msg("%s", err.msg);
        }
        assert_int_equal(back.len, doc.len);
        assert_memory_equal(back.at, doc.at, doc.len);
    }
    buf_done(&doc);
    buf_done(&json);
    buf_done(&back);
}

static void a_decimal_comma_of_the_program_changes_nothing(void **state)
{
    (void)state;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL &&
        setlocale(LC_NUMERIC, "fr_FR.UTF-8") == NULL) {
        skip();
    }
    assert_becomes("[1.5,2e3]", "[1.5,2000.0]");
    (void)setlocale(LC_NUMERIC, "C");
}

static void bin_becomes_base64_with_padding(void **state)
{
    static const char *const expected[] = {
        "\"\"", "\"Zg==\"", "\"Zm8=\"", "\"Zm9v\"", "\"Zm9vYg==\"", "\"Zm9vYmE=\"", "\"Zm9vYmFy\""};
    struct buf doc;
    struct buf json;

    (void)state;
    buf_init(&doc, 100);
    buf_init(&json, 100);
    for (size_t n = 0; n <= 6; n++) { /* the vectors of RFC 4648 */
        buf_clear(&doc);
        buf_clear(&json);
        doc_put_bin(&doc, "foobar", n);
        assert_int_equal(doc_to_json(doc_from_buf(&doc), false, &json, NULL), BT_OK);
        assert_string_equal(buf_cstr(&json), expected[n]);
    }
    buf_done(&doc);
    buf_done(&json);
}

static void what_has_no_json_form_is_refused_and_nothing_is_left_behind(void **state)
{
    static const struct doc bad[] = {
        {(const uint8_t *)"\x81\x01\x02", 3},             /* an integer as key */
        {(const uint8_t *)"\xCB\x7F\xF0\0\0\0\0\0\0", 9}, /* infinity */
        {(const uint8_t *)"\x92\x01", 2},                 /* cut */
        {NULL, 0},
    };
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    buf_add_cstr(&out, "kept");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(doc_to_json(bad[i], false, &out, NULL), BT_INVALID);
        assert_string_equal(buf_cstr(&out), "kept");
    }
    buf_done(&out);
}

static void pretty_print_is_for_people(void **state)
{
    struct buf doc;
    struct buf out;

    (void)state;
    buf_init(&doc, 1000);
    buf_init(&out, 1000);
    assert_int_equal(json_to_doc(STR_LIT("{\"a\":[1,{}],\"b\":[]}"), NULL, &doc, NULL), BT_OK);
    assert_int_equal(doc_to_json(doc_from_buf(&doc), true, &out, NULL), BT_OK);
    assert_string_equal(buf_cstr(&out), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
    buf_clear(&out);
    assert_int_equal(doc_to_text(doc_path(doc_from_buf(&doc), STR_LIT("a.0")), &out, NULL), BT_OK);
    buf_clear(&doc);
    doc_put_cstr(&doc, " bare \"text\"");
    assert_int_equal(doc_to_text(doc_from_buf(&doc), &out, NULL), BT_OK);
    assert_string_equal(buf_cstr(&out), "1 bare \"text\"");
    buf_clear(&doc);
    buf_clear(&out);
    assert_int_equal(json_to_doc(STR_LIT("{\"a\":[1,{}]}"), NULL, &doc, NULL), BT_OK);
    assert_int_equal(doc_to_text(doc_from_buf(&doc), &out, NULL), BT_OK);
    assert_string_equal(buf_cstr(&out), "{\"a\":[1,{}]}");
    buf_done(&doc);
    buf_done(&out);
}

/* ---- trees ---- */

static void a_tree_says_what_the_text_says(void **state)
{
    const char *text = "{\"A\":1,\"a\":[true,null,\"x\xC3\xA9\",-2.5],\"n\":9007199254740992}";
    struct bt_error err = {.code = BT_OK};
    struct cJSON *tree = NULL;
    struct buf doc;
    struct buf json;

    (void)state;
    buf_init(&doc, 1000);
    buf_init(&json, 1000);
    assert_int_equal(json_parse(str_from(text), &tree, &err), BT_OK);
    assert_int_equal(cJSON_GetObjectItemCaseSensitive(tree, "A")->valuedouble, 1);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(tree, "a")), 4);
    assert_int_equal(cjson_to_doc(tree, &doc, &err), BT_OK);
    assert_int_equal(doc_to_json(doc_from_buf(&doc), false, &json, &err), BT_OK);
    assert_string_equal(buf_cstr(&json), text);
    cJSON_Delete(tree);
    buf_done(&doc);
    buf_done(&json);
}

static void an_exact_tree_keeps_every_digit_however_it_is_printed(void **state)
{
    static const char text[] = "{\"edge\":[9007199254740992,-9007199254740992],"
                               "\"over\":[9007199254740993,-9007199254740993,"
                               "18446744073709551615,-9223372036854775808]}";
    struct bt_error err = {.code = BT_OK};
    struct cJSON *tree = NULL;
    struct cJSON *copy;
    char *printed;

    (void)state;
    assert_int_equal(json_parse_exact(str_from(text), &tree, &err), BT_OK);
    copy = cJSON_Duplicate(tree, true);
    printed = cjson_print(copy, false, &err);
    assert_string_equal(printed, text);
    cJSON_free(printed);
    printed = cJSON_PrintUnformatted(copy);
    assert_non_null(strstr(printed, strstr(text, "\"over\"")));
    cJSON_free(printed);
    printed = cjson_print(tree, true, &err);
    assert_non_null(strstr(printed, "18446744073709551615"));
    cJSON_free(printed);
    cJSON_Delete(copy);
    cJSON_Delete(tree);
}

static void a_raw_item_is_an_integer(void **state)
{
    static const char *const bad[] = {"", "1 2", "1,\"x\":2", "nul", "null", "1.5", "[1]"};
    struct bt_error err = {.code = BT_OK};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct cJSON *raw = cJSON_CreateRaw(bad[i]);
        assert_null(cjson_print(raw, false, &err));
        cJSON_Delete(raw);
    }
}

static void an_integer_that_a_double_would_bend_has_no_tree(void **state)
{
    struct bt_error err = {.code = BT_OK};
    struct cJSON *tree = NULL;

    (void)state;
    assert_int_equal(json_parse(STR_LIT("[9007199254740993]"), &tree, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "2^53"));
    assert_int_equal(json_parse(STR_LIT("[-9007199254740993]"), &tree, &err), BT_INVALID);
    assert_int_equal(json_parse(STR_LIT("[1,]"), &tree, &err), BT_INVALID);
    assert_null(tree);
}

static void a_tree_made_by_hand_is_checked(void **state)
{
    struct bt_error err = {.code = BT_OK};
    cJSON *tree = cJSON_CreateObject();
    struct buf doc;

    (void)state;
    buf_init(&doc, 1000);
    assert_non_null(cJSON_AddNumberToObject(tree, "a", 1));
    assert_non_null(cJSON_AddNumberToObject(tree, "a", 2));
    assert_int_equal(cjson_to_doc(tree, &doc, &err), BT_INVALID);
    cJSON_Delete(tree);
    tree = cJSON_CreateString("\xFF");
    assert_int_equal(cjson_to_doc(tree, &doc, &err), BT_INVALID);
    cJSON_Delete(tree);
    tree = cJSON_CreateNumber(1e308 * 10);
    assert_int_equal(cjson_to_doc(tree, &doc, &err), BT_INVALID);
    cJSON_Delete(tree);
    tree = cJSON_CreateRaw("{}");
    assert_int_equal(cjson_to_doc(tree, &doc, &err), BT_INVALID);
    cJSON_Delete(tree);
    assert_int_equal(doc.len, 0);
    buf_done(&doc);
}

/* Places in a text are 32 bits, four of which may be one. */
static void no_limit_allows_a_text_of_a_gibibyte(void **state)
{
    const struct json_limits any = {SIZE_MAX, 4, 4};
    const size_t least = UINT32_MAX / 4;
    struct bt_error err;
    struct buf out;

    (void)state;
    buf_init(&out, 64);
    assert_int_equal(json_to_doc((struct str){"x       ", least}, &any, &out, &err), BT_LIMIT);
    assert_non_null(strstr(err.msg, "1073741823 bytes of JSON are more than any body may have"));
    assert_int_equal(json_to_doc((struct str){"x       ", least - 1}, &any, &out, &err),
                     BT_INVALID);
    assert_int_equal(out.len, 0);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_allows_a_text_of_a_gibibyte),
        cmocka_unit_test(values_come_back_as_they_were),
        cmocka_unit_test(integers_are_exact_and_floats_stay_floats),
        cmocka_unit_test(text_that_is_no_json_is_refused_with_its_place),
        cmocka_unit_test(numbers_outside_the_grammar_or_the_range_are_refused),
        cmocka_unit_test(strings_that_lie_are_refused),
        cmocka_unit_test(a_key_that_is_there_twice_is_named_with_its_place),
        cmocka_unit_test(limits_are_limits),
        cmocka_unit_test(a_text_has_as_many_values_and_levels_as_the_page_says),
        cmocka_unit_test(heads_are_the_shortest_at_every_width),
        cmocka_unit_test(random_documents_survive_the_way_there_and_back),
        cmocka_unit_test(a_decimal_comma_of_the_program_changes_nothing),
        cmocka_unit_test(bin_becomes_base64_with_padding),
        cmocka_unit_test(what_has_no_json_form_is_refused_and_nothing_is_left_behind),
        cmocka_unit_test(pretty_print_is_for_people),
        cmocka_unit_test(a_tree_says_what_the_text_says),
        cmocka_unit_test(an_integer_that_a_double_would_bend_has_no_tree),
        cmocka_unit_test(an_exact_tree_keeps_every_digit_however_it_is_printed),
        cmocka_unit_test(a_raw_item_is_an_integer),
        cmocka_unit_test(a_tree_made_by_hand_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
