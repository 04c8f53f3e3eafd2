/* A request that is repeated with its key is the same in every member, or refused. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id) "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'}"
#define PLAN "'plan':{'goal':'g','steps':[" STEP("a") "]}"

/* Each differs from each other one. */
static const char *const submits[] = {
    PLAN,
    "'plan':{'goal':'h','steps':[" STEP("a") "]}",
    "'plan':{'goal':'g','steps':[" STEP("b") "]}",
    PLAN ",'policy':{'maxRetries':0}",
    PLAN ",'policy':{'maxRetries':1}",
    PLAN ",'dryRun':true",
    PLAN ",'lenient':true",
    PLAN ",'dryRun':true,'lenient':true",
    PLAN ",'sessionId':'s'",
    PLAN ",'sessionId':'t'",
    "'goal':'do a','planner':'agent:boss'",
    "'goal':'do b','planner':'agent:boss'",
    "'goal':'do a','planner':'agent:other'",
    "'goal':'do a','planner':'agent:boss','constraints':['x']",
    "'goal':'do a','planner':'agent:boss','constraints':['y']",
    "'goal':'do a','planner':'agent:boss','constraints':['x','y']",
    "'goal':'do a','planner':'agent:boss','constraints':['y','x']",
};

enum { SUBMITS = sizeof submits / sizeof submits[0] };

static void a_submission_with_a_key_is_the_same_in_every_member(void **state)
{
    (void)state;
    for (size_t i = 0; i < SUBMITS; i++) {
        struct house *h = house_open();
        const char *id;
        house_join(h, "calc", 1);
        house_join_as(h, "boss", 1, "'skills':[{'id':'plan','description':'P'}]", "");
        house_join_as(h, "other", 1, "'skills':[{'id':'plan','description':'P'}]", "");
        id = house_submit(h, "%s,'clientKey':'k'", submits[i]);
        for (size_t k = 0; k < SUBMITS; k++) {
            const char *answer = house_ask(h, "plan.submit", "%s,'clientKey':'k'", submits[k]);
            const char *code = house_get(h, answer, "error.code");
            if (i == k) {
                house_says(h, answer, house_text(h, "existing=true; planId=%s", id));
            } else if (code == NULL || strcmp(code, "CONFLICT") != 0) {
                fail_msg("%s after %s: %s", submits[k], submits[i], answer);
            }
        }
        house_says(h, house_ok(h, "plan.list", " "), "plans.#=1");
        house_close(h);
    }
}

static void the_session_may_stand_in_the_request_or_in_the_document(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, PLAN ",'sessionId':'s','clientKey':'k'");
    house_says(h,
               house_ok(h, "plan.submit",
                        "'plan':{'goal':'g','sessionId':'s','steps':[" STEP("a") "]},'clientKey':"
                                                                                 "'k'"),
               house_text(h, "existing=true; planId=%s", id));
    house_close(h);
}

/* ---- what people say ---- */

static void a_message_with_a_key_is_the_same_in_every_member(void **state)
{
    static const char *const says[] = {
        "'text':'status'",
        "'text':'Status'",
        "'text':'status','planner':'agent:calc'",
        "'text':'status','policy':{'maxRetries':0}",
        "'text':'status','policy':{'maxRetries':1}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct house *h = house_open();
        (void)house_ok(h, "session.say", "'sessionId':'s','clientKey':'k',%s", says[i]);
        for (size_t k = 0; k < sizeof says / sizeof says[0]; k++) {
            const char *answer =
                house_ask(h, "session.say", "'sessionId':'s','clientKey':'k',%s", says[k]);
            house_is(h, answer, i == k ? "existing" : "error.code", i == k ? "true" : "CONFLICT");
        }
        (void)house_ok(h, "session.say", "'sessionId':'t','clientKey':'k',%s", says[i]);
        house_says(h, house_ok(h, "session.get", "'sessionId':'s'"), "messagesTotal=2");
        house_close(h);
    }
}

/* ---- copies of a plan ---- */

static void a_retry_and_a_fork_with_a_key_are_made_once(void **state)
{
    static const char *const changes[][2] = {
        {"plan.retry", "'fromStep':'a'"},
        {"plan.retry", "'fromStep':'b'"},
        {"plan.fork", "'fromStep':'a'"},
        {"plan.fork", "'fromStep':'b'"},
        {"plan.fork", "'fromStep':'b','sessionId':'s'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct house *h = house_open();
        const char *id;
        const char *copy;
        house_join(h, "calc", 1);
        id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a") "," STEP("b") "]}");
        house_done(h, "calc", "'result':{'text':'x'}");
        house_done(h, "calc", "'result':{'text':'y'}");
        copy = house_get(
            h, house_ok(h, changes[i][0], "'planId':'%s','clientKey':'k',%s", id, changes[i][1]),
            "planId");
        for (size_t k = 0; k < sizeof changes / sizeof changes[0]; k++) {
            const char *answer =
                house_ask(h, changes[k][0], "'planId':'%s','clientKey':'k',%s", id, changes[k][1]);
            if (i == k) {
                house_says(h, answer, house_text(h, "existing=true; planId=%s", copy));
            } else {
                house_is(h, answer, "error.code", "CONFLICT");
            }
        }
        house_says(h, house_ok(h, "plan.list", " "), "plans.#=2");
        house_close(h);
    }
}

static void nothing_is_left_to_do_after_a_cycle(void **state)
{
    struct house *h = house_open();

    (void)state;
    assert_false(api_is_behind(h->api));
    house_join(h, "calc", 1);
    (void)house_submit(h, PLAN);
    house_cycle(h);
    assert_false(api_is_behind(h->api));
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submission_with_a_key_is_the_same_in_every_member),
        cmocka_unit_test(the_session_may_stand_in_the_request_or_in_the_document),
        cmocka_unit_test(a_message_with_a_key_is_the_same_in_every_member),
        cmocka_unit_test(a_retry_and_a_fork_with_a_key_are_made_once),
        cmocka_unit_test(nothing_is_left_to_do_after_a_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
