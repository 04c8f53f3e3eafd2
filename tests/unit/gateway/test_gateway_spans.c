/* From events to spans: what each event begins and ends, whose child it is, and what it says. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/trace.h"
#include "supervisor/gateway/telemetry/spans.h"
#include "tests/support/cmocka.h"

#define PLAN "0190F3C2-7A1B-7C3D-9E4F-0123456789ab"
#define TRACE "0190f3c27a1b7c3d9e4f0123456789ab"
#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

enum { LINE_BYTES = 1024, OUT_BYTES = 1 << 20 };

static struct spans *spans;
static struct buf out;

static int begin(void **state)
{
    (void)state;
    spans = spans_new();
    buf_init(&out, OUT_BYTES);
    return spans == NULL ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    spans_free(spans);
    buf_done(&out);
    return 0;
}

/* fields: the rest of a JSON object, with ' for ". Returns how many spans ended. */
static uint32_t event_of(const char *plan, const char *type, uint64_t ms, const char *fields)
{
    char json[LINE_BYTES];
    struct buf doc;
    uint32_t n;

    (void)snprintf(json, sizeof json, "{'planId':'%s','type':'%s','tsMs':%llu%s%s}", plan, type,
                   (unsigned long long)ms, fields[0] != 0 ? "," : "", fields);
    for (char *c = json; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    buf_init(&doc, 8 * LINE_BYTES);
    assert_int_equal(json_to_doc(str_from(json), NULL, &doc, NULL), BT_OK);
    n = spans_event(spans, doc_from_buf(&doc), &out);
    buf_done(&doc);
    return n;
}

static uint32_t event(const char *type, uint64_t ms, const char *fields)
{
    return event_of(PLAN, type, ms, fields);
}

/* ---- what was written, a line for each span ---- */

static const char *member(const struct cJSON *o, const char *name)
{
    const struct cJSON *m = cJSON_GetObjectItemCaseSensitive(o, name);

    return cJSON_IsString(m) ? m->valuestring : "";
}

static struct cJSON *read_spans(void)
{
    struct buf whole;
    struct cJSON *list;

    buf_init(&whole, OUT_BYTES + 16);
    buf_add_byte(&whole, '[');
    buf_add(&whole, out.at, out.len);
    buf_add_byte(&whole, ']');
    list = cJSON_Parse(buf_cstr(&whole));
    assert_non_null(list);
    buf_done(&whole);
    return list;
}

static void add(char line[LINE_BYTES], const char *before, const char *text)
{
    const size_t n = strlen(line);

    (void)snprintf(line + n, LINE_BYTES - n, "%s%s", before, text);
}

/* The value of an attribute; NULL: it has none. */
static const char *attribute(const struct cJSON *span, const char *name)
{
    const struct cJSON *a;

    cJSON_ArrayForEach(a, cJSON_GetObjectItemCaseSensitive(span, "attributes"))
    {
        const struct cJSON *value = cJSON_GetObjectItemCaseSensitive(a, "value");
        const struct cJSON *count = cJSON_GetObjectItemCaseSensitive(value, "intValue");
        static char digits[32];
        if (strcmp(member(a, "key"), name) != 0) {
            continue;
        }
        if (count == NULL) {
            return member(value, "stringValue");
        }
        (void)snprintf(digits, sizeof digits, "%.0f", count->valuedouble);
        return digits;
    }
    return NULL;
}

/* The name of the span of this id, with the number of an attempt; the id, when there is none. */
static void add_span(char line[LINE_BYTES], const char *before, const struct cJSON *list,
                     const char *id)
{
    const struct cJSON *s;

    if (id[0] == 0) {
        return;
    }
    cJSON_ArrayForEach(s, list)
    {
        if (strcmp(member(s, "spanId"), id) == 0) {
            const char *attempt = attribute(s, "baton.attempt");
            add(line, before, member(s, "name"));
            if (attempt != NULL) {
                add(line, "#", attempt);
            }
            return;
        }
    }
    add(line, before, id);
}

static void add_ms(char line[LINE_BYTES], const char *before, const char *ns)
{
    char ms[32];
    const size_t n = strlen(ns);

    assert_true(n > 6 && strcmp(ns + n - 6, "000000") == 0);
    (void)snprintf(ms, sizeof ms, "%.*s", (int)n - 6, ns);
    add(line, before, ms);
}

/* "NAME kKIND BEGIN-END ok|failed: WHY <PARENT ~LINK |key=value|..." */
static void line_of(const struct cJSON *list, const struct cJSON *s, char line[LINE_BYTES])
{
    const struct cJSON *status = cJSON_GetObjectItemCaseSensitive(s, "status");
    const struct cJSON *a;
    const double code = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(status, "code"));
    char kind[8];

    line[0] = 0;
    (void)snprintf(kind, sizeof kind, "%.0f",
                   cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(s, "kind")));
    add(line, "", member(s, "name"));
    add(line, " k", kind);
    add_ms(line, " ", member(s, "startTimeUnixNano"));
    add_ms(line, "-", member(s, "endTimeUnixNano"));
    add(line, " ", code == 1 ? "ok" : code == 2 ? "failed" : "?");
    add(line, cJSON_HasObjectItem(status, "message") ? ": " : "", member(status, "message"));
    add_span(line, " <", list, member(s, "parentSpanId"));
    cJSON_ArrayForEach(a, cJSON_GetObjectItemCaseSensitive(s, "links"))
    {
        assert_string_equal(member(a, "traceId"), member(s, "traceId"));
        add_span(line, " ~", list, member(a, "spanId"));
    }
    cJSON_ArrayForEach(a, cJSON_GetObjectItemCaseSensitive(s, "attributes"))
    {
        add(line, "|", member(a, "key"));
        add(line, "=", attribute(s, member(a, "key")));
    }
}

