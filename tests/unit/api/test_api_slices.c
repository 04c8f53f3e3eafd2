/*
 * Long reads go on over cycles, a slice of time in each: what they give is what they would give at
 * once. And what a credential sees is its own, whatever lies between.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

enum { PLANS = 99, STEPS = 60, ROW_US = 250 /* 32 rows are more than a slice */ };

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"

static void submit_many(struct house *h)
{
    for (int i = 0; i < PLANS; i++) {
        (void)house_submit(h, "'sessionId':'s%d','plan':{'goal':'g%d','steps':[" STEP("a", "") "]}",
                           i % 3, i);
        if (i % 4 == 0) {
            house_failed(h, "calc", "PERMISSION_DENIED", false);
        } else {
            house_done(h, "calc", "'result':{'text':'r%d'},'usage':{'inputTokens':%d}", i, i);
        }
    }
}

static const char *submit_large(struct house *h)
{
    const char *steps = "";
    const char *id;

    for (int i = 0; i < STEPS; i++) {
        steps = house_text(h, "%s%s{'stepId':'s%d','agentId':'calc','skill':'do','task':'t'}",
                           steps, i > 0 ? "," : "", i);
    }
    id = house_submit(h, "'plan':{'goal':'large','steps':[%s]}", steps);
    for (int i = 0; i < STEPS - 1; i++) {
        house_done(h, "calc", "'result':{'text':'r%d'}", i);
    }
    return id;
}

/* type, and fields: "%s" stands for the large plan; the member that matters, NULL = all. */
static const struct {
    const char *type, *fields, *member;
} reads[] = {
    {"plan.list", "'limit':100"},
    {"plan.list", "'limit':100,'status':'failed'"},
    {"plan.list", "'limit':100,'sessionId':'s1'"},
    {"plan.list", "'limit':100,'idPrefix':'01'"},
    {"plan.list", "'limit':7"},
    {"plan.cost", "'limit':1000"},
    {"plan.cost", "'limit':1000,'sessionId':'s2'"},
    {"plan.cost", "'limit':7"},
    {"plan.cost", "'planId':'%s'"},
    {"plan.get", "'planId':'%s'"},
    {"plan.result", "'planId':'%s'"},
    {"plan.history", "'planId':'%s'"},
    {"plan.stats", "'planId':'%s'"},
    {"events.read", "'fromSeq':1,'limit':300", "events"},
    {"events.read", "'fromSeq':1,'limit':1000,'types':['plan_completed']", "events"},
    {"events.read", "'fromSeq':1,'limit':1000,'planId':'%s'", "events"},
    {"session.get", "'sessionId':'s1'"},
    {"session.list", " "},
};

/* After a new start, so that nothing is in memory. */
static char *asked(struct house *h, size_t i, const char *large, uint32_t row_us)
{
    const char *fields = reads[i].fields;
    const char *at = strstr(fields, "%s");
    const char *answer;

    if (at != NULL) {
        fields = house_text(h, "%.*s%s%s", (int)(at - fields), fields, large, at + 2);
    }
    house_restart(h);
    h->slow_us = row_us;
    answer = house_ask(h, reads[i].type, "%s", fields);
    for (int n = 0; n < 100 && answer == NULL; n++) {
        house_cycle(h);
        answer = house_late_answer(h);
    }
    h->slow_us = 0;
    assert_non_null(answer);
    house_is(h, answer, "ok", "true");
    return strdup(reads[i].member != NULL ? house_get(h, answer, reads[i].member) : answer);
}

static void what_is_read_in_slices_is_what_is_read_at_once(void **state)
{
    struct house *h = house_open();
    const char *large;

    (void)state;
    house_join(h, "calc", 1);
    submit_many(h);
    large = submit_large(h);
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        char *whole = asked(h, i, large, 0);
        char *slices = asked(h, i, large, ROW_US);
        if (strcmp(whole, slices) != 0) {
            fail_msg("%s %s:\n%s\nnot\n%s", reads[i].type, reads[i].fields, slices, whole);
        }
        free(whole);
        free(slices);
    }
    house_close(h);
}

/* Plans of two submitters and of the token, in turn. */
static void each_sees_its_own_of_what_lies_in_between(void **state)
{
    static const struct {
        const char *type, *fields, *count;
        const char *own; /* of a submitter */
        const char *all; /* of the token */
    } lists[] = {
        {"plan.list", " ", "plans.#", "3", "9"},
        {"plan.list", "'idPrefix':'01'", "plans.#", "3", "9"},
        {"plan.cost", " ", "plans.#", "3", "9"},
        {"review.list", " ", "reviews.#", "3", "9"},
        {"events.read", "'fromSeq':1,'types':['plan_started']", "events.#", "3", "9"},
    };
    static const char *const who[] = {"submitter", NULL, "other"};
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    for (int i = 0; i < 9; i++) {
        (void)house_as(h, who[i % 3]);
        (void)house_submit(h,
                           "'sessionId':'s%d','plan':{'goal':'g%d','steps':[" STEP(
                               "a", ",'requiresApproval':true") "]}",
                           i, i);
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (size_t k = 0; k < 3; k++) {
            const char *answer;
            (void)house_as(h, who[k]);
            answer = house_ok(h, lists[i].type, "%s", lists[i].fields);
            house_is(h, answer, lists[i].count, who[k] == NULL ? lists[i].all : lists[i].own);
        }
    }
    (void)house_as(h, "submitter"); /* a session in which nobody has said anything */
    house_says(h, house_ok(h, "session.get", "'sessionId':'s0'"),
               "owner=submitter; planHistory.#=1; messagesTotal=0");
    house_refused(h, "NOT_FOUND", "", "session.get", "'sessionId':'s1'");
    house_refused(h, "NOT_FOUND", "", "session.get", "'sessionId':'s2'");
    house_close(h);
}

/* A read whose type is written with an escape is no read when its turn is chosen. It ended the
 * daemon while another one was under way. */
static void a_read_out_of_turn_is_busy_while_another_goes_on(void **state)
{
    struct house *h = house_open();
    const char *request;

    (void)state;
    house_join(h, "calc", 1);
    submit_many(h);
    house_restart(h);
    h->slow_us = ROW_US;
    request =
        house_text(h, "{'v':1,'type':'plan.list','id':'q','token':'" HOUSE_TOKEN "','limit':100}");
    fake_link_request(h->link, false, ++h->requests, request, strlen(request));
    house_cycle_once(h);
    assert_null(house_late_answer(h));
    request = house_text(h, "{'v':1,'type':'plan.lis\\u0074','id':'q','token':'" HOUSE_TOKEN "'}");
    fake_link_request(h->link, false, ++h->requests, request, strlen(request));
    house_cycle_once(h);
    house_says(h, house_late_answer(h), "error.code=BUSY");
    h->slow_us = 0;
    house_cycle(h);
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_in_slices_is_what_is_read_at_once),
        cmocka_unit_test(each_sees_its_own_of_what_lies_in_between),
        cmocka_unit_test(a_read_out_of_turn_is_busy_while_another_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
