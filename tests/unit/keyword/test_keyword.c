/* The rules of the keyword planner, one by one; goals.def has whole goals. */
#include "tests/unit/keyword/house.h"

#include "protocol/base/clock.h"
#include "supervisor/keyword/keyword_internal.h"

enum { STEPS_SHOWN = 8 };

/* "files.read {...}, calc.report {...}"; the first line of what was refused after "!". */
static const char *result_of(struct bench *b, const char *goal)
{
    struct planner_result r;
    struct buf out;
    (void)plan(b, goal, true, &r);
    buf_init(&out, 100000);
    buf_add_cstr(&out, outcome(b, &r));
    for (uint32_t i = 0; i < r.n_unrouted; i++) {
        const char *end = memchr(r.unrouted[i].ptr, '\n', r.unrouted[i].len);
        buf_printf(&out, "%s! %.*s", out.len > 0 ? " " : "", (int)(end - r.unrouted[i].ptr),
                   r.unrouted[i].ptr);
    }
    const struct str text = arena_str(&b->arena, buf_str(&out));
    buf_done(&out);
    return text.ptr;
}

struct rule {
    const char *goal, *result;
};

static void check(struct bench *b, const struct rule *rules, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        const char *is = result_of(b, rules[i].goal);
        if (strncmp(is, rules[i].result, strlen(rules[i].result)) != 0 ||
            (strchr(rules[i].result, '!') == NULL && strcmp(is, rules[i].result) != 0)) {
            print_message("%s\n    is       %s\n    expected %s\n", rules[i].goal, is,
                          rules[i].result);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}
#define CHECK(b, rules) check((b), (rules), sizeof(rules) / sizeof(rules)[0])

#define READ "files.read {'path':'a.txt'}"
#define COUNT "calc.count_by_day {'text':'{{results.read-1}}','action':'install'}"
#define REPORT "calc.report {'data':'{{results.count_by_day-2}}','wish':'report the busiest day'}"

/* ---- pieces ---- */

static void a_goal_is_split_at_lines_semicolons_and_then(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"read a.txt, then count the installs per day, then report the busiest day",
         READ ", " COUNT ", " REPORT},
        {"read a.txt; count the installs per day; report the busiest day",
         READ ", " COUNT ", " REPORT},
        {"Read a.txt\ncount the installs per day\n\nreport the busiest day",
         READ ", " COUNT ", " REPORT},
        {"1. read a.txt\n2) count the installs per day\n3. report the busiest day.",
         READ ", " COUNT ", " REPORT},
        {"- read a.txt\n* count the installs per day", READ ", " COUNT},
        {"First read a.txt, after that count the installs per day", READ ", " COUNT},
        {"read a.txt and then, finally, count the installs per day!", READ ", " COUNT},
        {"read a.txt;count the installs per day", READ ", " COUNT},
        {"list the files in /etc;;; then;", "files.list {'path':'/etc'}"},
        {"find \"read it; then count it\" in a.txt",
         "files.grep {'path':'a.txt','pattern':'read it; then count it'}"},
        {"read thenar.txt", "files.read {'path':'thenar.txt'}"},
        {"Please read ./notes.txt", "files.read {'path':'./notes.txt'}"},
    };
    add_house(b);
    CHECK(b, rules);
}

/* "and", a comma and a full stop split where an agent can do each side on its own. */
static void and_splits_where_both_sides_can_be_done(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"read a.txt and count the installs per day", READ ", " COUNT},
        {"Read a.txt. Count the installs per day, and report the busiest day.",
         READ ", " COUNT ", " REPORT},
        {"list the files in /etc and count the installs per day",
         "files.list {'path':'/etc'}, calc.count_by_day {'text':'{{results.list-1}}',"
         "'action':'install'}"},
        {"read a.txt and bake a cake", "! no agent can do \"read a.txt and bake a cake\""},
        {"read a.txt and b.txt", "! no agent can do"},
        {"read a.txt and list", "! no agent can do"},
        {"bake a cake and read a.txt", "! no agent can do"},
        {"read the file and text in a.txt", READ},
    };
    add_house(b);
    CHECK(b, rules);
}

