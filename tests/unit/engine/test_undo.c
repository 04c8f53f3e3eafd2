/* The plan that undoes another: which steps it has, in which order, under which names and rules,
 * when it is made, and what it reports. */
#include <stdio.h>
#include <string.h>

#include "supervisor/plan/flow/child.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define UNDO(id, more)                                                                             \
    STEP(id, ",'effects':'idempotent','compensate':{'skill':'do','task':'undo " id "'}" more)
#define LAST STEP("last", ",'maxRetries':0")
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

/* Answers the oldest work of calc, whose task is this. */
static void does(struct house *h, const char *task)
{
    house_is(h, house_work(h, "calc", NULL), "task", task);
    house_done(h, "calc", "'result':{'text':'ok','data':{'n':[1,2]}}");
    house_wait(h, 1);
}

static void fails(struct house *h)
{
    house_is(h, house_work(h, "calc", NULL), "task", "do last");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
}

/* The plan that undoes it. */
static const char *undo_of(struct house *h, const char *id)
{
    const char *undo = house_get(h, view(h, id), "compensation.planId");

    assert_non_null(undo);
    return undo;
}

static const char *document(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s','document':true", undo_of(h, id));
}

/* ---- its steps ---- */

static void compensations_have_what_their_steps_say(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP(
               "a", ",'effects':'idempotent','compensate':{'skill':'do','task':'take "
                    "{{results.a.n.0}} back','parameters':{'all':'{{results.a.n}}'},"
                    "'timeoutMs':7000,'maxRetries':2}") "," UNDO("b", "") "," LAST "]}");

    (void)state;
    does(h, "do a");
    does(h, "do b");
    fails(h);
    house_says(h, document(h, id),
               "document.steps.#=2; document.steps.0.stepId=undo-b; "
               "document.steps.0.task=undo b; document.steps.0.parameters=-; "
               "document.steps.0.skill=do; document.steps.0.agentId=calc; "
               "document.steps.1.stepId=undo-a; document.steps.1.task=take 1 back; "
               "document.steps.1.parameters.all=[1,2]; document.steps.1.timeoutMs=7000; "
               "document.steps.1.maxRetries=2");
    does(h, "undo b");
    house_says(h, house_work(h, "calc", NULL), "task=take 1 back; parameters.all=[1,2]");
    house_close(h);
}

/* One after the other, the one that ended last first, whatever stands first in the plan. */
static void compensations_run_one_by_one_the_last_done_first(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" UNDO("a", ",'dependsOn':[]") "," UNDO(
               "b", ",'dependsOn':[]") ",{'stepId':'last','agentId':'calc','skill':'do',"
                                       "'task':'do last','maxRetries':0,'dependsOn':['a','b']}]}");

    (void)state;
    house_answer(h, "calc", "b", "'outcome':'completed','result':{'text':'B'}");
    house_wait(h, 1);
    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'A'}");
    house_wait(h, 1);
    fails(h);
    assert_non_null(house_work(h, "calc", "undo-a"));
    assert_null(house_work(h, "calc", "undo-b"));
    does(h, "undo a");
    does(h, "undo b");
    house_says(h, view(h, id), "status=failed; compensation.compensated=2; compensation.failed=0");
    house_close(h);
}

static void a_step_that_did_not_complete_is_not_undone(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" UNDO("a", "") "," UNDO(
               "s", ",'onFailure':'continue','maxRetries':0") "," STEP("n", "") "," LAST "]}");

    (void)state;
    does(h, "do a");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
    does(h, "do n");
    fails(h);
    house_says(h, document(h, id), "document.steps.#=1; document.steps.0.stepId=undo-a");
    does(h, "undo a");
    house_says(h, view(h, id),
               "status=failed; compensation.status=compensated; compensation.compensated=1");
    house_close(h);
}

/* ---- names ---- */

