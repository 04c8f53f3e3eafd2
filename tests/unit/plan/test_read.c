#include "fixture.h"

#include "supervisor/plan/problem_add.h"

#define TASK "'task':'do something worth doing'"

/* ---- canonical plans ---- */

static void a_chain_is_read_with_every_default(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'goal':'g','steps':["
                                  "{'stepId':'a','agentId':'files','skill':'read'," TASK
                                  ",'parameters':{'path':'/etc/hosts'}},"
                                  "{'stepId':'b','agentId':'calc'," TASK "}]}"),
                     BT_OK);
    const struct plan *p = b->plan;
    assert_int_equal(b->problems.total, 0);
    assert_true(p->chain);
    assert_int_equal(p->n_steps, 2);
    assert_int_equal(p->max_concurrency, 1);
    assert_int_equal(p->revision, 1);
    assert_int_equal(p->timeout_ms, 0);
    assert_true(str_is(p->goal, "g"));
    const struct step_policy *s = &p->steps[0].rules->policy;
    assert_int_equal(s->max_retries, 2);
    assert_int_equal(s->timeout_ms, 60000);
    assert_int_equal(s->on_failure, ON_FAILURE_ABORT);
    assert_int_equal(s->scope, SCOPE_ALL);
    assert_int_equal(s->effects, EFFECTS_NONE); /* from the card */
    assert_int_equal(p->steps[1].rules->policy.effects, EFFECTS_IDEMPOTENT);
    assert_int_equal(s->backoff.kind, BACKOFF_LINEAR);
    assert_int_equal(s->backoff.initial_ms, 1000);
    assert_int_equal(p->steps[0].agent, 0);
    assert_int_equal(p->steps[1].agent, 2);
}

static void a_dependency_field_anywhere_makes_a_dag(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b,
                               "{'steps':[{'stepId':'a','agentId':'calc'," TASK "},"
                               "{'stepId':'b','agentId':'calc'," TASK ",'dependsOn':[]},"
                               "{'stepId':'c','agentId':'calc'," TASK ",'dependsOn':['b','a']}]}"),
                     BT_OK);
    const struct plan *p = b->plan;
    assert_false(p->chain);
    assert_int_equal(p->max_concurrency, 5);
    assert_int_equal(p->steps[0].rules->policy.scope, SCOPE_DEPS);
    assert_int_equal(p->steps[2].deps_n, 2);
    assert_int_equal(p->deps[p->steps[2].deps_at], 0); /* ascending */
    assert_int_equal(p->deps[p->steps[2].deps_at + 1], 1);
    assert_int_equal(p->dependents[p->steps[0].dependents_at], 2);
}

static void policy_is_read_for_plan_and_step(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(
        read_json(b, "{'policy':{'maxRetries':0,'backoff':{'kind':'exponential','initialMs':10,"
                     "'multiplier':1.5,'maxMs':99,'jitter':0.25},'stepTimeoutMs':5000,"
                     "'planTimeoutMs':7000,'onFailure':'stop','maxConcurrency':3,"
                     "'contextScope':'none','contextBudgetBytes':1000},"
                     "'steps':[{'stepId':'a','agentId':'calc','dependsOn':[]," TASK "},"
                     "{'stepId':'b','agentId':'calc'," TASK ",'onFailure':'skip','maxRetries':7,"
                     "'backoff':'fixed','timeoutMs':0,'effects':'unsafe','runIf':'always',"
                     "'contextScope':'all','verify':{'type':'object'}}]}"),
        BT_OK);
    const struct plan *p = b->plan;
    const struct step_policy *a = &p->steps[0].rules->policy;
    const struct step_policy *s = &p->steps[1].rules->policy;
    assert_int_equal(p->max_concurrency, 3);
    assert_int_equal(p->timeout_ms, 7000);
    assert_int_equal(p->context_budget, 1000);
    assert_int_equal(a->on_failure, ON_FAILURE_ABORT);
    assert_int_equal(a->max_retries, 0);
    assert_int_equal(a->timeout_ms, 5000);
    assert_int_equal(a->scope, SCOPE_NONE);
    assert_int_equal(a->backoff.kind, BACKOFF_EXPONENTIAL);
    assert_int_equal(a->backoff.multiplier_permille, 1500);
    assert_int_equal(a->backoff.jitter_permille, 250);
    assert_int_equal(a->run_if, RUN_IF_SUCCESS);
    assert_int_equal(s->on_failure, ON_FAILURE_SKIP);
    assert_int_equal(s->max_retries, 7);
    assert_int_equal(s->backoff.kind, BACKOFF_FIXED);
    assert_int_equal(s->backoff.initial_ms, 10); /* the rest comes from the plan */
    assert_int_equal(s->timeout_ms, 0);
    assert_int_equal(s->effects, EFFECTS_UNSAFE);
    assert_int_equal(s->scope, SCOPE_ALL);
    assert_int_equal(s->run_if, RUN_IF_ALWAYS);
    assert_non_null(p->steps[1].rules->verify.ptr);
}

