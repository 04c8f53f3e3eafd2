/* The description of a plan, its planning and its synthesis. */
#include "revise.h"
#include "supervisor/plan/about.h"
#include "supervisor/plan/reader_internal.h"

#define STEP "{'stepId':'a','agentId':'calc','task':'do something worth doing'}"
#define STEPS "'steps':[" STEP "]"

static int phases_setup(void **state)
{
    const int code = bench_setup(state);
    add_house(*state);
    add_agent(*state, "{'agentId':'writer','skills':[{'id':'synthesize'},{'id':'digest'}]}");
    add_agent(*state, "{'agentId':'thinker','skills':[{'id':'plan'}]}");
    return code;
}
#undef RULE
#define RULE(f) cmocka_unit_test_setup_teardown(f, phases_setup, bench_teardown)

static enum bt_code read_wish(struct bench *b, struct plan_request *request)
{
    static struct plan_defaults defaults;
    defaults = plan_defaults_builtin();
    request->defaults = request->defaults == NULL ? &defaults : request->defaults;
    request->registry = b->registry;
    b->problems = (struct problems){.at = b->at, .cap = 100};
    b->plan = NULL;
    buf_clear(&b->normalised);
    return plan_read_request(request, &b->arena, &b->plan, &b->problems, &b->normalised, &b->err);
}

static enum bt_code read_pending(struct bench *b, struct plan_request *request,
                                 const struct plan_pending *planner)
{
    const struct plan_defaults defaults = plan_defaults_builtin();
    request->defaults = &defaults;
    request->registry = b->registry;
    b->problems = (struct problems){.at = b->at, .cap = 100};
    b->plan = NULL;
    buf_clear(&b->normalised);
    const enum bt_code code = plan_read_pending(request, planner, &b->arena, &b->plan, &b->problems,
                                                &b->normalised, &b->err);
    request->defaults = NULL;
    return code;
}

static struct doc canonical(struct bench *b)
{
    return doc_copy(&b->arena, doc_from_buf(&b->normalised));
}

static void reads(struct bench *b, const char *json)
{
    if (read_json(b, json) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    (void)read_back(b);
}

static const char *first_problem(struct bench *b, const char *json)
{
    assert_int_equal(read_json(b, json), BT_INVALID);
    return problem_of(b, 0);
}

/* ---- about ---- */

static void a_plan_keeps_what_it_says_of_itself(void **state)
{
    struct bench *b = *state;
    struct plan_about about;
    reads(b, "{'description':'two sums','success_criteria':'both are right','estimatedTokens':50.0,"
             "'estimatedSteps':2,'estimated_total_time':'a minute','reasoning':'sums are easy',"
             "'constraints':['no network','be quick']," STEPS "}");
    plan_about_of(canonical(b), &about);
    assert_true(str_is(about.description, "two sums"));
    assert_true(str_is(about.reasoning, "sums are easy"));
    assert_true(str_is(about.total_time, "a minute"));
    assert_int_equal(about.tokens, 50);
    assert_int_equal(about.steps, 2);
    assert_string_equal(json_of(b, about.success_criteria), "['both are right']");
    assert_string_equal(json_of(b, about.constraints), "['no network','be quick']");
    plan_about_of(doc_of(b, "{'steps':[]}"), &about);
    assert_int_equal(about.description.len + about.tokens + about.steps, 0);
    assert_null(about.constraints.ptr);
}

static void a_list_is_joined_for_people(void **state)
{
    struct bench *b = *state;
    struct buf out;
    buf_init(&out, 100);
    plan_about_join(doc_of(b, "['one','two','three']"), 100, &out);
    assert_string_equal(buf_cstr(&out), "one; two; three");
    for (size_t cap = 0; cap < 16; cap++) {
        buf_clear(&out);
        plan_about_join(doc_of(b, "['one','two','three']"), cap, &out);
        assert_true(out.len <= cap);
    }
    plan_about_join((struct doc){NULL, 0}, 10, &out);
    buf_done(&out);
}

static void notes_that_are_wrong_are_left_out_but_a_constraint_is_not(void **state)
{
    struct bench *b = *state;
    reads(b, "{'description':7,'successCriteria':{},'estimatedTokens':'lots','estimatedSteps':-1,"
             "'reasoning':[]," STEPS "}");
    assert_int_equal(b->problems.total, 5);
    assert_int_equal(b->problems.errors, 0);
    assert_string_equal(problem_of(b, 0), "style - description: is ignored: expected a string, "
                                          "got 7");
    assert_string_equal(first_problem(b, "{'constraints':[7]," STEPS "}"),
                        "invalid_field - constraints: expected a string, got 7");
    char json[3000];
    (void)snprintf(json, sizeof json, "{'constraints':['%01100d']," STEPS "}", 0);
    assert_non_null(strstr(first_problem(b, json), "an entry of 1100 bytes, at most 1024"));
    (void)snprintf(json, sizeof json, "{'constraints':[");
    for (int i = 0; i < 33; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "%s'x'", i > 0 ? "," : "");
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "]," STEPS "}");
    assert_non_null(strstr(first_problem(b, json), "33 entries, at most 32"));
}

