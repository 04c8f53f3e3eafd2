#include "protocol/wire/mp_validate.h"

#include <sys/resource.h>

#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/unit/wire/generate.h"

static enum bt_code check(const char *bytes, size_t len)
{
    struct bt_error err = {.code = BT_OK};
    return mp_validate(bytes, len, NULL, &err);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOWED_DOWN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define SLOWED_DOWN
#endif

#ifdef SLOWED_DOWN
enum { KEYS_MAY_TAKE_MS = 3000 }; /* a quadratic check takes minutes */
#else
enum { KEYS_MAY_TAKE_MS = 100 };
#endif

#define CHECK(lit) check(lit, sizeof(lit) - 1)

static void assert_refused(const char *bytes, size_t len, enum bt_code code, const char *says)
{
    struct bt_error err = {.code = BT_OK};

    assert_int_equal(mp_validate(bytes, len, NULL, &err), code);
    assert_int_equal(err.code, code);
    if (strstr(err.msg, says) == NULL) {
        fail_msg("'%s' does not say '%s'", err.msg, says);
    }
}

#define REFUSED(lit, code, says) assert_refused(lit, sizeof(lit) - 1, code, says)

static void every_kind_of_value_is_accepted(void **state)
{
    (void)state;
    assert_int_equal(CHECK("\xC0"), BT_OK);
    assert_int_equal(CHECK("\xC2"), BT_OK);
    assert_int_equal(CHECK("\xFF"), BT_OK);
    assert_int_equal(CHECK("\xD3\x80\0\0\0\0\0\0\0"), BT_OK);
    assert_int_equal(CHECK("\xCB\x3F\xF0\0\0\0\0\0\0"), BT_OK);
    assert_int_equal(CHECK("\xCA\x3F\xC0\0\0"), BT_OK);
    assert_int_equal(CHECK("\xC4\x02\xFF\x00"), BT_OK);
    assert_int_equal(CHECK("\xDB\0\0\0\x01x"), BT_OK);
    assert_int_equal(CHECK("\xDD\0\0\0\x02\xC0\xC0"), BT_OK);
    assert_int_equal(CHECK("\x82\xA1"
                           "a\x01\xA1"
                           "b\x90"),
                     BT_OK);
}

static void bombs_of_a_few_bytes_are_refused(void **state)
{
    (void)state;
    REFUSED("\xDD\x05\xF5\xE1\x00", BT_INVALID, "promises more values");
    REFUSED("\xDF\xFF\xFF\xFF\xFF", BT_INVALID, "promises more values");
    REFUSED("\xDF\xFF\xFF\xFF\xFF\xC0\xC0\xC0", BT_INVALID, "promises more values");
    REFUSED("\xDE\xFF\xFF", BT_INVALID, "promises more values");
    REFUSED("\xDB\xFF\xFF\xFF\xFFxx", BT_INVALID, "after the end");
    REFUSED("\xC6\xFF\xFF\xFF\xFF", BT_INVALID, "after the end");
}

static void what_is_no_single_sound_value_is_refused(void **state)
{
    (void)state;
    assert_refused("", 0, BT_INVALID, "nothing there");
    REFUSED("\xC0\xC0", BT_INVALID, "byte 1: bytes behind the end");
    REFUSED("\xC1", BT_INVALID, "0xC1");
    REFUSED("\xD4\x01\x02", BT_INVALID, "ext");
    REFUSED("\xD6\xFF\0\0\0\0", BT_INVALID, "ext"); /* the timestamp of msgpack */
    REFUSED("\xC7\x01\x01\x01", BT_INVALID, "ext");
    REFUSED("\xA2\xFF\xFE", BT_INVALID, "UTF-8");
    REFUSED("\xA3"
            "a\0b",
            BT_INVALID, "zero byte");
    REFUSED("\xCB\x7F\xF0\0\0\0\0\0\0", BT_INVALID, "finite");
    REFUSED("\xCB\x7F\xF8\0\0\0\0\0\0", BT_INVALID, "finite");
    REFUSED("\xCA\xFF\x80\0\0", BT_INVALID, "finite");
    REFUSED("\x81\x01\x02", BT_INVALID, "must be a string");
    REFUSED("\x81\x90\x02", BT_INVALID, "must be a string");
    REFUSED("\x82\xA1"
            "a\x01\xA1"
            "a\x02",
            BT_INVALID, "byte 4: the key 'a' is there twice");
    REFUSED("\x82\xA1"
            "a\x01\xD9\x01"
            "a\x02",
            BT_INVALID, "twice"); /* the same key, written another way */
}

static void equal_keys_of_different_maps_are_no_duplicates(void **state)
{
    (void)state;
    assert_int_equal(CHECK("\x82\xA1"
                           "a\x81\xA1"
                           "a\x01\xA1"
                           "b\x81\xA1"
                           "a\x02"),
                     BT_OK);
}

static void depth_and_node_budget_end_exactly_at_their_limit(void **state)
{
    char nested[LIMIT_DEPTH + 2];
    const struct mp_limits nodes = {16, 4};

    (void)state;
    memset(nested, '\x91', sizeof nested);
    nested[LIMIT_DEPTH - 1] = '\x90';
    assert_int_equal(check(nested, LIMIT_DEPTH), BT_OK);
    nested[LIMIT_DEPTH - 1] = '\x91';
    nested[LIMIT_DEPTH] = '\x90';
    assert_refused(nested, LIMIT_DEPTH + 1, BT_LIMIT, "nested deeper than 16");
    nested[LIMIT_DEPTH] = '\xC0';
    assert_int_equal(check(nested, LIMIT_DEPTH + 1), BT_OK);
    assert_int_equal(mp_validate("\x93\xC0\xC0\xC0", 4, &nodes, NULL), BT_OK);
    assert_int_equal(mp_validate("\x94\xC0\xC0\xC0\xC0", 5, &nodes, NULL), BT_LIMIT);
}

/* A list is a value, and so is each of its elements. */
static void a_body_has_as_many_values_as_the_page_says(void **state)
{
    static uint8_t list[5 + LIMIT_NODES];

    (void)state;
    for (uint32_t n = LIMIT_NODES - 1; n <= LIMIT_NODES; n++) {
        const uint8_t head[] = {0xDD, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
                                (uint8_t)n};
        memset(list, 0xC0, sizeof list);
        memcpy(list, head, sizeof head);
        assert_int_equal(mp_validate(list, sizeof head + n, NULL, NULL),
                         n < LIMIT_NODES ? BT_OK : BT_LIMIT);
    }
}

static void a_limit_of_the_caller_never_overruns_the_stack_of_the_walk(void **state)
{
    const struct mp_limits wild = {UINT32_MAX, UINT32_MAX};
    uint8_t nested[100000];

    (void)state;
    memset(nested, 0x91, sizeof nested);
    nested[sizeof nested - 1] = 0xC0;
    assert_int_equal(mp_validate(nested, sizeof nested, &wild, NULL), BT_LIMIT);
}

static void every_truncation_of_a_valid_frame_is_refused(void **state)
{
    struct rng rng = rng_seeded("truncation");
    struct buf doc;

    (void)state;
    buf_init(&doc, 1 << 20);
    for (int round = 0; round < 300; round++) {
        buf_clear(&doc);
        generate_doc(&rng, (struct generate_options){5, true, false}, &doc);
        assert_int_equal(mp_validate(doc.at, doc.len, NULL, NULL), BT_OK);
        for (size_t len = 0; len < doc.len; len++) {
            uint8_t *exact = malloc(len + 1); /* on the heap: ASan sees one byte too far */
            assert_non_null(exact);
            memcpy(exact, doc.at, len);
            exact = realloc(exact, len > 0 ? len : 1);
            assert_non_null(exact);
            assert_int_equal(mp_validate(exact, len, NULL, NULL), BT_INVALID);
            free(exact);
        }
    }
    buf_done(&doc);
}

/* What the validator accepts must be safe for the cursor: every walk ends exactly at the end. */
static void walk(const uint8_t *bytes, size_t len)
{
    struct doc_cursor c = doc_cursor((struct doc){bytes, len});
    struct doc_head h;
    struct doc whole = doc_skip(&c);

    assert_int_equal(whole.len, len);
    c = doc_cursor((struct doc){bytes, len});
    while (doc_next(&c, &h)) {
    }
    assert_ptr_equal(c.at, bytes + len);
}

static void no_flipped_byte_crashes_guard_or_cursor(void **state)
{
    struct rng rng = rng_seeded("flips");
    struct buf doc;
    size_t accepted = 0;

    (void)state;
    buf_init(&doc, 1 << 20);
    for (int round = 0; round < 60; round++) {
        buf_clear(&doc);
        generate_doc(&rng, (struct generate_options){4, true, false}, &doc);
        for (size_t i = 0; i < doc.len && i < 200; i++) {
            uint8_t kept = doc.at[i];
            for (unsigned v = 0; v < 256; v += 1 + rng_below(&rng, 3)) {
                doc.at[i] = (uint8_t)v;
                if (mp_validate(doc.at, doc.len, NULL, NULL) == BT_OK) {
                    walk(doc.at, doc.len);
                    accepted++;
                }
            }
            doc.at[i] = kept;
        }
    }
    assert_true(accepted > 0);
    buf_done(&doc);
}

/* ---- keys ---- */

static void many_keys(struct buf *out, uint32_t n, const char *fmt)
{
    doc_put_map(out, n);
    for (uint32_t i = 0; i < n; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "%s%u", fmt, (unsigned)i);
        doc_put_cstr(out, key);
        doc_put_nil(out);
    }
}