static void steps_of_an_agent_without_a_card_are_unsafe(void **state)
{
    struct bench *b = *state; /* known by its name alone, as after a restart of the daemon */
    add_house(b);
    assert_int_not_equal(registry_agent_configure(b->registry, STR_LIT("away"), 1), REGISTRY_NONE);
    assert_int_equal(read_json(b, "{'steps':[{'stepId':'a','agentId':'away'," TASK "},"
                                  "{'stepId':'b','agentId':'away'," TASK ",'effects':'idempotent'},"
                                  "{'stepId':'c','agentId':'calc'," TASK "},"
                                  "{'stepId':'d','type':'human_review'," TASK "}]}"),
                     BT_OK);
    assert_int_equal(b->plan->steps[0].rules->policy.effects, EFFECTS_UNSAFE);
    assert_int_equal(b->plan->steps[1].rules->policy.effects, EFFECTS_IDEMPOTENT);
    assert_int_not_equal(b->plan->steps[2].rules->policy.effects, EFFECTS_UNSAFE);
    assert_int_equal(b->plan->steps[3].rules->policy.effects, EFFECTS_NONE);
}

static void continue_on_failure_is_wired(void **state)
{
    struct bench *b = *state; /* M024 */
    add_house(b);
    assert_int_equal(read_json(b, "{'policy':{'continueOnFailure':true},'steps':["
                                  "{'stepId':'a','agentId':'calc'," TASK "}]}"),
                     BT_OK);
    assert_int_equal(b->plan->steps[0].rules->policy.on_failure, ON_FAILURE_CONTINUE);
    assert_int_equal(read_json(b, "{'policy':{'continueOnFailure':true,'onFailure':'abort'},"
                                  "'steps':[{'stepId':'a','agentId':'calc'," TASK "}]}"),
                     BT_INVALID);
}

static void the_submitted_policy_wins_over_the_plans_own(void **state)
{
    struct bench *b = *state;
    const struct plan_defaults defaults = plan_defaults_builtin();
    add_house(b);
    const struct plan_request request = {
        .plan = doc_of(b, "{'goal':'theirs','policy':{'maxRetries':5,'stepTimeoutMs':1},'steps':["
                          "{'stepId':'a','agentId':'calc'," TASK "}]}"),
        .policy = doc_of(b, "{'maxRetries':1}"),
        .defaults = &defaults,
        .registry = b->registry,
        .goal = STR_LIT("ours"),
        .session_id = STR_LIT("s-1"),
        .planner = STR_LIT("file")};
    b->problems = (struct problems){.at = b->at, .cap = 100};
    assert_int_equal(
        plan_read_request(&request, &b->arena, &b->plan, &b->problems, &b->normalised, &b->err),
        BT_OK);
    assert_int_equal(b->plan->steps[0].rules->policy.max_retries, 1);
    assert_int_equal(b->plan->steps[0].rules->policy.timeout_ms, 1);
    assert_true(str_is(b->plan->goal, "ours"));
    struct plan *again = NULL;
    assert_int_equal(plan_read_canonical(doc_from_buf(&b->normalised), &defaults, b->registry,
                                         &b->arena, &again, &b->err),
                     BT_OK);
    assert_true(str_is(again->session_id, "s-1") && str_is(again->planner, "file"));
    assert_int_equal(again->steps[0].rules->policy.max_retries, 1);
}

/* ---- leniency, with a word about it ---- */

