/* The rules for a model's plan beyond its schema. */
#include "tests/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/llm/plan_check.h"
#include "protocol/base/buf.h"

static const char question[] =
    "{\"agents\":[{\"agentId\":\"calc\",\"skills\":[{\"id\":\"evaluate\"},{\"id\":\"shares\"}]},"
    "{\"agentId\":\"mute\"}],\"completed\":[{\"stepId\":\"a\"},{\"stepId\":\"b\"}]}";

/* why NULL: the plan is valid. */
static void check(const char *plan, const char *why)
{
    cJSON *q = cJSON_Parse(question);
    cJSON *p = cJSON_Parse(plan);
    struct bt_error err = {0};
    enum bt_code code;

    assert_non_null(p);
    code = plan_check(q, p, &err);
    if (why == NULL && code != BT_OK) {
        fail_msg("%s: %s", plan, err.msg);
    }
    if (why != NULL && (code != BT_INVALID || strstr(err.msg, why) == NULL)) {
        fail_msg("%s: expected '%s' in '%s'", plan, why, err.msg);
    }
    cJSON_Delete(q);
    cJSON_Delete(p);
}

#define STEP(id, rest) "{\"stepId\":\"" id "\",\"agentId\":\"calc\",\"task\":\"t\"" rest "}"

static void good_plans_pass(void **state)
{
    (void)state;
    check("{\"steps\":[" STEP("x", "") "]}", NULL);
    check("{\"reuse\":[\"a\",\"b\"],\"steps\":[" STEP(
              "x", ",\"skill\":\"shares\",\"dependsOn\":[\"a\",\"y\"]") "," STEP("y", "") "]}",
          NULL);
}

static void what_is_not_granted_or_not_there_is_named(void **state)
{
    (void)state;
    check("{\"steps\":[{\"stepId\":\"x\",\"agentId\":\"vault\",\"task\":\"t\"}]}",
          "step 'x': agent 'vault' may not be used; expected one of calc, mute");
    check("{\"steps\":[" STEP("x", ",\"skill\":\"fly\"") "]}",
          "has no skill 'fly'; it has evaluate, shares");
    check("{\"steps\":[{\"stepId\":\"x\",\"agentId\":\"mute\",\"skill\":\"fly\",\"task\":\"t\"}]}",
          "it has none");
    check("{\"steps\":[" STEP("x", ",\"dependsOn\":[\"z\"]") "]}", "dependsOn 'z'");
    check("{\"reuse\":[\"c\"],\"steps\":[" STEP("x", "") "]}", "reuse 'c'");
    check("{\"steps\":[" STEP("x", "") "," STEP("x", "") "]}", "two steps have the stepId 'x'");
}

static void circles_are_found(void **state)
{
    (void)state;
    check("{\"steps\":[" STEP("x", ",\"dependsOn\":[\"x\"]") "]}", "'x' depends on itself");
    check("{\"steps\":[" STEP("w", "") "," STEP("x", ",\"dependsOn\":[\"z\"]") "," STEP(
              "y", ",\"dependsOn\":[\"x\",\"w\"]") "," STEP("z", ",\"dependsOn\":[\"y\"]") "]}",
          "in a circle");
}

static void too_many_steps_are_refused_and_the_most_take_no_time(void **state)
{
    (void)state;
    for (unsigned n = PLAN_STEPS_MAX; n <= PLAN_STEPS_MAX + 1; n++) {
        struct buf plan;
        buf_init(&plan, 1000000);
        buf_add_cstr(&plan, "{\"steps\":[");
        for (unsigned i = 0; i < n; i++) {
            buf_printf(&plan,
                       "%s{\"stepId\":\"s%u\",\"agentId\":\"calc\",\"task\":\"t\","
                       "\"dependsOn\":[",
                       i == 0 ? "" : ",", i);
            /* Each waits for all after it: the worst order for removing them. */
            for (unsigned k = i + 1; k < n && k <= i + PLAN_DEPENDS_MAX; k++) {
                buf_printf(&plan, "%s\"s%u\"", k == i + 1 ? "" : ",", k);
            }
            buf_add_cstr(&plan, "]}");
        }
        buf_add_cstr(&plan, "]}");
        check(buf_cstr(&plan), n > PLAN_STEPS_MAX ? "101 steps; at most 100" : NULL);
        buf_done(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_plans_pass),
        cmocka_unit_test(what_is_not_granted_or_not_there_is_named),
        cmocka_unit_test(circles_are_found),
        cmocka_unit_test(too_many_steps_are_refused_and_the_most_take_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
