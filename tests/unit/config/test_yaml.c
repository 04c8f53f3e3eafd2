/* The strict YAML reader: what it accepts, what it rejects, and the positions that it reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "supervisor/config/yaml.h"
#include "supervisor/config/yaml_text.h"
#include "supervisor/config/yaml_write.h"

static enum bt_code read_bytes(struct str text, cJSON **tree, struct yaml_marks **marks,
                               struct bt_error *err)
{
    return yaml_read(text, "f.yaml", tree, marks, err);
}

static void expect_tree(const char *yaml, const char *json)
{
    struct bt_error err = {0};
    cJSON *tree = NULL;
    char *text;

    if (read_bytes(str_from(yaml), &tree, NULL, &err) != BT_OK) {
        fail_msg("%s: %s", yaml, err.msg);
    }
    text = cJSON_PrintUnformatted(tree);
    assert_string_equal(text, json);
    cJSON_free(text);
    cJSON_Delete(tree);
}

static void expect_error(const char *yaml, const char *message)
{
    struct bt_error err = {0};
    cJSON *tree = NULL;

    assert_int_not_equal(read_bytes(str_from(yaml), &tree, NULL, &err), BT_OK);
    assert_null(tree);
    assert_string_equal(err.msg, message);
}

static char *repeat(const char *text, size_t n)
{
    size_t len = strlen(text);
    char *all = calloc(1, n * len + 1);

    assert_non_null(all);
    for (size_t i = 0; i < n; i++) {
        memcpy(all + i * len, text, len);
    }
    return all;
}

static void scalars_follow_the_core_schema(void **state)
{
    (void)state;
    expect_tree("[null, ~, true, False, 7, -1, 0x1f, 0o17, 1.5, 1e3, .5]",
                "[null,null,true,false,7,-1,31,15,1.5,1000,0.5]");
    expect_tree("[yes, no, on, off, y, 12:30:45, 1.2.3, 2026-11-21, 0b11, 1_000]",
                "[\"yes\",\"no\",\"on\",\"off\",\"y\",\"12:30:45\",\"1.2.3\",\"2026-11-21\","
                "\"0b11\",\"1_000\"]");
    expect_tree("['7', \"true\", '']", "[\"7\",\"true\",\"\"]");
    expect_tree("a: |\n  x\n  y\nb: >\n  p\n  q\n", "{\"a\":\"x\\ny\\n\",\"b\":\"p q\\n\"}");
    expect_tree("", "null");
    expect_tree("# nothing\n", "null");
    expect_tree("a:\nb: 1\n", "{\"a\":null,\"b\":1}");
}

static void json_is_read_too(void **state)
{
    (void)state;
    expect_tree("{\"a\": [1, 2.5, \"x\\/\\u00e9\\ud83d\\ude00\"],\n\t\"b\": {\"c\": null}}\n",
                "{\"a\":[1,2.5,\"x/é😀\"],\"b\":{\"c\":null}}");
    expect_tree("{\"a\": \"\\\\ud83d\\\\ude00\"}", "{\"a\":\"\\\\ud83d\\\\ude00\"}");
}

/* A text may end anywhere: what is behind it is not read. */
static void an_escape_that_is_cut_off_stays_as_it_is(void **state)
{
    static const char whole[] = "[\"\\ud83d\\ude00!";
    struct buf out;

    (void)state;
    buf_init(&out, 100);
    for (size_t n = 0; n < sizeof whole; n++) {
        buf_clear(&out);
        yaml_text_join_surrogates((struct str){whole, n}, &out);
        if (n < 14) {
            assert_true(str_eq(buf_str(&out), (struct str){whole, n}));
        } else {
            assert_string_equal(buf_cstr(&out), n == 14 ? "[\"\\U0001f600" : "[\"\\U0001f600!");
        }
    }
    buf_done(&out);
}