static void aliases_are_read_and_reported_once(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'query':'g','tasks':["
                                  "{'id':1,'agent':'calc','description':'do something worth doing',"
                                  "'args':{},'depends_on':[]},"
                                  "{'step_id':2,'worker':'calc','input':'do something worth doing',"
                                  "'params':{},'requires':[1]},"
                                  "{'id':3,'assigned_to':'calc','query':'do something worth doing',"
                                  "'after':'2'},"
                                  "{'id':4,'assigned_to':'calc','task':'do something worth doing'}"
                                  "]}"),
                     BT_OK);
    const struct plan *p = b->plan;
    assert_int_equal(p->n_steps, 4);
    assert_true(str_is(p->steps[0].step_id, "1"));
    assert_true(str_is(p->steps[2].agent_id, "calc"));
    assert_int_equal(p->steps[1].deps_n, 1);
    assert_int_equal(p->steps[2].deps_n, 1);
    assert_true(str_is(p->goal, "g"));
    assert_int_equal(b->problems.errors, 0);
    uint32_t ids = 0;
    for (uint32_t i = 0; i < b->problems.n; i++) {
        ids += strcmp(b->at[i].field, "assigned_to") == 0;
    }
    assert_int_equal(ids, 1);
}

static void steps_are_found_where_other_systems_put_them(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'plan':{'workflow':[{'id':'a','agent':'calc'," TASK "}]}}"),
                     BT_OK);
    assert_int_equal(read_json(b, "{'plan':[{'id':'a','agent':'calc'," TASK "}]}"), BT_OK);
    assert_int_equal(read_json(b, "[{'id':'a','agent':'calc'," TASK "}]"), BT_OK);
    assert_int_equal(read_json(b, "{'phases':[{'tasks':[{'id':'a','agent':'calc'," TASK "}]},"
                                  "{'depends_on':['a'],'tasks':[{'id':'b','agent':'calc'," TASK
                                  "},{'id':'c','agent':'calc'," TASK "}]}]}"),
                     BT_OK);
    assert_int_equal(b->plan->n_steps, 3);
    assert_false(b->plan->chain);
    assert_int_equal(b->plan->steps[2].deps_n, 1);
}

static void missing_ids_agents_and_tasks_are_filled_in(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'steps':[{'skill':'read','parameters':{'path':'a'}},"
                                  "{'agentId':'calc','task':'look at all of it now'}]}"),
                     BT_OK);
    assert_true(str_is(b->plan->steps[0].step_id, "step-1"));
    assert_true(str_is(b->plan->steps[1].step_id, "step-2"));
    assert_true(str_is(b->plan->steps[0].agent_id, "files"));
    assert_true(str_is(b->plan->steps[0].task, "Read a file"));
}

static void a_step_that_names_only_its_agent_gets_the_skill_its_task_is_about(void **state)
{
    struct bench *b = *state;
    add_agent(b, "{'agentId':'one','skills':[{'id':'only'}]}");
    add_agent(b, "{'agentId':'two','skills':[{'id':'paint','tags':['colour']},{'id':'sing','tags':["
                 "'song']}]}");
    assert_int_equal(read_json(b, "{'steps':[{'agentId':'one','task':'do whatever you can do'},"
                                  "{'agentId':'two','task':'sing a song about the sea'}]}"),
                     BT_OK);
    assert_true(str_is(b->plan->steps[0].skill, "only"));
    assert_true(str_is(b->plan->steps[1].skill, "sing"));
    assert_int_equal(b->problems.total, 1); /* a warning about the choice */
    assert_int_equal(b->problems.errors, 0);
    assert_int_equal(
        read_json(b, "{'steps':[{'agentId':'two','task':'translate this into Latin'}]}"), BT_OK);
    assert_int_equal(b->plan->steps[0].skill.len, 0);
}

/* ---- refusals ---- */

static const char *refused_step(struct bench *b, const char *member)
{
    char json[600];
    (void)snprintf(json, sizeof json, "{'steps':[{'stepId':'a','agentId':'calc'," TASK ",%s}]}",
                   member);
    assert_int_equal(read_json(b, json), BT_INVALID);
    assert_null(b->plan);
    assert_int_equal(b->normalised.len, 0);
    return problem_of(b, 0);
}

