/* What is made of an answer: its class, its price, which of two counts, what a person gave. */
#include <stdio.h>
#include <string.h>

#include "supervisor/dispatch/classify.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ONE(more) "'plan':{'goal':'g','steps':[" STEP("a", more) "]},'policy':{'maxRetries':0}"

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

/* ---- the class of a failure ---- */

static void each_code_of_the_protocol_has_its_class(void **state)
{
    static const struct {
        const char *code;
        enum err_class cls;
    } all[] = {
        {"INVALID", CLASS_VALIDATION_ERROR},
        {"UNAUTHORIZED", CLASS_PERMISSION_DENIED},
        {"NOT_FOUND", CLASS_RESOURCE_NOT_FOUND},
        {"CONFLICT", CLASS_VALIDATION_ERROR},
        {"LIMIT", CLASS_VALIDATION_ERROR},
        {"BUSY", CLASS_SERVICE_UNAVAILABLE},
        {"TIMEOUT", CLASS_TIMEOUT},
        {"UNAVAILABLE", CLASS_SERVICE_UNAVAILABLE},
        {"GONE", CLASS_RESOURCE_NOT_FOUND},
        {"CANCELLED", CLASS_CANCELLED},
        {"PROTOCOL", CLASS_PROTOCOL_ERROR},
        {"NOMEM", CLASS_SERVICE_UNAVAILABLE},
        {"ETIMEDOUT", CLASS_TIMEOUT},
        {"ECONNREFUSED", CLASS_SERVICE_UNAVAILABLE},
        {"ENOENT", CLASS_RESOURCE_NOT_FOUND},
        {"EACCES", CLASS_PERMISSION_DENIED},
        {"EPERM", CLASS_PERMISSION_DENIED},
        {"INTERNAL", CLASS_UNKNOWN},
        {"TOOL_NOT_FOUND", CLASS_TOOL_NOT_FOUND},
        {"RATE_LIMITED", CLASS_RATE_LIMITED},
        {"VALIDATION_ERROR", CLASS_VALIDATION_ERROR},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const enum err_class cls = classify_error(str_from(all[i].code), str_from("no luck"));
        if (cls != all[i].cls) {
            fail_msg("%s is %s", all[i].code, err_class_name(cls));
        }
    }
}

/* Some put the name of a class where the code belongs; it counts whatever the message says. */
static void the_name_of_a_class_as_the_code_is_that_class(void **state)
{
    (void)state;
    for (int i = CLASS_NONE + 1; i < CLASS_COUNT; i++) {
        const enum err_class cls = (enum err_class)i;
        if (cls != CLASS_UNKNOWN && err_class_name(cls)[0] != 0) {
            assert_int_equal(classify_error(str_from(err_class_name(cls)), STR_LIT("not found")),
                             cls);
        }
    }
    assert_int_equal(classify_error(STR_LIT("PROTOCOL_ERRORS"), STR_LIT("not found")),
                     CLASS_RESOURCE_NOT_FOUND);
}

/* A number within a message is a status behind a word that announces one, or before those that go
 * with it; otherwise it counts something. */
static void a_number_is_a_status_by_the_words_around_it(void **state)
{
    static const char *const before[] = {"http", "https",    "status",   "code", "error",
                                         "with", "response", "returned", "got",  "answered"};
    static const char *const after[] = {"not",     "forbidden", "unauthorized", "too",
                                        "service", "bad",       "gone",         "request",
                                        "gateway", "error",     "unprocessable"};
    static const char *const counted[] = {"rows", "items", "files", "bytes", "records", "ms"};
    char text[96];

    (void)state;
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        (void)snprintf(text, sizeof text, "it %s 429 here", before[i]);
        assert_int_equal(classify_error(str_from(""), str_from(text)), CLASS_RATE_LIMITED);
    }
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) {
        (void)snprintf(text, sizeof text, "it was 408 %s here", after[i]);
        assert_int_equal(classify_error(str_from(""), str_from(text)), CLASS_TIMEOUT);
    }
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        (void)snprintf(text, sizeof text, "429 %s", counted[i]);
        assert_int_equal(classify_error(str_from(""), str_from(text)), CLASS_UNKNOWN);
        (void)snprintf(text, sizeof text, "429 %sx", counted[i]);
        assert_int_equal(classify_error(str_from(""), str_from(text)), CLASS_RATE_LIMITED);
    }
    assert_int_equal(classify_error(str_from(""), str_from("it was 408 here")), CLASS_UNKNOWN);
    assert_int_equal(classify_error(str_from(""), str_from("429")), CLASS_RATE_LIMITED);
    assert_int_equal(classify_error(str_from(""), str_from("so it was 429")), CLASS_RATE_LIMITED);
    assert_int_equal(classify_error(str_from(""), str_from("then http/1.1 503 came back")),
                     CLASS_SERVICE_UNAVAILABLE);
    assert_int_equal(classify_error(str_from(""), str_from("row 1.1 503 came back")),
                     CLASS_UNKNOWN);
    assert_int_equal(
        classify_error(str_from(""), str_from("http 1 111111111111111111111111 503 came back")),
        CLASS_UNKNOWN);
}

