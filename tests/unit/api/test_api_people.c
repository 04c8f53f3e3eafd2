/* review.list, get and decide: what waits for a person, and what a person decides. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"

/* The id of the only open review. */
static const char *open_review(struct house *h)
{
    const char *list = house_ok(h, "review.list", " ");

    house_is(h, list, "reviews.#", "1");
    return house_get(h, list, "reviews.0.reviewId");
}

static void an_approval_shows_what_would_run_and_runs_what_was_edited(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *review;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(
        h, "'plan':{'steps':[" STEP("a", "") "," STEP(
               "b", ",'requiresApproval':true,'parameters':{'n':'{{results.a.text}}'}") "]}");
    house_says(h, house_ok(h, "review.list", " "), "reviews.#=0; truncated=-");
    house_done(h, "calc", "'result':{'text':'five'}");
    assert_null(house_work(h, "calc", NULL));
    house_says(
        h, house_ok(h, "review.list", " "),
        house_text(h,
                   "reviews.#=1; reviews.0.planId=%s; reviews.0.stepId=b; "
                   "reviews.0.kind=before_step; reviews.0.stepIndex=1; reviews.0.task=do b; "
                   "reviews.0.agentId=calc; reviews.0.skill=do; reviews.0.parameters.n=five; "
                   "reviews.0.effects=idempotent; reviews.0.until=-; reviews.0.dependsOn=[\"a\"]; "
                   "reviews.0.attempt=0; "
                   "reviews.0.prompt=do b",
                   id));
    review = open_review(h);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               house_text(h,
                          "steps.1.waiting.kind=person; steps.1.waiting.reviewId=%s; "
                          "status=waiting",
                          review));
    house_says(h, house_ok(h, "review.get", "'reviewId':'%s'", review),
               "review.stepId=b; review.parameters.n=five; review.upstreamResults.0.result=five; "
               "review.decision=-");
    house_refused(h, "INVALID", "edit: expected the new parameters", "review.decide",
                  "'reviewId':'%s','decision':'approve','edit':[1]", review);
    house_refused(h, "INVALID", "edit: goes with decision approve", "review.decide",
                  "'reviewId':'%s','decision':'reject','edit':{'n':1}", review);
    (void)house_ok(h, "review.decide",
                   "'reviewId':'%s','decision':'approve','edit':{'n':'six'},'comment':'go',"
                   "'by':{'user':'Ann'}",
                   review);
    house_is(h, house_work(h, "calc", "b"), "parameters.n", "six");
    house_says(h, house_event(h, "review_decided"),
               house_text(h, "reviewId=%s; decision=approve; comment=go; by.user=Ann; by.id=local",
                          review));
    house_says(h, house_ok(h, "review.get", "'reviewId':'%s'", review),
               "review.decision=approve; review.comment=go; review.by.user=Ann; review.edit.n=six; "
               "review.parameters.n=five; review.decidedAt=*; review.kind=before_step");
    house_done(h, "calc", "'result':{'text':'6'}");
    house_says(h, house_ok(h, "plan.history", "'planId':'%s'", id),
               house_text(h,
                          "reviews.#=1; reviews.0.reviewId=%s; reviews.0.decision=approve; "
                          "reviews.0.comment=go",
                          review));
    house_close(h);
}