static void a_long_description_is_cut_at_a_character(void **state)
{
    struct bench *b = *state;
    struct plan_about about;
    char *json = arena_alloc(&b->arena, 12000);
    (void)snprintf(json, 12000, "{'description':'x");
    for (int i = 0; i < 4000; i++) {
        (void)snprintf(json + strlen(json), 4, "\xc3\xa4");
    }
    (void)snprintf(json + strlen(json), 200, "'," STEPS "}");
    reads(b, json);
    plan_about_of(canonical(b), &about);
    assert_int_equal(about.description.len, 4095);
    assert_string_equal(problem_of(b, 0), "style - description: is cut after 4096 bytes");
}

static void the_requests_constraints_win(void **state)
{
    struct bench *b = *state;
    struct plan_about about;
    const struct str own[] = {STR_LIT("stay local")};
    struct plan_request request = {.plan = doc_of(b, "{'constraints':['be quick']," STEPS "}"),
                                   .constraints = own,
                                   .n_constraints = 1};
    assert_int_equal(read_wish(b, &request), BT_OK);
    plan_about_of(canonical(b), &about);
    assert_string_equal(json_of(b, about.constraints), "['stay local']");
}

static void a_revision_keeps_what_the_plan_said(void **state)
{
    struct bench *b = *state;
    struct plan *next = NULL;
    struct plan_about about;
    struct run *run =
        start_run(b, "{'goal':'g','description':'two sums','reasoning':'why','constraints':['c'],"
                     "'policy':{'synthesis':'agent','onInvalidPlan':'interrupt'}," STEPS "}");
    const struct doc change = doc_of(b, "{'description':'of the change','steps':[{'stepId':'b',"
                                        "'agentId':'calc','task':'do something more of it'}]}");
    assert_int_equal(revise(b, run, REVISE_INSERT, change, &next), BT_OK);
    plan_about_of(canonical(b), &about);
    assert_true(str_is(about.description, "two sums"));
    assert_true(str_is(about.reasoning, "why"));
    assert_string_equal(json_of(b, about.constraints), "['c']");
    assert_true(str_is(next->synthesis.agent_id, "writer"));
    assert_int_equal(next->planning.on_invalid, ON_INVALID_INTERRUPT);
}

/* ---- policy ---- */