static void names_of_items_have_no_brackets_and_names_taken_get_a_number(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'e','task':'each','forEach':[5],"
           "'steps':[" UNDO("x", "") "]},{'stepId':'f','task':'each','forEach':[6],"
                                     "'steps':[" UNDO("x", "") "]}," UNDO("x-0", "") "," LAST "]}");

    (void)state;
    house_wait(h, 1);
    does(h, "do x");
    does(h, "do x");
    does(h, "do x-0");
    fails(h);
    house_says(h, document(h, id),
               "document.steps.#=3; document.steps.0.stepId=undo-x-0; "
               "document.steps.0.task=undo x-0; document.steps.1.stepId=undo-x-0.2; "
               "document.steps.1.task=undo x; document.steps.2.stepId=undo-x-0.3");
    house_close(h);
}

/* Two names of full length that differ in their last letter. */
static void names_are_cut_to_what_a_name_may_have(void **state)
{
    struct house *h = open_house();
    char name[LIMIT_ID_BYTES + 1];
    char want[LIMIT_ID_BYTES + 64];
    const char *id;
    const char *doc;

    (void)state;
    memset(name, 'a', LIMIT_ID_BYTES);
    name[LIMIT_ID_BYTES - 1] = 0;
    id = house_submit(h,
                      "'plan':{'goal':'g','steps':["
                      "{'stepId':'%sx','agentId':'calc','skill':'do','task':'do x','effects':"
                      "'idempotent','compensate':{'skill':'do','task':'undo x'}},"
                      "{'stepId':'%sy','agentId':'calc','skill':'do','task':'do y','effects':"
                      "'idempotent','compensate':{'skill':'do','task':'undo y'}}," LAST "]}",
                      name, name);
    does(h, "do x");
    does(h, "do y");
    fails(h);
    doc = document(h, id);
    (void)snprintf(want, sizeof want, "undo-%.*s", LIMIT_ID_BYTES - 5, name);
    house_is(h, doc, "document.steps.0.stepId", want);
    house_is(h, doc, "document.steps.0.task", "undo y");
    (void)snprintf(want, sizeof want, "undo-%.*s.2", LIMIT_ID_BYTES - 7, name);
    house_is(h, doc, "document.steps.1.stepId", want);
    house_close(h);
}

/* ---- what no agent can be asked for ---- */

static void what_cannot_be_made_is_for_a_person(void **state)
{
    struct house *h = open_house();
    char rest[1001];
    char want[2048];
    const char *id;
    const char *doc;

    (void)state;
    memset(rest, 'r', sizeof rest - 1);
    rest[sizeof rest - 1] = 0;
    id = house_submit(h,
                      "'plan':{'goal':'g','steps':[" STEP(
                          "a", ",'effects':'idempotent','compensate':{'skill':'do','task':"
                               "'{{results.a.missing}}%s'}") "," UNDO("b", "") "," LAST "]}",
                      rest);
    does(h, "do a");
    does(h, "do b");
    fails(h);
    does(h, "undo b");
    doc = document(h, id);
    house_says(h, doc,
               "document.steps.1.stepId=undo-a; document.steps.1.type=human_review; "
               "document.steps.1.onFailure=continue; "
               "document.steps.1.task=~Undo step a by hand, and approve when that is done. ; "
               "status=waiting");
    house_has(h, doc, "document.steps.1.task", "missing");
    /* a thousand letters of what it was to be */
    (void)snprintf(want, sizeof want, " It was to be: {{results.a.missing}}%.*s",
                   1000 - (int)strlen("{{results.a.missing}}"), rest);
    house_has(h, doc, "document.steps.1.task", want);
    (void)snprintf(want, sizeof want, "{{results.a.missing}}%.*s",
                   1001 - (int)strlen("{{results.a.missing}}"), rest);
    assert_null(strstr(house_get(h, doc, "document.steps.1.task"), want));
    house_close(h);
}

