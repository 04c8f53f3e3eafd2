#include "fixture.h"

#define TASK "'task':'do something worth doing'"
#define STEP(members) "{'steps':[{'stepId':'a','agentId':'calc'," TASK members "}]}"

static void add_helpers(struct bench *b)
{
    add_house(b);
    add_agent(b, "{'agentId':'judge','skills':[{'id':'gate'},{'id':'judge'}]}");
    add_agent(b, "{'agentId':'planner','skills':[{'id':'plan'}]}");
    add_agent(b, "{'agentId':'finder','skills':[{'id':'search'},{'id':'read'}]}");
}

static const struct plan_step *read_step(struct bench *b, const char *json)
{
    if (read_json(b, json) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    assert_int_equal(read_back(b)->n_steps, b->plan->n_steps);
    return &b->plan->steps[0];
}

static const char *refused(struct bench *b, const char *json)
{
    assert_int_equal(read_json(b, json), BT_INVALID);
    return problem_of(b, 0);
}

/* ---- what happens on failure ---- */

static void every_recovery_has_its_name_and_stop_is_abort(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    static const char *const names[] = {"abort",  "skip", "continue", "retry",
                                        "replan", "ask",  "stop"};
    for (uint32_t i = 0; i < 7; i++) {
        char json[300];
        (void)snprintf(json, sizeof json, STEP(",'onFailure':'%s','on_verification_failure':'%s'"),
                       names[i], names[i]);
        const struct plan_step *s = read_step(b, json);
        assert_int_equal(s->rules->policy.on_failure, i % 6);
        assert_int_equal(s->rules->policy.on_verify, i % 6);
    }
    assert_int_equal(read_step(b, STEP(""))->rules->policy.on_verify, ON_FAILURE_RETRY);
    assert_string_equal(refused(b, STEP(",'onFailure':'panic'")),
                        "invalid_field a onFailure: expected one of abort, skip, continue, retry, "
                        "replan, ask, stop, got \"panic\"");
}

static void critical_decides_unless_the_step_says_on_failure(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    assert_int_equal(read_step(b, STEP(",'critical':false"))->rules->policy.on_failure,
                     ON_FAILURE_CONTINUE);
    assert_int_equal(
        read_step(b, STEP(",'critical':false,'onFailure':'skip'"))->rules->policy.on_failure,
        ON_FAILURE_SKIP);
    assert_int_equal(read_step(b, "{'policy':{'onFailure':'skip'},'steps':[{'agentId':'calc'," TASK
                                  ",'critical':true}]}")
                         ->rules->policy.on_failure,
                     ON_FAILURE_ABORT);
}

static void classes_that_are_not_retried_are_named(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    assert_int_equal(
        read_step(b, STEP(",'noRetry':['TIMEOUT','RATE_LIMITED']"))->rules->policy.no_retry,
        1u << CLASS_TIMEOUT | 1u << CLASS_RATE_LIMITED);
    const uint32_t never = read_step(b, STEP(",'retryOn':['TIMEOUT']"))->rules->policy.no_retry;
    assert_int_equal(never & 1u << CLASS_TIMEOUT, 0);
    assert_int_not_equal(never & 1u << CLASS_UNKNOWN, 0);
    assert_int_equal(
        read_step(b, STEP(",'retryOn':['RESOURCE_NOT_FOUND','TIMEOUT'],'noRetry':['TIMEOUT']"))
            ->rules->policy.retry_on,
        1u << CLASS_RESOURCE_NOT_FOUND);
    assert_int_equal(read_step(b,
                               "{'policy':{'retryOn':['TIMEOUT']},'steps':[{'agentId':'calc'," TASK
                               ",'noRetry':['UNKNOWN']}]}")
                         ->rules->policy.retry_on,
                     0); /* the step's own lists take the place of the plan's */
    assert_string_equal(refused(b, STEP(",'noRetry':['TIMEOUTS']")),
                        "invalid_field a noRetry: \"TIMEOUTS\" is no error class; did you mean "
                        "\"TIMEOUT\"?");
    assert_non_null(strstr(refused(b, STEP(",'noRetry':[7]")), "expected a string, got 7"));
}

/* ---- types ---- */

static void a_human_review_has_no_agent_and_no_effects(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    static const char *const names[] = {"human_review", "review", "approval"};
    for (uint32_t i = 0; i < 3; i++) {
        char json[300];
        (void)snprintf(json, sizeof json,
                       "{'policy':{'requiresApproval':true,'verifyWith':'judge','gate':true,"
                       "'estimate':{'tokens':4}},'steps':[{'type':'%s','prompt':'shall we publish "
                       "it now?'}]}",
                       names[i]);
        const struct plan_step *s = read_step(b, json);
        assert_int_equal(s->type, STEP_TYPE_REVIEW);
        assert_int_equal(s->agent, AGENT_NONE);
        assert_int_equal(s->agent_id.len + s->rules->verify_with.len + s->rules->gate_with.len, 0);
        assert_int_equal(s->rules->policy.effects, EFFECTS_NONE);
        assert_false(s->rules->policy.requires_approval);
        assert_int_equal(s->rules->policy.estimate_tokens, 0);
    }
    assert_string_equal(refused(b, "{'steps':[{'stepId':'a','type':'human_review'}]}"),
                        "invalid_field a task: is missing; say what the person is to decide");
    assert_non_null(strstr(refused(b, "{'steps':[{'stepId':'a','type':'human_review'," TASK
                                      ",'verifyWith':'judge'}]}"),
                           "no result to verify"));
}

static void a_synthesis_is_critical_and_sees_what_it_depends_on(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    static const char *const names[] = {"synthesis_gate", "gate", "synthesis", "compress",
                                        "summarize"};
    for (uint32_t i = 0; i < 5; i++) {
        char json[300];
        (void)snprintf(json, sizeof json,
                       "{'policy':{'onFailure':'continue','contextScope':'none'},'steps':[{'type':"
                       "'%s','agentId':'calc'," TASK ",'dependsOn':[]}]}",
                       names[i]);
        const struct plan_step *s = read_step(b, json);
        assert_int_equal(s->type, STEP_TYPE_SYNTHESIS);
        assert_int_equal(s->rules->policy.on_failure, ON_FAILURE_ABORT);
        assert_int_equal(s->rules->policy.scope, SCOPE_DEPS);
    }
    assert_int_equal(
        read_step(b, STEP(",'type':'gate','onFailure':'skip'"))->rules->policy.on_failure,
        ON_FAILURE_SKIP);
    assert_int_equal(read_step(b, STEP(",'type':'direct'"))->type, STEP_TYPE_TASK);
    assert_non_null(strstr(refused(b, STEP(",'type':'dance'")), "expected one of task, human_rev"));
}

/* ---- numbers ---- */

static void deadlines_and_estimates_are_read_for_plan_and_step(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    const struct plan_step *s = read_step(
        b, "{'policy':{'idleTimeoutMs':1,'queueTimeoutMs':2,'stepLimitMs':3,'approvalTimeoutMs':4,"
           "'requiresApproval':true,'estimate':{'tokens':6,'costMicros':7}},'steps':["
           "{'agentId':'calc'," TASK "},{'agentId':'calc'," TASK
           ",'idle_timeout_ms':10,'checkTimeoutMs':50,'requiresApproval':false,"
           "'estimate':{'cost_micros':70}}]}");
    assert_int_equal(s[0].rules->policy.idle_ms, 1);
    assert_int_equal(s[0].rules->policy.queue_timeout_ms, 2);
    assert_int_equal(s[0].rules->policy.limit_ms, 3);
    assert_int_equal(s[0].rules->policy.approval_timeout_ms, 4);
    assert_int_equal(s[0].rules->policy.check_timeout_ms, 30000);
    assert_true(s[0].rules->policy.requires_approval);
    assert_int_equal(s[1].rules->policy.idle_ms, 10);
    assert_int_equal(s[1].rules->policy.check_timeout_ms, 50);
    assert_false(s[1].rules->policy.requires_approval);
    assert_int_equal(s[1].rules->policy.estimate_tokens, 6);
    assert_int_equal(s[1].rules->policy.estimate_micros, 70);
    assert_string_equal(refused(b, STEP(",'estimate':{'tokens':-1}")),
                        "invalid_field a estimate.tokens: expected a whole number from 0 to "
                        "1099511627776, got -1");
}

static void the_plans_own_policy_is_read(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    (void)read_step(
        b, "{'policy':{'maxFallbacks':1,'maxHandoffs':2,'handback':true,'signoff':true,"
           "'budget':{'tokens':3,'costMicros':4},'replan':{'agent':'planner',"
           "'maxPerStep':5,'maxReplans':6,'cooldownMs':7,'timeoutMs':8,'budget':{'tokens':9}},"
           "'searchAgent':'files','handoffTo':['sql']},"
           "'steps':[{'agentId':'calc'," TASK "}]}");
    const struct plan *p = read_back(b);
    assert_int_equal(p->max_fallbacks, 1);
    assert_int_equal(p->max_handoffs, 2);
    assert_true(p->handback && p->signoff);
    assert_int_equal(p->budget_tokens, 3);
    assert_int_equal(p->budget_micros, 4);
    assert_int_equal(p->replan.max_step, 5);
    assert_int_equal(p->replan.max_total, 6);
    assert_int_equal(p->replan.cooldown_ms, 7);
    assert_int_equal(p->replan.timeout_ms, 8);
    assert_int_equal(p->replan.budget_tokens, 9);
    assert_true(str_is(p->replan.agent_id, "planner"));
    assert_true(str_is(p->search_with, "files"));
    assert_int_equal(p->replan.agent, registry_agent(b->registry, STR_LIT("planner")));
    static const char *const granted[] = {"calc", "planner", "sql", "files"};
    assert_int_equal(p->agents.n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(str_is(p->agents.ids[i], granted[i]));
        assert_int_equal(p->agents.at[i], registry_agent(b->registry, str_from(granted[i])));
    }
}

/* The canonical document says it only when it is not as it is by default. */
static void undoing_is_kept_in_the_canonical_document(void **state)
{
    static const char *const given[] = {"", "'policy':{'compensate':true},",
                                        "'policy':{'compensate':false},"};
    static const enum undo_policy want[] = {UNDO_ON_FAILURE, UNDO_ALWAYS, UNDO_NEVER};
    struct bench *b = *state;
    char json[200];

    add_helpers(b);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(json, sizeof json, "{%s'steps':[{'agentId':'calc'," TASK "}]}", given[i]);
        (void)read_step(b, json);
        assert_int_equal(b->plan->undo, want[i]);
        assert_int_equal(read_back(b)->undo, want[i]);
    }
}

