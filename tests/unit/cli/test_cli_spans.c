/* When a plan waited, read from its events. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/cli/view/spans.h"
#include "tests/support/cmocka.h"

/* Events at 100 ms, 200 ms, ...; the spans of a row as "from-to ", of its kind alone. */
static void spans_are(const char *row, enum timeline_kind kind, const char *const *events,
                      const char *expected)
{
    cJSON *view = cJSON_Parse("{\"steps\":[{\"stepId\":\"a\",\"stepIndex\":0}]}");
    struct spans *s = spans_new(view, true);
    const struct timeline *t;
    char said[200] = "";
    double now = 0;

    assert_non_null(s);
    for (; *events != NULL; events++) {
        cJSON *event = cJSON_Parse(*events);
        assert_non_null(event);
        now += 100;
        (void)cJSON_AddNumberToObject(event, "tsMs", now);
        spans_event(s, event);
        cJSON_Delete(event);
    }
    t = spans_end(s, now);
    assert_non_null(t);
    for (uint32_t i = 0; i < t->n_spans; i++) {
        const size_t n = strlen(said);
        if (strcmp(t->rows[t->spans[i].row].name, row) == 0 && t->spans[i].kind == kind) {
            (void)snprintf(said + n, sizeof said - n, "%.0f-%.0f ", t->spans[i].from,
                           t->spans[i].to);
        }
    }
    assert_string_equal(said, expected);
    spans_free(s);
    cJSON_Delete(view);
}

static void paused_are(const char *const *events, const char *expected)
{
    spans_are("(paused)", TIMELINE_PERSON, events, expected);
}

#define SIGNOFF "{\"type\":\"plan_paused\",\"reason\":\"signoff\",\"reviewId\":\"P/r1\"}"

static void a_decision_about_the_plan_ends_its_pause(void **state)
{
    (void)state;
    paused_are((const char *[]){"{\"type\":\"plan_generated\"}", SIGNOFF,
                                "{\"type\":\"review_decided\",\"reviewId\":\"P/r1\"}",
                                "{\"type\":\"plan_started\"}", "{\"type\":\"plan_completed\"}",
                                NULL},
               "100-200 ");
    paused_are((const char *[]){"{\"type\":\"plan_generated\"}",
                                "{\"type\":\"plan_paused\",\"reason\":\"requested\"}", SIGNOFF,
                                "{\"type\":\"review_decided\",\"reviewId\":\"P/a/r2\","
                                "\"stepId\":\"a\",\"stepIndex\":0}",
                                "{\"type\":\"review_decided\",\"reviewId\":\"P/r1\"}",
                                "{\"type\":\"plan_resumed\",\"reason\":\"requested\"}",
                                "{\"type\":\"plan_completed\"}", NULL},
               "100-500 ");
}

static void a_void_sign_off_is_no_pause(void **state)
{
    (void)state;
    paused_are((const char *[]){"{\"type\":\"plan_generated\"}", SIGNOFF,
                                "{\"type\":\"review_voided\",\"reviewId\":\"P/r1\"}",
                                "{\"type\":\"plan_modified\",\"revision\":2}",
                                "{\"type\":\"plan_completed\"}", NULL},
               "100-200 ");
}

static void a_wait_and_a_pause_between_rounds_are_no_work(void **state)
{
    static const char *const waits[] = {
        "{\"type\":\"plan_generated\"}",
        "{\"type\":\"plan_started\"}",
        "{\"type\":\"plan_step_started\",\"stepId\":\"a\",\"stepIndex\":0}",
        "{\"type\":\"wait_started\",\"stepId\":\"a\",\"stepIndex\":0,\"kind\":\"signal\"}",
        "{\"type\":\"signal_received\"}",
        "{\"type\":\"plan_step_completed\",\"stepId\":\"a\",\"stepIndex\":0}",
        "{\"type\":\"plan_completed\"}",
        NULL};
    static const char *const rounds[] = {
        "{\"type\":\"plan_generated\"}",
        "{\"type\":\"plan_started\"}",
        "{\"type\":\"plan_step_started\",\"stepId\":\"a\",\"stepIndex\":0}",
        "{\"type\":\"plan_step_round\",\"stepId\":\"a\",\"stepIndex\":0,\"delayMs\":150}",
        "{\"type\":\"plan_resumed\"}",
        "{\"type\":\"plan_step_completed\",\"stepId\":\"a\",\"stepIndex\":0}",
        "{\"type\":\"plan_completed\"}",
        NULL};
    static const char *const calls[] = {
        "{\"type\":\"plan_generated\"}",
        "{\"type\":\"plan_started\"}",
        "{\"type\":\"plan_step_started\",\"stepId\":\"a\",\"stepIndex\":0}",
        "{\"type\":\"calls_started\",\"stepId\":\"a\",\"stepIndex\":0,\"turn\":1,\"calls\":2}",
        "{\"type\":\"calls_finished\",\"stepId\":\"a\",\"stepIndex\":0,\"turn\":1}",
        "{\"type\":\"plan_step_completed\",\"stepId\":\"a\",\"stepIndex\":0}",
        "{\"type\":\"plan_completed\"}",
        NULL};

    (void)state;
    spans_are("a", TIMELINE_RUNNING, calls, "200-300 400-500 ");
    spans_are("a", TIMELINE_WAITING, calls, "300-400 ");
    spans_are("a", TIMELINE_WAITING, waits, "300-500 ");
    spans_are("a", TIMELINE_RUNNING, waits, "200-300 ");
    spans_are("a", TIMELINE_RUNNING, rounds, "200-300 450-500 ");
    spans_are("a", TIMELINE_WAITING, rounds, "300-450 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decision_about_the_plan_ends_its_pause),
        cmocka_unit_test(a_void_sign_off_is_no_pause),
        cmocka_unit_test(a_wait_and_a_pause_between_rounds_are_no_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
