/* Rows, their types and their texts; the input of a skill; pieces of Markdown. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/sdk/input.h"
#include "agents/sdk/markdown.h"
#include "agents/sdk/regex.h"
#include "agents/sdk/step.h"
#include "agents/sdk/table.h"

enum { OUT = 1024 * 1024 };

static cJSON *parsed(const char *json)
{
    cJSON *tree = cJSON_Parse(json);

    if (tree == NULL) {
        fail_msg("%s", json);
    }
    return tree;
}

/* The columns, types and rows of a table as JSON. */
static void shows(struct table *t, const char *want)
{
    static const char *const names[] = {"text", "integer", "real", "boolean", "date"};
    cJSON *all = cJSON_CreateObject();
    cJSON *columns = cJSON_AddArrayToObject(all, "c");
    cJSON *rows = cJSON_AddArrayToObject(all, "r");
    char text[8192] = "";
    char *got;

    for (int i = 0; i < t->n; i++) {
        (void)snprintf(text, sizeof text, "%s %s", t->columns[i], names[t->type[i]]);
        cJSON_AddItemToArray(columns, cJSON_CreateString(text));
    }
    for (int r = 0; r < t->rows_n; r++) {
        cJSON_AddItemToArray(rows, cJSON_Duplicate(t->rows[r], true));
        assert_int_equal(cJSON_GetArraySize(t->rows[r]), t->n);
    }
    got = cJSON_PrintUnformatted(all);
    if (strcmp(got, want) != 0) {
        fail_msg("got  %s\nwant %s", got, want);
    }
    cJSON_free(got);
    cJSON_Delete(all);
}

static enum bt_code typed(const char *json, const char *types, struct table *t,
                          struct bt_error *err)
{
    cJSON *tree = parsed(json);
    struct buf doc;
    enum bt_code code = table_read(tree, t, err);

    buf_init(&doc, OUT);
    cJSON_Delete(tree);
    if (code == BT_OK && types != NULL) {
        assert_int_equal(json_to_doc(str_from(types), NULL, &doc, err), BT_OK);
        code = table_declare(t, doc_from_buf(&doc), err);
    }
    code = code == BT_OK ? table_set_types(t, err) : code;
    buf_done(&doc);
    return code;
}

static void becomes(const char *json, const char *types, const char *want)
{
    struct table t = {0};
    struct bt_error err = {.msg = ""};

    if (typed(json, types, &t, &err) != BT_OK) {
        fail_msg("%s: %s", json, err.msg);
    }
    shows(&t, want);
    table_done(&t);
}

static void is_refused(const char *json, const char *types, const char *words)
{
    struct table t = {0};
    struct bt_error err = {.msg = ""};

    assert_int_equal(typed(json, types, &t, &err), BT_INVALID);
    if (strstr(err.msg, words) == NULL) {
        fail_msg("%s: %s", json, err.msg);
    }
    table_done(&t);
}

static void a_table_has_one_of_five_forms(void **state)
{
    (void)state;
    becomes("{\"columns\":[\"a\",\"b\"],\"rows\":[[1,\"x\"],[2]]}", NULL,
            "{\"c\":[\"a integer\",\"b text\"],\"r\":[[1,\"x\"],[2,null]]}");
    becomes("{\"columns\":[\"a\"],\"counts\":[[1]]}", NULL, "{\"c\":[\"a integer\"],\"r\":[[1]]}");
    becomes("{\"shares\":[{\"a\":1},{\"b\":2}]}", NULL,
            "{\"c\":[\"a integer\",\"b integer\"],\"r\":[[1,null],[null,2]]}");
    becomes("{\"rows\":7,\"shares\":[[1]]}", NULL, "{\"c\":[\"c1 integer\"],\"r\":[[1]]}");
    becomes("{\"columns\":7,\"rows\":[[1]]}", NULL, "{\"c\":[\"c1 integer\"],\"r\":[[1]]}");
    becomes("{\"columns\":[\"a\"],\"b\":1}", NULL,
            "{\"c\":[\"label text\",\"value text\"],\"r\":[[\"columns\",[\"a\"]],[\"b\",\"1\"]]}");
    becomes("[]", NULL, "{\"c\":[],\"r\":[]}");
    becomes("[{\"a\":{\"x\":1}},{\"a\":null}]", NULL,
            "{\"c\":[\"a text\"],\"r\":[[{\"x\":1}],"
            "[null]]}");
    becomes("[[1,2],3,[4]]", NULL,
            "{\"c\":[\"c1 integer\",\"c2 integer\"],\"r\":[[1,2],[3,null],[4,null]]}");
    becomes("{\"a\":\"x\",\"b\":\"y\"}", NULL,
            "{\"c\":[\"label text\",\"value text\"],\"r\":[[\"a\",\"x\"],[\"b\",\"y\"]]}");
    becomes("\"a,b\\n1,\\n\"", NULL, "{\"c\":[\"a integer\",\"b text\"],\"r\":[[1,null]]}");
    is_refused("7", NULL, "expected rows: {columns, rows}, a list of objects, a map, or CSV text");
    is_refused("null", NULL, "expected rows");
    is_refused("{\"columns\":[\"a\",1],\"rows\":[]}", NULL, "columns: expected a list of names");
    is_refused("\"a,\\n1,2\\n\"", NULL, "a column without a name");
    is_refused("\"a\\n1\\n1,2\\n\"", NULL, "CSV record 3: 2 fields under a header of 1");
}

