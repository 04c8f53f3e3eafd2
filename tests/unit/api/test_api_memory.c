/*
 * Each request that reads, with every allocation that it makes failing in turn: it is refused for
 * memory and nothing else, or answered as before, and the next one is answered as before in any
 * case. What changes something is asked in edge.house_memory, in processes of their own.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"
#include "tests/support/memory.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"

enum { ALLOCATIONS_MAX = 4000 };

/* What memory_left is when the rooms act again. */
static long left = -1;

static void on_act(bool act)
{
    if (act) {
        memory_left = left;
    } else {
        left = memory_left;
        memory_left = -1;
    }
}

static struct {
    struct house *h;
    const char *open, *ended, *review, *past;
} w;

static void arrange(void)
{
    w.h = house_open();
    house_join_as(w.h, "calc", 2,
                  "'skills':[{'id':'do','description':'D','tags':['x']},{'id':'plan',"
                  "'description':'P','inputSchema':{'type':'object'}}]",
                  "");
    w.h->processes[0] = (struct house_process){.agent_id = "calc",
                                               .why = "it was killed by signal 9",
                                               .log = "/tmp/x.log",
                                               .view = {.name = "calc#1",
                                                        .state = "running",
                                                        .pid = 7,
                                                        .group = "g",
                                                        .doing = "",
                                                        .reason = "why"}};
    w.h->processes[1] = w.h->processes[0];
    w.h->processes[1].agent_id = "away";
    w.h->processes[1].view.name = "away#1";
    w.h->processes_n = 2;
    w.ended = house_submit(w.h, "'goal':'many','planner':'agent:calc','sessionId':'s'");
    house_done(w.h, "calc",
               "'result':{'data':{'steps':[{'stepId':'x','agentId':'calc','skill':'do','task':'t',"
               "'estimate':{'tokens':7,'costMicros':9}}]}},'usage':{'inputTokens':3}");
    house_failed(w.h, "calc", "PERMISSION_DENIED", false);
    w.open =
        house_submit(w.h, "'plan':{'goal':'g','description':'d','steps':[" STEP("a", "") "," STEP(
                              "b", ",'requiresApproval':true,'parameters':{'n':'{{results.a}}'"
                                   "}") "," STEP("c", "") "]},'sessionId':'s'");
    house_done(w.h, "calc", "'result':{'text':'five','data':{'n':5}}");
    {
        const struct house_agent *a = house_join(w.h, "away", 1);
        (void)house_ok(w.h, "agent.deregister", "'instanceId':'%s','epoch':%llu", a->instance,
                       (unsigned long long)a->epoch);
    }
    w.review = house_text(w.h, "%s/b/r1", w.open);
    (void)house_ok(w.h, "plan.pause", "'planId':'%s','reason':'lunch'", w.open);
    (void)house_ok(w.h, "session.say", "'sessionId':'s','text':'status'");
    (void)house_ok(w.h, "schedule.put",
                   "'name':'n','cron':'@daily','plan':{'goal':'g','steps':[" STEP("a", "") "]}");
}

static const struct {
    const char *type;
    enum { NOTHING, OPEN, ENDED, REVIEW, LARGE } about; /* its id stands first */
    const char *more;
    bool less; /* without memory for a text it has less, and is answered */
} asked[] = {
    {"plan.get", OPEN, "", true},
    {"plan.get", ENDED, ",'document':true", true},
    {"plan.result", OPEN, "", true},
    {"plan.result", ENDED, ",'stepId':'x'", false},
    {"plan.list", NOTHING, " ", true},
    {"plan.list", NOTHING, "'status':'running','sessionId':'s'", false},
    {"plan.history", OPEN, "", true},
    {"plan.stats", ENDED, "", true},
    {"plan.cost", NOTHING, " ", true},
    {"plan.cost", ENDED, "", false},
    {"plan.lint", NOTHING,
     "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", ",'dependsOn':['a']") "]}", false},
    {"plan.lint", LARGE, "30", true},
    {"plan.lint", LARGE, "60", true},
    {"plan.lint", LARGE, "120", true},
    {"plan.lint", LARGE, "240", true},
    {"plan.lint", LARGE, "480", true},
    {"plan.lint", LARGE, "960", true},
    {"plan.lint", LARGE, "1920", true},
    {"review.list", OPEN, "", true},
    {"review.list", NOTHING, " ", true},
    {"review.get", REVIEW, "", true},
    {"events.read", NOTHING, "'fromSeq':1,'limit':50", false},
    {"blob.get", NOTHING, "'blobId':1", false},
    {"session.get", NOTHING, "'sessionId':'s'", true},
    {"session.list", NOTHING, " ", false},
    {"schedule.list", NOTHING, " ", false},
    {"schedule.get", NOTHING, "'name':'n'", false},
    {"agents.list", NOTHING, " ", true},
    {"agents.get", NOTHING, "'agentId':'calc'", false},
    {"agents.get", NOTHING, "'agentId':'away'", false},
    {"supervisor.info", NOTHING, " ", true},
    {"supervisor.stats", NOTHING, " ", true},
};

