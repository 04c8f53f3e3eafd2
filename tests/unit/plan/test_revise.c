#include "revise.h"

#define A(id) "{'stepId':'" id "','agentId':'calc'," TASK "}"
#define D(id, deps) "{'stepId':'" id "','agentId':'calc'," TASK ",'dependsOn':" deps "}"
#define CHAIN "{'steps':[" A("a") "," A("b") "," A("c") "]}"
#define DIAMOND                                                                                    \
    "{'steps':[" D("a", "[]") "," D("b", "['a']") "," D("c", "['a']") "," D("d", "['b','c']") "]}"

static int revise_setup(void **state)
{
    const int code = bench_setup(state);
    struct bench *b = *state;
    add_house(b);
    add_agent(b, "{'agentId':'planner','skills':[{'id':'plan'}]}");
    return code;
}
#undef RULE
#define RULE(f) cmocka_unit_test_setup_teardown(f, revise_setup, bench_teardown)

static const char *refused(struct bench *b, struct run *run, enum plan_revise_kind kind,
                           const char *change)
{
    struct plan *next = NULL;
    assert_int_equal(revise(b, run, kind, doc_of(b, change), &next), BT_INVALID);
    assert_null(next);
    assert_int_equal(b->normalised.len, 0);
    assert_true(b->problems.errors > 0);
    return problem_of(b, 0);
}

/* ---- insert ---- */

static void an_insertion_into_a_chain_comes_between(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, CHAIN);
    run = revised(b, run, REVISE_INSERT, "{'afterStepId':'a','steps':[" A("n") "," A("m") "]}");
    assert_string_equal(shape(b, b->plan), "a; b~a,m; c~b; n~a; m~n");
    assert_int_equal(b->plan->max_concurrency, 1);
    assert_int_equal(b->plan->steps[3].rules->policy.scope, SCOPE_ALL);
    /* Once more, now as a graph. */
    move_step(b, run, 0, STEP_COMPLETED);
    run = revised(b, run, REVISE_INSERT, "{'after_step_id':'n','steps':[" A("o") "]}");
    assert_string_equal(shape(b, b->plan), "a; b~a,m; c~b; n~a; m~n,o; o~n");
    run = revised(b, run, REVISE_INSERT, "{'beforeStepId':'c','steps':[" A("p") "]}");
    assert_string_equal(shape(b, b->plan), "a; b~a,m; c~b,p; n~a; m~n,o; o~n; p~b");
    run = revised(b, run, REVISE_INSERT, "{'steps':[" A("q") "]}");
    assert_string_equal(shape(b, b->plan), "a; b~a,m; c~b,p; n~a; m~n,o; o~n; p~b; q~c");
    assert_int_equal(run->revision, 5);
}

static void an_insertion_into_a_graph_is_a_branch_or_comes_before(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, DIAMOND);
    run = revised(b, run, REVISE_INSERT, "{'afterStepId':'a','steps':[" A("n") "]}");
    assert_string_equal(shape(b, b->plan), "a; b<a; c<a; d<b,c; n<a");
    run = revised(b, run, REVISE_INSERT, "{'beforeStepId':'d','steps':[" A("m") "]}");
    assert_string_equal(shape(b, b->plan), "a; b<a; c<a; d<b,c,m; n<a; m<b,c");
    run = revised(b, run, REVISE_INSERT,
                  "{'afterStepId':'a','beforeStepId':'d','steps':[" D("x", "[]") "," D(
                      "y", "[]") "," D("z", "['x']") "]}");
    assert_string_equal(shape(b, b->plan), "a; b<a; c<a; d<b,c,m,y,z; n<a; m<b,c; x<a; y<a; z<x");
    run = revised(b, run, REVISE_INSERT, "{'steps':[" D("free", "['n','a']") "]}");
    assert_string_equal(shape(b, b->plan),
                        "a; b<a; c<a; d<b,c,m,y,z; n<a; m<b,c; x<a; y<a; z<x; free<a,n");
}