static void types_are_those_of_the_source_or_found(void **state)
{
    (void)state;
    becomes("[[1,1.5,true,\"2026-11-30\",\"x\",null]]", NULL,
            "{\"c\":[\"c1 integer\",\"c2 real\",\"c3 boolean\",\"c4 date\",\"c5 text\","
            "\"c6 text\"],\"r\":[[1,1.5,true,\"2026-11-30\",\"x\",null]]}");
    becomes("[[1],[1.5],[null]]", NULL, "{\"c\":[\"c1 real\"],\"r\":[[1],[1.5],[null]]}");
    becomes("[[\"12\",\"1.5\",\"true\",\"9007199254740993\"]]", NULL,
            "{\"c\":[\"c1 integer\",\"c2 real\",\"c3 boolean\",\"c4 integer\"],"
            "\"r\":[[12,1.5,true,\"9007199254740993\"]]}");
    becomes("[[12],[\"-9007199254740993\"]]", NULL,
            "{\"c\":[\"c1 integer\"],\"r\":[[12],[\"-9007199254740993\"]]}");
    becomes("{\"columns\":[\"z\",\"n\"],\"rows\":[[\"007\",\"1\"]],\"types\":{\"z\":\"text\","
            "\"n\":\"real\",\"q\":\"real\",\"x\":7}}",
            NULL, "{\"c\":[\"z text\",\"n real\"],\"r\":[[\"007\",1]]}");
    /* of a list of objects it is no member of the table */
    becomes("{\"rows\":[[\"1\"]],\"types\":{\"c1\":\"text\"}}", NULL,
            "{\"c\":[\"c1 integer\"],\"r\":[[1]]}");
    becomes("[[\"\"]]", NULL, "{\"c\":[\"c1 text\"],\"r\":[[\"\"]]}");
    becomes("[[true],[1]]", NULL, "{\"c\":[\"c1 text\"],\"r\":[[\"true\"],[\"1\"]]}");
}

static void a_declared_type_wins_and_a_cell_that_is_not_of_it_is_named(void **state)
{
    (void)state;
    becomes("[[1,2,\"3\"]]", "{\"c1\":\"text\",\"c2\":\"real\",\"c3\":\"integer\"}",
            "{\"c\":[\"c1 text\",\"c2 real\",\"c3 integer\"],\"r\":[[\"1\",2,3]]}");
    becomes("[[true]]", "{\"c1\":\"boolean\"}", "{\"c\":[\"c1 boolean\"],\"r\":[[true]]}");
    becomes("[[\"+07\"]]", "{\"c1\":\"integer\"}", "{\"c\":[\"c1 integer\"],\"r\":[[7]]}");
    becomes("\"a\\n\\\"\\\"\\n\"", "{\"a\":\"text\"}", "{\"c\":[\"a text\"],\"r\":[[\"\"]]}");
    is_refused("[[1],[2.5]]", "{\"c1\":\"integer\"}",
               "row 2: column 'c1' has the type integer, but '2.5' is not ");
    is_refused("[[\"x\"]]", "{\"c1\":\"date\"}", "set types: {\"c1\": \"text\"}");
    is_refused("[[true]]", "{\"c1\":\"real\"}", "row 1: column 'c1' has the type real");
    is_refused("[[1,2,3]]", "{\"q\":\"text\"}",
               "types: there is no column 'q'; the columns are: c1, c2, ...");
    is_refused("[[1,2]]", "{\"q\":\"text\"}", "the columns are: c1, c2");
    is_refused("[[1]]", "{\"q\":\"text\"}", "the columns are: c1");
    is_refused("[]", "{\"q\":\"text\"}", "the columns are: none");
    is_refused("[[1]]", "{\"c1\":\"number\"}",
               "types.c1: expected text, integer, real, boolean or date");
    is_refused("[[1]]", "{\"c1\":7}", "types.c1: expected text");
    is_refused("[[1]]", "[]", "types: expected an object such as");
}

