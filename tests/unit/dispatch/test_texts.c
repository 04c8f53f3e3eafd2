/* Texts of who writes a plan's answer, as they come, and what a gate is told of its step. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ALL                                                                                        \
    "'skills':[{'id':'do','description':'D'},{'id':'gate','description':'G'},"                     \
    "{'id':'synthesize','description':'Y'}]"

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

/* boss writes the answer of a plan whose step is done; returns the plan's id. */
static const char *open_with_writer(struct house *h, struct house_agent **ret_boss)
{
    const char *id;

    house_join(h, "calc", 1);
    *ret_boss = house_join_as(h, "boss", 1, ALL, "");
    id = house_submit(h, "'plan':{'goal':'add','steps':[" STEP(
                             "a", "") "]},"
                                      "'policy':{'synthesis':{'strategy':'agent','agentId':'boss'},"
                                      "'maxRetries':1,'backoff':{'initialMs':0}}");
    house_done(h, "calc", "'result':{'text':'five'}");
    assert_non_null(house_work(h, "boss", NULL));
    return id;
}

static void says(struct house *h, const struct house_agent *boss, int attempt, const char *text,
                 const char *more)
{
    const char *key = house_get(h, house_work(h, "boss", NULL), "key");
    static int n;

    (void)house_ok(h, "step.progress",
                   "'instanceId':'%s','epoch':%llu,'key':'%s','attempt':%d,'n':%d,'text':'%s'%s",
                   boss->instance, (unsigned long long)boss->epoch, key, attempt, ++n, text, more);
}

static void the_answer_is_passed_on_as_it_is_written(void **state)
{
    struct house *h = house_open();
    struct house_agent *boss;
    const char *id = open_with_writer(h, &boss);

    (void)state;
    says(h, boss, 1, "Five", "");
    house_says(h, house_event(h, "text_delta"), "planId=*; text=Five; index=0");
    house_is(h, house_event(h, "text_delta"), "planId", id);
    says(h, boss, 1, " and", ",'data':{'anew':false}");
    house_says(h, house_event(h, "text_delta"), "text= and; index=1");
    says(h, boss, 1, " six", ",'data':{'anew':1}"); /* no word about it */
    house_says(h, house_event(h, "text_delta"), "text= six; index=2");
    says(h, boss, 1, "Six", ",'data':{'anew':true}"); /* what came before is void */
    house_says(h, house_event(h, "text_delta"), "text=Six; index=0");
    says(h, boss, 1, "!", ",'data':[true]");
    house_says(h, house_event(h, "text_delta"), "text=!; index=1");
    says(h, boss, 1, "", ",'percent':50"); /* no text */
    assert_int_equal(house_seen(h, "text_delta"), 5);
    house_done(h, "boss", "'result':{'text':'Six!'}");
    house_says(h, view(h, id), "status=completed; summary=Six!");
    house_close(h);
}

static void texts_of_another_attempt_begin_anew(void **state)
{
    struct house *h = house_open();
    struct house_agent *boss;
    const char *id = open_with_writer(h, &boss);
    const char *work;

    (void)state;
    says(h, boss, 1, "Fi", "");
    says(h, boss, 1, "ve", "");
    house_says(h, house_event(h, "text_delta"), "text=ve; index=1");
    house_failed(h, "boss", "SERVICE_UNAVAILABLE", true);
    house_wait(h, 5000);
    work = house_work(h, "boss", NULL);
    house_is(h, work, "attempt", "2");
    says(h, boss, 2, "Six", "");
    house_says(h, house_event(h, "text_delta"), "text=Six; index=0");
    says(h, boss, 2, ".", "");
    house_says(h, house_event(h, "text_delta"), "text=.; index=1");
    house_done(h, "boss", "'result':{'text':'Six.'}");
    house_says(h, view(h, id), "status=completed; summary=Six.");
    house_close(h);
}

static void texts_of_a_step_are_no_answer_of_the_plan(void **state)
{
    struct house *h = house_open();
    struct house_agent *calc = house_join(h, "calc", 1);

    (void)state;
    (void)house_submit(h, "'plan':{'goal':'add','steps':[" STEP("a", "") "]}");
    (void)house_ok(h, "step.progress",
                   "'instanceId':'%s','epoch':%llu,'key':'%s','attempt':1,'n':1,'text':'half'",
                   calc->instance, (unsigned long long)calc->epoch,
                   house_get(h, house_work(h, "calc", NULL), "key"));
    assert_int_equal(house_seen(h, "plan_step_progress"), 1);
    assert_int_equal(house_seen(h, "text_delta"), 0);
    house_close(h);
}

static void a_gate_is_told_the_parameters_of_its_step(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_join_as(h, "boss", 1, ALL, "");
    for (int i = 0; i < 2; i++) {
        (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") ",%s]}",
                           i == 0 ? STEP("b", ",'gate':'boss','parameters':{'n':5}")
                                  : STEP("b", ",'gate':'boss'"));
        house_done(h, "calc", "'result':{'text':'five'}");
        house_says(h, house_work(h, "boss", NULL),
                   house_text(h,
                              "purpose=gate; parameters.stepId=b; parameters.agentId=calc; "
                              "parameters.task=do b; parameters.parameters%s",
                              i == 0 ? "={\"n\":5}" : "=-"));
        house_done(h, "boss", "'result':{'data':{'passed':true}}");
        house_done(h, "calc", "'result':{'text':'six'}");
    }
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_is_passed_on_as_it_is_written),
        cmocka_unit_test(texts_of_another_attempt_begin_anew),
        cmocka_unit_test(texts_of_a_step_are_no_answer_of_the_plan),
        cmocka_unit_test(a_gate_is_told_the_parameters_of_its_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