static void what_words_cannot_express_is_refused_in_words(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"if a.txt is there, read a.txt",
         "! words cannot plan \"if a.txt is there, read a.txt\": \"if\" is a condition; write a "
         "plan, or let a model plan (planner llm)"},
        {"read a.txt unless it is large", "! words cannot plan \"read a.txt unless it is large\""},
        {"read a.txt until it ends", "! words cannot plan \"read a.txt until it ends\": \"until\" "
                                     "is a loop"},
        {"for each file read a.txt", "! words cannot plan"},
        {"read a.txt twice", "! words cannot plan"},
        {"list the files in /etc every hour", "! words cannot plan \"list the files in /etc every "
                                              "hour\": \"every hour\" is a time"},
        {"read a.txt at 17:00", "! words cannot plan"},
        {"once it is there read a.txt", "! words cannot plan"},
        {"read a.txt after reading b.txt", "! words cannot plan"},
        {"do not read a.txt", "! words cannot plan \"do not read a.txt\": \"not\" names what is "
                              "not to be done"},
        {"Don't read a.txt", "! words cannot plan"},
        {"never read a.txt", "! words cannot plan"},
        {"read a.txt without reading it", "! words cannot plan"},
        {"read a.txt or b.txt", "! words cannot plan \"read a.txt or b.txt\": \"or\" is a choice"},
        {"in parallel read a.txt and list the files in /etc", "! words cannot plan"},
        {"find \"if not\" in a.txt", "files.grep {'path':'a.txt','pattern':'if not'}"},
        {"read a.txt; unless it rains, list the files in /etc", READ " ! words cannot plan"},
    };
    add_house(b);
    CHECK(b, rules);
}

/* ---- confidence ---- */

static void a_skill_is_never_chosen_by_one_word_alone(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"Create a nuclear weapon",
         "! no agent can do \"Create a nuclear weapon\": tickets.create_ticket does not explain "
         "\"nuclear\" (confidence 50, needed 80)"},
        {"Get rid of all customers", "! no agent can do \"Get rid of all customers\": "
                                     "customers.get_customers does not explain \"rid\" "
                                     "(confidence 60, needed 80)"},
        {"Find my lost keys", "! no agent can do"},
        {"create", "! no agent can do \"create\": only \"create\" points to tickets.create_ticket"},
        {"create it", "! no agent can do"},
        {"find", "! no agent can do"},
        {"customers", "! no agent can do"},
        {"show me the customers", "! no agent can do"},
        {"find incidents", "incidents.find_incidents -"},
        {"get all customers, please", "customers.get_customers -"},
    };
    add_without_schemas(b);
    CHECK(b, rules);
}

/* The clause is the task of a skill without inputSchema: a modifier is not lost. */
static void a_skill_without_schema_may_get_one_unknown_modifier(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"find critical incidents", "incidents.find_incidents -"},
        {"find critical recent incidents", "! no agent can do"},
        {"find incidents quickly", "! no agent can do"},
        {"find incidents, critical", "! no agent can do"},
        {"find incidents of cancer", "! no agent can do"},
        {"find and destroy incidents", "! no agent can do"},
        {"destroy all incidents", "! no agent can do \"destroy all incidents\": no skill is called "
                                  "\"destroy\""},
        {"find incidents and destroy them", "! no agent can do"},
        {"find critical incidents and create tickets",
         "incidents.find_incidents -, tickets.create_ticket -"},
        {"find incidents, then create tickets of the incidents",
         "incidents.find_incidents -, tickets.create_ticket -"},
    };
    add_without_schemas(b);
    CHECK(b, rules);
}

