/* What agents are told of a session: its newest messages, how much of each, and what is left out.
 */
#include <stdlib.h>
#include <string.h>

#include "supervisor/query/session_view.h"
#include "tests/support/house/house.h"

enum { TEXT_MAX = 16384 /* of one message, for agents */ };

#define STEP "{'stepId':'a','agentId':'calc','skill':'do','task':'do a'}"

static void say(struct house *h)
{
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'status'");
}

/* A plan of the session whose answer has so many letters, each of `unit`. */
static void answered(struct house *h, size_t letters, const char *unit)
{
    char *text = calloc(letters + 1, strlen(unit));

    assert_non_null(text);
    for (size_t i = 0; i < letters; i++) {
        memcpy(text + i * strlen(unit), unit, strlen(unit));
    }
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'g','steps':[" STEP "]}");
    house_done(h, "calc", "'result':{'text':'%s'}", text);
    free(text);
}

/* The context of a step of the session. */
static const char *told(struct house *h)
{
    const char *work;

    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'g','steps':[" STEP "]}");
    work = house_work(h, "calc", NULL);
    assert_non_null(work);
    return work;
}

static size_t text_of(struct house *h, const char *work, int i)
{
    const char *text = house_get(h, work, house_text(h, "context.messages.%d.text", i));

    assert_non_null(text);
    return strlen(text);
}

static struct house *open_session(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 1);
    say(h); /* two messages */
    return h;
}

static void a_new_session_has_nothing_to_tell(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_says(h, told(h), "context.messages=-; context.summary=-; context.messagesLeftOut=-");
    house_close(h);
}

static void messages_are_told_oldest_first_with_who_said_them_and_when(void **state)
{
    struct house *h = open_session();

    (void)state;
    answered(h, 5, "x");
    house_says(h, told(h),
               "context.messages.#=3; context.messages.0.role=user; "
               "context.messages.0.text=status; "
               "context.messages.0.timestamp=2023-11-14T22:13:20.000Z; "
               "context.messages.0.truncated=-; context.messages.1.role=assistant; "
               "context.messages.2.role=assistant; context.messages.2.text=xxxxx; "
               "context.messagesLeftOut=-; context.summary=-");
    house_close(h);
}

static void a_message_is_told_up_to_its_limit(void **state)
{
    (void)state;
    for (size_t n = TEXT_MAX; n <= TEXT_MAX + 1; n++) {
        struct house *h = open_session();
        const char *work;
        answered(h, n, "x");
        work = told(h);
        assert_int_equal(text_of(h, work, 2), TEXT_MAX);
        house_is(h, work, "context.messages.2.truncated", n == TEXT_MAX ? NULL : "true");
        house_close(h);
    }
}

static void a_message_is_cut_between_characters(void **state)
{
    struct house *h = open_session();
    const char *work;

    (void)state;
    answered(h, TEXT_MAX / 3 + 2, "\xe2\x82\xac"); /* three bytes each: 16,384 is within one */
    work = told(h);
    assert_int_equal(text_of(h, work, 2), TEXT_MAX / 3 * 3);
    house_is(h, work, "context.messages.2.truncated", "true");
    house_close(h);
}

/* The newest come first; the last one that fits may be cut, and nothing older is told. */
static void all_messages_together_are_told_up_to_their_limit(void **state)
{
    struct house *h = open_session();
    const char *work;

    (void)state;
    answered(h, 20000, "1");
    answered(h, TEXT_MAX, "2");
    answered(h, TEXT_MAX, "3");
    answered(h, 20000, "4");
    answered(h, 10000, "5");
    work = told(h);
    house_says(h, work,
               "context.messages.#=5; context.messagesLeftOut=2; "
               "context.summary=2 older messages are left out; context.messages.0.truncated=true; "
               "context.messages.1.truncated=-; context.messages.2.truncated=-; "
               "context.messages.3.truncated=true; context.messages.4.truncated=-");
    assert_int_equal(text_of(h, work, 0), SESSION_CONTEXT_MAX - 3 * TEXT_MAX - 10000);
    assert_int_equal(text_of(h, work, 1), TEXT_MAX);
    assert_int_equal(text_of(h, work, 3), TEXT_MAX);
    assert_int_equal(text_of(h, work, 4), 10000);
    house_close(h);
}

