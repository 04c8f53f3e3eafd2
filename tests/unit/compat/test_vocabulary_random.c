/*
 * Hostile and broken streams: every output is one strict JSON object, and the state stays within
 * its caps.
 */
#include "protocol/compat/compat_internal.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/unit/compat/streams.h"

enum { EVENTS_MAX = 4000, ROUNDS = 60, MADE = 20000 };

static void take(struct bt_vocabulary *v, const char *event)
{
    const struct json_limits limits = {.bytes = 1 << 26, .depth = 32, .nodes = 1 << 20};
    struct bt_translated translated;
    struct bt_error err;
    struct buf doc;

    if (bt_vocabulary_take(v, event, strlen(event), &err) != BT_OK) {
        fail_msg("%s: %s", event, err.msg);
    }
    while (bt_vocabulary_next(v, &translated)) {
        buf_init(&doc, 1 << 28);
        if (json_to_doc(str_from(translated.json), &limits, &doc, &err) != BT_OK ||
            strchr(translated.json, '\n') != NULL || translated.json[0] != '{' ||
            translated.type[0] == 0) {
            fail_msg("%s\nbecame %s: %s", event, translated.json, err.msg);
        }
        buf_done(&doc);
    }
    assert_true(v->n_plans <= COMPAT_PLANS && v->n_turns <= COMPAT_TURNS);
    assert_true(v->bytes <= COMPAT_BYTES);
}

/* Recorded streams, mixed, with some events missing, doubled or in another place. */
static void recorded_streams_cut_doubled_and_shuffled(void **state)
{
    static struct stream streams[STREAMS_MAX];
    static const char *events[EVENTS_MAX];
    struct rng rng = rng_seeded("recorded_streams_cut_doubled_and_shuffled");
    const size_t n = streams_read(streams);

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = 0;
        for (size_t i = 0; i < n; i++) {
            for (size_t line = 0; line < streams[i].n; line++) {
                uint32_t times = rng_below(&rng, 10) == 0 ? 0 : 1 + (rng_below(&rng, 10) == 0);
                for (; times > 0 && at < EVENTS_MAX; times--) {
                    events[at++] = streams[i].lines[line];
                }
            }
        }
        for (size_t swaps = rng_below(&rng, round % 3 == 0 ? 4000 : 8); swaps > 0; swaps--) {
            const size_t a = rng_below(&rng, (uint32_t)at);
            const size_t b = rng_below(&rng, (uint32_t)at);
            const char *was = events[a];
            events[a] = events[b];
            events[b] = was;
        }
        for (const char *const *name = bt_vocabulary_names(); *name != NULL; name++) {
            struct bt_vocabulary *v = NULL;
            assert_int_equal(bt_vocabulary_new(*name, &v, NULL), BT_OK);
            for (size_t i = 0; i < at; i++) {
                v->last_seq[0] =
                    round % 2 == 0 ? 0 : v->last_seq[0]; /* also events that come too late */
                take(v, events[i]);
            }
            bt_vocabulary_free(v);
        }
    }
    streams_free(streams, n);
}

static void add_member(struct rng *rng, struct buf *out)
{
    static const char *const names[] = {
        "stepId",  "stepIndex",  "agentId",       "agentName",        "task",      "result",
        "error",   "status",     "reason",        "summary",          "steps",     "newSteps",
        "ok",      "totalSteps", "diagnosis",     "totalReplans",     "missing",   "text",
        "index",   "durationMs", "attempts",      "attempt",          "turnId",    "turnPlanId",
        "message", "action",     "sessionId",     "timestamp",        "query",     "goal",
        "eventId", "fromAgent",  "toAgent",       "validationErrors", "synthesis", "stepCount",
        "tsMs",    "planSeq",    "failureReason", "estimatedSteps",   "percent",   "data",
    };
    static const char *const values[] = {
        "\"completed\"",
        "\"failed\"",
        "\"skipped\"",
        "\"review\"",
        "\"superseded\"",
        "\"a\"",
        "\"new_plan\"",
        "\"already_completed\"",
        "\"\"",
        "true",
        "false",
        "null",
        "-1",
        "1.5",
        "0",
        "1",
        "2",
        "3",
        "18446744073709551615",
        "4294967296",
        "[]",
        "{}",
        "[1,{\"stepId\":\"a\"},{}]",
        "{\"agentId\":\"a\"}",
        "\"T1\"",
        "\"P1\"",
        "\"\\u0001\\u001b[2J\\\"\\\\\\n\"",
        "\"\xe2\x82\xac\xf0\x9f\x98\x80\"",
        "\"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
        "89012345678901234567890123456789012345678901234567890123456789012345678901234567890123456"
        "\xe2\x82\xac\"",
    };
    buf_printf(out, ",\"%s\":%s", names[rng_below(rng, sizeof names / sizeof names[0])],
               values[rng_below(rng, sizeof values / sizeof values[0])]);
}