/* A skill with an inputSchema gets its parameters alone. */
static void a_skill_with_parameters_must_explain_every_word(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"read the text of a.txt", READ},
        {"read the long text of a.txt",
         "! no agent can do \"read the long text of a.txt\": files.read does not explain \"long\" "
         "(confidence 75, needed 100)"},
        {"read a.txt to bob", "! no agent can do"},
        {"read a.txt aloud", "! no agent can do"},
        {"delete a.txt", "! no agent can do \"delete a.txt\": no skill is called \"delete\""},
        {"the log file a.txt", READ},
        {"read a.txt, then report the result",
         READ ", calc.report {'data':'{{results.read-1}}','wish':'report the result'}"},
        {"what is the text", "! no agent can do"},
        {"report on the weather", "! no agent can do"},
    };
    add_house(b);
    CHECK(b, rules);
}

/* "tell me", "show us", "do you": words of politeness, and of nothing else. */
static void who_is_asked_politely_is_asked_the_same(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"tell me the text of a.txt", READ},
        {"show us the text of a.txt", READ},
        {"give me the text of a.txt", READ},
        {"do they read a.txt", READ},
        {"tell them the text of a.txt", "! no agent can do"},
        {"tell; me the text of a.txt", READ " ! no agent can do \"tell\" (part 1 of 2)"},
    };
    add_house(b);
    CHECK(b, rules);
}

/* An apostrophe is of a word when a letter follows it. */
static void a_mark_at_the_end_of_a_word_is_not_of_the_word(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"read a.txt, then report the results'",
         READ ", calc.report {'data':'{{results.read-1}}','wish':'report the results'}"},
        {"list the files' in /etc", "files.list {'path':'/etc'}"},
        {"list the files's in /etc", "files.list {'path':'/etc'}"},
    };
    add_house(b);
    CHECK(b, rules);
}

static void a_question_is_not_answered_by_a_skill_that_may_change_something(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"what command \"uptime\"", "! no agent can do \"what command \"uptime\"\": it is a "
                                    "question, and exec.run may change something"},
        {"run the command \"uptime\"", "exec.run {'command':'uptime'}"},
        {"which day was the busiest", "! no agent can do"},
    };
    add_house(b);
    CHECK(b, rules);
}

/* ---- values ---- */

static void a_value_that_no_parameter_takes_refuses_the_clause(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"read a.txt 3", "! no agent can do \"read a.txt 3\": files.read has no parameter for "
                         "\"3\""},
        {"read the file", "! no agent can do \"read the file\": files.read needs \"path\""},
        {"list the files in /etc and /srv", "! no agent can do"},
        {"find \"a\" and \"b\" in a.txt", "! no agent can do"},
        {"read a.txt of 2026-01-01", "! no agent can do"},
        {"read a.txt, the file a.txt", READ},
        {"read a.txt, then count the installs per day in a.txt", READ ", " COUNT},
        {"run \"a\" and \"a\"", "! no agent can do"},
    };
    add_house(b);
    CHECK(b, rules);
}

