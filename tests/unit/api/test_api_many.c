/* plans.submit: each plan of the list is accepted or refused as if it were alone. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id) "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'}"
#define PLAN(key) "{'clientKey':'" key "','plan':{'goal':'g','steps':[" STEP("a") "]}}"

static struct house *open_house(void)
{
    struct house *h = house_open();

    (void)house_join(h, "calc", 1);
    return h;
}

/* n plans, with the keys PREFIX0, PREFIX1 and so on. */
static const char *list_of(struct house *h, uint32_t n, const char *prefix)
{
    const char *list = "";

    for (uint32_t i = 0; i < n; i++) {
        list = house_text(h, "%s%s{'clientKey':'%s%u','plan':{'goal':'g','steps':[" STEP("a") "]}}",
                          list, i > 0 ? "," : "", prefix, i);
    }
    return list;
}

static void each_plan_is_accepted_or_refused_by_itself(void **state)
{
    struct house *h = open_house();
    const char *first =
        house_submit(h, "'clientKey':'old','plan':{'goal':'g','steps':[" STEP("a") "]}");
    const char *answer;

    (void)state;
    answer = house_ok(
        h, "plans.submit",
        "'plans':[" PLAN("x") "," PLAN(
            "old") ",{'plan':{'steps':[{'stepId':'a','agentId':'no',"
                   "'task':'t'}]}},7,{},{'goal':8},{'clientKey':'old','goal':'another'}," PLAN(
                       "y") "]");
    house_says(h, answer,
               "type=plans.submit.ok; answers.#=8; answers.0.ok=true; answers.0.planId=*; "
               "answers.0.existing=-; answers.0.type=plan.submit.ok");
    house_says(h, answer, house_text(h, "answers.1.existing=true; answers.1.planId=%s", first));
    house_says(h, answer,
               "answers.2.ok=false; answers.2.error.code=INVALID; "
               "answers.2.error.details.problems.0.category=missing_agent; "
               "answers.3.error.code=INVALID; answers.3.error.message=~a map with the fields; "
               "answers.4.error.code=INVALID; answers.4.error.message=~No plan to execute; "
               "answers.5.error.message=~goal: expected a string; "
               "answers.6.error.code=CONFLICT; answers.7.ok=true; answers.7.planId=*");
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=3");
    house_close(h);
}

static void the_same_key_twice_in_one_list_is_one_plan(void **state)
{
    struct house *h = open_house();
    const char *answer = house_ok(h, "plans.submit", "'plans':[" PLAN("k") "," PLAN("k") "]");

    (void)state;
    house_says(h, answer,
               house_text(h, "answers.0.existing=-; answers.1.existing=true; answers.1.planId=%s",
                          house_get(h, answer, "answers.0.planId")));
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=1");
    house_close(h);
}

static void a_list_has_1_to_64_plans(void **state)
{
    struct house *h = open_house();

    (void)state;
    house_refused(h, "INVALID", "expected a list of 1 to 64", "plans.submit", "'plans':[]");
    house_refused(h, "INVALID", "expected a list of 1 to 64", "plans.submit", "'plans':{'a':1}");
    house_refused(h, "INVALID", "plans: ", "plans.submit", " ");
    house_refused(h, "LIMIT", "65 plans, at most 64", "plans.submit", "'plans':[%s]",
                  list_of(h, LIMIT_PLANS_AT_ONCE + 1, "a"));
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=0");
    house_says(h, house_ok(h, "plans.submit", "'plans':[%s]", list_of(h, LIMIT_PLANS_AT_ONCE, "b")),
               "answers.#=64; answers.63.ok=true");
    house_says(h, house_ok(h, "plans.submit", "'plans':[%s]", list_of(h, 64, "b")),
               "answers.#=64; answers.0.existing=true; answers.63.existing=true");
    house_close(h);
}

static void plans_over_a_limit_are_refused_and_those_before_it_are_not(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.plans_max = 2;
    h = house_open_with(&opt);
    (void)house_join(h, "calc", 1);
    house_says(h, house_ok(h, "plans.submit", "'plans':[%s]", list_of(h, 3, "k")),
               "answers.1.ok=true; answers.2.error.code=BUSY; answers.2.error.retryAfterMs=*");
    house_close(h);
}

/* poor: four requests in a minute, one plan at a time. */
static void each_plan_counts_for_the_quotas(void **state)
{
    struct house *h = open_house();
    const char *answer;

    (void)state;
    (void)house_as(h, "poor");
    answer = house_ok(h, "plans.submit", "'plans':[%s]", list_of(h, 5, "k"));
    house_says(h, answer,
               "answers.0.ok=true; answers.1.error.details.quota=plans; "
               "answers.3.error.details.quota=plans; answers.4.error.details.quota=requests; "
               "answers.4.error.code=BUSY");
    (void)house_as(h, NULL);
    house_close(h);
}

static void a_plan_belongs_to_who_sent_the_list(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    (void)house_as(h, "submitter");
    id = house_get(h, house_ok(h, "plans.submit", "'plans':[" PLAN("k") "]"), "answers.0.planId");
    (void)house_as(h, "other");
    house_refused(h, "NOT_FOUND", "No state", "plan.get", "'planId':'%s'", id);
    (void)house_as(h, "observer");
    house_refused(h, "UNAUTHORIZED", "", "plans.submit", "'plans':[" PLAN("k") "]");
    (void)house_as(h, NULL);
    house_close(h);
}

