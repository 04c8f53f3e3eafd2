/* Hostile documents: a typed rejection or the plan; never a crash, a hang or a leak. */
#include "fixture.h"

#include "protocol/base/clock.h"
#include "protocol/wire/mp_validate.h"

#define TASK "'task':'do something worth doing'"
#define STEP(id, more) "{'stepId':'" id "','agentId':'calc'," TASK more "}"

static void refused(struct bench *b, const char *json, enum problem_category c)
{
    assert_int_equal(read_json(b, json), BT_INVALID);
    for (uint32_t i = 0; i < b->problems.n; i++) {
        if (b->at[i].category == c && !b->at[i].warning) {
            return;
        }
    }
    fail_msg("%s: no %s, but %s", json, problem_category_name(c), problem_of(b, 0));
}

static void no_steps(void **state)
{
    struct bench *b = *state;
    refused(b, "{'steps':[]}", PROBLEM_EMPTY_PLAN);
    refused(b, "{}", PROBLEM_EMPTY_PLAN);
    refused(b, "{'steps':null}", PROBLEM_EMPTY_PLAN);
    refused(b, "[]", PROBLEM_EMPTY_PLAN);
    refused(b, "{'steps':{}}", PROBLEM_INVALID_FIELD);
    refused(b, "{'steps':'a'}", PROBLEM_INVALID_FIELD);
    refused(b, "7", PROBLEM_INVALID_FIELD);
    refused(b, "null", PROBLEM_INVALID_FIELD);
    refused(b, "'steps'", PROBLEM_INVALID_FIELD);
    refused(b, "{'phases':[7,{},{'tasks':1}]}", PROBLEM_INVALID_FIELD);
}

static void doubled_step_ids(void **state)
{
    struct bench *b = *state;
    add_house(b);
    refused(b, "{'steps':[" STEP("a", "") "," STEP("a", "") "]}", PROBLEM_DUPLICATE_ID);
    refused(b, "{'steps':[{'id':1,'agent':'calc'," TASK "},{'id':'1','agent':'calc'," TASK "}]}",
            PROBLEM_DUPLICATE_ID);
}

static void cycles(void **state)
{
    struct bench *b = *state;
    add_house(b);
    refused(b,
            "{'steps':[" STEP("a", ",'dependsOn':['b']") "," STEP("b", ",'dependsOn':['a']") "]}",
            PROBLEM_CYCLE_DETECTED);
    refused(b, "{'steps':[" STEP("a", ",'dependsOn':['a']") "]}", PROBLEM_CYCLE_DETECTED);
}

static void dependency_on_an_unknown_step(void **state)
{
    struct bench *b = *state;
    add_house(b);
    refused(b, "{'steps':[" STEP("a", ",'dependsOn':['x']") "]}", PROBLEM_MISSING_DEPENDENCY);
    refused(b, "{'steps':[" STEP("a", ",'dependsOn':[{}]") "]}", PROBLEM_INVALID_FIELD);
    refused(b, "{'steps':[" STEP("a", ",'dependsOn':{'b':1}") "]}", PROBLEM_INVALID_FIELD);
}

static void timeouts(void **state)
{
    struct bench *b = *state;
    static const char *const bad[] = {
        "-1",     "2147483648", "9223372036854775808", "'60s'", "1e300", "0.5", "true", "[]",
        "-0.001", "'NaN'"};
    add_house(b);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char json[300];
        (void)snprintf(json, sizeof json,
                       "{'steps':[{'stepId':'a','agentId':'calc'," TASK ",'timeoutMs':%s}]}",
                       bad[i]);
        refused(b, json, PROBLEM_INVALID_FIELD);
        (void)snprintf(json, sizeof json,
                       "{'policy':{'planTimeoutMs':%s},'steps':[" STEP("a", "") "]}", bad[i]);
        refused(b, json, PROBLEM_INVALID_FIELD);
    }
    assert_int_equal(read_json(b, "{'steps':[" STEP("a", ",'timeoutMs':0") "]}"), BT_OK);
    assert_int_equal(read_json(b, "{'steps':[" STEP("a", ",'timeoutMs':5.0") "]}"), BT_OK);
}

