/* Keys and rates: who counts for which rule, what a restart remembers, what another configuration
 * changes, and how many keys there may be. */
#include <stdio.h>
#include <string.h>

#include "tests/support/house/house.h"

enum { WINDOW_MS = 60000 };

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "','dependsOn':[]" more "}"

static struct house *open_with(const struct engine_rule *rules, uint32_t n)
{
    struct engine_options opt = house_options();
    struct house *h;

    opt.rules = rules;
    opt.n_rules = n;
    h = house_open_with(&opt);
    house_join(h, "calc", 8);
    return h;
}

/* How many pieces of work calc has: they are answered. */
static uint32_t work(struct house *h)
{
    uint32_t n = 0;

    house_wait(h, 1);
    while (house_work(h, "calc", NULL) != NULL) {
        house_done(h, "calc", "'result':{'text':'ok'}");
        n++;
        if (n > 100) {
            break;
        }
    }
    house_wait(h, 1);
    return n;
}

static const char *three_steps(struct house *h)
{
    return house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", "") "," STEP("c", "") "]}");
}

static const char *keyed(struct house *h, const char *key)
{
    return house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]},'policy':{'concurrencyKey':'%s'}", key);
}

/* ---- rates ---- */

static void an_agent_is_started_as_often_as_its_rule_says_and_its_rule_alone(void **state)
{
    static const struct engine_rule rules[] = {
        {.name = "calc", .of_key = true, .max = 1}, /* a key of that name is another thing */
        {.name = "other", .n = 1, .per_ms = WINDOW_MS},
        {.name = "calc", .n = 2, .per_ms = WINDOW_MS}};
    struct house *h = open_with(rules, 3);
    const char *id = three_steps(h);

    (void)state;
    assert_int_equal(work(h), 2);
    house_wait(h, WINDOW_MS - 10);
    assert_int_equal(work(h), 0);
    house_wait(h, 20);
    assert_int_equal(work(h), 1);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
    house_close(h);
}

static void a_restart_remembers_the_starts_of_an_agent(void **state)
{
    static const struct engine_rule rules[] = {{.name = "calc", .n = 2, .per_ms = WINDOW_MS}};
    struct house *h = open_with(rules, 1);

    (void)state;
    (void)three_steps(h);
    assert_int_equal(work(h), 2);
    house_restart(h);
    house_join(h, "calc", 8);
    assert_int_equal(work(h), 0);
    house_wait(h, WINDOW_MS / 2);
    assert_int_equal(work(h), 0);
    house_wait(h, WINDOW_MS / 2 + 1000);
    assert_int_equal(work(h), 1);
    house_close(h);
}

static void plans_of_a_key_start_as_often_as_its_rule_says_also_after_a_restart(void **state)
{
    static const struct engine_rule rules[] = {
        {.name = "k", .of_key = true, .n = 2, .per_ms = WINDOW_MS}};
    struct house *h = open_with(rules, 1);

    (void)state;
    (void)keyed(h, "k");
    (void)keyed(h, "k");
    (void)keyed(h, "k");
    (void)keyed(h, "free"); /* without a rule one at a time, and no rate */
    assert_int_equal(work(h), 3);
    house_restart(h);
    house_join(h, "calc", 8);
    assert_int_equal(work(h), 0);
    house_wait(h, WINDOW_MS - 1000);
    assert_int_equal(work(h), 0);
    house_wait(h, 3000);
    assert_int_equal(work(h), 1);
    house_close(h);
}

