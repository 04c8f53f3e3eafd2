/* What a child plan is given, and what its step gets of it: the share of the budget and of the
 * time, items that are not done twice, answers that are cut, reasons of failures, how deep. */
#include <stdio.h>
#include <string.h>

#include "supervisor/plan/flow/child.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define EACH(more) "{'stepId':'e','task':'each','forEach':" more "}"
#define SUB(id, steps, more)                                                                       \
    "{'stepId':'" id "','task':'in','plan':{'document':{'steps':[" steps "]}}" more "}"

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

static const char *child(struct house *h, const char *id, int step)
{
    char path[64];
    const char *child;

    (void)snprintf(path, sizeof path, "steps.%d.children.planId", step);
    child = house_get(h, view(h, id), path);
    assert_non_null(child);
    return child;
}

static const char *document_of_child(struct house *h, const char *id, int step)
{
    return house_ok(h, "plan.get", "'planId':'%s','document':true", child(h, id, step));
}

/* ---- shares ---- */

static void children_have_equal_parts_of_what_is_left(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," SUB(
               "p", STEP("x", ""),
               ",'dependsOn':['a']") "," SUB("q", STEP("y", ""),
                                             ",'dependsOn':['a']") "]},'policy':{'budget':{'tokens'"
                                                                   ":1000,'costMicros':300}}");

    (void)state;
    does(h, "do a",
         "'result':{'text':'A'},'usage':{'inputTokens':60,'outputTokens':40,"
         "'costMicros':100}");
    house_says(h, document_of_child(h, id, 1),
               "document.policy.budget.tokens=450; document.policy.budget.costMicros=100");
    house_says(h, document_of_child(h, id, 2),
               "document.policy.budget.tokens=450; document.policy.budget.costMicros=100");
    house_close(h);
}

/* What the first has spent and may still spend is not there for the second. */
static void the_last_child_has_all_that_is_left(void **state)
{
    struct house *h = open_house();
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" SUB("p", STEP("x", ""), "") "," SUB(
                            "q", STEP("y", ""), "") "]},'policy':{'budget':{'tokens':1000}}");

    (void)state;
    house_wait(h, 1);
    house_says(h, document_of_child(h, id, 0), "document.policy.budget.tokens=500");
    does(h, "do x", "'result':{'text':'A'},'usage':{'inputTokens':90,'outputTokens':10}");
    house_says(h, document_of_child(h, id, 1), "document.policy.budget.tokens=900");
    house_close(h);
}

/* What a child under way has left of its share is its own. */
static void a_child_that_comes_later_has_what_the_others_may_not_spend(void **state)
{
    struct house *h = open_house();
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," SUB(
                            "p", STEP("x", "") "," STEP("x2", ",'dependsOn':['x']"),
                            ",'dependsOn':[]") "," SUB("q", STEP("y", ""),
                                                       ",'dependsOn':['a']") "]},'policy':{"
                                                                             "'budget':{"
                                                                             "'tokens':1000}}");

    (void)state;
    house_wait(h, 1);
    house_says(h, document_of_child(h, id, 1), "document.policy.budget.tokens=500");
    house_answer(h, "calc", "x",
                 "'outcome':'completed','result':{'text':'X'},'usage':{'inputTokens':300}");
    house_wait(h, 1);
    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'A'}");
    house_wait(h, 1);
    house_says(h, document_of_child(h, id, 2), "document.policy.budget.tokens=500");
    house_close(h);
}

static void an_estimate_is_the_share_of_its_step_alone(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" SUB("p", STEP("x", ""),
                                              ",'estimate':{'tokens':70,'costMicros':9},'dependsOn"
                                              "':[]") "," SUB("q", STEP("y", ""),
                                                              ",'dependsOn':[]") "]},'policy':{"
                                                                                 "'budget':{"
                                                                                 "'tokens':1000}}");

    (void)state;
    house_wait(h, 1);
    house_says(h, document_of_child(h, id, 0),
               "document.policy.budget.tokens=70; document.policy.budget.costMicros=9");
    house_says(h, document_of_child(h, id, 1), "document.policy.budget.tokens=930");
    house_close(h);
}

