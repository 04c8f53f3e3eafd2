/* What a plan says and the reader does not know: errors with a guess, except where leniency was
 * asked for; and words that no reading ignores. */
#include "fixture.h"

#include "supervisor/plan/fields_internal.h"

#define TASK "'task':'do something worth doing'"

static enum bt_code read_step(struct bench *b, const char *members)
{
    char json[8192];
    (void)snprintf(json, sizeof json,
                   "{'steps':[{'agentId':'one','task':'look at what there "
                   "is'},{'stepId':'load','agentId':'calc'," TASK ",%s}]}",
                   members);
    return read_json(b, json);
}

static const char *refused(struct bench *b, const char *members)
{
    assert_int_equal(read_step(b, members), BT_INVALID);
    return problem_of(b, 0);
}

static void strict_setup(struct bench *b)
{
    add_house(b);
    add_agent(b, "{'agentId':'one','skills':[{'id':'look'}]}");
}

/* ---- unknown fields ---- */

static void an_unknown_field_of_a_step_is_an_error_with_place_and_guess(void **state)
{
    struct bench *b = *state;
    strict_setup(b);
    assert_string_equal(refused(b, "'timout':5"),
                        "unknown_field load timout: unknown field `timout`; did you mean "
                        "`timeoutMs`?");
    assert_non_null(
        strstr(b->err.msg, "step 2 (load): unknown field `timout`; did you mean `timeoutMs`?"));
    assert_string_equal(refused(b, "'colour':'red'"),
                        "unknown_field load colour: unknown field `colour`");
    assert_string_equal(refused(b, "'retries':3"),
                        "unknown_field load retries: unknown field `retries`; did you mean "
                        "`maxRetries`?");
    assert_string_equal(refused(b, "'dependsOm':['x']"),
                        "unknown_field load dependsOm: unknown field `dependsOm`; did you mean "
                        "`dependsOn`?");
}

static void every_map_of_a_plan_is_as_strict(void **state)
{
    static const char *const plans[][2] = {
        {"{'gaol':'g','steps':[%s]}", "gaol"},
        {"{'policy':{'maxretry':1},'steps':[%s]}", "policy.maxretry"},
        {"{'policy':{'backoff':{'kin':'fixed'}},'steps':[%s]}", "policy.backoff.kin"},
        {"{'policy':{'budget':{'token':1}},'steps':[%s]}", "policy.budget.token"},
        {"{'policy':{'gate':{'agentID':'calc'}},'steps':[%s]}", "policy.gate.agentID"},
        {"{'policy':{'replan':{'agentId':'calc','maxtotal':1}},'steps':[%s]}",
         "policy.replan.maxtotal"},
        {"{'policy':{'synthesis':{'strategy':'concat','x':1}},'steps':[%s]}", "policy.synthesis.x"},
        {"{'phases':[{'step':[],'steps':[%s]}]}", "phases.step"},
    };
    struct bench *b = *state;
    strict_setup(b);
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char json[400];
        char *at = json;
        const char *mark = strstr(plans[i][0], "%s");
        at += snprintf(json, sizeof json, "%.*s", (int)(mark - plans[i][0]), plans[i][0]);
        (void)snprintf(at, sizeof json - (size_t)(at - json), "{'agentId':'calc'," TASK "}%s",
                       mark + 2);
        assert_int_equal(read_json(b, json), BT_INVALID);
        assert_string_equal(b->at[0].field, plans[i][1]);
        assert_int_equal(b->at[0].category, PROBLEM_UNKNOWN_FIELD);
    }
}

static void the_policy_of_the_request_is_as_strict(void **state)
{
    struct bench *b = *state;
    const struct plan_defaults defaults = plan_defaults_builtin();
    strict_setup(b);
    const struct plan_request request = {.plan =
                                             doc_of(b, "{'steps':[{'agentId':'calc'," TASK "}]}"),
                                         .policy = doc_of(b, "{'signof':true}"),
                                         .defaults = &defaults,
                                         .registry = b->registry};
    b->problems = (struct problems){.at = b->at, .cap = 100};
    assert_int_equal(
        plan_read_request(&request, &b->arena, &b->plan, &b->problems, &b->normalised, &b->err),
        BT_INVALID);
    assert_string_equal(problem_of(b, 0),
                        "unknown_field - policy.signof: unknown field `signof`; did you mean "
                        "`signoff`?");
}

