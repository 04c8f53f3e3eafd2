/* CSV: each example is read whole and in blocks of every size; all must agree. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/cells/csv.h"

/* Reads the text in blocks; records become "a|b;" with "\n" as it is. An error becomes its text. */
static void read_in_blocks(struct str text, size_t block, char delimiter, struct buf *out)
{
    struct csv c;
    struct bt_error err;
    enum bt_code code = BT_OK;
    bool record = true;
    size_t at = 0;

    csv_init(&c, delimiter);
    while (code == BT_OK && (at < text.len || record)) {
        size_t n = text.len - at < block ? text.len - at : block;
        char *copy = malloc(n + 1); /* its own memory: the sanitizers see a read past the block */
        struct str in = {copy, n};
        assert_non_null(copy);
        memcpy(copy, text.ptr + at, n);
        at += n;
        record = true;
        while (code == BT_OK && record) {
            code = csv_next(&c, &in, at == text.len, &record, &err);
            for (uint32_t i = 0; code == BT_OK && record && i < c.n; i++) {
                buf_add_cstr(out, i > 0 ? "|" : "");
                buf_add_str(out, csv_cell(&c, i));
            }
            buf_add_cstr(out, code == BT_OK && record ? ";" : "");
        }
        free(copy);
    }
    if (code != BT_OK) {
        buf_add_cstr(out, err.msg);
    }
    csv_done(&c);
}

static void expect_bytes(struct str text, char delimiter, const char *want)
{
    for (size_t block = 1; block <= text.len + 1; block++) {
        struct buf out;
        buf_init(&out, 1024 * 1024);
        read_in_blocks(text, block, delimiter, &out);
        if (strstr(buf_cstr(&out), want) == NULL ||
            (strchr(want, ';') != NULL && strcmp(buf_cstr(&out), want) != 0)) {
            fail_msg("blocks of %zu of '%.*s': '%s', expected '%s'", block, STR_ARG(text),
                     buf_cstr(&out), want);
        }
        buf_done(&out);
    }
}

static void expect(const char *text, const char *want)
{
    expect_bytes(str_from(text), ',', want);
}

static void records_and_fields_are_split(void **state)
{
    (void)state;
    expect("a,b\n1,2\n", "a|b;1|2;");
    expect("a,b\r\n1,2\r\n", "a|b;1|2;");
    expect("a,b\r1,2\r", "a|b;1|2;");
    expect("a,b\n1,2", "a|b;1|2;");
    expect("a,\n,\n,b", "a|;|;|b;");
    expect("a,", "a|;");
    expect_bytes(STR_LIT("a;b\tc\n"), '\t', "a;b|c;");
}

static void quotes_hold_delimiters_line_ends_and_quotes(void **state)
{
    (void)state;
    expect("\"a,b\",c\n", "a,b|c;");
    expect("\"a\nb\"\n\"c\r\nd\"\n", "a\nb;c\r\nd;");
    expect("\"say \"\"hi\"\"\",\"\"\n", "say \"hi\"|;");
    expect("\"\"\"\"\n", "\";");
    expect("a\"b,c\"\n", "a\"b|c\";");
    expect("\"a\"", "a;");
    expect("\"\"\n", ";");
}

static void blank_lines_are_no_records_but_empty_fields_are(void **state)
{
    (void)state;
    expect("\n\r\n\na\n\n\r\nb\n\n", "a;b;");
    expect("a,b\n,\n", "a|b;|;");
    expect_bytes(STR_LIT("\n\n"), ',', "");
    expect(" \n", " ;");
}

static void a_byte_order_mark_is_skipped_once(void **state)
{
    (void)state;
    expect("\xEF\xBB\xBF"
           "a\n\xEF\xBB\xBF"
           "b\n",
           "a;\xEF\xBB\xBF"
           "b;");
    expect("\xEF\xBB\xBF\"a,b\"\n", "a,b;");
    expect("\xEF\xBB"
           "a,\xEF\n",
           "\xEF\xBB"
           "a|\xEF;");
    expect("\xEF,a\n", "\xEF|a;");
    expect("\xEF\xBB", "\xEF\xBB;");
    expect("\xEF\xBB\xBF", "");
}

