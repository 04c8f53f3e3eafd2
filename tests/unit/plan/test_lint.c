#include "fixture.h"
#include "supervisor/plan/lint.h"

#define TASK "'task':'do something worth doing'"
#define D(id, deps, more) "{'stepId':'" id "','agentId':'calc'," TASK ",'dependsOn':" deps more "}"
#define OFF "'policy':{'maxFallbacks':0},"

static struct plan_lint linted(struct bench *b, const char *json)
{
    struct plan_lint lint;
    if (read_json(b, json) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    assert_int_equal(plan_lint(b->plan, &b->arena, &lint, &b->err), BT_OK);
    return lint;
}

/* "category step, ..." of the warnings. */
static const char *styled(struct bench *b, const char *json)
{
    const struct plan_lint lint = linted(b, json);
    struct buf text;
    buf_init(&text, 10000);
    b->problems = (struct problems){.at = b->at, .cap = 100};
    assert_int_equal(plan_lint_style(b->plan, &lint, b->registry, &b->arena, &b->problems, &b->err),
                     BT_OK);
    assert_int_equal(b->problems.errors, 0);
    for (uint32_t i = 0; i < b->problems.n; i++) {
        const struct problem *p = &b->at[i];
        buf_printf(&text, "%s%s%s%s", i > 0 ? ", " : "", problem_category_name(p->category),
                   p->step == UINT32_MAX ? "" : " ", p->step == UINT32_MAX ? "" : p->step_id);
    }
    const char *copy = arena_str(&b->arena, str_from(buf_cstr(&text))).ptr;
    buf_done(&text);
    return copy;
}

/* ---- one step ---- */

static void a_plain_step_takes_three_attempts_and_two_backoffs(void **state)
{
    struct bench *b = *state;
    uint32_t attempts;
    add_house(b);
    const struct plan_lint lint = linted(b, "{" OFF "'steps':[{'agentId':'calc'," TASK "}]}");
    assert_int_equal(plan_lint_step_ms(b->plan, 0, &attempts), 183000);
    assert_int_equal(attempts, 3);
    assert_int_equal(lint.worst_ms, 183000);
    assert_int_equal(lint.n_path, 1);
    assert_int_equal(lint.n_levels, 1);
    assert_int_equal(lint.unestimated, 1);
}

static void everything_that_the_policy_allows_counts(void **state)
{
    struct bench *b = *state;
    static const struct {
        const char *members;
        uint64_t ms;
    } cases[] = {
        {"'maxRetries':0,'timeoutMs':500", 500},
        {"'maxRetries':2,'timeoutMs':0", LINT_NO_BOUND},
        {"'maxRetries':2,'timeoutMs':0,'stepLimitMs':900", 900},
        {"'maxRetries':2,'timeoutMs':500,'stepLimitMs':900", 900},
        {"'maxRetries':1,'timeoutMs':500,'backoff':{'kind':'fixed','initialMs':100,'jitter':0.5}",
         1150},
        {"'maxRetries':0,'timeoutMs':500,'gate':'sql','checkTimeoutMs':70", 570},
        {"'maxRetries':1,'timeoutMs':500,'backoff':{'initialMs':0},'verifyWith':'sql',"
         "'checkTimeoutMs':70",
         1140},
        {"'maxRetries':0,'timeoutMs':500,'requiresApproval':true", 500},
        {"'maxRetries':0,'timeoutMs':500,'requiresApproval':true,'approvalTimeoutMs':1000", 1500},
        {"'type':'human_review','approvalTimeoutMs':1000", 1000},
        {"'type':'human_review'", 0},
    };
    add_house(b);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[400];
        (void)snprintf(json, sizeof json, "{" OFF "'steps':[{'agentId':'calc'," TASK ",%s}]}",
                       cases[i].members);
        const struct plan_lint lint = linted(b, json);
        if (lint.worst_ms != cases[i].ms) {
            fail_msg("%s: %llu", cases[i].members, (unsigned long long)lint.worst_ms);
        }
    }
}