static void without_a_budget_a_child_has_none(void **state)
{
    struct house *h = open_house();
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" SUB("p", STEP("x", ""), "") "]}");

    (void)state;
    house_wait(h, 1);
    house_says(h, document_of_child(h, id, 0),
               "document.policy.budget.tokens=0; document.policy.budget.costMicros=0; "
               "document.child.depth=1; document.child.attempt=1; "
               "document.child.step=0; document.child.kind=plan");
    house_close(h);
}

static void a_child_has_the_time_that_is_left_of_plan_and_step(void **state)
{
    static const struct {
        const char *step, *policy, *wants;
    } cases[] = {
        {"", ",'policy':{'planTimeoutMs':50000}", "49001"},
        {",'timeoutMs':20000", ",'policy':{'planTimeoutMs':50000}", "20000"},
        {",'timeoutMs':60000", ",'policy':{'planTimeoutMs':50000}", "49001"},
        {",'timeoutMs':20000", "", "20000"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = open_house();
        const char *id = house_submit(h,
                                      "'plan':{'goal':'g','steps':[" STEP(
                                          "a", "") ",{'stepId':'p','task':'in','plan':{'document':{"
                                                   "'steps':[" STEP("x", "") "]}}%s}]}%s",
                                      cases[i].step, cases[i].policy);
        house_wait(h, 999);
        does(h, "do a", "'result':{'text':'A'}");
        house_is(h, document_of_child(h, id, 1), "document.policy.planTimeoutMs", cases[i].wants);
        house_close(h);
    }
}

/* ---- lists ---- */

static void what_is_no_list_is_named(void **state)
{
    static const struct {
        const char *value, *words;
    } cases[] = {
        {"{'v':3}", "expected a list, got a map"},
        {"{'v':[3]}", "got a map; name the list in it ({{results.<stepId>.<member>}})"},
        {"true", "got true or false"},
        {"3", "got a number"},
        {"-3", "got a number"},
        {"0.5", "got a number"},
        {"'w'", "got a text"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = open_house();
        const char *id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," EACH(
                                             "'{{results.a}}','steps':[" STEP("x", "") "]") "]}");
        house_done(h, "calc", "'result':{'data':%s}", cases[i].value);
        house_wait(h, 1);
        house_says(h, view(h, id), "status=failed; steps.1.errorClass=VALIDATION_ERROR");
        house_has(h, view(h, id), "steps.1.error", cases[i].words);
        house_close(h);
    }
}

static void an_empty_list_is_done_at_once(void **state)
{
    struct house *h = open_house();
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" EACH("[],'steps':[" STEP("x", "") "]") "]}");

    (void)state;
    house_wait(h, 1);
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'e'", id),
               "result.text=The list is empty: nothing was done.; result.data=[]");
    house_close(h);
}

/* 5000 items of two steps are a plan's 10,000; one more is too many. */
static void items_times_steps_are_at_most_the_steps_of_a_plan(void **state)
{
    (void)state;
    for (int n = 5000; n <= 5001; n++) {
        struct house *h = open_house();
        struct buf list;
        const char *id;
        buf_init(&list, 65536);
        for (int i = 0; i < n; i++) {
            buf_add_cstr(&list, i == 0 ? "[1" : ",1");
        }
        buf_add_cstr(&list, "]");
        buf_add_byte(&list, 0);
        id = house_submit(
            h, "'plan':{'goal':'g','steps':[{'stepId':'e','task':'each','forEach':"
               "'{{results.a}}','maxItems':10000,'dependsOn':['a'],"
               "'steps':[" STEP("x", "") "," STEP("y", "") "]}," STEP("a", ",'dependsOn':[]") "]}");
        house_done(h, "calc", "'result':{'data':%s}", (const char *)list.at);
        house_wait(h, 1);
        if (n == 5000) {
            house_says(h, view(h, id), "steps.0.children.items=5000; steps.0.children.steps=10000");
        } else {
            house_says(h, view(h, id),
                       "steps.0.status=failed; steps.0.error=~forEach: 5001 items "
                       "with 2 steps each are more than the 10000 steps of one");
        }
        buf_done(&list);
        house_close(h);
    }
}