static void what_exactly_fits_is_told_whole(void **state)
{
    (void)state;
    for (size_t more = 0; more <= 1; more++) {
        struct house *h = open_session();
        const char *work;
        for (int i = 0; i < 3; i++) {
            answered(h, TEXT_MAX, "x");
        }
        answered(h, SESSION_CONTEXT_MAX - 3 * TEXT_MAX - 1000, "y");
        answered(h, 1000 + more, "z");
        work = told(h);
        house_says(h, work, "context.messages.#=5; context.messagesLeftOut=2");
        assert_int_equal(text_of(h, work, 0), TEXT_MAX - more);
        house_is(h, work, "context.messages.0.truncated", more == 0 ? NULL : "true");
        house_close(h);
    }
}

static void twenty_messages_are_told_and_how_many_are_older(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    for (int i = 0; i < SESSION_NEWEST / 2; i++) {
        say(h);
    }
    house_says(h, told(h), "context.messages.#=20; context.messagesLeftOut=-; context.summary=-");
    house_done(h, "calc", "'result':{'text':'x'}");
    house_says(h, told(h),
               "context.messages.#=20; context.messagesLeftOut=1; "
               "context.summary=1 older message is left out; context.messages.19.text=x; "
               "context.messages.0.role=assistant");
    house_done(h, "calc", "'result':{'text':'y'}");
    house_says(h, told(h),
               "context.messagesLeftOut=2; context.summary=2 older messages are left out");
    house_close(h);
}

static void a_summary_is_told_with_what_it_does_not_cover(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "calc", 1,
                  "'skills':[{'id':'do','description':'D'},{'id':'summarize','description':'S'}]",
                  "");
    for (int i = 0; i <= SESSION_NEWEST / 2; i++) {
        say(h);
    }
    house_done(h, "calc", "'result':{'text':'They asked.'}"); /* it covers 12 of 22 */
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"), "summarized=12; messagesTotal=22");
    house_says(h, told(h),
               "context.summary=They asked.; context.messagesLeftOut=-; context.messages.#=20");
    house_done(h, "calc", "'result':{'text':'x'}");
    for (int i = 0; i < 4; i++) {
        answered(h, TEXT_MAX, "x"); /* only these four have room */
    }
    house_says(h, told(h),
               "context.messages.#=4; context.messagesLeftOut=11; "
               "context.summary=They asked.\n\n11 older messages are left out");
    house_close(h);
}

/* ---- what a model is told of a message ---- */

static void a_model_is_told_what_the_plan_waits_for_and_its_last_result(void **state)
{
    struct house *h = house_open();
    const char *work;

    (void)state;
    house_join_as(h, "calc", 2,
                  "'skills':[{'id':'do','description':'D'},{'id':'converse','description':'C'}]",
                  "");
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP
                          ",{'stepId':'b','agentId':'calc','skill':'do','task':'do b',"
                          "'requiresApproval':true}]}");
    house_done(h, "calc", "'result':{'text':'five'}");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
    work = house_work(h, "calc", "converse");
    house_says(h, work,
               "parameters.text=be so good and arrange it; parameters.plan.planId=*; "
               "parameters.plan.goal=add; parameters.plan.status=waiting; "
               "parameters.plan.paused=false; parameters.plan.steps.#=2; "
               "parameters.plan.steps.0.number=1; parameters.plan.steps.0.stepId=a; "
               "parameters.plan.steps.0.task=do a; parameters.plan.steps.0.status=completed; "
               "parameters.plan.steps.1.status=waiting; parameters.plan.waiting.#=1; "
               "parameters.plan.waiting.0.number=2; parameters.plan.waiting.0.stepId=b; "
               "parameters.plan.waiting.0.kind=before_step; parameters.lastResult=five; "
               "parameters.session.summary=*; parameters.session.messages.#=0; "
               "parameters.session.messagesLeftOut=-; deadlineMs=60000; purpose=converse; "
               "skill=converse; task=~A person has said parameters.text.");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'pause'}}");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
    house_says(h, house_work(h, "calc", "converse"),
               "parameters.plan.paused=true; parameters.session.messages.#=2; "
               "parameters.session.messages.0.text=be so good and arrange it");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_session_has_nothing_to_tell),
        cmocka_unit_test(messages_are_told_oldest_first_with_who_said_them_and_when),
        cmocka_unit_test(a_message_is_told_up_to_its_limit),
        cmocka_unit_test(a_message_is_cut_between_characters),
        cmocka_unit_test(all_messages_together_are_told_up_to_their_limit),
        cmocka_unit_test(what_exactly_fits_is_told_whole),
        cmocka_unit_test(twenty_messages_are_told_and_how_many_are_older),
        cmocka_unit_test(a_summary_is_told_with_what_it_does_not_cover),
        cmocka_unit_test(a_model_is_told_what_the_plan_waits_for_and_its_last_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