static void a_parameter_that_cannot_be_filled_is_for_a_person_too(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP(
               "a", ",'effects':'idempotent','compensate':{'skill':'do','task':'back','parameters':"
                    "{'p':'{{results.a.missing}}'}}") "," LAST "]}");

    (void)state;
    does(h, "do a");
    fails(h);
    house_says(h, document(h, id),
               "document.steps.#=1; document.steps.0.type=human_review; "
               "document.steps.0.task=~ It was to be: back");
    house_close(h);
}

/* ---- plans inside ---- */

static void a_plan_inside_is_undone_by_its_own_steps_or_by_its_step_alone(void **state)
{
    static const struct {
        const char *more, *wants;
    } cases[] = {
        {"", "document.steps.#=2; document.steps.0.stepId=undo-y; document.steps.1.stepId=undo-x"},
        {",'compensate':{'agentId':'calc','skill':'do','task':'undo all'}",
         "document.steps.#=1; document.steps.0.stepId=undo-p; document.steps.0.task=undo all"},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct house *h = open_house();
        const char *id =
            house_submit(h,
                         "'plan':{'goal':'g','steps':[{'stepId':'p','task':'in','plan':{'document':"
                         "{'steps':[" UNDO("x", "") "," UNDO("y", "") "]}}%s}," LAST "]}",
                         cases[i].more);
        house_wait(h, 1);
        does(h, "do x");
        does(h, "do y");
        fails(h);
        house_says(h, document(h, id), cases[i].wants);
        house_close(h);
    }
}

static void rounds_are_undone_from_the_last_to_the_first(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'r','task':'again','repeat':{'while':"
           "{'results.x.n':{'lt':3}},'max':5},'steps':[" STEP(
               "x", ",'effects':'idempotent','compensate':{'skill':'do','task':'undo "
                    "{{results.x.n}}'}") "]}," LAST "]}");

    (void)state;
    house_wait(h, 1);
    for (int n = 1; n <= 3; n++) {
        house_is(h, house_work(h, "calc", NULL), "task", "do x");
        house_done(h, "calc", "'result':{'data':{'n':%d}}", n);
        house_wait(h, 1);
    }
    fails(h);
    house_says(h, document(h, id),
               "document.steps.#=3; document.steps.0.stepId=undo-x; "
               "document.steps.0.task=undo 3; document.steps.1.stepId=undo-x.2; "
               "document.steps.1.task=undo 2; document.steps.2.stepId=undo-x.3; "
               "document.steps.2.task=undo 1");
    house_close(h);
}

/* Whose rows are not there any more nobody can undo but a person. */
static void a_plan_inside_that_was_deleted_is_for_a_person(void **state)
{
    struct house *h = open_house();
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" SUB("p", UNDO("x", ""), "") "," LAST "]}");
    struct journal_plan row;
    struct bt_error err;
    struct uuid inside;

    (void)state;
    house_wait(h, 1);
    assert_true(
        uuid_parse(str_from(house_get(h, view(h, id), "steps.0.children.planId")), &inside));
    house_is(h, house_work(h, "calc", NULL), "task", "do x");
    house_done(h, "calc",
               "'result':{'text':'a result that is longer than what is kept beside its reference, "
               "so that it is one'}");
    house_wait(h, 1);
    assert_int_equal(journal_plan_by_id(h->journal, inside, &row, &err), BT_OK);
    assert_int_equal(journal_plan_delete(h->journal, row.ix, STR_LIT("why"), h->wall, &err), BT_OK);
    fails(h);
    assert_false(h->dead);
    house_says(h, document(h, id),
               "document.steps.#=1; document.steps.0.stepId=undo-p; "
               "document.steps.0.type=human_review; document.steps.0.task=~by hand");
    house_has(h, document(h, id), "document.steps.0.task",
              "Its child plans are not in the journal any more.");
    house_close(h);
}