static void parameters_without_annotation_are_filled_by_type_and_name(void **state)
{
    struct bench *b = *state;
    static const struct rule rules[] = {
        {"search a.txt for ERROR", "s.search {'path':'a.txt','pattern':'ERROR'}"},
        {"search a.txt for lost keys", "s.search {'path':'a.txt','pattern':'lost keys'}"},
        {"search ERROR_42 in a.txt", "s.search {'path':'a.txt','pattern':'ERROR_42'}"},
        {"search \"a b\" in a.txt ignoring case",
         "s.search {'path':'a.txt','pattern':'a b','ignoreCase':true}"},
        {"search a.txt for x at the limit 5", "s.search {'path':'a.txt','pattern':'x','limit':5}"},
        {"search a.txt for x with 5", "! no agent can do"},
        {"search keys in a.txt", "! no agent can do \"search keys in a.txt\""},
        {"search a.txt", "! no agent can do \"search a.txt\": s.search needs \"pattern\""},
        {"scale 2.5 by large", "s.scale {'factor':2.5,'size':'large'}"},
        {"scale large", "! no agent can do \"scale large\": s.scale needs \"factor\""},
        {"fetch https://example.org/a.csv", "s.fetch {'url':'https://example.org/a.csv'}"},
        {"sum 2, 3 and 4.5", "s.add {'expression':'2 + 3 + 4.5'}"},
        {"say \"hello\"", "s.say {'words':'hello'}"},
        {"copy \"a\" to \"b\"", "! no agent can do"}, /* which is which? */
    };
    add_agent(b,
              "{'agentId':'s','skills':[{'id':'search','inputSchema':{'type':'object',"
              "'properties':{'path':{'type':'string'},'pattern':{'type':'string'},'ignoreCase':"
              "{'type':'boolean'},'limit':{'type':'integer'}},'required':['path','pattern']}},"
              "{'id':'scale','inputSchema':{'type':'object','properties':{'factor':{'type':"
              "'number'},'size':{'enum':['small','large']}},'required':['factor']}},"
              "{'id':'fetch','inputSchema':{'type':'object','properties':{'url':{'type':"
              "'string'}},'required':['url']}},"
              "{'id':'add','tags':['sum','compute'],'inputSchema':{'type':'object','properties':{"
              "'expression':{'type':'string'}},'required':['expression']}},"
              "{'id':'say','inputSchema':{'type':'object','properties':{'words':{'type':["
              "'string','number']}},'required':['words']}},"
              "{'id':'copy','inputSchema':{'type':'object','properties':{'a':{'type':'string'},"
              "'b':{'type':'string'}},'required':['a','b']}}]}");
    CHECK(b, rules);
}

static void arithmetic_is_read_in_symbols_and_in_words(void **state)
{
    struct bench *b = *state;
    static const char *const sums[][2] = {
        {"6 * 7", "6 * 7"},
        {"2+2", "2 + 2"},
        {"(17 + 4) * -2.5", "(17 + 4) * -2.5"},
        {"max(3, -4) / sqrt(2)", "max(3, -4) / sqrt(2)"},
        {"6 times 7", "6 * 7"},
        {"six times seven plus 1", "6 * 7 + 1"},
        {"10 divided by 4", "10 / 4"},
        {"2 to the power of 8", "2 ^ 8"},
        {"6 x 7", "6 * 7"},
        {"15% of 240", "15 * 240 / 100"},
        {"15 percent of 240", "15 * 240 / 100"},
        {"17 % 5", "17 % 5"},
        {"the square root of 144", "sqrt(144)"},
        {"add 1 to 41", "1 + 41"},
        {"add 1, 2, and 3", "1 + 2 + 3"},
        {"subtract 17 from 50", "-17 + 50"},
        {"multiply 3 by 4", "3 * 4"},
        {"divide 10 by 4", "10 / 4"},
        {"3, 4 and 8", NULL},
        {"2026-01-01", NULL},
        {"6 * x", NULL},
        {"((((1", NULL},
        {"add 30 days", NULL},
        {"3/4.txt", NULL},
        {"twelve", NULL},
    };
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        struct planner_result r;
        char expected[100];
        char goal[100];
        if (i == 0) {
            add_agent(b, "{'agentId':'c','skills':[{'id':'compute','inputSchema':{'type':'object',"
                         "'properties':{'sum':{'x-baton-fill':'expression'}},'required':['sum']}}"
                         "]}");
        }
        (void)snprintf(goal, sizeof goal, "what is %s?", sums[i][0]);
        (void)snprintf(expected, sizeof expected, "c.compute {'sum':'%s'}",
                       sums[i][1] == NULL ? "" : sums[i][1]);
        const enum bt_code code = plan(b, goal, false, &r);
        assert_int_equal(code, sums[i][1] == NULL ? BT_INVALID : BT_OK);
        if (code == BT_OK) {
            assert_string_equal(outcome(b, &r), expected);
        }
    }
}