static void a_cell_is_a_value_of_its_type(void **state)
{
    struct table t = {0};
    struct bt_error err;
    struct cell v;
    struct buf out;
    struct buf json;

    (void)state;
    assert_int_equal(
        typed("[[9007199254740993,-3,2.5,true,\"x\",null],[\"9007199254740993\",1,1.5,false,\"\","
              "{\"y\":1}]]",
              NULL, &t, &err),
        BT_OK);
    table_value(&t, 0, table_cell(&t, 1, 0), &v);
    assert_true(v.type == CELL_INTEGER && v.integer == INT64_C(9007199254740993) && !v.null);
    table_value(&t, 1, table_cell(&t, 0, 1), &v);
    assert_true(v.type == CELL_INTEGER && v.integer == -3 && v.real == -3.0);
    table_value(&t, 2, table_cell(&t, 0, 2), &v);
    assert_true(v.type == CELL_REAL && v.real == 2.5 && v.integer == 0);
    table_value(&t, 3, table_cell(&t, 0, 3), &v);
    assert_true(v.type == CELL_BOOLEAN && v.boolean);
    table_value(&t, 3, table_cell(&t, 1, 3), &v);
    assert_true(v.type == CELL_BOOLEAN && !v.boolean);
    table_value(&t, 4, table_cell(&t, 0, 4), &v);
    assert_true(v.type == CELL_TEXT && str_is(v.text, "x"));
    table_value(&t, 5, table_cell(&t, 0, 5), &v);
    assert_true(v.null && v.text.len == 0);
    table_value(&t, 5, table_cell(&t, 1, 5), &v);
    assert_true(!v.null && v.text.len == 0);
    table_value(&t, 5, NULL, &v);
    assert_true(v.null);
    buf_init(&out, OUT);
    buf_init(&json, OUT);
    doc_put_map(&out, 1);
    table_put_types(&t, &out);
    assert_int_equal(doc_to_json(doc_from_buf(&out), false, &json, &err), BT_OK);
    assert_string_equal(buf_cstr(&json),
                        "{\"types\":{\"c1\":\"integer\",\"c2\":\"integer\",\"c3\":\"real\","
                        "\"c4\":\"boolean\",\"c5\":\"text\",\"c6\":\"text\"}}");
    buf_done(&out);
    buf_done(&json);
    assert_int_equal(table_number_column(&t), 2);
    assert_int_equal(table_other_column(&t, 0), 1);
    assert_int_equal(table_other_column(&t, 1), 0);
    assert_int_equal(table_column(&t, "c6"), 5);
    table_done(&t);
    assert_int_equal(typed("[[\"x\"]]", NULL, &t, &err), BT_OK);
    assert_int_equal(table_number_column(&t), TABLE_NONE);
    assert_int_equal(table_other_column(&t, 0), TABLE_NONE);
    table_done(&t);
}

static void texts_of_cells_keep_their_digits(void **state)
{
    static const struct {
        const char *json, *text;
    } cases[] = {{"0", "0"},
                 {"-0.0", "0"},
                 {"3", "3"},
                 {"-3", "-3"},
                 {"0.1", "0.1"},
                 {"0.30000000000000004", "0.30000000000000004"},
                 {"1e300", "1e+300"},
                 {"9007199254740992", "9007199254740992"},
                 {"9007199254740994", "9.00719925474099e+15"},
                 {"\"x\"", "x"},
                 {"null", ""},
                 {"true", "true"},
                 {"[1]", "[1]"}};
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *cell = parsed(cases[i].json);
        if (i == 8) { /* which text it is depends on the digits that are enough */
            assert_true(strtod(table_text(cell, text, sizeof text), NULL) == 9007199254740994.0);
        } else {
            assert_string_equal(table_text(cell, text, sizeof text), cases[i].text);
        }
        cJSON_Delete(cell);
    }
    assert_string_equal(table_text(NULL, text, sizeof text), "");
}