/* ---- items that were done ---- */

static void an_item_that_was_done_is_not_done_again_by_the_next_attempt(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h,
        "'plan':{'goal':'g','steps':[" EACH("[5,6],'onFailure':'ask','steps':[" STEP(
            "x",
            ",'maxRetries':0,'parameters':{'n':'{{item}}'}") "," STEP("y",
                                                                      ",'maxRetries':0") "]") "]}");

    (void)state;
    house_wait(h, 1);
    does(h, "do x", "'result':{'text':'X5'}");
    does(h, "do y", "'result':{'text':'Y5'}");
    does(h, "do x", "'result':{'text':'X6'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
    (void)house_ok(h, "review.decide", "'planId':'%s','reviewId':'%s','decision':'approve'", id,
                   house_get(h, view(h, id), "steps.0.waiting.reviewId"));
    house_wait(h, 1);
    house_says(h, view(h, id), "steps.0.status=in_progress; steps.0.children.completed=3");
    does(h, "do y", "'result':{'text':'Y6'}"); /* of the second item alone */
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'e'", id),
               "result.data.0.text=Y5; result.data.1.text=Y6; "
               "result.text=2 of 2 items completed\n[0] completed: Y5\n[1] completed: Y6");
    house_says(h, view(h, id), "status=completed");
    house_close(h);
}

static void a_retry_of_the_plan_takes_the_items_that_were_done(void **state)
{
    struct house *h = open_house();
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" EACH("[5,6],'steps':[" STEP(
                            "x", ",'maxRetries':0,'parameters':{'n':'{{item}}'}") "]") "]}");
    const char *again;

    (void)state;
    house_wait(h, 1);
    does(h, "do x", "'result':{'text':'X5'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
    house_says(h, view(h, id), "status=failed");
    again = house_get(h, house_ok(h, "plan.retry", "'planId':'%s'", id), "planId");
    house_wait(h, 1);
    house_says(h, house_work(h, "calc", NULL), "parameters.n=6");
    house_done(h, "calc", "'result':{'text':'X6'}");
    house_wait(h, 1);
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'e'", again),
               "result.data.0.text=X5; result.data.1.text=X6");
    house_close(h);
}

/* ---- answers ---- */

static void the_answer_of_items_says_how_each_ended(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" EACH("[1,2,3],'onItemFailure':'continue','steps':[" STEP(
               "x", ",'maxRetries':0") "]") "]}");

    (void)state;
    house_wait(h, 1);
    does(h, "do x", "'result':{'text':'one\\ntwo','data':{'v':1}}");
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                 "'message':'no entry','retryable':false}");
    house_wait(h, 1);
    does(h, "do x", "'result':{'data':{'v':3}}");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'e'", id),
               "result.data.#=3; result.data.0.status=completed; result.data.0.text=one\ntwo; "
               "result.data.0.data.v=1; result.data.1.status=failed; "
               "result.data.1.error=no entry; result.data.1.errorClass=PERMISSION_DENIED; "
               "result.data.1.whole=-; result.data.2.status=completed; result.data.2.text=-; "
               "result.text=2 of 3 items completed\n[0] completed: one two\n"
               "[1] failed: no entry\n[2] completed: {\"v\":3}");
    house_close(h);
}

/* A line has 300 bytes of a text. */
static void a_line_of_an_item_is_cut_after_300_bytes(void **state)
{
    (void)state;
    for (int n = 300; n <= 301; n++) {
        struct house *h = open_house();
        const char *id = house_submit(
            h, "'plan':{'goal':'g','steps':[" EACH("[1],'steps':[" STEP("x", "") "]") "]}");
        char text[302];
        char want[400];
        memset(text, 'w', (size_t)n);
        text[n] = 0;
        house_wait(h, 1);
        house_done(h, "calc", "'result':{'text':'%s'}", text);
        house_wait(h, 1);
        (void)snprintf(want, sizeof want, "1 of 1 items completed\n[0] completed: %.300s%s", text,
                       n > 300 ? "…" : "");
        house_is(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'e'", id), "result.text",
                 want);
        house_close(h);
    }
}

