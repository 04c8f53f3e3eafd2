/* What agents are asked when the journal cannot be read: the whole question, or none. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_whole_or_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
