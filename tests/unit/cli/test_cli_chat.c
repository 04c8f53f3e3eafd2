/* The typed line of `baton chat`, and an answer on the terminal, piece by piece. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/cli/chat/line.h"
#include "supervisor/cli/view/answer.h"
#include "tests/support/cmocka.h"

static struct chat_line line;

static enum chat_key feed(const char *keys)
{
    enum chat_key last = CHAT_KEY_MORE;

    for (; *keys != 0; keys++) {
        last = chat_line_key(&line, (unsigned char)*keys);
    }
    return last;
}

static void assert_typed(const char *keys, const char *expected)
{
    chat_line_clear(&line);
    (void)feed(keys);
    assert_string_equal(line.text, expected);
    assert_int_equal(strlen(expected), line.len);
}

static void keys_make_a_line_and_enter_ends_it(void **state)
{
    (void)state;
    chat_line_clear(&line);
    assert_int_equal(feed("skip step 2"), CHAT_KEY_MORE);
    assert_int_equal(feed("\r"), CHAT_KEY_DONE);
    assert_string_equal(line.text, "skip step 2");
    assert_int_equal(feed("\n"), CHAT_KEY_DONE);
    assert_typed("a\tb\x01\x02", "a b");
}

static void characters_and_words_are_erased_whole(void **state)
{
    (void)state;
    assert_typed("a→\x7f", "a");
    assert_typed("ä\b\b\b", "");
    assert_typed("one two  \x17", "one ");
    assert_typed("one\x17\x17", "");
    assert_typed("one two\x15three", "three");
}

static void keys_without_a_meaning_leave_nothing_behind(void **state)
{
    (void)state;
    assert_typed("a\x1b[A\x1b[1;5C\x1bOP\x1b[3~\x1b"
                 "xb",
                 "ab");
    chat_line_clear(&line);
    assert_int_equal(feed("a\x1b\r"), CHAT_KEY_DONE);
}

static void end_of_input_is_a_key_in_an_empty_line_only(void **state)
{
    (void)state;
    chat_line_clear(&line);
    assert_int_equal(feed("a\x04"), CHAT_KEY_MORE);
    assert_int_equal(feed("\x7f\x04"), CHAT_KEY_END);
}

static void line_never_gets_longer_than_a_message(void **state)
{
    (void)state;
    chat_line_clear(&line);
    for (int i = 0; i < CHAT_LINE_MAX + 100; i++) {
        (void)chat_line_key(&line, 'x');
    }
    assert_int_equal(line.len, CHAT_LINE_MAX);
    assert_int_equal(line.text[CHAT_LINE_MAX], 0);
    (void)feed("\x7f");
    assert_int_equal(line.len, CHAT_LINE_MAX - 1);
    assert_true(line.cut); /* a part of a message is another message */
    (void)feed("\x15");
    assert_false(line.cut);
}

static void what_is_pasted_is_one_message(void **state)
{
    (void)state;
    chat_line_clear(&line);
    assert_int_equal(
        feed("do: \x1b[200~1. read\r2. count\r\n\x03\x7f\x15\x1b[A3. tell\x1b[201~ now"),
        CHAT_KEY_MORE);
    assert_string_equal(line.text, "do: 1. read\n2. count\n3. tell now");
    assert_int_equal(feed("\r"), CHAT_KEY_DONE);
    assert_typed("a\x1b[20~b\x1b[2001~c\x1b[99999999999200~d", "abcd"); /* keys without a meaning */
}

static void tail_fits_and_begins_at_a_whole_character(void **state)
{
    (void)state;
    assert_typed("abcä", "abcä");
    assert_string_equal(chat_line_tail(&line, 10), "abcä");
    assert_string_equal(chat_line_tail(&line, 2), "cä");
    assert_string_equal(chat_line_tail(&line, 0), "");
    assert_typed("日本語", "日本語");
    assert_string_equal(chat_line_tail(&line, 5), "本語");
}

/* For any bytes the line stays a terminated text within its bounds. */
static void no_bytes_break_the_line(void **state)
{
    const char *given = getenv("BATON_SEED");
    unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : 20261121u;

    (void)state;
    print_message("seed %u\n", seed);
    chat_line_clear(&line);
    for (int i = 0; i < 200000; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (chat_line_key(&line, (unsigned char)(seed >> 24)) == CHAT_KEY_DONE) {
            chat_line_clear(&line);
        }
        assert_true(line.len <= CHAT_LINE_MAX);
        assert_int_equal(line.text[line.len], 0);
        assert_true(chat_line_tail(&line, seed >> 16 & 127) >= line.text);
    }
}

/* What `how` prints on stdout. */
static void assert_printed(void (*how)(struct answer *a), const char *expected)
{
    char text[256] = "";
    struct answer a;
    FILE *file = tmpfile();
    int out = file != NULL ? fileno(file) : -1;
    int before;
    ssize_t n;

    assert_true(out >= 0);
    (void)fflush(stdout);
    before = dup(STDOUT_FILENO);
    assert_true(before >= 0 && dup2(out, STDOUT_FILENO) >= 0);
    answer_init(&a);
    how(&a);
    answer_done(&a);
    (void)fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    (void)close(before);
    assert_true(lseek(out, 0, SEEK_SET) == 0);
    n = read(out, text, sizeof text - 1);
    (void)fclose(file);
    assert_true(n >= 0);
    assert_string_equal(text, expected);
}

static void in_pieces(struct answer *a)
{
    answer_piece(a, 0, "The ");
    answer_piece(a, 1, "sum.");
    answer_whole(a, "The sum.");
}

static void with_a_rest(struct answer *a)
{
    answer_piece(a, 0, "The ");
    answer_whole(a, "The sum.");
}

static void never_in_pieces(struct answer *a)
{
    answer_whole(a, "The sum.");
    answer_whole(a, "Another.\n");
}

static void another_one(struct answer *a)
{
    answer_piece(a, 0, "The prod");
    answer_whole(a, "The sum.");
}

static void anew(struct answer *a)
{
    answer_piece(a, 0, "first");
    answer_piece(a, 0, "second");
    answer_whole(a, "second");
}

static void with_a_break(struct answer *a)
{
    answer_piece(a, 0, "a line\n");
    answer_break(a);
    answer_piece(a, 1, "half");
    answer_break(a);
    answer_whole(a, "a line\nhalf");
}

static void answer_is_printed_once_however_it_comes(void **state)
{
    (void)state;
    assert_printed(in_pieces, "The sum.\n");
    assert_printed(with_a_rest, "The sum.\n");
    assert_printed(never_in_pieces, "The sum.\nAnother.\n");
    assert_printed(another_one, "The prod\nThe sum.\n");
    assert_printed(anew, "first\nsecond\n");
    assert_printed(with_a_break, "a line\nhalf\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_make_a_line_and_enter_ends_it),
        cmocka_unit_test(characters_and_words_are_erased_whole),
        cmocka_unit_test(what_is_pasted_is_one_message),
        cmocka_unit_test(keys_without_a_meaning_leave_nothing_behind),
        cmocka_unit_test(end_of_input_is_a_key_in_an_empty_line_only),
        cmocka_unit_test(line_never_gets_longer_than_a_message),
        cmocka_unit_test(tail_fits_and_begins_at_a_whole_character),
        cmocka_unit_test(no_bytes_break_the_line),
        cmocka_unit_test(answer_is_printed_once_however_it_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
