/* When the journal cannot be read: agents are asked the whole question, or none; and what they
 * answer counts as it is, or fails with the reason. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/buf.h"
#include "tests/support/house/house.h"

enum { READS = 14 };

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ALL                                                                                        \
    "'skills':[{'id':'gate','description':'G'},{'id':'verify','description':'V'},{'id':'search',"  \
    "'description':'S'},{'id':'plan','description':'P'},{'id':'synthesize','description':'Y'},"    \
    "{'id':'converse','description':'C'},{'id':'summarize','description':'U'}]"

/* Begins something; the next read that matters is that of the question to `agent`. */
struct scene {
    const char *name, *agent;
    void (*begin)(struct house *h);
    void (*ask)(struct house *h);
    bool without_session; /* it may be asked without the messages of its session */
};

static void done(struct house *h)
{
    house_done(h, "calc", "'result':{'text':'five','data':{'n':5}}");
}

static void failed(struct house *h)
{
    house_failed(h, "calc", "RESOURCE_NOT_FOUND", false);
    house_wait(h, 1);
}

static void two_steps(struct house *h)
{
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP(
                              "b", ",'parameters':{'n':'{{results.a.data.n}}'}") "]}");
}

static void gated(struct house *h)
{
    (void)house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", ",'gate':'boss'") "]}");
}

static void verified(struct house *h)
{
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'verifyWith':'boss'") "]}");
}

static void searched(struct house *h)
{
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP(
                              "a", ",'maxRetries':0,'parameters':{'p':1}") "]},'policy':{"
                                                                           "'searchAgent':'boss'}");
}

static void replanned(struct house *h)
{
    (void)house_submit(h, "'plan':{'goal':'g','grants':['boss'],'steps':[" STEP("z", "") "," STEP(
                              "a", ",'maxRetries':0,'onFailure':'replan'") "]},'policy':{'replan':{"
                                                                           "'agentId':'boss',"
                                                                           "'cooldownMs':0}}");
    done(h);
}

static void synthesized(struct house *h)
{
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP(
                              "a", "") "]},'policy':{'synthesis':{'strategy':'agent','agentId':"
                                       "'boss'}}");
}

static void nothing(struct house *h)
{
    (void)h;
}

static void plan_it(struct house *h)
{
    (void)house_ask(h, "plan.submit", "'goal':'add','planner':'agent:boss'");
}

static void wrong_before(struct house *h)
{
    plan_it(h);
    (void)house_work(h, "boss", NULL);
}

static void answer_wrong(struct house *h)
{
    house_done(h, "boss", "'result':{'text':'a poem'}");
}

static void in_session(struct house *h)
{
    (void)house_submit(
        h, "'sessionId':'s','plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", "") "]}");
    done(h);
}

static void say_it(struct house *h)
{
    (void)house_ask(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
}

static const struct scene scenes[] = {
    {"a step after another", "calc", two_steps, done, false},
    {"a gate", "boss", gated, done, false},
    {"a verifier", "boss", verified, done, false},
    {"a search", "boss", searched, failed, false},
    {"a replan", "boss", replanned, failed, false},
    {"a synthesis", "boss", synthesized, done, false},
    {"a plan", "boss", nothing, plan_it, false},
    {"a repair", "boss", wrong_before, answer_wrong, false},
    {"a message", "boss", in_session, say_it, true},
};

/* Ids are made anew each time. */
static char *plain(const char *text)
{
    char *out = text != NULL ? strdup(text) : NULL;

    for (char *at = out; at != NULL && *at != 0; at++) {
        size_t n = 0;
        while (isxdigit((unsigned char)at[n]) || at[n] == '-') {
            n++;
        }
        for (size_t i = 0; i < n && n >= 32; i++) {
            at[i] = 'x';
        }
        at += n > 0 ? n - 1 : 0;
    }
    return out;
}

static struct house *open_house(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 2);
    house_join_as(h, "boss", 2, ALL, "");
    return h;
}

static void a_question_is_whole_or_is_not_asked(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof scenes / sizeof scenes[0]; s++) {
        const struct scene *scene = &scenes[s];
        char *whole = NULL;
        uint32_t asked = 0;
        for (uint32_t n = 0; n <= READS; n++) {
            struct house *h = open_house();
            char *got;
            scene->begin(h);
            house_fail_read(h, n);
            scene->ask(h);
            house_wait(h, 1);
            house_fail_read(h, 0);
            got = h->dead ? NULL : plain(house_work(h, scene->agent, NULL));
            if (h->dead) {
                assert_string_equal(h->why.msg, "the disk cannot be read");
            }
            if (n == 0) {
                whole = got;
                assert_non_null(whole);
            } else if (got != NULL && strcmp(got, whole) != 0 && !scene->without_session) {
                fail_msg("%s, when read %u fails:\n%s\nnot\n%s", scene->name, n, got, whole);
            }
            asked += got != NULL;
            free(n == 0 ? NULL : got);
            house_close(h);
        }
        assert_true(asked > 1); /* reads after the question change nothing */
        free(whole);
    }
}