static void expect(const char *const *lines, size_t n)
{
    struct cJSON *list = read_spans();
    char line[LINE_BYTES];

    for (size_t i = 0; i < n; i++) {
        const struct cJSON *s = cJSON_GetArrayItem(list, (int)i);
        assert_non_null(s);
        line_of(list, s, line);
        assert_string_equal(line, lines[i]);
    }
    assert_int_equal(cJSON_GetArraySize(list), n);
    cJSON_Delete(list);
}
#define EXPECT(...)                                                                                \
    do {                                                                                           \
        static const char *const lines_[] = {__VA_ARGS__};                                         \
        expect(lines_, sizeof lines_ / sizeof lines_[0]);                                          \
    } while (0)

#define P "|baton.plan.id=" PLAN

/* Of the nth span. */
static void expect_member(int nth, const char *name, const char *value)
{
    struct cJSON *list = read_spans();

    assert_string_equal(member(cJSON_GetArrayItem(list, nth), name), value);
    cJSON_Delete(list);
}

/* ---- the rules ---- */

static void a_plan_is_a_span_from_its_first_event_to_its_end(void **state)
{
    (void)state;
    assert_int_equal(event("plan_generated", 100, "'sessionId':'s'"), 0);
    assert_int_equal(event("plan_started", 200, "'sessionId':'other'"), 0);
    assert_int_equal(spans_open(spans), 1);
    assert_int_equal(event("plan_completed", 900, "'status':'completed','outcome':'good'"), 1);
    assert_int_equal(spans_open(spans), 0);
    assert_int_equal(event("plan_completed", 901, "'status':'completed'"), 0); /* it is over */
    EXPECT("plan k1 100-900 ok" P "|baton.session.id=s|baton.outcome=good|baton.status=completed");
    expect_member(0, "traceId", TRACE);
}

static void a_plan_that_is_not_completed_has_failed_and_says_why(void **state)
{
    (void)state;
    (void)event("plan_started", 5, "");
    (void)event("plan_completed", 4, /* clocks go back */
                "'status':'failed','failureReason':'no \\\"room\\\"','failureKind':'agent',"
                "'errorClass':'timeout','usage':{'inputTokens':0,'outputTokens':7}");
    EXPECT("plan k1 5-5 failed: no \"room\"" P "|baton.failure.kind=agent|error.type=timeout"
           "|baton.status=failed|gen_ai.usage.input_tokens=0|gen_ai.usage.output_tokens=7");
}