static void the_answer_is_concatenated_unless_somebody_is_wished_for(void **state)
{
    struct bench *b = *state;
    reads(b, "{" STEPS "}");
    assert_int_equal(b->plan->synthesis.agent_id.len, 0);
    assert_int_equal(b->plan->planning.timeout_ms, 30000);
    assert_int_equal(b->plan->planning.on_invalid, ON_INVALID_FAIL);
    assert_false(b->plan->planning.pending);
    reads(b, "{'policy':{'synthesis':'agent','plannerTimeoutMs':7,'onInvalidPlan':'synthesize'}"
             "," STEPS "}");
    assert_true(str_is(b->plan->synthesis.agent_id, "writer"));
    assert_int_equal(b->plan->synthesis.timeout_ms, 60000);
    assert_int_equal(b->plan->synthesis.max_retries, 1);
    assert_int_equal(b->plan->planning.timeout_ms, 7);
    assert_int_equal(b->plan->planning.on_invalid, ON_INVALID_SYNTHESIZE);
    reads(b, "{'policy':{'synthesis':{'agentId':'writer','skill':'digest','timeoutMs':5,"
             "'maxRetries':0}}," STEPS "}");
    assert_true(str_is(b->plan->synthesis.skill, "digest"));
    assert_int_equal(b->plan->synthesis.max_retries, 0);
    reads(b, "{'policy':{'synthesis':{'strategy':'agent:writer'}}," STEPS "}");
    assert_true(str_is(b->plan->synthesis.agent_id, "writer"));
    reads(b, "{'policy':{'synthesis':false}," STEPS "}");
    assert_int_equal(b->plan->synthesis.agent_id.len, 0);
}

static void a_wish_that_nobody_can_fulfil_is_refused(void **state)
{
    struct bench *b = *state;
    assert_non_null(strstr(first_problem(b, "{'policy':{'synthesis':'llm'}," STEPS "}"),
                           "missing_agent - policy.synthesis: \"llm\" needs the agent"));
    assert_non_null(strstr(first_problem(b, "{'policy':{'synthesis':'agent:nobody'}," STEPS "}"),
                           "Unknown agent: nobody"));
    assert_non_null(
        strstr(first_problem(b, "{'policy':{'synthesis':{'agentId':'calc'}}," STEPS "}"),
               "has no skill \"synthesize\""));
    assert_non_null(strstr(first_problem(b, "{'policy':{'synthesis':'loud'}," STEPS "}"),
                           "expected \"concat\", \"llm\", \"agent\" or"));
    assert_non_null(
        strstr(first_problem(b, "{'policy':{'synthesis':{'strategy':'concat','agentId':'writer'}}"
                                "," STEPS "}"),
               "asks no agent"));
    assert_non_null(strstr(first_problem(b, "{'policy':{'synthesis':{'maxRetries':11}}," STEPS "}"),
                           "from 0 to 10"));
    assert_non_null(strstr(first_problem(b, "{'policy':{'onInvalidPlan':'cry'}," STEPS "}"),
                           "one of fail, synthesize, interrupt"));
    assert_non_null(strstr(first_problem(b, "{'policy':{'synthesis':7}," STEPS "}"), "got 7"));
}

static void a_default_that_nobody_can_fulfil_is_forgotten(void **state)
{
    struct bench *b = *state;
    struct plan_defaults defaults = plan_defaults_builtin();
    struct plan_request request = {.plan = doc_of(b, "{" STEPS "}"), .defaults = &defaults};
    assert_true(synthesis_choice_named(STR_LIT("llm"), &defaults.synthesis));
    assert_int_equal(read_wish(b, &request), BT_OK);
    assert_int_equal(b->plan->synthesis.agent_id.len, 0);
    add_agent(b, "{'agentId':'orchestrator','skills':[{'id':'synthesize'},{'id':'plan'}]}");
    assert_int_equal(read_wish(b, &request), BT_OK);
    assert_true(str_is(b->plan->synthesis.agent_id, "orchestrator"));
    (void)read_back(b);
    /* The plan's value wins. */
    request.plan = doc_of(b, "{'policy':{'synthesis':'concat'}," STEPS "}");
    assert_int_equal(read_wish(b, &request), BT_OK);
    assert_int_equal(b->plan->synthesis.agent_id.len, 0);
    /* Without the agent, the default is ignored. */
    request.registry = NULL;
    assert_false(synthesis_choice_named(STR_LIT("agent:"), &defaults.synthesis));
}

/* The synthesizer may not do steps for that reason. */
static void the_synthesizer_is_not_granted_to_steps(void **state)
{
    struct bench *b = *state;
    reads(b, "{'policy':{'synthesis':'agent'}," STEPS "}");
    assert_int_equal(plan_grant_find(b->plan, STR_LIT("writer")), UINT32_MAX);
    assert_int_equal(plan_resolve(b->plan, b->registry, 1, &b->err), BT_OK);
    assert_int_equal(b->plan->synthesis.agent, registry_agent(b->registry, STR_LIT("writer")));
    assert_int_equal(b->plan->planning.agent, AGENT_NONE);
}

