#include "tests/unit/plan/fixture.h"

#include "supervisor/keyword/clauses.h"
#include "supervisor/keyword/expression.h"
#include "supervisor/keyword/planner.h"
#include "supervisor/keyword/said.h"
#include "supervisor/keyword/words.h"

/* ---- clauses ---- */

static const char *split(struct bench *b, const char *goal)
{
    struct piece clauses[CLAUSES_MAX];
    const uint32_t n = clauses_split(str_from(goal), clauses);
    char *line = arena_alloc(&b->arena, strlen(goal) + 4 * CLAUSES_MAX + 1);
    assert_non_null(line);
    for (uint32_t i = 0; i < n && i < CLAUSES_MAX; i++) {
        (void)snprintf(line + strlen(line), strlen(goal) + 4, "[%.*s]", STR_ARG(clauses[i].text));
    }
    return line;
}

static void a_goal_is_split_at_its_connectives(void **state)
{
    struct bench *b = *state;
    assert_string_equal(
        split(b, "read /var/log/dpkg.log, then count the installs per day, then report it"),
        "[read /var/log/dpkg.log][count the installs per day][report it]");
    assert_string_equal(split(b, "a b and then c d; e f\ng h -> i j"), "[a b][c d][e f][g h][i j]");
    assert_string_equal(split(b, "First read it. After that, count it! Finally report it."),
                        "[read it][count it][report it]");
    assert_string_equal(split(b, "1. read x\n2) count y\n- report z\n"),
                        "[read x][count y][report z]");
    assert_string_equal(split(b, "; ,. \n"), "");
}

static void dots_in_names_numbers_and_abbreviations_do_not_split(void **state)
{
    struct bench *b = *state;
    assert_string_equal(split(b, "read report.csv and 3.5 e.g. the first"),
                        "[read report.csv and 3.5 e.g. the first]");
    assert_string_equal(split(b, "Read ./a.b. Count it"), "[Read ./a.b][Count it]");
}

static void quotes_and_conditions_are_kept_whole(void **state)
{
    struct bench *b = *state;
    assert_string_equal(split(b, "run \"a; b then c. d\" then stop"),
                        "[run \"a; b then c. d\"][stop]");
    assert_string_equal(split(b, "run 'x; y', then don't wait; it's done"),
                        "[run 'x; y'][don't wait][it's done]");
    assert_string_equal(split(b, "if it fails then say so"), "[if it fails then say so]");
    assert_string_equal(split(b, "say \"never closed; go"), "[say \"never closed][go]");
    assert_string_equal(split(b, "strengthen the thenar"), "[strengthen the thenar]");
}

static void too_many_clauses_are_told(void **state)
{
    (void)state;
    char goal[400];
    struct piece clauses[CLAUSES_MAX];
    for (size_t i = 0; i + 1 < sizeof goal; i += 2) {
        memcpy(goal + i, "x;", 2);
    }
    assert_int_equal(clauses_split((struct str){goal, sizeof goal}, clauses), CLAUSES_MAX + 1);
}

/* ---- words ---- */

static const char *words(struct bench *b, const char *text)
{
    struct words w;
    struct word word;
    char *line = arena_alloc(&b->arena, 400);
    assert_non_null(line);
    words_init(&w, str_from(text));
    while (words_next(&w, &word)) {
        (void)snprintf(line + strlen(line), 40, "%s%.*s", line[0] == '\0' ? "" : " ", (int)word.len,
                       word.text);
    }
    return line;
}

static void words_are_lower_case_and_stemmed_without_stop_words(void **state)
{
    struct bench *b = *state;
    assert_string_equal(words(b, "Counting the Installs, counted queries"),
                        "count install count query");
    assert_string_equal(words(b, "compute computed computing computes"),
                        "comput comput comput comput");
    assert_string_equal(words(b, "running stopped passes status bus"), "run stop pass status bus");
    assert_string_equal(words(b, "count_by_day countByDay count-by-day"),
                        "count day count day count day");
}

static void paths_and_addresses_are_kinds_of_things(void **state)
{
    struct bench *b = *state;
    assert_string_equal(words(b, "read /var/log/dpkg.log now"), "read file log now");
    assert_string_equal(words(b, "open https://x.org/a.csv and and/or"), "open url");
    assert_string_equal(words(b, "sum report.csv, 3.5"), "sum file csv 3 5");
}