/* Its own failure has undone it; what it says of the plan around it stays to be done. */
static void a_plan_inside_that_undid_itself_is_not_undone_again(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" UNDO("a", "") "," SUB(
               "p", UNDO("x", "") "," STEP("last", ",'maxRetries':0"), ",'maxRetries':0") "]}");

    (void)state;
    does(h, "do a");
    does(h, "do x");
    fails(h);
    does(h, "undo x");
    does(h, "undo a");
    house_says(h, view(h, id),
               "status=failed; compensation.status=compensated; compensation.compensated=1");
    assert_int_equal(house_seen(h, "compensation_finished"), 2);
    house_close(h);
}

static void a_plan_inside_that_is_never_undone_is_left_as_it_is(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" UNDO(
               "a", "") ",{'stepId':'p','task':'in','plan':{'document':{'policy':{'compensate':"
                        "false},'steps':[" UNDO("x", "") "]}}}," LAST "]}");

    (void)state;
    does(h, "do a");
    does(h, "do x");
    fails(h);
    house_says(h, document(h, id), "document.steps.#=1; document.steps.0.stepId=undo-a");
    house_close(h);
}

static void there_may_be_nothing_to_undo(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'p','task':'in','plan':{'document':{'policy':{"
           "'compensate':false},'steps':[" UNDO("x", "") "]}}}," LAST "]}");

    (void)state;
    house_wait(h, 1);
    does(h, "do x");
    fails(h);
    house_says(h, view(h, id),
               "status=failed; compensation.status=compensated; "
               "compensation.compensated=0; compensation.planId=-");
    house_close(h);
}

/* ---- the document as a whole ---- */

static void rules_for_attempts_are_kept_and_those_for_the_whole_are_not(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'sessionId':'s','plan':{'goal':'g','steps':[" UNDO(
               "a", "") "," LAST "]},'policy':{'maxRetries':4,'stepTimeoutMs':45000,"
                        "'planTimeoutMs':90000,'budget':{'tokens':1000},'maxConcurrency':3,"
                        "'compensate':true}");
    const char *doc;
    char goal[96];

    (void)state;
    does(h, "do a");
    fails(h);
    doc = document(h, id);
    (void)snprintf(goal, sizeof goal, "Undo plan %s", id);
    house_is(h, doc, "document.goal", goal);
    house_says(h, doc,
               "document.policy.maxRetries=4; document.policy.stepTimeoutMs=45000; "
               "document.policy.planTimeoutMs=0; document.policy.maxConcurrency=1; "
               "document.policy.budget=-; document.policy.compensate=-; "
               "document.policy.synthesis=concat; sessionId=s; document.child.depth=1");
    house_is(h, doc, "document.child.of", id);
    house_close(h);
}

static void without_a_session_its_undoing_has_none(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(h, "'plan':{'goal':'g','steps':[" UNDO("a", "") "," LAST "]}");

    (void)state;
    does(h, "do a");
    fails(h);
    house_says(h, document(h, id), "sessionId=-; document.sessionId=-");
    house_close(h);
}

/* ---- what it reports ---- */

static void an_undoing_that_fails_is_told_with_the_counts(void **state)
{
    struct house *h = open_house();
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" UNDO("a", "") "," STEP(
                            "b", ",'effects':'idempotent','compensate':{'skill':'do','task':'undo "
                                 "b','maxRetries':0,'onFailure':'continue'}") "," LAST "]}");

    (void)state;
    does(h, "do a");
    does(h, "do b");
    fails(h);
    house_is(h, house_work(h, "calc", NULL), "task", "undo b");
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','usage':{'inputTokens':7},'failure':{'code':'INTERNAL',"
                 "'class':'PERMISSION_DENIED','message':'no','retryable':false}");
    house_wait(h, 1);
    does(h, "undo a");
    house_wait(h, 1);
    house_says(
        h, view(h, id),
        "status=failed; compensation.status=compensation_failed; compensation.compensated=1; "
        "compensation.failed=1; usage.inputTokens=7");
    house_close(h);
}