/* One step takes 500 ms. */
static void children_count_as_often_as_they_may_run(void **state)
{
    struct bench *b = *state;
#define ONE "'agentId':'calc'," TASK ",'maxRetries':0,'timeoutMs':500"
#define TWO "'steps':[{'stepId':'a'," ONE "},{'stepId':'b'," ONE "}]"
    static const struct {
        const char *members;
        uint64_t ms;
    } cases[] = {
        {"'forEach':[1,2,3,4],'maxConcurrency':1," ONE, 2000},
        {"'forEach':[1,2,3,4],'maxConcurrency':4," ONE, 875}, /* 500 + (2000 - 500) / 4 */
        {"'forEach':[]," ONE, 0},
        {"'forEach':'{{results.x.data}}','maxItems':10,'maxConcurrency':1," ONE, 5000},
        {"'forEach':'{{results.x.data}}','maxConcurrency':1," ONE, 500000},
        {"'forEach':[1,2],'maxConcurrency':1," TWO, 2000},
        {"'forEach':[1],'maxConcurrency':1,'maxRetries':0,'timeoutMs':0,'agentId':'calc'," TASK,
         LINT_NO_BOUND},
        {"'repeat':{'until':{'iteration':{'gte':3}},'max':5,'delayMs':100}," ONE, 2900},
        {"'repeat':{'until':{'iteration':{'gte':3}},'max':1,'delayMs':100}," ONE, 500},
        {"'repeat':{'until':{'iteration':{'gte':3}},'max':3}," TWO, 3000},
        {"'repeat':{'until':{'iteration':1},'max':2},'steps':[{'stepId':'m','forEach':[1,2,3],"
         "'maxConcurrency':1," ONE "}]",
         3000},
        {"'plan':{'document':{" TWO "}}", LINT_NO_BOUND},
        {"'wait':{'forMs':7000}", 7000},
        {"'wait':{'signal':'s','timeoutMs':9000}", 9000},
        {"'wait':{'signal':'s'}", LINT_NO_BOUND},
    };
    add_house(b);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[800];
        (void)snprintf(json, sizeof json,
                       "{" OFF "'steps':[{'stepId':'x','type':'human_review'," TASK "},"
                       "{'stepId':'y','dependsOn':['x'],%s}]}",
                       cases[i].members);
        const struct plan_lint lint = linted(b, json);
        if (lint.worst_ms != cases[i].ms) {
            fail_msg("%s: %llu", cases[i].members, (unsigned long long)lint.worst_ms);
        }
    }
}

static void what_a_child_may_cost_counts_as_often(void **state)
{
    struct bench *b = *state;
    add_house(b);
    struct plan_lint lint = linted(
        b, "{" OFF "'steps':[{'forEach':[1,2,3],'estimate':{'tokens':10}," ONE "},"
           "{'stepId':'l','repeat':{'until':{'iteration':1},'max':4},'estimate':{'tokens':1}," ONE
           "}]}");
    assert_int_equal(lint.worst_tokens, 34);
    assert_int_equal(lint.unestimated, 0);
    lint = linted(b, "{" OFF "'steps':[{'forEach':[1,2,3]," ONE "}]}");
    assert_int_equal(lint.unestimated, 1);
#undef TWO
#undef ONE
}

static void fallbacks_are_attempts_and_a_wait(void **state)
{
    struct bench *b = *state;
    add_house(b);
    struct plan_lint lint =
        linted(b, "{'steps':[{'agentId':'calc','maxRetries':0,'timeoutMs':100," TASK "}]}");
    assert_int_equal(lint.worst_ms, 2 * 100 + 30000);
    lint =
        linted(b, "{'policy':{'maxFallbacks':6,'searchAgent':'files'},'steps':[{'agentId':'calc',"
                  "'maxRetries':0,'timeoutMs':100,'fallbackAgents':['sql','exec']," TASK "}]}");
    assert_int_equal(lint.steps[0].attempts, 5);
    assert_int_equal(lint.worst_ms, 5 * 100 + 30000);
    lint = linted(b, "{'policy':{'maxFallbacks':1},'steps':[{'agentId':'calc','maxRetries':0,"
                     "'timeoutMs':100,'fallbackAgents':['sql','exec']," TASK "}]}");
    assert_int_equal(lint.worst_ms, 2 * 100 + 2000);
}