static void the_defaults_are_those_of_the_requirements(void **state)
{
    struct bench *b = *state;
    add_house(b);
    (void)read_step(b, STEP(""));
    assert_int_equal(b->plan->max_fallbacks, 5);
    assert_int_equal(b->plan->max_handoffs, 5);
    assert_int_equal(b->plan->replan.max_step, 3);
    assert_int_equal(b->plan->replan.max_total, 5);
    assert_int_equal(b->plan->replan.cooldown_ms, 1000);
    assert_int_equal(b->plan->replan.timeout_ms, 30000);
    assert_int_equal(b->plan->replan.agent_id.len + b->plan->search_with.len, 0);
    assert_int_equal(b->plan->agents.n, 1);
    assert_false(b->plan->signoff || b->plan->handback);
    assert_int_equal(b->plan->budget_tokens + b->plan->budget_micros, 0);
}

/* ---- who is asked ---- */

static void gates_and_verifiers_are_found_by_agent_or_skill(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    const uint32_t judge = registry_agent(b->registry, STR_LIT("judge"));
    const struct plan_step *s =
        read_step(b, STEP(",'qualityGate':true,'verifyWith':{'skill':'judge','failOpen':true}"));
    assert_true(str_is(s->rules->gate_with, "judge") && str_is(s->rules->verify_with, "judge"));
    s = read_step(b, STEP(",'gate':{'failClosed':true}"));
    assert_true(str_is(s->rules->gate_with, "judge") && s->rules->policy.gate_closed);
    s = read_step(b, STEP(",'gate':'sql','verifyWith':{'agent':'files'}"));
    assert_true(str_is(s->rules->gate_with, "sql") && !s->rules->policy.gate_closed);
    assert_true(str_is(s->rules->verify_with, "files") && !s->rules->policy.verify_open);
    assert_int_equal(plan_resolve(b->plan, b->registry, 1, &b->err), BT_OK);
    assert_int_equal(s->rules->gate_agent, registry_agent(b->registry, STR_LIT("sql")));
    assert_int_not_equal(judge, REGISTRY_NONE);
    assert_string_equal(refused(b, STEP(",'gate':'nobody'")),
                        "missing_agent a gate: Unknown agent: nobody; known: files, sql, calc, "
                        "exec, judge, planner, finder");
    assert_non_null(strstr(refused(b, STEP(",'verifyWith':{'skill':'fly'}")),
                           "no registered agent has the skill \"fly\""));
    assert_non_null(strstr(refused(b, STEP(",'verifyWith':true")),
                           "expected an agent's id, {\"agentId\"} or {\"skill\"} or false"));
    assert_non_null(strstr(refused(b, STEP(",'verifyWith':{}")), "names no agent"));
}