static void what_is_of_no_plan_or_of_one_that_began_before_has_no_span(void **state)
{
    (void)state;
    assert_int_equal(event_of("", "plan_started", 1, ""), 0);
    assert_int_equal(event("plan_step_started", 1, "'stepIndex':0,'stepId':'a'"), 0);
    assert_int_equal(event("plan_completed", 2, "'status':'completed'"), 0);
    assert_int_equal(spans_open(spans), 0);
    assert_int_equal(out.len, 0);
}

static void attempts_are_children_of_their_step_and_each_names_the_one_before(void **state)
{
    (void)state;
    (void)event("plan_started", 10, "");
    (void)event("plan_step_started", 20,
                "'stepIndex':3,'stepId':'s','agentId':'a','skill':'do','attempt':1");
    assert_int_equal(spans_open(spans), 3);
    assert_int_equal(event("plan_step_retry", 30,
                           "'stepIndex':3,'stepId':'s','agentId':'a','attempt':1,'delayMs':4,"
                           "'error':'flaky','errorClass':'transient',"
                           "'usage':{'inputTokens':2,'outputTokens':0}"),
                     1);
    assert_int_equal(event("fallback_used", 40,
                           "'stepIndex':3,'stepId':'s','agentId':'b','attempt':2,'error':'worse'"),
                     1);
    (void)event("plan_step_retry", 50, "'stepIndex':3,'stepId':'s','attempt':3,'delayMs':0");
    assert_int_equal(event("plan_step_completed", 60,
                           "'stepIndex':3,'stepId':'s','agentId':'b','skill':'do',"
                           "'status':'completed'"),
                     2);
    assert_int_equal(spans_open(spans), 1);
    (void)event("plan_completed", 70, "'status':'completed'");
    EXPECT("attempt a k3 20-30 failed: flaky <step s" P "|baton.step.id=s|baton.attempt=1"
           "|gen_ai.operation.name=invoke_agent|gen_ai.agent.id=a|baton.skill=do"
           "|error.type=transient|gen_ai.usage.input_tokens=2|gen_ai.usage.output_tokens=0",
           "attempt a k3 34-40 failed: worse <step s ~attempt a#1" P
           "|baton.step.id=s|baton.attempt=2|gen_ai.operation.name=invoke_agent"
           "|gen_ai.agent.id=a|baton.skill=do",
           "attempt b k3 40-50 failed <step s ~attempt a#2" P
           "|baton.step.id=s|baton.attempt=3|gen_ai.operation.name=invoke_agent"
           "|gen_ai.agent.id=b|baton.skill=do",
           "attempt b k3 50-60 ok <step s ~attempt b#3" P
           "|baton.step.id=s|baton.attempt=4|gen_ai.operation.name=invoke_agent"
           "|gen_ai.agent.id=b|baton.skill=do|baton.status=completed",
           "step s k1 20-60 ok <plan" P "|baton.step.id=s|gen_ai.agent.id=a|baton.skill=do"
           "|baton.status=completed",
           "plan k1 10-70 ok" P "|baton.status=completed");
}

static void a_step_that_never_began_has_a_span_without_a_length(void **state)
{
    static const struct {
        const char *status;
        bool failed;
    } all[] = {{"completed", false}, {"skipped", false}, {"failed", true}, {"cancelled", true}};

    (void)state;
    (void)event("plan_started", 10, "");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char fields[LINE_BYTES];
        struct cJSON *list;
        (void)snprintf(fields, sizeof fields,
                       "'stepIndex':%zu,'stepId':'s','status':'%s','error':'why'", i,
                       all[i].status);
        assert_int_equal(event("plan_step_completed", 20, fields), 1);
        list = read_spans();
        line_of(list, cJSON_GetArrayItem(list, (int)i), fields);
        assert_int_equal(
            strncmp(fields,
                    all[i].failed ? "step s k1 20-20 failed: why <" : "step s k1 20-20 ok <", 20),
            0);
        cJSON_Delete(list);
    }
}