/* ---- plans ---- */

#define FAST ",'maxRetries':0,'timeoutMs':10"
#define SLOW ",'maxRetries':0,'timeoutMs':100"

static void the_longest_path_decides_and_concurrency_binds(void **state)
{
    struct bench *b = *state;
    add_house(b);
    static const char *const diamond =
        "{'policy':{'maxFallbacks':0,'maxConcurrency':%u},'steps':[" D("a", "[]", FAST) "," D(
            "b", "['a']", FAST) "," D("c", "['a']", SLOW) "," D("d", "['b','c']",
                                                                FAST) "," D("e", "[]", SLOW) "]}";
    static const uint64_t worst[] = {230, 175, 157};
    char json[1200];
    for (uint32_t c = 1; c <= 3; c++) {
        (void)snprintf(json, sizeof json, diamond, c);
        const struct plan_lint lint = linted(b, json);
        assert_int_equal(lint.work_ms, 230);
        assert_int_equal(lint.path_ms, 120);
        assert_int_equal(lint.worst_ms, worst[c - 1]);
        assert_int_equal(lint.n_path, 3);
        assert_int_equal(lint.path[0], 0);
        assert_int_equal(lint.path[1], 2);
        assert_int_equal(lint.path[2], 3);
        static const uint32_t levels[] = {0, 1, 1, 2, 0};
        assert_int_equal(lint.n_levels, 3);
        for (uint32_t i = 0; i < 5; i++) {
            assert_int_equal(lint.steps[i].level, levels[i]);
        }
    }
}

static void a_chain_is_its_sum_and_the_plans_deadline_an_end(void **state)
{
    struct bench *b = *state;
    add_house(b);
    struct plan_lint lint = linted(b, "{" OFF "'steps':[{'agentId':'calc'," TASK SLOW
                                      "},{'agentId':'sql'," TASK FAST "}]}");
    assert_int_equal(lint.worst_ms, 110);
    assert_int_equal(lint.n_path, 2);
    assert_int_equal(lint.n_levels, 2);
    lint = linted(b, "{'policy':{'planTimeoutMs':55},'steps':[{'agentId':'calc'," TASK
                     ",'timeoutMs':0}]}");
    assert_int_equal(lint.path_ms, LINT_NO_BOUND);
    assert_int_equal(lint.worst_ms, 55);
}

/* Compared with a list scheduler that starts ready steps in any order. */
static void no_schedule_takes_longer(void **state)
{
    struct bench *b = *state;
    const uint32_t seed = 20261123;
    uint32_t x = seed;
    add_house(b);
    for (uint32_t round = 0; round < 200; round++) {
        char json[4000];
        uint64_t left[10];
        uint64_t now = 0;
        bool begun[10] = {false};
        x = x * 1664525u + 1013904223u;
        const uint32_t n = 2 + (x >> 8) % 8;
        const uint32_t c = 1 + (x >> 16) % 4;
        (void)snprintf(json, sizeof json,
                       "{'policy':{'maxFallbacks':0,'maxRetries':0,'maxConcurrency':%u},'steps':[",
                       c);
        for (uint32_t i = 0; i < n; i++) {
            size_t at = strlen(json);
            x = x * 1664525u + 1013904223u;
            left[i] = 1 + (x >> 8) % 50;
            at += (size_t)snprintf(json + at, sizeof json - at,
                                   "%s{'stepId':'s%u','agentId':'calc'," TASK
                                   ",'timeoutMs':%u,'dependsOn':[",
                                   i > 0 ? "," : "", i, (unsigned)left[i]);
            const char *comma = "";
            for (uint32_t d = 0; d < i; d++) {
                x = x * 1664525u + 1013904223u;
                if ((x >> 8) % 3 == 0) {
                    at += (size_t)snprintf(json + at, sizeof json - at, "%s's%u'", comma, d);
                    comma = ",";
                }
            }
            (void)snprintf(json + at, sizeof json - at, "]}");
        }
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "]}");
        const struct plan_lint lint = linted(b, json);
        for (uint32_t running = 0, done = 0; done < n; now++) {
            for (uint32_t k = 0; k < n; k++) {
                const uint32_t i = (round & 1) == 0 ? k : n - 1 - k;
                const struct plan_step *s = &b->plan->steps[i];
                bool ready = !begun[i] && running < c;
                for (uint32_t d = 0; d < s->deps_n; d++) {
                    ready = ready && left[b->plan->deps[s->deps_at + d]] == 0;
                }
                begun[i] = begun[i] || ready;
                running += ready ? 1 : 0;
            }
            for (uint32_t i = 0; i < n; i++) {
                if (begun[i] && left[i] > 0 && --left[i] == 0) {
                    running--;
                    done++;
                }
            }
        }
        if (now > lint.worst_ms) {
            fail_msg("seed %u round %u: %u over %u", seed, round, (unsigned)now,
                     (unsigned)lint.worst_ms);
        }
        arena_reset(&b->arena);
        (void)registry_init(b->registry, &bench_limits);
        add_house(b);
    }
}

