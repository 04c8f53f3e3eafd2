/*
 * What events become in other vocabularies. BATON_GOLDEN_WRITE=1 writes the golden files again.
 * tests/e2e/test_vocabulary.py checks them against the documents.
 */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/compat/compat_internal.h"
#include "tests/support/cmocka.h"
#include "tests/unit/compat/streams.h"

static struct bt_vocabulary *opened(const char *name)
{
    struct bt_vocabulary *v = NULL;
    struct bt_error err;

    assert_int_equal(bt_vocabulary_new(name, &v, &err), BT_OK);
    return v;
}

static void take(struct bt_vocabulary *v, const char *event, struct buf *out)
{
    struct bt_translated translated;
    struct bt_error err;

    if (bt_vocabulary_take(v, event, strlen(event), &err) != BT_OK) {
        fail_msg("%s: %s", event, err.msg);
    }
    while (bt_vocabulary_next(v, &translated)) {
        buf_add_cstr(out, translated.json);
        buf_add_byte(out, '\n');
    }
}

/* All of them, one after another, as lines. */
static void assert_becomes(const char *vocabulary, const char *const *events, const char *expected)
{
    struct bt_vocabulary *v = opened(vocabulary);
    struct buf out;

    buf_init(&out, 1 << 20);
    for (; *events != NULL; events++) {
        take(v, *events, &out);
    }
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
    bt_vocabulary_free(v);
}

static void recorded_streams_become_their_golden_files(void **state)
{
    static struct stream streams[STREAMS_MAX];
    const size_t n = streams_read(streams);

    (void)state;
    assert_true(n > 15);
    for (size_t i = 0; i < n; i++) {
        for (const char *const *name = bt_vocabulary_names(); *name != NULL; name++) {
            struct bt_vocabulary *v = opened(*name);
            struct buf out;
            char *golden;
            buf_init(&out, 1 << 20);
            for (size_t line = 0; line < streams[i].n; line++) {
                take(v, streams[i].lines[line], &out);
            }
            assert_int_equal(v->n_plans, 0);
            assert_int_equal(v->bytes, 0);
            assert_int_equal(v->n_turns, 0);
            if (getenv("BATON_GOLDEN_WRITE") != NULL) {
                stream_golden_write(streams[i].name, *name, buf_cstr(&out));
            }
            golden = stream_golden(streams[i].name, *name);
            if (golden == NULL || strcmp(golden, buf_cstr(&out)) != 0) {
                fail_msg("%s as %s is not as in its file:\n%s", streams[i].name, *name,
                         buf_cstr(&out));
            }
            free(golden);
            buf_done(&out);
            bt_vocabulary_free(v);
        }
    }
    streams_free(streams, n);
}

static void published_bytes_and_their_json_say_the_same(void **state)
{
    static struct stream streams[STREAMS_MAX];
    const size_t n = streams_read(streams);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct bt_vocabulary *a = opened("agent-turn");
        struct bt_vocabulary *b = opened("agent-turn");
        for (size_t line = 0; line < streams[i].n; line++) {
            struct bt_translated x;
            struct bt_translated y;
            struct bt_error err;
            struct buf packed;
            buf_init(&packed, 1 << 16);
            assert_int_equal(json_to_doc(str_from(streams[i].lines[line]), NULL, &packed, &err),
                             BT_OK);
            assert_int_equal(
                bt_vocabulary_take(a, streams[i].lines[line], strlen(streams[i].lines[line]), &err),
                BT_OK);
            assert_int_equal(bt_vocabulary_take(b, packed.at, packed.len, &err), BT_OK);
            buf_done(&packed);
            while (bt_vocabulary_next(a, &x)) {
                assert_true(bt_vocabulary_next(b, &y));
                assert_string_equal(x.json, y.json);
                assert_string_equal(x.type, y.type);
                assert_string_equal(x.plan_id, y.plan_id);
            }
            assert_false(bt_vocabulary_next(b, &y));
        }
        bt_vocabulary_free(a);
        bt_vocabulary_free(b);
    }
    streams_free(streams, n);
}

/* What the lines from `cut` on become; those before are learned, or taken. */
static void translate_from(const char *name, const struct stream *s, size_t cut, bool learn,
                           struct buf *out)
{
    struct bt_vocabulary *v = opened(name);
    struct bt_error err;

    buf_clear(out);
    for (size_t i = 0; i < s->n; i++) {
        if (i < cut && learn) {
            struct bt_translated said;
            assert_int_equal(bt_vocabulary_learn(v, s->lines[i], strlen(s->lines[i]), &err), BT_OK);
            assert_false(bt_vocabulary_next(v, &said));
            continue;
        }
        if (i == cut) {
            buf_clear(out);
        }
        take(v, s->lines[i], out);
    }
    bt_vocabulary_free(v);
}

