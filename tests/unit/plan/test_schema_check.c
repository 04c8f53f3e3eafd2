#include "fixture.h"

#define TASK "'task':'do something worth doing'"

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

/* ---- parameters against the skill's schema ---- */

static void parameters_are_checked_against_the_skills_schema(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'steps':[{'stepId':'a','agentId':'files','skill':'read'," TASK
                                  ",'parameters':{'path':7}}]}"),
                     BT_INVALID);
    assert_string_equal(problem_of(b, 0), "invalid_params a parameters.path: Invalid params - "
                                          "expected a string, got 7");
    assert_int_equal(
        read_json(b, "{'steps':[{'stepId':'a','agentId':'files','skill':'read'," TASK "}]}"),
        BT_INVALID);
    assert_string_equal(problem_of(b, 0),
                        "invalid_params a parameters.path: Invalid params - is missing");
}

static void a_template_stands_for_a_value_of_any_type(void **state)
{
    struct bench *b = *state;
    add_house(b);
    add_agent(b, "{'agentId':'t','skills':[{'id':'s','inputSchema':{'type':'object','properties':{"
                 "'n':{'type':'integer'},'u':{'anyOf':[{'type':'integer'},{'type':'object',"
                 "'properties':{'k':{'type':'boolean'}}}]},'e':{'enum':['x']}},"
                 "'required':['n']}}]}");
    assert_int_equal(read_json(b, "{'steps':[{'stepId':'a','agentId':'calc'," TASK "},"
                                  "{'stepId':'b','agentId':'t','skill':'s'," TASK ",'parameters':{"
                                  "'n':'{{results.a}}','u':{'k':'{{results.a.ok}}'},"
                                  "'e':'pre-{{results.a.e}}'}}]}"),
                     BT_OK);
    assert_int_equal(read_json(b, "{'steps':[{'stepId':'a','agentId':'calc'," TASK "},"
                                  "{'stepId':'b','agentId':'t','skill':'s'," TASK
                                  ",'parameters':{'u':{'k':'no'},'e':'{{results.a.e}}'}}]}"),
                     BT_INVALID);
    assert_int_equal(b->problems.errors, 2); /* n is missing, u matches no form */
}

static void a_bad_input_schema_is_the_agents_fault_and_only_a_warning(void **state)
{
    struct bench *b = *state;
    add_agent(b, "{'agentId':'t','skills':[{'id':'s','inputSchema':{'type':'nonsense'}}]}");
    assert_int_equal(read_json(b, "{'steps':[{'agentId':'t','skill':'s'," TASK "},"
                                  "{'agentId':'t','skill':'s'," TASK "}]}"),
                     BT_OK);
    assert_int_equal(b->problems.total, 1);
    assert_non_null(strstr(problem_of(b, 0), "inputSchema cannot be used"));
}

static void verify_has_to_be_a_schema(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_non_null(strstr(refused_step(b, "'verify':{'type':'nonsense'}"), "is no JSON Schema"));
}

static void templates_in_parameters_are_checked_by_their_field(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_string_equal(refused_step(b, "'parameters':{'x':[{'y':'{{results.zzz}}'}]}"),
                        "bad_template a parameters.x: {{results.zzz}} names no step of this plan");
}

/* ---- recovery ---- */

