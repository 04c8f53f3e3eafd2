/* Goals in words, and the plans that people expect of them: which skill, in which order. */
#include "tests/unit/plan/fixture.h"

#include "protocol/base/clock.h"
#include "supervisor/keyword/planner.h"

static int goals_setup(void **state)
{
    const int code = bench_setup(state);
    add_house(*state);
    add_agent(*state,
              "{'agentId':'orchestrator','skills':[{'id':'summarize','name':'Summarise','tags':["
              "'summarise','summary','condense'],'examples':['summarise the report'],"
              "'inputSchema':{'type':'object','properties':{'text':{'x-baton-fill':'previous'}}}},"
              "{'id':'sort','description':'Sorts the lines of a file, and reversed if wished',"
              "'inputSchema':{'type':'object','properties':{'path':{'x-baton-fill':'path'},"
              "'reversed':{'type':'boolean'}}}},"
              "{'id':'gate','tags':['judge','enough']},{'id':'verify','tags':['verify','check']},"
              "{'id':'plan','tags':['plan','steps']},{'id':'synthesize','tags':['answer']},"
              "{'id':'converse','tags':['talk']}]}");
    return code;
}

#undef RULE
#define RULE(f) cmocka_unit_test_setup_teardown(f, goals_setup, bench_teardown)

struct goal {
    const char *words;
    /* A chain: "read > count". A graph: steps in their order, each with what it follows:
     * "read; list; report(1,2)". Behind it what was refused: "! clause". */
    const char *shape;
};

static const struct goal goals[] = {
#include "goals.def"
};

static uint32_t number_of(struct doc steps, uint32_t n, struct str id)
{
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(doc_string(doc_get(doc_at(steps, i), STR_LIT("stepId"))), id)) {
            return i + 1;
        }
    }
    return 0;
}

static void put_deps(struct buf *out, struct doc steps, uint32_t n, struct doc deps)
{
    const uint32_t count = doc_head(deps).n;
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(out, "%s%u", i == 0 ? "(" : ",",
                   number_of(steps, n, doc_string(doc_at(deps, i))));
    }
    buf_add_cstr(out, count > 0 ? ")" : "");
}

static const char *shape_of(struct bench *b, const struct planner_result *r)
{
    const struct doc steps = doc_get(r->plan, STR_LIT("steps"));
    struct buf out;
    buf_init(&out, 20000);
    for (uint32_t i = 0; i < r->n_routes; i++) {
        const struct doc deps = doc_get(doc_at(steps, i), STR_LIT("dependsOn"));
        buf_add_cstr(&out, i == 0 ? "" : deps.ptr == NULL ? " > " : "; ");
        buf_add_str(&out, r->routes[i].skill);
        if (deps.ptr != NULL) {
            put_deps(&out, steps, r->n_routes, deps);
        }
    }
    for (uint32_t i = 0; i < r->n_unrouted; i++) {
        buf_printf(&out, "%s! %.*s", out.len == 0 ? "" : " ", STR_ARG(r->unrouted[i].clause));
    }
    const struct str text = arena_str(&b->arena, buf_str(&out));
    buf_done(&out);
    return text.ptr;
}

static enum bt_code plan(struct bench *b, const char *words, struct planner_result *ret)
{
    const struct planner_request request = {
        .goal = str_from(words), .registry = b->registry, .allow_unrouted = true};
    struct planner planner;
    assert_int_equal(planner_find(STR_LIT("keyword"), &planner, &b->err), BT_OK);
    return planner_plan(&planner, &request, &b->arena, ret, &b->err);
}

static void goals_become_the_plans_that_people_expect(void **state)
{
    struct bench *b = *state;
    uint32_t bad = 0;
    for (size_t i = 0; i < sizeof goals / sizeof goals[0]; i++) {
        struct planner_result r;
        const enum bt_code code = plan(b, goals[i].words, &r);
        const char *shape = shape_of(b, &r);
        if (strcmp(shape, goals[i].shape) != 0) {
            print_message("%s\n    is       %s\n    expected %s\n", goals[i].words, shape,
                          goals[i].shape);
            bad++;
        }
        if (code == BT_OK && read_doc(b, r.plan) != BT_OK) {
            fail_msg("%s: %s", goals[i].words, b->err.msg);
        }
    }
    assert_int_equal(bad, 0);
    assert_true(sizeof goals / sizeof goals[0] >= 60);
}