static void what_was_learned_is_as_if_it_had_been_taken(void **state)
{
    static struct stream streams[STREAMS_MAX];
    const size_t n = streams_read(streams);
    struct buf learned;
    struct buf taken;

    (void)state;
    buf_init(&learned, 1 << 20);
    buf_init(&taken, 1 << 20);
    for (size_t i = 0; i < n; i++) {
        for (const char *const *name = bt_vocabulary_names(); *name != NULL; name++) {
            for (size_t cut = 0; cut < streams[i].n; cut += 3) {
                translate_from(*name, &streams[i], cut, true, &learned);
                translate_from(*name, &streams[i], cut, false, &taken);
                assert_string_equal(buf_cstr(&learned), buf_cstr(&taken));
            }
        }
    }
    buf_done(&learned);
    buf_done(&taken);
    streams_free(streams, n);
}

static void only_a_plan_that_began_before_is_lacking(void **state)
{
    static const char first[] = "{\"type\":\"plan_generated\",\"seq\":9,\"planId\":\"P\","
                                "\"planSeq\":1,\"query\":\"q\"}";
    static const char second[] =
        "{\"type\":\"plan_started\",\"seq\":12,\"planId\":\"P\",\"planSeq\":2}";
    static const char none[] = "{\"type\":\"agent_up\",\"seq\":13}";
    struct bt_vocabulary *v = opened("ai-sdk");
    struct bt_error err;

    (void)state;
    assert_false(bt_vocabulary_lacks(v, first, strlen(first)));
    assert_true(bt_vocabulary_lacks(v, second, strlen(second)));
    assert_false(bt_vocabulary_lacks(v, none, strlen(none)));
    assert_false(bt_vocabulary_lacks(v, "{", 1));
    assert_int_equal(bt_vocabulary_take(v, none, strlen(none), &err), BT_OK);
    assert_int_equal(bt_vocabulary_learn(v, first, strlen(first), &err), BT_OK); /* it is older */
    assert_false(bt_vocabulary_lacks(v, second, strlen(second)));
    assert_int_equal(bt_vocabulary_learn(v, "{", 1, &err), BT_INVALID);
    bt_vocabulary_free(v);
}

/* Every stream, as lines, in one vocabulary. The caller frees. */
static char *translate_all(const char *vocabulary, const struct stream *streams, size_t n)
{
    struct buf out;
    size_t len;

    buf_init(&out, 1 << 24);
    for (size_t i = 0; i < n; i++) {
        struct bt_vocabulary *v = opened(vocabulary);
        for (size_t line = 0; line < streams[i].n; line++) {
            take(v, streams[i].lines[line], &out);
        }
        bt_vocabulary_free(v);
    }
    assert_true(buf_cstr(&out)[0] != 0);
    return (char *)buf_take(&out, &len);
}

static void alias_gives_the_same_bytes_as_its_readable_name(void **state)
{
    static const char *const aliases[][2] = {
        {"s000", "ai-sdk"},           {"s001", "plan-executor"},
        {"s002", "agent-turn"},       {"s003", "ptc-runner"},
        {"s004", "orchestrator-log"}, {"s003-telemetry", "ptc-runner-telemetry"}};
    static struct stream streams[STREAMS_MAX];
    const size_t n = streams_read(streams);

    (void)state;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        char *by_alias = translate_all(aliases[i][0], streams, n);
        char *by_name = translate_all(aliases[i][1], streams, n);
        assert_string_equal(by_alias, by_name);
        free(by_alias);
        free(by_name);
    }
    streams_free(streams, n);
}

static void names_that_are_listed_are_the_readable_ones(void **state)
{
    static const char *const expected[] = {
        "ai-sdk",     "plan-executor",        "agent-turn",
        "ptc-runner", "ptc-runner-telemetry", "orchestrator-log"};
    const char *const *names = bt_vocabulary_names();

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_string_equal(names[i], expected[i]);
    }
    assert_null(names[sizeof expected / sizeof expected[0]]);
}

static void unknown_vocabulary_is_refused_with_those_that_there_are(void **state)
{
    struct bt_vocabulary *v = NULL;
    struct bt_error err;

    (void)state;
    assert_int_equal(bt_vocabulary_new("s005", &v, &err), BT_INVALID);
    assert_null(v);
    assert_non_null(strstr(err.msg, "'s005'"));
    assert_null(strstr(err.msg, "s000"));
    for (const char *const *name = bt_vocabulary_names(); *name != NULL; name++) {
        assert_non_null(strstr(err.msg, *name));
        v = opened(*name);
        bt_vocabulary_free(v);
    }
    bt_vocabulary_free(NULL);
}