static void a_policy_field_beside_the_policy_is_told_its_place(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'maxRetries':0,'steps':[{'agentId':'calc'," TASK "}]}"),
                     BT_INVALID);
    assert_string_equal(problem_of(b, 0),
                        "unknown_field - maxRetries: unknown field `maxRetries`; did you mean "
                        "`policy.maxRetries`?");
    b->lenient = true;
    assert_int_equal(read_json(b, "{'signoff':true,'steps':[{'agentId':'calc'," TASK "}]}"),
                     BT_INVALID);
}

static void null_and_schema_hide_nothing(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'$schema':'x','extra':null,'steps':[{'agentId':'calc'," TASK
                                  ",'if':null}]}"),
                     BT_OK);
    assert_int_equal(b->problems.total, 0);
}

/* ---- control flow ---- */

static void control_flow_that_does_not_exist_is_refused_by_name(void **state)
{
    static const char *const words[] = {"case",     "loop",   "while",   "until",
                                        "map",      "delay",  "each",    "parallel",
                                        "schedule", "waitMs", "onError", "unless"};
    struct bench *b = *state;
    strict_setup(b);
    for (uint32_t i = 0; i < 2 * sizeof words / sizeof words[0]; i++) {
        char member[64];
        char message[64];
        const char *word = words[i / 2];
        b->lenient = i % 2 == 1;
        (void)snprintf(member, sizeof member, "'%s':1", word);
        (void)snprintf(message, sizeof message,
                       "unsupported load %s: `%s` is not supported: ", word, word);
        const char *problem = refused(b, member);
        if (strncmp(problem, message, strlen(message)) != 0) {
            fail_msg("%s", problem);
        }
    }
    b->lenient = false;
    assert_int_equal(read_json(b, "{'schedule':'daily','steps':[{'agentId':'calc'," TASK "}]}"),
                     BT_INVALID);
    assert_int_equal(b->at[0].category, PROBLEM_UNSUPPORTED);
    assert_non_null(strstr(refused(b, "'when':'x > 3'"), "expected a condition such as"));
}

/* ---- leniency ---- */

static void leniency_makes_warnings_of_unknown_fields(void **state)
{
    struct bench *b = *state;
    add_house(b);
    b->lenient = true;
    assert_int_equal(read_json(b, "{'steps':[{'agentId':'calc'," TASK ",'colour':1,'taks':2}]}"),
                     BT_OK);
    assert_string_equal(problem_of(b, 0),
                        "unknown_field  colour: unknown field `colour` is ignored");
    assert_string_equal(problem_of(b, 1),
                        "unknown_field  taks: unknown field `taks` is ignored; did you mean "
                        "`task`?");
    assert_int_equal(b->problems.errors, 0);
}

static void leniency_ends_with_a_limit_of_unknown_fields(void **state)
{
    enum { MOST = FIELD_UNKNOWN_LENIENT_MAX };
    struct bench *b = *state;
    add_house(b);
    b->lenient = true;
    for (uint32_t n = MOST; n <= MOST + 1; n++) {
        struct buf json;
        buf_init(&json, 1 << 20);
        buf_add_cstr(&json, "{'steps':[{'agentId':'calc'," TASK);
        for (uint32_t i = 0; i < n; i++) {
            buf_printf(&json, ",'zz%u':1", i);
        }
        buf_add_cstr(&json, "}]}");
        assert_int_equal(read_json(b, buf_cstr(&json)), n == MOST ? BT_OK : BT_INVALID);
        assert_int_equal(b->problems.errors, n - MOST);
        for (uint32_t i = 0; i < b->problems.n; i++) {
            assert_int_equal(b->at[i].category == PROBLEM_LIMIT, !b->at[i].warning);
        }
        buf_done(&json);
    }
}