static void steps_of_a_key_start_as_often_as_its_rule_says_also_after_a_restart(void **state)
{
    static const struct engine_rule rules[] = {
        {.name = "k", .of_key = true, .n = 2, .per_ms = WINDOW_MS}};
    struct house *h = open_with(rules, 1);

    (void)state;
    (void)house_submit(
        h,
        "'plan':{'goal':'g','steps':[" STEP("a", ",'concurrencyKey':'k'") "," STEP(
            "b", ",'concurrencyKey':'k'") "," STEP("c", ",'concurrencyKey':'k'") "," STEP("d",
                                                                                          "") "]}");
    assert_int_equal(work(h), 3); /* two of the key, and that of none */
    (void)keyed(h, "k");          /* plans of a key are not its steps */
    assert_int_equal(work(h), 1);
    house_restart(h);
    house_join(h, "calc", 8);
    assert_int_equal(work(h), 0);
    house_wait(h, WINDOW_MS + 2000);
    assert_int_equal(work(h), 1);
    house_close(h);
}

/* A ring of two starts goes on where it was: the older one is forgotten first. */
static void after_a_restart_the_oldest_start_is_forgotten_first(void **state)
{
    static const struct engine_rule rules[] = {{.name = "calc", .n = 2, .per_ms = WINDOW_MS}};
    struct house *h = open_with(rules, 1);

    (void)state;
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}");
    assert_int_equal(work(h), 1);
    house_wait(h, WINDOW_MS / 2);
    (void)three_steps(h);
    assert_int_equal(work(h), 1);
    house_restart(h);
    house_join(h, "calc", 8);
    house_wait(h, WINDOW_MS / 2 + 1000);
    assert_int_equal(work(h), 1);
    house_wait(h, WINDOW_MS / 4);
    assert_int_equal(work(h), 0);
    house_restart(h);
    house_join(h, "calc", 8);
    house_wait(h, WINDOW_MS / 4);
    assert_int_equal(work(h), 1);
    house_close(h);
}

/* ---- places ---- */

static void a_key_has_the_places_of_its_rule_and_one_without_a_rule(void **state)
{
    static const struct engine_rule rules[] = {{.name = "two", .of_key = true, .max = 2},
                                               {.name = "all", .of_key = true, .max = 0}};
    static const struct {
        const char *key;
        uint32_t first;
    } cases[] = {{"two", 2}, {"all", 4}, {"none", 1}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct house *h = open_with(rules, 2);
        const char *ids[4];
        uint32_t n = 0;
        for (int k = 0; k < 4; k++) {
            ids[k] = keyed(h, cases[i].key);
        }
        house_wait(h, 1);
        for (int k = 0; k < 4; k++) {
            const char *view = house_ok(h, "plan.get", "'planId':'%s'", ids[k]);
            n += strcmp(house_get(h, view, "steps.0.status"), "in_progress") == 0;
        }
        assert_int_equal(n, cases[i].first);
        house_close(h);
    }
}

