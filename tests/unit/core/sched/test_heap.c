/* The heap of deadlines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "supervisor/core/sched/heap.h"

enum { ROWS = 40 };

struct bench {
    struct heap heap;
    uint32_t items[ROWS], pos[ROWS];
    msec keys[ROWS];
};

static void init(struct bench *b)
{
    heap_init(&b->heap, b->items, b->pos, b->keys, ROWS);
}

static void an_empty_heap_is_never_due(void **state)
{
    (void)state;
    struct bench b;
    init(&b);
    assert_int_equal(heap_top(&b.heap), HEAP_NONE);
    assert_true(heap_min(&b.heap) == MSEC_NEVER);
    heap_set(&b.heap, 3, MSEC_NEVER);
    assert_int_equal(b.heap.n, 0);
}

static void equal_keys_come_out_by_lowest_row(void **state)
{
    (void)state;
    struct bench b;
    init(&b);
    heap_set(&b.heap, 7, 5);
    heap_set(&b.heap, 2, 5);
    heap_set(&b.heap, 4, 5);
    assert_int_equal(heap_top(&b.heap), 2);
    heap_set(&b.heap, 2, MSEC_NEVER);
    assert_int_equal(heap_top(&b.heap), 4);
}

static void a_key_may_move_both_ways(void **state)
{
    (void)state;
    struct bench b;
    init(&b);
    heap_set(&b.heap, 0, 10);
    heap_set(&b.heap, 1, 20);
    heap_set(&b.heap, 2, 30);
    heap_set(&b.heap, 2, 5);
    assert_int_equal(heap_top(&b.heap), 2);
    heap_set(&b.heap, 2, 40);
    assert_int_equal(heap_top(&b.heap), 0);
    assert_int_equal(b.heap.n, 3);
}

/* Every order of insert, move and removal that a simple generator finds, against a scan. */
static void it_agrees_with_a_scan(void **state)
{
    (void)state;
    struct bench b;
    uint32_t random = 1;
    init(&b);
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525 + 1013904223;
        const uint32_t row = random >> 8 & 31;
        const uint32_t key = random >> 16 & 63;
        heap_set(&b.heap, row, key < 20 ? MSEC_NEVER : key);
        uint32_t best = HEAP_NONE;
        for (uint32_t r = 0; r < ROWS; r++) {
            if (b.keys[r] != MSEC_NEVER && (best == HEAP_NONE || b.keys[r] < b.keys[best])) {
                best = r;
            }
        }
        assert_int_equal(heap_top(&b.heap), best);
        assert_true(heap_ok(&b.heap, ROWS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_is_never_due),
        cmocka_unit_test(equal_keys_come_out_by_lowest_row),
        cmocka_unit_test(a_key_may_move_both_ways),
        cmocka_unit_test(it_agrees_with_a_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