static void what_is_no_event_is_refused_and_what_is_not_known_passes_by(void **state)
{
    static const char *const bad[] = {
        "", "{", "[]", "{}", "{\"type\":7}", "\x81\xa4type\x07", "{\"type\":\"x\"} y"};
    static const char *const unknown[] = {
        "{\"type\":\"heartbeat\",\"lastSeq\":3,\"tsMs\":4}",
        "{\"type\":\"agent_up\",\"seq\":1,\"agentId\":\"a\"}",
        "{\"type\":\"plan_dreamt\",\"seq\":2,\"planId\":\"P\",\"planSeq\":1}", NULL};

    (void)state;
    for (const char *const *name = bt_vocabulary_names(); *name != NULL; name++) {
        struct bt_vocabulary *v = opened(*name);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            struct bt_translated translated;
            struct bt_error err;
            assert_int_equal(bt_vocabulary_take(v, bad[i], strlen(bad[i]), &err), BT_INVALID);
            assert_true(strlen(err.msg) > 0);
            assert_false(bt_vocabulary_next(v, &translated));
        }
        bt_vocabulary_free(v);
        assert_becomes(*name, unknown, "");
    }
}

static void event_that_comes_again_says_nothing(void **state)
{
    static const char *const events[] = {
        "{\"type\":\"planning_retry\",\"seq\":5,\"planId\":\"P\",\"planSeq\":2,\"attempt\":1}",
        "{\"type\":\"planning_retry\",\"seq\":5,\"planId\":\"P\",\"planSeq\":2,\"attempt\":1}",
        "{\"type\":\"planning_retry\",\"seq\":4,\"planId\":\"P\",\"planSeq\":1,\"attempt\":1}",
        NULL};

    (void)state;
    assert_becomes("ptc-runner", events,
                   "{\"type\":\"planning_retry\",\"planId\":\"P\",\"payload\":"
                   "{\"validation_errors\":0}}\n");
}

static void an_event_of_another_shard_is_no_repetition(void **state)
{
    const char *const events[] = {
        "{\"seq\":7,\"shard\":0,\"eventId\":\"E\",\"type\":\"plan_step_started\",\"timestamp\":"
        "\"T\","
        "\"planId\":\"P\",\"stepId\":\"a\",\"agentId\":\"g\",\"task\":\"t\"}",
        "{\"seq\":7,\"shard\":1,\"eventId\":\"E\",\"type\":\"plan_step_started\",\"timestamp\":"
        "\"T\","
        "\"planId\":\"Q\",\"stepId\":\"b\",\"agentId\":\"g\",\"task\":\"t\"}",
        "{\"seq\":7,\"shard\":1,\"eventId\":\"E\",\"type\":\"plan_step_started\",\"timestamp\":"
        "\"T\","
        "\"planId\":\"Q\",\"stepId\":\"c\",\"agentId\":\"g\",\"task\":\"t\"}"};
    struct bt_vocabulary *v = opened("orchestrator-log");
    struct buf out;

    (void)state;
    buf_init(&out, 1 << 16);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        take(v, events[i], &out);
    }
    assert_non_null(strstr(buf_cstr(&out), "\"task_id\":\"a\""));
    assert_non_null(strstr(buf_cstr(&out), "\"task_id\":\"b\""));
    assert_null(strstr(buf_cstr(&out), "\"task_id\":\"c\""));
    buf_done(&out);
    bt_vocabulary_free(v);
}

static void document_of_the_plan_tells_tool_and_arguments(void **state)
{
    static const char answer[] =
        "{\"planId\":\"P\",\"document\":{\"steps\":[{\"stepId\":\"a\",\"skill\":\"add\","
        "\"parameters\":{\"x\":1}},{\"stepId\":\"b\",\"skill\":\"say\"}]}}";
    static const char generated[] =
        "{\"type\":\"plan_generated\",\"planId\":\"P\",\"planSeq\":1,\"estimatedSteps\":2,"
        "\"steps\":[{\"stepId\":\"a\",\"agentId\":\"calc\",\"task\":\"do a\"},{\"stepId\":\"b\","
        "\"agentId\":\"exec\",\"task\":\"do b\"}]}";
    static const char started[] =
        "{\"type\":\"plan_step_started\",\"planId\":\"P\",\"planSeq\":2,\"stepId\":\"a\","
        "\"stepIndex\":0,\"agentId\":\"calc\",\"task\":\"do a\"}";
    static const char bus_ended[] =
        "{\"type\":\"plan_step_completed\",\"planId\":\"P\",\"planSeq\":3,\"stepId\":\"a\","
        "\"stepIndex\":0,\"agentId\":\"other\",\"status\":\"completed\",\"result\":\"1\"}";
    struct bt_vocabulary *v = opened("agent-turn");
    struct bt_error err;
    struct buf out;

    (void)state;
    buf_init(&out, 1 << 20);
    assert_true(bt_vocabulary_wants_plan(v, "plan_generated"));
    assert_true(bt_vocabulary_wants_plan(v, "replan_finished"));
    assert_false(bt_vocabulary_wants_plan(v, "plan_started"));
    assert_int_equal(bt_vocabulary_describe(v, answer, &err), BT_OK);
    take(v, generated, &out);
    take(v, started, &out);
    take(v, bus_ended, &out);
    assert_string_equal(
        buf_cstr(&out),
        "{\"type\":\"turn_start\",\"planId\":\"P\",\"payload\":{}}\n"
        "{\"type\":\"plan_created\",\"planId\":\"P\",\"payload\":{\"stepCount\":2,\"steps\":[{"
        "\"tool\":\"add\",\"args\":{\"x\":1}},{\"tool\":\"say\",\"args\":{\"task\":\"do "
        "b\"}}]}}\n"
        "{\"type\":\"plan_step_start\",\"planId\":\"P\",\"payload\":{\"index\":0,\"stepCount\":2,"
        "\"tool\":\"add\",\"args\":{\"x\":1}}}\n"
        "{\"type\":\"tool_call\",\"planId\":\"P\",\"payload\":{\"toolCallId\":\"P/0\","
        "\"toolName\":\"add\",\"args\":{\"x\":1}}}\n"
        "{\"type\":\"tool_result\",\"planId\":\"P\",\"payload\":{\"toolCallId\":\"P/0\","
        "\"toolName\":\"add\",\"result\":1}}\n"
        "{\"type\":\"plan_step_end\",\"planId\":\"P\",\"payload\":{\"index\":0,\"stepCount\":2,"
        "\"tool\":\"add\",\"result\":1}}\n");
    assert_int_equal(bt_vocabulary_describe(v, "{\"planId\":\"P\"}", &err), BT_INVALID);
    assert_int_equal(bt_vocabulary_describe(v, "{", &err), BT_INVALID);
    buf_done(&out);
    bt_vocabulary_free(v);
    v = opened("ptc-runner");
    assert_false(bt_vocabulary_wants_plan(v, "plan_generated"));
    assert_true(bt_vocabulary_wants_plan(v, "replan_finished"));
    bt_vocabulary_free(v);
}

