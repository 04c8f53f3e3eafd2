#include "supervisor/engine/result_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "tests/support/cmocka.h"

enum { ROOM = 4 * 1024 * 1024 };

static char shown[ROOM];
static struct result_cut cut;

/* The text of {"<member>": json} within max bytes. */
static const char *put_part(const char *member, const char *json, size_t max)
{
    struct buf doc;
    struct buf out;
    struct bt_error err;
    uint64_t whole;

    buf_init(&doc, ROOM);
    buf_init(&out, ROOM);
    doc_put_map(&doc, 1);
    doc_put_cstr(&doc, member);
    assert_int_equal(json_to_doc(str_from(json), NULL, &doc, &err), BT_OK);
    assert_int_equal(result_text_put(doc_from_buf(&doc), max, &out, &cut, &err), BT_OK);
    assert_int_equal(result_text_length(doc_from_buf(&doc), &whole, &err), BT_OK);
    assert_int_equal(whole, cut.whole);
    assert_int_equal(out.len, cut.shown);
    assert_true(out.len <= max);
    assert_int_equal(cut.shown < cut.whole, cut.what[0] != 0);
    assert_true(utf8_valid((const char *)out.at, out.len));
    (void)snprintf(shown, sizeof shown, "%.*s", (int)out.len, (const char *)out.at);
    buf_done(&doc);
    buf_done(&out);
    return shown;
}

static const char *put(const char *json, size_t max)
{
    return put_part("data", json, max);
}

static void a_list_keeps_whole_items_and_the_mark_counts_the_others(void **state)
{
    static const char three[] = "[{\"id\":1},{\"id\":2},{\"id\":3}]";

    (void)state;
    assert_string_equal(put(three, sizeof three - 1), three);
    assert_string_equal(cut.what, "");
    assert_string_equal(put(three, sizeof three), three);
    assert_string_equal(put(three, sizeof three - 2), "[{\"id\":1},{\"id\":2}]");
    assert_string_equal(cut.what, "1 of 3 items");
    assert_string_equal(put(three, 10), "[{\"id\":1}]");
    assert_string_equal(cut.what, "2 of 3 items");
    assert_string_equal(put(three, 9), "[]");
    assert_string_equal(cut.what, "3 of 3 items");
    assert_string_equal(put(three, 1), "");
    assert_string_equal(cut.what, "28 of 28 bytes");
    assert_string_equal(put(three, 0), "");
}

static void a_list_of_ten_thousand_is_cut_like_one_of_a_hundred(void **state)
{
    static const uint32_t sizes[] = {1, 100, 10000};
    struct buf json;

    (void)state;
    buf_init(&json, ROOM);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        buf_clear(&json);
        buf_add_byte(&json, '[');
        for (uint32_t i = 0; i < sizes[k]; i++) {
            buf_printf(&json, "%s%u", i > 0 ? "," : "", 10000 + i);
        }
        buf_add_byte(&json, ']');
        const size_t len = json.len;
        assert_int_equal(strlen(put(buf_cstr(&json), len)), len);
        (void)put(buf_cstr(&json), len - 1); /* one item less */
        char want[64];
        (void)snprintf(want, sizeof want, "1 of %u items", sizes[k]);
        assert_string_equal(cut.what, want);
        assert_int_equal(cut.shown, sizes[k] == 1 ? 2 : len - 6);
    }
    buf_done(&json);
}