static void estimates_count_once_per_attempt(void **state)
{
    struct bench *b = *state;
    add_house(b);
    const struct plan_lint lint = linted(
        b, "{" OFF "'steps':[" D("a", "[]", ",'estimate':{'tokens':10,'costMicros':3}") "," D(
               "b", "['a']",
               ",'maxRetries':0,'estimate':{'tokens':5}") "," D("c", "['b']",
                                                                "") ",{'type':'review','dependsOn':"
                                                                    "['c']," TASK "}]}");
    assert_int_equal(lint.worst_tokens, 35);
    assert_int_equal(lint.worst_micros, 9);
    assert_int_equal(lint.unestimated, 1);
}

/* ---- style ---- */

static void sane_plans_have_nothing_to_be_said_of(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_string_equal(
        styled(b, "{'steps':[{'agentId':'calc'," TASK "},{'agentId':'sql'," TASK "}]}"), "");
    assert_string_equal(styled(b, "{'steps':[" D("a", "[]", "") "," D("b", "['a']", "") "," D(
                                      "c", "['a']", "") "," D("d", "['b','c']", "") "]}"),
                        "");
}

static void three_results_joined_without_a_gate_are_named(void **state)
{
    struct bench *b = *state;
    add_house(b);
#define THREE(last)                                                                                \
    "{'steps':[" D("r", "[]", "") "," D("a", "['r']", "") "," D("b", "['r']", "") "," D(           \
        "c", "['r']", "") "," last "]}"
    assert_string_equal(styled(b, THREE(D("j", "['a','b','c']", ""))), "missing_gate j");
    assert_string_equal(styled(b, THREE(D("j", "['a','b','c']", ",'gate':'sql'"))), "");
    assert_string_equal(styled(b, THREE(D("j", "['a','b','c']", ",'type':'synthesis_gate'"))), "");
    /* r comes through the others: two are parallel. */
    assert_string_equal(styled(b, THREE(D("j", "['a','b','r']", "") "," D("k", "['c','j']", ""))),
                        "");
}

static void branches_of_a_condition_count_as_one_result(void **state)
{
    struct bench *b = *state;
    add_house(b);
#define WHEN(n) ",'when':{'results.r.n':" #n "}"
#define BRANCHES(more)                                                                             \
    "{'steps':[" D("r", "[]", "") "," D("a", "['r']", WHEN(1)) "," D("b", "['r']", WHEN(2)) "," D( \
        "c", "['r']", WHEN(3)) "," D("d", "['r']", "") "," D("e", "['r']", "") "," more "]}"
    assert_string_equal(
        styled(b, BRANCHES(D("j", "['a','b','c','d']", "") "," D("k", "['e','j']", ""))), "");
    assert_string_equal(styled(b, BRANCHES(D("j", "['a','b','c','d','e']", ""))), "missing_gate j");
}