/* Too large as a whole, it says of each item only how it ended. */
static void an_answer_that_is_too_large_has_no_results_of_items(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    char big[3001];
    const char *id;

    (void)state;
    memset(big, 'w', sizeof big - 1);
    big[sizeof big - 1] = 0;
    opt.result_max = 4096;
    h = house_open_with(&opt);
    house_join(h, "calc", 4);
    id = house_submit(
        h, "'plan':{'goal':'g','steps':[" EACH("[1,2],'steps':[" STEP("x", "") "]") "]}");
    house_wait(h, 1);
    for (int i = 0; i < 2; i++) {
        house_done(h, "calc", "'result':{'text':'%s'}", big);
        house_wait(h, 1);
    }
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'e'", id),
               "result.data.#=2; result.data.0.status=completed; result.data.0.whole=false; "
               "result.data.0.text=-; result.data.1.whole=false; truncatedSteps.0=e");
    house_says(h, view(h, id), "status=completed");
    /* of a plan inside: its text alone */
    id = house_submit(
        h, "'plan':{'goal':'g','steps':[" SUB("p", STEP("x", "") "," STEP("y", ""), "") "]}");
    house_wait(h, 1);
    for (int i = 0; i < 2; i++) {
        house_done(h, "calc", "'result':{'text':'short','data':{'v':'%s'}}", big);
        house_wait(h, 1);
    }
    house_says(h, view(h, id), "status=completed; steps.0.status=completed");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'p'", id),
               "result.text=~short; result.data=-; truncatedSteps.0=p");
    house_close(h);
}

/* Of several last steps the data of each is there, by its id. */
static void the_result_of_a_plan_inside_has_those_of_its_last_steps(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" SUB("p", STEP("x", "") "," STEP("y", ""), "") "]}");

    (void)state;
    house_wait(h, 1);
    house_answer(h, "calc", "x", "'outcome':'completed','result':{'data':{'v':1}}");
    house_answer(h, "calc", "y", "'outcome':'completed','result':{'text':'Y'}");
    house_wait(h, 1);
    house_says(h, view(h, id), "status=completed");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'p'", id),
               "result.text=*; result.data.x.v=1; result.data.y=Y; truncatedSteps=-");
    house_close(h);
}

/* ---- failures ---- */

/* Another step of the child failed before, and was not the reason. */
static void the_class_of_a_failure_is_that_of_the_step_that_ended_the_child(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h,
        "'plan':{'goal':'g','steps':[" SUB(
            "p",
            STEP("x", ",'maxRetries':0,'onFailure':'continue'") "," STEP("y", ",'maxRetries':0,"
                                                                              "'dependsOn':['x'],"
                                                                              "'runIf':'always'"),
            ",'maxRetries':0") "]}");

    (void)state;
    house_wait(h, 1);
    house_failed(h, "calc", "NOT_FOUND", false);
    house_wait(h, 1);
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
    house_says(h, view(h, id),
               "status=failed; steps.0.errorClass=PERMISSION_DENIED; "
               "steps.0.error=~step y: ");
    house_close(h);
}

static void the_failure_of_a_child_has_its_class_and_its_step(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" SUB("p", STEP("x", "") "," STEP("y", ",'maxRetries':0"),
                                              ",'maxRetries':0") "]}");

    (void)state;
    does(h, "do x", "'result':{'text':'X'}");
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                 "'message':'no more','retryable':false}");
    house_wait(h, 1);
    house_says(h, view(h, id),
               "status=failed; steps.0.errorClass=PERMISSION_DENIED; steps.0.error=~step y: ");
    house_has(h, view(h, id), "steps.0.error", "no more");
    house_close(h);
}