enum { STEPS = LIMIT_STEPS };

/* A document in which every step has the skill "add", the odd ones a second time with another one.
 */
static void describe_many(struct bt_vocabulary *v, uint32_t n)
{
    struct bt_error err;
    struct buf json;

    buf_init(&json, 4 << 20);
    buf_add_cstr(&json, "{\"planId\":\"P\",\"document\":{\"steps\":[");
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&json, "%s{\"stepId\":\"s%u\",\"skill\":\"add\"}", i > 0 ? "," : "", i);
        if (i % 2 == 1) {
            buf_printf(&json, ",{\"stepId\":\"s%u\",\"skill\":\"double\"}", i);
        }
    }
    buf_add_cstr(&json, "]}}");
    if (bt_vocabulary_describe(v, buf_cstr(&json), &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    buf_done(&json);
}

static void steps_of_the_largest_plan_are_found(void **state)
{
    struct bt_vocabulary *v = opened("agent-turn");
    struct buf out;

    (void)state;
    buf_init(&out, 16 << 20);
    describe_many(v, STEPS);
    for (uint32_t i = 0; i < STEPS; i++) {
        char event[200];
        (void)snprintf(event, sizeof event,
                       "{\"type\":\"plan_step_started\",\"planId\":\"P\",\"planSeq\":%u,\"stepId\":"
                       "\"s%u\",\"stepIndex\":%u,\"agentId\":\"calc\"}",
                       i + 1, i, i);
        buf_clear(&out);
        take(v, event, &out);
        assert_non_null(strstr(buf_cstr(&out), "\"add\""));
    }
    buf_done(&out);
    bt_vocabulary_free(v);
}

static void what_was_read_of_a_document_is_counted_and_goes_with_its_plan(void **state)
{
    struct bt_vocabulary *v = opened("agent-turn");
    struct buf out;
    size_t once;

    (void)state;
    buf_init(&out, 1 << 20);
    describe_many(v, STEPS);
    once = v->bytes;
    assert_true(once > v->plans[0]->document.len);
    describe_many(v, STEPS);
    assert_int_equal(v->bytes, once);
    describe_many(v, 3 * STEPS); /* no plan has so many; those after the cap are unknown */
    assert_int_equal(v->plans[0]->n_step_offsets, COMPAT_STEPS);
    describe_many(v, 1);
    assert_true(v->bytes < 1000);
    take(v, "{\"type\":\"plan_completed\",\"planId\":\"P\",\"planSeq\":1}", &out);
    assert_int_equal(v->n_plans, 0);
    assert_int_equal(v->bytes, 0);
    buf_done(&out);
    bt_vocabulary_free(v);
}

/* A step that started before the stream began is reported as ended; one that never started is not.
 */
static void who_comes_in_the_middle_hears_what_is_known(void **state)
{
    static const char *const events[] = {
        "{\"type\":\"plan_step_completed\",\"seq\":8,\"planId\":\"P\",\"planSeq\":5,\"stepId\":"
        "\"a\",\"stepIndex\":0,\"agentId\":\"calc\",\"status\":\"failed\",\"error\":\"no\","
        "\"attempts\":2}",
        "{\"type\":\"plan_step_completed\",\"seq\":9,\"planId\":\"P\",\"planSeq\":6,\"stepId\":"
        "\"b\",\"stepIndex\":1,\"agentId\":\"calc\",\"status\":\"skipped\",\"reason\":"
        "\"dependency_failed\"}",
        "{\"type\":\"plan_completed\",\"seq\":10,\"planId\":\"P\",\"planSeq\":7,\"status\":"
        "\"failed\",\"failureReason\":\"Step 1 failed: no\"}",
        NULL};

    (void)state;
    assert_becomes("agent-turn", events,
                   "{\"type\":\"tool_result\",\"planId\":\"P\",\"payload\":{\"toolCallId\":\"P/0\","
                   "\"toolName\":\"calc\",\"error\":\"no\"}}\n"
                   "{\"type\":\"plan_step_end\",\"planId\":\"P\",\"payload\":{\"index\":0,"
                   "\"tool\":\"calc\",\"error\":\"no\"}}\n"
                   "{\"type\":\"text_delta\",\"planId\":\"P\",\"payload\":{\"text\":\"Step 1 "
                   "failed: no\",\"index\":0}}\n"
                   "{\"type\":\"turn_end\",\"planId\":\"P\",\"payload\":{\"message\":\"Step 1 "
                   "failed: no\",\"duration\":0}}\n");
    assert_becomes("ptc-runner", events,
                   "{\"type\":\"task_failed\",\"planId\":\"P\",\"payload\":{\"task_id\":\"a\","
                   "\"reason\":\"no\"}}\n"
                   "{\"type\":\"execution_finished\",\"planId\":\"P\",\"payload\":{\"status\":"
                   "\"error\",\"duration_ms\":0}}\n");
    assert_becomes("ai-sdk", events, "{\"type\":\"error\",\"message\":\"Step 1 failed: no\"}\n");
}

static void turn_lasts_from_its_start_to_its_end_with_the_planning(void **state)
{
    static const char *const events[] = {
        "{\"type\":\"planning_started\",\"seq\":1,\"planId\":\"P\",\"planSeq\":1,\"tsMs\":1000,"
        "\"goal\":\"g\"}",
        "{\"type\":\"plan_completed\",\"seq\":2,\"planId\":\"P\",\"planSeq\":2,\"tsMs\":2507,"
        "\"status\":\"completed\",\"durationMs\":1}",
        NULL};

    (void)state;
    assert_becomes("agent-turn", events,
                   "{\"type\":\"turn_start\",\"planId\":\"P\",\"payload\":{}}\n"
                   "{\"type\":\"turn_end\",\"planId\":\"P\",\"payload\":{\"message\":\"\","
                   "\"duration\":1507000000}}\n");
    assert_becomes("agent-turn", events + 1, /* its start was not seen */
                   "{\"type\":\"turn_end\",\"planId\":\"P\",\"payload\":{\"message\":\"\","
                   "\"duration\":1000000}}\n");
}

/* A plan that answers a turn ends it, before Baton's turn_end or after it, and once. */
static void turn_of_a_plan_ends_with_the_plan_and_not_at_turn_end(void **state)
{
    static const char start[] = "{\"type\":\"turn_start\",\"seq\":1,\"sessionId\":\"S\","
                                "\"turnId\":\"T\",\"tsMs\":1000}";
    static const char begins[] = "{\"type\":\"planning_started\",\"seq\":2,\"planId\":\"P\","
                                 "\"planSeq\":1,\"sessionId\":\"S\",\"tsMs\":1001}";
#define ENDS(seq)                                                                                  \
    "{\"type\":\"plan_completed\",\"seq\":" seq ",\"planId\":\"P\",\"planSeq\":2,"                 \
    "\"sessionId\":\"S\",\"status\":\"completed\",\"tsMs\":1004}"
    static const char named[] = "{\"type\":\"turn_end\",\"seq\":4,\"sessionId\":\"S\","
                                "\"turnId\":\"T\",\"action\":\"new_plan\","
                                "\"turnPlanId\":\"P\",\"tsMs\":1005}";
    static const char unnamed[] = "{\"type\":\"turn_end\",\"seq\":4,\"sessionId\":\"S\","
                                  "\"turnId\":\"T\",\"tsMs\":1005}";
    static const char *const orders[][5] = {{start, begins, ENDS("3"), named, NULL},
                                            {start, begins, ENDS("3"), unnamed, NULL},
                                            {start, begins, named, ENDS("5"), NULL}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_becomes("agent-turn", orders[i],
                       "{\"type\":\"turn_start\",\"turnId\":\"T\",\"payload\":{}}\n"
                       "{\"type\":\"turn_end\",\"turnId\":\"T\",\"planId\":\"P\",\"payload\":{"
                       "\"message\":\"\",\"duration\":4000000}}\n");
    }
}

/* The agent's pieces were published before somebody came: the whole answer is told then. */
static void answer_of_an_agent_is_told_whole_to_who_heard_no_piece_of_it(void **state)
{
    static const char ends[] =
        "{\"type\":\"plan_completed\",\"seq\":9,\"planId\":\"P\",\"planSeq\":7,"
        "\"status\":\"completed\",\"synthesis\":\"agent\",\"summary\":\"all of it\"}";
    static const char piece[] = "{\"type\":\"text_delta\",\"seq\":8,\"planId\":\"P\",\"planSeq\":6,"
                                "\"text\":\"all\"}";
    static const char *const late[] = {ends, NULL};
    static const char *const whole[] = {piece, ends, NULL};

    (void)state;
    assert_becomes("agent-turn", late,
                   "{\"type\":\"text_delta\",\"planId\":\"P\",\"payload\":{\"text\":\"all of it\","
                   "\"index\":0}}\n"
                   "{\"type\":\"turn_end\",\"planId\":\"P\",\"payload\":{\"message\":\"all of it\","
                   "\"duration\":0}}\n");
    assert_becomes("agent-turn", whole,
                   "{\"type\":\"text_delta\",\"planId\":\"P\",\"payload\":{\"text\":\"all\","
                   "\"index\":0}}\n"
                   "{\"type\":\"turn_end\",\"planId\":\"P\",\"payload\":{\"message\":\"all of it\","
                   "\"duration\":0}}\n");
}

/* planner: the planner that made it; parentPlanId: it is a copy, and no planner made it. */
static void only_what_somebody_planned_is_told_as_planned(void **state)
{
    static const struct {
        const char *more;
        bool by_planner;
    } table[] = {{"", false},
                 {",\"planner\":\"keyword\"", true},
                 {",\"planner\":\"keyword\",\"parentPlanId\":\"O\"", false}};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char event[200];
        const char *const events[] = {event, NULL};
        (void)snprintf(event, sizeof event,
                       "{\"type\":\"plan_generated\",\"seq\":1,\"planId\":\"P\",\"planSeq\":1,"
                       "\"query\":\"g\"%s}",
                       table[i].more);
        assert_becomes("ptc-runner", events,
                       !table[i].by_planner
                           ? ""
                           : "{\"type\":\"planning_started\",\"planId\":\"P\",\"payload\":{"
                             "\"mission\":\"g\"}}\n"
                             "{\"type\":\"planning_finished\",\"planId\":\"P\",\"payload\":{"
                             "\"task_count\":0,\"plan\":{\"tasks\":[]}}}\n");
        assert_becomes("ptc-runner-telemetry", events,
                       !table[i].by_planner
                           ? ""
                           : "{\"event\":[\"ptc_runner\",\"plan_executor\",\"plan\","
                             "\"generated\"],\"planId\":\"P\",\"measurements\":{},"
                             "\"metadata\":{\"plan\":{\"tasks\":[]},\"mission\":"
                             "\"g\"}}\n");
    }
}