static void nothing_comes_before_a_step_that_has_begun(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, CHAIN);
    move_step(b, run, 0, STEP_COMPLETED);
    move_step(b, run, 1, STEP_IN_PROGRESS);
    assert_string_equal(refused(b, run, REVISE_INSERT, "{'beforeStepId':'b','steps':[" A("n") "]}"),
                        "invalid_field - beforeStepId: step \"b\" has begun, so nothing can come "
                        "before it any more");
    assert_string_equal(refused(b, run, REVISE_INSERT, "{'beforeStepId':'a','steps':[" A("n") "]}"),
                        "invalid_field - beforeStepId: step \"a\" has ended, so nothing can come "
                        "before it any more");
    assert_string_equal(refused(b, run, REVISE_INSERT, "{'afterStepId':'a','steps':[" A("n") "]}"),
                        "invalid_field - afterStepId: step \"b\" has begun, so nothing can come "
                        "before it any more");
    run = revised(b, run, REVISE_INSERT, "{'afterStepId':'b','steps':[" A("n") "]}");
    assert_string_equal(shape(b, b->plan), "a; b~a; c~b,n; n~b");
}

static void behind_a_step_that_was_skipped_those_that_wait_for_it_are_meant(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, CHAIN);
    move_step(b, run, 0, STEP_COMPLETED);
    move_step(b, run, 1, STEP_SKIPPED);
    run = revised(b, run, REVISE_INSERT, "{'afterStepId':'a','steps':[" A("n") "]}");
    assert_string_equal(shape(b, b->plan), "a; b~a; c~b,n; n~a");
    assert_int_equal(run->steps[2].status, STEP_PENDING); /* it was ready, and waits again */
    assert_int_equal(run->steps[3].status, STEP_READY);
}

/* ---- replace ---- */

static void a_replaced_step_hands_its_place_on(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, DIAMOND);
    run = revised(b, run, REVISE_REPLACE, "{'stepId':'b','steps':[" A("n") "," A("m") "]}");
    assert_string_equal(shape(b, b->plan), "a; -b<a; c<a; d<c,m; n<a; m<n");
    assert_int_equal(run->superseded, 1);
    assert_int_equal(run->steps[1].status, STEP_SKIPPED);
}

static void new_work_may_have_the_old_name(void **state)
{
    struct bench *b = *state; /* C32 */
    struct run *run =
        start_run(b, "{'steps':[" A("a") "," A("b") ",{'stepId':'c','agentId':'calc',"
                                                    "'task':'tell what {{results.b}} means'}]}");
    run = revised(b, run, REVISE_REPLACE, "{'stepId':'b','steps':[" A("b") "]}");
    assert_string_equal(shape(b, b->plan), "a; -b~a; c~b; b~a");
    assert_int_equal(plan_step_find(b->plan, STR_LIT("b")), 3);
    assert_int_equal(b->plan->deps[b->plan->steps[2].deps_at], 3);
    run = revised(b, run, REVISE_REPLACE, "{'stepId':'b','steps':[" A("b") "]}");
    assert_string_equal(shape(b, b->plan), "a; -b~a; c~b; -b~a; b~a");
    assert_int_equal(b->plan->steps[4].revision, 3);
    assert_string_equal(refused(b, run, REVISE_REPLACE, "{'stepId':'b','steps':[" A("x") "]}"),
                        "bad_template c task: {{results.b}} names no step of this plan");
}

