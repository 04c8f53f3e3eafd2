/* A synthesizer that has failed steps tried again: which ones, in what order, and what it may not.
 */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define NO_RETRY ",'maxRetries':0,'onFailure':'continue'"
#define BOSS "'skills':[{'id':'synthesize','description':'Y'}]"
#define SYNTHESIS "'policy':{'synthesis':{'strategy':'agent','agentId':'boss'}}"

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static struct house *open_with_boss(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 4);
    house_join_as(h, "boss", 1, BOSS, "");
    return h;
}

/* a is done; b fails, c follows it; d fails by itself. */
static const char *two_failed(struct house *h)
{
    const char *id = house_submit(
        h,
        "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
            "b",
            ",'dependsOn':['"
            "a'],'parameters'"
            ":{'n':'{{"
            "results.a.text}}"
            "'}" NO_RETRY) "," STEP("c",
                                    ",'dependsOn':['a','b']") "," STEP("d",
                                                                       ",'dependsOn':["
                                                                       "]" NO_RETRY) "]}"
                                                                                     "," SYNTHESIS);

    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'five'}");
    house_answer(h, "calc", "d",
                 "'outcome':'failed','failure':{'code':'E','class':'NOT_FOUND','message':'no d',"
                 "'retryable':false}");
    house_answer(h, "calc", "b",
                 "'outcome':'failed','failure':{'code':'E','class':'NOT_FOUND','message':'no b',"
                 "'retryable':false}");
    house_wait(h, 1);
    return id;
}

static void what_is_named_is_tried_again_with_what_follows_from_it(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = two_failed(h);
    house_says(h, house_work(h, "boss", NULL),
               "skill=synthesize; purpose=*; parameters.steps.#=4; "
               "parameters.steps.0.status=completed; parameters.steps.1.status=failed");
    house_done(h, "boss",
               "'result':{'text':'b once more','data':{'retry':['b','b','nobody',7,{'stepId':"
               "'a'}]}},'usage':{'inputTokens':3}");
    house_says(h, view(h, id),
               "revision=2; steps.#=6; steps.1.superseded=true; steps.2.superseded=true; "
               "steps.3.superseded=-; steps.4.task=do b; steps.4.revision=2; "
               "steps.4.dependsOn=[\"a\"]; steps.4.status=in_progress; steps.5.task=do c; "
               "status=running");
    house_says(h, house_work(h, "calc", NULL), "parameters.n=five; task=do b");
    house_done(h, "calc", "'result':{'text':'six'}");
    house_says(h, house_work(h, "calc", NULL), "task=do c");
    house_done(h, "calc", "'result':{'text':'seven'}");
    house_wait(h, 1);
    house_done(h, "boss", "'result':{'text':'all of it'}");
    house_says(h, view(h, id), "status=completed; summary=~all of it");
    house_says(h, house_ok(h, "plan.history", "'planId':'%s'", id),
               "revisions.#=2; revisions.1.steps=2; revisions.1.kind=*");
    house_close(h);
}

static void a_step_is_named_by_its_id_or_in_a_map(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = two_failed(h);
    house_done(h, "boss", "'result':{'data':{'retry':[{'stepId':'d'}]}}");
    house_says(h, view(h, id),
               "revision=2; steps.#=5; steps.3.superseded=true; steps.1.superseded=-; "
               "steps.4.task=do d; steps.4.dependsOn=-");
    house_close(h);
}

static void a_wish_that_names_nothing_that_failed_is_refused(void **state)
{
    static const char *const wishes[] = {"['a']", "['nobody']",     "[7]",
                                         "'b'",   "{'stepId':'b'}", "[{'step':'b'}]"};

    (void)state;
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        struct house *h = open_with_boss();
        const char *id = two_failed(h);
        house_done(h, "boss", "'result':{'data':{'retry':%s}}", wishes[i]);
        house_says(h, view(h, id), "revision=1; steps.#=4");
        house_close(h);
    }
}

/* An empty wish beside an answer is none; without one there is no answer at all. */
static void an_empty_wish_is_none_when_there_is_an_answer(void **state)
{
    static const char *const wishes[] = {"[]", "null"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct house *h = open_with_boss();
        const char *id = two_failed(h);
        house_done(h, "boss", "'result':{'text':'so be it','data':{'retry':%s}}", wishes[i]);
        house_says(h, view(h, id), "revision=1; summary=~so be it");
        house_close(h);
    }
}

static void an_answer_of_nothing_is_none(void **state)
{
    static const struct {
        const char *result;
        bool counts;
    } all[] = {
        {"{'text':' \\n\\t\\r'}", false}, {"{'text':'x'}", true},   {"{'data':{}}", false},
        {"{'data':[]}", false},           {"{'data':' '}", false},  {"{'data':[0]}", true},
        {"{'data':{'a':1}}", true},       {"{'data':null}", false}, {"{'data':7}", true},
        {"{'data':'x'}", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct house *h = open_with_boss();
        const char *id =
            house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}," SYNTHESIS);
        house_done(h, "calc", "'result':{'text':'five'}");
        house_wait(h, 1);
        house_done(h, "boss", "'result':%s", all[i].result);
        if (all[i].counts) {
            assert_int_equal(house_seen(h, "synthesis_failed"), 0);
            house_says(h, view(h, id), "status=completed");
        } else {
            house_says(h, view(h, id), "summary=five"); /* put together out of the results */
        }
        house_close(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_named_is_tried_again_with_what_follows_from_it),
        cmocka_unit_test(a_step_is_named_by_its_id_or_in_a_map),
        cmocka_unit_test(a_wish_that_names_nothing_that_failed_is_refused),
        cmocka_unit_test(an_empty_wish_is_none_when_there_is_an_answer),
        cmocka_unit_test(an_answer_of_nothing_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