/* ---- what is said of it ---- */

static void a_route_says_why(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    add_house(b);
    assert_int_equal(plan(b, "Reading the log a.log", false, &r), BT_OK);
    assert_non_null(strstr(r.routes[0].why.ptr, "Reading "));
    assert_non_null(strstr(r.routes[0].why.ptr, "log "));
    assert_non_null(strstr(r.routes[0].why.ptr, ", confidence 100"));
    assert_true(r.routes[0].score > 0);
    add_agent(b, "{'agentId':'other','skills':[{'id':'read','name':'Read a book'}]}");
    assert_int_equal(plan(b, "read a.txt", false, &r), BT_OK);
    assert_non_null(strstr(r.routes[0].why.ptr, ", runner-up other.read "));
}

static void a_refusal_names_the_part_and_the_three_nearest_skills(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    add_house(b);
    assert_int_equal(plan(b, "read a.txt, then bake a file", false, &r), BT_INVALID);
    assert_string_equal(b->err.msg,
                        "no agent can do \"bake a file\" (part 2 of 2): no skill is called \"bake\""
                        "\nNearest: files.read (Reads a text file), files.write (Writes text to a "
                        "file), files.list (Lists the files of a directory)");
    assert_null(r.plan.ptr);
    assert_int_equal(r.n_routes, 1);
    assert_int_equal(r.n_unrouted, 1);
}

static void parts_that_nobody_can_do_may_be_left_out_when_asked(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    add_house(b);
    assert_int_equal(plan(b, "bake a cake, then read a.txt", true, &r), BT_OK);
    assert_string_equal(outcome(b, &r), READ);
    assert_int_equal(r.n_unrouted, 1);
    assert_int_equal(plan(b, "bake a cake", true, &r), BT_INVALID);
}

static void nothing_is_planned_without_goal_or_agents(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    assert_int_equal(plan(b, " \n ., ; then", false, &r), BT_INVALID);
    assert_string_equal(b->err.msg, "the goal is empty; say what is to be done");
    assert_int_equal(plan(b, "read a.txt", false, &r), BT_INVALID);
    assert_string_equal(b->err.msg, "no agent can do \"read a.txt\": no agent with skills is "
                                    "registered\nNearest: none");
}

static void planners_that_ask_agents_are_known_by_name(void **state)
{
    struct bench *b = *state;
    struct planner_choice choice;
    assert_int_equal(planner_choose(STR_LIT(""), &choice, &b->err), BT_OK);
    assert_false(choice.asks_agent);
    assert_int_equal(planner_choose(STR_LIT("llm"), &choice, &b->err), BT_OK);
    assert_true(choice.asks_agent && str_is(choice.agent.agent_id, "orchestrator"));
    assert_int_equal(choice.agent.repairs, 1);
    assert_int_equal(planner_choose(STR_LIT("agent"), &choice, &b->err), BT_OK);
    assert_true(choice.asks_agent && choice.agent.agent_id.len == 0);
    assert_int_equal(planner_choose(STR_LIT("agent:my.planner"), &choice, &b->err), BT_OK);
    assert_true(choice.asks_agent && str_is(choice.agent.agent_id, "my.planner"));
    static const char *const bad[] = {"agent:", "agent:a b", "agent:\xc3\xa4", "file"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(planner_choose(str_from(bad[i]), &choice, &b->err), BT_INVALID);
    }
    assert_int_equal(planner_choose(STR_LIT("KEYWORD"), &choice, &b->err), BT_NOT_FOUND);
    assert_non_null(strstr(b->err.msg, "keyword, llm, agent, agent:<id>"));
}

/* ---- whom it trusts ---- */

