#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "supervisor/core/plan/template.h"

/* The kinds and texts found, as one line. */
static const char *scan(const char *text)
{
    static char line[512];
    static const char *const kinds[] = {"ok", "open", "nostep", "path", "foreign"};
    size_t from = 0;
    struct template_ref t;
    line[0] = '\0';
    while (template_next(str_from(text), &from, &t)) {
        const size_t used = strlen(line);
        (void)snprintf(line + used, sizeof line - used, "%s[%.*s] ", kinds[t.kind],
                       STR_ARG(t.kind == TEMPLATE_OK ? t.ref : t.text));
    }
    return line;
}

static void templates_are_found_with_their_reference(void **state)
{
    (void)state;
    assert_string_equal(scan("no braces { here }"), "");
    assert_string_equal(scan("{{results.a}}"), "ok[a] ");
    assert_string_equal(scan("x {{ results.fetch.rows.0 }} y {{results.b-1_c}}"),
                        "ok[fetch.rows.0] ok[b-1_c] ");
    assert_string_equal(scan("{{results.a.per day}}"), "ok[a.per day] ");
    assert_string_equal(scan("{{{results.a}}}"), "ok[a] ");
    assert_string_equal(scan("}} {{results.a}} {{"), "ok[a] foreign[{{] ");
}

static void what_is_malformed_is_found_as_such(void **state)
{
    (void)state;
    assert_string_equal(scan("{{results.a"), "open[{{results.a] ");
    assert_string_equal(scan("{{results.a} {{results.b}}"), "open[{{results.a} ] ok[b] ");
    assert_string_equal(scan("{{results}}{{results.}}"),
                        "nostep[{{results}}] nostep[{{results.}}] ");
    assert_string_equal(scan("{{results.a..b}}"), "path[{{results.a..b}}] ");
    assert_string_equal(scan("{{results.a.}}"), "path[{{results.a.}}] ");
    assert_string_equal(scan("{{results.a[0]}}"), "path[{{results.a[0]}}] ");
    assert_string_equal(scan("{{results[a]}}"), "path[{{results[a]}}] ");
    assert_string_equal(scan("{{results.a\n}}"), "path[{{results.a\n}}] ");
}

static void other_braces_are_left_alone(void **state)
{
    (void)state;
    assert_string_equal(scan("--format '{{.Names}}'"), "foreign[{{.Names}}] ");
    assert_string_equal(scan("{{result.x}}"), "foreign[{{result.x}}] ");
    assert_string_equal(scan("{{resultset.x}}"), "foreign[{{resultset.x}}] ");
    assert_string_equal(scan("{{}}"), "foreign[{{}}] ");
}

static void only_a_whole_text_is_one_template(void **state)
{
    (void)state;
    struct template_ref t;
    assert_true(template_only_of(STR_LIT("results"), STR_LIT("{{results.a}}"), &t));
    assert_false(template_only_of(STR_LIT("results"), STR_LIT(" {{results.a}}"), &t));
    assert_false(template_only_of(STR_LIT("results"), STR_LIT("{{results.a}}."), &t));
    assert_false(template_only_of(STR_LIT("results"), STR_LIT("{{x}}"), &t));
    assert_false(template_only_of(STR_LIT("results"), STR_LIT(""), &t));
}

static void a_reference_is_split_from_the_longest_id_to_the_shortest(void **state)
{
    (void)state;
    struct str id = {NULL, 0};
    struct str path;
    const struct str ref = STR_LIT("a.b.c");
    assert_true(template_split(ref, &id, &path));
    assert_true(str_is(id, "a.b.c") && path.len == 0);
    assert_true(template_split(ref, &id, &path));
    assert_true(str_is(id, "a.b") && str_is(path, "c"));
    assert_true(template_split(ref, &id, &path));
    assert_true(str_is(id, "a") && str_is(path, "b.c"));
    assert_false(template_split(ref, &id, &path));
}

/* Whatever the bytes: the scanner moves on, stays inside, and ends. */
static void random_texts_are_scanned_to_their_end(void **state)
{
    (void)state;
    static const char alphabet[] = "{}.[]results a\n\xc3\xa4";
    uint32_t x = 99;
    for (int round = 0; round < 20000; round++) {
        char text[40];
        for (size_t i = 0; i < sizeof text; i++) {
            x = x * 1664525u + 1013904223u;
            text[i] = alphabet[(x >> 20) % (sizeof alphabet - 1)];
        }
        char *heap = malloc(x % 40 + 1);
        assert_non_null(heap);
        memcpy(heap, text, x % 40);
        size_t from = 0;
        size_t before = 0;
        struct template_ref t;
        while (template_next((struct str){heap, x % 40}, &from, &t)) {
            assert_true(from > before && from <= x % 40 && t.at + t.len == from);
            before = from;
        }
        free(heap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_are_found_with_their_reference),
        cmocka_unit_test(what_is_malformed_is_found_as_such),
        cmocka_unit_test(other_braces_are_left_alone),
        cmocka_unit_test(only_a_whole_text_is_one_template),
        cmocka_unit_test(a_reference_is_split_from_the_longest_id_to_the_shortest),
        cmocka_unit_test(random_texts_are_scanned_to_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