/* Plans of some sizes: the worst case of one of them begins a new block of its arena. */
static const char *large_plan(const char *steps)
{
    struct buf text;
    const char *kept;

    buf_init(&text, LIMIT_CONTROL_BYTES);
    buf_printf(&text, "'plan':{'goal':'g','steps':[");
    for (int i = 0; i < strtol(steps, NULL, 10); i++) {
        buf_printf(&text, "%s{'stepId':'s%d','agentId':'calc','skill':'do','task':'do it'}",
                   i > 0 ? "," : "", i);
    }
    buf_printf(&text, "]}");
    kept = house_text(w.h, "%s", buf_cstr(&text));
    buf_done(&text);
    return kept;
}

static const char *ask(size_t i)
{
    const char *const ids[] = {
        [OPEN] = w.open, [ENDED] = w.ended, [REVIEW] = w.review, [NOTHING] = "", [LARGE] = ""};

    return house_ask(w.h, asked[i].type, "%s",
                     asked[i].about == LARGE ? large_plan(asked[i].more)
                     : asked[i].about == NOTHING
                         ? asked[i].more
                         : house_text(w.h, "'%s':'%s'%s",
                                      asked[i].about == REVIEW ? "reviewId" : "planId",
                                      ids[asked[i].about], asked[i].more));
}

/* The answer with the n-th allocation failing; *ret_failed: there were so many. */
static const char *ask_without(size_t i, long n, bool *ret_failed)
{
    const char *answer;

    memory_failed = false;
    memory_pause = &fake_link_inside;
    left = n;
    house_rooms_act = on_act;
    answer = ask(i);
    house_rooms_act = NULL;
    memory_left = -1;
    *ret_failed = memory_failed;
    return answer;
}

static void a_request_without_memory_is_refused_for_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        uint32_t refused = 0;
        bool failed = true;
        const char *whole;
        arrange();
        whole = ask(i);
        house_is(w.h, whole, "ok", "true");
        for (long n = 0; failed && n < ALLOCATIONS_MAX; n++) {
            const char *answer = ask_without(i, n, &failed);
            if (w.h->dead || answer == NULL) {
                fail_msg("%s: allocation %ld: no answer: %s", asked[i].type, n, w.h->why.msg);
            }
            if (strcmp(house_get(w.h, answer, "ok"), "true") == 0) {
                if (!asked[i].less && strcmp(answer, whole) != 0) {
                    fail_msg("%s: allocation %ld: another answer: %s", asked[i].type, n, answer);
                }
                continue;
            }
            refused++;
            if (strcmp(house_get(w.h, answer, "error.code"), "NOMEM") != 0) {
                fail_msg("%s: allocation %ld: %s", asked[i].type, n, answer);
            }
        }
        assert_false(failed);
        house_is(w.h, ask(i), "ok", "true");
        if (refused == 0) {
            fail_msg("%s is never refused", asked[i].type);
        }
        house_close(w.h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_without_memory_is_refused_for_it),
    };
    cJSON_Hooks hooks = {__wrap_malloc, free};

    cJSON_InitHooks(&hooks);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
