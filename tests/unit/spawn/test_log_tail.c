/* The last line of a process: only its own, one line, printable. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/utf8.h"
#include "supervisor/spawn/log_tail.h"

static char path[64];

static void append(const char *bytes, size_t n)
{
    FILE *f = fopen(path, "ab");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void says(uint64_t from, const char *expected)
{
    char line[64];

    log_tail(path, from, line, sizeof line);
    assert_string_equal(line, expected);
}

static int begin(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/baton-words-XXXXXX");
    const int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
    (void)state;
    (void)unlink(path);
    return 0;
}

static void the_last_line_with_anything_in_it_is_told(void **state)
{
    (void)state;
    says(0, "");
    append("one\n  two: it is\r\n\n \n", 21);
    says(0, "two: it is");
    append("three", 5);
    says(0, "three");
}

static void what_an_earlier_process_wrote_is_not_told(void **state)
{
    (void)state;
    append("of the one before\n", 18);
    const uint64_t from = log_tail_begin(path);
    assert_int_equal(from, 18);
    says(from, "");
    append("mine\n", 5);
    says(from, "mine");
    says(1000, "mine"); /* the file was rotated */
}

static void a_line_is_cut_between_characters_and_cannot_steer_a_terminal(void **state)
{
    static const char red[] = "\x1b[31mred\a\xff\xc2\x9b"
                              "1m \xc3\xa9\n";
    char long_line[9000];
    char line[64];

    (void)state;
    append(red, sizeof red - 1);
    says(0, "?[31mred????1m \xc3\xa9");
    for (size_t i = 0; i + 1 < sizeof long_line; i += 2) {
        memcpy(long_line + i, "\xc3\xa9", 2);
    }
    /* an odd offset: the cut falls between characters */
    memcpy(long_line + sizeof long_line - 1001, "x \xc3\xa9", 4);
    long_line[sizeof long_line - 1002] = 'x';
    append("x", 1);
    append(long_line, sizeof long_line);
    log_tail(path, 0, line, sizeof line);
    assert_true(strlen(line) >= 60);
    assert_true(utf8_valid(line, strlen(line)));
}

static void the_rest_of_a_word_that_is_not_read_whole_is_not_told(void **state)
{
    char secret[5000];

    (void)state;
    memset(secret, 's', sizeof secret);
    append("KEY=", 4);
    append(secret, sizeof secret);
    says(0, "");
    append(" is wrong", 9);
    says(0, "is wrong");
}

static void what_looks_like_a_secret_is_hidden(void **state)
{
    (void)state;
    append("OPENAI_API_KEY=sk-live-0123456789abcdef\n", 40);
    says(0, "OPENAI_API_KEY=[redacted]");
}

static void no_file_has_no_words(void **state)
{
    char line[8] = "x";

    (void)state;
    assert_int_equal(log_tail_begin("/nonexistent/log"), 0);
    log_tail("/nonexistent/log", 0, line, sizeof line);
    assert_string_equal(line, "");
    log_tail("/proc/self", 0, line, sizeof line);
    assert_string_equal(line, "");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_last_line_with_anything_in_it_is_told),
        TEST(what_an_earlier_process_wrote_is_not_told),
        TEST(a_line_is_cut_between_characters_and_cannot_steer_a_terminal),
        TEST(the_rest_of_a_word_that_is_not_read_whole_is_not_told),
        TEST(what_looks_like_a_secret_is_hidden),
        TEST(no_file_has_no_words),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
