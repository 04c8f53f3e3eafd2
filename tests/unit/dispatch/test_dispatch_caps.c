/* What agents are told has caps: at N all of it, at N + 1 what is left out is counted. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/house/house.h"

enum { STEPS_TOLD = 1000, REPLANS_TOLD = 63, LINES_TOLD = 1000, PARAMETERS_MAX = 256 };

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ALL                                                                                        \
    "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'},"                     \
    "{'id':'synthesize','description':'Y'}]"
#define SYNTHESIS "'policy':{'synthesis':{'strategy':'agent','agentId':'boss'}}"

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static struct house *open_with_boss(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 2);
    house_join_as(h, "boss", 2, ALL, "");
    return h;
}

/* `a`, and n - 1 steps whose condition does not hold when it is completed. */
static const char *submit_conditions(struct house *h, uint32_t n, const char *more)
{
    struct buf steps;
    const char *id;

    buf_init(&steps, 4 * 1024 * 1024);
    for (uint32_t i = 1; i < n; i++) {
        buf_printf(&steps,
                   ",{'stepId':'b%u','agentId':'calc','skill':'do','task':'t','dependsOn':['a'],"
                   "'when':{'results.a':'x'}}",
                   i);
    }
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "%s]}%s", buf_cstr(&steps),
                      more);
    buf_done(&steps);
    return id;
}

static void a_synthesizer_is_told_of_a_thousand_steps_and_how_many_there_are(void **state)
{
    (void)state;
    for (uint32_t n = STEPS_TOLD; n <= STEPS_TOLD + 1; n++) {
        struct house *h = open_with_boss();
        (void)submit_conditions(h, n, "," SYNTHESIS);
        house_done(h, "calc", "'result':{'text':'1'}");
        house_wait(h, 1);
        house_says(h, house_work(h, "boss", NULL),
                   n == STEPS_TOLD ? "parameters.steps.#=1000; parameters.stepsTotal=-"
                                   : "parameters.steps.#=1000; parameters.stepsTotal=1001");
        house_close(h);
    }
}

static void a_synthesizer_is_told_of_all_agents_of_the_plan(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    struct buf steps;
    char agent[16];

    (void)state;
    opt.agents_max = opt.instances_max = LIMIT_PLAN_AGENTS + 1;
    h = house_open_with(&opt);
    buf_init(&steps, 1024 * 1024);
    for (int i = 1; i < LIMIT_PLAN_AGENTS; i++) {
        (void)snprintf(agent, sizeof agent, "a%d", i);
        house_join(h, agent, 1);
        buf_printf(&steps, "%s{'agentId':'%s','skill':'do','task':'t','dependsOn':[]}",
                   i > 1 ? "," : "", agent);
    }
    house_join_as(h, "boss", 1, ALL, "");
    (void)house_submit(h, "'plan':{'goal':'g','steps':[%s]}," SYNTHESIS, buf_cstr(&steps));
    for (int i = 1; i < LIMIT_PLAN_AGENTS; i++) {
        (void)snprintf(agent, sizeof agent, "a%d", i);
        house_done(h, agent, "'result':{'text':'1'}");
    }
    house_says(h, house_work(h, "boss", NULL),
               "parameters.agents.#=63; parameters.agents.62=a63; parameters.steps.#=63");
    house_close(h);
    buf_done(&steps);
}

/* The n-th question of a replanner, after n - 1 replans whose steps failed. */
static const char *replan_question(struct house *h, uint32_t n)
{
    (void)house_submit(
        h, "'plan':{'goal':'g','grants':['boss'],'steps':[" STEP(
               "c0", ",'maxRetries':0,'onFailure':'replan'") "]},'policy':{"
                                                             "'replan':{'agentId':'boss','"
                                                             "cooldownMs':0,'maxTotal':100,"
                                                             "'maxPerStep':100}}");
    for (uint32_t i = 1; i < n; i++) {
        house_failed(h, "calc", "NOT_FOUND", false);
        house_wait(h, 1);
        house_done(h, "boss",
                   "'result':{'data':{'steps':[{'stepId':'c%u','agentId':'calc','skill':'do',"
                   "'task':'try %u','maxRetries':0,'onFailure':'replan'}]}}",
                   i, i);
    }
    house_failed(h, "calc", "NOT_FOUND", false);
    house_wait(h, 1);
    return house_work(h, "boss", NULL);
}