static void more_than_ten_side_by_side_are_many(void **state)
{
    struct bench *b = *state;
    char json[3000] = "{'steps':[" D("r", "[]", "");
    add_house(b);
    for (uint32_t i = 0; i < 10; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json),
                       ",{'stepId':'s%u','agentId':'calc'," TASK ",'dependsOn':['r']}", i);
    }
    const size_t ten = strlen(json);
    (void)snprintf(json + ten, sizeof json - ten, "]}");
    assert_string_equal(styled(b, json), "");
    (void)snprintf(json + ten, sizeof json - ten, "," D("x", "['r']", "") "]}");
    assert_string_equal(styled(b, json), "parallel_explosion");
}

static void what_reaches_outside_should_not_stop_the_plan(void **state)
{
    struct bench *b = *state;
    add_house(b);
#define OUTSIDE(more)                                                                              \
    "{'steps':[{'stepId':'a','agentId':'calc','task':'Fetch the page of news'" more "}]}"
    assert_string_equal(styled(b, OUTSIDE("")), "optimism_bias a");
    assert_string_equal(styled(b, OUTSIDE(",'onFailure':'skip'")), "");
    assert_string_equal(styled(b, OUTSIDE(",'fallbackAgents':['sql']")), "");
    assert_string_equal(styled(b, "{'steps':[{'agentId':'calc','task':'prefetching therapists'}]}"),
                        "");
    /* A search in a file of this machine is none. */
    assert_string_equal(styled(b, "{'steps':[{'agentId':'files','skill':'grep',"
                                  "'task':'Search the log for errors',"
                                  "'parameters':{'path':'a','pattern':'b'}}]}"),
                        "");
}

static void steps_and_parts_that_stand_alone_are_named(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_string_equal(
        styled(b, "{'steps':[" D("a", "[]", "") "," D("b", "['a']", "") "," D("c", "[]", "") "]}"),
        "orphan_task c");
    assert_string_equal(styled(b, "{'steps':[" D("a", "[]", "") "," D("b", "['a']", "") "," D(
                                      "c", "[]", "") "," D("d", "['c']", "") "]}"),
                        "disconnected_flow");
    assert_string_equal(styled(b, "{'steps':[" D("a", "[]", "") "]}"), "");
}

static void steps_that_can_never_run_are_named(void **state)
{
    struct bench *b = *state;
    add_house(b);
    const char *stops =
        "{'steps':[" D("a", "[]", "") "," D("b", "['a']", ",'runIf':'failure'") "]}";
    assert_string_equal(styled(b, stops), "style b");
    assert_string_equal(b->at[0].field, "runIf");
    assert_string_equal(
        styled(b, "{'policy':{'onFailure':'continue'},'steps':[" D("a", "[]", "") "," D(
                      "b", "['a']", ",'runIf':'failure'") "]}"),
        "");
    assert_string_equal(
        styled(b, "{'steps':[" D("a", "[]", "") "," D(
                      "b", "['a']", ",'when':{'steps.a.status':{'eq':'failed'}}") "]}"),
        "style b");
    assert_string_equal(b->at[0].field, "when");
    assert_string_equal(styled(b, "{'steps':[" D("a", "[]", "") "," D(
                                      "b", "['a']", ",'when':{'steps.a.status':'completed'}") "]}"),
                        "");
}

/* What is said of b, the second of two steps, with the condition. */
static const char *of_condition(struct bench *b, const char *when)
{
    char json[2000];
    (void)snprintf(json, sizeof json,
                   "{'steps':[" D("a", "[]", "") ",{'stepId':'b','agentId':'calc'," TASK
                                                 ",'dependsOn':['a'],'when':%s}]}",
                   when);
    return styled(b, json)[0] == '\0' ? "" : b->at[0].message;
}