static void a_number_is_a_number_or_a_text_that_is_one(void **state)
{
    static const struct {
        const char *json;
        bool is;
        double value;
    } cases[] = {{"1.5", true, 1.5},   {"\"2.5\"", true, 2.5}, {"\"\"", false, 0},
                 {"\"x\"", false, 0},  {"true", false, 0},     {"null", false, 0},
                 {"\"+1\"", false, 0}, {"\"01\"", false, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *cell = parsed(cases[i].json);
        double v = -1;
        assert_int_equal(table_number(cell, &v), cases[i].is);
        assert_true(v == (cases[i].is ? cases[i].value : -1));
        cJSON_Delete(cell);
    }
}

static void writes(const char *json, int rows, size_t bytes, const char *want)
{
    cJSON *tree = parsed(json);
    struct table t = {0};
    struct bt_error err;
    struct buf out;

    buf_init(&out, OUT);
    buf_add_cstr(&out, "before\n");
    assert_int_equal(table_read(tree, &t, &err), BT_OK);
    table_to_markdown(&t, rows, bytes, "see there", &out);
    assert_string_equal(buf_cstr(&out) + 7, want);
    buf_done(&out);
    table_done(&t);
    cJSON_Delete(tree);
}

static void a_table_as_text_has_the_rows_that_fit_and_says_how_many(void **state)
{
    static const char three[] = "[[1,\"a\"],[2,\"b\"],[3,\"c\"]]";
    static const char head[] = "| c1 | c2 |\n| ---: | --- |\n";
    char want[256];

    (void)state;
    (void)snprintf(want, sizeof want, "%s| 1 | a |\n| 2 | b |\n| 3 | c |\n", head);
    writes(three, 3, SIZE_MAX, want);
    writes(three, 4, strlen(want), want);
    (void)snprintf(want, sizeof want,
                   "%s| 1 | a |\n| 2 | b |\n\n2 of 3 rows are shown; see there.\n", head);
    writes(three, 2, SIZE_MAX, want);
    writes(three, 3, strlen(head) + 30 - 1, want);
    writes(three, 3, strlen(head) + 20, want);
    (void)snprintf(want, sizeof want, "%s\n0 of 3 rows are shown; see there.\n", head);
    writes(three, 3, strlen(head) + 9, want);
    writes("{\"columns\":[\"a|b\"],\"rows\":[]}", 3, SIZE_MAX, "| a\\|b |\n| --- |\n");
    writes("[[1],[\"x\"]]", 3, SIZE_MAX, "| c1 |\n| --- |\n| 1 |\n| x |\n");
    writes("[[\"a\\\\b\\r\\nc\"]]", 3, SIZE_MAX, "| c1 |\n| --- |\n| a\\\\b  c |\n");
}

static void a_field_is_quoted_where_that_is_necessary(void **state)
{
    static const char *const cases[][2] = {{"a", "a"},
                                           {"", ""},
                                           {"a;b", "\"a;b\""},
                                           {"a,b", "a,b"},
                                           {"a\nb", "\"a\nb\""},
                                           {"a\rb", "\"a\rb\""},
                                           {"a\"b", "\"a\"\"b\""},
                                           {";", "\";\""}};
    struct buf out;

    (void)state;
    buf_init(&out, OUT);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        buf_clear(&out);
        table_csv_field(str_from(cases[i][0]), ';', &out);
        assert_string_equal(buf_cstr(&out), cases[i][1]);
    }
    buf_done(&out);
}

static void a_table_has_200000_rows_and_no_more(void **state)
{
    struct table t = {0};
    struct bt_error err;
    static cJSON row; /* the same for all: they are not freed one by one */

    (void)state;
    assert_int_equal(table_add_row(&t, NULL, &err), BT_NOMEM);
    for (int i = 0; i < TABLE_ROWS_MAX; i++) {
        assert_int_equal(table_add_row(&t, &row, &err), BT_OK);
    }
    assert_int_equal(table_add_row(&t, cJSON_CreateArray(), &err), BT_LIMIT);
    assert_string_equal(err.msg, "a table has at most 200000 rows");
    assert_int_equal(t.rows_n, TABLE_ROWS_MAX);
    t.rows_n = 0;
    table_done(&t);
}

/* ---- Markdown ---- */

