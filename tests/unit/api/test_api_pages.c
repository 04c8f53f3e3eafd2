/* Lists that an answer cuts: with more than the cap there are exactly as many as the cap. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"

enum {
    PAGE = 1000, /* of messages, sessions, reviews, steps */
    PLANS_SHOWN = 100,
    UPSTREAM = 64,
    PARAMETERS = 65536,
    REVIEW_TEXT = 1024 * 1024, /* of all results before it, as they are stored */
    REVIEW_DATA = 100000,
    NAMED = 20,
    LINE = 120
};

/* The numbers [0, n) in the place of '#' of the pattern, as a list. The caller frees it. */
static char *listed(const char *pattern, int n)
{
    char *text = calloc((size_t)n + 1, LINE);
    size_t at = 0;

    assert_non_null(text);
    for (int i = 0; i < n; i++) {
        const size_t before = strcspn(pattern, "#");
        at += (size_t)snprintf(text + at, LINE, "%s%.*s%d%s", i > 0 ? "," : "", (int)before,
                               pattern, i, pattern + before + 1);
    }
    return text;
}

static void a_page_is_no_longer_than_its_cap(void **state)
{
    static const struct {
        const char *type, *fields;
        int cap;
    } lists[] = {{"session.list", "", 1000},
                 {"review.list", "", 1000},
                 {"plan.list", "", 100},
                 {"events.read", "'fromSeq':1,", 1000},
                 {"session.get", "'sessionId':'s',", 1000}};
    struct house *h = house_open();

    (void)state;
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'what is the status?'");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        (void)house_ok(h, lists[i].type, "%s'limit':%d", lists[i].fields, lists[i].cap);
        house_refused(h, "INVALID", "limit: expected an integer from 0 to", lists[i].type,
                      "%s'limit':%d", lists[i].fields, lists[i].cap + 1);
    }
    house_close(h);
}

static void a_session_shows_its_last_plans(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    for (int i = 0; i <= PLANS_SHOWN; i++) {
        (void)house_submit(h, "'sessionId':'s','plan':{'goal':'g%d','steps':[" STEP("a", "") "]}",
                           i);
        house_done(h, "calc", "'result':{'text':'1'}");
    }
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               house_text(h, "planHistory.#=%d; planHistory.0.task=g1; planHistory.99.task=g100",
                          PLANS_SHOWN));
    house_close(h);
}

static void a_result_has_a_page_of_steps(void **state)
{
    struct house *h = house_open();
    char *steps = listed("{'agentId':'calc','skill':'do','task':'t#'}", PAGE + 1);
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'goal':'g','steps':[%s]}", steps);
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id),
               house_text(h, "steps.#=%d", PAGE));
    free(steps);
    house_close(h);
}

static void a_review_shows_some_of_many_results_before_it(void **state)
{
    struct house *h = house_open();
    char *steps = listed("{'stepId':'s#','agentId':'calc','skill':'do','task':'t','dependsOn':[]}",
                         UPSTREAM + 1);
    char *deps = listed("'s#'", UPSTREAM + 1);
    const char *id;

    (void)state;
    house_join(h, "calc", 64);
    id = house_submit(h,
                      "'plan':{'goal':'g','steps':[%s,{'stepId':'q','type':'human_review','task':"
                      "'ok?','dependsOn':[%s]}]},'policy':{'maxConcurrency':100}",
                      steps, deps);
    for (int i = 0; i <= UPSTREAM; i++) {
        house_done(h, "calc", "'result':{'text':'x'}");
    }
    house_says(h, house_ok(h, "review.list", "'planId':'%s'", id),
               house_text(h,
                          "reviews.#=1; reviews.0.dependsOn.#=%d; "
                          "reviews.0.upstreamResults.#=%d",
                          UPSTREAM + 1, UPSTREAM));
    free(deps);
    free(steps);
    house_close(h);
}