static void conditions_that_contradict_themselves_are_named(void **state)
{
    static const char *const never[] = {
        "{'results.a.n':{'gt':4,'lt':4}}",
        "{'results.a.n':{'gte':4,'lt':4}}",
        "{'results.a.n':{'gt':5,'lt':4.5}}",
        "{'results.a.n':{'gt':5,'lt':'x'}}",
        "{'results.a.n':{'eq':1,'ne':1}}",
        "{'results.a.n':{'eq':3,'gt':3}}",
        "{'results.a.n':{'in':[1,2,3],'gt':3}}",
        "{'results.a.n':{'in':[1,2],'eq':3}}",
        "{'all':[{'results.a.n':1},{'results.a.n':2}]}",
        "{'all':[{'results.a.n':{'gt':1}},{'not':{'results.a.n':{'gt':1}}}]}",
        "{'all':[{'not':{'results.a.n':{'gt':1}}},{'results.a.n':{'gt':2}}]}",
        "{'all':[{'not':{'results.a.n':{'gt':1}}},{'not':{'results.a.n':{'lte':1}}}]}",
        "{'all':[{'not':{'any':[{'results.a.n':1},{'results.a.m':2}]}},{'results.a.m':2}]}",
        "{'any':[{'results.a.n':{'gt':4,'lt':4}},{'results.a.m':{'eq':1,'ne':1}}]}",
        "{'all':[{'results.a.n':{'exists':false}},{'results.a.n':{'gt':1}}]}",
        "{'all':[{'results.a.n':{'exists':false}},{'results.a.n':{'exists':true}}]}",
        "{'all':[{'results.a.n':{'matches':'^x'}},{'not':{'results.a.n':{'matches':'^x'}}}]}",
        "{'all':[{'steps.a.status':'completed'},{'steps.a.status':'skipped'}]}",
        "{'any':[{'steps.a.status':'failed'},{'steps.a.status':'cancelled'}]}",
        "{'not':{'steps.a.status':{'in':['completed','skipped']}}}",
        "{'inputs.x':{'value':'fast','eq':'slow'}}",
        "{'not':{'inputs.x':{'value':3,'gt':2}}}",
        "{'state.n':{'gt':4,'lt':4}}",
    };
    static const char *const may[] = {
        "{'results.a.n':{'gte':4,'lte':4}}",
        "{'results.a.n':{'gt':3,'lt':4}}",
        "{'results.a.n':{'eq':3,'gte':3}}",
        "{'results.a.n':{'in':[1,2,4],'gt':3}}",
        "{'all':[{'results.a.n':1},{'results.a.m':2}]}",
        "{'all':[{'results.a.n':{'gt':1}},{'not':{'results.a.n':{'gt':2}}}]}",
        "{'all':[{'not':{'all':[{'results.a.n':1},{'results.a.m':2}]}},{'results.a.m':2}]}",
        "{'any':[{'results.a.n':{'gt':4,'lt':4}},{'results.a.m':1}]}",
        "{'results.a.n':{'exists':false}}",
        "{'all':[{'results.a.n':{'exists':false}},{'results.a.m':{'exists':true}}]}",
        "{'all':[{'results.a.n':{'matches':'^x'}},{'results.a.n':{'matches':'^y'}}]}",
        "{'steps.a.status':'skipped'}",
        "{'steps.a.status':{'in':['failed','completed']}}",
        "{'inputs.x':{'value':'fast','eq':'fast'}}",
        "{'not':{'inputs.x':{'value':3,'gt':3}}}",
    };
    struct bench *b = *state;
    add_house(b);
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        const char *said = of_condition(b, never[i]);
        if (strstr(said, "is never true: ") == NULL) {
            fail_msg("%s: %s", never[i], said);
        }
    }
    for (size_t i = 0; i < sizeof may / sizeof may[0]; i++) {
        const char *said = of_condition(b, may[i]);
        if (said[0] != '\0') {
            fail_msg("%s: %s", may[i], said);
        }
    }
    assert_string_equal(of_condition(b, never[0]), "is never true: \"results.a.n gt 4\" and "
                                                   "\"results.a.n lt 4\" exclude each other");
    assert_string_equal(of_condition(b, "{'inputs.x':{'value':'fast','eq':'slow'}}"),
                        "is never true: \"inputs.x eq \"slow\"\", but the input is \"fast\"");
}