static void documents(enum bt_code want_code, const char *json, const char *want)
{
    cJSON *tree = parsed(json);
    struct bt_error err = {.msg = ""};
    struct buf out;

    buf_init(&out, OUT);
    assert_int_equal(markdown_section(tree, &out, &err), want_code);
    assert_string_equal(want_code == BT_OK ? buf_cstr(&out) : err.msg, want);
    buf_done(&out);
    cJSON_Delete(tree);
}

static void a_section_has_a_heading_a_text_a_table_and_a_list(void **state)
{
    (void)state;
    documents(BT_OK, "{}", "");
    documents(BT_OK, "{\"heading\":\"One\\nline\"}", "## One line\n\n");
    documents(BT_OK, "{\"text\":\"Some text.\\n\\n\\n\"}", "Some text.\n\n");
    documents(BT_OK, "{\"text\":7.5}", "7.5\n\n");
    documents(BT_OK, "{\"text\":{\"a\":1}}", "{\"a\":1}\n\n");
    documents(BT_OK, "{\"text\":[\"a\",2,true]}", "- a\n- 2\n- true\n\n");
    documents(BT_OK, "{\"text\":[[1]]}", "| c1 |\n| ---: |\n| 1 |\n\n");
    documents(BT_OK, "{\"text\":[{\"a\":1}]}", "| a |\n| ---: |\n| 1 |\n\n");
    documents(BT_OK, "{\"text\":{\"columns\":[\"a\"],\"rows\":[[1]]}}",
              "| a |\n| ---: |\n| 1 |\n\n");
    documents(BT_OK, "{\"table\":[[1]]}", "| c1 |\n| ---: |\n| 1 |\n\n");
    documents(BT_OK, "{\"list\":[\"two\\nlines\\r\",\"x\"]}", "- two lines \n- x\n\n");
    documents(BT_OK, "{\"heading\":\"H\",\"text\":\"t\",\"table\":[[1]],\"list\":[\"x\"]}",
              "## H\n\nt\n\n| c1 |\n| ---: |\n| 1 |\n\n- x\n\n");
    documents(BT_OK, "{\"heading\":\"a\\u001b[2J\",\"text\":\"b\\u202e\"}", "## a?[2J\n\nb???\n\n");
    documents(BT_INVALID, "[]", "expected {heading, text?, table?, list?}");
    documents(BT_INVALID, "{\"heading\":7}", "expected {heading, text?, table?, list?}");
    documents(BT_INVALID, "{\"list\":7}", "list: expected a list");
    documents(BT_INVALID, "{\"table\":7,\"list\":[]}",
              "expected rows: {columns, rows}, a list of objects, a map, or CSV text");
}

/* ---- the input of a skill ---- */

static struct bt_step *step_of(const char *json)
{
    struct bt_step *s = NULL;
    struct bt_error err = {.msg = ""};

    if (step_new_from_json(str_from(json), "skill", &s, &err) != BT_OK) {
        fail_msg("%s: %s", json, err.msg);
    }
    return s;
}

#define BEFORE(result)                                                                             \
    "\"context\":{\"dependencies\":[{\"stepId\":\"a\",\"agentId\":\"x\",\"result\":{\"text\":"     \
    "\"older\"}},{\"stepId\":\"b\",\"agentId\":\"x\",\"result\":" result "}]}"

static void text_is(const char *json, const char *want)
{
    struct bt_step *s = step_of(json);
    const char *got = input_text(s, "p");

    assert_true((got == NULL) == (want == NULL));
    if (want != NULL) {
        assert_string_equal(got, want);
    }
    step_free(s);
}

static void a_text_is_the_parameter_else_that_of_the_newest_step_before(void **state)
{
    (void)state;
    text_is("{\"parameters\":{\"p\":\"given\"}," BEFORE("{\"text\":\"t\"}") "}", "given");
    text_is("{\"parameters\":{\"p\":[1]}," BEFORE("{\"text\":\"t\"}") "}", "[1]");
    text_is("{\"parameters\":{\"q\":1}," BEFORE("{\"text\":\"t\"}") "}", "t");
    text_is("{" BEFORE("{\"data\":7}") "}", "7");
    text_is("{\"parameters\":{}}", NULL);
    text_is("{}", NULL);
}