static void only_a_step_that_has_not_begun_is_replaced(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, DIAMOND);
    move_step(b, run, 0, STEP_IN_PROGRESS);
    assert_string_equal(refused(b, run, REVISE_REPLACE, "{'stepId':'a','steps':[" A("n") "]}"),
                        "invalid_field - stepId: step \"a\" has begun, so it cannot be replaced "
                        "any more");
    assert_string_equal(refused(b, run, REVISE_REPLACE, "{'steps':[" A("n") "]}"),
                        "invalid_field - stepId: is missing; name the step that is to be replaced");
    assert_string_equal(refused(b, run, REVISE_REPLACE, "{'stepId':'zz','steps':[" A("n") "]}"),
                        "missing_dependency - stepId: \"zz\" is no step of this plan");
    run = revised(b, run, REVISE_REPLACE, "{'stepId':'b','steps':[" A("n") "]}");
    assert_string_equal(refused(b, run, REVISE_REPLACE, "{'stepId':'b','steps':[" A("m") "]}"),
                        "missing_dependency - stepId: \"b\" is no step of this plan any more");
}

/* ---- replan ---- */

static void a_replan_keeps_what_has_completed_and_nothing_else(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, DIAMOND);
    move_step(b, run, 0, STEP_COMPLETED);
    move_step(b, run, 1, STEP_COMPLETED);
    move_step(b, run, 2, STEP_IN_PROGRESS);
    run = revised(
        b, run, REVISE_REPLAN,
        "{'reuse':['b'],'steps':[{'stepId':'a','agentId':'calc','task':'do it in another way',"
        "'dependsOn':['b']},{'id':'n','agent':'calc','description':'tell what {{results.b}} and "
        "{{results.a}} mean','depends_on':['a']}]}");
    assert_string_equal(shape(b, b->plan), "-a; b<a; -c<a; -d<b,c; a<b; n<a");
    assert_int_equal(b->plan->deps[b->plan->steps[1].deps_at],
                     0); /* the superseded one of that name */
    assert_int_equal(b->plan->deps[b->plan->steps[5].deps_at], 4);
    assert_int_equal(run->completed, 1);
    assert_int_equal(run->superseded, 3);
    assert_int_equal(run->steps[4].status, STEP_READY);
}

static void a_replan_without_dependencies_is_a_chain_behind_what_it_keeps(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, DIAMOND);
    move_step(b, run, 0, STEP_COMPLETED);
    move_step(b, run, 1, STEP_COMPLETED);
    run = revised(b, run, REVISE_REPLAN,
                  "{'plan':{'reuse':['a','b'],'steps':[{'stepId':'n','agentId':'calc','task':'tell "
                  "what {{results.a}} means'}," A("m") "]}}");
    assert_string_equal(shape(b, b->plan), "a; b<a; -c<a; -d<b,c; n~b; m~n");
    move_step(b, run, 4, STEP_IN_PROGRESS);
    run = revised(b, run, REVISE_REPLAN, "[" A("x") "]");
    assert_string_equal(shape(b, b->plan), "a; b<a; -c<a; -d<b,c; -n~b; -m~n; x~b");
}

#define COUNT(id, parameters)                                                                      \
    "{'stepId':'" id "','agentId':'worker','task':'count what there is','parameters':" parameters  \
    ",'dependsOn':[]}"

/* C32, and S003: preserving completed results. */
static void a_new_step_that_equals_a_completed_one_is_that_one(void **state)
{
    static const char *const same[] = {
        COUNT("a", "{'x':1,'y':[true,'z']}"), COUNT("a", "{'y':[true,'z'],'x':1}"),
        COUNT("a", "{'x':1.0,'y':[true,'z']}"),
        ("{'stepId':'a','agentId':'worker','task':'count what there is','maxRetries':7,"
         "'parameters':{'x':1,'y':[true,'z']}}")};
    struct bench *b = *state;
    add_agent(b, "{'agentId':'worker','skills':[{'id':'count'}]}");
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct run *run = start_run(
            b, "{'steps':[" COUNT("a", "{'x':1,'y':[true,'z']}") "," D("b", "['a']") "]}");
        char change[600];
        move_step(b, run, 0, STEP_COMPLETED);
        move_step(b, run, 1, STEP_IN_PROGRESS);
        (void)snprintf(change, sizeof change,
                       "{'steps':[%s,{'stepId':'n','agentId':'calc','task':'tell what "
                       "{{results.a}} means','dependsOn':['a']}]}",
                       same[i]);
        run = revised(b, run, REVISE_REPLAN, change);
        assert_string_equal(shape(b, b->plan), "a; -b<a; n<a");
        assert_int_equal(run->steps[0].status, STEP_COMPLETED);
        assert_int_equal(run->steps[2].status, STEP_READY);
    }
}