static void the_plans_gate_is_for_steps_that_have_something_before_them(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    const struct plan_step *s = read_step(
        b, "{'policy':{'gate':'judge'},'steps':[{'agentId':'calc'," TASK ",'dependsOn':[]},"
           "{'stepId':'b','agentId':'calc'," TASK ",'dependsOn':['step-1']},"
           "{'agentId':'calc'," TASK ",'dependsOn':['b'],'gate':false},"
           "{'agentId':'calc'," TASK ",'gate':{'agent':'judge','failClosed':true}}]}");
    assert_int_equal(s[0].rules->gate_with.len, 0);
    assert_true(str_is(s[1].rules->gate_with, "judge"));
    assert_int_equal(s[2].rules->gate_with.len, 0);
    assert_true(str_is(s[3].rules->gate_with, "judge") && s[3].rules->policy.gate_closed);
    s = read_step(b, "{'policy':{'gate':'judge'},'steps':[{'agentId':'calc'," TASK
                     "},{'agentId':'calc'," TASK "}]}");
    assert_int_equal(s[0].rules->gate_with.len, 0);
    assert_true(str_is(s[1].rules->gate_with, "judge"));
}

static void a_step_by_skill_falls_back_on_the_others_that_have_it(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    const struct plan_step *s =
        read_step(b, "{'steps':[{'skill':'read','parameters':{'path':'x'}},"
                     "{'agentId':'files','skill':'read','parameters':{'path':'x'},'task':'read it "
                     "once again','fallbackAgents':['finder']},"
                     "{'agentId':'files','skill':'read','parameters':{'path':'x'},'task':'and read "
                     "it once more'}]}");
    assert_int_equal(s[0].alternatives_n, 1);
    assert_int_equal(s[1].alternatives_n, 1);
    assert_int_equal(s[2].alternatives_n, 0);
    assert_true(str_is(b->plan->agents.ids[b->plan->alternatives[s[0].alternatives_at]], "finder"));
    assert_string_equal(
        refused(b, "{'steps':[{'stepId':'a','agentId':'files','skill':'read','parameters':{'path':"
                   "'x'},'task':'read it once again','fallbackAgents':['sql']}]}"),
        "missing_skill a fallbackAgents: agent \"sql\" has no skill \"read\"");
    assert_int_equal(read_step(b, "{'policy':{'maxFallbacks':0},'steps':[{'skill':'read',"
                                  "'parameters':{'path':'x'}}]}")
                         ->alternatives_n,
                     0);
}