static void mistakes_are_told_at_line_and_column(void **state)
{
    (void)state;
    expect_error("a: 1\nb: [1, 2\nc: 3\n",
                 "f.yaml:3:2: did not find expected ',' or ']', while "
                 "parsing a flow sequence that starts in line 2; what begins "
                 "with a bracket ends with one, and a text with {{ }} in it "
                 "stands in quotes");
    expect_error("a: 1\n  b: 2\n",
                 "f.yaml:2:4: mapping values are not allowed in this context; "
                 "a text with \": \" in it stands in quotes, and the members of a "
                 "map begin in one column");
    expect_error("a:\n\tb: 1\n", "f.yaml:2:1: a tab cannot indent in YAML; use spaces");
    expect_error("ab: 1\nc:\n  d: 1\n  e: 2\n  d: 3\n", "f.yaml:5:3: \"d\" stands here twice");
    expect_error("{\"a\":1,\"a\":2}", "f.yaml:1:8: \"a\" stands here twice");
    expect_error("a: 1\n--- \nb: 2\n", "f.yaml:2:1: a second document; one file holds one");
    expect_error("a: \xff\n", "f.yaml:1:4: the text is not UTF-8");
    expect_error("é: \xc3\n", "f.yaml:1:4: the text is not UTF-8");
    expect_error("\xff\xfe"
                 "a",
                 "f.yaml:1:1: the text is not UTF-8");
    expect_error("a: \"x\\0y\"\n", "f.yaml:1:4: the text holds a zero byte");
    expect_error("a: x\x01y\n", "f.yaml:1:5: control characters are not allowed");
    expect_error("? [1]\n: 2\n", "f.yaml:1:3: a key must be text");
}

static void foreign_parts_of_yaml_are_refused(void **state)
{
    (void)state;
    expect_error("a: &x 1\nb: 2\n",
                 "f.yaml:1:4: anchors and aliases are not supported; write the value out");
    expect_error("a: 1\nb: *x\n",
                 "f.yaml:2:4: anchors and aliases are not supported; write the value out");
    expect_error("a: !!str 1\n",
                 "f.yaml:1:4: tags are not supported; quote a value to make it text");
    expect_error("a: !!python/object/apply:os.system [x]\n",
                 "f.yaml:1:4: tags are not supported; quote a value to make it text");
}

static void numbers_that_would_change_are_refused(void **state)
{
    (void)state;
    expect_error(
        "a: 9007199254740993\n",
        "f.yaml:1:4: 9007199254740993: the number is too large; write it in quotes if it is text");
    expect_error(
        "a: 0777\n",
        "f.yaml:1:4: 0777: YAML 1.1 and 1.2 read this number differently; write it without the "
        "leading 0, as 0o17, or in quotes");
    expect_error("a: .nan\n", "f.yaml:1:4: .nan: a number that is not finite; JSON has none");
    expect_error("a: -.inf\n", "f.yaml:1:4: -.inf: a number that is not finite; JSON has none");
    expect_error("a: 1e999\n",
                 "f.yaml:1:4: 1e999: the number is too large; write it in quotes if it is text");
}

static void hostile_sizes_end_at_a_cap(void **state)
{
    char *flow = repeat("[", 100000);
    char *block = repeat("- ", 100000);
    char *many = repeat("- 1\n", 200001);
    char *large = repeat("# comment\n", 110000);

    (void)state;
    expect_error(flow, "f.yaml:1:17: nests deeper than 16 levels");
    expect_error(block, "f.yaml:1:33: nests deeper than 16 levels");
    expect_error(many, "f.yaml:200000:3: more than 200000 values");
    expect_error(large, "f.yaml: larger than 1024 KiB");
    free(flow);
    free(block);
    free(many);
    free(large);
}

