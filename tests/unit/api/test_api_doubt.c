/* plan.retry and plan.fork of steps that may have been done although they have not completed. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define PAY STEP("pay", ",'effects':'unsafe'")
#define CHAIN "'plan':{'steps':[" STEP("a", "") "," PAY "," STEP("c", "") "]}"
#define BESIDE                                                                                     \
    "'plan':{'steps':[" PAY "," STEP("b", ",'dependsOn':[]") "],'policy':{'maxRetries':0}}"
#define GRACE 60000

/* A plan that was cancelled while its payment was under way, and nobody answered. */
static const char *cancelled(struct house *h, const char *plan)
{
    const char *id = house_submit(h, "%s", plan);

    if (house_work(h, "calc", "a") != NULL) {
        house_done(h, "calc", "'result':{'text':'one'}");
    }
    assert_non_null(house_work(h, "calc", "pay"));
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_wait(h, GRACE);
    return id;
}

static const char *again(struct house *h, const char *kind, const char *fields)
{
    return house_get(h, house_ok(h, kind, "%s", fields), "planId");
}

static void asks_about_pay(struct house *h, const char *id)
{
    house_says(h, house_ok(h, "review.list", "'planId':'%s'", id),
               "reviews.#=1; reviews.0.kind=unknown_outcome; reviews.0.stepId=pay; "
               "reviews.0.effects=unsafe; reviews.0.prompt=~got no answer to it that counts. The "
               "step may have been done");
    assert_null(house_work(h, "calc", "pay"));
}

static struct house *house_with_calc(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 4);
    return h;
}

/* The old work is forgotten: what is at work afterwards is new. */
static void new_process(struct house *h)
{
    house_restart(h);
    house_join(h, "calc", 4);
}

static void a_retry_asks_before_what_may_have_been_done(void **state)
{
    struct house *h = house_with_calc();
    const char *id = cancelled(h, CHAIN);
    const char *next;

    (void)state;
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=cancelled; steps.0.outcomeUnknown=-; steps.1.status=cancelled; "
               "steps.1.outcomeUnknown=true; steps.2.outcomeUnknown=-");
    new_process(h);
    house_says(h, house_ok(h, "plan.retry", "'planId':'%s','clientKey':'k'", id), "reused=1");
    next = house_get(h, house_ok(h, "plan.retry", "'planId':'%s','clientKey':'k'", id), "planId");
    asks_about_pay(h, next);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", next),
               "status=waiting; steps.1.status=waiting; steps.1.outcomeUnknown=true");
    (void)house_ok(h, "review.decide", "'reviewId':'%s/pay/r1','decision':'approve'", next);
    assert_non_null(house_work(h, "calc", "pay"));
    house_is(h, house_ok(h, "plan.get", "'planId':'%s'", next), "steps.1.outcomeUnknown", NULL);
    house_close(h);
}

static void what_a_person_skips_goes_on_without_it(void **state)
{
    struct house *h = house_with_calc();
    const char *id = cancelled(h, CHAIN);
    const char *next;

    (void)state;
    new_process(h);
    next = again(h, "plan.retry", house_text(h, "'planId':'%s'", id));
    (void)house_ok(h, "review.decide", "'reviewId':'%s/pay/r1','decision':'skip'", next);
    assert_null(house_work(h, "calc", "pay"));
    house_done(h, "calc", "'result':{'text':'three'}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", next),
               "status=completed; steps.1.status=skipped; steps.1.outcomeUnknown=true");
    house_close(h);
}

static void a_retry_of_a_retry_that_was_cancelled_asks_again(void **state)
{
    struct house *h = house_with_calc();
    const char *id = cancelled(h, CHAIN);

    (void)state;
    new_process(h);
    for (int i = 0; i < 3; i++) {
        id = again(h, "plan.retry", house_text(h, "'planId':'%s'", id));
        asks_about_pay(h, id);
        (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    }
    house_close(h);
}

static void who_names_the_step_is_not_asked(void **state)
{
    struct house *h = house_with_calc();
    const char *id = cancelled(h, CHAIN);
    const char *next;

    (void)state;
    new_process(h);
    next = again(h, "plan.retry", house_text(h, "'planId':'%s','fromStep':'pay'", id));
    house_is(h, house_work(h, "calc", "pay"), "planId", next);
    house_close(h);
}

static void the_failure_of_another_step_does_not_forget_it(void **state)
{
    struct house *h = house_with_calc();
    const char *id = house_submit(h, BESIDE);

    (void)state;
    assert_non_null(house_work(h, "calc", "pay"));
    house_answer(h, "calc", "b", "'outcome':'failed','failure':{'code':'X','message':'no'}");
    house_wait(h, GRACE);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=failed; steps.0.status=cancelled; steps.0.outcomeUnknown=true; "
               "steps.1.status=failed; steps.1.outcomeUnknown=-");
    new_process(h);
    asks_about_pay(h, again(h, "plan.retry", house_text(h, "'planId':'%s'", id)));
    house_close(h);
}

static void a_fork_of_an_open_plan_asks_about_what_is_under_way(void **state)
{
    struct house *h = house_with_calc();
    const char *id = house_submit(h, BESIDE);
    const char *next;

    (void)state;
    assert_non_null(house_work(h, "calc", "pay"));
    next = again(h, "plan.fork", house_text(h, "'planId':'%s','fromStep':'b'", id));
    house_says(h, house_ok(h, "review.list", "'planId':'%s'", next),
               "reviews.#=1; reviews.0.kind=unknown_outcome; reviews.0.stepId=pay");
    house_is(h, house_work(h, "calc", "pay"), "planId", id);
    house_close(h);
}

static void what_completed_or_failed_by_its_agents_word_is_not_asked_about(void **state)
{
    struct house *h = house_with_calc();
    const char *id = house_submit(h, BESIDE);
    const char *next;

    (void)state;
    house_failed(h, "calc", "PERMISSION_DENIED", false); /* the payment is the oldest work */
    house_wait(h, GRACE);
    house_is(h, house_ok(h, "plan.get", "'planId':'%s'", id), "steps.0.outcomeUnknown", NULL);
    new_process(h);
    next = again(h, "plan.retry", house_text(h, "'planId':'%s'", id));
    house_is(h, house_work(h, "calc", "pay"), "planId", next);
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_retry_asks_before_what_may_have_been_done),
        cmocka_unit_test(what_a_person_skips_goes_on_without_it),
        cmocka_unit_test(a_retry_of_a_retry_that_was_cancelled_asks_again),
        cmocka_unit_test(who_names_the_step_is_not_asked),
        cmocka_unit_test(the_failure_of_another_step_does_not_forget_it),
        cmocka_unit_test(a_fork_of_an_open_plan_asks_about_what_is_under_way),
        cmocka_unit_test(what_completed_or_failed_by_its_agents_word_is_not_asked_about),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