/* M042: it gets a step's parameters. */
static void nobody_searches_unless_the_plan_asks_for_it(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    (void)read_step(b, STEP(""));
    assert_int_equal(read_back(b)->search_with.len, 0);
    (void)read_step(b, "{'policy':{'searchAgent':false},'steps':[{'agentId':'calc'," TASK "}]}");
    assert_int_equal(read_back(b)->search_with.len, 0);
    (void)read_step(b, "{'policy':{'searchAgent':'finder'},'steps':[{'agentId':'calc'," TASK "}]}");
    assert_true(str_is(read_back(b)->search_with, "finder"));
}

static void a_searcher_by_skill_is_an_agent_that_the_plan_names(void **state)
{
    static const char *const named[] = {
        "{'grants':['finder'],'policy':{'searchAgent':true},'steps':[{'agentId':'calc'," TASK "}]}",
        "{'policy':{'searchAgent':{'skill':'search'},'handoffTo':['finder']},"
        "'steps':[{'agentId':'calc'," TASK "}]}"};
    struct bench *b = *state;
    add_helpers(b);
    assert_non_null(
        strstr(refused(b, "{'policy':{'searchAgent':true},'steps':[{'agentId':'calc'," TASK "}]}"),
               "no granted agent has the skill \"search\"; name one"));
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        (void)read_step(b, named[i]);
        assert_true(str_is(read_back(b)->search_with, "finder"));
    }
}