/* What begins with the event before, and ends with the one after it. */
static void what_a_step_waits_for_is_its_child_and_fails_as_it_ended(void **state)
{
    (void)state;
    (void)event("plan_started", 10, "");
    (void)event("quality_gate_started", 20, "'stepIndex':1,'stepId':'s','agentId':'g'");
    assert_int_equal(event("quality_gate_passed", 21, "'stepIndex':1,'stepId':'s'"), 1);
    (void)event("quality_gate_started", 22, "'stepIndex':1,'stepId':'s'");
    assert_int_equal(event("quality_gate_failed", 23, "'stepIndex':1,'reason':'thin'"), 1);
    (void)event("quality_gate_started", 24, "'stepIndex':1,'stepId':'s'");
    assert_int_equal(event("quality_gate_error", 25, "'stepIndex':1,'error':'away'"), 1);
    (void)event("plan_step_waiting", 26, "'stepIndex':1,'stepId':'s','reviewId':'r'");
    assert_int_equal(
        event("review_decided", 27, "'stepIndex':1,'reviewId':'r','decision':'reject'"), 1);
    (void)event("replan_started", 28, "'stepIndex':1,'stepId':'s'");
    assert_int_equal(event("replan_finished", 29, "'stepIndex':1,'ok':true"), 1);
    (void)event("replan_started", 30, "'stepIndex':1,'stepId':'s'");
    assert_int_equal(event("replan_finished", 31, "'stepIndex':1,'ok':false,'reason':'no'"), 1);
    assert_int_equal(event("review_decided", 32, "'stepIndex':1"), 0); /* nothing waits */
    assert_int_equal(event("plan_step_completed", 40, "'stepIndex':1,'status':'completed'"), 1);
    (void)event("plan_completed", 50, "'status':'completed'");
    EXPECT("gate s k1 20-21 ok <step s" P "|baton.step.id=s|gen_ai.agent.id=g",
           "gate s k1 22-23 failed: thin <step s" P "|baton.step.id=s",
           "gate s k1 24-25 failed: away <step s" P "|baton.step.id=s",
           "review s k1 26-27 ok <step s" P
           "|baton.step.id=s|baton.review.id=r|baton.review.decision=reject",
           "replan s k1 28-29 ok <step s" P "|baton.step.id=s",
           "replan s k1 30-31 failed: no <step s" P "|baton.step.id=s",
           "step s k1 20-40 ok <plan" P "|baton.step.id=s|gen_ai.agent.id=g|baton.status=completed",
           "plan k1 10-50 ok" P "|baton.status=completed");
}

static void what_is_open_at_the_end_of_a_step_ends_with_it(void **state)
{
    (void)state;
    (void)event("plan_started", 10, "");
    (void)event("plan_step_started", 20, "'stepIndex':0,'stepId':'s','attempt':1");
    (void)event("quality_gate_started", 21, "'stepIndex':0,'stepId':'s'");
    (void)event("plan_step_waiting", 22, "'stepIndex':0,'stepId':'s'");
    (void)event("replan_started", 23, "'stepIndex':0,'stepId':'s'");
    (void)event("replan_started", 24, "'stepIndex':1,'stepId':'another'");
    assert_int_equal(event("plan_step_completed", 30, "'stepIndex':0,'status':'cancelled'"), 5);
    (void)event("plan_completed", 40, "'status':'cancelled'"); /* forgets the other step */
    assert_int_equal(spans_open(spans), 0);
#define ENDED "|baton.status=cancelled"
    EXPECT("attempt s k3 20-30 failed <step s" P "|baton.step.id=s|baton.attempt=1"
           "|gen_ai.operation.name=invoke_agent" ENDED,
           "gate s k1 21-30 failed <step s" P "|baton.step.id=s" ENDED,
           "review s k1 22-30 failed <step s" P "|baton.step.id=s" ENDED,
           "replan s k1 23-30 failed <step s" P "|baton.step.id=s" ENDED,
           "step s k1 20-30 failed <plan" P "|baton.step.id=s" ENDED,
           "plan k1 10-40 failed" P ENDED);
}