/* JSON has no NaN, and mp_validate rejects it in msgpack. The reader does not rely on that. */
static void a_timeout_that_is_not_a_number(void **state)
{
    struct bench *b = *state;
    struct buf plan;
    add_house(b);
    buf_init(&plan, 1000);
    doc_put_map(&plan, 2);
    doc_put_cstr(&plan, "policy");
    doc_put_map(&plan, 2);
    doc_put_cstr(&plan, "stepTimeoutMs");
    doc_put_f64(&plan, __builtin_nan(""));
    doc_put_cstr(&plan, "backoff");
    doc_put_map(&plan, 1);
    doc_put_cstr(&plan, "jitter");
    doc_put_f64(&plan, __builtin_nan(""));
    doc_put_cstr(&plan, "steps");
    doc_put_array(&plan, 1);
    doc_put_cstr(&plan, "x");
    assert_int_equal(read_doc(b, doc_from_buf(&plan)), BT_INVALID);
    assert_string_equal(b->at[0].field, "policy.backoff.jitter");
    assert_string_equal(b->at[1].field, "policy.stepTimeoutMs");
    buf_done(&plan);
}

static void retries(void **state)
{
    struct bench *b = *state;
    add_house(b);
    refused(b, "{'steps':[" STEP("a", ",'maxRetries':-1") "]}", PROBLEM_INVALID_FIELD);
    refused(b, "{'steps':[" STEP("a", ",'maxRetries':4294967296") "]}", PROBLEM_INVALID_FIELD);
    refused(b, "{'steps':[" STEP("a", ",'maxRetries':100") "]}", PROBLEM_INVALID_FIELD);
    refused(b, "{'policy':{'maxConcurrency':0},'steps':[" STEP("a", "") "]}",
            PROBLEM_INVALID_FIELD);
    refused(b, "{'policy':7,'steps':[" STEP("a", "") "]}", PROBLEM_INVALID_FIELD);
}

static void the_inside_of_unknown_fields_is_not_read(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'extra':{'priority':1},'steps':[" STEP(
                                      "a", ",'more':{'dependsOn':['x'],'timeout':5}") "]}"),
                     BT_INVALID);
    assert_int_equal(b->problems.total, 2);
    b->lenient = true;
    assert_int_equal(read_json(b, "{'extra':{'priority':1},'steps':[" STEP(
                                      "a", ",'more':{'dependsOn':['x'],'timeout':5}") "]}"),
                     BT_OK);
    assert_true(b->plan->chain);
    assert_int_equal(b->plan->steps[0].rules->policy.timeout_ms, 60000);
    assert_int_equal(b->problems.total, 2);
}

static void ids_of_other_types(void **state)
{
    struct bench *b = *state;
    struct buf plan;
    add_house(b);
    refused(b, "{'steps':[{'stepId':1.5,'agentId':'calc'," TASK "}]}", PROBLEM_INVALID_FIELD);
    refused(b, "{'steps':[{'stepId':[],'agentId':'calc'," TASK "}]}", PROBLEM_INVALID_FIELD);
    refused(b, "{'steps':[{'stepId':'','agentId':'calc'," TASK "}]}", PROBLEM_INVALID_FIELD);
    refused(b, "{'steps':[{'stepId':'a b','agentId':'calc'," TASK "}]}", PROBLEM_INVALID_FIELD);
    refused(b, "{'steps':[{'stepId':'a','agentId':7," TASK "}]}", PROBLEM_INVALID_FIELD);
    /* mp_validate rejects binary bytes for a string and integer keys; the reader survives them */
    buf_init(&plan, 1000);
    doc_put_map(&plan, 1);
    doc_put_cstr(&plan, "steps");
    doc_put_array(&plan, 2);
    doc_put_map(&plan, 2);
    doc_put_cstr(&plan, "stepId");
    doc_put_bin(&plan, "a", 1);
    doc_put_cstr(&plan, "task");
    doc_put_bin(&plan, "abc", 3);
    doc_put_map(&plan, 1);
    doc_put_u64(&plan, 1);
    doc_put_u64(&plan, 2);
    assert_int_equal(read_doc(b, doc_from_buf(&plan)), BT_INVALID);
    buf_done(&plan);
}

