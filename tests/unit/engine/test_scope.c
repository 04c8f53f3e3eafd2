/* What a step sees: results, statuses, the plan's state, and the words of the items and rounds that
 * it is in, in its templates and in its condition. */
#include <stdio.h>
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define IF(condition) ",'when':" condition

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

static void does(struct house *h, const char *task, const char *fields)
{
    house_is(h, house_work(h, "calc", NULL), "task", task);
    house_done(h, "calc", "%s", fields);
    house_wait(h, 1);
}

/* ---- conditions ---- */

static void a_condition_sees_results_statuses_and_the_state(void **state)
{
    static const struct {
        const char *when, *status, *error;
    } cases[] = {
        {"{'results.a.n':3}", "completed", NULL},
        {"{'results.a.n':4}", "skipped", NULL},
        {"{'results.a.rows.1.v':{'gt':7}}", "completed", NULL},
        {"{'results.a.none':{'exists':false}}", "completed", NULL},
        {"{'results.s':{'exists':false}}", "completed", NULL}, /* it was skipped */
        {"{'results.s':{'exists':true}}", "skipped", NULL},
        {"{'steps.a.status':'completed'}", "completed", NULL},
        {"{'steps.s.status':'skipped'}", "completed", NULL},
        {"{'steps.s.status':'completed'}", "skipped", NULL},
        {"{'state.k.deep':'v'}", "completed", NULL},
        {"{'state.k.other':{'exists':false}}", "completed", NULL},
        {"{'state.k':'v'}", "skipped", NULL},
        {"{'results.a.n':{'gt':'text'}}", "failed", "gt"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = open_house();
        const char *id = house_submit(
            h,
            "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP(
                "s", ",'when':{'results.a.n':99}") "," STEP("z", ",'dependsOn':['a','s'],"
                                                                 "'runIf':'always','onFailure':"
                                                                 "'continue','when':%s") "]}",
            cases[i].when);
        does(h, "do a",
             "'result':{'data':{'n':3,'rows':[{'v':7},{'v':8}]}},'state':{'k':{'deep':'v'}}");
        if (house_work(h, "calc", NULL) != NULL) {
            does(h, "do z", "'result':{'text':'Z'}");
        }
        if (strcmp(house_get(h, view(h, id), "steps.2.status"), cases[i].status) != 0) {
            fail_msg("%s: %s", cases[i].when, house_get(h, view(h, id), "steps.2"));
        }
        house_says(h, view(h, id), "steps.1.status=skipped; steps.1.reason=condition");
        if (cases[i].error != NULL) {
            house_says(h, view(h, id), "steps.2.errorClass=VALIDATION_ERROR");
            house_has(h, view(h, id), "steps.2.error", cases[i].error);
        }
        house_close(h);
    }
}

static void a_condition_says_what_it_tested(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP(
                                         "b", IF("{'results.a.n':{'gt':5}}")) "]}");

    (void)state;
    does(h, "do a", "'result':{'data':{'n':3}}");
    house_says(h, view(h, id), "steps.1.status=skipped; steps.1.reason=condition");
    house_has(h, view(h, id), "steps.1", "results.a.n");
    house_close(h);
}

/* ---- items ---- */

static void a_step_of_an_item_sees_the_item_and_its_place(void **state)
{
    struct house *h = open_house();

    (void)state;
    (void)house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'e','task':'each','forEach':[{'v':7},{'v':8}],"
           "'as':'it','steps':[" STEP("x", ",'parameters':{'a':'{{item.v}}','b':'{{index}}','c':"
                                           "'{{it.v}}','d':'{{item}}'}") "]}]}");
    house_wait(h, 1);
    house_says(h, house_work(h, "calc", NULL),
               "parameters.a=7; parameters.b=0; parameters.c=7; parameters.d={\"v\":7}");
    house_done(h, "calc", "'result':{'text':'ok'}");
    house_wait(h, 1);
    house_says(h, house_work(h, "calc", NULL),
               "parameters.a=8; parameters.b=1; parameters.c=8; parameters.d.v=8");
    house_close(h);
}

static void a_condition_of_an_item_sees_the_item(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'e','task':'each','forEach':[{'v':7},{'v':8},{'v'"
           ":9}],"
           "'steps':[" STEP("x", ",'parameters':{'n':'{{index}}'}" IF(
                                     "{'any':[{'item.v':8},{'index':{'gt':1}}]}")) "]}]}");

    (void)state;
    house_wait(h, 1);

    house_says(h, house_work(h, "calc", NULL), "parameters.n=1");
    house_done(h, "calc", "'result':{'text':'ok'}");
    house_wait(h, 1);
    house_says(h, house_work(h, "calc", NULL), "parameters.n=2");
    house_done(h, "calc", "'result':{'text':'ok'}");
    house_wait(h, 1);
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'e'", id),
               "result.data.0.status=skipped; result.data.1.status=completed; "
               "result.text=3 of 3 items completed\n[0] skipped\n[1] completed: ok\n"
               "[2] completed: ok");
    house_close(h);
}

/* The steps of an item read those of the same item, and those outside. */
static void a_step_of_an_item_reads_its_own_item_and_what_is_outside(void **state)
{
    struct house *h = open_house();

    (void)state;
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP(
                              "out", "") ",{'stepId':'e','task':'each','forEach':[1,2],'steps':"
                                         "[" STEP("x", "") "," STEP("y",
                                                                    ",'parameters':{'x':'{{results."
                                                                    "x.v}}','o':"
                                                                    "'{{results.out.v}}'}") "]}]}");
    does(h, "do out", "'result':{'data':{'v':100}}");
    for (int i = 1; i <= 2; i++) {
        char want[64];
        house_is(h, house_work(h, "calc", NULL), "task", "do x");
        house_answer(h, "calc", NULL, "'outcome':'completed','result':{'data':{'v':%d}}", i);
        house_wait(h, 1);
        (void)snprintf(want, sizeof want, "task=do y; parameters.x=%d; parameters.o=100", i);
        house_says(h, house_work(h, "calc", NULL), want);
        house_done(h, "calc", "'result':{'text':'ok'}");
        house_wait(h, 1);
    }
    house_close(h);
}

