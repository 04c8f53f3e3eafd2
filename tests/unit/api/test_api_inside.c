/* Reviews inside of a step that a plan of its own does, and events of others. */
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static void a_step_waits_for_the_first_review_inside_and_counts_the_others(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *inside;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(
        h, "'plan':{'goal':'each','steps':[" STEP(
               "a", "") ",{'stepId':'f','task':'t','forEach':"
                        "[1,2,3],'as':'x','maxConcurrency':3,"
                        "'dependsOn':['a'],'steps':[" STEP("p", ",'requiresApproval':true") "]}]}");
    house_done(h, "calc", "'result':{'text':'x'}");
    house_wait(h, 1);
    inside = house_get(h, view(h, id), "steps.1.children.planId");
    house_says(h, view(h, id),
               house_text(h,
                          "steps.1.type=plan; steps.1.children.kind=forEach; "
                          "steps.1.children.items=3; steps.1.waiting.kind=person; "
                          "steps.1.waiting.reviewId=%s/p[0]/r1; steps.1.waiting.text=waiting for "
                          "approval (review %s/p[0]/r1, and 2 more)",
                          inside, inside));
    (void)house_ok(h, "review.decide", "'reviewId':'%s/p[0]/r1','decision':'skip'", inside);
    house_says(h, view(h, id),
               house_text(h,
                          "steps.1.waiting.text=waiting for approval (review %s/p[1]/r2, and 1 "
                          "more)",
                          inside));
    (void)house_ok(h, "review.decide", "'reviewId':'%s/p[1]/r2','decision':'skip'", inside);
    house_says(
        h, view(h, id),
        house_text(h, "steps.1.waiting.text=waiting for approval (review %s/p[2]/r3)", inside));
    house_close(h);
}

/* How long somebody has to decide shows without a look at the plan inside. */
static void a_step_shows_until_when_the_review_inside_waits(void **state)
{
    static const struct {
        const char *more, *until;
    } cases[] = {{",'approvalTimeoutMs':2000", "2023-11-14T22:13:22.000Z"}, {"", "-"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = house_open();
        const char *id;
        house_join(h, "calc", 1);
        id = house_submit(h,
                          "'plan':{'goal':'each','steps':[{'stepId':'f','task':'t','forEach':[1],"
                          "'as':'x','steps':[{'stepId':'p','agentId':'calc','skill':'do','task':"
                          "'t','requiresApproval':true%s}]}]}",
                          cases[i].more);
        house_wait(h, 0);
        house_says(
            h, view(h, id),
            house_text(h, "steps.0.waiting.kind=person; steps.0.waiting.until=%s", cases[i].until));
        house_close(h);
    }
}

static void a_plan_inside_that_waits_for_its_sign_off_is_named_too(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'s','task':'t','plan':{'document':{'goal':"
           "'inner','steps':[" STEP("x", "") "],'policy':{'signoff':true}}}}]}");
    house_wait(h, 1);
    house_says(h, view(h, id), "steps.0.waiting.kind=person; steps.0.waiting.reviewId=*");
    house_close(h);
}

static void events_of_a_schedule_are_its_owners(void **state)
{
    static const char put[] = "'name':'m','cron':'@daily','plan':{'steps':[" STEP("a", "") "]}";
    static const char types[] = "'fromSeq':1,'types':['schedule_paused']";
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_as(h, "submitter");
    (void)house_ok(h, "schedule.put", "%s", put);
    (void)house_ok(h, "schedule.pause", "'name':'m'");
    house_says(h, house_ok(h, "events.read", "%s", types),
               "events.#=1; events.0.type=schedule_paused; events.0.name=submitter:m");
    (void)house_as(h, "other");
    house_says(h, house_ok(h, "events.read", "%s", types), "events.#=0; nextSeq=*");
    (void)house_as(h, "observer");
    house_says(h, house_ok(h, "events.read", "%s", types), "events.#=1");
    house_close(h);
}

static void a_chain_waits_for_what_is_before_and_the_rest_is_queueing(void **state)
{
    struct house *h = house_open();
    const char *busy;
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    busy = house_submit(h, "'plan':{'goal':'busy','steps':[" STEP("z", "") "]}");
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", "") "]}");
    house_wait(h, 70);
    house_done(h, "calc", "'result':{'text':'z'}");
    house_wait(h, 30);
    house_done(h, "calc", "'result':{'text':'a'}");
    house_wait(h, 20);
    house_done(h, "calc", "'result':{'text':'b'}");
    house_says(h, house_ok(h, "plan.stats", "'planId':'%s'", id),
               "steps.0.queueMs=70; steps.0.runMs=30; steps.1.queueMs=-; steps.1.runMs=20; "
               "bottleneckStepId=a; depth=2");
    house_says(h, house_ok(h, "plan.stats", "'planId':'%s'", busy), "steps.0.queueMs=-; depth=1");
    house_close(h);
}

/* ---- lists by status ---- */

static void open_plans_are_listed_by_each_of_their_statuses(void **state)
{
    static const char *const all[] = {"pending", "running", "waiting"};
    struct house *h = house_open();
    const char *ids[3];

    (void)state;
    house_join(h, "calc", 1);
    house_join_as(h, "boss", 1, "'skills':[{'id':'plan','description':'P'}]", "");
    ids[0] = house_submit(h, "'goal':'add two numbers','planner':'agent:boss'");
    ids[1] = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}");
    ids[2] =
        house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'requiresApproval':true") "]}");
    for (int i = 0; i < 3; i++) {
        house_says(
            h, house_ok(h, "plan.list", "'status':'%s'", all[i]),
            house_text(h, "plans.#=1; plans.0.planId=%s; plans.0.status=%s", ids[i], all[i]));
    }
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_waits_for_the_first_review_inside_and_counts_the_others),
        cmocka_unit_test(a_step_shows_until_when_the_review_inside_waits),
        cmocka_unit_test(open_plans_are_listed_by_each_of_their_statuses),
        cmocka_unit_test(a_plan_inside_that_waits_for_its_sign_off_is_named_too),
        cmocka_unit_test(events_of_a_schedule_are_its_owners),
        cmocka_unit_test(a_chain_waits_for_what_is_before_and_the_rest_is_queueing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
