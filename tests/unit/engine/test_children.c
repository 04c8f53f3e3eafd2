/* Plans that do a step of another: items, rounds, plans inside, and the undoing
 * of a plan. */
#include <stdio.h>
#include <string.h>

#include "supervisor/engine/children.h"
#include "supervisor/engine/engine_internal.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define EACH(more) "{'stepId':'e','task':'each','forEach':" more "}"
#define UNDO(id, more)                                                                             \
    STEP(id, ",'effects':'idempotent','compensate':{'skill':'do','task':'undo " id                 \
             " {{results." id "}}'}" more)

static struct house *open_house(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 4);
    return h;
}

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

/* Answers the oldest work of calc, whose task is this. */
static void does(struct house *h, const char *task, const char *result)
{
    house_is(h, house_work(h, "calc", NULL), "task", task);
    house_done(h, "calc", "'result':%s", result);
    house_wait(h, 1);
}

/* ---- items ---- */

static void each_item_is_done_and_the_results_are_a_list(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" EACH("[5,6],'steps':[" STEP(
                             "x", ",'parameters':{'n':'{{item}}'}") "]") "," STEP("z", "") "]}");
    house_wait(h, 1);
    house_says(h, view(h, id),
               "steps.0.children.kind=forEach; steps.0.children.items=2; "
               "steps.0.children.steps=2; "
               "steps.0.children.over=-; steps.0.children.planId=*");
    house_says(h, house_work(h, "calc", NULL), "parameters.n=5");
    house_done(h, "calc", "'result':{'data':{'v':50}}");
    house_wait(h, 1);
    house_says(h, view(h, id), "steps.0.children.over=1; steps.0.children.completed=1");
    house_says(h, house_event(h, "plan_step_progress"), "stepId=e; percent=50");
    house_says(h, house_work(h, "calc", NULL), "parameters.n=6");
    house_done(h, "calc", "'result':{'data':{'v':60}}");
    house_wait(h, 1);
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'e'", id),
               "result.data.#=2; result.data.0.data.v=50; result.data.1.data.v=60; "
               "result.text=~2 of 2 items completed");
    house_says(h, house_work(h, "calc", "z"), "task=do z");
    house_close(h);
}

static void an_item_that_fails_fails_the_step_with_its_reason(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" EACH(
                             "[5,6],'steps':[" STEP("x", ",'maxRetries':0") "]") "]}");
    house_wait(h, 1);
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 2000);
    house_says(h, view(h, id),
               "status=failed; steps.0.status=failed; "
               "steps.0.errorClass=PERMISSION_DENIED; "
               "steps.0.error=~step x");
    house_close(h);
}

/* Steps that have not begun end with their plan, without an event of their own. */
static void a_child_that_ends_early_tells_its_last_counts(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    house_join(h, "busy", 1);
    (void)house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'busy','skill':'do',"
                          "'task':'t'}]}");
    id = house_submit(
        h,
        "'plan':{'goal':'g','steps':[{'stepId':'e','task':'all','maxRetries':0,'plan':{"
        "'document':{'goal':'h','policy':{'planTimeoutMs':5000},'steps':[" STEP(
            "x",
            "") ",{'stepId':'y','agentId':'busy','skill':'do','task':'t','dependsOn':['x']}]}}}]}");
    house_wait(h, 1);
    house_done(h, "calc", "'result':{'text':'X'}");
    house_wait(h, 1);
    house_says(h, house_event(h, "plan_step_progress"), "stepId=e; percent=50; n=1");
    house_wait(h, 12000);
    house_says(h, view(h, id),
               "status=failed; steps.0.children.steps=2; steps.0.children.over=2; "
               "steps.0.children.completed=1");
    house_says(h, house_event(h, "plan_step_progress"), "stepId=e; percent=100; n=2");
    house_close(h);
}

static void lists_are_of_so_many_items(void **state)
{
    static const struct {
        const char *items, *wants;
    } cases[] = {
        {"{'v':3}", "status=failed; steps.1.error=~forEach: expected a list, got"},
        {"'text'", "status=failed; steps.1.error=~forEach: expected a list, got"},
        {"[]", "status=completed; steps.1.status=completed; steps.1.children.planId=-"},
        {"[1,2]", "status=running; steps.1.children.items=2"},
        {"[1,2,3]", "status=failed; steps.1.error=~3 items are more than the 2 of maxItems"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = open_house();
        const char *id =
            house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," EACH(
                                "'{{results.a}}','maxItems':2,'steps':[" STEP("x", "") "]") "]}");
        house_done(h, "calc", "'result':{'data':%s}", cases[i].items);
        house_wait(h, 1);
        house_says(h, view(h, id), cases[i].wants);
        house_close(h);
    }
}