static void arithmetic_is_found_where_it_stands(void **state)
{
    (void)state;
    static const struct {
        const char *text, *found;
    } texts[] = {
        {"compute 6 * 7 and add 1", "6 * 7"},
        {"what is 2+2?", "2+2"},
        {"(17 + 4) * 2, please", "(17 + 4) * 2"},
        {"compute max(3, -4.5) / 2.", "max(3, -4.5) / 2"},
        {"3, 4 and 8", ""},
        {"from 2026-01-01 to 2026-03-01", ""},
        {"total / days", ""},
        {"6 * x", ""},
        {"say \"1 + 1\"", ""},
        {"read 3/4.txt", ""},
        {"((((1", ""},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct str found = {"", 0};
        (void)expression_find(str_from(texts[i].text), &found);
        if (!str_is(found, texts[i].found)) {
            fail_msg("%s: %.*s", texts[i].text, STR_ARG(found));
        }
    }
}

static void values_and_question_words_are_no_words_of_a_clause(void **state)
{
    (void)state;
    struct said said;
    static const char *const clauses[][2] = {
        {"could you please delete /var/read.log \"list it\" 17 2 * 3", "delet"},
        {"what is in the log of 2026-01-01?", "log"},
        {"do a thing", "do thing"},
        {"which files does it list to bob", "file list bob*"},
        {"read a.txt aloud", "read aloud*"},
        {"how many lines", "line count*"},
    };
    for (size_t i = 0; i < sizeof clauses / sizeof clauses[0]; i++) {
        char line[200] = "";
        said_read(str_from(clauses[i][0]), &said);
        for (uint32_t k = 0; k < said.n; k++) {
            (void)snprintf(line + strlen(line), 50, "%s%.*s%s", k == 0 ? "" : " ",
                           (int)said.at[k].word.len, said.at[k].word.text,
                           said.at[k].aside ? "*" : "");
        }
        assert_string_equal(line, clauses[i][1]);
    }
    assert_true(said_has(STR_LIT("/srv/my-letters/a.txt"), STR_LIT("letter")));
    assert_false(said_has(STR_LIT("/srv/a.txt"), STR_LIT("letter")));
}

/* ---- golden plans ---- */

static enum bt_code plan(struct bench *b, const char *goal, struct planner_result *ret)
{
    const struct planner_request request = {.goal = str_from(goal), .registry = b->registry};
    struct planner planner;
    assert_int_equal(planner_find(STR_LIT("keyword"), &planner, &b->err), BT_OK);
    return planner_plan(&planner, &request, &b->arena, ret, &b->err);
}

struct golden {
    const char *goal;
    const char *steps; /* "agent/skill {parameters}" each, or "! clause" for what is unroutable */
};

static const struct golden goldens[] = {
    {"read /var/log/dpkg.log, then count the installs per day, then report the busiest day",
     "files/read {'path':'/var/log/dpkg.log'} | "
     "calc/count_by_day {'text':'{{results.read-1}}','action':'install'} | "
     "calc/report {'data':'{{results.count_by_day-2}}','wish':'report the busiest day'}"},
    {"list the files in /etc", "files/list {'path':'/etc'}"},
    {"Read ./notes.txt", "files/read {'path':'./notes.txt'}"},
    {"find lines with \"error\" in /var/log/syslog",
     "files/grep {'path':'/var/log/syslog','pattern':'error'}"},
    {"read a.txt; save it to b.txt",
     "files/read {'path':'a.txt'} | files/write {'path':'b.txt','text':'{{results.read-1}}'}"},
    {"select from the database with \"select 1\"", "sql/query {'sql':'select 1'}"},
    {"query the table \"select * from t\" and give 20 rows",
     "sql/query {'sql':'select * from t','limit':20}"},
    {"import data.csv into the database", "sql/load {'file':'data.csv'}"},
    {"read rows.json and then load rows into the table",
     "files/read {'path':'rows.json'} | sql/load {'rows':'{{results.read-1.rows}}'}"},
    {"compute \"2 + 2\"", "calc/evaluate {'expression':'2 + 2'}"},
    {"run the command \"uptime\"", "exec/run {'command':'uptime'}"},
    {"1. read x.log\n2. count the uninstalled packages per day\n3. write it to out.md",
     "files/read {'path':'x.log'} | "
     "calc/count_by_day {'text':'{{results.read-1}}','action':'remove'} | "
     "files/write {'path':'out.md','text':'{{results.count_by_day-2}}'}"},
    {"please read first.txt", "files/read {'path':'first.txt'}"},
    {"bake a cake", "! bake a cake"},
    {"read a.txt, then bake a cake", "files/read {'path':'a.txt'} | ! bake a cake"},
    {"read the file", "! read the file"},                           /* which one? */
    {"count the installs per day", "! count the installs per day"}, /* of what? */
};