static void what_was_normalised_is_read_back_without_the_agents(void **state)
{
    struct bench *b = *state;
    const struct plan_defaults other = {.step = {.max_retries = 9}, .max_concurrency = 77};
    struct plan *again = NULL;
    struct bench *empty;
    add_house(b);
    assert_int_equal(bench_setup((void **)&empty), 0);
    assert_int_equal(read_json(b, "{'steps':[{'stepId':'a','agentId':'files','skill':'read'," TASK
                                  ",'parameters':{'path':'x'}},{'stepId':'b','agentId':'calc',"
                                  "'dependsOn':['a']," TASK "}]}"),
                     BT_OK);
    assert_int_equal(plan_read_canonical(doc_from_buf(&b->normalised), &other, empty->registry,
                                         &b->arena, &again, &b->err),
                     BT_OK);
    assert_int_equal(again->max_concurrency,
                     5); /* with the values of that time, not of today's configuration */
    assert_int_equal(again->steps[0].rules->policy.max_retries, 2);
    assert_int_equal(again->steps[0].rules->policy.effects, EFFECTS_NONE);
    assert_int_equal(again->steps[0].agent, REGISTRY_NONE);
    const uint8_t damaged[] = {0x81, 0xa5, 's', 't', 'e', 'p', 's', 0x90};
    assert_int_equal(plan_read_canonical((struct doc){damaged, sizeof damaged}, &other, NULL,
                                         &b->arena, &again, &b->err),
                     BT_INVALID);
    bench_teardown((void **)&empty);
}

/* ---- property: reading what was normalised gives the same plan and the same bytes ---- */

static uint32_t draw(uint32_t *x, uint32_t n)
{
    *x = *x * 1664525u + 1013904223u;
    return (*x >> 8) % n;
}

static void put_random_step(char *json, size_t cap, uint32_t *x, uint32_t i, bool chain)
{
    static const char *const extras[] = {
        "",
        ",'onFailure':'skip'",
        ",'maxRetries':4,'timeoutMs':1234",
        ",'backoff':{'kind':'exponential','multiplier':3.25,'jitter':0.1}",
        ",'runIf':'always','effects':'unsafe'",
        ",'contextScope':'none','verify':{'type':'object','required':['x']}",
        ",'type':'human_review'",
        ",'type':'synthesis_gate','gate':'files'",
        ",'type':'synthesis','onFailure':'continue','contextScope':'none'",
        ",'gate':false,'fallbackAgents':['files','exec']",
        ",'verifyWith':{'agent':'sql','failOpen':true},'onVerificationFailure':'ask'",
        ",'gate':{'skill':'read','failClosed':true},'requiresApproval':true,'afterAnyEnd':true",
        ",'noRetry':['TIMEOUT','UNKNOWN'],'critical':false,'idleTimeoutMs':7,'queueTimeoutMs':8",
        ",'retryOn':'TIMEOUT','stepLimitMs':9,'approvalTimeoutMs':10,'checkTimeoutMs':11",
        ",'onFailure':'retry','estimate':{'tokens':5,'costMicros':6}",
        ",'onFailure':'replan'",
        ",'parameters':{'a':[1,-2,3.5,null,true,'\\u00e4'],'b':{'c':{}}}"};
    const size_t used = strlen(json);
    int n = snprintf(json + used, cap - used, "%s{'stepId':'s%u','agentId':'%s'," TASK "%s",
                     i == 0 ? "" : ",", i, draw(x, 2) == 0 ? "calc" : "sql",
                     extras[draw(x, sizeof extras / sizeof extras[0])]);
    size_t at = used + (size_t)n;
    if (!chain) {
        at += (size_t)snprintf(json + at, cap - at, ",'dependsOn':[");
        const char *comma = "";
        for (uint32_t d = i; d > 0; d--) {
            if (draw(x, 3) == 0) {
                at += (size_t)snprintf(json + at, cap - at, "%s's%u'", comma, d - 1);
                comma = ",";
            }
        }
        at += (size_t)snprintf(json + at, cap - at, "]");
    }
    (void)snprintf(json + at, cap - at, "}");
}