static void a_long_id_and_a_long_task(void **state)
{
    struct bench *b = *state;
    char *json = malloc(20000);
    assert_non_null(json);
    add_house(b);
    (void)snprintf(json, 20000, "{'steps':[{'stepId':'%065d','agentId':'calc'," TASK "}]}", 7);
    refused(b, json, PROBLEM_LIMIT);
    (void)snprintf(json, 20000, "{'steps':[{'stepId':'a','agentId':'calc','task':'%09000d'}]}", 7);
    refused(b, json, PROBLEM_LIMIT);
    (void)snprintf(json, 20000, "{'goal':'%09000d','steps':[" STEP("a", "") "]}", 7);
    refused(b, json, PROBLEM_LIMIT);
    (void)snprintf(json, 20000, "{'sessionId':'%065d','steps':[" STEP("a", "") "]}", 7);
    refused(b, json, PROBLEM_LIMIT);
    free(json);
}

/* ---- sizes ---- */

static void put_step(struct buf *plan, uint32_t i, uint32_t deps_from, uint32_t deps_n)
{
    char id[16];
    doc_put_map(plan, 4);
    doc_put_cstr(plan, "stepId");
    (void)snprintf(id, sizeof id, "s%u", i);
    doc_put_cstr(plan, id);
    doc_put_cstr(plan, "agentId");
    doc_put_cstr(plan, "calc");
    doc_put_cstr(plan, "task");
    doc_put_cstr(plan, "do something worth doing");
    doc_put_cstr(plan, "dependsOn");
    doc_put_array(plan, deps_n);
    for (uint32_t d = 0; d < deps_n; d++) {
        (void)snprintf(id, sizeof id, "s%u", deps_from + d);
        doc_put_cstr(plan, id);
    }
}

static struct buf plan_of(uint32_t steps)
{
    struct buf plan;
    buf_init(&plan, 16 * 1024 * 1024);
    doc_put_map(&plan, 1);
    doc_put_cstr(&plan, "steps");
    doc_put_array(&plan, steps);
    return plan;
}

static void a_chain_of_10000_dependencies_is_read_in_time(void **state)
{
    struct bench *b = *state;
    struct buf plan = plan_of(10000);
    add_house(b);
    for (uint32_t i = 0; i < 10000; i++) {
        put_step(&plan, i, i - 1, i == 0 ? 0 : 1);
    }
    const uint64_t start = clock_thread_ns();
    assert_int_equal(read_doc(b, doc_from_buf(&plan)), BT_OK);
    assert_true(clock_thread_ns() - start < 5000000000u); /* some 30 ms in a release build */
    assert_int_equal(b->plan->n_edges, 9999);
    buf_done(&plan);
}

static void a_fan_in_of_9999_dependencies_is_read(void **state)
{
    struct bench *b = *state;
    struct buf plan = plan_of(10000);
    add_house(b);
    for (uint32_t i = 0; i < 10000; i++) {
        put_step(&plan, i, 0, i == 9999 ? 9999 : 0);
    }
    assert_int_equal(read_doc(b, doc_from_buf(&plan)), BT_OK);
    assert_int_equal(b->plan->steps[9999].deps_n, 9999);
    buf_done(&plan);
}

static void more_steps_or_dependencies_than_the_limits_are_refused(void **state)
{
    struct bench *b = *state;
    struct buf plan = plan_of(10001);
    add_house(b);
    for (uint32_t i = 0; i < 10001; i++) {
        put_step(&plan, i, 0, 0);
    }
    assert_int_equal(read_doc(b, doc_from_buf(&plan)), BT_INVALID);
    assert_int_equal(b->problems.errors, 1);
    assert_int_equal(b->at[0].category, PROBLEM_LIMIT);
    buf_done(&plan);
    plan = plan_of(60);
    for (uint32_t i = 0; i < 60; i++) {
        put_step(&plan, i, 0, 2000);
    }
    assert_int_equal(read_doc(b, doc_from_buf(&plan)), BT_INVALID);
    bool limit = false;
    for (uint32_t i = 0; i < b->problems.n; i++) {
        limit = limit || b->at[i].category == PROBLEM_LIMIT;
    }
    assert_true(limit);
    buf_done(&plan);
}