/* A child plan of the same key would wait for the plan that waits for it. */
static void a_child_plan_with_the_key_of_a_plan_around_it_needs_no_place(void **state)
{
    struct house *h = open_with(NULL, 0);
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'p','task':'in','plan':{'document':{'steps':["
           "{'stepId':'q','task':'in','plan':{'document':{'policy':{'concurrencyKey':'k'},'steps':"
           "[" STEP("x", "") "]}}}]}}}]},'policy':{'concurrencyKey':'k'}");

    (void)state;
    assert_int_equal(work(h), 1);
    house_wait(h, 10);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
    house_close(h);
}

static void another_key_inside_has_places_of_its_own(void **state)
{
    struct house *h = open_with(NULL, 0);
    const char *id;

    (void)state;
    (void)keyed(h, "inner");
    id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'p','task':'in','plan':{'document':{'policy':{"
           "'concurrencyKey':'inner'},'steps':[" STEP(
               "x", "") "]}}}]},'policy':{'concurrencyKey':'outer'}");
    house_wait(h, 1);
    house_is(h, house_work(h, "calc", NULL), "task", "do a");
    assert_null(house_work(h, "calc", "x"));
    assert_int_equal(work(h), 2);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
    house_close(h);
}

/* ---- other rules ---- */

static void retune(struct house *h, const struct engine_rule *rules, uint32_t n)
{
    const struct engine_tuning to = {.heartbeat_ms = HOUSE_BEAT_MS,
                                     .lease_ms = HOUSE_LEASE_MS,
                                     .agent_wait_ms = 1000,
                                     .cancel_grace_ms = 1000,
                                     .rules = rules,
                                     .n_rules = n};
    struct bt_error err;

    assert_int_equal(engine_retune(h->engine, &to, &err), BT_OK);
}

static void other_rules_hold_at_once_and_what_was_started_counts_on(void **state)
{
    static const struct engine_rule two[] = {{.name = "calc", .n = 2, .per_ms = WINDOW_MS}};
    static const struct engine_rule four[] = {{.name = "calc", .n = 4, .per_ms = WINDOW_MS}};
    struct house *h = open_with(two, 1);

    (void)state;
    (void)three_steps(h);
    (void)three_steps(h);
    assert_int_equal(work(h), 2);
    retune(h, four, 1);
    house_wait(h, 2000);
    assert_int_equal(work(h), 2); /* four in all */
    retune(h, NULL, 0);
    house_wait(h, 2000);
    assert_int_equal(work(h), 2); /* no rule any more */
    house_close(h);
}

static void a_key_in_use_gets_the_places_of_its_new_rule(void **state)
{
    static const struct engine_rule two[] = {{.name = "k", .of_key = true, .max = 2}};
    struct house *h = open_with(NULL, 0);

    (void)state;
    (void)keyed(h, "k");
    (void)house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("b", "") "]},'policy':{'concurrencyKey':'k'}");
    house_wait(h, 1);
    assert_non_null(house_work(h, "calc", "a"));
    assert_null(house_work(h, "calc", "b"));
    retune(h, two, 1);
    house_wait(h, 2000);
    (void)house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("c", "") "]},'policy':{'concurrencyKey':'k'}");
    house_wait(h, 2000);
    assert_non_null(house_work(h, "calc", "a"));
    assert_non_null(house_work(h, "calc", "b"));
    assert_null(house_work(h, "calc", "c"));
    house_close(h);
}

/* ---- how many ---- */

/* As many keys as may be in use, and one more; a plan that ends gives its key back. */
static void so_many_keys_are_in_use_at_once(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    const char *first = NULL;
    char key[32];

    (void)state;
    opt.plans_max = LIMIT_KEYS + 8;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    for (int i = 0; i < LIMIT_KEYS; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        first = i == 0 ? keyed(h, key) : (keyed(h, key), first);
    }
    house_refused(
        h, "BUSY", "1024 concurrencyKeys are in use", "plan.submit",
        "'plan':{'goal':'g','steps':[" STEP("a", "") "]},'policy':{'concurrencyKey':'one more'}");
    (void)keyed(h, "key-7"); /* one that is in use */
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", first);
    house_wait(h, 3000);
    (void)keyed(h, "one more");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_is_started_as_often_as_its_rule_says_and_its_rule_alone),
        cmocka_unit_test(a_restart_remembers_the_starts_of_an_agent),
        cmocka_unit_test(plans_of_a_key_start_as_often_as_its_rule_says_also_after_a_restart),
        cmocka_unit_test(steps_of_a_key_start_as_often_as_its_rule_says_also_after_a_restart),
        cmocka_unit_test(after_a_restart_the_oldest_start_is_forgotten_first),
        cmocka_unit_test(a_key_has_the_places_of_its_rule_and_one_without_a_rule),
        cmocka_unit_test(a_child_plan_with_the_key_of_a_plan_around_it_needs_no_place),
        cmocka_unit_test(another_key_inside_has_places_of_its_own),
        cmocka_unit_test(other_rules_hold_at_once_and_what_was_started_counts_on),
        cmocka_unit_test(a_key_in_use_gets_the_places_of_its_new_rule),
        cmocka_unit_test(so_many_keys_are_in_use_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