#define ID64 "A23456789-B23456789-C23456789-D23456789-E23456789-F23456789-G234"

/* Its place is told once, and what is cut has a mark. */
static void what_is_longer_than_an_id_is_cut_with_a_mark(void **state)
{
    struct bench *b = *state;
    char text[512];
    add_house(b);
    assert_int_equal(read_json(b, "{'steps':[{'stepId':'" ID64 "','agentId':'calc'," TASK "}]}"),
                     BT_OK);
    assert_int_equal(read_json(b, "{'steps':[{'stepId':'" ID64 "X','agentId':'calc'," TASK "}]}"),
                     BT_INVALID);
    problem_text(&b->at[0], text, sizeof text);
    assert_string_equal(text, "step 1 (A23456789-B23456789-C23456789-D23456789-E23456789-F23456789-"
                              "G…): stepId: 65 bytes, at most 64");
    assert_string_equal(refused_step(b, "'" ID64 "':1"),
                        "unknown_field a " ID64 ": unknown field `" ID64 "`");
    assert_string_equal(refused_step(b, "'" ID64 "X':1"),
                        "unknown_field a " ID64 "…: unknown field `" ID64 "…`");
    assert_string_equal(refused_step(b, "'fallbackAgents':['" ID64 "X']"),
                        "missing_agent a fallbackAgents: Unknown agent: " ID64
                        "…; known: files, sql, calc, exec");
}

static void a_field_of_the_wrong_type_is_named_with_what_was_given(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_string_equal(refused_step(b, "'timeoutMs':'60s'"),
                        "invalid_field a timeoutMs: expected a whole number from 0 to 2147483647, "
                        "got \"60s\"");
    assert_string_equal(refused_step(b, "'timeoutMs':-1"),
                        "invalid_field a timeoutMs: expected a whole number from 0 to 2147483647, "
                        "got -1");
    assert_string_equal(refused_step(b, "'maxRetries':4294967296"),
                        "invalid_field a maxRetries: expected a whole number from 0 to 99, got "
                        "4294967296");
    assert_string_equal(refused_step(b, "'parameters':[1]"),
                        "invalid_field a parameters: expected a map, got a list");
    assert_string_equal(refused_step(b, "'dependsOn':[1.5]"),
                        "invalid_field a dependsOn: expected a string, got 1.5");
    assert_string_equal(refused_step(b, "'effects':'some'"),
                        "invalid_field a effects: expected one of none, idempotent, unsafe, got "
                        "\"some\"");
    assert_string_equal(
        refused_step(b, "'runIf':'maybe'"),
        "invalid_field a runIf: expected one of success, always, failure, got \"maybe\"");
    assert_string_equal(refused_step(b, "'backoff':{'jitter':2}"),
                        "invalid_field a backoff.jitter: expected a number from 0 to 1, got 2");
}

static void a_recipe_is_no_plan(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'inputs':{},'steps':[]}"), BT_INVALID);
    assert_non_null(strstr(problem_of(b, 0), "recipe"));
    assert_int_equal(
        read_json(b, "{'inputs':{},'steps':[{'stepId':'a','agentId':'files'," TASK "}]}"),
        BT_INVALID); /* although the rest of it is a plan */
    assert_int_equal(b->problems.n, 1);
    assert_non_null(strstr(problem_of(b, 0), "recipe"));
}

static void all_problems_come_at_once_and_the_first_is_the_error(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'steps':["
                                  "{'stepId':'a','agentId':'nobody'," TASK ",'dependsOn':['b']},"
                                  "{'stepId':'b','agentId':'files','skill':'fly'," TASK
                                  ",'dependsOn':['a','x'],'timeoutMs':true},"
                                  "{'stepId':'b','agentId':'files','skill':'read'," TASK
                                  ",'parameters':{'path':1,'extra':2}}]}"),
                     BT_INVALID);
    const char *all = "";
    for (uint32_t i = 0; i < b->problems.n; i++) {
        char *line = arena_alloc(&b->arena, strlen(all) + 40);
        assert_non_null(line);
        (void)snprintf(line, strlen(all) + 40, "%s%s ", all,
                       problem_category_name(b->at[i].category));
        all = line;
    }
    assert_string_equal(all, "invalid_field duplicate_id missing_dependency cycle_detected "
                             "missing_agent missing_skill invalid_params invalid_params ");
    assert_string_equal(
        b->err.msg,
        "step 2 (b): timeoutMs: expected a whole number from 0 to 2147483647, got true (and "
        "7 more)");
}