/* n pairs of alternatives, and a contradiction after them: 2^n ways to look into. */
static void what_takes_too_long_to_prove_is_not_said(void **state)
{
    struct bench *b = *state;
    add_house(b);
    for (uint32_t n = 4; n <= 16; n += 12) {
        char when[2000] = "{'all':[";
        for (uint32_t i = 0; i < n; i++) {
            (void)snprintf(when + strlen(when), sizeof when - strlen(when),
                           "{'any':[{'results.a.v%u':1},{'results.a.w%u':1}]},", i, i);
        }
        (void)snprintf(when + strlen(when), sizeof when - strlen(when),
                       "{'results.a.n':{'gt':4,'lt':4}}]}");
        assert_int_equal(of_condition(b, when)[0] != '\0', n == 4);
    }
}

/* a; then a switch of three branches, whose steps are x, y and z. */
#define SWITCH(one, two, three)                                                                    \
    "{'steps':[" D("a", "[]", "") ",{'switch':[{'when':" one ",'steps':[" D(                       \
        "x", "['a']", "") "]},{'when':" two                                                        \
                          ",'steps':[" D("y", "['a']", "") "]},{" three ",'steps':[" D(            \
                              "z", "['a']", "") "]}]}]}"

static void branches_that_never_come_are_named(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_string_equal(
        styled(b, SWITCH("{'results.a.n':{'gt':1}}", "{'results.a.n':{'gt':4}}", "'else':true")),
        "style y");
    assert_string_equal(
        styled(b, SWITCH("{'results.a.n':{'gt':4}}", "{'results.a.n':{'gt':1}}", "'else':true")),
        "");
    assert_string_equal(
        styled(b, SWITCH("{'results.a.n':{'gt':4}}", "{'results.a.n':{'lte':4}}", "'else':true")),
        "style z");
    assert_string_equal(
        styled(b, SWITCH("{'results.a.n':{'gt':4}}", "{'results.a.n':{'lt':4}}", "'else':true")),
        "");
    /* The step after one of another branch, its dependents, and a join of both branches. */
#define ARM(n, op, deps) ",'when':{'results.a.n':{'" op "':" n "}}"
    const char *arms = "{'steps':[" D("a", "[]", "") "," D("x", "['a']", ARM("4", "gt", "")) "," D(
        "y", "['x']", ARM("4", "lt", "")) "," D("z", "['y']", "") "," D("j", "['y','x']", "") "]}";
    assert_string_equal(styled(b, arms), "style y, style z");
    assert_string_equal(b->at[0].message,
                        "is never true after step \"x\", before which it does not run: "
                        "\"results.a.n lt 4\" and \"results.a.n gt 4\" exclude each other");
    assert_string_equal(b->at[1].field, "dependsOn");
    /* A step that counts as completed without its condition; the state, which changes. */
    assert_string_equal(
        styled(b, "{'steps':[" D("a", "[]", "") "," D(
                      "x", "['a']",
                      ARM("4", "gt", "") ",'onFailure':'skip'") "," D("y", "['x']",
                                                                      ARM("4", "lt", "")) "]}"),
        "");
    assert_string_equal(styled(b, "{'steps':[" D("a", "[]", ",'when':{'state.n':1}") "," D(
                                      "b", "['a']", ",'when':{'state.n':2}") "]}"),
                        "");
    /* Inside a map the place is that of its step. */
    assert_string_equal(
        styled(b, "{'steps':[" D("a", "[]", "") ",{'stepId':'m','dependsOn':['a'],'forEach':[1,2],"
                                                "'steps':[{'stepId':'in','agentId':'calc'," TASK
                                                ",'when':{'item.n':{'gt':1,'lt':1}}}]}]}"),
        "style m");
    assert_non_null(strstr(b->at[0].message, "in step \"in\": is never true"));
#undef ARM
}

