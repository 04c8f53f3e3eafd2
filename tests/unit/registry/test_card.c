#include "fixture.h"

static enum card_problem check_id(const char *id)
{
    const struct msg_card card = {.agent_id = str_from(id)};
    uint32_t skill;
    return card_check(&card, &skill);
}

static void an_agent_id_is_1_to_64_plain_characters(void **state)
{
    (void)state;
    char id[66];
    memset(id, 'a', sizeof id);
    id[65] = '\0';
    assert_int_equal(check_id(""), CARD_ID_EMPTY);
    assert_int_equal(check_id(id), CARD_ID_TOO_LONG);
    id[64] = '\0';
    assert_int_equal(check_id(id), CARD_OK);
    assert_int_equal(check_id("Agent_1.x-y"), CARD_OK);
    assert_int_equal(check_id("a b"), CARD_ID_BAD_CHARACTER);
    assert_int_equal(check_id("a/b"), CARD_ID_BAD_CHARACTER);
    assert_int_equal(check_id("\xc3\xa4"), CARD_ID_BAD_CHARACTER);
}

/* B7: such an id is a directory or an option to the programs that get it. */
static void an_agent_id_begins_like_a_name(void **state)
{
    static const char *const wrong[] = {".", "..", "-", "-rf", "--help", ".hidden", "-a.b"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(check_id(wrong[i]), CARD_ID_BAD_BEGIN);
    }
    assert_int_equal(check_id("a"), CARD_OK);
    assert_int_equal(check_id("_"), CARD_OK);
    assert_int_equal(check_id("0.-"), CARD_OK);
}

static void reserved_names_are_refused_in_any_case(void **state)
{
    (void)state;
    assert_int_equal(check_id("supervisor"), CARD_ID_RESERVED);
    assert_int_equal(check_id("SuperVisor"), CARD_ID_RESERVED);
    assert_int_equal(check_id("orchestrator"), CARD_OK); /* the agent for the daemon's models */
    assert_int_equal(check_id("user"), CARD_ID_RESERVED);
    assert_int_equal(check_id("system"), CARD_ID_RESERVED);
    assert_int_equal(check_id("*"), CARD_ID_RESERVED);
    assert_int_equal(check_id("user1"), CARD_OK);
    assert_int_equal(check_id("use"), CARD_OK);
}

static void the_skill_that_is_wrong_is_named(void **state)
{
    (void)state;
    struct msg_skill skills[3] = {{.id = STR_LIT("a")}, {.id = STR_LIT("b")}, {.id = STR_LIT("a")}};
    const struct msg_card card = {.agent_id = STR_LIT("x"), .skills = skills, .skills_n = 3};
    uint32_t ix = 0;
    assert_int_equal(card_check(&card, &ix), CARD_SKILL_DUPLICATE);
    assert_int_equal(ix, 2);
    skills[1].id = STR_LIT("not good");
    assert_int_equal(card_check(&card, &ix), CARD_SKILL_ID_BAD);
    assert_int_equal(ix, 1);
    skills[1].id = STR_LIT("b");
    skills[2].id = STR_LIT("c");
    skills[0].effects = STR_LIT("harmless");
    assert_int_equal(card_check(&card, &ix), CARD_EFFECTS_BAD);
    assert_int_equal(ix, 0);
    skills[0].effects = STR_LIT("unsafe");
    assert_int_equal(card_check(&card, &ix), CARD_OK);
    assert_int_equal(card_skill(&card, STR_LIT("c")), 2);
    assert_int_equal(card_skill(&card, STR_LIT("C")), UINT32_MAX);
}

static void every_problem_has_a_sentence(void **state)
{
    (void)state;
    for (int p = 0; p < CARD_PROBLEM_COUNT; p++) {
        assert_true(strlen(card_problem_text((enum card_problem)p)) > 10);
    }
    assert_string_equal(health_name(HEALTH_SUSPECT), "suspect");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_id_is_1_to_64_plain_characters),
        cmocka_unit_test(an_agent_id_begins_like_a_name),
        cmocka_unit_test(reserved_names_are_refused_in_any_case),
        cmocka_unit_test(the_skill_that_is_wrong_is_named),
        cmocka_unit_test(every_problem_has_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