static void a_long_name_is_read_to_its_end(void **state)
{
    struct bench *b = *state;
    char member[300];
    strict_setup(b);
    b->lenient = true;
    for (uint32_t words = 7; words <= 30; words++) {
        size_t at = (size_t)snprintf(member, sizeof member, "'");
        for (uint32_t i = 0; i < words; i++) {
            at += (size_t)snprintf(member + at, sizeof member - at, "do_");
        }
        (void)snprintf(member + at, sizeof member - at, "Approval':1");
        if (strstr(refused(b, member), "unknown_field load ") == NULL) {
            fail_msg("%s: %s", member, problem_of(b, 0));
        }
    }
    for (uint32_t n = 256; n <= 257; n++) {
        (void)snprintf(member, sizeof member, "'%0*d':1", (int)n, 0);
        assert_int_equal(read_step(b, member), n == 256 ? BT_OK : BT_INVALID);
    }
}

static void what_people_rely_on_is_never_ignored(void **state)
{
    static const char *const words[] = {"requireApproval", "requires-approval-by",
                                        "approval",        "signOf",
                                        "sign-off",        "SIGNOFF_BY",
                                        "aproval",         "bugdet",
                                        "budgetTokens",    "verifyBy",
                                        "verfy",           "verifications",
                                        "gateBefore",      "gates",
                                        "side_effects",    "efects",
                                        "maxCost",         "costLimit",
                                        "time_out",        "timout",
                                        "limits",          "max_steps"};
    struct bench *b = *state;
    strict_setup(b);
    b->lenient = true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char member[64];
        (void)snprintf(member, sizeof member, "'%s':1", words[i]);
        if (strstr(refused(b, member), "unknown_field load ") == NULL) {
            fail_msg("%s: %s", words[i], problem_of(b, 0));
        }
    }
    (void)refused(b, "'gate':{'agentId':'calc','colour':1}");
    assert_string_equal(problem_of(b, 0), "unknown_field load gate.colour: unknown field `colour`");
    (void)refused(b, "'verify':{'tpye':'object'}");
}

static void two_values_for_what_people_rely_on_are_an_error(void **state)
{
    struct bench *b = *state;
    strict_setup(b);
    (void)refused(b, "'needsApproval':true,'requiresApproval':false");
    assert_string_equal(problem_of(b, 1),
                        "invalid_field load needsApproval: is the same field as "
                        "\"requiresApproval\" and has another value; give one of them");
    assert_int_equal(read_json(b, "{'steps':[{'agentId':'calc'," TASK
                                  ",'needsApproval':true,'requiresApproval':true}]}"),
                     BT_OK);
}

/* ---- other systems' words ---- */

static void the_words_of_the_seeds_are_read_in_silence(void **state)
{
    struct bench *b = *state;
    add_agent(b, "{'agentId':'g','skills':[{'id':'gate'},{'id':'plan'}]}");
    assert_int_equal(
        read_json(b, "{'mission':'m','success_criteria':'c','estimated_total_time':'5 min',"
                     "'policy':{'max_replan_attempts':2,'max_total_replans':4,"
                     "'replan_cooldown_ms':50,'quality_gate':true,'timeoutMs':9},"
                     "'tasks':[{'task_id':'a','agent':'g','tool':'plan',"
                     "'description':'do something worth doing','depends_on':[],'max_retries':1,"
                     "'on_failure':'replan','on_verification_failure':'replan','critical':true,"
                     "'status':'pending','verification':{'type':'object'}},"
                     "{'id':2,'action':'do something worth doing','tool':'gate','args':{},"
                     "'depends_on':['a']}]}"),
        BT_OK);
    if (b->problems.total > 0) {
        fail_msg("%s", problem_of(b, 0));
    }
    assert_int_equal(b->plan->replan.max_step, 2);
    assert_int_equal(b->plan->replan.max_total, 4);
    assert_int_equal(b->plan->replan.cooldown_ms, 50);
    assert_int_equal(b->plan->timeout_ms, 9);
    assert_true(str_is(b->plan->steps[0].step_id, "a"));
    assert_true(str_is(b->plan->steps[1].rules->gate_with, "g"));
    assert_non_null(b->plan->steps[0].rules->verify.ptr);
}