static void a_child_that_is_cancelled_by_hand_fails_its_step_as_cancelled(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" SUB("p", STEP("x", ""), ",'maxRetries':0") "]}");

    (void)state;
    house_wait(h, 1);
    (void)house_ok(h, "plan.cancel", "'planId':'%s','reason':'enough'", child(h, id, 0));
    house_wait(h, 3000);
    house_says(h, view(h, id), "status=failed; steps.0.errorClass=CANCELLED");
    house_close(h);
}

static void a_child_without_time_or_money_fails_its_step_with_that_class(void **state)
{
    static const struct {
        const char *policy, *usage, *cls;
    } cases[] = {{"'planTimeoutMs':5000", "1", "TIMEOUT"},
                 {"'budget':{'tokens':10}", "11", "BUDGET_EXCEEDED"}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct house *h = open_house();
        const char *id = house_submit(
            h,
            "'plan':{'goal':'g','steps':[{'stepId':'p','task':'in','maxRetries':0,'plan':{"
            "'document':{'policy':{%s},'steps':[" STEP("x", "") "," STEP("y", "") "]}}}]}",
            cases[i].policy);
        house_wait(h, 1);
        house_done(h, "calc", "'result':{'text':'X'},'usage':{'inputTokens':%s}", cases[i].usage);
        house_wait(h, 12000);
        house_says(h, view(h, id), "status=failed; steps.0.status=failed");
        house_is(h, view(h, id), "steps.0.errorClass", cases[i].cls);
        house_close(h);
    }
}

/* A person decides about a step that no agent does: there is no card to look into. */
static void a_person_decides_about_a_step_of_children_that_failed(void **state)
{
    static const char *const decisions[] = {"approve", "skip", "reject"};
    static const char *const wants[] = {"status=running; steps.0.status=in_progress",
                                        "status=failed; steps.0.status=skipped",
                                        "status=failed; steps.0.status=failed"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct house *h = open_house();
        const char *id = house_submit(
            h, "'plan':{'goal':'g','steps':[" EACH(
                   "[5],'onFailure':'ask','steps':[" STEP("x", ",'maxRetries':0") "]") "]}");
        const char *review;
        house_wait(h, 1);
        house_failed(h, "calc", "PERMISSION_DENIED", false);
        house_wait(h, 1);
        review = house_get(h, house_ok(h, "review.list", " "), "reviews.0.reviewId");
        house_says(h, house_ok(h, "review.get", "'reviewId':'%s'", review),
                   "review.stepId=e; review.kind=failure; review.attempt=1; review.skill=-; "
                   "review.task=each");
        (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'%s'", review, decisions[i]);
        house_wait(h, 1);
        house_says(h, view(h, id), wants[i]);
        house_close(h);
    }
}

/* ---- how deep ---- */

/* Two agents that call each other: each call is a plan in the plan of the call before. */
static void calls_are_nested_as_deep_as_may_be_and_no_deeper(void **state)
{
    static const char card[] =
        "'skills':[{'id':'work','description':'W','tags':['a','x-baton-calls']}]";
    static const char *const agents[] = {"c", "e"};
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "c", 16, card, "");
    house_join_as(h, "e", 16, card, "");
    (void)house_submit(h, "'plan':{'goal':'g','grants':['c','e'],'steps':[{'stepId':'a',"
                          "'agentId':'c','skill':'work','task':'find out','maxRetries':0}]}");
    for (int depth = 0; depth <= CHILD_DEPTH_MAX; depth++) {
        const char *const from = agents[depth % 2];
        const char *const to = agents[(depth + 1) % 2];
        house_answer(h, from, NULL,
                     "'outcome':'calls','calls':[{'id':'d%d','agentId':'%s','skill':'work'}]",
                     depth, to);
        house_wait(h, 1);
        if (depth < CHILD_DEPTH_MAX) {
            assert_non_null(house_work(h, to, NULL));
            assert_null(house_work(h, from, NULL));
        } else {
            house_says(h, house_work(h, to, NULL),
                       "turns.0.results.0.status=failed; "
                       "turns.0.results.0.errorClass=VALIDATION_ERROR; "
                       "turns.0.results.0.error=~plans are nested more than 8 deep");
        }
    }
    house_close(h);
}

