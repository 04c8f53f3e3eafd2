/* Many texts of YAML, and what each is read as, in yaml_told.txt: the tree with the place of each
 * value, or the mistake; what an item is added to; what a tree is written as. BATON_WRITE=1 writes
 * the file anew: read the difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "supervisor/config/yaml.h"
#include "supervisor/config/yaml_append.h"
#include "supervisor/config/yaml_text.h"
#include "supervisor/config/yaml_write.h"
#include "tests/support/golden.h"

static const char *const texts[] = {
    "",
    " ",
    "# only a comment\n",
    "---\n",
    "--- 1\n...\n",
    "1",
    "a",
    "a: 1",
    "a: 1\nb:\n  c: 2\n  d:\n    - 3\n    - e: 4\n      f: 5\n",
    "a: {b: [1, {c: 2}], d: 3}\n",
    "[1, [2, [3]]]\n",
    "- 1\n-\n  - 2\n- a: 3\n",
    "{\"a\": [1, \"\\ud83d\\ude00\", \"\\u00e9\"], \"b\": {}}",
    " \t\r\n{\"a\": 1}",
    "\n[\"\\ud83d\\ude00\"]",
    "a: \"\\ud83d\\ude00\"\n",
    "[\"\\ud83d\"]",
    "[\"\\ud83d\\ud83d\"]",
    "[\"\\ud7ff\\ue000\\udbff\\udfff\\ud800\\udc00\"]",
    "[\"\\uDBFF\\uDFFF\", \"\\\\ud83d\\\\ude00\", 'x']",
    "[\"\\\"\\ud83d\\ude00\\\"\"]",
    "[\"\\ud83g\\ude00\"]",
    "[\"\\ud83d\\ude0\"]",
    "a: 'x''y'\nb: \"x\\ty\"\nc: |\n  one\n  two\nd: >\n  one\n  two\n",
    "a: \nb: ~\nc: null\nd: Null\ne: NULL\nf: nULL\n",
    "a: true\nb: True\nc: TRUE\nd: tRUE\ne: yes\nf: on\n",
    "a: false\nb: False\nc: FALSE\nd: no\n",
    "'a': 'true'\n\"b\": \"1\"\n",
    "é: ü\n漢: 字\nb: x: y\n",
    "é: [ü\n",
    "a: 1\na: 2\n",
    "a: {b: 1, c: 2, b: 3}\n",
    ": 1\n",
    "? a\n: 1\n",
    "? [a]\n: 1\n",
    "{a: 1}: 2\n",
    "a: &x 1\n",
    "a: &x [1]\n",
    "a: &x {b: 1}\n",
    "a: *x\n",
    "a: !!str 1\n",
    "a: !x [1]\n",
    "a: !x {b: 1}\n",
    "--- 1\n--- 2\n",
    "a: 1\n---\nb: 2\n",
    "a: b: c\n",
    "a: [1\nb: 2\n",
    "a: {b: 1\nc: 2\n",
    "a: {{ x }}\n",
    "a: @x\n",
    "a: `x\n",
    "a: %x\n",
    "a: 1\n b: 2\n",
    "a:\n  b: 1\n c: 2\n",
    "a:\n- 1\n b\n- 2\n",
    "- a\nb: 1\n",
    "\ta: 1\n",
    "a:\n\t- 1\n",
    "a:\tb\n",
    "a: \"x\n",
    "a: 'x\n",
    "a: \"\\q\"\n",
    "a: \"\\0\"\n",
    "a: \x01\n",
    "a: \x7f\n",
    "a: \xff\n",
    "é\xc3\n",
    "\xe2\x82",
    "\xf0\x9f\x98\x80: 1\n\xf0\x9f\n",
    "\xf0\x9f\x98\x80\xc3\xa9\xff",
    "\xe2\x82\xac\xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9x\xc3x",
    "a\xf8",
    "a: \xe2\x82\xac \xc3\xa9 \xf0\x9f\x98\x80 [\n",
    "a\n---\nb",
    "%YAML 1.1\n---\na: 1\n",
    "%TAG ! x\n---\na: 1\n",
    "a: 1 # x\nb: 'c' # y\n",
    "a: x#y\n",
    "a:\n    b:\n        c: [1,\n            2]\n",
    "<<: {a: 1}\n",
    "a: =\n",
};

static const char *const scalars[] = {"0",
                                      "-0",
                                      "+0",
                                      "1",
                                      "+1",
                                      "-1",
                                      "00",
                                      "01",
                                      "08",
                                      "-01",
                                      "+07",
                                      "0.5",
                                      ".5",
                                      "5.",
                                      ".",
                                      "+",
                                      "-",
                                      "1.5",
                                      "-.5",
                                      "1e3",
                                      "1E3",
                                      "1e",
                                      "1e+",
                                      "1e-2",
                                      "1e+2",
                                      "e1",
                                      ".e1",
                                      "1.e1",
                                      "01.5",
                                      "0x1F",
                                      "0xg",
                                      "0x",
                                      "0X1",
                                      "0o17",
                                      "0o8",
                                      "0o",
                                      "0b1",
                                      "1_000",
                                      "9007199254740991",
                                      "9007199254740992",
                                      "-9007199254740991",
                                      "-9007199254740992",
                                      "9007199254740992.5",
                                      "1e308",
                                      "1e309",
                                      "0xffffffffffffffff",
                                      "0x1fffffffffffff",
                                      "0x20000000000000",
                                      "0xfffffffffffffffff",
                                      ".inf",
                                      "-.inf",
                                      "+.Inf",
                                      ".INF",
                                      ".iNF",
                                      ".nan",
                                      ".NaN",
                                      ".NAN",
                                      "-.nan",
                                      "inf",
                                      "nan",
                                      "~",
                                      "~~",
                                      "null",
                                      "nul",
                                      "true",
                                      "tru",
                                      "false",
                                      "",
                                      " ",
                                      "1 ",
                                      "a1",
                                      "1a",
                                      "12:30",
                                      "2026-11-30"};

static const char *const lists[] = {
    "",
    "\n",
    "a: 1\n",
    "a: 1",
    "# c\n",
    "agents:",
    "agents:\n",
    "agents: \n",
    "agents:   # none\nb: 1\n",
    "agents: []",
    "agents: []\n",
    "agents: [] # none\nb: 1\n",
    "agents:    []\nb: 1\n",
    "agents: [ ]\n",
    "agents: [1]\n",
    "agents: null\n",
    "agents: ~\n",
    "agents: text\n",
    "a: 1\nagents:\n- x: 1\n",
    "agents:\n- x: 1",
    "agents:\n- x: 1\n\n\n",
    "agents:\n- x: 1\n# end\n",
    "agents:\n- x: 1\n  # its own\nb: 1\n",
    "agents:\n  - x: 1\n# out\n  # in\nb: 1\n",
    "agents:\n  # first\n  - x: 1\n  - x: 2\nb: 1\n",
    "agents:\n\n  - x: 1\n\n  - x: 2\n\nb: 1\n",
    "agents:\n  - x: 1\n\n    y: 2\n\nb: 1\n",
    "agents:\n    - x: 1\n    - x: 2\n",
    "agents:\n  - x: |\n      a\n\n      b\n  - y\nb: 1\n",
    "b: 1\nagents:\n  - x\nc:\n  - y\n",
    "agents:\r\n  - x: 1\r\nb: 1\r\n",
    "\"agents\": []\n",
    "'agents':\n  - 1\n",
    "{agents: [], b: 1}\n",
    "agents: [] \n  # c\nb: 1\n",
    "b: {agents: []}\n",
    "agents:\n  -\n    x: 1\nb: 1\n",
    "agents: &a []\n",
    "? agents\n: []\n",
    "? agents\n: - 1\n",
    "a: 1\nb: 2\nagents:\n",
    "agents:  \n  # c\n",
    "agents:x: 1\n",
    "[]\n",
    "text\n",
    "a: [\n",
};

static const char *const trees[] = {
    "1",
    "-1.5",
    "1e300",
    "true",
    "false",
    "null",
    "\"\"",
    "\"a\"",
    "[]",
    "{}",
    "[[],{}]",
    "[[1,[2]],{\"a\":[]}]",
    "{\"a\":{\"b\":{\"c\":1}},\"d\":[{\"e\":1,\"f\":2},{\"g\":[1]}]}",
    "[\"null\",\"Null\",\"true\",\"YES\",\"no\",\"On\",\"off\",\"Y\",\"n\",\"nn\",\"yesno\"]",
    "[\"a\",\"z\",\"A\",\"Z\",\"_\",\"/\",\"`\",\"{\",\"@\",\"[\",\".\",\"0\",\"-\",\"~\"]",
    "[\"\xc3\xa9\",\"\xe6\xbc\xa2\",\"a b\",\"a: b\",\"a #b\",\"a:b\",\" a\",\"a \"]",
    "{\"on\":1,\"1\":2,\"a b\":3,\"\":4,\"\xc3\xa9\":5,\"a\\nb\":6}",
    "[\"a\\nb\",\"a\\n\",\"\\n\",\"a\\n\\n\",\"\\ta\",\"a\\tb\",\"a\\r\\n\"]",
    "[\"\\u0000x\",\"\\u0001\",\"\\u001b\",\"\\u007f\",\"\\u200b\",\"\\u202e\",\"\\ufeff\"]",
    "[\"0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 "
    "0123456789 0123456789\",\"word word word word word word word word word word word word word "
    "word word word word word word word word word word word word\"]",
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* The value at each pointer, with its place. */
static void say_places(const struct yaml_marks *marks, const cJSON *v, char *pointer,
                       struct buf *out)
{
    const struct yaml_place place = yaml_place(marks, pointer);
    const size_t n = strlen(pointer);
    uint32_t ix = 0;

