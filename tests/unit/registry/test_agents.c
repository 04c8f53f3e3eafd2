#include "fixture.h"

#include "registry/registry_internal.h"

static void an_agent_is_found_by_its_id_and_added_once(void **state)
{
    struct registry *r = *state;
    assert_int_equal(registry_agent(r, STR_LIT("files")), REGISTRY_NONE);
    assert_int_equal(add(r, "files", 5), 0);
    assert_int_equal(add(r, "sql", 5), 1);
    assert_int_equal(add(r, "files", 6), 0);
    assert_int_equal(registry_agent(r, STR_LIT("sql")), 1);
    assert_int_equal(registry_agents(r), 2);
    assert_int_equal(registry_agent(r, STR_LIT("Files")), REGISTRY_NONE);
}

static void the_id_of_an_agent_is_copied(void **state)
{
    struct registry *r = *state;
    char name[] = "files";
    registry_agent_add(r, str_from(name), 1);
    memset(name, 'x', sizeof name - 1);
    assert_true(str_is(registry_agent_view(r, 0).id, "files"));
}

static void a_full_registry_takes_no_new_agent_but_still_finds_the_old(void **state)
{
    struct registry *r = *state;
    add(r, "a", 1);
    add(r, "b", 1);
    add(r, "c", 1);
    add(r, "d", 1);
    assert_int_equal(add(r, "e", 1), REGISTRY_NONE);
    assert_int_equal(add(r, "d", 1), 3);
}

static void an_empty_or_too_long_id_is_not_added(void **state)
{
    struct registry *r = *state;
    char name[LIMIT_ID_BYTES + 2];
    memset(name, 'a', sizeof name);
    assert_int_equal(add(r, "", 1), REGISTRY_NONE);
    assert_int_equal(registry_agent_add(r, (struct str){name, LIMIT_ID_BYTES + 1}, 1),
                     REGISTRY_NONE);
    assert_int_equal(registry_agent_add(r, (struct str){name, LIMIT_ID_BYTES}, 1), 0);
}

static void an_agent_is_absent_until_its_first_and_after_its_last_instance(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 5);
    assert_int_equal(registry_agent_view(r, a).absent_since, 5);
    const uint32_t s1 = registry_register(r, a, id_of(1), 1, 10);
    const uint32_t s2 = registry_register(r, a, id_of(2), 1, 11);
    assert_true(registry_agent_view(r, a).absent_since == MSEC_NEVER);
    assert_int_equal(registry_agent_view(r, a).instances, 2);
    registry_remove(r, s1, 20);
    assert_true(registry_agent_view(r, a).absent_since == MSEC_NEVER);
    registry_remove(r, s2, 30);
    assert_int_equal(registry_agent_view(r, a).absent_since, 30);
    assert_int_equal(registry_agent_view(r, a).instances, 0);
}

static void a_skill_is_routed_to_the_first_agent_that_has_it_and_is_there(void **state)
{
    struct registry *r = *state;
    struct msg_skill skills[2] = {{.id = STR_LIT("read")}, {.id = STR_LIT("grep")}};
    const struct msg_card both = {.skills = skills, .skills_n = 2};
    const struct msg_card one = {.skills = skills, .skills_n = 1};
    const uint32_t a = add(r, "a", 1);
    const uint32_t b = add(r, "b", 1);
    const uint32_t c = add(r, "c", 1);
    assert_int_equal(registry_agent_with_skill(r, STR_LIT("read")), REGISTRY_NONE);
    registry_agent_card(r, b, &both);
    registry_agent_card(r, c, &one);
    assert_int_equal(registry_agent_with_skill(r, STR_LIT("read")), b);
    ready(r, c, 1, 1, 2);
    assert_int_equal(registry_agent_with_skill(r, STR_LIT("read")), c);
    assert_int_equal(registry_agent_with_skill(r, STR_LIT("grep")), b);
    registry_agent_card(r, a, &both);
    ready(r, a, 2, 1, 2);
    assert_int_equal(registry_agent_with_skill(r, STR_LIT("read")), a);
    registry_agent_enable(r, a, false);
    assert_int_equal(registry_agent_with_skill(r, STR_LIT("read")), c);
    assert_int_equal(registry_agent_with_skill(r, STR_LIT("write")), REGISTRY_NONE);
}

/* The memory after the last agent is of others. */
static void a_skill_that_nobody_has_is_sought_among_the_agents_only(void **state)
{
    struct registry *r = *state;
    assert_int_equal(add(r, "a", 1), 0);
    assert_int_equal(add(r, "b", 1), 1);
    assert_int_equal(add(r, "c", 1), 2);
    assert_int_equal(add(r, "d", 1), 3); /* as many as there is room for */
    memset(registry_instance_entries(r), 0x5a, sizeof(struct instance_entry));
    assert_int_equal(registry_agent_with_skill(r, STR_LIT("read")), REGISTRY_NONE);
}

static void the_block_may_be_copied_and_lives_on(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    ready(r, a, 1, 2, 1);
    void *copy = malloc(registry_size(&small));
    assert_non_null(copy);
    memcpy(copy, r, registry_size(&small));
    memset((void *)r, 0x5a, registry_size(&small));
    assert_int_equal(registry_agent(copy, STR_LIT("a")), 0);
    assert_int_equal(registry_instance(copy, id_of(1)), 0);
    assert_int_equal(registry_select(copy, 0), 0);
    free(copy);
}

static void why_an_agent_gave_up_is_kept_also_when_one_registers(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 5);
    char why[REGISTRY_FAILURE_BYTES + 2];
    assert_int_equal(registry_agent_view(r, a).failure.len, 0);
    memset(why, 'x', sizeof why);
    memcpy(why + REGISTRY_FAILURE_BYTES - 1, "\xc3\xa9", 2);
    registry_agent_failed(r, a, (struct str){why, sizeof why - 1});
    assert_int_equal(registry_agent_view(r, a).failure.len, REGISTRY_FAILURE_BYTES - 1);
    registry_agent_failed(r, a, STR_LIT("exit code 2"));
    assert_true(str_is(registry_agent_view(r, a).failure, "exit code 2"));
    registry_remove(r, ready(r, a, 1, 2, 1), 5); /* an instance that a person started */
    assert_true(str_is(registry_agent_view(r, a).failure, "exit code 2"));
    registry_agent_failed(r, a, STR_LIT("exit code 3"));
    registry_agent_failed(r, a, STR_LIT(""));
    assert_int_equal(registry_agent_view(r, a).failure.len, 0);
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, registry_setup, registry_teardown)
    const struct CMUnitTest tests[] = {
        RULE(an_agent_is_found_by_its_id_and_added_once),
        RULE(the_id_of_an_agent_is_copied),
        RULE(a_full_registry_takes_no_new_agent_but_still_finds_the_old),
        RULE(an_empty_or_too_long_id_is_not_added),
        RULE(an_agent_is_absent_until_its_first_and_after_its_last_instance),
        RULE(a_skill_is_routed_to_the_first_agent_that_has_it_and_is_there),
        RULE(a_skill_that_nobody_has_is_sought_among_the_agents_only),
        RULE(the_block_may_be_copied_and_lives_on),
        RULE(why_an_agent_gave_up_is_kept_also_when_one_registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