static void result_that_is_json_is_told_as_that(void **state)
{
    static const char *const rows[][2] = {
        {"42", "42"},
        {"{\\\"rows\\\":[1,2.5]}", "{\"rows\":[1,2.5]}"},
        {"42 apples", "\"42 apples\""},
        {"007", "\"007\""},
        {"{\\\"rows\\\":[1,", "\"{\\\"rows\\\":[1,\""}, /* a preview ends where it ends */
        {"", "\"\""}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char event[300];
        char expected[300];
        const char *const events[] = {event, NULL};
        (void)snprintf(event, sizeof event,
                       "{\"type\":\"plan_step_completed\",\"seq\":1,\"planId\":\"P\",\"planSeq\":2,"
                       "\"stepId\":\"a\",\"stepIndex\":0,\"status\":\"completed\",\"attempts\":1,"
                       "\"result\":\"%s\"}",
                       rows[i][0]);
        (void)snprintf(expected, sizeof expected,
                       "{\"event\":[\"ptc_runner\",\"plan_executor\",\"task\",\"stop\"],"
                       "\"planId\":\"P\",\"measurements\":{\"duration\":0},\"metadata\":{"
                       "\"task_id\":\"a\",\"status\":\"ok\",\"result\":%s}}\n",
                       rows[i][1]);
        assert_becomes("ptc-runner-telemetry", events, expected);
    }
}