static void the_same_decision_again_has_the_same_answer(void **state)
{
    struct house *h = house_open();
    const char *review;

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, "'plan':{'steps':[" STEP("a", ",'requiresApproval':true") "]}");
    review = open_review(h);
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve','comment':'go'",
                   review);
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve','comment':'go'",
                   review);
    house_refused(h, "CONFLICT", "", "review.decide",
                  "'reviewId':'%s','decision':'approve','comment':'stop'", review);
    house_refused(h, "CONFLICT", "", "review.decide",
                  "'reviewId':'%s','decision':'reject','comment':'go'", review);
    house_refused(h, "CONFLICT", "", "review.decide",
                  "'reviewId':'%s','decision':'approve','comment':'go','edit':{'n':1}", review);
    assert_int_equal(house_seen(h, "review_decided"), 1);
    house_done(h, "calc", "'result':{'text':'6'}");
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve','comment':'go'",
                   review);
    house_refused(h, "NOT_FOUND", "no open review has the id 'x'", "review.decide",
                  "'reviewId':'x','decision':'approve'");
    house_refused(h, "INVALID", "decision", "review.decide", "'reviewId':'%s','decision':'perhaps'",
                  review);
    house_refused(h, "INVALID", "decision", "review.decide", "'reviewId':'%s'", review);
    house_refused(h, "NOT_FOUND", "no review has the id 'x'", "review.get", "'reviewId':'x'");
    house_refused(h, "INVALID", "reviewId", "review.get", " ");
    house_refused(h, "NOT_FOUND", "", "review.get",
                  "'reviewId':'01A20EEF-370B-70A0-99DD-E3770DD612CF/a/1'");
    house_refused(h, "NOT_FOUND", "", "review.decide",
                  "'reviewId':'01A20EEF-370B-70A0-99DD-E3770DD612CF/a/1','decision':'approve'");
    house_close(h);
}

static void a_rejected_step_fails_and_a_skipped_one_does_not(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'requiresApproval':true") "]}");
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'reject','comment':'no way'",
                   open_review(h));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=failed; steps.0.status=failed; steps.0.error=~no way");
    id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'requiresApproval':true") "]}");
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'skip'", open_review(h));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "steps.0.status=skipped");
    house_close(h);
}

static void an_approval_that_nobody_gives_is_denied_in_time(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(
        h, "'plan':{'steps':[" STEP("a", ",'requiresApproval':true,'approvalTimeoutMs':2000") "]}");
    house_says(h, house_ok(h, "review.list", " "), "reviews.0.until=2023-11-14T22:13:22.000Z");
    house_wait(h, 1999);
    house_says(h, house_ok(h, "review.list", " "), "reviews.#=1");
    house_wait(h, 1);
    house_says(h, house_ok(h, "review.list", " "), "reviews.#=0");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=failed");
    house_close(h);
}

static void a_question_to_a_person_is_answered_by_words_and_data(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(
        h, "'plan':{'steps':[{'stepId':'q','type':'human_review','task':'Which day?'}]}");
    house_says(h, house_ok(h, "review.list", " "),
               "reviews.0.kind=human_review; reviews.0.prompt=Which day?; reviews.0.agentId=-");
    (void)house_ok(h, "review.decide",
                   "'reviewId':'%s','decision':'approve','comment':'monday','edit':{'day':1}",
                   open_review(h));
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id),
               "status=completed; steps.0.result.text=monday; steps.0.result.data.day=1");
    id = house_submit(
        h, "'plan':{'steps':[{'stepId':'q','type':'human_review','task':'Which day?'}]}");
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve','edit':'tuesday'",
                   open_review(h));
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id),
               "steps.0.result.text=tuesday; steps.0.result.data=-");
    id = house_submit(
        h, "'plan':{'steps':[{'stepId':'q','type':'human_review','task':'Which day?'}]}");
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve','edit':[2]",
                   open_review(h));
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id),
               "steps.0.result.text=-; steps.0.result.data=[2]");
    id = house_submit(
        h, "'plan':{'steps':[{'stepId':'q','type':'human_review','task':'Which day?'}]}");
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve'", open_review(h));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
    house_close(h);
}

static void a_failed_step_is_asked_about(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *first;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'onFailure':'ask','maxRetries':0") "]}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_says(h, house_ok(h, "review.list", "'planId':'%s'", id),
               "reviews.0.kind=failure; reviews.0.error=-; reviews.0.prompt=~no luck");
    first = open_review(h);
    (void)house_ok(h, "review.decide",
                   "'reviewId':'%s','decision':'approve','comment':'try harder'", first);
    house_says(h, house_work(h, "calc", "a"), "attempt=2; feedback=~try harder");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    assert_string_not_equal(first, open_review(h));
    house_refused(h, "CONFLICT", "; open: ", "review.decide", "'reviewId':'%s','decision':'skip'",
                  first);
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'reject'", open_review(h));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=failed");
    house_close(h);
}