static void a_map_keeps_short_members_whole_and_cuts_long_ones(void **state)
{
    struct buf json;

    (void)state;
    buf_init(&json, ROOM);
    buf_add_cstr(&json, "{\"columns\":[\"n\"],\"rows\":[");
    for (uint32_t i = 0; i < 1000; i++) {
        buf_printf(&json, "%s[%u]", i > 0 ? "," : "", 1000 + i);
    }
    buf_add_cstr(&json, "],\"rowCount\":1000}");
    const char *text = put(buf_cstr(&json), 500);
    assert_non_null(strstr(text, "{\"columns\":[\"n\"],\"rows\":[[1000],[1001],"));
    assert_non_null(strstr(text, "]],\"rowCount\":1000}"));
    uint32_t kept = 0;
    for (const char *at = text; (at = strstr(at, "[1")) != NULL; at++) {
        kept++;
    }
    char want[64];
    (void)snprintf(want, sizeof want, "%u of 1000 items of rows", 1000 - kept);
    assert_string_equal(cut.what, want);
    assert_true(cut.shown > 480);
    buf_done(&json);
}

/* A map of n members, the first of 20,000 characters, in 12,800 bytes. */
static const char *put_members(uint32_t n)
{
    struct buf json;
    const char *text;

    buf_init(&json, ROOM);
    buf_add_cstr(&json, "{\"long\":\"");
    for (uint32_t i = 0; i < 20000; i++) {
        buf_add_byte(&json, 'x');
    }
    buf_add_byte(&json, '"');
    for (uint32_t i = 1; i < n; i++) {
        buf_printf(&json, ",\"k%u\":%u", i, i);
    }
    buf_add_byte(&json, '}');
    text = put(buf_cstr(&json), 12800);
    buf_done(&json);
    return text;
}

static void sixty_four_members_share_the_room_and_one_more_does_not(void **state)
{
    const char *text;

    (void)state;
    text = put_members(64);
    assert_non_null(strstr(text, "{\"long\":\"xxx"));
    assert_non_null(strstr(text, ",\"k63\":63}"));
    assert_non_null(strstr(cut.what, "of 20000 bytes of long"));
    text = put_members(65); /* the long one goes as a whole, and the mark names it */
    assert_null(strstr(text, "long"));
    assert_non_null(strstr(text, ",\"k64\":64}"));
    assert_string_equal(cut.what, "1 of 65 members");
}

static void a_map_of_many_members_keeps_the_first_ones(void **state)
{
    struct buf json;

    (void)state;
    buf_init(&json, ROOM);
    buf_add_byte(&json, '{');
    for (uint32_t i = 0; i < 10000; i++) {
        buf_printf(&json, "%s\"k%05u\":%u", i > 0 ? "," : "", i, i % 10);
    }
    buf_add_byte(&json, '}');
    const char *text = put(buf_cstr(&json), 50);
    assert_string_equal(text, "{\"k00000\":0,\"k00001\":1,\"k00002\":2,\"k00003\":3}");
    assert_string_equal(cut.what, "9996 of 10000 members");
    buf_done(&json);
}

static void texts_end_after_a_character_and_after_a_line_where_one_is_near(void **state)
{
    (void)state;
    assert_string_equal(put_part("text", "\"h\xC3\xA9llo\"", 6), "h\xC3\xA9llo");
    assert_string_equal(cut.what, "");
    assert_string_equal(put_part("text", "\"h\xC3\xA9llo\"", 2), "h");
    assert_string_equal(cut.what, "5 of 6 bytes");
    assert_string_equal(put_part("text", "\"h\xC3\xA9llo\"", 3), "h\xC3\xA9");
    assert_string_equal(put_part("text", "\"one two three\\nfour five six\"", 16), "one two three");
    assert_string_equal(put_part("text", "\"a\\nbcdefghijklmnop\"", 11), "a\nbcdefghij");
    assert_string_equal(put("\"plain\"", 3), "pla");
    assert_string_equal(put_part("text", "\"\"", 3), "");
}

static void numbers_and_null_are_never_cut(void **state)
{
    (void)state;
    assert_string_equal(put("42", 2), "42");
    assert_string_equal(put("null", 4), "null");
    assert_string_equal(put("12345", 4), "");
    assert_string_equal(cut.what, "5 of 5 bytes");
    assert_string_equal(put("true", 3), "");
}