/* New work under an old name is found by its index. Steps that the repair drops are not kept. */
static void revision_is_told_by_the_rows_of_its_document(void **state)
{
    static const char answer[] =
        "{\"planId\":\"P\",\"document\":{\"steps\":[{\"stepId\":\"a\",\"superseded\":true},"
        "{\"stepId\":\"b\",\"parameters\":{\"x\":1},\"superseded\":true},"
        "{\"stepId\":\"b\",\"parameters\":{\"x\":2}}]}}";
    static const char done[] =
        "{\"type\":\"plan_step_completed\",\"planId\":\"P\",\"planSeq\":3,\"stepId\":\"a\","
        "\"stepIndex\":0,\"status\":\"completed\"}";
    static const char replanned[] = "{\"type\":\"replan_finished\",\"planId\":\"P\",\"planSeq\":5,"
                                    "\"ok\":true,\"newSteps\":1}";
    static const char started[] =
        "{\"type\":\"plan_step_started\",\"planId\":\"P\",\"planSeq\":6,\"stepId\":\"b\","
        "\"stepIndex\":2,\"agentId\":\"calc\"}";
    struct bt_vocabulary *v = opened("agent-turn");
    struct bt_error err;
    struct buf out;

    (void)state;
    buf_init(&out, 1 << 20);
    assert_int_equal(bt_vocabulary_describe(v, answer, &err), BT_OK);
    take(v, started, &out);
    assert_non_null(strstr(buf_cstr(&out), "\"args\":{\"x\":2}"));
    bt_vocabulary_free(v);
    for (int with = 0; with < 2; with++) {
        v = opened("ptc-runner");
        take(v, done, &out);
        if (with == 1) {
            assert_int_equal(bt_vocabulary_describe(v, answer, &err), BT_OK);
        }
        buf_clear(&out);
        take(v, replanned, &out);
        assert_non_null(strstr(buf_cstr(&out), "execution_started"));
        assert_int_equal(strstr(buf_cstr(&out), "already_completed") == NULL, with);
        bt_vocabulary_free(v);
    }
    buf_done(&out);
}