static void tree_is(const char *json, const char *want)
{
    struct bt_step *s = step_of(json);
    struct bt_error err = {.msg = ""};
    cJSON *tree = NULL;

    assert_int_equal(input_tree(s, "p", &tree, &err), BT_OK);
    assert_true((tree == NULL) == (want == NULL));
    if (want != NULL) {
        char *got = cJSON_PrintUnformatted(tree);
        assert_string_equal(got, want);
        cJSON_free(got);
    }
    cJSON_Delete(tree);
    step_free(s);
}

static void a_tree_is_the_parameter_else_the_data_of_the_newest_step_before(void **state)
{
    (void)state;
    tree_is("{\"parameters\":{\"p\":{\"a\":1}}," BEFORE("{\"data\":[2]}") "}", "{\"a\":1}");
    tree_is("{\"parameters\":{\"p\":null}," BEFORE("{\"data\":[2]}") "}", "null");
    tree_is("{" BEFORE("{\"data\":[2]}") "}", "[2]");
    tree_is("{" BEFORE("{\"text\":\"[3]\"}") "}", "[3]"); /* JSON that a command printed */
    tree_is("{" BEFORE("{\"text\":\"{\\\"a\\\":1}\"}") "}", "{\"a\":1}");
    tree_is("{" BEFORE("{\"text\":\"7\"}") "}", "\"7\"");
    tree_is("{" BEFORE("{\"text\":\"[3\"}") "}", "\"[3\"");
    tree_is("{" BEFORE("{\"data\":9007199254740993}") "}", "\"9007199254740993\"");
    tree_is("{\"parameters\":{\"p\":9007199254740993}}", "\"9007199254740993\"");
    tree_is("{" BEFORE("null") "}", NULL);
    tree_is("{}", NULL);
}

static void rows_come_from_the_parameter_or_the_step_before_with_their_types(void **state)
{
    struct bt_step *s = step_of("{\"parameters\":{\"p\":[[\"1\"]],\"types\":{\"c1\":\"text\"}}}");
    struct bt_error err = {.msg = ""};
    struct table t;

    (void)state;
    assert_int_equal(input_table(s, "p", &t, &err), BT_OK);
    shows(&t, "{\"c\":[\"c1 text\"],\"r\":[[\"1\"]]}");
    table_done(&t);
    step_free(s);
    s = step_of("{" BEFORE("{\"data\":[[\"1\"]]}") "}");
    assert_int_equal(input_table(s, "p", &t, &err), BT_OK);
    shows(&t, "{\"c\":[\"c1 integer\"],\"r\":[[1]]}");
    table_done(&t);
    step_free(s);
    s = step_of("{}");
    assert_int_equal(input_table(s, "p", &t, &err), BT_INVALID);
    assert_string_equal(err.msg, "p: give the rows, or let a step before this one make them");
    step_free(s);
    s = step_of("{\"parameters\":{\"p\":7}}");
    assert_int_equal(input_table(s, "p", &t, &err), BT_INVALID);
    assert_int_equal(strncmp(err.msg, "p: expected rows", 16), 0);
    step_free(s);
    s = step_of("{\"parameters\":{\"p\":[[1]],\"types\":7}}");
    assert_int_equal(input_table(s, "p", &t, &err), BT_INVALID);
    assert_int_equal(t.n, 0);
    step_free(s);
}

static void parameters_are_an_object_though_there_are_none(void **state)
{
    static const char *const cases[][2] = {{"{}", "{}"},
                                           {"{\"parameters\":{\"a\":1}}", "{\"a\":1}"}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct bt_step *s = step_of(cases[i][0]);
        struct bt_error err;
        cJSON *tree = NULL;
        char *got;
        assert_int_equal(input_parameters(s, &tree, &err), BT_OK);
        got = cJSON_PrintUnformatted(tree);
        assert_string_equal(got, cases[i][1]);
        cJSON_free(got);
        cJSON_Delete(tree);
        step_free(s);
    }
}

static void a_tree_is_a_reply_with_a_text_and_none_is_a_failure(void **state)
{
    struct bt_step *s = step_of("{}");
    struct buf out;
    struct bt_error err;

    (void)state;
    buf_init(&out, OUT);
    input_reply(s, parsed("{\"a\":1}"), "text");
    assert_int_equal(step_reply_json(s, &out, &err), BT_OK);
    assert_non_null(strstr(buf_cstr(&out), "\"result\":{\"text\":\"text\",\"data\":{\"a\":1}}"));
    step_free(s);
    s = step_of("{}");
    input_reply(s, parsed("[2]"), NULL);
    buf_clear(&out);
    assert_int_equal(step_reply_json(s, &out, &err), BT_OK);
    assert_non_null(strstr(buf_cstr(&out), "\"result\":{\"data\":[2]}"));
    step_free(s);
    s = step_of("{}");
    input_reply(s, NULL, "text");
    buf_clear(&out);
    assert_int_equal(step_reply_json(s, &out, &err), BT_OK);
    assert_non_null(strstr(buf_cstr(&out), "out of memory for the result"));
    step_free(s);
    buf_done(&out);
}