static void a_replan_needs_a_replanner(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_string_equal(refused(b, STEP(",'onFailure':'replan'")),
                        "missing_agent - policy.replan: step \"a\" asks for a replan, but the plan "
                        "has no replanner; add policy.replan.agent, or register an agent with the "
                        "skill \"plan\"");
    add_agent(b, "{'agentId':'planner','skills':[{'id':'plan'}]}");
    (void)read_step(b, STEP(",'onVerificationFailure':'replan'"));
    assert_true(str_is(b->plan->replan.agent_id, "planner"));
    (void)read_step(b, STEP(""));
    assert_int_equal(b->plan->replan.agent_id.len, 0); /* no step needs it */
    assert_int_equal(read_json(b, "{'policy':{'replan':false},'steps':[{'agentId':'calc'," TASK
                                  ",'onFailure':'replan'}]}"),
                     BT_INVALID);
}

static void a_plan_may_use_64_agents(void **state)
{
    struct bench *b = *state;
    char json[8000] = "{'steps':[";
    for (uint32_t i = 0; i < 64; i++) {
        char card[60];
        (void)snprintf(card, sizeof card, "{'agentId':'a%u','skills':[]}", i);
        add_agent(b, card);
        (void)snprintf(json + strlen(json), sizeof json - strlen(json),
                       "%s{'agentId':'a%u'," TASK "}", i == 0 ? "" : ",", i);
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "]}");
    (void)read_step(b, json);
    assert_int_equal(b->plan->agents.n, 64);
    const struct plan_defaults defaults = plan_defaults_builtin();
    const struct plan_request request = {
        .plan = doc_of(b, json), .policy = doc_of(b, "{'handoffTo':['z']}"), .defaults = &defaults};
    b->problems = (struct problems){.at = b->at, .cap = 100};
    assert_int_equal(
        plan_read_request(&request, &b->arena, &b->plan, &b->problems, &b->normalised, &b->err),
        BT_INVALID);
    assert_non_null(strstr(problem_of(b, 0), "more than the 64 different agents"));
}

static void a_star_hands_over_to_everyone(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    (void)read_step(b, "{'policy':{'handoffTo':['*']},'steps':[{'agentId':'calc'," TASK "}]}");
    assert_int_equal(b->plan->agents.n, 7);
}