/* ---- what reaches the child ---- */

static void a_pause_and_its_end_reach_the_children(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" SUB("p", STEP("x", "") "," STEP("y", ""), "") "]}");

    (void)state;
    house_wait(h, 1);
    (void)house_ok(h, "plan.pause", "'planId':'%s'", id);
    house_wait(h, 1);
    does(h, "do x", "'result':{'text':'X'}");
    assert_null(house_work(h, "calc", NULL));
    house_says(h, view(h, child(h, id, 0)), "paused.0=requested");
    (void)house_ok(h, "plan.resume", "'planId':'%s'", id);
    house_wait(h, 1);
    does(h, "do y", "'result':{'text':'Y'}");
    house_says(h, view(h, id), "status=completed");
    house_close(h);
}

static void a_cancelled_plan_takes_its_children_with_it(void **state)
{
    struct house *h = open_house();
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" SUB("p", STEP("x", ""), "") "]}");
    const char *inner;

    (void)state;
    house_wait(h, 1);
    inner = child(h, id, 0);
    (void)house_ok(h, "plan.cancel", "'planId':'%s','reason':'no need'", id);
    house_wait(h, 5000);
    house_says(h, view(h, id), "status=cancelled");
    house_says(h, view(h, inner), "status=cancelled");
    house_close(h);
}

static void children_go_on_after_a_restart(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(h, "'plan':{'goal':'g','steps':[" EACH("[5,6],'steps':[" STEP(
                                         "x", ",'effects':'idempotent'") "]") "]}");
    const char *inner;

    (void)state;
    house_wait(h, 1);
    does(h, "do x", "'result':{'text':'X5'}");
    inner = child(h, id, 0);
    house_restart(h);
    house_join(h, "calc", 4);
    house_wait(h, 5000);
    assert_string_equal(child(h, id, 0), inner);
    does(h, "do x", "'result':{'text':'X6'}");
    house_says(h, view(h, id), "status=completed; steps.0.attempts=1");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_have_equal_parts_of_what_is_left),
        cmocka_unit_test(the_last_child_has_all_that_is_left),
        cmocka_unit_test(a_child_that_comes_later_has_what_the_others_may_not_spend),
        cmocka_unit_test(an_estimate_is_the_share_of_its_step_alone),
        cmocka_unit_test(without_a_budget_a_child_has_none),
        cmocka_unit_test(a_child_has_the_time_that_is_left_of_plan_and_step),
        cmocka_unit_test(what_is_no_list_is_named),
        cmocka_unit_test(an_empty_list_is_done_at_once),
        cmocka_unit_test(items_times_steps_are_at_most_the_steps_of_a_plan),
        cmocka_unit_test(an_item_that_was_done_is_not_done_again_by_the_next_attempt),
        cmocka_unit_test(a_retry_of_the_plan_takes_the_items_that_were_done),
        cmocka_unit_test(the_answer_of_items_says_how_each_ended),
        cmocka_unit_test(a_line_of_an_item_is_cut_after_300_bytes),
        cmocka_unit_test(an_answer_that_is_too_large_has_no_results_of_items),
        cmocka_unit_test(the_result_of_a_plan_inside_has_those_of_its_last_steps),
        cmocka_unit_test(the_class_of_a_failure_is_that_of_the_step_that_ended_the_child),
        cmocka_unit_test(the_failure_of_a_child_has_its_class_and_its_step),
        cmocka_unit_test(a_child_that_is_cancelled_by_hand_fails_its_step_as_cancelled),
        cmocka_unit_test(a_child_without_time_or_money_fails_its_step_with_that_class),
        cmocka_unit_test(a_person_decides_about_a_step_of_children_that_failed),
        cmocka_unit_test(calls_are_nested_as_deep_as_may_be_and_no_deeper),
        cmocka_unit_test(a_pause_and_its_end_reach_the_children),
        cmocka_unit_test(a_cancelled_plan_takes_its_children_with_it),
        cmocka_unit_test(children_go_on_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