static void the_state_of_a_run_is_not_read(void **state)
{
    struct bench *b = *state;
    strict_setup(b);
    assert_non_null(strstr(refused(b, "'status':'completed'"), "leave it out"));
    b->lenient = true;
    assert_int_equal(read_json(b, "{'steps':[{'agentId':'calc'," TASK ",'status':'completed'}]}"),
                     BT_OK);
}

/* ---- tasks ---- */

static void a_step_needs_a_task_or_a_skill_with_its_parameters(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'steps':[{'skill':'report'}]}"), BT_INVALID);
    assert_string_equal(problem_of(b, 0),
                        "invalid_field step-1 task: is missing; say what the agent is to do, or "
                        "give the skill's parameters");
    assert_int_equal(read_json(b, "{'steps':[{'agentId':'calc','skill':'report'}]}"), BT_INVALID);
    assert_int_equal(read_json(b, "{'steps':[{'skill':'report','parameters':{}}]}"), BT_OK);
    assert_true(str_is(b->plan->steps[0].task, "Report"));
    assert_int_equal(read_json(b, "{'steps':[{'skill':'report','task':' '}]}"), BT_INVALID);
    assert_string_equal(problem_of(b, 0), "invalid_field step-1 task: is empty");
}

static void members_without_effect_are_errors(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'steps':[{'agentId':'calc'," TASK "}],'phases':[]}"),
                     BT_INVALID);
    assert_int_equal(
        read_json(b, "{'steps':[{'agentId':'calc'," TASK "}],'plan':{'policy':{'signoff':true}}}"),
        BT_INVALID);
    assert_int_equal(read_json(b, "{'steps':[{'agentId':'calc'," TASK "}],'stepId':'x'}"),
                     BT_INVALID);
}

/* ---- parameters ---- */

static void add_open(struct bench *b, const char *more)
{
    char card[600];
    (void)snprintf(card, sizeof card,
                   "{'agentId':'p','skills':[{'id':'s','inputSchema':{'type':'object',"
                   "'properties':{'limit':{'type':'integer'},'rows':{'type':'array','items':{"
                   "'type':'object','properties':{'name':{}}}}}%s}}]}",
                   more);
    add_agent(b, card);
}

static enum bt_code with_parameters(struct bench *b, const char *parameters)
{
    char json[300];
    (void)snprintf(json, sizeof json,
                   "{'steps':[{'stepId':'load','agentId':'p'," TASK ",'parameters':%s}]}",
                   parameters);
    return read_json(b, json);
}

static void an_unknown_parameter_is_an_error_with_a_guess(void **state)
{
    struct bench *b = *state;
    add_open(b, "");
    assert_int_equal(with_parameters(b, "{'limt':3}"), BT_INVALID);
    assert_string_equal(problem_of(b, 0),
                        "unknown_field load parameters.limt: unknown parameter `limt`; did you "
                        "mean `limit`?");
    assert_non_null(strstr(b->err.msg, "step 1 (load): parameters: unknown parameter `limt`"));
    assert_int_equal(with_parameters(b, "{'rows':[{'name':1},{'nmae':1}]}"), BT_INVALID);
    assert_string_equal(b->at[0].field, "parameters.rows.1.nmae");
    assert_int_equal(with_parameters(b, "{'limit':3,'rows':[{'name':{'any':1}}]}"), BT_OK);
    assert_int_equal(with_parameters(b, "{'rows':'{{results.x}}'}"), BT_INVALID); /* no step x */
    b->lenient = true;
    assert_int_equal(with_parameters(b, "{'colour':3}"), BT_OK);
    assert_int_equal(b->problems.total, 1);
}

static void a_schema_that_may_permit_others_is_open(void **state)
{
    static const char *const more[] = {
        ",'additionalProperties':true", ",'additionalProperties':{'type':'integer'}",
        ",'patternProperties':{'^x':{}}", ",'anyOf':[{}]", ",'dependencies':{'limit':{}}"};
    struct bench *b = *state;
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        add_open(b, more[i]);
        if (with_parameters(b, "{'xtra':3}") != BT_OK) {
            fail_msg("%s: %s", more[i], problem_of(b, 0));
        }
    }
}

/* ---- who may be used ---- */