static void steps_for_failures_that_cannot_come_are_named(void **state)
{
    struct bench *b = *state;
    add_house(b);
#define CLEAN D("c", "['b']", ",'runIf':'failure'") "]}"
    /* a may fail, and b is skipped for it: that counts as a failure. */
    assert_string_equal(styled(b, "{'steps':[" D("a", "[]", ",'onFailure':'continue'") "," D(
                                      "b", "['a']", "") "," CLEAN),
                        "");
    assert_string_equal(styled(b, "{'steps':[" D("a", "[]", ",'onFailure':'continue'") "," D(
                                      "b", "['a']", ",'runIf':'always'") "," CLEAN),
                        "style c");
    assert_string_equal(styled(b, "{'steps':[" D("a", "[]", "") "," D(
                                      "b", "['a']", ",'onFailure':'skip'") "," CLEAN),
                        "style c");
    assert_string_equal(b->at[0].field, "runIf");
#undef CLEAN
}

static void what_cannot_be_kept_is_named(void **state)
{
    struct bench *b = *state;
    add_house(b);
    (void)registry_agent_configure(b->registry, STR_LIT("away"), 1);
    assert_string_equal(
        styled(b, "{'policy':{'planTimeoutMs':1000},'steps':[{'agentId':'calc'," TASK "}]}"),
        "limit");
    assert_string_equal(b->at[0].field, "policy.planTimeoutMs");
    assert_string_equal(styled(b, "{'policy':{'budget':{'tokens':5},'estimate':{'tokens':3}},"
                                  "'steps':[{'agentId':'calc'," TASK "}]}"),
                        "limit");
    assert_string_equal(b->at[0].field, "policy.budget");
    assert_string_equal(styled(b, "{'steps':[{'stepId':'a','agentId':'away'," TASK "}]}"),
                        "missing_agent a");
}

static void a_skill_that_may_take_longer_than_the_step_is_named(void **state)
{
    struct bench *b = *state;
    add_agent(b,
              "{'agentId':'slow','skills':[{'id':'dig','maxMs':60001},{'id':'walk','maxMs':60000},"
              "{'id':'run'}]}");
#define S(more) "{" OFF "'steps':[{'stepId':'a','agentId':'slow'," TASK more "}]}"
    assert_string_equal(styled(b, S(",'skill':'dig'")), "limit a");
    assert_string_equal(b->at[0].field, "timeoutMs");
    assert_string_equal(
        b->at[0].message,
        "an attempt ends after 60000 ms, but skill \"dig\" may take 60001 ms; set timeoutMs of the "
        "step, or stepTimeoutMs of the policy");
    assert_string_equal(styled(b, S(",'skill':'walk'")), "");
    assert_string_equal(styled(b, S(",'skill':'run'")), "");
    assert_string_equal(styled(b, S(",'skill':'dig','timeoutMs':60001")), "");
    assert_string_equal(styled(b, S(",'skill':'dig','timeoutMs':0")), "");
#undef S
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_plain_step_takes_three_attempts_and_two_backoffs),
        RULE(a_skill_that_may_take_longer_than_the_step_is_named),
        RULE(everything_that_the_policy_allows_counts),
        RULE(children_count_as_often_as_they_may_run),
        RULE(what_a_child_may_cost_counts_as_often),
        RULE(fallbacks_are_attempts_and_a_wait),
        RULE(the_longest_path_decides_and_concurrency_binds),
        RULE(a_chain_is_its_sum_and_the_plans_deadline_an_end),
        RULE(no_schedule_takes_longer),
        RULE(estimates_count_once_per_attempt),
        RULE(sane_plans_have_nothing_to_be_said_of),
        RULE(three_results_joined_without_a_gate_are_named),
        RULE(branches_of_a_condition_count_as_one_result),
        RULE(more_than_ten_side_by_side_are_many),
        RULE(what_reaches_outside_should_not_stop_the_plan),
        RULE(steps_and_parts_that_stand_alone_are_named),
        RULE(steps_that_can_never_run_are_named),
        RULE(conditions_that_contradict_themselves_are_named),
        RULE(what_takes_too_long_to_prove_is_not_said),
        RULE(branches_that_never_come_are_named),
        RULE(steps_for_failures_that_cannot_come_are_named),
        RULE(what_cannot_be_kept_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