static void planning_and_the_answer_are_children_of_the_plan(void **state)
{
    (void)state;
    (void)event("planning_started", 10, "'agentId':'llm','stepIndex':7,'attempt':1");
    assert_int_equal(event("planning_failed", 11, "'reason':'no plan'"), 1);
    (void)event("planning_started", 12, "'attempt':2");
    assert_int_equal(event("plan_generated", 13, ""), 1);
    (void)event("synthesis_started", 14, "'stepIndex':7");
    assert_int_equal(event("synthesis_retry", 15, ""), 1);
    (void)event("synthesis_started", 16, "");
    assert_int_equal(event("synthesis_finished", 17, ""), 1);
    assert_int_equal(spans_open(spans), 1); /* there is no step */
    (void)event("plan_completed", 18, "'status':'completed'");
    EXPECT("planning k1 10-11 failed: no plan <plan" P "|gen_ai.agent.id=llm",
           "planning k1 12-13 ok <plan" P, "synthesis k1 14-15 ok <plan" P,
           "synthesis k1 16-17 ok <plan" P, "plan k1 10-18 ok" P "|baton.status=completed");
}

static void a_handoff_and_a_verdict_are_moments_of_their_step(void **state)
{
    (void)state;
    (void)event("plan_started", 10, "");
    (void)event("plan_step_started", 20, "'stepIndex':2,'stepId':'s','agentId':'a','attempt':1");
    assert_int_equal(event("agent_handoff", 21,
                           "'stepIndex':2,'planStepId':'s','attempt':1,'planSeq':5,"
                           "'toAgent':{'agentId':'b'}"),
                     1);
    assert_int_equal(event("agent_handoff", 22, "'stepIndex':2,'planStepId':'s','planSeq':6"), 1);
    assert_int_equal(event("plan_step_verification_failed", 23,
                           "'stepIndex':2,'stepId':'s','agentId':'a','planSeq':7,"
                           "'diagnosis':'not so'"),
                     1);
    assert_int_equal(event("plan_step_progress", 24, "'stepIndex':2,'stepId':'s'"), 0);
    (void)event("plan_step_completed", 30, "'stepIndex':2,'status':'completed'");
    (void)event("plan_completed", 30, "'status':'completed'");
    EXPECT("handoff s k1 21-21 ok <step s ~attempt a#1" P "|baton.step.id=s|gen_ai.agent.id=b",
           "handoff s k1 22-22 ok <step s" P "|baton.step.id=s",
           "verify s k1 23-23 failed: not so <step s" P "|baton.step.id=s|gen_ai.agent.id=a",
           "attempt a k3 20-30 ok <step s" P "|baton.step.id=s|baton.attempt=1"
           "|gen_ai.operation.name=invoke_agent|gen_ai.agent.id=a|baton.status=completed",
           "step s k1 20-30 ok <plan" P "|baton.step.id=s|gen_ai.agent.id=a|baton.status=completed",
           "plan k1 10-30 ok" P "|baton.status=completed");
}

/* The daemon makes the same ids for agents. */
static void ids_are_those_of_the_plan_the_kind_the_step_and_the_attempt(void **state)
{
    static const struct {
        enum trace_kind kind;
        uint32_t index, attempt;
    } all[] = {{TRACE_HANDOFF, 4, 9},
               {TRACE_ATTEMPT, 4, 2},
               {TRACE_STEP, 4, 0},
               {TRACE_STEP, TRACE_PLAN, 0}};
    char id[32];

    (void)state;
    (void)event("plan_started", 10, "");
    (void)event("plan_step_started", 20, "'stepIndex':4,'stepId':'s','attempt':2");
    (void)event("agent_handoff", 21, "'stepIndex':4,'planStepId':'s','planSeq':9");
    (void)event("plan_step_completed", 30, "'stepIndex':4,'status':'completed'");
    (void)event("plan_completed", 30, "'status':'completed'");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)snprintf(id, sizeof id, "%016llx",
                       (unsigned long long)trace_span(STR_LIT(PLAN), all[i].kind, all[i].index,
                                                      all[i].attempt));
        expect_member((int)i, "spanId", id);
        expect_member((int)i, "traceId", TRACE);
    }
}

