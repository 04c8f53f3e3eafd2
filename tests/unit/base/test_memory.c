/* What buffers, arenas and maps do when there is no memory; and who may look into this process. */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/base/hide.h"
#include "protocol/base/map.h"
#include "tests/support/memory.h"

static void a_buffer_that_cannot_grow_says_so_until_it_is_cleared(void **state)
{
    struct bt_error err;
    struct buf b;

    (void)state;
    buf_init(&b, 1000);
    buf_add_cstr(&b, "kept");
    memory_left = 0;
    buf_printf(&b, "%100s", "lost");
    memory_left = -1;
    buf_add_cstr(&b, "late");
    assert_int_equal(b.len, 4);
    assert_int_equal(buf_check(&b, &err), BT_NOMEM);
    assert_int_equal(err.code, BT_NOMEM);
    assert_string_equal(err.msg, "out of memory for a buffer of 4 bytes");
    buf_clear(&b);
    buf_add_cstr(&b, "again");
    assert_int_equal(buf_check(&b, NULL), BT_OK);
    assert_string_equal(buf_cstr(&b), "again");
    buf_done(&b);
}

/* Until nothing is left of its memory: the one that fails takes nothing, and the next one fits. */
static void an_arena_that_cannot_grow_gives_nothing_and_goes_on(void **state)
{
    struct arena a = {0};
    size_t total;

    (void)state;
    memory_left = 0;
    assert_null(arena_alloc(&a, 1));
    assert_null(arena_str(&a, STR_LIT("text")).ptr);
    memory_left = -1;
    assert_non_null(arena_alloc(&a, 1));
    total = a.total;
    memory_left = 0;
    assert_null(arena_room(&a, 5000));
    assert_int_equal(a.total, total);
    assert_non_null(arena_alloc(&a, 1)); /* there is room in the chunk that it has */
    memory_left = -1;
    assert_non_null(arena_room(&a, 5000));
    arena_done(&a);
}

static void a_map_that_cannot_grow_has_what_it_had(void **state)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g",
                                       "h", "i", "j", "k", "l", "m"};
    enum { N = sizeof keys / sizeof keys[0] }; /* 12 are in the first 16 slots */
    struct map m = {0};

    (void)state;
    memory_left = 0;
    assert_int_equal(map_put(&m, str_from("a"), 0), BT_NOMEM);
    memory_left = -1;
    for (uint32_t i = 0; i < N - 1; i++) {
        assert_int_equal(map_put(&m, str_from(keys[i]), i), BT_OK);
    }
    memory_left = 0;
    assert_int_equal(map_put(&m, str_from(keys[N - 1]), N - 1), BT_NOMEM);
    memory_left = -1;
    for (uint32_t i = 0; i < N - 1; i++) {
        assert_int_equal(map_get(&m, str_from(keys[i])), i);
    }
    assert_int_equal(map_get(&m, str_from(keys[N - 1])), MAP_NONE);
    assert_int_equal(map_put(&m, str_from(keys[N - 1]), N - 1), BT_OK);
    assert_int_equal(map_get(&m, str_from(keys[N - 1])), N - 1);
    map_done(&m);
}

static int dumpable_after(const char *variable)
{
    int is_dumpable;

    assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
    if (variable != NULL) {
        assert_int_equal(setenv("BATON_DUMPABLE", variable, 1), 0);
    } else {
        assert_int_equal(unsetenv("BATON_DUMPABLE"), 0);
    }
    hide_process();
    is_dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
    return is_dumpable;
}

static void a_process_is_hidden_unless_its_user_wants_to_look_into_it(void **state)
{
    (void)state;
    assert_int_equal(dumpable_after(NULL), 0);
    assert_int_equal(dumpable_after(""), 0);
    assert_int_equal(dumpable_after("0"), 0);
    assert_int_equal(dumpable_after("1"), 1);
    assert_int_equal(dumpable_after("11"), 0);
}

int main(void)
{
    memory_for_good = true; /* until a test says that there is memory again */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_that_cannot_grow_says_so_until_it_is_cleared),
        cmocka_unit_test(an_arena_that_cannot_grow_gives_nothing_and_goes_on),
        cmocka_unit_test(a_map_that_cannot_grow_has_what_it_had),
        cmocka_unit_test(a_process_is_hidden_unless_its_user_wants_to_look_into_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