static void what_is_no_csv_is_refused_by_line(void **state)
{
    (void)state;
    expect("a\n\"b", "CSV line 2: a quoted field begins here and has no closing quote");
    expect("a\nb\n\"c\n\n\nd", "CSV line 3: a quoted field begins here");
    expect("a\n\"b\"c\n", "CSV line 2: characters after a closing quote");
    expect("\"b\" ,c\n", "CSV line 1: characters after a closing quote");
    expect("\"say \\\"hi\\\"\"\n", "CSV line 1: characters after a closing quote");
    expect_bytes(STR_LIT("a\nb\0c\n"), ',', "CSV line 2: a zero byte");
}

static void a_record_has_at_most_256_fields(void **state)
{
    char text[CSV_FIELDS_MAX + 2];
    struct buf out;

    (void)state;
    memset(text, ',', sizeof text);
    buf_init(&out, 1024 * 1024);
    read_in_blocks((struct str){text, CSV_FIELDS_MAX - 1}, 4096, ',', &out);
    assert_int_equal(out.len, CSV_FIELDS_MAX); /* as many fields, and the end */
    buf_clear(&out);
    read_in_blocks((struct str){text, CSV_FIELDS_MAX}, 4096, ',', &out);
    assert_non_null(strstr(buf_cstr(&out), "more than 256 fields"));
    buf_done(&out);
}

static void a_record_has_at_most_4_mib(void **state)
{
    char *text = malloc(CSV_RECORD_MAX + 1);
    struct buf out;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', CSV_RECORD_MAX + 1);
    buf_init(&out, CSV_RECORD_MAX + 1024);
    read_in_blocks((struct str){text, CSV_RECORD_MAX}, 65536, ',', &out);
    assert_int_equal(out.len, CSV_RECORD_MAX + 1);
    buf_clear(&out);
    read_in_blocks((struct str){text, CSV_RECORD_MAX + 1}, 65536, ',', &out);
    assert_non_null(strstr(buf_cstr(&out), "a record over 4 MiB"));
    buf_done(&out);
    free(text);
}

static void one_column_with_another_delimiter_in_its_name_is_asked_about(void **state)
{
    static const char wide[] =
        "x;yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
        "z"; /* 81 bytes, of which 80 are shown */
    struct bt_error err;

    (void)state;
    assert_int_equal(csv_check_only_name(STR_LIT("a,b"), &err), BT_OK);
    assert_int_equal(csv_check_only_name(STR_LIT("a;b"), &err), BT_INVALID);
    assert_string_equal(err.msg, "CSV header: one column, 'a;b'; set delimiter to \";\", or to "
                                 "\",\" when that is its name");
    assert_int_equal(csv_check_only_name(STR_LIT("a\tb"), &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "set delimiter to \"tab\""));
    assert_int_equal(csv_check_only_name(STR_LIT("a|b"), &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "set delimiter to \"|\""));
    assert_int_equal(csv_check_only_name(STR_LIT(wide), &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "yy'; set"));
    assert_null(strstr(err.msg, "z'"));
    assert_int_equal(strcspn(strchr(err.msg, '\'') + 1, "'"), 80);
}

static void delimiters_have_names(void **state)
{
    char c = 0;

    (void)state;
    assert_int_equal(csv_delimiter((struct str){NULL, 0}, &c, NULL), BT_OK);
    assert_int_equal(c, ',');
    assert_int_equal(csv_delimiter(STR_LIT("tab"), &c, NULL), BT_OK);
    assert_int_equal(c, '\t');
    assert_int_equal(csv_delimiter(STR_LIT(";"), &c, NULL), BT_OK);
    assert_int_equal(c, ';');
    assert_int_equal(csv_delimiter(STR_LIT("\""), &c, NULL), BT_INVALID);
    assert_int_equal(csv_delimiter(STR_LIT(",,"), &c, NULL), BT_INVALID);
    assert_int_equal(csv_delimiter(STR_LIT(""), &c, NULL), BT_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_and_fields_are_split),
        cmocka_unit_test(quotes_hold_delimiters_line_ends_and_quotes),
        cmocka_unit_test(blank_lines_are_no_records_but_empty_fields_are),
        cmocka_unit_test(a_byte_order_mark_is_skipped_once),
        cmocka_unit_test(what_is_no_csv_is_refused_by_line),
        cmocka_unit_test(a_record_has_at_most_256_fields),
        cmocka_unit_test(a_record_has_at_most_4_mib),
        cmocka_unit_test(one_column_with_another_delimiter_in_its_name_is_asked_about),
        cmocka_unit_test(delimiters_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