static void the_trace_of_a_plan_is_its_id_or_made_of_what_it_is_called(void **state)
{
    struct cJSON *list;
    const char *traces[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        static const char *const plans[] = {"ABCDEFabcdef0123456789abcdef0123", "one", "two"};
        (void)event_of(plans[i], "plan_started", 1, "");
        (void)event_of(plans[i], "plan_completed", 2, "'status':'completed'");
    }
    list = read_spans();
    for (int i = 0; i < 3; i++) {
        traces[i] = member(cJSON_GetArrayItem(list, i), "traceId");
        assert_int_equal(strlen(traces[i]), 2 * TRACE_BYTES);
    }
    assert_string_equal(traces[0], "abcdefabcdef0123456789abcdef0123");
    assert_memory_not_equal(traces[1], traces[2], TRACE_BYTES);
    assert_memory_not_equal(traces[1] + TRACE_BYTES, traces[2] + TRACE_BYTES, TRACE_BYTES);
    cJSON_Delete(list);
}

#define GIVEN "0af7651916cd43dd8448eb211c80319c"

static void a_plan_belongs_to_the_trace_that_it_was_given_first(void **state)
{
    (void)state;
    assert_false(spans_parent(spans, STR_LIT("a"), STR_LIT("none")));
    assert_true(spans_parent(spans, STR_LIT("a"), STR_LIT(PARENT))); /* before its first event */
    (void)event_of("a", "plan_started", 1, "");
    (void)event_of("b", "plan_started", 1, "");
    assert_true(spans_parent(spans, STR_LIT("b"), STR_LIT(PARENT))); /* and after it */
    (void)event_of("c", "plan_generated", 1, "'traceparent':'" PARENT "'");
    for (const char *id = "abc"; *id != 0; id++) {
        const char plan[] = {*id, 0};
        assert_true(
            spans_parent(spans, str_from(plan),
                         STR_LIT("00-11111111111111111111111111111111-2222222222222222-01")));
        (void)event_of(plan, "plan_completed", 2, "'status':'completed'");
    }
    for (int i = 0; i < 3; i++) {
        expect_member(i, "traceId", GIVEN);
        expect_member(i, "parentSpanId", "b7ad6b7169203331");
    }
}

static void a_child_plan_is_a_part_of_the_trace_of_its_parent(void **state)
{
    (void)state;
    (void)event("plan_started", 1, "");
    (void)event_of("child", "plan_generated", 2, "'parentPlanId':'" PLAN "'");
    (void)event_of("orphan", "plan_generated", 2, "'parentPlanId':'nobody'");
    (void)event_of("child", "plan_completed", 3, "'status':'completed'");
    (void)event_of("orphan", "plan_completed", 3, "'status':'completed'");
    (void)event("plan_completed", 4, "'status':'completed'");
    EXPECT("plan k1 2-3 ok <plan|baton.plan.id=child|baton.status=completed",
           "plan k1 2-3 ok|baton.plan.id=orphan|baton.status=completed",
           "plan k1 1-4 ok" P "|baton.status=completed");
    expect_member(0, "traceId", TRACE);
}

static void a_name_has_64_bytes_and_a_plan_whose_id_is_longer_has_no_span(void **state)
{
    char plan[80];
    char fields[LINE_BYTES];

    (void)state;
    memset(plan, 'p', sizeof plan);
    plan[65] = 0;
    (void)event_of(plan, "plan_started", 1, "");
    assert_int_equal(spans_open(spans), 0);
    plan[64] = 0;
    (void)event_of(plan, "plan_started", 1, "");
    assert_int_equal(spans_open(spans), 1);
    (void)snprintf(fields, sizeof fields, "'stepIndex':0,'status':'completed','stepId':'%sX'",
                   plan);
    (void)event_of(plan, "plan_step_completed", 2, fields);
    (void)snprintf(fields, sizeof fields, "step %s", plan);
    expect_member(0, "name", fields);
}