/* What a person has done by hand counts as undone. */
static void a_skipped_compensation_counts_as_done(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" UNDO("a", "") "," UNDO("b", "") "," LAST "]}");

    (void)state;
    does(h, "do a");
    does(h, "do b");
    fails(h);
    (void)house_ok(h, "plan.modify", "'planId':'%s','kind':'skip_steps','stepId':'undo-a'",
                   undo_of(h, id));
    does(h, "undo b");
    house_wait(h, 1);
    house_says(h, view(h, id),
               "status=failed; compensation.status=compensated; "
               "compensation.compensated=2; compensation.failed=0");
    house_close(h);
}

/* ---- when ---- */

static void after_a_restart_the_same_undoing_goes_on(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" UNDO("a", "") "," UNDO("b", "") "," LAST "]}");
    const char *undo;

    (void)state;
    does(h, "do a");
    does(h, "do b");
    fails(h);
    does(h, "undo b");
    undo = undo_of(h, id);
    house_restart(h);
    house_join(h, "calc", 4);
    house_wait(h, 1);
    assert_string_equal(undo_of(h, id), undo);
    house_wait(h, 5000);
    does(h, "undo a");
    house_says(h, view(h, id),
               "status=failed; compensation.status=compensated; "
               "compensation.compensated=2");
    house_close(h);
}

/* What the children still do cannot be undone yet. */
static void undoing_waits_for_children_that_are_still_open(void **state)
{
    struct house *h = open_house();
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" UNDO("a", ",'dependsOn':[]") "," SUB(
                            "p", UNDO("x", "") "," UNDO("y", ""),
                            ",'dependsOn':[]") ","
                                               "{'stepId':'last','agentId':'calc','skill':'do','"
                                               "task':'do last','maxRetries':0,"
                                               "'dependsOn':['a']}]}");

    (void)state;
    house_wait(h, 1);
    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'A'}");
    house_answer(h, "calc", "x", "'outcome':'completed','result':{'text':'X'}");
    house_wait(h, 1);
    assert_non_null(house_work(h, "calc", "y"));
    house_answer(h, "calc", "last",
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                 "'message':'no','retryable':false}");
    house_wait(h, 20000);
    house_says(h, document(h, id),
               "document.steps.#=2; document.steps.0.stepId=undo-x; "
               "document.steps.1.stepId=undo-a");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compensations_have_what_their_steps_say),
        cmocka_unit_test(compensations_run_one_by_one_the_last_done_first),
        cmocka_unit_test(a_step_that_did_not_complete_is_not_undone),
        cmocka_unit_test(names_of_items_have_no_brackets_and_names_taken_get_a_number),
        cmocka_unit_test(names_are_cut_to_what_a_name_may_have),
        cmocka_unit_test(what_cannot_be_made_is_for_a_person),
        cmocka_unit_test(a_parameter_that_cannot_be_filled_is_for_a_person_too),
        cmocka_unit_test(a_plan_inside_is_undone_by_its_own_steps_or_by_its_step_alone),
        cmocka_unit_test(rounds_are_undone_from_the_last_to_the_first),
        cmocka_unit_test(a_plan_inside_that_was_deleted_is_for_a_person),
        cmocka_unit_test(a_plan_inside_that_undid_itself_is_not_undone_again),
        cmocka_unit_test(a_plan_inside_that_is_never_undone_is_left_as_it_is),
        cmocka_unit_test(there_may_be_nothing_to_undo),
        cmocka_unit_test(rules_for_attempts_are_kept_and_those_for_the_whole_are_not),
        cmocka_unit_test(without_a_session_its_undoing_has_none),
        cmocka_unit_test(an_undoing_that_fails_is_told_with_the_counts),
        cmocka_unit_test(a_skipped_compensation_counts_as_done),
        cmocka_unit_test(after_a_restart_the_same_undoing_goes_on),
        cmocka_unit_test(undoing_waits_for_children_that_are_still_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
