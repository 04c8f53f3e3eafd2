/* Agents that are forgotten, and what is kept by index. */
#include <stdio.h>

#include "fixture.h"

static struct str name_of(char *name, size_t cap, uint32_t n)
{
    (void)snprintf(name, cap, "agent-%u", n);
    return str_from(name);
}

static void a_forgotten_agent_is_not_found_and_its_index_is_free(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t b = add(r, "b", 1);
    const uint32_t generation = registry_agent_generation(r, a);
    registry_agent_forget(r, a);
    assert_int_equal(registry_agent(r, STR_LIT("a")), REGISTRY_NONE);
    assert_int_equal(registry_agent(r, STR_LIT("b")), b);
    assert_int_equal(registry_agents(r), 2);
    assert_int_equal(registry_agents_known(r), 1);
    assert_int_equal(registry_agent_view(r, a).id.len, 0);
    assert_false(registry_agent_view(r, a).expected);
    assert_int_equal(add(r, "c", 2), a);
    assert_int_equal(registry_agent_generation(r, a), generation + 1);
    assert_int_equal(registry_agent(r, STR_LIT("c")), a);
    assert_true(str_is(registry_agent_view(r, a).id, "c"));
}

static void nothing_of_a_forgotten_agent_is_left_to_the_next_one(void **state)
{
    struct registry *r = *state;
    const struct msg_card card = {.skills_n = 0};
    const uint32_t a = add(r, "a", 1);
    registry_agent_card(r, a, &card);
    registry_agent_failed(r, a, STR_LIT("exit code 2"));
    registry_agent_enable(r, a, false);
    (void)registry_agent_configure(r, STR_LIT("a"), 2);
    registry_remove(r, ready(r, a, 1, 2, 1), 5);
    registry_agent_forget(r, a);
    assert_int_equal(add(r, "b", 9), a);
    const struct agent_view view = registry_agent_view(r, a);
    assert_null(view.card);
    assert_int_equal(view.failure.len, 0);
    assert_true(view.enabled);
    assert_false(view.configured);
    assert_int_equal(view.absent_since, 9);
    assert_int_equal(registry_agent_with_skill(r, STR_LIT("x")), REGISTRY_NONE);
}

static void late_results_of_a_forgotten_agent_count_for_nobody(void **state)
{
    static const struct registry_limits lim = {.agents = 4,
                                               .instances = 4,
                                               .lease_ms = 300,
                                               .suspect_ms = 200,
                                               .breaker_failures = 1,
                                               .breaker_cooldown_ms = 100,
                                               .breaker_cooldown_max_ms = 100,
                                               .breaker_probe_ms = 10};
    void *mem = malloc(registry_size(&lim));
    (void)state;
    assert_non_null(mem);
    struct registry *r = registry_init(mem, &lim);
    const uint32_t a = add(r, "a", 1);
    const uint32_t slot = ready(r, a, 1, 1, 1);
    const uint64_t epoch = view_of(r, slot).epoch;
    (void)registry_breaker_result(r, slot, epoch, CLASS_TIMEOUT, 2);
    registry_remove(r, slot, 3);
    (void)registry_breaker_result(r, slot, epoch, CLASS_TIMEOUT, 4); /* the agent's breaker opens */
    assert_int_equal(registry_agent_view(r, a).breaker.state, BREAKER_OPEN);
    registry_agent_forget(r, a);
    assert_true(registry_deadline(r) == MSEC_NEVER);
    assert_int_equal(add(r, "b", 5), a);
    (void)registry_breaker_result(r, slot, epoch, CLASS_TIMEOUT, 6);
    assert_int_equal(registry_agent_view(r, a).breaker.failures, 0);
    free(mem);
}

static void an_agent_is_expected_while_it_is_there_or_configured_and_not_given_up(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 1);
    const uint32_t b = add(r, "b", 1);
    assert_int_equal(registry_agent_expected(r, 0), REGISTRY_NONE);
    assert_int_equal(registry_agent_configure(r, STR_LIT("b"), 2), b);
    assert_int_equal(registry_agent_expected(r, 0), b);
    assert_int_equal(registry_agent_expected(r, b + 1), REGISTRY_NONE);
    registry_agent_failed(r, b, STR_LIT("exit code 2"));
    assert_int_equal(registry_agent_expected(r, 0), REGISTRY_NONE);
    const uint32_t slot = ready(r, b, 2, 1, 1);
    assert_int_equal(registry_agent_expected(r, 0), b);
    registry_remove(r, slot, 2);
    assert_int_equal(registry_agent_expected(r, 0), REGISTRY_NONE);
    ready(r, a, 1, 1, 1);
    assert_int_equal(registry_agent_expected(r, 0), a);
}

static void an_absence_is_noted_when_the_last_instance_leaves(void **state)
{
    struct registry *r = *state;
    assert_true(registry_absence(r) == MSEC_NEVER);
    const uint32_t a = add(r, "a", 5);
    assert_int_equal(registry_absence(r), 5);
    registry_absence_set(r, MSEC_NEVER);
    const uint32_t first = ready(r, a, 1, 1, 10);
    const uint32_t second = ready(r, a, 2, 1, 11);
    registry_remove(r, first, 20);
    assert_true(registry_absence(r) == MSEC_NEVER);
    registry_remove(r, second, 30);
    assert_int_equal(registry_absence(r), 30);
    registry_absence_set(r, 25);
    registry_remove(r, ready(r, a, 3, 1, 40), 50);
    assert_int_equal(registry_absence(r), 25); /* the earliest */
}

/* A model of 3,000 names in a registry of 1,024, against the ids that are found. */
static void ids_are_found_whatever_was_forgotten_before(void **state)
{
    enum { NAMES = 3000, ROUNDS = 20000, MOST = 1024 };
    static const struct registry_limits lim = {
        .agents = MOST, .instances = 1, .lease_ms = 300, .suspect_ms = 200};
    static bool known[NAMES];
    void *mem = malloc(registry_size(&lim));
    uint32_t seed = 1;
    uint32_t n_known = 0;
    char name[32];
    (void)state;
    assert_non_null(mem);
    struct registry *r = registry_init(mem, &lim);
    memset(known, 0, sizeof known);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t n = (seed >> 8) % NAMES;
        const struct str id = name_of(name, sizeof name, n);
        const uint32_t at = registry_agent(r, id);
        assert_int_equal(at != REGISTRY_NONE, known[n]);
        if (known[n]) {
            registry_agent_forget(r, at);
            known[n] = false;
            n_known--;
        } else {
            const bool fits = registry_agent_add(r, id, i) != REGISTRY_NONE;
            assert_int_equal(fits, n_known < MOST);
            known[n] = fits;
            n_known += fits ? 1 : 0;
        }
        assert_int_equal(registry_agents_known(r), n_known);
    }
    assert_int_equal(registry_agents(r), MOST); /* it was full, and went on */
    free(mem);
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, registry_setup, registry_teardown)
    const struct CMUnitTest tests[] = {
        RULE(a_forgotten_agent_is_not_found_and_its_index_is_free),
        RULE(nothing_of_a_forgotten_agent_is_left_to_the_next_one),
        RULE(late_results_of_a_forgotten_agent_count_for_nobody),
        RULE(an_agent_is_expected_while_it_is_there_or_configured_and_not_given_up),
        RULE(an_absence_is_noted_when_the_last_instance_leaves),
        RULE(ids_are_found_whatever_was_forgotten_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
