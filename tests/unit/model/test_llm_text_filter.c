/* The emitted pieces add up to the final answer, however the input is divided. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/llm/model/answer_parser.h"
#include "agents/llm/model/text_filter.h"
#include "tests/support/random.h"

#define KEY "sk-canary-12/34"

static struct secrets secrets;

static int load_key(void **state)
{
    const char *key = NULL;

    (void)state;
    assert_int_equal(setenv("SPOUT_KEY", KEY, 1), 0);
    assert_int_equal(secrets_load(&secrets, SECRET_ENV, "SPOUT_KEY", &key, NULL), BT_OK);
    return 0;
}

static int drop_key(void **state)
{
    (void)state;
    secrets_done(&secrets);
    return 0;
}

/* A subscriber that joins the pieces, and starts over after a reset. */
struct watcher {
    char text[8192];
    unsigned reset;
    unsigned pieces;
};

static void take(struct text_filter *s, struct watcher *w)
{
    size_t n;

    if (s->reset) {
        w->text[0] = 0;
        w->reset++;
        s->reset = false;
    }
    n = strlen(w->text);
    assert_true(n + s->out.len < sizeof w->text);
    if (s->out.len > 0) {
        memcpy(w->text + n, s->out.at, s->out.len);
    }
    w->text[n + s->out.len] = 0;
    w->pieces += s->out.len > 0;
    buf_clear(&s->out);
    assert_null(strstr(w->text, KEY));
}

/* In pieces of so many bytes; 0 = of random sizes. */
static void pour(const char *raw, size_t step, struct rng *r, struct watcher *w)
{
    size_t len = strlen(raw);
    struct text_filter s;

    *w = (struct watcher){.text = ""};
    text_filter_init(&s, &secrets, 65536);
    for (size_t at = 0; at < len;) {
        at += step > 0 ? step : 1 + rng_below(r, 12);
        at = at < len ? at : len;
        text_filter_feed(&s, (struct str){raw, at}, false);
        if (r == NULL || rng_below(r, 2) == 0) {
            take(&s, w);
        }
    }
    text_filter_feed(&s, (struct str){raw, len}, true);
    take(&s, w);
    text_filter_done(&s);
}

static void whole(const char *raw, struct buf *ret)
{
    struct str clean = answer_parser_clean(str_from(raw));

    buf_init(ret, 65536);
    buf_add_str(ret, clean);
    secrets_redact(&secrets, ret);
}

static void expect_same(const char *raw, size_t step, struct rng *r)
{
    struct watcher w;
    struct buf expected;

    pour(raw, step, r, &w);
    whole(raw, &expected);
    if (strcmp(w.text, buf_cstr(&expected)) != 0) {
        fail_msg("'%s' in pieces of %zu: '%s', expected '%s'", raw, step, w.text,
                 buf_cstr(&expected));
    }
    buf_done(&expected);
}

static void pieces_joined_are_the_answer(void **state)
{
    static const char *const raws[] = {
        "",
        "hello",
        "  hello there \n\n",
        "<think>let me see</think>\n\n hello",
        "<think>a</think><thinking>b</thinking> c <think>d</think>",
        "\xef\xbb\xbf <think>never ends",
        "reasoning without a beginning</think>\n the answer",
        "the tags <think> and </think> are tags",
        "<think>x</think>a</think>b</think>c",
        "<thin is not a tag",
        "<",
        "a < b </thin",
        "your key is " KEY ", keep it",
        KEY,
        KEY KEY "sk-canary",
        "sk-canary-12\\/34 and sk-canary-12\\/3",
        "sk-canarsk-canary-12/34",
        "ends in sk-can",
        "ends in sk-canary-1 \n",
        "<think>" KEY "</think> fine",
        "   ",
    };

    (void)state;
    for (size_t i = 0; i < sizeof raws / sizeof raws[0]; i++) {
        for (size_t step = 1; step < 20; step++) {
            expect_same(raws[i], step, NULL);
        }
        expect_same(raws[i], 8192, NULL);
    }
}

static void text_comes_at_once_and_reasoning_never(void **state)
{
    struct watcher w;

    (void)state;
    pour("one two three four", 4, NULL, &w);
    assert_in_range(w.pieces, 4, 6);
    assert_int_equal(w.reset, 0);
    pour("<think>one two three</think>four", 1, NULL, &w);
    assert_int_equal(w.reset, 0);
    assert_string_equal(w.text, "four");
    pour("one two</think>three", 1, NULL, &w);
    assert_int_equal(w.reset, 1); /* the text so far was reasoning */
    assert_string_equal(w.text, "three");
    pour("one two</think>three", 100, NULL, &w);
    assert_int_equal(w.reset, 0);
}

static void random_texts_in_random_pieces_are_the_answer(void **state)
{
    static const char *const parts[] = {
        "<think>", "</think>", "<thinking>",   "</thinking>", " ",   "\n", "a",  "sk-canary-",
        "12/34",   "\\/",      "12\\/34",      "<",           "sk-", "</", "\\", "\xef\xbb\xbf",
        "hello",   KEY,        "sk-canary-12", "34"};
    struct rng r = rng_seeded("test_llm_spout");

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        char raw[512] = "";
        unsigned n = (unsigned)rng_below(&r, 14);
        for (unsigned k = 0; k < n; k++) {
            const char *p = parts[rng_below(&r, sizeof parts / sizeof parts[0])];
            (void)snprintf(raw + strlen(raw), sizeof raw - strlen(raw), "%s", p);
        }
        expect_same(raw, 0, &r);
    }
}

/* Reasoning that arrives byte by byte must not be parsed again for each byte. */
static void long_reasoning_costs_time_linear_in_its_bytes(void **state)
{
    enum { LONG = 4 * 1024 * 1024 };
    char *raw = malloc(LONG);
    struct text_filter s;

    (void)state;
    assert_non_null(raw);
    memset(raw, '<', LONG);
    memcpy(raw, "<think>", 7);
    text_filter_init(&s, &secrets, LONG);
    for (size_t at = 1; at < LONG; at++) {
        text_filter_feed(&s, (struct str){raw, at}, false);
    }
    assert_int_equal(s.out.len, 0);
    text_filter_done(&s);
    free(raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_joined_are_the_answer),
        cmocka_unit_test(text_comes_at_once_and_reasoning_never),
        cmocka_unit_test(random_texts_in_random_pieces_are_the_answer),
        cmocka_unit_test(long_reasoning_costs_time_linear_in_its_bytes),
    };

    return cmocka_run_group_tests(tests, load_key, drop_key);
}
