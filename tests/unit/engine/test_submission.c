/* What is made of a request for a plan, and why one is refused; jobs, which are plans of the
 * daemon. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ONE "'plan':{'steps':[" STEP("a", "") "]}"

static const char *long_goal(struct house *h, size_t n)
{
    char *goal = arena_alloc(&h->arena, n + 1);

    assert_non_null(goal);
    memset(goal, 'x', n);
    goal[n] = 0;
    return goal;
}

static void wishes_that_the_planner_cannot_keep_are_refused(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_refused(h, "INVALID", "No plan to execute: expected a goal or a plan", "plan.submit",
                  " ");
    house_refused(h, "INVALID", "constraints are for a planner, and this plan is made already",
                  "plan.submit", ONE ",'constraints':['be quick']");
    house_refused(h, "INVALID", "keeps to no constraints (\"be quick\")", "plan.submit",
                  "'goal':'do a thing','constraints':['be quick']");
    house_refused(h, "INVALID", "onInvalidPlan \"interrupt\" is for a model planner", "plan.submit",
                  "'goal':'do a thing','policy':{'onInvalidPlan':'interrupt'}");
    house_refused(h, "INVALID", "onInvalidPlan \"synthesize\" is for a model planner",
                  "plan.submit", "'goal':'do a thing','policy':{'on_invalid_plan':'synthesize'}");
    house_refused(h, "NOT_FOUND", "there is no planner \"oracle\"", "plan.submit",
                  "'goal':'do a thing','planner':'oracle'");
    house_refused(h, "INVALID", "policy", "plan.submit", ONE ",'policy':{'maxRetries':'many'}");
    house_refused(h, "LIMIT", "goal", "plan.submit", "'goal':'%s','planner':'agent:calc'",
                  long_goal(h, LIMIT_TASK_BYTES + 1));
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=0");
    house_close(h);
}

static void a_goal_without_a_model_is_routed_by_its_words(void **state)
{
    struct house *h = house_open();
    const char *made;

    (void)state;
    house_join_as(h, "calc", 1,
                  "'description':'Adds numbers','skills':[{'id':'add','description':"
                  "'Adds up numbers and sums.','tags':['add','sum','numbers']}]",
                  "");
    made = house_ok(h, "plan.submit", "'goal':'add up the numbers'");
    house_says(h, made, "routes.#=1; routes.0.agentId=calc; routes.0.skill=add; routes.0.why=*");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", house_get(h, made, "planId")),
               "about.planner=keyword; query=add up the numbers; steps.0.skill=add");
    house_refused(h, "INVALID", "", "plan.submit", "'goal':'paint the fence'");
    house_says(h, house_ok(h, "plan.lint", "'goal':'paint the fence'"),
               "valid=false; problems.0.severity=error; problems.0.category=unroutable; plan=-");
    house_close(h);
}

static void problems_are_listed_with_their_places(void **state)
{
    struct house *h = house_open();
    const char *answer;

    (void)state;
    house_join(h, "calc", 1);
    answer = house_ask(
        h, "plan.submit",
        "'plan':{'steps':[" STEP("a", ",'timout':1") "," STEP("b", ",'agentId2':'x'") "]}");
    house_says(h, answer,
               "error.code=INVALID; error.details.problems.#=*; "
               "error.details.problems.0.stepId=a; error.details.problems.0.severity=error");
    house_close(h);
}

static void missing_agents_may_come_back_soon_after_a_restart(void **state)
{
    struct house *h = house_open();
    const char *answer;

    (void)state;
    house_join(h, "calc", 1);
    answer = house_ask(h, "plan.submit",
                       "'plan':{'steps':[{'agentId':'nobody','skill':'do','task':'x'}]}");
    house_says(h, answer, "error.code=INVALID; error.retryable=false; error.retryAfterMs=-");
    house_restart(h);
    house_restart(h);
    answer = house_ask(h, "plan.submit", ONE);
    house_says(h, answer, "ok=false; error.retryable=true; error.retryAfterMs=*");
    house_wait(h, HOUSE_LEASE_MS);
    answer = house_ask(h, "plan.submit", ONE);
    house_says(h, answer, "ok=false; error.retryable=false; error.retryAfterMs=-");
    house_close(h);
}

static void a_job_is_only_looked_at_and_cancelled(void **state)
{
    struct house *h = house_open();
    const char *plan;
    const char *job;

    (void)state;
    house_join_as(h, "calc", 1,
                  "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'}]", "");
    plan = house_submit(h, "'goal':'do a thing','planner':'agent:calc'");
    job = house_get(h, house_work(h, "calc", NULL), "planId");
    assert_string_not_equal(plan, job);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", job),
               house_text(h, "about.errand=planning; about.errandOf=%s; status=running", plan));
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=1");
    house_says(h, house_ok(h, "supervisor.info", " "), "plansOpen=1");
    house_refused(h, "INVALID", "this is a question of", "plan.pause", "'planId':'%s'", job);
    house_refused(h, "INVALID", "this is a question of", "plan.resume", "'planId':'%s'", job);
    house_refused(h, "INVALID", "this is a question of", "plan.modify",
                  "'planId':'%s','kind':'conversation_only'", job);
    house_refused(h, "INVALID", "this is a question of", "plan.retry", "'planId':'%s'", job);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", job);
    house_close(h);
}

static void a_daemon_that_stops_takes_no_new_plans(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE);
    (void)house_ok(h, "supervisor.drain", " ");
    house_refused(h, "UNAVAILABLE", "the supervisor is stopping and takes no new plans",
                  "plan.submit", ONE);
    house_done(h, "calc", "'result':{'text':'5'}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
    house_refused(h, "UNAVAILABLE", "the supervisor is stopping", "plan.fork",
                  "'planId':'%s','fromStep':'a'", id);
    house_close(h);
}

static void a_low_disk_takes_no_new_plans_and_goes_on_with_the_others(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE);
    h->journal->storage_low = true;
    house_refused(h, "UNAVAILABLE", "", "plan.submit", ONE);
    assert_non_null(house_get(h, house_ask(h, "plan.submit", ONE), "error.retryAfterMs"));
    house_done(h, "calc", "'result':{'text':'5'}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
    h->journal->storage_low = false;
    (void)house_submit(h, ONE);
    house_close(h);
}

/* Nothing leaves before its cause is committed: no answer, no step, no event. */
static void nothing_leaves_before_the_commit(void **state)
{
    struct house *h = house_open();
    uint32_t frames;

    (void)state;
    house_join(h, "calc", 1);
    frames = fake_link_frames(h->link);
    for (uint32_t n = 1; n <= 3; n++) {
        house_fail_write(h, n);
        assert_null(house_ask(h, "plan.submit", ONE));
        assert_true(h->dead);
        assert_int_equal(fake_link_frames(h->link), frames);
        assert_null(house_lane(h, "calc", NULL));
        house_restart(h);
        house_says(h, house_ok(h, "plan.list", " "), "plans.#=0");
        house_join(h, "calc", 1);
        frames = fake_link_frames(h->link);
    }
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wishes_that_the_planner_cannot_keep_are_refused),
        cmocka_unit_test(a_goal_without_a_model_is_routed_by_its_words),
        cmocka_unit_test(problems_are_listed_with_their_places),
        cmocka_unit_test(missing_agents_may_come_back_soon_after_a_restart),
        cmocka_unit_test(a_job_is_only_looked_at_and_cancelled),
        cmocka_unit_test(a_daemon_that_stops_takes_no_new_plans),
        cmocka_unit_test(a_low_disk_takes_no_new_plans_and_goes_on_with_the_others),
        cmocka_unit_test(nothing_leaves_before_the_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