static void plan_that_nobody_could_make_is_the_interrupt_of_the_orchestrator_log(void **state)
{
    static const char *const events[] = {
        "{\"type\":\"plan_paused\",\"seq\":1,\"planId\":\"P\",\"planSeq\":4,\"reason\":"
        "\"planning\","
        "\"comment\":\"no \\\"plan\\\"\",\"reviewId\":\"P\"}",
        "{\"type\":\"plan_paused\",\"seq\":2,\"planId\":\"P\",\"planSeq\":5,\"reason\":\"review\"}",
        NULL};

    (void)state;
    assert_becomes("orchestrator-log", events,
                   "{\"type\":\"ERROR_RECOVERY\",\"context\":{\"error\":\"no \\\"plan\\\"\","
                   "\"node\":\"planner\"},\"metadata\":{\"recoverable\":true}}\n");
}

/* The last line that the plan executor's vocabulary makes of the events; "" = none of the last. */
static const char *executed(const char *const *events)
{
    static char line[1024];
    struct bt_vocabulary *v = opened("plan-executor");
    struct buf out;

    buf_init(&out, 1 << 20);
    for (; *events != NULL; events++) {
        buf_clear(&out);
        take(v, *events, &out);
    }
    (void)snprintf(line, sizeof line, "%s", buf_cstr(&out));
    buf_done(&out);
    bt_vocabulary_free(v);
    return line;
}

#define HANDOFF(seq, index, from, to)                                                              \
    "{\"type\":\"agent_handoff\",\"seq\":" seq ",\"planId\":\"P\",\"planSeq\":" seq                \
    ",\"handoffId\":\"H\",\"fromAgent\":" from ",\"toAgent\":" to ",\"stepIndex\":" index "}"
#define AGENT(id) "{\"agentId\":\"" id "\",\"agentName\":\"" id "s\"}"
#define TOLD(from, to)                                                                             \
    "{\"type\":\"agent_handoff\",\"sessionId\":\"\",\"handoffId\":\"H\",\"fromAgent\":" from       \
    ",\"toAgent\":" to "}\n"