static enum bt_code plan_strictly(struct bench *b, const char *words, struct planner_result *ret)
{
    const struct planner_request request = {.goal = str_from(words), .registry = b->registry};
    struct planner planner;
    assert_int_equal(planner_find(STR_LIT("keyword"), &planner, &b->err), BT_OK);
    return planner_plan(&planner, &request, &b->arena, ret, &b->err);
}

static void tasks_are_the_words_of_the_goal(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    assert_int_equal(
        plan(b, "Please read both a.txt and b.txt, and then report the busiest day!", &r), BT_OK);
    const struct doc steps = doc_get(r.plan, STR_LIT("steps"));
    static const char *const tasks[] = {"read a.txt", "read b.txt", "report the busiest day"};
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(str_is(doc_string(doc_get(doc_at(steps, i), STR_LIT("task"))), tasks[i]));
    }
    assert_int_equal(plan(b, "list the files in /etc, and at the same time read a.txt.", &r),
                     BT_OK);
    assert_true(
        str_is(doc_string(doc_get(doc_at(doc_get(r.plan, STR_LIT("steps")), 0), STR_LIT("task"))),
               "list the files in /etc"));
}

/* Where a step follows several, it gets the results of all. */
static void a_step_that_joins_gets_all_results(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    assert_int_equal(plan(b,
                          "read a.txt and b.txt in parallel, then count the installs per day, "
                          "then report the busiest day",
                          &r),
                     BT_OK);
    const struct doc steps = doc_get(r.plan, STR_LIT("steps"));
    assert_string_equal(json_of(b, doc_get(doc_at(steps, 2), STR_LIT("parameters"))),
                        "{'text':'{{results.read-1}}\\n\\n{{results.read-2}}','action':'install'}");
    assert_string_equal(json_of(b, doc_get(doc_at(steps, 3), STR_LIT("parameters"))),
                        "{'data':'{{results.count_by_day-3}}','wish':'report the busiest day'}");
    assert_int_equal(plan(b, "read a.txt and b.txt in parallel, then report the busiest day", &r),
                     BT_OK);
    assert_string_equal(
        json_of(b, doc_get(doc_at(doc_get(r.plan, STR_LIT("steps")), 2), STR_LIT("parameters"))),
        "{'data':['{{results.read-1}}','{{results.read-2}}'],'wish':'report the busiest day'}");
}

static void a_refusal_says_what_the_agents_can_do(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    assert_int_equal(plan_strictly(b, "read a.txt, then bake a cake", &r), BT_INVALID);
    assert_non_null(strstr(b->err.msg, "no agent can do \"bake a cake\""));
    assert_non_null(strstr(b->err.msg, "(1 of 2 parts of the goal); agents can do: files (list, "
                                       "read, grep, write), sql (query, load), calc ("));
    assert_null(strstr(b->err.msg, "verify"));
    assert_non_null(strstr(r.abilities.ptr, "files: list (List a directory), read (Read a file)"));
    assert_non_null(strstr(r.abilities.ptr, "; orchestrator: summarize (Summarise)"));
    assert_null(strstr(r.abilities.ptr, "converse"));
}