/* ---- answers ---- */

/* Begins, and asks; then the answer comes. */
struct answer_scene {
    const char *name, *agent, *fields;
    void (*begin)(struct house *h);
    void (*ask)(struct house *h);
    const char *lost; /* what the next start says of one that could not be read; NULL = nothing */
};

static void open_plan(struct house *h)
{
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'g','steps':[" STEP("a", "") "]}");
}

#define RESULT(json) "'outcome':'completed','result':" json ",'usage':{'inputTokens':3}"
#define PLAN_OF(id)                                                                                \
    "{'data':{'steps':[{'stepId':'" id "','agentId':'calc','skill':'do','task':'t'}]}}"

static const struct answer_scene answers[] = {
    {"a step", "calc", RESULT("{'text':'five','data':{'n':5}}"), two_steps, nothing},
    {"a gate", "boss", RESULT("{'data':{'passed':true,'reason':'enough'}}"), gated, done},
    {"a verifier", "boss", RESULT("{'text':'No, it is three.'}"), verified, done},
    {"a search", "boss", RESULT("{'text':'look elsewhere'}"), searched, failed},
    {"a replan", "boss", RESULT(PLAN_OF("n")), replanned, failed},
    {"a synthesis", "boss", RESULT("{'text':'All is well.'}"), synthesized, done},
    {"a plan", "boss", RESULT(PLAN_OF("n")), nothing, plan_it},
    {"a wrong plan", "boss", RESULT("{'text':'a poem'}"), nothing, plan_it},
    {"a message", "boss", RESULT("{'data':{'action':'pause','reasoning':'as they said'}}"),
     open_plan, say_it, "This could not be brought to its end"},
};

/* All that the answer has come to. */
static char *outcome(struct house *h)
{
    const char *id = house_get(h, house_ok(h, "plan.list", " "), "plans.0.planId");
    char *ret;
    struct buf all;

    buf_init(&all, 16 * 1024 * 1024);
    buf_add_cstr(&all, house_ok(h, "plan.get", "'planId':'%s'", id));
    buf_add_cstr(&all, house_ok(h, "plan.history", "'planId':'%s'", id));
    buf_add_cstr(&all, house_get(h, house_ok(h, "events.read", "'fromSeq':1,'types':['turn_end']"),
                                 "events"));
    ret = plain(buf_cstr(&all));
    buf_done(&all);
    return ret;
}

/* *ret_over: no read is as many as n. NULL: the daemon ended. */
static char *answered(const struct answer_scene *scene, uint32_t n, bool *ret_over)
{
    struct house *h = open_house();
    char *got = NULL;

    scene->begin(h);
    scene->ask(h);
    house_wait(h, 1);
    assert_non_null(house_work(h, scene->agent, NULL));
    house_fail_read(h, n);
    house_answer(h, scene->agent, NULL, "%s", scene->fields);
    house_wait(h, 1);
    *ret_over = n > h->reads;
    house_fail_read(h, 0);
    if (h->dead) {
        assert_string_equal(h->why.msg, "the disk cannot be read");
        house_restart(h);
        assert_false(h->dead);
    } else {
        got = outcome(h);
        if (scene->lost != NULL && strstr(got, "turn_end") == NULL) {
            free(got);
            house_restart(h);
            got = outcome(h);
        }
    }
    house_close(h);
    return got;
}

static void an_answer_counts_as_it_is_or_fails_with_the_reason(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof answers / sizeof answers[0]; s++) {
        bool over = false;
        char *whole = answered(&answers[s], 0, &over);
        assert_non_null(whole);
        over = false;
        for (uint32_t n = 1; !over; n++) {
            char *got = answered(&answers[s], n, &over);
            const bool told = got == NULL || strcmp(got, whole) == 0 ||
                              strstr(got, "the disk cannot be read") != NULL ||
                              (answers[s].lost != NULL && strstr(got, answers[s].lost) != NULL);
            if (!told) {
                fail_msg("%s, when read %u fails:\n%s\nnot\n%s", answers[s].name, n, got, whole);
            }
            free(got);
        }
        free(whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_counts_as_it_is_or_fails_with_the_reason),
        cmocka_unit_test(a_question_is_whole_or_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