static void other_content_under_the_id_of_a_completed_step_is_new_work(void **state)
{
    static const char *const other[] = {
        COUNT("a", "{'x':2}"),
        COUNT("a", "{'x':'1'}"),
        COUNT("a", "{'x':1,'y':2}"),
        COUNT("a", "{}"),
        "{'stepId':'a','agentId':'worker','task':'count it all again','parameters':{'x':1},"
        "'dependsOn':[]}",
        "{'stepId':'a','agentId':'files','skill':'read','task':'count what there is',"
        "'parameters':{'path':'x'},'dependsOn':[]}"};
    struct bench *b = *state;
    add_agent(b, "{'agentId':'worker','skills':[{'id':'count'}]}");
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        struct run *run = start_run(b, "{'policy':{'handoffTo':['files']},'steps':[" COUNT(
                                           "a", "{'x':1}") "," D("b", "['a']") "]}");
        char change[400];
        move_step(b, run, 0, STEP_COMPLETED);
        move_step(b, run, 1, STEP_IN_PROGRESS);
        (void)snprintf(change, sizeof change, "{'steps':[%s]}", other[i]);
        run = revised(b, run, REVISE_REPLAN, change);
        assert_string_equal(shape(b, b->plan), "-a; -b<a; a");
        assert_int_equal(run->steps[2].status, STEP_READY);
    }
}

static void a_replan_of_completed_steps_alone_ends_the_plan(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, CHAIN);
    move_step(b, run, 0, STEP_COMPLETED);
    move_step(b, run, 1, STEP_IN_PROGRESS);
    run = revised(b, run, REVISE_REPLAN, "{'steps':[" A("a") "]}");
    assert_string_equal(shape(b, b->plan), "a; -b~a; -c~b");
    assert_int_equal(run->open, 0);
}

#define SEND(id, to)                                                                               \
    "{'stepId':'" id "','agentId':'mailer','skill':'send','task':'send the report to " to          \
    "','parameters':{'to':'" to "'},'dependsOn':[]}"

static void what_repeats_a_completed_unsafe_step_waits_for_a_person(void **state)
{
    static const struct {
        const char *step;
        bool asks;
    } all[] = {
        {SEND("s", "ann"), false}, /* is the completed one */
        {SEND("s", "bob"), true},  /* its id */
        {SEND("t", "ann"), true},  /* its work */
        {SEND("t", "bob"), false},
        {"{'stepId':'t','agentId':'mailer','skill':'send','task':'mail the report once more',"
         "'parameters':{'to':'ann'},'requiresApproval':false}",
         true},
        {"{'stepId':'s','agentId':'worker','task':'count what was sent'}", false},
        {"{'stepId':'s','agentId':'worker','task':'count what was sent','effects':'unsafe'}", true},
    };
    struct bench *b = *state;
    add_agent(b, "{'agentId':'worker','skills':[{'id':'count'}]}");
    add_agent(b, "{'agentId':'mailer','skills':[{'id':'send','effects':'unsafe'}]}");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct run *run = start_run(b, "{'policy':{'handoffTo':['worker','calc']},'steps':[" SEND(
                                           "s", "ann") "," D("b", "['s']") "]}");
        char change[400];
        move_step(b, run, 0, STEP_COMPLETED);
        move_step(b, run, 1, STEP_IN_PROGRESS);
        (void)snprintf(change, sizeof change, "{'steps':[%s," A("n") "]}", all[i].step);
        run = revised(b, run, REVISE_REPLAN, change);
        if (b->plan->steps[2].rules->policy.requires_approval != all[i].asks) {
            fail_msg("%s: %d", all[i].step, (int)all[i].asks);
        }
    }
}