static void policy_agents_permits_by_globs(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(
        read_json(b, "{'policy':{'agents':['fil*','c?lc']},'steps':[{'agentId':'calc'," TASK
                     "},{'agentId':'files'," TASK "}]}"),
        BT_OK);
    (void)read_back(b);
    assert_int_equal(
        read_json(b, "{'policy':{'agents':'files'},'steps':[{'agentId':'calc'," TASK "}]}"),
        BT_INVALID);
    assert_string_equal(problem_of(b, 0),
                        "missing_agent step-1 agentId: agent \"calc\" is not one of those that "
                        "policy.agents permits");
    assert_int_equal(read_json(b, "{'policy':{'agents':[]},'steps':[{'agentId':'calc'," TASK "}]}"),
                     BT_INVALID);
    assert_int_equal(
        read_json(b, "{'policy':{'agents':[7]},'steps':[{'agentId':'calc'," TASK "}]}"),
        BT_INVALID);
}

static void policy_agents_holds_for_every_way_to_an_agent(void **state)
{
    static const char *const others[] = {
        "'gate':'sql'",           "'verifyWith':'sql'",  "'fallbackAgents':['sql']",
        "'searchAgent':'sql'",    "'handoffTo':['sql']", "'replan':'sql'",
        "'synthesis':'agent:sql'"};
    struct bench *b = *state;
    add_house(b);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char json[300];
        (void)snprintf(json, sizeof json,
                       "{'policy':{'agents':['calc'],%s},'steps':[{'agentId':'calc'," TASK "}]}",
                       others[i]);
        assert_int_equal(read_json(b, json), BT_INVALID);
        assert_non_null(strstr(problem_of(b, 0), "\"sql\" is not one of those"));
    }
}

static void policy_agents_holds_where_an_agent_is_chosen(void **state)
{
    struct bench *b = *state;
    add_agent(b, "{'agentId':'a','skills':[{'id':'do'},{'id':'search'},{'id':'plan'}]}");
    add_agent(b, "{'agentId':'b','skills':[{'id':'do'}]}");
    add_agent(b, "{'agentId':'c','skills':[{'id':'do'}]}");
    assert_int_equal(
        read_json(b,
                  "{'policy':{'agents':['b'],'handoffTo':'*'},'steps':[{'skill':'do'," TASK "}]}"),
        BT_OK);
    assert_true(str_is(b->plan->steps[0].agent_id, "b"));
    assert_int_equal(b->plan->steps[0].alternatives_n, 0);
    assert_int_equal(b->plan->agents.n, 1);
    assert_int_equal(b->plan->search_with.len, 0);
    assert_int_equal(read_json(b, "{'policy':{'agents':['z*']},'steps':[{'skill':'do'," TASK "}]}"),
                     BT_INVALID);
}

/* ---- signatures ---- */

static void a_signature_is_verified_as_a_schema(void **state)
{
    static const char *const texts[][2] = {
        {":string", "{'type':'string'}"},
        {"(x :int) -> :float", "{'type':'number'}"},
        {"[:any]", "{'type':'array','items':true}"},
        {"{price :float, note :string?}",
         "{'type':'object','properties':{'price':{'type':'number'},'note':{'anyOf':[{'type':'null'"
         "},{'type':'string'}]}},'required':['price']}"},
        {"{rows [{id :int ok :bool}]}",
         "{'type':'object','properties':{'rows':{'type':'array','items':{'type':'object',"
         "'properties':{'id':{'type':'integer'},'ok':{'type':'boolean'}},'required':['id','ok']}}}"
         ",'required':['rows']}"},
    };
    struct bench *b = *state;
    strict_setup(b);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char member[300];
        (void)snprintf(member, sizeof member, "'signature':'%s'", texts[i][0]);
        assert_int_equal(read_step(b, member), BT_OK);
        assert_string_equal(json_of(b, b->plan->steps[1].rules->verify), texts[i][1]);
        (void)read_back(b);
    }
    assert_int_equal(read_step(b, "'signature':':int','verify':{'minimum':3}"), BT_OK);
    assert_string_equal(json_of(b, b->plan->steps[1].rules->verify),
                        "{'allOf':[{'minimum':3},{'type':'integer'}]}");
}