static void make_event(struct rng *rng, struct buf *out)
{
    static const char *const types[] = {"planning_started",
                                        "planning_retry",
                                        "planning_failed",
                                        "plan_generated",
                                        "plan_started",
                                        "plan_step_started",
                                        "plan_step_started",
                                        "plan_step_completed",
                                        "plan_step_completed",
                                        "plan_step_progress",
                                        "plan_step_verification_failed",
                                        "plan_step_waiting",
                                        "plan_paused",
                                        "plan_resumed",
                                        "plan_modified",
                                        "quality_gate_started",
                                        "quality_gate_passed",
                                        "quality_gate_failed",
                                        "quality_gate_error",
                                        "replan_started",
                                        "replan_finished",
                                        "agent_handoff",
                                        "synthesis_started",
                                        "synthesis_retry",
                                        "synthesis_finished",
                                        "text_delta",
                                        "plan_completed",
                                        "turn_start",
                                        "turn_end",
                                        "agent_up",
                                        "nothing_known"};
    const uint32_t kind = rng_below(rng, 20);

    buf_clear(out);
    buf_printf(out, "{\"type\":\"%s\"", types[rng_below(rng, sizeof types / sizeof types[0])]);
    if (kind > 2) {
        buf_printf(out, ",\"planId\":\"P%u\"", rng_below(rng, kind < 10 ? 3 : 3000));
    }
    for (uint32_t n = rng_below(rng, 12); n > 0; n--) {
        add_member(rng, out);
    }
    buf_add_byte(out, '}');
}

/* Events with any members of any kind. A duplicate key makes it no event. */
static void made_up_events(void **state)
{
    struct rng rng = rng_seeded("made_up_events");
    struct bt_vocabulary *all[8] = {0};
    struct buf event;
    size_t n = 0;

    (void)state;
    for (const char *const *name = bt_vocabulary_names(); *name != NULL; name++) {
        assert_int_equal(bt_vocabulary_new(*name, &all[n++], NULL), BT_OK);
    }
    buf_init(&event, 1 << 16);
    for (int i = 0; i < MADE; i++) {
        struct buf doc;
        make_event(&rng, &event);
        buf_init(&doc, 1 << 16);
        const bool seen_from_start = json_to_doc(buf_str(&event), NULL, &doc, NULL) == BT_OK;
        buf_done(&doc);
        for (size_t k = 0; k < n && seen_from_start; k++) {
            take(all[k], buf_cstr(&event));
        }
    }
    for (size_t k = 0; k < n; k++) {
        bt_vocabulary_free(all[k]);
    }
    buf_done(&event);
}

/* Plans that never end, turns that never end, results that are all kept. */
static void memory_has_an_end(void **state)
{
    static char text[1000];
    struct buf event;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    buf_init(&event, 1 << 16);
    for (const char *const *name = bt_vocabulary_names(); *name != NULL; name++) {
        struct bt_vocabulary *v = NULL;
        assert_int_equal(bt_vocabulary_new(*name, &v, NULL), BT_OK);
        for (int i = 0; i < 3 * COMPAT_PLANS; i++) {
            buf_clear(&event);
            buf_printf(&event, "{\"type\":\"plan_generated\",\"planId\":\"P%d\",\"query\":\"%s\"}",
                       i, text);
            take(v, buf_cstr(&event));
            buf_clear(&event);
            buf_printf(&event, "{\"type\":\"turn_start\",\"turnId\":\"T%d\"}", i);
            take(v, buf_cstr(&event));
        }
        assert_int_equal(v->n_plans, COMPAT_PLANS);
        for (int i = 0; i < 20000; i++) { /* one plan has more results than one may have */
            buf_clear(&event);
            buf_printf(&event,
                       "{\"type\":\"plan_step_completed\",\"planId\":\"long\",\"stepId\":\"s%d\","
                       "\"stepIndex\":%d,\"status\":\"completed\",\"result\":\"%s\"}",
                       i, i, text);
            take(v, buf_cstr(&event));
        }
        struct compat_plan *p = compat_plan_find(v, STR_LIT("long"));
        assert_non_null(p);
        assert_true(p->bytes <= COMPAT_PLAN_BYTES);
        take(v, "{\"type\":\"plan_completed\",\"planId\":\"long\",\"status\":\"completed\"}");
        assert_null(compat_plan_find(v, STR_LIT("long")));
        bt_vocabulary_free(v);
    }
    buf_done(&event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_streams_cut_doubled_and_shuffled),
        cmocka_unit_test(made_up_events),
        cmocka_unit_test(memory_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