static void a_refusal_names_the_words_that_say_too_much(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    static const struct {
        const char *goal, *said;
    } bad[] = {
        {"if a.txt exists, read it", "\"if\" is a condition"},
        {"read a.txt unless it is large", "\"unless\" is a condition"},
        {"when reading a.txt fails, read b.txt", "\"when\" is about failures; say it in a plan's "
                                                 "steps (onFailure"},
        {"read a.txt until it ends", "\"until\" is a loop"},
        {"list the files in /etc every 5 minutes", "\"every\" is a time"},
        {"after reading a.txt count the installs", "\"after\" leaves open what comes first"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(plan_strictly(b, bad[i].goal, &r), BT_INVALID);
        assert_null(r.plan.ptr);
        if (strstr(b->err.msg, bad[i].said) == NULL ||
            strstr(b->err.msg, "words cannot plan") == NULL) {
            fail_msg("%s: %s", bad[i].goal, b->err.msg);
        }
    }
}

/* An agent that is only asked by the supervisor does no work of a goal, whatever its words. */
static void questions_of_the_supervisor_attract_no_steps(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    static const char *const goals_of_it[] = {"gate it", "verify the result", "plan the steps",
                                              "synthesize an answer", "converse with me"};
    for (size_t i = 0; i < sizeof goals_of_it / sizeof goals_of_it[0]; i++) {
        assert_int_equal(plan_strictly(b, goals_of_it[i], &r), BT_INVALID);
        assert_int_equal(r.n_routes, 0);
    }
}

static void the_same_goal_gives_the_same_bytes(void **state)
{
    struct bench *b = *state;
    for (size_t i = 0; i < sizeof goals / sizeof goals[0]; i++) {
        struct planner_result r[2];
        assert_int_equal(plan(b, goals[i].words, &r[0]), plan(b, goals[i].words, &r[1]));
        assert_int_equal(r[0].plan.len, r[1].plan.len);
        if (r[0].plan.len > 0) {
            assert_memory_equal(r[0].plan.ptr, r[1].plan.ptr, r[0].plan.len);
        }
    }
}

static uint32_t draw(uint32_t *x, uint32_t n)
{
    *x = *x * 1664525u + 1013904223u;
    return (*x >> 8) % n;
}

/* Words that hold sentences together, in any order: a plan that passes every check, or a refusal.
 */
static void goals_of_connecting_words_alone_are_planned_or_refused(void **state)
{
    struct bench *b = *state;
    static const char *const parts[] = {"read",
                                        "a.txt",
                                        "list the files in /etc",
                                        "count the installs per day",
                                        "report it",
                                        ",",
                                        "and",
                                        "both",
                                        "in parallel",
                                        ":",
                                        "then",
                                        "after",
                                        "before",
                                        "once",
                                        "is done",
                                        "while",
                                        "listing /etc",
                                        "meanwhile",
                                        "\n",
                                        "\n- ",
                                        "\n  1. ",
                                        "2)",
                                        "\"",
                                        "`",
                                        "'",
                                        ";",
                                        ".",
                                        "if",
                                        "when",
                                        "reading a.txt",
                                        "at the same time",
                                        "as soon as",
                                        "that",
                                        "->",
                                        "b.txt",
                                        "with",
                                        "\x01",
                                        "\xc3\xa4",
                                        "every",
                                        "hour",
                                        "until",
                                        "save it to",
                                        "(",
                                        "a)",
                                        "next"};
    const uint32_t seed = 20261205;
    uint32_t x = seed;
    uint32_t planned = 0;
    for (int round = 0; round < 4000; round++) {
        char words[1200] = "";
        struct planner_result r;
        const uint32_t n = 1 + draw(&x, 24);
        for (uint32_t i = 0; i < n; i++) {
            (void)snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s",
                           draw(&x, 9) == 0 ? "" : " ",
                           parts[draw(&x, sizeof parts / sizeof parts[0])]);
        }
        const enum bt_code code = plan(b, words, &r);
        if (code == BT_OK && read_doc(b, r.plan) != BT_OK) {
            fail_msg("seed %u round %d: %s in %s", seed, round, b->err.msg, words);
        }
        if (code != BT_OK && code != BT_INVALID) {
            fail_msg("seed %u round %d: %s in %s", seed, round, b->err.msg, words);
        }
        planned += code == BT_OK;
    }
    assert_true(planned > 400);
}

static void large_goals_are_refused_and_hostile_ones_cost_little(void **state)
{
    struct bench *b = *state;
    static const char *const units[] = {
        "when ", "after ", "\"",     "a, ", "read and ", "and the ", "in parallel ",  "if true ",
        "1) ",   "' ",     "\n- x ", "; ",  "a.txt, ",   "both ",    "while reading "};
    char *words = arena_alloc(&b->arena, 20000);
    assert_non_null(words);
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        struct planner_result r;
        const size_t n = strlen(units[u]);
        size_t len = 0;
        for (; len + n <= LIMIT_TASK_BYTES; len += n) {
            memcpy(words + len, units[u], n);
        }
        words[len] = '\0';
        const msec start = clock_mono_ms();
        const enum bt_code code = plan(b, words, &r);
        const msec took = clock_mono_ms() - start;
        assert_true(code == BT_OK || code == BT_INVALID || code == BT_LIMIT);
        if (took > 2000) {
            fail_msg("%s...: %u ms", units[u], (unsigned)took);
        }
        memset(words, 'x', LIMIT_TASK_BYTES + 1);
        words[LIMIT_TASK_BYTES + 1] = '\0';
        assert_int_equal(plan(b, words, &r), BT_LIMIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(goals_become_the_plans_that_people_expect),
        RULE(tasks_are_the_words_of_the_goal),
        RULE(a_step_that_joins_gets_all_results),
        RULE(a_refusal_says_what_the_agents_can_do),
        RULE(a_refusal_names_the_words_that_say_too_much),
        RULE(questions_of_the_supervisor_attract_no_steps),
        RULE(the_same_goal_gives_the_same_bytes),
        RULE(goals_of_connecting_words_alone_are_planned_or_refused),
        RULE(large_goals_are_refused_and_hostile_ones_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