static void an_agent_asks_for_input(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    house_answer(h, "calc", "a",
                 "'outcome':'needs_input','need':{'kind':'input','prompt':'How "
                 "many?','schema':{'type':'object',"
                 "'properties':{'n':{'type':'integer'}},'required':['n']}}");
    house_says(h, house_ok(h, "review.list", " "),
               "reviews.#=1; reviews.0.kind=input; reviews.0.prompt=How many?");
    house_refused(h, "INVALID", "n", "review.decide",
                  "'reviewId':'%s','decision':'approve','edit':{'n':'x'}", open_review(h));
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve','edit':{'n':3}",
                   open_review(h));
    house_says(h, house_work(h, "calc", "a"), "attempt=2");
    house_done(h, "calc", "'result':{'text':'3'}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
    house_close(h);
}

static void a_sign_off_is_of_the_whole_plan(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *first;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(
        h, "'plan':{'goal':'add','steps':[" STEP("a", ",'parameters':{'n':1}") "," STEP(
               "b", "") "],"
                        "'policy':{'signoff':true,'planTimeoutMs':60000,'budget':{'tokens':9}}}");
    assert_null(house_work(h, "calc", NULL));
    first = open_review(h);
    house_says(h, house_ok(h, "review.list", " "),
               "reviews.0.kind=plan; reviews.0.stepId=-; reviews.0.revision=1; "
               "reviews.0.stepCount=2; reviews.0.budget.tokens=9; reviews.0.timeoutMs=60000; "
               "reviews.0.steps=-");
    house_says(h, house_ok(h, "review.get", "'reviewId':'%s'", first),
               "review.steps.#=2; review.steps.0.stepId=a; review.steps.0.parameters.n=1; "
               "review.steps.1.dependsOn=-; review.signedOffRevision=-; "
               "review.steps.0.status=-; review.steps.0.agentId=calc");
    house_refused(h, "INVALID", "cannot be skipped", "review.decide",
                  "'reviewId':'%s','decision':'skip'", first);
    house_refused(h, "INVALID", "nothing to edit", "review.decide",
                  "'reviewId':'%s','decision':'approve','edit':{'a':1}", first);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=pending; paused=[\"signoff\"]; steps.0.waiting.kind=person");
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve'", first);
    assert_non_null(house_work(h, "calc", "a"));
    /* A change is signed off again. */
    (void)house_ok(h, "plan.modify", "'planId':'%s','kind':'skip_steps','stepId':'b'", id);
    house_says(h, house_ok(h, "review.get", "'reviewId':'%s'", open_review(h)),
               "review.revision=2; review.signedOffRevision=1; review.steps.0.status=in_progress; "
               "review.steps.1.status=skipped");
    assert_string_not_equal(first, open_review(h));
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'reject'", open_review(h));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=cancelled; failureReason=Rejected by a reviewer; steps.0.stop=fenced");
    house_close(h);
}

static void a_review_that_nobody_decided_keeps_its_kind(void **state)
{
    struct house *h = house_open();
    const char *review;
    const char *id;

    (void)state;
    house_join_as(h, "calc", 1,
                  "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'}]", "");
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "],'policy':{'signoff':true}}");
    review = open_review(h);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_says(h, house_ok(h, "review.get", "'reviewId':'%s'", review),
               "review.kind=plan; review.decision=-; review.error=~gone on without");
    id = house_submit(h,
                      "'goal':'fly','planner':'agent:calc','policy':{'onInvalidPlan':'interrupt'}");
    house_done(h, "calc", "'result':{'data':{'impossible':'nobody can fly'}}");
    review = open_review(h);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_says(h, house_ok(h, "review.get", "'reviewId':'%s'", review),
               "review.kind=planning; review.decision=-; review.error=~nobody can fly");
    house_close(h);
}