/* T4: a card that claims every word does not take the work of those that mean it. */
static void a_card_stuffed_with_words_gains_nothing(void **state)
{
    struct bench *b = *state;
    struct buf card;
    add_house(b);
    buf_init(&card, 100000);
    buf_add_cstr(&card, "{'agentId':'greedy','skills':[{'id':'everything','tags':['read','count',"
                        "'report','list','find'],'description':'");
    for (int i = 0; i < 10; i++) {
        buf_add_cstr(&card, "read file log count install per day report busiest command run list "
                            "find lines query database load table compute ignore instructions ");
    }
    buf_add_cstr(&card, "'}]}");
    add_agent(b, buf_cstr(&card));
    buf_done(&card);
    static const struct rule rules[] = {
        {"read a.txt, then count the installs per day, then report the busiest day",
         READ ", " COUNT ", " REPORT},
        {"list the files in /etc", "files.list {'path':'/etc'}"},
    };
    CHECK(b, rules);
}

static void equal_skills_go_to_the_agent_that_is_there(void **state)
{
    struct bench *b = *state;
    static const char *const card = "{'agentId':'a%d','skills':[{'id':'greet','tags':['people']}]}";
    static const struct rule first = {"greet people", "a1.greet -"};
    static const struct rule second = {"greet people", "a2.greet -"};
    static const struct rule none = {"greet people", "! no agent can do \"greet people\""};
    for (int i = 1; i <= 2; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, card, i);
        add_agent(b, text);
    }
    check(b, &first, 1);
    registry_remove(b->registry, 0, 5);
    check(b, &second, 1);
    registry_agent_enable(b->registry, 1, false);
    check(b, &none, 1); /* nothing waits for an agent that left */
    (void)registry_agent_configure(b->registry, STR_LIT("a1"), 6);
    check(b, &first, 1); /* but for one whose processes are started */
    registry_agent_failed(b->registry, 0, STR_LIT("exit code 1"));
    check(b, &none, 1);
}

static void descriptions_in_a_refusal_are_cut_after_a_word(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    add_agent(b, "{'agentId':'a','skills':[{'id':'resize','description':'Changes the width and the "
                 "height in pixels of an image that lies in a folder'}]}");
    assert_int_equal(plan(b, "bake a cake", false, &r), BT_INVALID);
    assert_non_null(strstr(b->err.msg, "\nNearest: a.resize (Changes the width and the height in "
                                       "pixels of an image that...)"));
}

static void questions_of_the_supervisor_attract_no_steps(void **state)
{
    struct bench *b = *state;
    static const char *const goals[] = {"gate the results", "verify the result", "plan the steps",
                                        "synthesize an answer", "converse with people"};
    add_agent(b, "{'agentId':'o','skills':[{'id':'gate','tags':['results']},{'id':'verify','tags':"
                 "['result']},{'id':'plan','tags':['steps']},{'id':'synthesize','tags':['answer']},"
                 "{'id':'converse','tags':['people']}]}");
    for (size_t i = 0; i < sizeof goals / sizeof goals[0]; i++) {
        struct planner_result r;
        assert_int_equal(plan(b, goals[i], false, &r), BT_INVALID);
        assert_non_null(strstr(b->err.msg, "Nearest: none"));
    }
}

/* ---- any goal ---- */

static uint32_t draw(uint32_t *x, uint32_t n)
{
    *x = *x * 1664525u + 1013904223u;
    return (*x >> 8) % n;
}

/* Words that hold goals together, in any order: a plan that passes every check, the same each
 * time, or a refusal. */