/* Of this thread: other programs do not count. */
static uint64_t cpu_ns(void)
{
    struct rusage r;

    assert_int_equal(getrusage(RUSAGE_THREAD, &r), 0);
    return ((uint64_t)r.ru_utime.tv_sec * 1000000 + (uint64_t)r.ru_utime.tv_usec) * 1000;
}

static void a_map_of_100000_keys_is_checked_in_linear_time(void **state)
{
    const struct mp_limits wide = {16, 1000000};
    struct buf doc;
    uint64_t best = UINT64_MAX;

    (void)state;
    buf_init(&doc, 1 << 22);
    many_keys(&doc, 100000, "k");
    for (int i = 0; i < 3; i++) { /* the best of three: the machine may be busy */
        uint64_t started = cpu_ns();
        uint64_t took;
        assert_int_equal(mp_validate(doc.at, doc.len, &wide, NULL), BT_OK);
        took = cpu_ns() - started;
        best = took < best ? took : best;
    }
    print_message("100000 keys in %.1f ms\n", (double)best / 1e6);
    assert_true(best < (uint64_t)KEYS_MAY_TAKE_MS * 1000 * 1000);
    buf_done(&doc);
}

static void a_duplicate_is_found_wherever_it_stands(void **state)
{
    static const uint32_t sizes[] = {2,  3,  15,  16,   17,   31,    32,
                                     33, 64, 100, 8192, 8193, 16384, 40000};
    const struct mp_limits wide = {16, 1000000};
    struct rng rng = rng_seeded("duplicates");
    struct buf doc;

    (void)state;
    buf_init(&doc, 1 << 22);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int round = 0; round < 8; round++) {
            uint32_t a = rng_below(&rng, sizes[s]);
            uint32_t b = rng_below(&rng, sizes[s]);
            buf_clear(&doc);
            doc_put_map(&doc, sizes[s]);
            for (uint32_t i = 0; i < sizes[s]; i++) {
                char key[16];
                (void)snprintf(key, sizeof key, "%u", (unsigned)(i == b ? a : i));
                doc_put_cstr(&doc, key);
                doc_put_u64(&doc, i);
            }
            assert_int_equal(mp_validate(doc.at, doc.len, &wide, NULL),
                             a == b ? BT_OK : BT_INVALID);
        }
    }
    buf_done(&doc);
}