    buf_printf(out, " %s@%u:%u", pointer, place.line, place.column);
    for (const cJSON *child = v->child; child != NULL; child = child->next, ix++) {
        if (cJSON_IsArray(v)) {
            (void)snprintf(pointer + n, 100, "/%u", ix);
        } else {
            (void)snprintf(pointer + n, 100, "/%.90s", child->string);
        }
        say_places(marks, child, pointer, out);
        pointer[n] = 0;
    }
}

static void say_text(struct buf *out, const char *text)
{
    for (; *text != 0; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '\n' || c == '\t' || c == '\r') {
            buf_printf(out, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        } else if (c < 0x20 || c >= 0x7f) {
            buf_printf(out, "\\x%02x", c);
        } else {
            buf_add_byte(out, c);
        }
    }
}

static void tell_text(struct buf *out, const char *text)
{
    struct yaml_marks *marks = NULL;
    cJSON *tree = NULL;
    struct bt_error err = {0};
    const enum bt_code code = yaml_read(str_from(text), "f", &tree, &marks, &err);

    say_text(out, text);
    buf_add_cstr(out, "\n  ");
    if (code != BT_OK) {
        buf_printf(out, "%s %s\n", bt_code_name(code), err.msg);
    } else {
        char pointer[1000] = "";
        char *json = cJSON_PrintUnformatted(tree);
        say_text(out, json);
        say_places(marks, tree, pointer, out);
        buf_add_cstr(out, "\n");
        cJSON_free(json);
    }
    yaml_marks_free(marks);
    cJSON_Delete(tree);
}