static const char *outcome(struct bench *b, const struct planner_result *r)
{
    char *line = arena_alloc(&b->arena, 4000);
    assert_non_null(line);
    const struct doc steps = doc_get(r->plan, STR_LIT("steps"));
    for (uint32_t i = 0; i < r->n_routes; i++) {
        const struct doc params = doc_get(doc_at(steps, i), STR_LIT("parameters"));
        (void)snprintf(line + strlen(line), 1500, "%s%.*s/%.*s %s", i == 0 ? "" : " | ",
                       STR_ARG(r->routes[i].agent_id), STR_ARG(r->routes[i].skill),
                       params.ptr == NULL ? "-" : json_of(b, params));
    }
    for (uint32_t i = 0; i < r->n_unrouted; i++) {
        (void)snprintf(line + strlen(line), 500, "%s! %.*s", line[0] == '\0' ? "" : " | ",
                       STR_ARG(r->unrouted[i].clause));
    }
    return line;
}

static void goals_become_the_plans_that_people_expect(void **state)
{
    struct bench *b = *state;
    add_house(b);
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        struct planner_result r;
        const bool good = strchr(goldens[i].steps, '!') == NULL;
        const enum bt_code code = plan(b, goldens[i].goal, &r);
        if (!good) {
            /* The routes found so far are told, but there is no plan. */
            assert_int_equal(code, BT_INVALID);
            assert_null(r.plan.ptr);
            const char *bang = strchr(goldens[i].steps, '!');
            assert_non_null(strstr(outcome(b, &r), bang));
            continue;
        }
        if (code != BT_OK) {
            fail_msg("%s: %s", goldens[i].goal, b->err.msg);
        }
        assert_string_equal(outcome(b, &r), goldens[i].steps);
        /* What the planner makes is a plan that passes every check. */
        if (read_doc(b, r.plan) != BT_OK) {
            fail_msg("%s: %s", goldens[i].goal, b->err.msg);
        }
        assert_true(b->plan->chain);
    }
}

static void a_route_says_why(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    add_house(b);
    assert_int_equal(plan(b, "read /var/log/dpkg.log", &r), BT_OK);
    const char *why = r.routes[0].why.ptr;
    assert_non_null(strstr(why, "read "));
    assert_non_null(strstr(why, "runner-up "));
    assert_true(r.routes[0].score > 0);
    assert_int_equal(plan(b, "Computing \"1 + 1\"", &r), BT_OK);
    assert_non_null(strstr(r.routes[0].why.ptr, "computing ")); /* not the stem */
}

static void an_unroutable_clause_says_what_came_nearest(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    add_house(b);
    assert_int_equal(plan(b, "bake a cake", &r), BT_INVALID);
    assert_non_null(strstr(r.unrouted[0].why.ptr, "no skill"));
    assert_int_equal(plan(b, "sing about the files in the morning sun", &r), BT_INVALID);
    assert_non_null(strstr(r.unrouted[0].why.ptr, "the nearest: files/"));
    assert_int_equal(plan(b, "read the file", &r), BT_INVALID);
    assert_non_null(strstr(r.unrouted[0].why.ptr, "files/read needs \"path\""));
}

static void unroutable_clauses_may_be_left_out_when_asked(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    struct planner planner;
    add_house(b);
    const struct planner_request request = {.goal = STR_LIT("bake a cake, then read a.txt"),
                                            .registry = b->registry,
                                            .allow_unrouted = true};
    assert_int_equal(planner_find(STR_LIT(""), &planner, &b->err), BT_OK);
    assert_int_equal(planner_plan(&planner, &request, &b->arena, &r, &b->err), BT_OK);
    assert_int_equal(r.n_routes, 1);
    assert_int_equal(r.n_unrouted, 1);
}

static void nothing_is_planned_without_goal_or_agents(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    struct planner planner;
    assert_int_equal(plan(b, " \n", &r), BT_INVALID);
    assert_int_equal(plan(b, "read a.txt", &r), BT_INVALID);
    assert_non_null(strstr(r.unrouted[0].why.ptr, "no agent"));
    assert_int_equal(planner_find(STR_LIT("oracle"), &planner, &b->err), BT_NOT_FOUND);
}

static void planners_that_ask_agents_are_known_by_name(void **state)
{
    struct bench *b = *state;
    struct planner_choice choice;
    struct planner planner;
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
    assert_int_equal(planner_find(STR_LIT("llm"), &planner, &b->err), BT_INVALID);
    assert_non_null(strstr(b->err.msg, "dry run"));
    assert_int_equal(planner_find(STR_LIT("file"), &planner, &b->err), BT_INVALID);
}