/* The author's word on the effects holds for the repetition, too. */
static void what_the_author_calls_unsafe_stays_unsafe_in_a_replan(void **state)
{
    struct bench *b = *state;
    add_agent(b, "{'agentId':'worker','skills':[{'id':'count','effects':'idempotent'}]}");
    struct run *run = start_run(b, "{'steps':[{'stepId':'a','agentId':'worker','effects':'unsafe',"
                                   "'dependsOn':[]," TASK "}," D("b", "['a']") "]}");
    move_step(b, run, 0, STEP_COMPLETED);
    move_step(b, run, 1, STEP_IN_PROGRESS);
    run = revised(b, run, REVISE_REPLAN,
                  "{'steps':[{'stepId':'a','agentId':'worker','task':'do it in other words'}]}");
    assert_string_equal(shape(b, b->plan), "-a; -b<a; a");
    assert_int_equal(b->plan->steps[2].rules->policy.effects, EFFECTS_UNSAFE);
    assert_true(b->plan->steps[2].rules->policy.requires_approval);
}

static void what_is_over_may_speak_of_what_is_gone(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(
        b, "{'steps':[" A("a") ",{'stepId':'b','agentId':'sql','skill':"
                               "'query','task':'ask about {{results.a}} again','parameters':{"
                               "'sql':'{{results.a}}'}}," A("c") "]}");
    move_step(b, run, 0, STEP_COMPLETED);
    move_step(b, run, 1, STEP_COMPLETED);
    run = revised(b, run, REVISE_REPLAN, "{'reuse':['b'],'steps':[" D("n", "['b']") "]}");
    run = revised(b, run, REVISE_INSERT, "{'steps':[" D("m", "['n']") "]}");
    assert_string_equal(shape(b, b->plan), "a; b~a; -c~b; n<b; m<n");
}

static void only_what_has_completed_is_reused(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, DIAMOND);
    move_step(b, run, 0, STEP_COMPLETED);
    move_step(b, run, 1, STEP_SKIPPED);
    assert_string_equal(refused(b, run, REVISE_REPLAN, "{'reuse':['b'],'steps':[" A("n") "]}"),
                        "invalid_field - reuse: step \"b\" has not completed; only results can be "
                        "used again");
    assert_string_equal(refused(b, run, REVISE_REPLAN, "{'reuse':['z'],'steps':[" A("n") "]}"),
                        "missing_dependency - reuse: \"z\" is no step of this plan");
    assert_string_equal(refused(b, run, REVISE_REPLAN, "{'reuse':'a','steps':[" A("n") "]}"),
                        "invalid_field - reuse: expected a list of the ids of completed steps");
    assert_string_equal(
        refused(
            b, run, REVISE_REPLAN,
            "{'reuse':['a'],'steps':[{'stepId':'a','agentId':'calc','task':'do something else'}]}"),
        "duplicate_id a stepId: steps 1 and 5 are both called \"a\"; each step "
        "needs its own id");
    assert_string_equal(refused(b, run, REVISE_REPLAN, "{'steps':[" D("n", "['b']") "]}"),
                        "missing_dependency n dependsOn: depends on \"b\", which is no step of "
                        "this plan");
    assert_string_equal(refused(b, run, REVISE_REPLAN, "{'reuse':['a'],'steps':[]}"),
                        "empty_plan - steps: the change has no steps; give at least one");
}

/* ---- agents ---- */