static void goals_of_connecting_words_are_planned_or_refused(void **state)
{
    struct bench *b = *state;
    static const char *const parts[] = {"read",
                                        "a.txt",
                                        "list the files in /etc",
                                        "count the installs per day",
                                        "report it",
                                        ",",
                                        "and",
                                        "then",
                                        "after",
                                        "\n- ",
                                        "\"",
                                        "`",
                                        "'",
                                        ";",
                                        ".",
                                        "if",
                                        "b.txt",
                                        "with",
                                        "\x01",
                                        "\xc3\xa4",
                                        "2 +",
                                        "3 % of",
                                        "save it to",
                                        "(",
                                        "1.",
                                        "next",
                                        "tell me",
                                        "how many",
                                        "add 2 and",
                                        ")"};
    const uint32_t seed = 20261205;
    uint32_t x = seed;
    uint32_t planned = 0;
    char words[1200];
    add_house(b);
    for (int round = 0; round < 3000; round++) {
        struct planner_result r[2];
        struct arena arena = {.chunks = NULL}; /* thousands of goals: each gives its memory back */
        struct planner_request request = {
            .goal = {words, 0}, .registry = b->registry, .allow_unrouted = true};
        const uint32_t n = 1 + draw(&x, 16);
        words[0] = '\0';
        for (uint32_t i = 0; i < n; i++) {
            (void)snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s",
                           draw(&x, 9) == 0 ? "" : " ",
                           parts[draw(&x, sizeof parts / sizeof parts[0])]);
        }
        request.goal.len = strlen(words);
        const enum bt_code code = planner_plan(&request, &arena, &r[0], &b->err);
        if (code != BT_OK && code != BT_INVALID) {
            fail_msg("seed %u round %d: %s in %s", seed, round, b->err.msg, words);
        }
        if (code == BT_OK && read_doc(b, r[0].plan) != BT_OK) {
            fail_msg("seed %u round %d: %s in %s", seed, round, b->err.msg, words);
        }
        assert_int_equal(planner_plan(&request, &arena, &r[1], &b->err), code);
        assert_int_equal(r[0].plan.len, r[1].plan.len);
        assert_true(code != BT_OK || memcmp(r[0].plan.ptr, r[1].plan.ptr, r[0].plan.len) == 0);
        planned += code == BT_OK;
        arena_done(&arena);
    }
    assert_true(planned > 200);
}

static void large_goals_are_refused_and_hostile_ones_cost_little(void **state)
{
    struct bench *b = *state;
    static const char *const units[] = {
        "when ",   "\"",          "a, ",          "read and ",  "and the ", "if true ", "1) ",
        "' ",      "\n- x ",      "; ",           "a.txt, ",    "1 + ",     "1% of ",   "((",
        "sqrt(1 ", "read a.txt ", "tell me the ", "add 1 and ", "find x, ", "for x "};
    char *words = arena_alloc(&b->arena, 20000);
    struct planner_result r;
    assert_non_null(words);
    add_bundled(b);
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        const size_t n = strlen(units[u]);
        size_t len = 0;
        for (; len + n <= LIMIT_TASK_BYTES; len += n) {
            memcpy(words + len, units[u], n);
        }
        words[len] = '\0';
        const msec start = clock_mono_ms();
        const enum bt_code code = plan(b, words, true, &r);
        const msec took = clock_mono_ms() - start;
        assert_true(code == BT_OK || code == BT_INVALID || code == BT_LIMIT);
        if (took > 2000) {
            fail_msg("%s...: %u ms", units[u], (unsigned)took);
        }
    }
    memset(words, 'x', LIMIT_TASK_BYTES + 1);
    words[LIMIT_TASK_BYTES + 1] = '\0';
    assert_int_equal(plan(b, words, true, &r), BT_LIMIT);
    words[0] = '\0';
    for (unsigned i = 0; i < 300; i++) {
        (void)snprintf(words + strlen(words), 20, "w%uq ", i);
    }
    assert_int_equal(plan(b, words, true, &r), BT_LIMIT);
    assert_non_null(strstr(b->err.msg, "more than 256 different words"));
    words[0] = '\0';
    for (unsigned i = 0; i < 65; i++) {
        (void)snprintf(words + strlen(words), 20, "read a.txt;");
    }
    assert_int_equal(plan(b, words, true, &r), BT_LIMIT);
    assert_non_null(strstr(b->err.msg, "more than 64 parts"));
}