/* In a list in a list the inner item is `item`; the outer one has its name. */
static void an_inner_item_hides_the_outer_one_but_not_its_name(void **state)
{
    struct house *h = open_house();

    (void)state;
    (void)house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP(
               "out", "") ",{'stepId':'e','task':'each','forEach':[[5,6]],'as':'row','steps':["
                          "{'stepId':'f','task':'inner','forEach':'{{item}}','as':'cell','steps':"
                          "[" STEP("x", ",'parameters':{'i':'{{item}}','c':'{{cell}}','r':'{{row}}'"
                                        ",'n':'{{index}}','o':'{{results.out.v}}'}") "]}]}]}");
    does(h, "do out", "'result':{'data':{'v':100}}");
    house_wait(h, 1);
    house_says(h, house_work(h, "calc", NULL),
               "parameters.i=5; parameters.c=5; parameters.r=[5,6]; parameters.n=0; "
               "parameters.o=100");
    house_done(h, "calc", "'result':{'text':'ok'}");
    house_wait(h, 1);
    house_says(h, house_work(h, "calc", NULL), "parameters.i=6; parameters.n=1");
    house_close(h);
}

/* As deep as a request can say it, each with a word of its own. */
static void the_innermost_item_has_the_names_of_all_around_it(void **state)
{
    struct house *h = open_house();
    const char *steps =
        "{'stepId':'x','agentId':'calc','skill':'do','task':'do x','parameters':{'a':'{{w1}}',"
        "'e':'{{w4}}','f':'{{w5}}','i':'{{item}}','n':'{{index}}'}}";

    (void)state;
    for (int i = 5; i > 1; i--) {
        steps = house_text(h,
                           "{'stepId':'e%d','task':'each','forEach':'{{item}}','as':'w%d',"
                           "'steps':[%s]}",
                           i, i, steps);
    }
    (void)house_submit(h,
                       "'plan':{'goal':'g','steps':[{'stepId':'e1','task':'each','forEach':"
                       "[[[[[5]]]]],'as':'w1','steps':[%s]}]}",
                       steps);
    house_wait(h, 1);
    house_says(h, house_work(h, "calc", NULL),
               "parameters.a=[[[[5]]]]; parameters.e=[5]; parameters.f=5; parameters.i=5; "
               "parameters.n=0");
    house_close(h);
}

/* ---- rounds ---- */

static void a_step_of_a_round_sees_its_number_and_the_round_before(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP(
               "out",
               "") ",{'stepId':'r','task':'again','repeat':{'until':{'results.x.n':{'gt':2}},"
                   "'max':5},'steps':[" STEP(
                       "x",
                       ",'parameters':{'k':'{{iteration}}','o':'{{"
                       "results.out.v}}'}") "," STEP("y",
                                                     ",'dependsOn':['x'],'runIf':'always','"
                                                     "parameters':{'p':'{{previous.m}}'}" IF(
                                                         "{'previous.m':{'exists':true}}")) "]}]}");

    (void)state;
    does(h, "do out", "'result':{'data':{'v':100}}");
    house_says(h, house_work(h, "calc", NULL), "parameters.k=0; parameters.o=100");
    does(h, "do x", "'result':{'data':{'n':1,'m':50}}");
    house_says(h, house_work(h, "calc", NULL), "parameters.k=1; task=do x");
    does(h, "do x", "'result':{'data':{'n':2,'m':60}}");
    house_says(h, house_work(h, "calc", NULL), "task=do y; parameters.p=50");
    does(h, "do y", "'result':{'data':{'m':70}}");
    does(h, "do x", "'result':{'data':{'n':3,'m':80}}");
    house_says(h, house_work(h, "calc", NULL), "task=do y; parameters.p=70");
    does(h, "do y", "'result':{'data':{'m':90}}");
    house_says(h, view(h, id), "status=completed; steps.1.children.rounds=3");
    house_close(h);
}

/* A plan inside is a plan of its own: it sees nothing of what is around it. */
static void a_plan_inside_sees_nothing_outside(void **state)
{
    struct house *h = open_house();

    (void)state;
    house_refused(h, "INVALID", "out", "plan.submit",
                  "'plan':{'goal':'g','steps':[" STEP(
                      "out", "") ",{'stepId':'p','task':'in','plan':{'document':{'"
                                 "steps':[" STEP("x", ",'parameters':{'o':'{{"
                                                      "results.out.v}}'}") "]}}}]}");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_condition_sees_results_statuses_and_the_state),
        cmocka_unit_test(a_condition_says_what_it_tested),
        cmocka_unit_test(a_step_of_an_item_sees_the_item_and_its_place),
        cmocka_unit_test(a_condition_of_an_item_sees_the_item),
        cmocka_unit_test(a_step_of_an_item_reads_its_own_item_and_what_is_outside),
        cmocka_unit_test(an_inner_item_hides_the_outer_one_but_not_its_name),
        cmocka_unit_test(the_innermost_item_has_the_names_of_all_around_it),
        cmocka_unit_test(a_step_of_a_round_sees_its_number_and_the_round_before),
        cmocka_unit_test(a_plan_inside_sees_nothing_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