static void a_replan_uses_only_agents_that_were_granted(void **state)
{
    struct bench *b = *state; /* G26 */
    struct run *run = start_run(b, "{'policy':{'handoffTo':['files']},'steps':[" A("a") "]}");
    assert_string_equal(
        refused(b, run, REVISE_REPLAN, "{'steps':[{'stepId':'n','agentId':'sql'," TASK "}]}"),
        "missing_agent n agentId: agent \"sql\" was not granted to this plan; granted: calc, "
        "files");
    assert_string_equal(refused(b, run, REVISE_REPLAN,
                                "{'steps':[{'stepId':'n','agentId':'calc','gate':'sql'," TASK
                                "}]}"),
                        "missing_agent n gate: agent \"sql\" was not granted to this plan; "
                        "granted: calc, files");
    assert_non_null(strstr(
        refused(b, run, REVISE_REPLAN, "{'steps':[{'stepId':'n','skill':'query'," TASK "}]}"),
        "skill"));
    assert_non_null(
        strstr(refused(b, run, REVISE_REPLAN,
                       "{'steps':[{'stepId':'n','agentId':'calc','onFailure':'replan'," TASK "}]}"),
               "no replanner"));
    run = revised(b, run, REVISE_REPLAN,
                  "{'steps':[{'stepId':'n','skill':'read','parameters':{"
                  "'path':'x'}}]}");
    assert_true(str_is(b->plan->steps[1].agent_id, "files"));
}

static void a_replan_cannot_take_away_what_the_plan_demands(void **state)
{
    struct bench *b =
        *state; /* G26: a replanner decides what is done next, not what people approve */
    struct run *run =
        start_run(b, "{'policy':{'requiresApproval':true,'gate':'exec','verifyWith':{'agentId':"
                     "'files','failOpen':false},'handoffTo':['sql']},'steps':[" A("a") "]}");
    run = revised(b, run, REVISE_REPLAN,
                  "{'steps':[{'stepId':'n','agentId':'calc','requiresApproval':false,'gate':false,"
                  "'verifyWith':false,'dependsOn':[]," TASK "},"
                  "{'stepId':'m','agentId':'calc','gate':'sql','verifyWith':{'agentId':'sql',"
                  "'failOpen':true},'dependsOn':['n']," TASK "}]}");
    for (uint32_t i = 1; i < 3; i++) {
        assert_true(b->plan->steps[i].rules->policy.requires_approval);
        assert_true(str_is(b->plan->steps[i].rules->verify_with, "files"));
        assert_false(b->plan->steps[i].rules->policy.verify_open);
    }
    assert_true(str_is(b->plan->steps[2].rules->gate_with, "exec"));
}

static void a_replan_may_ask_for_more_than_the_plan_does(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, "{'policy':{'handoffTo':['sql']},'steps':[" A("a") "]}");
    run = revised(b, run, REVISE_REPLAN,
                  "{'steps':[{'stepId':'n','agentId':'calc','requiresApproval':true,"
                  "'verifyWith':'sql'," TASK "}]}");
    assert_true(b->plan->steps[1].rules->policy.requires_approval);
    assert_true(str_is(b->plan->steps[1].rules->verify_with, "sql"));
}

static void what_a_card_calls_unsafe_no_replan_calls_harmless(void **state)
{
    struct bench *b = *state;
    add_agent(b, "{'agentId':'mailer','skills':[{'id':'send','effects':'unsafe'}]}");
    struct run *run = start_run(b, "{'policy':{'handoffTo':['mailer']},'steps':[" A("a") "]}");
    run = revised(b, run, REVISE_REPLAN,
                  "{'steps':[{'stepId':'n','agentId':'mailer','skill':'send','effects':'none'," TASK
                  "}]}");
    assert_int_equal(b->plan->steps[1].rules->policy.effects, EFFECTS_UNSAFE);
}