/* ---- rounds ---- */

static void a_round_follows_until_its_condition_holds(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    id =
        house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'r','task':'again','repeat':{"
                        "'until':{'results.x.n':{'gt':2}},'max':3},'steps':[" STEP("x", "") "]}]}");
    house_wait(h, 1);
    does(h, "do x", "{'data':{'n':1}}");
    house_says(h, view(h, id), "steps.0.children.rounds=2; steps.0.status=in_progress");
    does(h, "do x", "{'data':{'n':3}}");
    house_says(h, view(h, id), "status=completed; steps.0.children.rounds=2");
    id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'r','task':'again',"
           "'repeat':{'until':{'results.x.n':{'gt':2}},'max':2},'steps':[" STEP("x", "") "]}]}");
    house_wait(h, 1);
    does(h, "do x", "{'data':{'n':1}}");
    does(h, "do x", "{'data':{'n':1}}");
    house_says(h, view(h, id), "status=failed; steps.0.errorClass=LOOP_LIMIT");
    id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'r','task':'again',"
           "'repeat':{'until':{'results.x.n':{'gt':2}},'max':2},'steps':[" STEP("x", "") "]}]}");
    house_wait(h, 1);
    does(h, "do x", "{'data':{'n':'many'}}"); /* cannot be compared */
    house_says(h, view(h, id), "status=failed; steps.0.errorClass=VALIDATION_ERROR");
    house_close(h);
}

/* ---- a plan inside ---- */

static void the_answer_of_a_plan_inside_is_the_result_of_its_step(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'p','task':'in','"
                         "plan':{'document':{"
                         "'steps':[" STEP("x", "") "," STEP("y", "") "]}}}]}");
    house_wait(h, 1);
    does(h, "do x", "{'data':{'v':1}}");
    does(h, "do y", "{'text':'two'}");
    house_says(h, view(h, id), "status=completed; steps.0.children.completed=2");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'p'", id),
               "result.data.x={\"v\":1}; result.data.y=two; result.text=*");
    id = house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'p','task':'in','"
                         "plan':{'document':{"
                         "'steps':[" STEP("x", "") "]}}}]}");
    house_wait(h, 1);
    does(h, "do x", "{'data':{'v':1}}");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'p'", id),
               "result.data={\"v\":1}; result.text=-");
    house_close(h);
}

/* ---- undoing ---- */

static void a_plan_that_fails_is_undone_from_its_end(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" UNDO("a", "") "," UNDO("b", "") "," STEP(
                             "c", ",'maxRetries':0") "]}");
    does(h, "do a", "{'text':'A'}");
    does(h, "do b", "{'text':'B'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
    house_says(h, view(h, id),
               "status=running; compensation.status=running; compensation.planId=*");
    does(h, "undo b B", "{'text':'ok'}");
    does(h, "undo a A", "{'text':'ok'}");
    house_says(h, view(h, id),
               "status=failed; compensation.status=compensated; "
               "compensation.compensated=2; "
               "steps.2.status=failed");
    house_close(h);
}

static void items_that_were_done_are_undone_each(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" EACH("[5,6],'steps':[" UNDO(
                             "x", "") "]") "," STEP("c", ",'maxRetries':0") "]}");
    house_wait(h, 1);
    does(h, "do x", "{'text':'X5'}");
    does(h, "do x", "{'text':'X6'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
    does(h, "undo x X6", "{'text':'ok'}");
    does(h, "undo x X5", "{'text':'ok'}");
    house_says(h, view(h, id), "status=failed; compensation.compensated=2");
    house_close(h);
}

/* A place is kept for a plan that each open plan may need; its undoing takes it. Without one it
 * waits until another plan ends. */