/* ---- pending plans ---- */

static void a_pending_plan_is_read_back_as_it_was(void **state)
{
    struct bench *b = *state;
    const struct str no_network[] = {STR_LIT("no network")};
    struct plan_about about;
    struct plan_request request = {
        .goal = STR_LIT("add two numbers"),
        .session_id = STR_LIT("s1"),
        .planner = STR_LIT("agent:thinker"),
        .policy = doc_of(b, "{'signoff':true,'onInvalidPlan':'interrupt','synthesis':'agent'}"),
        .constraints = no_network,
        .n_constraints = 1,
        .dry_run = true};
    const struct plan_pending planner = {.agent_id = STR_LIT("thinker"), .repairs = 1};
    if (read_pending(b, &request, &planner) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    assert_true(b->plan->planning.pending);
    assert_int_equal(b->plan->n_steps, 0);
    struct plan *again = read_back(b);
    assert_true(again->planning.pending);
    assert_true(str_is(again->planning.agent_id, "thinker"));
    assert_int_equal(again->planning.repairs, 1);
    assert_int_equal(again->planning.timeout_ms, 30000);
    assert_int_equal(again->planning.on_invalid, ON_INVALID_INTERRUPT);
    assert_true(again->dry_run && again->signoff);
    assert_true(str_is(again->goal, "add two numbers"));
    assert_true(str_is(again->session_id, "s1"));
    assert_true(str_is(again->planner, "agent:thinker"));
    assert_true(str_is(again->synthesis.agent_id, "writer"));
    assert_int_equal(again->agents.n, 0);
    assert_int_equal(plan_resolve(again, b->registry, 1, &b->err), BT_OK);
    assert_int_equal(again->planning.agent, registry_agent(b->registry, STR_LIT("thinker")));
    plan_about_of(canonical(b), &about);
    assert_string_equal(json_of(b, about.constraints), "['no network']");
}

static void an_answer_alone_that_nobody_gives_is_warned_of(void **state)
{
    struct bench *b = *state;
    struct plan_request request = {.goal = STR_LIT("add two numbers"),
                                   .policy = doc_of(b, "{'onInvalidPlan':'synthesize'}")};
    const struct plan_pending planner = {.agent_id = STR_LIT("thinker"), .repairs = 1};
    assert_int_equal(read_pending(b, &request, &planner), BT_OK);
    assert_int_equal(b->problems.total, 1);
    assert_non_null(
        strstr(problem_of(b, 0), "style - policy.onInvalidPlan: \"synthesize\" acts as"));
    request.policy = doc_of(b, "{'onInvalidPlan':'synthesize','synthesis':'agent'}");
    assert_int_equal(read_pending(b, &request, &planner), BT_OK);
    assert_int_equal(b->problems.total, 0);
    request.policy = doc_of(b, "{'onInvalidPlan':'interrupt'}");
    assert_int_equal(read_pending(b, &request, &planner), BT_OK);
    assert_int_equal(b->problems.total, 0);
}

static void a_pending_plan_needs_a_goal_and_somebody_who_plans(void **state)
{
    struct bench *b = *state;
    struct plan_request request = {.goal = STR_LIT("add two numbers")};
    struct plan_pending planner = {.repairs = 1};
    assert_int_equal(read_pending(b, &request, &planner), BT_OK);
    assert_true(str_is(b->plan->planning.agent_id, "thinker")); /* the first agent with the skill */
    planner.agent_id = STR_LIT("orchestrator");
    assert_int_equal(read_pending(b, &request, &planner), BT_INVALID);
    assert_non_null(strstr(problem_of(b, 0), "planner: \"llm\" needs the agent \"orchestrator\""));
    planner.agent_id = STR_LIT("calc");
    assert_int_equal(read_pending(b, &request, &planner), BT_INVALID);
    assert_non_null(strstr(problem_of(b, 0), "has no skill \"plan\""));
    planner.agent_id = STR_LIT("thinker");
    request.goal = (struct str){NULL, 0};
    assert_int_equal(read_pending(b, &request, &planner), BT_INVALID);
    assert_non_null(strstr(problem_of(b, 0), "goal: is missing"));
}

static struct doc pending_of(struct bench *b, const char *policy)
{
    struct plan_request request = {.goal = STR_LIT("add two numbers"),
                                   .planner = STR_LIT("llm"),
                                   .policy = doc_of(b, policy),
                                   .dry_run = true};
    const struct plan_pending planner = {.repairs = 1};
    if (read_pending(b, &request, &planner) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    return canonical(b);
}

static enum bt_code answer(struct bench *b, struct doc pending, const char *json, bool trusted)
{
    struct plan_request request = {.plan = doc_of(b, json), .pending = pending, .trusted = trusted};
    return read_wish(b, &request);
}

static void an_answer_keeps_what_the_plan_was_submitted_with(void **state)
{
    struct bench *b = *state;
    const struct doc pending =
        pending_of(b, "{'maxRetries':7,'maxConcurrency':3,'budget':{'tokens':9}}");
    assert_int_equal(
        answer(b, pending, "{'goal':'rule the world','description':'d'," STEPS "}", false), BT_OK);
    assert_int_equal(b->problems.total, 0);
    assert_false(b->plan->planning.pending);
    assert_true(b->plan->dry_run);
    assert_true(b->plan->chain);
    assert_int_equal(b->plan->max_concurrency, 1);
    assert_int_equal(b->plan->steps[0].rules->policy.max_retries, 7);
    assert_int_equal(b->plan->steps[0].rules->policy.scope, SCOPE_ALL);
    assert_int_equal(b->plan->budget_tokens, 9);
    assert_true(str_is(b->plan->goal, "add two numbers"));
    assert_true(str_is(b->plan->planner, "llm"));
    (void)read_back(b);
    assert_int_equal(answer(b, pending,
                            "{'steps':[" STEP ",{'stepId':'b','agentId':'calc',"
                            "'task':'do something worth doing','dependsOn':[]}]}",
                            false),
                     BT_OK);
    assert_int_equal(b->plan->max_concurrency, 3);
    assert_int_equal(b->plan->steps[1].rules->policy.scope, SCOPE_DEPS);
}

/* G26: an agent's answer changes what is done, not what the plan may do. */
static void an_answer_cannot_loosen_what_the_plan_demands(void **state)
{
    struct bench *b = *state;
    const struct doc pending = pending_of(
        b, "{'requiresApproval':true,'verifyWith':'calc','budget':{'tokens':9},'signoff':true}");
    const char *loose =
        "{'policy':{'requiresApproval':false,'budget':{'tokens':0},'signoff':false,"
        "'handoffTo':'*','maxFallbacks':9,'synthesis':'agent'},'grants':['exec','sql'],"
        "'errand':{'kind':'planning','of':'x'},'planning':{'agentId':'exec'},'dryRun':false,"
        "'steps':[{'stepId':'a','agentId':'files','skill':'read','parameters':{'path':'x'},"
        "'task':'do something worth doing','requiresApproval':false,'verifyWith':false,"
        "'effects':'none'},{'stepId':'b','agentId':'exec','skill':'run','effects':'none',"
        "'task':'do something worth doing','parameters':{'command':'x'}}]}";
    assert_int_equal(answer(b, pending, loose, false), BT_OK);
    const struct plan *p = b->plan;
    assert_true(p->signoff && p->dry_run);
    assert_int_equal(p->budget_tokens, 9);
    assert_int_equal(p->job, JOB_NONE);
    assert_false(p->planning.pending);
    assert_int_equal(p->synthesis.agent_id.len, 0);
    assert_true(p->steps[0].rules->policy.requires_approval);
    assert_true(str_is(p->steps[0].rules->verify_with, "calc"));
    assert_int_equal(p->steps[1].rules->policy.effects, EFFECTS_UNSAFE); /* as the card requires */
    assert_int_equal(plan_grant_find(p, STR_LIT("sql")), UINT32_MAX);
    /* A person may. */
    assert_int_equal(answer(b, pending, loose, true), BT_OK);
    assert_false(b->plan->steps[0].rules->policy.requires_approval);
    assert_false(b->plan->signoff);
}

static void an_answer_without_steps_is_no_plan(void **state)
{
    struct bench *b = *state;
    const struct doc pending = pending_of(b, "{}");
    assert_int_equal(answer(b, pending, "{'steps':[]}", false), BT_INVALID);
    assert_int_equal(b->at[0].category, PROBLEM_EMPTY_PLAN);
    assert_int_equal(answer(b, pending, "7", false), BT_INVALID);
    assert_int_equal(answer(b, pending,
                            "{'steps':[{'agentId':'orac','task':'do something at all'}]"
                            "}",
                            false),
                     BT_INVALID);
}

/* ---- documents of the supervisor ---- */

static void a_job_is_kept_and_only_the_supervisor_makes_one(void **state)
{
    struct bench *b = *state;
    struct plan_job job;
    struct plan_defaults defaults = plan_defaults_builtin();
    struct plan_request request = {
        .plan = doc_of(b, "{'goal':'g','errand':{'kind':'synthesis','of':'p1','turn':'t1'},"
                          "'steps':[{'stepId':'synthesis','agentId':'files','skill':'read',"
                          "'task':'Write the answer'}]}"),
        .defaults = &defaults,
        .own = true};
    assert_true(synthesis_choice_named(STR_LIT("agent"), &defaults.synthesis));
    add_agent(b, "{'agentId':'finder','skills':[{'id':'search'}]}");
    /* Parameters come with each attempt; no agent is asked about a job. */
    if (read_wish(b, &request) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    assert_int_equal(b->plan->job, JOB_SYNTHESIS);
    assert_int_equal(b->plan->synthesis.agent_id.len, 0);
    assert_int_equal(b->plan->search_with.len, 0);
    assert_int_equal(read_back(b)->job, JOB_SYNTHESIS);
    plan_job_of(canonical(b), &job);
    assert_int_equal(job.kind, JOB_SYNTHESIS);
    assert_true(str_is(job.of, "p1"));
    assert_true(str_is(job.turn, "t1"));
    request.own = false;
    assert_int_equal(read_wish(b, &request), BT_INVALID); /* now its parameters are checked */
    reads(b, "{'errand':{'kind':'planning','of':'p1'},'planning':{'agentId':'calc'},"
             "'dryRun':true," STEPS "}");
    assert_int_equal(b->plan->job, JOB_NONE);
    assert_false(b->plan->planning.pending || b->plan->dry_run);
    assert_non_null(strstr(problem_of(b, 0), "who submits the plan says whether it is to run"));
    assert_non_null(strstr(problem_of(b, 1), "only the supervisor makes errands"));
    plan_job_of(canonical(b), &job);
    assert_int_equal(job.kind, JOB_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_plan_keeps_what_it_says_of_itself),
        RULE(a_list_is_joined_for_people),
        RULE(notes_that_are_wrong_are_left_out_but_a_constraint_is_not),
        RULE(a_long_description_is_cut_at_a_character),
        RULE(the_requests_constraints_win),
        RULE(a_revision_keeps_what_the_plan_said),
        RULE(the_answer_is_concatenated_unless_somebody_is_wished_for),
        RULE(a_wish_that_nobody_can_fulfil_is_refused),
        RULE(a_default_that_nobody_can_fulfil_is_forgotten),
        RULE(the_synthesizer_is_not_granted_to_steps),
        RULE(a_pending_plan_is_read_back_as_it_was),
        RULE(a_pending_plan_needs_a_goal_and_somebody_who_plans),
        RULE(an_answer_alone_that_nobody_gives_is_warned_of),
        RULE(an_answer_keeps_what_the_plan_was_submitted_with),
        RULE(an_answer_cannot_loosen_what_the_plan_demands),
        RULE(an_answer_without_steps_is_no_plan),
        RULE(a_job_is_kept_and_only_the_supervisor_makes_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