/* Processor time of this process: a loaded machine does not make it longer. */
static long processor_ms(void)
{
    struct rusage used;

    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return used.ru_utime.tv_sec * 1000 + used.ru_utime.tv_usec / 1000;
}

static void maps_in_maps_of_many_keys_stay_cheap(void **state)
{
    const struct mp_limits wide = {16, 1000000};
    struct buf doc;
    long started;

    (void)state;
    buf_init(&doc, 1 << 22);
    for (int level = 0; level < 15;
         level++) { /* each holds 6,000 keys, the last one the next map */
        many_keys(&doc, 6000, "key");
        buf_truncate(&doc, doc.len - 1);
    }
    doc_put_nil(&doc);
    started = processor_ms();
    assert_int_equal(mp_validate(doc.at, doc.len, &wide, NULL), BT_OK);
    assert_true(processor_ms() - started < 3000);
    buf_done(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_accepted),
        cmocka_unit_test(bombs_of_a_few_bytes_are_refused),
        cmocka_unit_test(what_is_no_single_sound_value_is_refused),
        cmocka_unit_test(equal_keys_of_different_maps_are_no_duplicates),
        cmocka_unit_test(depth_and_node_budget_end_exactly_at_their_limit),
        cmocka_unit_test(a_body_has_as_many_values_as_the_page_says),
        cmocka_unit_test(a_limit_of_the_caller_never_overruns_the_stack_of_the_walk),
        cmocka_unit_test(every_truncation_of_a_valid_frame_is_refused),
        cmocka_unit_test(no_flipped_byte_crashes_guard_or_cursor),
        cmocka_unit_test(a_map_of_100000_keys_is_checked_in_linear_time),
        cmocka_unit_test(a_duplicate_is_found_wherever_it_stands),
        cmocka_unit_test(maps_in_maps_of_many_keys_stay_cheap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