static void many_keys_are_compared_in_linear_time(void **state)
{
    char *text = calloc(1, 60000 * 12);
    size_t used = 0;
    struct bt_error err = {0};
    cJSON *tree = NULL;

    (void)state;
    assert_non_null(text);
    for (int i = 0; i < 60000; i++) {
        used += (size_t)snprintf(text + used, 12, "k%d: 1\n", i);
    }
    assert_int_equal(read_bytes((struct str){text, used}, &tree, NULL, &err), BT_OK);
    cJSON_Delete(tree);
    free(text);
}

static void places_follow_pointers_as_far_as_they_lead(void **state)
{
    static const struct {
        const char *pointer;
        struct yaml_place place;
    } rows[] = {
        {"", {1, 1}},          {"/a", {1, 1}},       {"/a/b~1c", {2, 3}}, {"/l", {3, 1}},
        {"/l/1", {5, 5}},      {"/l/1/x", {5, 5}},   {"/l/1/y", {6, 5}},  {"/l/1/y/z", {6, 5}},
        {"/l/9", {3, 1}},      {"/l/x", {3, 1}},     {"/l/", {3, 1}},     {"/missing", {1, 1}},
        {"/a/b~1c/d", {2, 3}}, {"/l/1/...", {5, 5}},
    };
    struct yaml_marks *marks = NULL;
    cJSON *tree = NULL;
    struct bt_error err = {0};

    (void)state;
    assert_int_equal(
        read_bytes(STR_LIT("a:\n  b/c: 1\nl:\n  - 1\n  - x: 2\n    y: 3\n"), &tree, &marks, &err),
        BT_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct yaml_place p = yaml_place(marks, rows[i].pointer);
        if (p.line != rows[i].place.line || p.column != rows[i].place.column) {
            fail_msg("%s: %u:%u", rows[i].pointer, p.line, p.column);
        }
    }
    yaml_marks_free(marks);
    cJSON_Delete(tree);
}

/* Every prefix of a text is either read or rejected; ASan and UBSan check. */
static void no_prefix_of_a_text_does_harm(void **state)
{
    static const char text[] =
        "# x\na: {b: [1, \"\\u00e9\", 'q''q'], c: |\n   }\nd:\n  - - x\n    - y: >-\n  "
        "     folded\n? e\n: *f\n%TAG ! x\n--- \"\\xff\" é";
    (void)state;
    for (size_t n = 0; n < sizeof text; n++) {
        struct bt_error err = {0};
        cJSON *tree = NULL;
        char *copy = malloc(n + 1);
        enum bt_code code;
        assert_non_null(copy);
        memcpy(copy, text, n);
        code = read_bytes((struct str){copy, n}, &tree, NULL, &err);
        assert_true(code == BT_OK || err.msg[0] != '\0');
        cJSON_Delete(tree);
        free(copy);
    }
}

static void expect_written(const char *json, const char *yaml)
{
    cJSON *tree = cJSON_Parse(json);
    struct buf out;
    struct bt_error err;

    assert_non_null(tree);
    buf_init(&out, 1 << 20);
    assert_int_equal(yaml_write(tree, &out, &err), BT_OK);
    assert_string_equal(buf_cstr(&out), yaml);
    expect_tree(yaml, json);
    buf_done(&out);
    cJSON_Delete(tree);
}

static void what_is_written_is_read_as_the_same_tree(void **state)
{
    (void)state;
    expect_written(
        "{\"a\":1,\"b\":[true,null,-2.5],\"c\":{},\"d\":[],\"e\":{\"f\":[{\"g\":\"h\"}]}}",
        "a: 1\nb:\n- true\n- null\n- -2.5\nc: {}\nd: []\ne:\n  f:\n  - g: h\n");
    expect_written("[]", "[]\n");
    expect_written("\"x\"", "x\n");
    expect_written("{\"on\":\"yes\",\"b\":\"1e3\",\"c\":\"2026-11-23\",\"d\":\"\",\"e\":\"a: b\","
                   "\"f\":\"- x\",\"g\":\"Null\",\"h\":\"a #b\",\"i\":\"ünï ✓\"}",
                   "'on': 'yes'\nb: '1e3'\nc: '2026-11-23'\nd: ''\ne: 'a: b'\nf: '- x'\n"
                   "g: 'Null'\nh: 'a #b'\ni: ünï ✓\n");
    expect_written("{\"text\":\"one\\n  two\\n\",\"end\":\"x\\ny\",\"esc\":\"\\u001b[1m\"}",
                   "text: |\n  one\n    two\nend: |-\n  x\n  y\nesc: \"\\e[1m\"\n");
}

