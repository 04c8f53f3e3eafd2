/* The i-th allocation fails, for every i: a card says so, or is whole. ASan reports leaks. */
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/card.h"
#include "agents/sdk/pool.h"
#include "tests/support/memory.h"

enum { ATTEMPTS = 1000, WORDS = 9000, IDS = 2000 };

static void run(struct bt_step *step, void *self)
{
    (void)step;
    (void)self;
}

static char words[WORDS + 1]; /* more than a block of an arena */

static const char *const tags[] = {"one", words, NULL};
static const char *const examples[] = {"count the rows", words, NULL};

/* The texts of a member are the last ones that the arena has to make room for. */
static enum bt_code make(int large, struct bt_error *err)
{
    const struct bt_skill skill = {
        .id = "do",
        .name = large == 1 ? words : "Do",
        .description = large == 2 ? words : "Does it.",
        .effects = "none",
        .tags = large == 3 ? tags : NULL,
        .examples = large == 4 ? examples : NULL,
        .input_schema = "{\"type\":\"object\",\"required\":[\"n\"]}",
        .output_schema = "{\"type\":\"integer\"}",
        .run = run,
    };
    const struct bt_agent_def def = {
        .agent_id = "calc", .name = "calc", .version = "1", .skills = &skill, .skill_count = 1};
    struct arena arena = {0};
    struct msg_card view;
    struct card card;
    enum bt_code code = card_init(&card, &def, err);

    for (int i = 0; i < IDS && code == BT_OK; i++) { /* more than a block of them */
        code = card_set_id(&card, "another", err);
        assert_true(code != BT_OK || str_is(card.msg.agent_id, "another"));
    }
    if (code == BT_OK) {
        code = card_view(&card, &arena, &view, err);
    }
    if (code == BT_OK) {
        assert_true(str_is(view.agent_id, "another"));
        assert_int_equal(view.skills_n, 1);
        assert_true(str_is(view.skills[0].id, "do"));
        assert_true(str_is(view.skills[0].name, skill.name));
        assert_true(str_is(view.skills[0].description, skill.description));
        assert_true(str_is(view.skills[0].effects, "none"));
        assert_int_equal(view.skills[0].tags_n, large == 3 ? 2 : 0);
        assert_int_equal(view.skills[0].examples_n, large == 4 ? 2 : 0);
        assert_non_null(view.skills[0].input_schema.ptr);
        assert_non_null(view.skills[0].output_schema.ptr);
    }
    arena_done(&arena);
    card_done(&card);
    return code;
}

static void a_card_without_memory_says_so_or_is_whole(void **state)
{
    (void)state;
    memset(words, 'w', WORDS);
    for (int large = 0; large <= 4; large++) {
        long failures = 0;
        for (long i = 0; i < ATTEMPTS; i++) {
            struct bt_error err = {.code = BT_OK};
            enum bt_code code;
            bool failed;
            memory_left = i;
            code = make(large, &err);
            failed = memory_left < 0;
            memory_left = -1;
            if (!failed) {
                assert_int_equal(code, BT_OK);
                break;
            }
            failures++;
            if (code != BT_OK) {
                assert_int_equal(code, BT_NOMEM);
                assert_int_equal(err.code, BT_NOMEM);
                assert_true(strlen(err.msg) > 0);
            }
        }
        assert_true(failures > 5 && failures < ATTEMPTS);
    }
}

static void run_slot(void *self, uint32_t slot)
{
    (void)self;
    (void)slot;
}

static void workers_without_memory_say_so(void **state)
{
    struct bt_error err = {.code = BT_OK};
    struct pool *p = NULL;

    (void)state;
    memory_left = 0;
    assert_int_equal(pool_start(1, run_slot, NULL, &p, &err), BT_NOMEM);
    memory_left = -1;
    assert_int_equal(err.code, BT_NOMEM);
    assert_string_equal(err.msg, "out of memory for the workers");
    assert_null(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_without_memory_says_so_or_is_whole),
        cmocka_unit_test(workers_without_memory_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
