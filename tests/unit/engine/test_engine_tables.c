/* Small tables of the engine: cached results, and the signals of a plan. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/engine/blob_cache.h"
#include "supervisor/engine/signals.h"
#include "tests/support/cmocka.h"

/* ---- cached results ---- */

static void a_result_that_passed_is_not_found_and_its_bytes_stay(void **state)
{
    struct blob_cache c = {0};
    struct doc one;

    (void)state;
    blob_cache_pass(&c, 1);
    blob_cache_forget(&c, 1);
    blob_cache_put(&c, 1, "one", 3);
    blob_cache_put(&c, 2, "two", 3);
    one = blob_cache_get(&c, 1);
    blob_cache_pass(&c, 1 + BLOB_CACHE_SLOTS); /* another one that would have its slot */
    assert_non_null(blob_cache_get(&c, 1).ptr);
    blob_cache_pass(&c, 1);
    assert_null(blob_cache_get(&c, 1).ptr);
    assert_memory_equal(one.ptr, "one", 3);
    assert_int_equal(c.bytes, 6);
    assert_memory_equal(blob_cache_get(&c, 2).ptr, "two", 3);
    blob_cache_put(&c, 1, "one", 3); /* it is read again */
    assert_non_null(blob_cache_get(&c, 1).ptr);
    blob_cache_done(&c);
}

static void a_result_that_is_forgotten_gives_its_room_back(void **state)
{
    struct blob_cache c = {0};

    (void)state;
    blob_cache_put(&c, 1, "one", 3);
    blob_cache_put(&c, 2, "four", 4);
    blob_cache_forget(&c, 2 + BLOB_CACHE_SLOTS);
    assert_int_equal(c.bytes, 7);
    blob_cache_forget(&c, 2);
    assert_null(blob_cache_get(&c, 2).ptr);
    assert_int_equal(c.bytes, 3);
    assert_non_null(blob_cache_get(&c, 1).ptr);
    blob_cache_done(&c);
}

static void a_quarter_of_the_cache_is_the_largest_result_in_it(void **state)
{
    struct blob_cache c = {0};
    uint8_t *bytes = calloc(1, BLOB_CACHE_BYTES / 4 + 1);

    (void)state;
    assert_non_null(bytes);
    for (uint64_t id = 1; id <= 4; id++) {
        blob_cache_put(&c, id, bytes, BLOB_CACHE_BYTES / 4);
    }
    for (uint64_t id = 1; id <= 4; id++) {
        assert_non_null(blob_cache_get(&c, id).ptr);
    }
    blob_cache_put(&c, 5, bytes, BLOB_CACHE_BYTES / 4 + 1);
    assert_null(blob_cache_get(&c, 5).ptr);
    blob_cache_put(&c, 6, bytes, 1); /* the oldest makes room, and no other */
    assert_null(blob_cache_get(&c, 1).ptr);
    assert_non_null(blob_cache_get(&c, 2).ptr);
    assert_non_null(blob_cache_get(&c, 6).ptr);
    blob_cache_done(&c);
    free(bytes);
}

/* ---- signals ---- */

static void receive(struct signals *s, uint32_t serial, const char *name, const char *key)
{
    struct record rec = {REC_INIT(SIGNAL_RECEIVED, signal, .serial = serial, .key = str_from(key)),
                         .step = STEP_NONE, .text = str_from(name)};

    signals_record(s, &rec);
}

static void take(struct signals *s, uint32_t serial, uint32_t step)
{
    struct record rec = {REC_INIT(STEP_COMPLETED, step_completed, .signal = serial), .step = step};

    signals_record(s, &rec);
}

static void a_signal_is_kept_until_a_step_takes_it(void **state)
{
    struct signals s = {.at = NULL};

    (void)state;
    assert_null(signals_kept(&s, STR_LIT("go")));
    for (uint32_t i = 1; i <= 9; i++) { /* the list grows */
        receive(&s, i, i % 2 == 1 ? "go" : "stop", i == 3 ? "key" : "");
    }
    take(&s, 0, 7);  /* a step that no signal ended */
    take(&s, 10, 7); /* one that is not there */
    assert_int_equal(signals_kept(&s, STR_LIT("go"))->serial, 1);
    assert_int_equal(signals_kept(&s, STR_LIT("stop"))->serial, 2);
    take(&s, 1, 4);
    assert_int_equal(signals_kept(&s, STR_LIT("go"))->serial, 3);
    take(&s, 9, 5);
    assert_int_equal(s.at[8].taker, 5);
    assert_int_equal(s.at[0].taker, 4);
    assert_null(signals_kept(&s, STR_LIT("g")));
    /* who sends the same key again gets the same signal, taken or not */
    assert_int_equal(signals_by_key(&s, STR_LIT("key"))->serial, 3);
    take(&s, 3, 6);
    assert_int_equal(signals_by_key(&s, STR_LIT("key"))->taker, 6);
    assert_null(signals_by_key(&s, STR_LIT("")));
    assert_null(signals_by_key(&s, STR_LIT("other")));
    signals_done(&s);
    assert_int_equal(s.n, 0);
    assert_null(signals_kept(&s, STR_LIT("go")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_that_passed_is_not_found_and_its_bytes_stay),
        cmocka_unit_test(a_result_that_is_forgotten_gives_its_room_back),
        cmocka_unit_test(a_quarter_of_the_cache_is_the_largest_result_in_it),
        cmocka_unit_test(a_signal_is_kept_until_a_step_takes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