/* Parameters {'p': text}, which have six bytes beside the text. */
static const char *review_of(struct house *h, size_t bytes)
{
    char *text = calloc(bytes, 1);
    const char *id;

    assert_non_null(text);
    memset(text, 'x', bytes - 6 - 1);
    id = house_submit(h,
                      "'plan':{'goal':'g','steps':[" STEP(
                          "a", ",'requiresApproval':true,'parameters':{'p':'%s'}") "]}",
                      text);
    free(text);
    return house_ok(h, "review.list", "'planId':'%s'", id);
}

static void a_list_of_reviews_has_parameters_up_to_their_cap(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_says(h, review_of(h, PARAMETERS + 1),
               "reviews.0.parameters=*; reviews.0.parametersLen=-");
    house_says(h, review_of(h, PARAMETERS + 2),
               house_text(h, "reviews.0.parameters=-; reviews.0.parametersLen=%d", PARAMETERS + 1));
    house_says(h,
               house_ok(h, "review.get", "'reviewId':'%s'",
                        house_get(h, review_of(h, PARAMETERS + 2), "reviews.0.reviewId")),
               "review.parameters=*; review.parametersLen=-");
    house_close(h);
}

/* Completes a step with a text, or data, that makes its result, or its data, so long in
 * MessagePack: a text of 64 KiB or more has five bytes in front, a shorter one three. */
static void done_with(struct house *h, bool data, uint32_t len)
{
    const uint32_t member = data ? 0 : 1 + 1 + 4; /* {"text": */
    const uint32_t n = len - member - (len < 65536 ? 3 : 5);
    char *text = calloc(n + 1, 1);

    assert_non_null(text);
    memset(text, 'x', n);
    house_done(h, "calc", data ? "'result':{'text':'t','data':'%s'}" : "'result':{'text':'%s'}",
               text);
    free(text);
}

/* What a review of two steps with results of these lengths shows of the second. */
static const char *second_result(struct house *h, bool data, uint32_t first, uint32_t second)
{
    const char *review;

    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
                              "b", ",'dependsOn':[]") ",{'stepId':'q','type':'human_review',"
                                                      "'task':'ok?','dependsOn':['a','b']}]}");
    done_with(h, data, first);
    done_with(h, data, second);
    review = house_get(h, house_ok(h, "review.list", " "), "reviews.0.reviewId");
    review = house_ok(h, "review.get", "'reviewId':'%s'", review);
    house_says(h, review,
               house_text(h,
                          "review.upstreamResults.0.truncated=-; "
                          "review.upstreamResults.0.resultLen=-; "
                          "review.upstreamResults.0.data=%s",
                          data ? "*" : "-"));
    return house_get(h, review, "review.upstreamResults.1");
}

static void a_review_has_results_up_to_their_cap_in_all(void **state)
{
    enum { FIRST = 600000, FIRST_DATA = 50000 };

    (void)state;
    for (int over = 0; over < 2; over++) {
        struct house *h = house_open();
        const char *second;
        house_join(h, "calc", 2);
        second = second_result(h, false, FIRST, REVIEW_TEXT - (FIRST - 11) + (uint32_t)over);
        house_says(h, second, over == 0 ? "truncated=-; resultLen=-" : "truncated=true");
        if (over != 0) {
            house_is(h, second, "resultLen",
                     house_text(h, "%d", REVIEW_TEXT - (FIRST - 11) + over));
        }
        house_close(h);
        h = house_open();
        house_join(h, "calc", 2);
        second = second_result(h, true, FIRST_DATA, REVIEW_DATA - FIRST_DATA + (uint32_t)over);
        house_says(h, second, over == 0 ? "data=*; truncated=-" : "data=-; truncated=-");
        house_close(h);
    }
}