static void words_of_a_message_give_its_class(void **state)
{
    static const struct {
        const char *text;
        enum err_class cls;
    } all[] = {
        {"tools not found", CLASS_TOOL_NOT_FOUND},
        {"the tool was found", CLASS_UNKNOWN},
        {"found not", CLASS_UNKNOWN},
        {"not yet found", CLASS_UNKNOWN},
        {"no permissions", CLASS_PERMISSION_DENIED},
        {"that is forbidden", CLASS_PERMISSION_DENIED},
        {"unauthorized", CLASS_PERMISSION_DENIED},
        {"ratelimit", CLASS_RATE_LIMITED},
        {"we were throttled", CLASS_RATE_LIMITED},
        {"too many of them", CLASS_RATE_LIMITED},
        {"too much, many", CLASS_UNKNOWN},
        {"it timed out", CLASS_TIMEOUT},
        {"out timed", CLASS_UNKNOWN},
        {"PERMISSION", CLASS_PERMISSION_DENIED},
        {"Zeitüberschreitung timeout", CLASS_TIMEOUT},
        {"timeoutüber", CLASS_UNKNOWN},
        /* words of 23 bytes are whole; what is longer is not taken for its beginning */
        {"unavailableunavailableu", CLASS_UNKNOWN},
        {"timeout timeouttimeouttimeouttimeout", CLASS_TIMEOUT},
        {"invalid permission", CLASS_PERMISSION_DENIED},
        {"timeout: unavailable", CLASS_SERVICE_UNAVAILABLE},
        {"timeout: invalid", CLASS_VALIDATION_ERROR},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const enum err_class cls = classify_error(str_from(""), str_from(all[i].text));
        if (cls != all[i].cls) {
            fail_msg("'%s' is %s", all[i].text, err_class_name(cls));
        }
    }
}

/* The class that the agent gives counts; a code of its own is looked at before the message. */
static void the_agents_own_class_counts_before_code_and_message(void **state)
{
    static const char *const all[][2] = {
        {"'class':'RATE_LIMITED','code':'TIMEOUT','message':'not found'", "RATE_LIMITED"},
        {"'code':'TIMEOUT','message':'not found'", "TIMEOUT"},
        {"'class':'','code':'TIMEOUT','message':'not found'", "TIMEOUT"},
        {"'code':'E1','message':'page not found'", "RESOURCE_NOT_FOUND"},
        {"'code':'quota_429','message':'page not found'", "RATE_LIMITED"},
    };
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *id = house_submit(h, ONE(""));
        house_answer(h, "calc", NULL, "'outcome':'failed','failure':{%s,'retryable':false}",
                     all[i][0]);
        house_says(h, view(h, id), house_text(h, "steps.0.errorClass=%s", all[i][1]));
    }
    house_close(h);
}

/* ---- prices ---- */

static const char *cost(struct house *h, const char *agent, const char *usage)
{
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'%s','skill':'do','task':'t'}]}",
        agent);

    house_done(h, agent, "'result':{'text':'x'},'usage':{%s}", usage);
    const char *micros = house_get(h, view(h, id), "usage.costMicros");
    return micros != NULL ? micros : "0";
}

static void tokens_cost_what_the_configuration_says_of_the_agent(void **state)
{
    static const struct token_price any_first[] = {{"*", 1, 2, 0.5}, {"calc", 10, 20, 5}};
    static const struct token_price any_last[] = {{"calc", 10, 20, 5}, {"*", 1, 2, 0.5}};
    static const struct token_price two_any[] = {{"*", 1, 2, 0.5}, {"*", 100, 200, 50}};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct engine_options opt = house_options();
        struct house *h;
        opt.prices = i == 0 ? any_first : i == 1 ? any_last : two_any;
        opt.n_prices = 2;
        h = house_open_with(&opt);
        house_join(h, "calc", 1);
        house_join(h, "other", 1);
        assert_string_equal(cost(h, "calc", "'inputTokens':3,'outputTokens':4"),
                            i < 2 ? "110" : "11");
        assert_string_equal(cost(h, "other", "'inputTokens':3,'outputTokens':4"), "11");
        house_close(h);
    }
}