static void a_signature_that_means_nothing_is_an_error(void **state)
{
    static const char *const texts[] = {
        "",      "x",          ":flot",  "{a", "{a :int",
        "[:int", "{a :int} b", "{:int}", "7",  "[[[[[[[[[[[[[[:int]]]]]]]]]]]]]]"};
    struct bench *b = *state;
    strict_setup(b);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char member[300];
        (void)snprintf(member, sizeof member, "'signature':'%s'", texts[i]);
        if (strstr(refused(b, member), "invalid_field load signature: ") == NULL) {
            fail_msg("%s: %s", texts[i], problem_of(b, 0));
        }
    }
}

/* The signature of n members, or of depth lists. */
static bool takes_signature(struct bench *b, uint32_t n, uint32_t depth)
{
    struct buf text;
    bool ok;
    buf_init(&text, 65536);
    buf_add_cstr(&text, "'signature':'");
    for (uint32_t i = 1; i < depth; i++) {
        buf_add_byte(&text, '[');
    }
    buf_add_cstr(&text, n > 0 ? "{" : ":int");
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&text, " m%u :int", i);
    }
    buf_add_cstr(&text, n > 0 ? "}" : "");
    for (uint32_t i = 1; i < depth; i++) {
        buf_add_byte(&text, ']');
    }
    buf_add_cstr(&text, "'");
    ok = read_step(b, buf_cstr(&text)) == BT_OK;
    buf_done(&text);
    return ok;
}

static void a_signature_has_so_many_members_and_levels(void **state)
{
    struct bench *b = *state;
    strict_setup(b);
    assert_true(takes_signature(b, 256, 1));
    assert_false(takes_signature(b, 257, 1));
    assert_non_null(strstr(problem_of(b, 0), "more than 256 members"));
    assert_true(takes_signature(b, 0, 12));
    assert_false(takes_signature(b, 0, 13));
    assert_non_null(strstr(problem_of(b, 0), "more than 12 levels"));
}

/* ---- verify ---- */

static void an_unknown_keyword_of_verify_is_an_error(void **state)
{
    struct bench *b = *state;
    strict_setup(b);
    assert_string_equal(
        refused(b, "'verify':{'type':'object','properties':{'a':{'minimun':1}}}"),
        "invalid_field load verify: is no JSON Schema: #/properties/a/minimun: is no keyword of "
        "JSON Schema; did you mean `minimum`?");
    assert_int_equal(
        read_json(b, "{'steps':[{'agentId':'calc'," TASK
                     ",'verify':{'$schema':'x','title':'t','description':'d','x-y':1}}]}"),
        BT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(an_unknown_field_of_a_step_is_an_error_with_place_and_guess),
        RULE(every_map_of_a_plan_is_as_strict),
        RULE(the_policy_of_the_request_is_as_strict),
        RULE(a_policy_field_beside_the_policy_is_told_its_place),
        RULE(null_and_schema_hide_nothing),
        RULE(control_flow_that_does_not_exist_is_refused_by_name),
        RULE(leniency_makes_warnings_of_unknown_fields),
        RULE(leniency_ends_with_a_limit_of_unknown_fields),
        RULE(a_long_name_is_read_to_its_end),
        RULE(what_people_rely_on_is_never_ignored),
        RULE(two_values_for_what_people_rely_on_are_an_error),
        RULE(the_words_of_the_seeds_are_read_in_silence),
        RULE(the_state_of_a_run_is_not_read),
        RULE(a_step_needs_a_task_or_a_skill_with_its_parameters),
        RULE(members_without_effect_are_errors),
        RULE(an_unknown_parameter_is_an_error_with_a_guess),
        RULE(a_schema_that_may_permit_others_is_open),
        RULE(policy_agents_permits_by_globs),
        RULE(policy_agents_holds_for_every_way_to_an_agent),
        RULE(policy_agents_holds_where_an_agent_is_chosen),
        RULE(a_signature_is_verified_as_a_schema),
        RULE(a_signature_that_means_nothing_is_an_error),
        RULE(a_signature_has_so_many_members_and_levels),
        RULE(an_unknown_keyword_of_verify_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
