/* Splits bodies into JSON values, however the bytes are divided. */
#include "tests/support/cmocka.h"

#include <string.h>

#include "agents/llm/model/stream.h"
#include "protocol/base/err.h"

struct taken {
    struct buf all; /* the values, each followed by a bar */
    bool chunk;
    bool refuse;
};

static enum bt_code take(void *self, struct str json, bool chunk, struct bt_error *err)
{
    struct taken *t = self;

    buf_add_str(&t->all, json);
    buf_add_byte(&t->all, '|');
    t->chunk = chunk;
    return t->refuse ? err_set(err, BT_PROTOCOL, "no") : BT_OK;
}

/* Feeds the text in pieces of n bytes, and once whole; both must give the same values. */
static void expect(const char *text, bool lines, const char *values, bool chunk)
{
    for (size_t n = 1; n <= strlen(text) + 1; n++) {
        struct taken t = {0};
        struct stream s;
        struct bt_error err;

        buf_init(&t.all, 10000);
        stream_init(&s, lines, 1000, take, &t);
        for (size_t at = 0; at < strlen(text); at += n) {
            size_t left = strlen(text) - at;
            assert_int_equal(stream_feed(&s, (struct str){text + at, left < n ? left : n}, &err),
                             BT_OK);
        }
        assert_int_equal(stream_end(&s, &err), BT_OK);
        assert_string_equal(buf_cstr(&t.all), values);
        assert_true(t.all.len == 0 || t.chunk == chunk);
        stream_done(&s);
        buf_done(&t.all);
    }
}

static void events_are_joined_by_their_data_lines(void **state)
{
    (void)state;
    expect("data: {\"a\":1}\n\ndata: {\"b\":2}\n\n", false, "{\"a\":1}|{\"b\":2}|", true);
    expect("data: {\"a\":\ndata: 1}\n\n", false, "{\"a\":\n 1}|", true);
    expect("event: x\r\nid: 7\r\nretry: 1\r\ndata:{}\r\n\r\n", false, "{}|", true);
    expect(": keep-alive\n\n: again\n\ndata: {}\n\n", false, "{}|", true);
    expect("data: {}\n\ndata: [DONE]\n\ndata: {\"late\":1}\n\n", false, "{}|", true);
    expect("\n\ndata: {}", false, "{}|", true);
    expect("\xef\xbb\xbf"
           "data: {}\n\n",
           false, "{}|", true);
    expect("event: ping\n\ndata:\n\ndata: \n\n", false, "", true);
}

static void lines_are_values(void **state)
{
    (void)state;
    expect("{\"a\":1}\n{\"b\":2}\r\n\n{\"c\":3}", true, "{\"a\":1}|{\"b\":2}|{\"c\":3}|", true);
    expect("data: {}\n\n", true, "{}|", true); /* a proxy turned it into events */
}

static void anything_else_is_one_value(void **state)
{
    (void)state;
    expect("{\"a\":\n1}\n", false, "{\"a\":\n1}|", false);
    expect("<html></html>", false, "<html></html>|", false);
    expect(" \n ", false, "", false);
    expect("", true, "", false);
}

static void what_is_over_the_cap_ends_the_reading(void **state)
{
    static const char *const begins[] = {"data: ", "{", "<", "data: x\ndata: "};
    char block[512];

    (void)state;
    memset(block, 'x', sizeof block);
    for (size_t i = 0; i < 8; i++) {
        struct taken t = {0};
        struct stream s;
        struct bt_error err;
        enum bt_code code;
        buf_init(&t.all, 10000);
        stream_init(&s, i % 2 == 1, 1000, take, &t);
        code = stream_feed(&s, str_from(begins[i / 2]), &err);
        for (int k = 0; k < 3 && code == BT_OK; k++) {
            code = stream_feed(&s, (struct str){block, sizeof block}, &err);
        }
        assert_int_equal(code, BT_LIMIT);
        stream_done(&s);
        buf_done(&t.all);
    }
}

static void who_takes_may_end_it(void **state)
{
    struct taken t = {.refuse = true};
    struct stream s;
    struct bt_error err;

    (void)state;
    buf_init(&t.all, 1000);
    stream_init(&s, false, 1000, take, &t);
    assert_int_equal(stream_feed(&s, STR_LIT("data: {}\n\ndata: {}\n\n"), &err), BT_PROTOCOL);
    assert_string_equal(buf_cstr(&t.all), "{}|");
    stream_done(&s);
    buf_done(&t.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_joined_by_their_data_lines),
        cmocka_unit_test(lines_are_values),
        cmocka_unit_test(anything_else_is_one_value),
        cmocka_unit_test(what_is_over_the_cap_ends_the_reading),
        cmocka_unit_test(who_takes_may_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