static void a_person_may_bring_in_new_agents(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, CHAIN);
    run = revised(b, run, REVISE_INSERT,
                  "{'steps':[{'stepId':'n','agentId':'sql','gate':'exec','onFailure':'replan'," TASK
                  "}]}");
    assert_int_equal(b->plan->agents.n, 4);
    assert_true(str_is(b->plan->agents.ids[1], "sql") && str_is(b->plan->agents.ids[3], "planner"));
    assert_true(str_is(b->plan->replan.agent_id, "planner"));
    assert_int_equal(b->plan->steps[3].rules->gate_agent,
                     registry_agent(b->registry, STR_LIT("exec")));
    assert_string_equal(
        refused(b, run, REVISE_INSERT, "{'steps':[{'stepId':'o','agentId':'nobody'," TASK "}]}"),
        "missing_agent o agentId: Unknown agent: nobody; known: files, sql, calc, "
        "exec, planner");
}

/* ---- the rest ---- */

static void new_steps_are_checked_like_those_of_a_plan(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, DIAMOND);
    assert_string_equal(
        refused(b, run, REVISE_INSERT,
                "{'steps':[{'stepId':'n','agentId':'files','skill':'read'," TASK
                ",'parameters':{'path':7}}," D("a", "['n']") "," D("x", "['y']") "," D(
                    "y", "['x']") ",{'stepId':'t','agentId':'calc','task':'tell what {{results.d}} "
                                  "means','dependsOn':['a'],'timeoutMs':'x'}]}"),
        "invalid_field t timeoutMs: expected a whole number from 0 to 2147483647, got \"x\"");
    assert_int_equal(b->problems.errors, 4); /* {{results.d}} adds its edge */
    assert_string_equal(problem_of(b, 1),
                        "duplicate_id a stepId: steps 1 and 6 are both called \"a\"; each step "
                        "needs its own id");
    assert_string_equal(problem_of(b, 2), "cycle_detected x dependsOn: the steps wait for each "
                                          "other: x -> y -> x");
    assert_string_equal(problem_of(b, 3), "invalid_params n parameters.path: Invalid params - "
                                          "expected a string, got 7");
}

static void a_loop_through_an_insertion_is_found(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, DIAMOND);
    assert_string_equal(
        refused(b, run, REVISE_INSERT, "{'beforeStepId':'b','steps':[" D("n", "['d']") "]}"),
        "cycle_detected b dependsOn: the steps wait for each other: b -> n -> d -> "
        "b");
}

static void the_policy_of_the_plan_stays_and_holds_for_new_steps(void **state)
{
    struct bench *b = *state;
    struct run *run =
        start_run(b, "{'policy':{'maxRetries':7,'gate':'exec','fallbackAgents':['sql'],'budget':{"
                     "'tokens':9}},'goal':'g','steps':[" A("a") "]}");
    struct plan *none = NULL;
    const char *change = "{'policy':{'maxRetries':1,'budget':{'tokens':10000}},"
                         "'steps':[" A("n") "]}";
    assert_int_equal(revise(b, run, REVISE_INSERT, doc_of(b, change), &none), BT_INVALID);
    assert_non_null(strstr(problem_of(b, 0), "the plan keeps its policy"));
    run = revised(b, run, REVISE_INSERT, "{'steps':[" A("n") "]}");
    assert_int_equal(b->plan->steps[1].rules->policy.max_retries, 7);
    assert_true(str_is(b->plan->steps[1].rules->gate_with, "exec"));
    assert_int_equal(b->plan->steps[1].alternatives_n, 1);
    assert_int_equal(b->plan->budget_tokens, 9);
    assert_true(str_is(b->plan->goal, "g"));
}

