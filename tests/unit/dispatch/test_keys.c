/* Keys: one spelling for each thing that an agent is asked. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/trace.h"
#include "supervisor/dispatch/keys.h"
#include "supervisor/engine/open_plan.h"
#include "tests/support/house/house.h"

static struct {
    struct house *h;
    const char *id;
    const struct lane_instance *in;
} w;

static void open_world(void)
{
    const struct house_agent *a;

    w.h = house_open();
    a = house_join(w.h, "calc", 1);
    w.in = lanes_instance(w.h->engine, 0, a->epoch);
    assert_non_null(w.in);
    w.id = house_submit(w.h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                             "'do','task':'t'},{'stepId':'b','agentId':'calc','skill':'do','task':"
                             "'t'}]}");
    (void)house_work(w.h, "calc", NULL);
}

static bool finds(const char *rest, uint32_t *ret_step, enum step_phase *ret_phase)
{
    const char *key = house_text(w.h, "%s%s", w.id, rest);
    uint64_t run = 0;
    const bool found = key_find(w.h->engine, w.in, str_from(key), &run, ret_step, ret_phase);

    assert_true(!found || run == open_plan_by_id(w.h->engine, str_from(w.id))->run);
    return found;
}

static void a_key_names_a_step_and_what_is_asked_about_it(void **state)
{
    static const struct {
        const char *rest;
        uint32_t step;
        enum step_phase phase;
    } all[] = {
        {"/1/a", 0, PHASE_EXECUTE},       {"/1/b", 1, PHASE_EXECUTE},
        {"/1/a/gate", 0, PHASE_GATE},     {"/1/b/verify", 1, PHASE_VERIFY},
        {"/1/b/search", 1, PHASE_SEARCH}, {"/1/a/replan", 0, PHASE_REPLAN},
        {"/1/a/turn2", 0, PHASE_EXECUTE}, {"/1/b/turn9999", 1, PHASE_EXECUTE},
    };

    (void)state;
    open_world();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        uint32_t step = UINT32_MAX;
        enum step_phase phase = STEP_PHASE_COUNT;
        if (!finds(all[i].rest, &step, &phase)) {
            fail_msg("%s is not found", all[i].rest);
        }
        assert_int_equal(step, all[i].step);
        assert_int_equal(phase, all[i].phase);
    }
    house_close(w.h);
}

static void any_other_spelling_is_no_key(void **state)
{
    static const char *const bad[] = {
        "",
        "/",
        "/1",
        "/1/",
        "/1/c",
        "/2/a",
        "/01/a",
        "/0/a",
        "/1/a/",
        "/1/a/execute",
        "/1/a/turn1",
        "/1/a/turn0",
        "/1/a/turn",
        "/1/a/turn02",
        "/1/a/turn2x",
        "/1/a/turn10000",
        "/1/a/Turn2",
        "/1/a/tern2",
        "/1/a/gate/gate",
        "-1/a",
        "/x/a",
        "/1a",
        "/1000001/a",
        "/1/a/turn:",
        "/1/a/turn/",
    };
    uint32_t step;
    enum step_phase phase;
    char key[80];
    uint64_t run;

    (void)state;
    open_world();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (finds(bad[i], &step, &phase)) {
            fail_msg("%s is found", bad[i]);
        }
    }
    (void)snprintf(key, sizeof key, "%s/1/a", w.id); /* the id in other letters */
    for (char *at = key; at < key + UUID_TEXT_LEN; at++) {
        *at = (char)(*at >= 'A' && *at <= 'F' ? *at - 'A' + 'a' : *at);
    }
    assert_false(key_find(w.h->engine, w.in, str_from(key), &run, &step, &phase));
    (void)snprintf(key, sizeof key, "%s/1/a", "01A22422-DB66-70A6-941C-80BD413C0245");
    assert_false(key_find(w.h->engine, w.in, str_from(key), &run, &step, &phase));
    house_close(w.h);
}

static void a_key_that_is_made_is_found_again(void **state)
{
    const struct open_plan *p;

    (void)state;
    open_world();
    p = open_plan_by_id(w.h->engine, str_from(w.id));
    for (uint32_t turns = 0; turns <= 1; turns++) {
        for (enum step_phase asked = PHASE_EXECUTE; asked < STEP_PHASE_COUNT; asked++) {
            char key[LIMIT_KEY_BYTES + 1];
            uint32_t step = UINT32_MAX;
            enum step_phase phase = STEP_PHASE_COUNT;
            uint64_t run = 0;
            step_key(p->plan, p->plan_id, 1, asked, turns, key);
            assert_true(key_find(w.h->engine, w.in, str_from(key), &run, &step, &phase));
            assert_int_equal(step, 1);
            assert_int_equal(phase, asked);
            if (asked == PHASE_EXECUTE) {
                assert_string_equal(key + UUID_TEXT_LEN, turns == 0 ? "/1/b" : "/1/b/turn2");
            }
        }
    }
    house_close(w.h);
}

/* "00-<trace>-<span>-01" of the plan's own trace. */
static void expect_trace(const struct open_plan *p, uint64_t span, const char *got)
{
    char want[TRACEPARENT_LEN + 1];
    size_t n = (size_t)snprintf(want, sizeof want, "00-");

    for (size_t i = 0; i < sizeof p->plan_id.b; i++) {
        n += (size_t)snprintf(want + n, sizeof want - n, "%02x", p->plan_id.b[i]);
    }
    (void)snprintf(want + n, sizeof want - n, "-%016llx-01", (unsigned long long)span);
    assert_string_equal(got, want);
}

static void what_an_agent_does_is_within_its_attempt_and_a_question_within_its_step(void **state)
{
    const struct open_plan *p;
    struct str id;
    char got[TRACEPARENT_LEN + 1];

    (void)state;
    open_world();
    p = open_plan_by_id(w.h->engine, str_from(w.id));
    id = (struct str){p->id, UUID_TEXT_LEN};
    step_traceparent(p, 1, PHASE_EXECUTE, 2, got);
    expect_trace(p, trace_span(id, TRACE_ATTEMPT, 1, 2), got);
    step_traceparent(p, 1, PHASE_VERIFY, 2, got);
    expect_trace(p, trace_span(id, TRACE_ATTEMPT, 1, 2), got);
    step_traceparent(p, 1, PHASE_GATE, 2, got);
    expect_trace(p, trace_span(id, TRACE_STEP, 1, 0), got);
    step_traceparent(p, 1, PHASE_REPLAN, 2, got);
    expect_trace(p, trace_span(id, TRACE_STEP, 1, 0), got);
    assert_true(trace_span(id, TRACE_ATTEMPT, 1, 2) != trace_span(id, TRACE_ATTEMPT, 1, 1));
    assert_true(trace_span(id, TRACE_ATTEMPT, 1, 2) != trace_span(id, TRACE_ATTEMPT, 2, 2));
    house_close(w.h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_names_a_step_and_what_is_asked_about_it),
        cmocka_unit_test(any_other_spelling_is_no_key),
        cmocka_unit_test(a_key_that_is_made_is_found_again),
        cmocka_unit_test(what_an_agent_does_is_within_its_attempt_and_a_question_within_its_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