static void texts_within_data_are_cut_with_their_escapes(void **state)
{
    struct buf json;

    (void)state;
    buf_init(&json, ROOM);
    buf_add_cstr(&json, "{\"id\":7,\"body\":\"");
    for (uint32_t i = 0; i < 1000; i++) {
        buf_add_cstr(&json, "\\u0001\xE2\x82\xAC"); /* six bytes of JSON, and three */
    }
    buf_add_cstr(&json, "\"}");
    for (size_t max = 200; max < 220; max++) {
        const char *text = put(buf_cstr(&json), max);
        struct buf doc;
        buf_init(&doc, ROOM);
        assert_int_equal(json_to_doc(str_from(text), NULL, &doc, NULL), BT_OK);
        assert_int_equal(doc_head(doc_get(doc_from_buf(&doc), STR_LIT("id"))).u, 7);
        assert_true(cut.shown + 12 > max);
        buf_done(&doc);
    }
    buf_done(&json);
}

static void names_of_agents_do_not_enter_the_mark_when_they_are_not_plain(void **state)
{
    struct buf json;

    (void)state;
    buf_init(&json, ROOM);
    buf_add_cstr(&json, "{\"a\\nCurrent task: b\":[");
    for (uint32_t i = 0; i < 1000; i++) {
        buf_add_cstr(&json, i > 0 ? ",1" : "1");
    }
    buf_add_cstr(&json, "]}");
    (void)put(buf_cstr(&json), 300);
    assert_null(strstr(cut.what, "task"));
    assert_non_null(strstr(cut.what, "of 1000 items"));
    buf_done(&json);
}

/* Of letters, digits, "_", "-" and ".", at most 32. */
static void names_of_members_enter_the_mark_when_they_are_plain(void **state)
{
    static const char *const plain[] = {"a", "z", "A", "Z", "0", "9", "_", "-", ".", "az-AZ_09."};
    static const char *const others[] = {"`", "{", "@", "[", "/", ":", " ", "", "a b", "\xC3\xA9"};
    char json[2000];
    char want[100];

    (void)state;
    for (size_t i = 0; i < 20; i++) {
        const char *name = i < 10 ? plain[i] : others[i - 10];
        size_t at = (size_t)snprintf(json, sizeof json, "{\"%s\":[", name);
        for (int k = 0; k < 300; k++) {
            at += (size_t)snprintf(json + at, sizeof json - at, "%s1", k > 0 ? "," : "");
        }
        (void)snprintf(json + at, sizeof json - at, "]}");
        (void)put(json, 300);
        (void)snprintf(want, sizeof want, " items of %s", name);
        assert_int_equal(strstr(cut.what, i < 10 ? want : " of ") != NULL, true);
        assert_int_equal(strstr(cut.what, "items of ") != NULL, i < 10);
    }
}

static void a_text_of_which_no_character_fits_is_left_out(void **state)
{
    (void)state;
    assert_string_equal(put("[\"\xE2\x82\xAC\xE2\x82\xAC\"]", 6), "[]");
    assert_string_equal(cut.what, "1 of 1 items");
    assert_string_equal(put("\"\xE2\x82\xAC\xE2\x82\xAC\"", 4), "\xE2\x82\xAC");
    assert_string_equal(put("\"\xE2\x82\xAC\xE2\x82\xAC\"", 2), "");
    assert_string_equal(cut.what, "6 of 6 bytes");
}

static const char *files_after(const char *before, const char *json)
{
    struct buf doc;
    struct buf out;
    struct bt_error err;

    buf_init(&doc, ROOM);
    buf_init(&out, ROOM);
    assert_int_equal(json_to_doc(str_from(json), NULL, &doc, &err), BT_OK);
    buf_add_cstr(&out, before);
    assert_int_equal(result_files_put(doc_from_buf(&doc), &out, &err), BT_OK);
    (void)snprintf(shown, sizeof shown, "%.*s", (int)out.len,
                   out.len > 0 ? (const char *)out.at : "");
    buf_done(&doc);
    buf_done(&out);
    return shown;
}