static void a_map_of_60000_unknown_fields_is_read_in_time(void **state)
{
    struct bench *b = *state;
    struct buf plan = plan_of(1);
    add_house(b);
    doc_put_map(&plan, 60000);
    for (uint32_t i = 0; i < 60000; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%u", i);
        doc_put_cstr(&plan, key);
        doc_put_u64(&plan, i);
    }
    const uint64_t start = clock_thread_ns();
    assert_int_equal(read_doc(b, doc_from_buf(&plan)), BT_INVALID);
    b->lenient = true;
    assert_int_equal(read_doc(b, doc_from_buf(&plan)), BT_INVALID);
    assert_true(clock_thread_ns() - start < 5000000000u);
    buf_done(&plan);
}

static void nothing_of_a_name_reaches_the_terminal_raw(void **state)
{
    struct bench *b = *state;
    assert_int_equal(read_json(b, "{'steps':[{'stepId':'\\u001b[2Jx','agentId':'\\u001b[31m',"
                                  "'\\u001b[0m':1," TASK "}]}"),
                     BT_INVALID);
    for (uint32_t i = 0; i < b->problems.n; i++) {
        assert_null(strchr(problem_of(b, i), '\x1b'));
    }
}

/* Every prefix and every flipped byte of a valid plan that mp_validate accepts is read or rejected.
 */
static void damaged_documents_are_read_or_refused(void **state)
{
    struct bench *b = *state;
    add_house(b);
    const struct doc good = doc_of(
        b, "{'goal':'g','policy':{'backoff':{'kind':'fixed','jitter':0.5},'maxRetries':1},'steps':["
           "{'stepId':'a','agentId':'files','skill':'read'," TASK ",'parameters':{'path':'x'}},"
           "{'id':2,'agent':'calc'," TASK ",'dependsOn':['a'],'parameters':{'t':'{{results.a}}'},"
           "'verify':{'type':'object'}}]}");
    const struct plan_defaults defaults = plan_defaults_builtin();
    uint32_t passed = 0;
    for (size_t at = 0; at < good.len; at++) {
        for (uint32_t bit = 0; bit < 9; bit++) {
            /* bit 8: cut here */
            const size_t len = bit == 8 ? at : good.len;
            uint8_t *bytes = malloc(len + 1);
            struct arena arena = {0};
            struct plan *plan = NULL;
            assert_non_null(bytes);
            memcpy(bytes, good.ptr, len);
            if (bit < 8) {
                bytes[at] = (uint8_t)(bytes[at] ^ (1u << bit));
            }
            if (mp_validate(bytes, len, NULL, NULL) == BT_OK) {
                b->problems = (struct problems){.at = b->at, .cap = 100};
                passed += plan_read((struct doc){bytes, len}, &defaults, b->registry, &arena, &plan,
                                    &b->problems, NULL, &b->err) == BT_OK;
            }
            arena_done(&arena);
            free(bytes);
        }
    }
    assert_true(passed > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(no_steps),
        RULE(doubled_step_ids),
        RULE(cycles),
        RULE(dependency_on_an_unknown_step),
        RULE(timeouts),
        RULE(a_timeout_that_is_not_a_number),
        RULE(retries),
        RULE(the_inside_of_unknown_fields_is_not_read),
        RULE(ids_of_other_types),
        RULE(a_long_id_and_a_long_task),
        RULE(a_chain_of_10000_dependencies_is_read_in_time),
        RULE(a_fan_in_of_9999_dependencies_is_read),
        RULE(more_steps_or_dependencies_than_the_limits_are_refused),
        RULE(a_map_of_60000_unknown_fields_is_read_in_time),
        RULE(nothing_of_a_name_reaches_the_terminal_raw),
        RULE(damaged_documents_are_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