/* The answer of a plan in which n steps were not done. */
static const char *answer_without(struct house *h, int n)
{
    char *steps = listed("{'stepId':'s#','agentId':'calc','skill':'do','task':'t','maxRetries':0,"
                         "'onFailure':'continue','dependsOn':[]}",
                         n + 1);
    const char *id = house_submit(h, "'plan':{'goal':'g','steps':[%s]}", steps);

    free(steps);
    house_done(h, "calc", "'result':{'text':'x'}");
    for (int i = 0; i < n; i++) {
        house_failed(h, "calc", "PERMISSION_DENIED", false);
    }
    return house_get(h, house_ok(h, "plan.result", "'planId':'%s'", id), "aggregatedResult");
}

static void an_answer_names_the_first_steps_that_were_not_done(void **state)
{
    struct house *h = house_open();
    const char *text;

    (void)state;
    house_join(h, "calc", 64);
    text = answer_without(h, NAMED);
    assert_non_null(text);
    assert_non_null(strstr(text, "- Step 21 "));
    assert_null(strstr(text, "more step"));
    text = answer_without(h, NAMED + 1);
    assert_non_null(strstr(text, "- Step 21 "));
    assert_null(strstr(text, "- Step 22 "));
    assert_non_null(strstr(text, "1 more step: baton status"));
    text = answer_without(h, NAMED + 2);
    assert_non_null(strstr(text, "2 more steps: baton status"));
    house_close(h);
}

/* Types of events as one list of names, of so many bytes with what separates them. */
static void types_are_bounded(void **state)
{
    static const char name[] = "'plan_step_completed'";
    struct house *h = house_open();
    char types[1200] = "";

    (void)state;
    for (int i = 0; i < 40; i++) {
        (void)snprintf(types + strlen(types), sizeof types - strlen(types), "%s%s",
                       i > 0 ? "," : "", name);
    }
    house_refused(h, "LIMIT", "types: at most 500 bytes", "events.read", "'fromSeq':1,'types':[%s]",
                  types);
    (void)house_ok(h, "events.read", "'fromSeq':1,'types':['plan_step_completed','plan_started']");
    house_close(h);
}

/* The newest ones, as many as one answer holds; those before them can be had. */
static void a_session_of_long_messages_is_cut_at_its_oldest(void **state)
{
    enum { SAID = 495, LONG = 8192 };
    struct house *h = house_open();
    char text[LONG + 1];
    const char *page;
    long n;
    long first;

    (void)state;
    memset(text, 'x', LONG);
    text[LONG] = 0;
    for (int i = 0; i < SAID; i++) {
        (void)house_ok(h, "session.say", "'sessionId':'s','text':'%s'", text);
    }
    page = house_ok(h, "session.get", "'sessionId':'s','limit':1000");
    n = strtol(house_get(h, page, "messages.#"), NULL, 10);
    if (n <= SAID / 16 || n >= 2 * SAID) {
        fail_msg("%ld messages", n);
    }
    house_says(h, page,
               house_text(h, "messagesTotal=%d; messages.%ld.n=%d", 2 * SAID, n - 1, 2 * SAID));
    first = strtol(house_get(h, page, "messages.0.n"), NULL, 10);
    assert_int_equal(first, 2 * SAID - n + 1);
    page = house_ok(h, "session.get", "'sessionId':'s','limit':2,'before':%ld", first);
    house_says(h, page, house_text(h, "messages.#=2; messages.1.n=%ld", first - 1));
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_no_longer_than_its_cap),
        cmocka_unit_test(a_session_shows_its_last_plans),
        cmocka_unit_test(a_session_of_long_messages_is_cut_at_its_oldest),
        cmocka_unit_test(a_result_has_a_page_of_steps),
        cmocka_unit_test(a_review_shows_some_of_many_results_before_it),
        cmocka_unit_test(a_list_of_reviews_has_parameters_up_to_their_cap),
        cmocka_unit_test(a_review_has_results_up_to_their_cap_in_all),
        cmocka_unit_test(types_are_bounded),
        cmocka_unit_test(an_answer_names_the_first_steps_that_were_not_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