static void reading_what_was_normalised_changes_nothing(void **state)
{
    struct bench *b = *state;
    const uint32_t seed = 20261121;
    uint32_t x = seed;
    add_house(b);
    add_agent(b, "{'agentId':'planner','skills':[{'id':'plan'}]}");
    for (int round = 0; round < 200; round++) {
        static const char *const policies[] = {
            "",
            "'policy':{'onFailure':'continue','maxRetries':0},",
            "'policy':{'contextScope':'none','planTimeoutMs':99,'backoff':'fixed'},",
            "'policy':{'maxConcurrency':2,'contextBudgetBytes':7,'contextResultBytes':3},",
            "'policy':{'gate':{'agent':'exec','failClosed':true},'verifyWith':'sql',"
            "'fallbackAgents':['calc','sql'],'replan':{'agent':'files','maxTotal':1}},",
            "'policy':{'requiresApproval':true,'noRetry':['TIMEOUT'],'estimate':{'tokens':1},"
            "'maxFallbacks':0,'maxHandoffs':1,'handback':true,'signoff':true,'handoffTo':'*',"
            "'budget':{'costMicros':3},'searchAgent':'exec','replan':{'skill':'run'},"
            "'onVerificationFailure':'replan','critical':false,'idleTimeoutMs':1},",
            "'policy':{'synthesis':{'agentId':'planner','skill':'plan','maxRetries':3},"
            "'plannerTimeoutMs':0,'onInvalidPlan':'interrupt'},'description':'d','reasoning':'r',"
            "'successCriteria':['a','b'],'constraints':['c'],'estimatedTokens':1,"
            "'estimatedSteps':2,'estimatedTotalTime':'t',"};
        char json[9000];
        const bool chain = draw(&x, 3) == 0;
        const uint32_t policy = draw(&x, sizeof policies / sizeof policies[0]);
        (void)snprintf(json, sizeof json, "{%s'goal':'g','steps':[", policies[policy]);
        const uint32_t steps = 1 + draw(&x, 12);
        for (uint32_t i = 0; i < steps; i++) {
            put_random_step(json, sizeof json, &x, i, chain);
        }
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "]}");
        if (read_json(b, json) != BT_OK) {
            fail_msg("seed %u round %d: %s in %s", seed, round, b->err.msg, json);
        }
        if (b->problems.errors > 0) {
            fail_msg("seed %u round %d: %s", seed, round, problem_of(b, 0));
        }
        (void)read_back(b);
        const struct plan first = *b->plan;
        const struct doc once = doc_copy(&b->arena, doc_from_buf(&b->normalised));
        assert_int_equal(read_doc(b, once), BT_OK);
        if (b->normalised.len != once.len || memcmp(b->normalised.at, once.ptr, once.len) != 0) {
            fail_msg("seed %u round %d: %s became %s", seed, round, json_of(b, once),
                     json_of(b, doc_from_buf(&b->normalised)));
        }
        assert_int_equal(first.n_steps, b->plan->n_steps);
        assert_int_equal(first.chain, b->plan->chain);
        assert_int_equal(first.max_concurrency, b->plan->max_concurrency);
        assert_memory_equal(first.deps, b->plan->deps, first.n_edges * sizeof first.deps[0]);
        for (uint32_t i = 0; i < first.n_steps; i++) {
            assert_memory_equal(&first.steps[i].rules->policy, &b->plan->steps[i].rules->policy,
                                sizeof first.steps[i].rules->policy);
        }
        assert_int_equal(b->problems.total, 0); /* no normalisation is left to do */
        arena_reset(&b->arena);
        /* The cards were in the arena. */
        registry_init(b->registry,
                      &(struct registry_limits){
                          .agents = 64, .instances = 64, .lease_ms = 3000, .suspect_ms = 2000});
        add_house(b);
        add_agent(b, "{'agentId':'planner','skills':[{'id':'plan'}]}");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(parameters_are_checked_against_the_skills_schema),
        RULE(a_template_stands_for_a_value_of_any_type),
        RULE(a_bad_input_schema_is_the_agents_fault_and_only_a_warning),
        RULE(verify_has_to_be_a_schema),
        RULE(templates_in_parameters_are_checked_by_their_field),
        RULE(what_was_normalised_is_read_back_without_the_agents),
        RULE(reading_what_was_normalised_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