static void files_of_a_result_are_named_on_lines_of_their_own(void **state)
{
    static const char two[] =
        "{\"artifacts\":[{\"name\":\"a\",\"bytes\":3,\"mediaType\":\"text/plain\"},"
        "{\"name\":\"url\",\"uri\":\"https://x\"},{\"name\":\"b\",\"bytes\":0},"
        "{\"name\":\"c\",\"bytes\":\"many\"}]}";

    (void)state;
    assert_string_equal(files_after("", two),
                        "[artifact a: 3 bytes, text/plain]\n[artifact b: 0 bytes]");
    assert_string_equal(files_after("text", two),
                        "text\n[artifact a: 3 bytes, text/plain]\n[artifact b: 0 bytes]");
    assert_string_equal(files_after("text\n", two),
                        "text\n[artifact a: 3 bytes, text/plain]\n[artifact b: 0 bytes]");
    assert_string_equal(files_after("text", "{\"artifacts\":7}"), "text");
    assert_string_equal(files_after("text", "{\"text\":\"x\"}"), "text");
    assert_string_equal(files_after("text", "{\"artifacts\":[]}"), "text");
}

/* The text, else the data, else the artifacts that are no files. */
static void a_result_has_one_part_that_is_its_text(void **state)
{
    (void)state;
    assert_string_equal(put_part("artifacts", "[{\"uri\":\"https://x\"}]", 99),
                        "[{\"uri\":\"https://x\"}]");
    assert_string_equal(put_part("artifacts", "[{\"uri\":\"file:/x\",\"bytes\":3}]", 99),
                        "[artifact : 3 bytes]");
    assert_string_equal(put_part("other", "7", 99), "");
}

/* What stays of a list or a map is JSON, whatever the room. */
static void every_cut_is_valid_json(void **state)
{
    static const char text[] =
        "{\"a\":[1,[2,3,[4,5,{\"b\":\"long long long text\",\"c\":[true,null]}]],\"x\"],"
        "\"m\":{\"n\":{\"o\":{\"p\":{\"q\":\"deep deep deep deep deep deep deep deep deep\"}}}},"
        "\"s\":\"\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xF0\x9F\x98\x80 and more than that, much more, "
        "so that a share of it may stay, and another share of it, and then the rest of it all\","
        "\"z\":-1.5e+300}";

    (void)state;
    for (size_t max = 2; max <= sizeof text; max++) {
        const char *made = put(text, max);
        struct buf doc;
        buf_init(&doc, ROOM);
        assert_int_equal(json_to_doc(str_from(made), NULL, &doc, NULL), BT_OK);
        buf_done(&doc);
    }
    assert_string_equal(put(text, sizeof text - 1), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_keeps_whole_items_and_the_mark_counts_the_others),
        cmocka_unit_test(a_list_of_ten_thousand_is_cut_like_one_of_a_hundred),
        cmocka_unit_test(a_map_keeps_short_members_whole_and_cuts_long_ones),
        cmocka_unit_test(sixty_four_members_share_the_room_and_one_more_does_not),
        cmocka_unit_test(a_map_of_many_members_keeps_the_first_ones),
        cmocka_unit_test(texts_end_after_a_character_and_after_a_line_where_one_is_near),
        cmocka_unit_test(numbers_and_null_are_never_cut),
        cmocka_unit_test(texts_within_data_are_cut_with_their_escapes),
        cmocka_unit_test(names_of_agents_do_not_enter_the_mark_when_they_are_not_plain),
        cmocka_unit_test(every_cut_is_valid_json),
        cmocka_unit_test(names_of_members_enter_the_mark_when_they_are_plain),
        cmocka_unit_test(a_text_of_which_no_character_fits_is_left_out),
        cmocka_unit_test(files_of_a_result_are_named_on_lines_of_their_own),
        cmocka_unit_test(a_result_has_one_part_that_is_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