static void awkward_texts_survive_a_round(void **state)
{
    static const char *const texts[] = {
        "\\n",         "\\n\\n", " \\nx", "x\\n ",   "\\ta",        "a\\t",    "#",
        "'",           "\\\"",   "\\\\",  "\\u007f", "\\u0085x",    "\\u2028", "a\\r\\nb",
        "?",           "!x",     "&a",    "*a",      "%",           "@",       "`",
        "{{steps.x}}", "[a",     "a, b",  "---",     "x\\n...\\ny", "  x",     "x  ",
        "x\\n\\n\\n",  "=",      "<<",    "0777",    "-",           "~"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char json[64];
        cJSON *tree;
        cJSON *again = NULL;
        struct buf out;
        struct bt_error err = {0};
        (void)snprintf(json, sizeof json, "{\"%s\":[\"%s\"]}", texts[i], texts[i]);
        tree = cJSON_Parse(json);
        assert_non_null(tree);
        buf_init(&out, 1 << 20);
        assert_int_equal(yaml_write(tree, &out, &err), BT_OK);
        if (read_bytes(str_from(buf_cstr(&out)), &again, NULL, &err) != BT_OK ||
            !cJSON_Compare(tree, again, true)) {
            fail_msg("%s: %s: %s", texts[i], buf_cstr(&out), err.msg);
        }
        cJSON_Delete(again);
        cJSON_Delete(tree);
        buf_done(&out);
    }
}

/* B12: what a terminal obeys and what cannot be seen is never written as it is. */
static void what_cannot_be_seen_is_escaped(void **state)
{
    (void)state;
    expect_written("{\"a\":\"x\xE2\x80\xAEy\",\"b\xE2\x80\x8B\":[\"\xE2\x80\xA8\"]}",
                   "a: \"x\\u202Ey\"\n\"b\\u200B\":\n- \"\\L\"\n");
    expect_written("{\"a\":\"\xF3\xA0\x81\x81\"}", "a: \"\\U000E0041\"\n");
}

static void full_buffer_is_an_error(void **state)
{
    cJSON *tree = cJSON_Parse("{\"a\":\"0123456789\"}");
    struct bt_error err;

    (void)state;
    for (size_t cap = 15; cap <= 16; cap++) {
        struct buf out;
        buf_init(&out, cap);
        assert_int_equal(yaml_write(tree, &out, &err), cap == 16 ? BT_OK : BT_LIMIT);
        buf_done(&out);
    }
    cJSON_Delete(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_follow_the_core_schema),
        cmocka_unit_test(json_is_read_too),
        cmocka_unit_test(an_escape_that_is_cut_off_stays_as_it_is),
        cmocka_unit_test(mistakes_are_told_at_line_and_column),
        cmocka_unit_test(foreign_parts_of_yaml_are_refused),
        cmocka_unit_test(numbers_that_would_change_are_refused),
        cmocka_unit_test(hostile_sizes_end_at_a_cap),
        cmocka_unit_test(many_keys_are_compared_in_linear_time),
        cmocka_unit_test(places_follow_pointers_as_far_as_they_lead),
        cmocka_unit_test(no_prefix_of_a_text_does_harm),
        cmocka_unit_test(what_is_written_is_read_as_the_same_tree),
        cmocka_unit_test(awkward_texts_survive_a_round),
        cmocka_unit_test(what_cannot_be_seen_is_escaped),
        cmocka_unit_test(full_buffer_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