static void handoff_is_from_who_worked_last_only_for_steps_of_a_revision(void **state)
{
    static const char generated[] = "{\"type\":\"plan_generated\",\"seq\":1,\"planId\":\"P\","
                                    "\"planSeq\":1,\"estimatedSteps\":2}";
    static const char ran[] = "{\"type\":\"plan_step_started\",\"seq\":2,\"planId\":\"P\","
                              "\"planSeq\":2,\"stepId\":\"a\",\"stepIndex\":0,\"agentId\":\"calc\","
                              "\"agentName\":\"calcs\"}";
    static const char ended[] = "{\"type\":\"plan_step_completed\",\"seq\":3,\"planId\":\"P\","
                                "\"planSeq\":3,\"stepId\":\"a\",\"stepIndex\":0,"
                                "\"status\":\"completed\"}";
    static const struct {
        const char *events[5], *told;
    } cases[] = {
        {{generated, ran, ended, HANDOFF("4", "2", AGENT("supervisor"), AGENT("sql")), NULL},
         TOLD(AGENT("calc"), AGENT("sql"))},
        {{generated, ran, ended, HANDOFF("4", "1", AGENT("supervisor"), AGENT("sql")), NULL},
         TOLD(AGENT("supervisor"), AGENT("sql"))}, /* of the first plan */
        {{generated, ran, ended, HANDOFF("4", "2", AGENT("files"), AGENT("sql")), NULL},
         TOLD(AGENT("files"), AGENT("sql"))},
        {{generated, HANDOFF("4", "2", AGENT("supervisor"), AGENT("sql")), NULL},
         TOLD(AGENT("supervisor"), AGENT("sql"))}, /* nobody has worked */
        {{ran, ended, HANDOFF("4", "2", AGENT("supervisor"), AGENT("sql")), NULL},
         TOLD(AGENT("supervisor"), AGENT("sql"))}, /* how many steps it had is not known */
        {{generated, ran, ended, HANDOFF("4", "2", AGENT("supervisor"), AGENT("calc")), NULL}, ""},
        {{generated, HANDOFF("4", "0", AGENT("sql"), AGENT("sql")), NULL}, ""},
        {{generated, HANDOFF("4", "0", "\"x\"", AGENT("sql")), NULL},
         "{\"type\":\"agent_handoff\",\"sessionId\":\"\",\"handoffId\":\"H\"}\n"},
        {{generated, HANDOFF("4", "0", AGENT("sql"), "7"), NULL},
         "{\"type\":\"agent_handoff\",\"sessionId\":\"\",\"handoffId\":\"H\"}\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(executed(cases[i].events), cases[i].told);
    }
}

static void replan_without_its_number_adds_no_steps(void **state)
{
    static const char *const events[] = {
        "{\"type\":\"replan_finished\",\"seq\":1,\"planId\":\"P\",\"planSeq\":4,\"ok\":true,"
        "\"reason\":\"broken\"}",
        NULL};

    (void)state;
    assert_becomes("ai-sdk", events,
                   "{\"type\":\"replan\",\"reason\":\"broken\",\"newSteps\":0}\n");
}

#define REPLAN_OF(tsms)                                                                            \
    "{\"type\":\"replan_started\",\"seq\":7,\"planId\":\"P\",\"planSeq\":7,\"stepId\":\"b\","      \
    "\"stepIndex\":1,\"attempt\":1,\"diagnosis\":\"broken\",\"totalReplans\":1,\"tsMs\":" tsms "}"

/* Who comes after the step's start gets its end with the event, without the time of the replan. */
static void time_of_a_task_is_without_that_of_its_replan(void **state)
{
    static const char *const events[] = {
        REPLAN_OF("2000"),
        "{\"type\":\"plan_step_completed\",\"seq\":8,\"planId\":\"P\",\"planSeq\":8,\"stepId\":"
        "\"b\","
        "\"stepIndex\":1,\"status\":\"failed\",\"reason\":\"superseded\",\"error\":\"A revision of "
        "the plan does without it\",\"attempts\":1,\"durationMs\":205,\"tsMs\":2203}",
        NULL};

    (void)state;
    assert_becomes(
        "ptc-runner-telemetry", events,
        "{\"event\":[\"ptc_runner\",\"plan_executor\",\"replan\",\"start\"],\"planId\":"
        "\"P\",\"measurements\":{},\"metadata\":{\"task_id\":\"b\",\"diagnosis\":"
        "\"broken\"}}\n"
        "{\"event\":[\"ptc_runner\",\"plan_executor\",\"task\",\"stop\"],\"planId\":\"P\","
        "\"measurements\":{\"duration\":2000000},\"metadata\":{\"task_id\":\"b\","
        "\"status\":\"error\",\"result\":\"broken\"}}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_streams_become_their_golden_files),
        cmocka_unit_test(published_bytes_and_their_json_say_the_same),
        cmocka_unit_test(alias_gives_the_same_bytes_as_its_readable_name),
        cmocka_unit_test(names_that_are_listed_are_the_readable_ones),
        cmocka_unit_test(unknown_vocabulary_is_refused_with_those_that_there_are),
        cmocka_unit_test(what_is_no_event_is_refused_and_what_is_not_known_passes_by),
        cmocka_unit_test(event_that_comes_again_says_nothing),
        cmocka_unit_test(an_event_of_another_shard_is_no_repetition),
        cmocka_unit_test(what_was_learned_is_as_if_it_had_been_taken),
        cmocka_unit_test(only_a_plan_that_began_before_is_lacking),
        cmocka_unit_test(document_of_the_plan_tells_tool_and_arguments),
        cmocka_unit_test(steps_of_the_largest_plan_are_found),
        cmocka_unit_test(what_was_read_of_a_document_is_counted_and_goes_with_its_plan),
        cmocka_unit_test(who_comes_in_the_middle_hears_what_is_known),
        cmocka_unit_test(turn_lasts_from_its_start_to_its_end_with_the_planning),
        cmocka_unit_test(turn_of_a_plan_ends_with_the_plan_and_not_at_turn_end),
        cmocka_unit_test(answer_of_an_agent_is_told_whole_to_who_heard_no_piece_of_it),
        cmocka_unit_test(only_what_somebody_planned_is_told_as_planned),
        cmocka_unit_test(result_that_is_json_is_told_as_that),
        cmocka_unit_test(revision_is_told_by_the_rows_of_its_document),
        cmocka_unit_test(plan_that_nobody_could_make_is_the_interrupt_of_the_orchestrator_log),
        cmocka_unit_test(handoff_is_from_who_worked_last_only_for_steps_of_a_revision),
        cmocka_unit_test(replan_without_its_number_adds_no_steps),
        cmocka_unit_test(time_of_a_task_is_without_that_of_its_replan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