static void steps_and_revisions_have_an_end(void **state)
{
    struct bench *b = *state;
    struct run *run = start_run(b, CHAIN);
    struct plan *next = NULL;
    struct buf json;
    buf_init(&json, 1 << 20);
    buf_add_cstr(&json, "[");
    for (uint32_t i = 0; i < LIMIT_STEPS - 2; i++) {
        buf_printf(&json, "%s'do something worth doing'", i == 0 ? "" : ",");
    }
    buf_add_cstr(&json, "]");
    assert_int_equal(revise(b, run, REVISE_INSERT, doc_of(b, buf_cstr(&json)), &next), BT_INVALID);
    assert_string_equal(problem_of(b, 1),
                        "limit - steps: 10001 steps are more than the 10000 of one plan");
    buf_done(&json);
    run->revision = LIMIT_REVISIONS;
    assert_non_null(strstr(refused(b, run, REVISE_INSERT, "{'steps':[" A("n") "]}"),
                           "changed 999 times; more is not possible"));
}

static void documents_that_are_no_change_are_refused(void **state)
{
    struct bench *b = *state;
    static const char *const hostile[] = {"1",
                                          "null",
                                          "'x'",
                                          "{}",
                                          "[]",
                                          "{'steps':{}}",
                                          "{'steps':[1]}",
                                          "{'steps':[[]]}",
                                          "{'steps':[{}]}",
                                          "{'stepId':7,'steps':[" A("n") "]}",
                                          "{'afterStepId':[],'steps':[" A("n") "]}",
                                          "{'stepId':'b','reuse':{'a':1},'steps':[" A("n") "]}",
                                          "{'stepId':'b','steps':[" D("n", "['b@1']") "]}",
                                          "{'stepId':'b','steps':[" D("b", "['b']") "]}",
                                          "{'stepId':'b','steps':[" D("n", "['@']") "]}"};
    struct run *run = start_run(b, DIAMOND);
    for (uint32_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        for (int kind = REVISE_INSERT; kind <= REVISE_REPLAN; kind++) {
            struct plan *next = NULL;
            const enum bt_code code =
                revise(b, run, (enum plan_revise_kind)kind, doc_of(b, hostile[i]), &next);
            if (code == BT_OK && (next == NULL || next->n_steps <= 4)) {
                fail_msg("kind %d took %s", kind, hostile[i]);
            }
            assert_true(code == BT_OK || code == BT_INVALID);
            assert_true(code == BT_OK || b->problems.errors > 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(an_insertion_into_a_chain_comes_between),
        RULE(an_insertion_into_a_graph_is_a_branch_or_comes_before),
        RULE(nothing_comes_before_a_step_that_has_begun),
        RULE(behind_a_step_that_was_skipped_those_that_wait_for_it_are_meant),
        RULE(a_replaced_step_hands_its_place_on),
        RULE(new_work_may_have_the_old_name),
        RULE(only_a_step_that_has_not_begun_is_replaced),
        RULE(a_replan_keeps_what_has_completed_and_nothing_else),
        RULE(a_new_step_that_equals_a_completed_one_is_that_one),
        RULE(other_content_under_the_id_of_a_completed_step_is_new_work),
        RULE(a_replan_of_completed_steps_alone_ends_the_plan),
        RULE(what_repeats_a_completed_unsafe_step_waits_for_a_person),
        RULE(what_the_author_calls_unsafe_stays_unsafe_in_a_replan),
        RULE(a_replan_without_dependencies_is_a_chain_behind_what_it_keeps),
        RULE(what_is_over_may_speak_of_what_is_gone),
        RULE(only_what_has_completed_is_reused),
        RULE(a_replan_uses_only_agents_that_were_granted),
        RULE(a_replan_cannot_take_away_what_the_plan_demands),
        RULE(a_replan_may_ask_for_more_than_the_plan_does),
        RULE(what_a_card_calls_unsafe_no_replan_calls_harmless),
        RULE(a_person_may_bring_in_new_agents),
        RULE(new_steps_are_checked_like_those_of_a_plan),
        RULE(a_loop_through_an_insertion_is_found),
        RULE(the_policy_of_the_plan_stays_and_holds_for_new_steps),
        RULE(steps_and_revisions_have_an_end),
        RULE(documents_that_are_no_change_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