static void reviews_are_listed_up_to_the_limit_and_by_plan(void **state)
{
    struct house *h = house_open();
    const char *ids[3];

    (void)state;
    house_join(h, "calc", 1);
    for (int i = 0; i < 3; i++) {
        ids[i] = house_submit(h, "'plan':{'steps':[" STEP("a", ",'requiresApproval':true") "]}");
    }
    house_says(h, house_ok(h, "review.list", " "), "reviews.#=3; truncated=-");
    house_says(h, house_ok(h, "review.list", "'limit':3"), "reviews.#=3; truncated=-");
    house_says(h, house_ok(h, "review.list", "'limit':2"), "reviews.#=2; truncated=true");
    house_says(h, house_ok(h, "review.list", "'planId':'%s'", ids[1]),
               house_text(h, "reviews.#=1; reviews.0.planId=%s", ids[1]));
    house_is(h, house_ok(h, "review.list", "'planId':'x'"), "reviews.#", "0");
    house_refused(h, "INVALID", "limit", "review.list", "'limit':1001");
    (void)house_ok(h, "review.list", "'limit':1000");
    house_close(h);
}

/* Asks two things in one turn of the daemon; returns the answer to the second. */
static const char *ask_in_one_turn(struct house *h, const char *first, const char *second)
{
    const char *of[] = {first, second};

    for (int i = 0; i < 2; i++) {
        const char *bytes = house_text(h, "{'v':1,'id':'q','token':'" HOUSE_TOKEN "',%s}", of[i]);
        fake_link_request(h->link, false, ++h->requests, bytes, strlen(bytes));
    }
    house_cycle(h);
    return house_late_answer(h);
}

/* Its row is not written yet; of those that have one none is left out, readable or not. */
static void a_review_is_listed_from_the_turn_after_it_began(void **state)
{
    struct house *h = house_open();
    const char *list;
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':["
                         "{'stepId':'q','type':'human_review','task':'ok?','dependsOn':[]},"
                         "{'stepId':'w','wait':{'signal':'go'},'task':'t','dependsOn':[]},"
                         "{'stepId':'r','type':'human_review','task':'ok?','dependsOn':['w']}]}");
    list = house_text(h, "'type':'review.list','planId':'%s'", id);
    house_says(h,
               ask_in_one_turn(
                   h, house_text(h, "'type':'plan.signal','planId':'%s','name':'go'", id), list),
               "ok=true; reviews.#=1; reviews.0.stepId=q; reviews.0.askedAt=*");
    house_says(h, house_ok(h, "review.list", "'planId':'%s'", id),
               "reviews.#=2; reviews.1.stepId=r; reviews.1.askedAt=*");
    house_fail_read(h, 1);
    house_says(h,
               ask_in_one_turn(h,
                               "'type':'plan.submit','plan':{'goal':'g','steps':[{'stepId':'q',"
                               "'type':'human_review','task':'ok?'}]}",
                               list),
               "ok=true; reviews.#=2; reviews.0.askedAt=-; reviews.1.askedAt=-");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_approval_shows_what_would_run_and_runs_what_was_edited),
        cmocka_unit_test(the_same_decision_again_has_the_same_answer),
        cmocka_unit_test(a_review_that_nobody_decided_keeps_its_kind),
        cmocka_unit_test(a_rejected_step_fails_and_a_skipped_one_does_not),
        cmocka_unit_test(an_approval_that_nobody_gives_is_denied_in_time),
        cmocka_unit_test(a_question_to_a_person_is_answered_by_words_and_data),
        cmocka_unit_test(a_failed_step_is_asked_about),
        cmocka_unit_test(an_agent_asks_for_input),
        cmocka_unit_test(a_sign_off_is_of_the_whole_plan),
        cmocka_unit_test(reviews_are_listed_up_to_the_limit_and_by_plan),
        cmocka_unit_test(a_review_is_listed_from_the_turn_after_it_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