/* ---- rows and indexes ---- */

static void agents_that_have_gone_are_made_known_again(void **state)
{
    struct bench *b = *state;
    struct bench *empty;
    struct plan *again = NULL;
    const struct plan_defaults defaults = plan_defaults_builtin();
    add_helpers(b);
    assert_int_equal(bench_setup((void **)&empty), 0);
    (void)read_step(b, STEP(",'gate':true,'verifyWith':'sql','onFailure':'replan',"
                            "'fallbackAgents':['exec']"));
    assert_int_equal(plan_read_canonical(doc_from_buf(&b->normalised), &defaults, empty->registry,
                                         &b->arena, &again, &b->err),
                     BT_OK);
    assert_int_equal(again->steps[0].agent, AGENT_NONE);
    assert_int_equal(plan_resolve(again, empty->registry, 5, &b->err), BT_OK);
    const struct registry *r = empty->registry;
    assert_int_equal(again->steps[0].agent, registry_agent(r, STR_LIT("calc")));
    assert_int_equal(again->steps[0].rules->gate_agent, registry_agent(r, STR_LIT("judge")));
    assert_int_equal(again->steps[0].rules->verify_agent, registry_agent(r, STR_LIT("sql")));
    assert_int_equal(again->replan.agent, registry_agent(r, STR_LIT("planner")));
    assert_int_equal(again->search_agent, registry_agent(r, STR_LIT("finder")));
    assert_int_equal(again->agents.at[again->alternatives[0]], registry_agent(r, STR_LIT("exec")));
    bench_teardown((void **)&empty);
}

static void a_registry_without_room_is_a_limit(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    (void)read_step(b, STEP(",'gate':true"));
    const struct registry_limits lim = {
        .agents = 1, .instances = 1, .lease_ms = 3000, .suspect_ms = 2000};
    struct registry *small = registry_init(arena_alloc(&b->arena, registry_size(&lim)), &lim);
    assert_int_equal(plan_resolve(b->plan, small, 5, &b->err), BT_LIMIT);
}

static void superseded_rows_are_not_for_new_plans(void **state)
{
    struct bench *b = *state;
    add_helpers(b);
    assert_non_null(strstr(refused(b, STEP(",'superseded':true")), "leave it out"));
    assert_int_equal(read_step(b, STEP(",'revision':7"))->revision, 1);
    assert_int_equal(read_json(b, "{'reuse':['x'],'steps':[{'agentId':'calc'," TASK "}]}"),
                     BT_INVALID);
    assert_non_null(strstr(problem_of(b, 0), "belongs to a change of a plan"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(every_recovery_has_its_name_and_stop_is_abort),
        RULE(critical_decides_unless_the_step_says_on_failure),
        RULE(classes_that_are_not_retried_are_named),
        RULE(a_human_review_has_no_agent_and_no_effects),
        RULE(a_synthesis_is_critical_and_sees_what_it_depends_on),
        RULE(deadlines_and_estimates_are_read_for_plan_and_step),
        RULE(the_plans_own_policy_is_read),
        RULE(undoing_is_kept_in_the_canonical_document),
        RULE(the_defaults_are_those_of_the_requirements),
        RULE(gates_and_verifiers_are_found_by_agent_or_skill),
        RULE(the_plans_gate_is_for_steps_that_have_something_before_them),
        RULE(a_step_by_skill_falls_back_on_the_others_that_have_it),
        RULE(nobody_searches_unless_the_plan_asks_for_it),
        RULE(a_searcher_by_skill_is_an_agent_that_the_plan_names),
        RULE(a_replan_needs_a_replanner),
        RULE(a_plan_may_use_64_agents),
        RULE(a_star_hands_over_to_everyone),
        RULE(agents_that_have_gone_are_made_known_again),
        RULE(a_registry_without_room_is_a_limit),
        RULE(superseded_rows_are_not_for_new_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