static void tell_scalar(struct buf *out, const char *text)
{
    buf_printf(out, "'%s':", text);
    for (int plain = 0; plain < 2; plain++) {
        cJSON *v = NULL;
        const char *why = "";
        const enum bt_code code = yaml_scalar(text, plain == 1, &v, &why);
        char *json = code == BT_OK ? cJSON_PrintUnformatted(v) : NULL;
        buf_printf(out, " %s", code == BT_OK ? json : why);
        cJSON_free(json);
        cJSON_Delete(v);
    }
    buf_add_cstr(out, "\n");
}

static void tell_list(struct buf *out, const char *text)
{
    cJSON *item = cJSON_Parse("{\"k\":\"v\",\"l\":[1,2],\"t\":\"a\\n\\nb\\n\"}");
    struct bt_error err = {0};
    struct buf to;
    enum bt_code code;

    buf_init(&to, 65536);
    code = yaml_append(str_from(text), "f", "agents", item, &to, &err);
    say_text(out, text);
    buf_printf(out, "\n  %s ", bt_code_name(code));
    say_text(out, code == BT_OK ? buf_cstr(&to) : err.msg);
    buf_add_cstr(out, "\n");
    buf_done(&to);
    cJSON_Delete(item);
}

static void tell_tree(struct buf *out, const char *json)
{
    cJSON *tree = cJSON_Parse(json);
    cJSON *again = NULL;
    struct bt_error err = {0};
    struct buf to;

    assert_non_null(tree);
    buf_init(&to, 65536);
    assert_int_equal(yaml_write(tree, &to, &err), BT_OK);
    assert_int_equal(yaml_read(buf_str(&to), "f", &again, NULL, &err), BT_OK);
    assert_true(cJSON_Compare(tree, again, true));
    buf_printf(out, "%s\n  ", json);
    say_text(out, buf_cstr(&to));
    buf_add_cstr(out, "\n");
    buf_done(&to);
    cJSON_Delete(tree);
    cJSON_Delete(again);
}

static void every_text_is_told_as_it_was(void **state)
{
    char *was = golden_read(TOLD);
    struct buf out;

    (void)state;
    buf_init(&out, GOLDEN_MAX);
    for (size_t i = 0; i < COUNT(texts); i++) {
        tell_text(&out, texts[i]);
    }
    for (size_t i = 0; i < COUNT(scalars); i++) {
        tell_scalar(&out, scalars[i]);
    }
    for (size_t i = 0; i < COUNT(lists); i++) {
        tell_list(&out, lists[i]);
    }
    for (size_t i = 0; i < COUNT(trees); i++) {
        tell_tree(&out, trees[i]);
    }
    golden_keep(TOLD, was, buf_cstr(&out));
    buf_done(&out);
    free(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_text_is_told_as_it_was)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
