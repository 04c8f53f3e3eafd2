#include "protocol/base/map.h"

#include "tests/support/cmocka.h"
#include "tests/support/random.h"

enum { KEYS = 400, MOVES = 200000 };

/* The naive model: value by key number, MAP_NONE where there is none. */
struct model {
    char names[KEYS][12];
    uint32_t values[KEYS];
    uint32_t used;
};

static void check_all(const struct map *m, const struct model *model)
{
    assert_int_equal(m->used, model->used);
    for (uint32_t k = 0; k < KEYS; k++) {
        assert_int_equal(map_get(m, str_from(model->names[k])), model->values[k]);
    }
}

static void it_agrees_with_a_naive_model_through_random_moves(void **state)
{
    struct rng rng = rng_seeded("map");
    struct map m = {0};
    static struct model model;

    (void)state;
    for (uint32_t k = 0; k < KEYS; k++) {
        (void)snprintf(model.names[k], sizeof model.names[k], "key%u", (unsigned)k);
        model.values[k] = MAP_NONE;
    }
    for (uint32_t i = 0; i < MOVES; i++) {
        uint32_t k = rng_below(&rng, KEYS);
        struct str key = str_from(model.names[k]);
        if (rng_below(&rng, 2) == 0) {
            uint32_t value = rng_below(&rng, 1000000);
            assert_int_equal(map_put(&m, key, value), BT_OK);
            model.used += model.values[k] == MAP_NONE;
            model.values[k] = value;
        } else {
            assert_int_equal(map_remove(&m, key), model.values[k]);
            model.used -= model.values[k] != MAP_NONE;
            model.values[k] = MAP_NONE;
        }
        if (i % 1000 == 0) {
            check_all(&m, &model);
        }
    }
    check_all(&m, &model);
    map_done(&m);
}

static void an_empty_map_knows_nothing(void **state)
{
    struct map m = {0};

    (void)state;
    assert_int_equal(map_get(&m, STR_LIT("a")), MAP_NONE);
    assert_int_equal(map_remove(&m, STR_LIT("a")), MAP_NONE);
    map_done(&m);
    map_done(&m);
    map_done(NULL);
}

static void the_empty_string_is_a_key_too(void **state)
{
    struct map m = {0};

    (void)state;
    assert_int_equal(map_put(&m, (struct str){NULL, 0}, 7), BT_OK);
    assert_int_equal(map_get(&m, STR_LIT("")), 7);
    assert_int_equal(map_remove(&m, STR_LIT("")), 7);
    assert_int_equal(map_get(&m, STR_LIT("")), MAP_NONE);
    map_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_agrees_with_a_naive_model_through_random_moves),
        cmocka_unit_test(an_empty_map_knows_nothing),
        cmocka_unit_test(the_empty_string_is_a_key_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