static void a_replanner_is_told_of_the_newest_replans_and_how_many_were_before(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    house_says(h, replan_question(h, REPLANS_TOLD + 1),
               "parameters.history.#=63; parameters.historyLeftOut=-; "
               "parameters.history.0.attempt=1; parameters.history.0.stepId=c0; "
               "parameters.history.62.attempt=63; parameters.history.62.stepId=c62");
    house_close(h);
    h = open_with_boss();
    house_says(h, replan_question(h, REPLANS_TOLD + 3),
               "parameters.history.#=63; parameters.historyLeftOut=2; "
               "parameters.history.0.attempt=3; parameters.history.0.stepId=c2; "
               "parameters.history.62.attempt=65; parameters.history.62.stepId=c64");
    house_close(h);
}

/* n failed steps: those before the last one by a condition that cannot be asked. */
static const char *question_after(struct house *h, uint32_t n)
{
    struct buf steps;

    buf_init(&steps, 4 * 1024 * 1024);
    for (uint32_t i = 1; i < n; i++) {
        buf_printf(&steps,
                   "{'stepId':'b%u','agentId':'calc','skill':'do','task':'t','dependsOn':['a'],"
                   "'when':{'results.a':{'gt':3}},'onFailure':'continue'},",
                   i);
    }
    (void)house_submit(h,
                       "'plan':{'goal':'g','grants':['boss'],'steps':[" STEP("a", "") ",%s" STEP(
                           "z", ",'dependsOn':['a'],'maxRetries':0,'onFailure':'"
                                "replan'") "]},"
                                           "'policy':{'replan':{'agentId':'boss','"
                                           "cooldownMs':0,'maxTotal':3}}",
                       buf_cstr(&steps));
    buf_done(&steps);
    house_done(h, "calc", "'result':{'text':'x'}");
    house_failed(h, "calc", "NOT_FOUND", false);
    house_wait(h, 1);
    return house_work(h, "boss", NULL);
}

static void a_replanner_is_told_of_a_thousand_failures_and_how_many_were_before(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    house_says(h, question_after(h, LINES_TOLD),
               "parameters.failed.#=1000; parameters.failed.0.stepId=b1; "
               "parameters.failed.999.stepId=z; context.text=~Failed steps:");
    house_close(h);
    h = open_with_boss();
    house_says(h, question_after(h, LINES_TOLD + 1),
               "parameters.failed.#=1000; parameters.failed.0.stepId=b2; "
               "parameters.failed.999.stepId=z; context.text=~[1 earlier ones left out]");
    house_close(h);
}

/* A step with n parameters, and one more that a person gave. */
static const char *ask_for_more(struct house *h, uint32_t n)
{
    struct buf params;
    const char *id;

    buf_init(&params, 65536);
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&params, "%s'p%u':%u", i > 0 ? "," : "", i, i);
    }
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'parameters':{%s}") "]}",
                      buf_cstr(&params));
    buf_done(&params);
    house_answer(h, "calc", NULL,
                 "'outcome':'needs_input','need':{'kind':'input','prompt':'which?'}");
    (void)house_ok(
        h, "review.decide", "'reviewId':'%s','decision':'approve','edit':{'extra':1}",
        house_get(h, house_ok(h, "review.list", "'planId':'%s'", id), "reviews.0.reviewId"));
    return id;
}

static void parameters_with_what_a_person_gave_are_256_at_most(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    (void)ask_for_more(h, PARAMETERS_MAX - 1);
    house_says(h, house_work(h, "calc", NULL),
               "parameters.p0=0; parameters.p254=254; parameters.extra=1");
    house_done(h, "calc", "'result':{'text':'1'}");
    id = ask_for_more(h, PARAMETERS_MAX);
    house_says(h, view(h, id),
               "status=failed; steps.0.error=~more than 256 parameters with the data");
    house_close(h);
}

static void as_many_conditions_as_come_at_once_are_all_decided(void **state)
{
    (void)state;
    for (uint32_t n = 1024; n <= 1025; n++) { /* of one cycle; the rest follows in the next */
        struct house *h = open_with_boss();
        const char *id = submit_conditions(h, n + 1, "");
        house_done(h, "calc", "'result':{'text':'1'}");
        house_wait(h, 1);
        house_says(h, view(h, id),
                   n == 1024 ? "status=completed; counts.skipped=1024"
                             : "status=completed; counts.skipped=1025");
        house_close(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_synthesizer_is_told_of_a_thousand_steps_and_how_many_there_are),
        cmocka_unit_test(a_synthesizer_is_told_of_all_agents_of_the_plan),
        cmocka_unit_test(a_replanner_is_told_of_the_newest_replans_and_how_many_were_before),
        cmocka_unit_test(a_replanner_is_told_of_a_thousand_failures_and_how_many_were_before),
        cmocka_unit_test(parameters_with_what_a_person_gave_are_256_at_most),
        cmocka_unit_test(as_many_conditions_as_come_at_once_are_all_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