static void what_an_agent_says_of_its_cost_counts_and_nothing_costs_nothing(void **state)
{
    static const struct token_price prices[] = {{"calc", 10, 20, 5}};
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.prices = prices;
    opt.n_prices = 1;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    house_join(h, "other", 1);
    assert_string_equal(cost(h, "calc", "'inputTokens':3,'costMicros':7"), "7");
    assert_string_equal(cost(h, "calc", "'inputTokens':3,'costMicros':0"), "0");
    assert_string_equal(cost(h, "other", "'inputTokens':3"), "0");
    /* Cached tokens are some of the input, and not more than it. */
    assert_string_equal(cost(h, "calc", "'inputTokens':3,'cachedTokens':1"), "25");
    assert_string_equal(cost(h, "calc", "'inputTokens':3,'cachedTokens':3"), "15");
    assert_string_equal(cost(h, "calc", "'inputTokens':3,'cachedTokens':4"), "15");
    house_close(h);
}

static void a_part_of_a_millionth_costs_a_whole_one(void **state)
{
    static const struct token_price prices[] = {{"calc", 0.25, 1, 0}};
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.prices = prices;
    opt.n_prices = 1;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    assert_string_equal(cost(h, "calc", "'inputTokens':1"), "1");
    assert_string_equal(cost(h, "calc", "'inputTokens':4"), "1");
    assert_string_equal(cost(h, "calc", "'inputTokens':5"), "2");
    house_close(h);
}

/* ---- which answer counts ---- */

static struct {
    struct house *h;
    bool result; /* the control lane tells it */
    bool other;  /* of another key */
    uint32_t asked;
} control;

static const char *tell(struct house_agent *agent, const char *request)
{
    struct house *h = control.h;
    const char *key;

    if (strstr(request, "step.cancel") == NULL && strstr(request, "step.query") == NULL) {
        return NULL;
    }
    control.asked++;
    key = control.other ? "another/1/a" : house_get(h, request, "key");
    return house_text(h,
                      "{'v':1,'id':'%s','ok':true,'type':'step.state','key':'%s','state':'%s'%s}",
                      house_get(h, request, "id"), key, control.result ? "done" : "running",
                      control.result ? house_text(h,
                                                  ",'result':{'key':'%s','attempt':1,'epoch':%llu,"
                                                  "'outcome':'completed','result':{'text':'by "
                                                  "control'},'usage':{'inputTokens':5}}",
                                                  key, (unsigned long long)agent->epoch)
                                     : "");
}

static void a_result_comes_over_its_lane_while_that_is_open(void **state)
{
    const char *id;
    struct house *h = house_open();

    (void)state;
    memset(&control, 0, sizeof control);
    control.h = h;
    control.result = true;
    house_join(h, "calc", 1)->tells = tell;
    id = house_submit(h, ONE(""));
    (void)house_work(h, "calc", NULL);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_cycle(h);
    assert_true(control.asked > 0);
    house_says(h, view(h, id), "status=running; cancelling=true; usage.inputTokens=-");
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'CANCELLED','class':'CANCELLED','message':"
                 "'stopped','retryable':false},'usage':{'inputTokens':5}");
    house_says(h, view(h, id), "status=cancelled; usage.inputTokens=5");
    house_close(h);
}

static void a_result_of_another_key_does_not_count(void **state)
{
    const char *id;
    struct house *h = house_open();

    (void)state;
    memset(&control, 0, sizeof control);
    control.h = h;
    control.result = control.other = true;
    house_join(h, "calc", 1)->tells = tell;
    id = house_submit(h, ONE(""));
    (void)house_work(h, "calc", NULL);
    house_hang_up(h, "calc", true);
    house_wait(h, 2000);
    assert_true(control.asked > 0);
    house_says(h, view(h, id), "usage.inputTokens=-; steps.0.result=-");
    house_close(h);
}

/* ---- pings of a breaker ---- */

static const char *pong; /* the body of the answer */
static uint32_t pings;

static const char *ponged(struct house_agent *agent, const char *request)
{
    (void)agent;
    if (strstr(request, "agent.ping") == NULL) {
        return NULL;
    }
    pings++;
    return pong;
}