static void so_many_plans_and_parts_of_plans_have_spans_and_no_more(void **state)
{
    char plan[32];
    char fields[64];

    (void)state;
    for (uint32_t i = 0; i <= SPANS_PLANS_MAX; i++) {
        (void)snprintf(plan, sizeof plan, "plan-%u", i);
        (void)event_of(plan, "plan_started", 1, "");
    }
    assert_int_equal(spans_open(spans), SPANS_PLANS_MAX);
    for (uint32_t i = 0; i <= SPANS_STEPS_MAX; i++) {
        (void)snprintf(plan, sizeof plan, "plan-%u", i % 100);
        (void)snprintf(fields, sizeof fields, "'stepIndex':%u", i);
        (void)event_of(plan, "synthesis_started", 1, fields);
        (void)event_of(plan, "plan_step_waiting", 1, fields);
    }
    assert_int_equal(spans_open(spans), SPANS_PLANS_MAX + SPANS_STEPS_MAX);
    (void)event_of("plan-0", "plan_completed", 2, "'status':'completed'");
    (void)event("plan_started", 3, ""); /* in the place of the one that ended */
    (void)event("plan_step_waiting", 3, "'stepIndex':0");
    assert_int_equal(event("plan_step_completed", 4, "'stepIndex':0,'status':'completed'"), 2);
}

static void a_document_names_the_program_and_has_the_spans(void **state)
{
    struct buf document;

    (void)state;
    (void)event("plan_started", 1, "");
    (void)event("plan_completed", 2, "'status':'completed'");
    (void)event("plan_started", 3, "");
    (void)event("plan_completed", 4, "'status':'completed'");
    buf_init(&document, OUT_BYTES);
    spans_document(&document, &out);
    {
        struct cJSON *o = cJSON_Parse(buf_cstr(&document));
        const struct cJSON *r = cJSON_GetArrayItem(cJSON_GetObjectItem(o, "resourceSpans"), 0);
        const struct cJSON *s = cJSON_GetArrayItem(cJSON_GetObjectItem(r, "scopeSpans"), 0);
        assert_string_equal(attribute(cJSON_GetObjectItem(r, "resource"), "service.name"), "baton");
        assert_string_equal(attribute(cJSON_GetObjectItem(r, "resource"), "service.version"),
                            BATON_VERSION);
        assert_string_equal(member(cJSON_GetObjectItem(s, "scope"), "name"), "baton");
        assert_string_equal(member(cJSON_GetObjectItem(s, "scope"), "version"), BATON_VERSION);
        assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(s, "spans")), 2);
        cJSON_Delete(o);
    }
    buf_done(&document);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_plan_is_a_span_from_its_first_event_to_its_end),
        TEST(a_plan_that_is_not_completed_has_failed_and_says_why),
        TEST(what_is_of_no_plan_or_of_one_that_began_before_has_no_span),
        TEST(attempts_are_children_of_their_step_and_each_names_the_one_before),
        TEST(a_step_that_never_began_has_a_span_without_a_length),
        TEST(what_a_step_waits_for_is_its_child_and_fails_as_it_ended),
        TEST(what_is_open_at_the_end_of_a_step_ends_with_it),
        TEST(planning_and_the_answer_are_children_of_the_plan),
        TEST(a_handoff_and_a_verdict_are_moments_of_their_step),
        TEST(ids_are_those_of_the_plan_the_kind_the_step_and_the_attempt),
        TEST(the_trace_of_a_plan_is_its_id_or_made_of_what_it_is_called),
        TEST(a_plan_belongs_to_the_trace_that_it_was_given_first),
        TEST(a_child_plan_is_a_part_of_the_trace_of_its_parent),
        TEST(a_name_has_64_bytes_and_a_plan_whose_id_is_longer_has_no_span),
        TEST(so_many_plans_and_parts_of_plans_have_spans_and_no_more),
        TEST(a_document_names_the_program_and_has_the_spans),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