/* ---- patterns ---- */

static void a_pattern_has_4096_bytes_and_32_groups_at_most(void **state)
{
    static char pattern[REGEX_PATTERN_MAX + 2];
    struct regex *re = NULL;
    struct bt_error err;
    bool found = false;

    (void)state;
    memset(pattern, 'a', sizeof pattern);
    assert_int_equal(regex_new((struct str){pattern, REGEX_PATTERN_MAX}, false, &re, &err), BT_OK);
    regex_free(re);
    assert_int_equal(regex_new((struct str){pattern, REGEX_PATTERN_MAX + 1}, false, &re, &err),
                     BT_INVALID);
    assert_string_equal(err.msg, "pattern: expected 1 to 4096 bytes");
    for (int n = REGEX_GROUPS_MAX; n <= REGEX_GROUPS_MAX + 1; n++) {
        pattern[0] = 0;
        for (int i = 0; i < n; i++) {
            strncat(pattern, i == n - 1 ? "(?<last>a)" : "(a)", 16);
        }
        assert_int_equal(regex_new(str_from(pattern), false, &re, &err),
                         n == REGEX_GROUPS_MAX ? BT_OK : BT_LIMIT);
        if (n == REGEX_GROUPS_MAX) {
            assert_int_equal(regex_groups(re), REGEX_GROUPS_MAX);
            assert_string_equal(regex_group_name(re, REGEX_GROUPS_MAX), "last");
            assert_null(regex_group_name(re, REGEX_GROUPS_MAX + 1));
            assert_null(regex_group_name(re, 1));
            regex_free(re);
        }
    }
    assert_string_equal(err.msg, "pattern: 33 groups, at most 32");
    regex_free(NULL);
    assert_int_equal(regex_new(STR_LIT("(b)"), false, &re, &err), BT_OK);
    assert_int_equal(regex_find(re, STR_LIT("aBc"), &found, &err), BT_OK);
    assert_false(found); /* letters count as they are */
    assert_null(regex_group(re, 0).ptr);
    assert_int_equal(regex_find(re, STR_LIT("abc"), &found, &err), BT_OK);
    assert_true(found);
    assert_true(str_is(regex_group(re, 0), "b") && str_is(regex_group(re, 1), "b"));
    assert_null(regex_group(re, 2).ptr);
    regex_free(re);
    assert_int_equal(regex_new(STR_LIT("ab[c"), false, &re, &err), BT_INVALID);
    assert_int_equal(strncmp(err.msg, "pattern 'ab[c': at 4: ", 22), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_has_one_of_five_forms),
        cmocka_unit_test(types_are_those_of_the_source_or_found),
        cmocka_unit_test(a_declared_type_wins_and_a_cell_that_is_not_of_it_is_named),
        cmocka_unit_test(a_cell_is_a_value_of_its_type),
        cmocka_unit_test(texts_of_cells_keep_their_digits),
        cmocka_unit_test(a_number_is_a_number_or_a_text_that_is_one),
        cmocka_unit_test(a_table_as_text_has_the_rows_that_fit_and_says_how_many),
        cmocka_unit_test(a_field_is_quoted_where_that_is_necessary),
        cmocka_unit_test(a_table_has_200000_rows_and_no_more),
        cmocka_unit_test(a_section_has_a_heading_a_text_a_table_and_a_list),
        cmocka_unit_test(a_text_is_the_parameter_else_that_of_the_newest_step_before),
        cmocka_unit_test(a_tree_is_the_parameter_else_the_data_of_the_newest_step_before),
        cmocka_unit_test(rows_come_from_the_parameter_or_the_step_before_with_their_types),
        cmocka_unit_test(parameters_are_an_object_though_there_are_none),
        cmocka_unit_test(a_tree_is_a_reply_with_a_text_and_none_is_a_failure),
        cmocka_unit_test(a_pattern_has_4096_bytes_and_32_groups_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