static void the_undoing_of_a_plan_has_the_place_that_is_kept_for_it(void **state)
{
    (void)state;
    for (uint32_t kept = 0; kept < 2; kept++) {
        struct house *h = open_house();
        const char *id = house_submit(
            h, "'plan':{'goal':'g','steps':[" UNDO("a", "") "," STEP("c", ",'maxRetries':0") "]}");
        const uint32_t places = h->engine->runs_max;

        does(h, "do a", "{'text':'A'}");
        h->engine->runs_max = core_runs_open(h->engine->core) + kept;
        house_failed(h, "calc", "PERMISSION_DENIED", false);
        house_wait(h, 1);
        if (kept == 0) {
            house_says(h, view(h, id), "status=running; compensation.planId=-");
            assert_null(house_work(h, "calc", NULL));
            h->engine->runs_max = places;
            engine_undo_retry(h->engine);
            house_wait(h, 1);
        }
        house_says(h, view(h, id), "status=running; compensation.planId=*");
        does(h, "undo a A", "{'text':'ok'}");
        house_says(h, view(h, id), "status=failed; compensation.status=compensated");
        house_close(h);
    }
}

static void a_plan_that_is_cancelled_is_undone_when_it_says_so(void **state)
{
    (void)state;
    for (int wanted = 0; wanted < 2; wanted++) {
        struct house *h = open_house();
        const char *id = house_submit(h,
                                      "'plan':{'goal':'g','steps':[" UNDO("a", "") "," STEP(
                                          "w", "") "]},"
                                                   "'policy':{'compensate':%s}",
                                      wanted ? "true" : "false");
        does(h, "do a", "{'text':'A'}");
        (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
        house_wait(h, 3000);
        if (wanted) {
            house_says(h, view(h, id), "compensation.status=running");
        } else {
            house_says(h, view(h, id), "status=cancelled; compensation=-");
        }
        house_close(h);
    }
}

/* ---- in one cycle ---- */

/* Sends without a cycle. */
static void sends(struct house *h, const char *type, const char *fields)
{
    const char *request =
        house_text(h, "{'v':1,'type':'%s','id':'q','token':'%s',%s}", type, HOUSE_TOKEN, fields);

    fake_link_request(h->link, false, ++h->requests, request, strlen(request));
}

/* The parent asks for a child that is there; the child ends, and another plan gets its place, in
 * the same cycle. What the child answered counts. */
static void a_child_that_ends_as_it_is_asked_for_has_answered(void **state)
{
    struct house *h = house_open();
    struct open_plan *parent;
    char of_child[UUID_TEXT_LEN + 1];
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, "'plan':{'goal':'busy','steps':[" STEP("b", "") "]}");
    id = house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'p','task':'in','maxRetries':0,"
                         "'plan':{'document':{'steps':[" STEP("x", "") "]}}}]}");
    house_wait(h, 1);
    (void)snprintf(of_child, sizeof of_child, "%s",
                   house_get(h, view(h, id), "steps.0.children.planId"));
    parent = open_plan_by_id(h->engine, str_from(id));
    assert_non_null(parent);
    engine_child_command(h->engine,
                         &(struct core_cmd){.type = CMD_CHILD, .run = parent->run, .attempt = 1});
    sends(h, "plan.cancel", house_text(h, "'planId':'%s','reason':'enough'", of_child));
    sends(h, "plan.submit", "'plan':{'goal':'next','steps':[" STEP("n", "") "]}");
    house_wait(h, 1);
    house_has(h, view(h, id), "steps.0.error", "enough");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_done_and_the_results_are_a_list),
        cmocka_unit_test(an_item_that_fails_fails_the_step_with_its_reason),
        cmocka_unit_test(a_child_that_ends_early_tells_its_last_counts),
        cmocka_unit_test(lists_are_of_so_many_items),
        cmocka_unit_test(a_round_follows_until_its_condition_holds),
        cmocka_unit_test(the_answer_of_a_plan_inside_is_the_result_of_its_step),
        cmocka_unit_test(a_plan_that_fails_is_undone_from_its_end),
        cmocka_unit_test(items_that_were_done_are_undone_each),
        cmocka_unit_test(the_undoing_of_a_plan_has_the_place_that_is_kept_for_it),
        cmocka_unit_test(a_plan_that_is_cancelled_is_undone_when_it_says_so),
        cmocka_unit_test(a_child_that_ends_as_it_is_asked_for_has_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
