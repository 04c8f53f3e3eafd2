#include "protocol/base/arena.h"

#include <stdalign.h>

#include "tests/support/cmocka.h"
#include "tests/support/random.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    struct rng rng = rng_seeded("arena");
    struct arena a = {0};
    uint8_t *blocks[500];
    size_t sizes[500];

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 500; i++) {
            sizes[i] = rng_below(&rng, 300);
            blocks[i] = arena_alloc(&a, sizes[i]);
            assert_non_null(blocks[i]);
            assert_int_equal((uintptr_t)blocks[i] % alignof(max_align_t), 0);
            for (size_t j = 0; j < sizes[i]; j++) {
                assert_int_equal(blocks[i][j], 0);
            }
            memset(blocks[i], (int)(i % 255 + 1), sizes[i]);
        }
        for (size_t i = 0; i < 500; i++) {
            for (size_t j = 0; j < sizes[i]; j++) {
                assert_int_equal(blocks[i][j], i % 255 + 1);
            }
        }
        arena_reset(&a); /* the second round reuses dirty memory */
    }
    arena_done(&a);
    arena_done(&a);
}

static void the_cap_holds_and_what_is_below_it_succeeds(void **state)
{
    struct arena a = {.max = 10000};
    size_t got = 0;

    (void)state;
    assert_null(arena_alloc(&a, 10001));
    assert_null(arena_alloc(&a, SIZE_MAX));
    while (arena_alloc(&a, 100) != NULL) {
        got += 100;
    }
    assert_true(got >= 8000 && got <= 10000);
    assert_true(a.total <= 10000);
    arena_done(&a);
    assert_int_equal(a.max, 10000);
    assert_non_null(arena_alloc(&a, 100));
    arena_done(&a);
}

static void a_string_copy_is_terminated_and_its_own(void **state)
{
    struct arena a = {0};
    char text[] = "hello";
    struct str copy = arena_str(&a, (struct str){text, 4});
    struct str empty = arena_str(&a, (struct str){NULL, 0});

    (void)state;
    text[0] = 'J';
    assert_string_equal(copy.ptr, "hell");
    assert_int_equal(copy.len, 4);
    assert_string_equal(empty.ptr, "");
    arena_done(&a);
}

static void one_block_larger_than_a_chunk_fits(void **state)
{
    struct arena a = {0};
    uint8_t *big = arena_alloc(&a, 1000000);

    (void)state;
    assert_non_null(big);
    big[999999] = 1;
    assert_non_null(arena_alloc(&a, 10));
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(the_cap_holds_and_what_is_below_it_succeeds),
        cmocka_unit_test(a_string_copy_is_terminated_and_its_own),
        cmocka_unit_test(one_block_larger_than_a_chunk_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