/* What the policy says of the plan's own steps is no news of what an item does. */
static void the_most_steps_at_once_warn_of_a_chain_and_not_of_a_body(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'policy':{'maxConcurrency':4},'steps':["
                                  "{'stepId':'a','agentId':'calc','task':'Add some numbers up',"
                                  "'dependsOn':[]},"
                                  "{'stepId':'each','agentId':'calc','dependsOn':['a'],"
                                  "'task':'Add up the number {{item}}','forEach':[1,2]}]}"),
                     BT_OK);
    assert_string_equal(problem_of(b, 0), "");
    assert_int_equal(read_json(b, "{'policy':{'maxConcurrency':4},'steps':["
                                  "{'stepId':'a','agentId':'calc','task':'Add some numbers up'},"
                                  "{'stepId':'b','agentId':'calc','task':'Add up some more'}]}"),
                     BT_OK);
    assert_non_null(strstr(problem_of(b, 0), "no step has dependsOn"));
}

/* The steps of a body have the attempts; a sub-plan may be made again as a whole. */
static void a_step_with_a_body_has_no_attempts_of_its_own(void **state)
{
    static const struct {
        const char *members;
        uint32_t retries;
    } steps[] = {
        {"'agentId':'calc','task':'x {{item}}','forEach':[1],'maxRetries':3", 0},
        {"'agentId':'calc','task':'x {{item}}','forEach':[1]", 0},
        {"'plan':{'document':{'steps':[{'agentId':'calc','task':'do it'}]}}", 0},
        {"'maxRetries':2,'plan':{'document':{'steps':[{'agentId':'calc','task':'do it'}]}}", 2},
    };
    struct bench *b = *state;
    char json[300];

    add_house(b);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        (void)snprintf(json, sizeof json, "{'steps':[{'stepId':'a',%s}]}", steps[i].members);
        if (read_json(b, json) != BT_OK) {
            fail_msg("%s: %s", json, b->err.msg);
        }
        assert_int_equal(b->plan->steps[0].rules->policy.max_retries, steps[i].retries);
    }
}

/* In the task, in a parameter that is a text, and in a condition. */
static void words_of_a_loop_are_known_inside_it_only(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_string_equal(refused_step(b, "'parameters':{'n':7,'x':'{{item}}'}"),
                        "bad_template a parameters: {{item}} is known only inside a step with "
                        "forEach");
    assert_string_equal(refused_step(b, "'parameters':{'x':'{{previous}}'}"),
                        "bad_template a parameters: {{previous}} is known only inside a step with "
                        "repeat");
    assert_string_equal(refused_step(b, "'when':{'item':1}"),
                        "bad_template a when: item: item and index are known inside forEach, "
                        "iteration and previous inside repeat");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(words_of_a_loop_are_known_inside_it_only),
        RULE(a_step_with_a_body_has_no_attempts_of_its_own),
        RULE(a_chain_is_read_with_every_default),
        RULE(a_dependency_field_anywhere_makes_a_dag),
        RULE(policy_is_read_for_plan_and_step),
        RULE(steps_of_an_agent_without_a_card_are_unsafe),
        RULE(continue_on_failure_is_wired),
        RULE(the_submitted_policy_wins_over_the_plans_own),
        RULE(aliases_are_read_and_reported_once),
        RULE(steps_are_found_where_other_systems_put_them),
        RULE(missing_ids_agents_and_tasks_are_filled_in),
        RULE(a_step_that_names_only_its_agent_gets_the_skill_its_task_is_about),
        RULE(what_is_longer_than_an_id_is_cut_with_a_mark),
        RULE(a_field_of_the_wrong_type_is_named_with_what_was_given),
        RULE(the_most_steps_at_once_warn_of_a_chain_and_not_of_a_body),
        RULE(a_recipe_is_no_plan),
        RULE(all_problems_come_at_once_and_the_first_is_the_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