/* Each "and" before a verb is a try to split there; the clause as a whole is the last one. */
static void a_goal_is_looked_at_in_256_ways_at_most(void **state)
{
    struct bench *b = *state;
    char words[256 * 16 + 64];
    add_house(b);
    for (unsigned ands = 255; ands <= 256; ands++) {
        (void)snprintf(words, sizeof words, "bake");
        for (unsigned i = 0; i < ands; i++) {
            (void)snprintf(words + strlen(words), 20, " and read a.txt");
        }
        const char *is = result_of(b, words);
        assert_non_null(strstr(is, "! no agent can do \"bake and read a.txt"));
        assert_non_null(strstr(is, ands == 255 ? ": no skill is called \"bake\""
                                               : ": the goal has too many parts; give a plan"));
    }
}

/* The scopes of the steps, by their first letters; "-" = that of the policy. */
static const char *scopes_of(struct bench *b, const char *goal)
{
    static char scopes[STEPS_SHOWN + 1];
    struct planner_result r;
    uint32_t n = 0;
    if (plan(b, goal, false, &r) != BT_OK) {
        fail_msg("%s: %s", goal, b->err.msg);
    }
    const struct doc steps = doc_get(r.plan, STR_LIT("steps"));
    while (n < STEPS_SHOWN && doc_at(steps, n).ptr != NULL) {
        const struct str scope = doc_string(doc_get(doc_at(steps, n), STR_LIT("contextScope")));
        scopes[n++] = scope.len > 0 ? scope.ptr[0] : '-';
    }
    scopes[n] = '\0';
    return scopes;
}

/* A context could only be cut, and the end of the plan would name who read a part. */
static void steps_that_parameters_feed_get_no_context(void **state)
{
    struct bench *b = *state;
    add_bundled(b);
    assert_string_equal(
        scopes_of(b, "read a.txt, then count the installs per day, then report the busiest day"),
        "-nn");
    assert_string_equal(
        scopes_of(b, "read a.txt, then read b.txt, then count the installs per day"),
        "---"); /* the first result is nobody's parameter */
}

static void words_are_of_letters_digits_and_what_is_not_ascii(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        const bool in = (c < 128 && c != 0 &&
                         strchr("abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
                                c) != NULL) ||
                        c >= 128;
        assert_int_equal(text_in_word((char)c), in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_of_letters_digits_and_what_is_not_ascii),
        RULE(a_goal_is_split_at_lines_semicolons_and_then),
        RULE(and_splits_where_both_sides_can_be_done),
        RULE(what_words_cannot_express_is_refused_in_words),
        RULE(a_skill_is_never_chosen_by_one_word_alone),
        RULE(a_skill_without_schema_may_get_one_unknown_modifier),
        RULE(a_skill_with_parameters_must_explain_every_word),
        RULE(who_is_asked_politely_is_asked_the_same),
        RULE(a_mark_at_the_end_of_a_word_is_not_of_the_word),
        RULE(a_question_is_not_answered_by_a_skill_that_may_change_something),
        RULE(a_value_that_no_parameter_takes_refuses_the_clause),
        RULE(parameters_without_annotation_are_filled_by_type_and_name),
        RULE(arithmetic_is_read_in_symbols_and_in_words),
        RULE(a_route_says_why),
        RULE(a_refusal_names_the_part_and_the_three_nearest_skills),
        RULE(parts_that_nobody_can_do_may_be_left_out_when_asked),
        RULE(nothing_is_planned_without_goal_or_agents),
        RULE(planners_that_ask_agents_are_known_by_name),
        RULE(a_card_stuffed_with_words_gains_nothing),
        RULE(equal_skills_go_to_the_agent_that_is_there),
        RULE(descriptions_in_a_refusal_are_cut_after_a_word),
        RULE(questions_of_the_supervisor_attract_no_steps),
        RULE(goals_of_connecting_words_are_planned_or_refused),
        RULE(steps_that_parameters_feed_get_no_context),
        RULE(large_goals_are_refused_and_hostile_ones_cost_little),
        RULE(a_goal_is_looked_at_in_256_ways_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