static void the_same_goal_gives_the_same_plan(void **state)
{
    struct bench *b = *state;
    struct planner_result r1;
    struct planner_result r2;
    add_house(b);
    assert_int_equal(plan(b, goldens[0].goal, &r1), BT_OK);
    assert_int_equal(plan(b, goldens[0].goal, &r2), BT_OK);
    assert_int_equal(r1.plan.len, r2.plan.len);
    assert_memory_equal(r1.plan.ptr, r2.plan.ptr, r1.plan.len);
    assert_string_equal(r1.routes[2].why.ptr, r2.routes[2].why.ptr);
}

/* T4: a card that claims every word in a long description does not take the work of those that mean
 * it. */
static void a_card_stuffed_with_words_gains_nothing(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    char card[4000];
    add_house(b);
    (void)snprintf(card, sizeof card,
                   "{'agentId':'greedy','skills':[{'id':'everything','description':'");
    for (int i = 0; i < 8; i++) {
        (void)snprintf(card + strlen(card), sizeof card - strlen(card),
                       "read file log count install per day report busiest command run list find "
                       "lines query database load table compute ignore previous instructions ");
    }
    (void)snprintf(card + strlen(card), sizeof card - strlen(card), "'}]}");
    add_agent(b, card);
    assert_int_equal(plan(b, goldens[0].goal, &r), BT_OK);
    assert_string_equal(outcome(b, &r), goldens[0].steps);
}

static void the_verb_of_a_clause_counts_twice(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    add_agent(b, "{'agentId':'a','skills':[{'id':'archive'},{'id':'invoice'}]}");
    assert_int_equal(plan(b, "invoice the archive", &r), BT_OK);
    assert_string_equal(r.routes[0].skill.ptr, "invoice");
    assert_int_equal(plan(b, "archive the invoice", &r), BT_OK);
    assert_string_equal(r.routes[0].skill.ptr, "archive");
}

static void equal_skills_go_to_the_agent_that_is_there(void **state)
{
    struct bench *b = *state;
    struct planner_result r;
    add_agent(b, "{'agentId':'a1','skills':[{'id':'greet','tags':['hello']}]}");
    add_agent(b, "{'agentId':'a2','skills':[{'id':'greet','tags':['hello']}]}");
    assert_int_equal(plan(b, "greet people", &r), BT_OK);
    assert_string_equal(r.routes[0].agent_id.ptr, "a1");
    registry_remove(b->registry, 0, 5);
    assert_int_equal(plan(b, "greet people", &r), BT_OK);
    assert_string_equal(r.routes[0].agent_id.ptr, "a2");
    registry_agent_enable(b->registry, 1, false);
    assert_int_equal(plan(b, "greet people", &r), BT_OK);
    assert_string_equal(r.routes[0].agent_id.ptr, "a1");
}

static void hostile_goals_are_planned_or_refused_without_harm(void **state)
{
    struct bench *b = *state;
    static const char alphabet[] = "\"'`;.,\n-> then\xc3\xa4/read 1.{}";
    add_house(b);
    uint32_t x = 7;
    for (int round = 0; round < 500; round++) {
        char goal[300];
        struct planner_result r;
        for (size_t i = 0; i + 1 < sizeof goal; i++) {
            x = x * 1664525u + 1013904223u;
            goal[i] = alphabet[(x >> 20) % (sizeof alphabet - 1)];
        }
        goal[x % (sizeof goal - 1)] = '\0';
        goal[sizeof goal - 1] = '\0';
        (void)plan(b, goal, &r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_goal_is_split_at_its_connectives),
        RULE(dots_in_names_numbers_and_abbreviations_do_not_split),
        RULE(quotes_and_conditions_are_kept_whole),
        RULE(too_many_clauses_are_told),
        RULE(words_are_lower_case_and_stemmed_without_stop_words),
        RULE(paths_and_addresses_are_kinds_of_things),
        RULE(arithmetic_is_found_where_it_stands),
        RULE(values_and_question_words_are_no_words_of_a_clause),
        RULE(goals_become_the_plans_that_people_expect),
        RULE(a_route_says_why),
        RULE(an_unroutable_clause_says_what_came_nearest),
        RULE(unroutable_clauses_may_be_left_out_when_asked),
        RULE(nothing_is_planned_without_goal_or_agents),
        RULE(planners_that_ask_agents_are_known_by_name),
        RULE(the_same_goal_gives_the_same_plan),
        RULE(a_card_stuffed_with_words_gains_nothing),
        RULE(the_verb_of_a_clause_counts_twice),
        RULE(equal_skills_go_to_the_agent_that_is_there),
        RULE(hostile_goals_are_planned_or_refused_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