static void
a_ping_that_is_answered_closes_the_breaker_and_one_that_is_refused_does_not(void **state)
{
    static const struct {
        const char *pong, *breaker;
    } all[] = {
        {"{\"v\":1,\"id\":\"control\",\"ok\":true,\"type\":\"ok\"}", "closed"},
        /* an agent that does not know it answers, too */
        {"{\"v\":1,\"id\":\"control\",\"ok\":false,\"type\":\"error\",\"error\":{\"code\":"
         "\"INVALID\",\"message\":\"no\",\"retryable\":false}}",
         "closed"},
        {"{\"v\":1,\"id\":\"control\",\"ok\":false,\"type\":\"error\",\"error\":{\"code\":"
         "\"NOT_FOUND\",\"message\":\"no\",\"retryable\":false}}",
         "closed"},
        {"{\"v\":1,\"id\":\"control\",\"ok\":false,\"type\":\"error\",\"error\":{\"code\":"
         "\"BUSY\",\"message\":\"no\",\"retryable\":true}}",
         "open"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct engine_options opt = house_options();
        struct house *h;
        opt.breaker_failures = 2;
        opt.breaker_cooldown_ms = 5000;
        opt.breaker_cooldown_max_ms = 5000;
        h = house_open_with(&opt);
        pong = all[i].pong;
        pings = 0;
        house_join(h, "calc", 1)->tells = ponged;
        for (int k = 0; k < 2; k++) {
            (void)house_submit(h, ONE(""));
            house_failed(h, "calc", "SERVICE_UNAVAILABLE", false);
        }
        house_wait(h, 4999);
        assert_int_equal(pings, 0);
        house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "breaker.state=open");
        house_wait(h, 1);
        assert_int_equal(pings, 1);
        (void)house_submit(h, ONE(""));
        /* it gets work again, or none */
        assert_int_equal(house_work(h, "calc", NULL) != NULL,
                         strcmp(all[i].breaker, "closed") == 0);
        house_close(h);
    }
}

/* ---- what a person gives ---- */

static const char *needs(struct house *h, const char *parameters)
{
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", ",'parameters':%s") "]}", parameters);

    house_answer(h, "calc", NULL,
                 "'outcome':'needs_input','need':{'kind':'input','prompt':'which?'}");
    return id;
}

static void gives(struct house *h, const char *id, const char *edit)
{
    (void)house_ok(
        h, "review.decide", "'reviewId':'%s','decision':'approve','edit':%s",
        house_get(h, house_ok(h, "review.list", "'planId':'%s'", id), "reviews.0.reviewId"), edit);
}

static void what_was_asked_for_is_put_beside_the_parameters_or_in_their_place(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    gives(h, needs(h, "{'a':1,'b':2}"), "{'b':3,'c':4}");
    house_says(h, house_work(h, "calc", NULL),
               "parameters.a=1; parameters.b=3; parameters.c=4; parameters.input=-");
    house_done(h, "calc", "'result':{'text':'x'}");
    gives(h, needs(h, "{'a':1}"), "[5]");
    house_says(h, house_work(h, "calc", NULL), "parameters.a=1; parameters.input=[5]");
    house_done(h, "calc", "'result':{'text':'x'}");
    gives(h, needs(h, "{'input':1}"), "'text'");
    house_says(h, house_work(h, "calc", NULL), "parameters.input=text");
    house_done(h, "calc", "'result':{'text':'x'}");
    house_close(h);
}

static void what_was_given_before_stays_when_more_is_asked_for(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = needs(h, "{'a':1}");
    gives(h, id, "{'b':2}");
    house_answer(h, "calc", NULL, "'outcome':'needs_input','need':{'kind':'input','prompt':'?'}");
    gives(h, id, "{'c':3}");
    house_says(h, house_work(h, "calc", NULL), "parameters.a=1; parameters.b=2; parameters.c=3");
    house_close(h);
}

/* It is data: words that look like a template are none. */
static void what_was_given_is_no_template(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    gives(h, needs(h, "{'a':1}"), "{'b':'{{results.x}}'}");
    house_says(h, house_work(h, "calc", NULL), "parameters.b={{results.x}}");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_of_the_protocol_has_its_class),
        cmocka_unit_test(the_name_of_a_class_as_the_code_is_that_class),
        cmocka_unit_test(a_number_is_a_status_by_the_words_around_it),
        cmocka_unit_test(words_of_a_message_give_its_class),
        cmocka_unit_test(the_agents_own_class_counts_before_code_and_message),
        cmocka_unit_test(tokens_cost_what_the_configuration_says_of_the_agent),
        cmocka_unit_test(what_an_agent_says_of_its_cost_counts_and_nothing_costs_nothing),
        cmocka_unit_test(a_part_of_a_millionth_costs_a_whole_one),
        cmocka_unit_test(a_result_comes_over_its_lane_while_that_is_open),
        cmocka_unit_test(a_result_of_another_key_does_not_count),
        cmocka_unit_test(
            a_ping_that_is_answered_closes_the_breaker_and_one_that_is_refused_does_not),
        cmocka_unit_test(what_was_asked_for_is_put_beside_the_parameters_or_in_their_place),
        cmocka_unit_test(what_was_given_before_stays_when_more_is_asked_for),
        cmocka_unit_test(what_was_given_is_no_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