/* 64 plans of 60 steps, without clientKey. */
static const char *long_list(struct house *h)
{
    const char *steps = STEP("s");
    const char *list = "";

    for (int i = 0; i < 60; i++) {
        steps =
            house_text(h, "%s,{'stepId':'s%d','agentId':'calc','skill':'do','task':'t'}", steps, i);
    }
    for (int i = 0; i < LIMIT_PLANS_AT_ONCE; i++) {
        list = house_text(h, "%s%s{'plan':{'steps':[%s]}}", list, i > 0 ? "," : "", steps);
    }
    return list;
}

static uint64_t send(struct house *h, const char *type, const char *more)
{
    const char *request =
        house_text(h, "{'v':1,'type':'%s','id':'q','token':'" HOUSE_TOKEN "'%s}", type, more);

    fake_link_request(h->link, false, ++h->requests, request, strlen(request));
    return h->requests;
}

/* NULL: not yet. */
static const char *answer_to(struct house *h, uint64_t request)
{
    const struct buf *b = fake_link_answer_to(h->link, request);

    return b != NULL ? house_text(h, "%.*s", (int)b->len, (const char *)b->at) : NULL;
}

/* They take more than a turn has. */
static void a_long_list_goes_on_over_cycles_and_others_are_served_between(void **state)
{
    struct house *h = open_house();
    uint32_t cycles = 0;
    uint64_t many;
    uint64_t info;

    (void)state;
    many = send(h, "plans.submit", house_text(h, ",'plans':[%s]", long_list(h)));
    house_cycle_once(h);
    assert_null(answer_to(h, many));
    info = send(h, "supervisor.info", "");
    house_cycle_once(h);
    assert_non_null(answer_to(h, info));
    for (; answer_to(h, many) == NULL && cycles < 1000; cycles++) {
        house_cycle_once(h);
    }
    assert_non_null(answer_to(h, many));
    assert_true(cycles > 0);
    house_says(h, house_ok(h, "plan.list", "'limit':100"), "plans.#=64");
    house_close(h);
}

/* A request that names its type where nobody looks for it has no turn of its own. */
static void a_second_list_out_of_turn_is_busy(void **state)
{
    struct house *h = open_house();
    uint64_t many;
    uint64_t second;

    (void)state;
    many = send(h, "plans.submit", house_text(h, ",'plans':[%s]", long_list(h)));
    house_cycle_once(h);
    second = send(h, "plans.submi\\u0074", ",'plans':[" PLAN("k") "]");
    house_cycle_once(h);
    assert_null(answer_to(h, many));
    house_says(h, answer_to(h, second),
               "error.code=BUSY; error.message=~names its type within its first");
    house_cycle(h);
    house_close(h);
}

/* Remarks of 64 plans are more than the answers may have. */
static void what_does_not_fit_into_the_answers_is_left_out(void **state)
{
    struct house *h = open_house();
    const char *steps = "";
    const char *list = "";
    const char *answer;
    uint32_t with = 0;

    (void)state;
    for (int i = 0; i < 150; i++) {
        steps = house_text(h, "%s%s{'stepId':'s%d','agentId':'nobody-%d','task':'t'}", steps,
                           i > 0 ? "," : "", i, i);
    }
    for (int i = 0; i < LIMIT_PLANS_AT_ONCE; i++) {
        list = house_text(h, "%s%s{'plan':{'steps':[%s]}}", list, i > 0 ? "," : "", steps);
    }
    answer = house_ask(h, "plans.submit", "'plans':[%s]", list);
    for (int i = 0; answer == NULL && i < 1000; i++) {
        house_cycle_once(h);
        answer = house_late_answer(h);
    }
    assert_non_null(answer);
    for (int i = 0; i < LIMIT_PLANS_AT_ONCE; i++) {
        house_is(h, answer, house_text(h, "answers.%d.error.code", i), "INVALID");
        with += house_get(h, answer, house_text(h, "answers.%d.error.details", i)) != NULL;
    }
    assert_in_range(with, 2, LIMIT_PLANS_AT_ONCE - 1);
    house_close(h);
}

/* The writes of the journal, each in turn: what was answered is there, and asking again for all
 * of it makes none twice. */
static void a_failure_at_any_write_leaves_each_plan_once(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 100; n++) {
        struct house *h = open_house();
        const char *answer;
        bool failed;
        house_fail_write(h, n);
        answer = house_ask(h, "plans.submit", "'plans':[%s]", list_of(h, 3, "k"));
        failed = h->dead;
        house_fail_write(h, 0);
        if (failed) {
            house_restart(h);
            (void)house_join(h, "calc", 1);
            assert_null(answer);
        }
        house_says(h, house_ok(h, "plans.submit", "'plans':[%s]", list_of(h, 3, "k")),
                   "answers.0.ok=true; answers.1.ok=true; answers.2.ok=true");
        house_says(h, house_ok(h, "plan.list", " "), "plans.#=3");
        house_close(h);
        if (!failed) {
            assert_in_range(n, 4, 99);
            return;
        }
    }
    fail_msg("a write that never was");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_plan_is_accepted_or_refused_by_itself),
        cmocka_unit_test(the_same_key_twice_in_one_list_is_one_plan),
        cmocka_unit_test(a_list_has_1_to_64_plans),
        cmocka_unit_test(plans_over_a_limit_are_refused_and_those_before_it_are_not),
        cmocka_unit_test(each_plan_counts_for_the_quotas),
        cmocka_unit_test(a_plan_belongs_to_who_sent_the_list),
        cmocka_unit_test(a_long_list_goes_on_over_cycles_and_others_are_served_between),
        cmocka_unit_test(a_second_list_out_of_turn_is_busy),
        cmocka_unit_test(what_does_not_fit_into_the_answers_is_left_out),
        cmocka_unit_test(a_failure_at_any_write_leaves_each_plan_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
