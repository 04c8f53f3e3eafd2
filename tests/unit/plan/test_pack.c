/* plan_pack: the copy equals the plan and uses none of its memory. */
#include <malloc.h>

#include "fixture.h"
#include "supervisor/core/sched/core.h"
#include "supervisor/plan/pack.h"
#include "supervisor/plan/reader_internal.h"

static int pack_setup(void **state)
{
    const int code = bench_setup(state);
    add_house(*state);
    add_agent(*state, "{'agentId':'judge','skills':[{'id':'gate'},{'id':'verify'},{'id':'plan'}]}");
    return code;
}
#undef RULE
#define RULE(f) cmocka_unit_test_setup_teardown(f, pack_setup, bench_teardown)

/* Reads the document into memory that is freed before the copy is compared. */
static struct plan *packed(struct bench *b)
{
    const struct plan_defaults defaults = plan_defaults_builtin();
    struct arena arena = {.chunks = NULL};
    struct plan *plan = NULL;
    const struct doc doc = doc_copy(&arena, doc_from_buf(&b->normalised));
    assert_non_null(doc.ptr);
    assert_int_equal(plan_read_canonical(doc, &defaults, b->registry, &arena, &plan, &b->err),
                     BT_OK);
    struct plan *copy = plan_pack(plan);
    assert_non_null(copy);
    arena_done(&arena);
    return copy;
}

static void check_says_the_same(struct bench *b, const char *json)
{
    struct buf written;
    assert_int_equal(read_json(b, json), BT_OK);
    struct plan *copy = packed(b);
    assert_null(copy->policy);
    copy->policy = b->plan->policy;
    buf_init(&written, LIMIT_STEP_BYTES);
    assert_int_equal(plan_write(copy, &written, &b->err), BT_OK);
    assert_int_equal(written.len, b->normalised.len);
    assert_memory_equal(written.at, b->normalised.at, written.len);
    assert_int_equal(copy->n_edges, b->plan->n_edges);
    for (uint32_t i = 0; i < copy->n_edges; i++) {
        assert_int_equal(copy->deps[i], b->plan->deps[i]);
        assert_int_equal(copy->dependents[i], b->plan->dependents[i]);
    }
    for (uint32_t i = 0; i < copy->agents.n; i++) {
        assert_int_equal(copy->agents.at[i], b->plan->agents.at[i]);
    }
    buf_done(&written);
    free(copy);
}

static void the_copy_says_what_the_plan_says(void **state)
{
    check_says_the_same(*state, "{'steps':[{'stepId':'a','agentId':'calc','task':'add'}]}");
    check_says_the_same(
        *state,
        "{'goal':'all','sessionId':'s-1','policy':{'gate':'judge','verifyWith':{'skill':'verify'},"
        "'fallbackAgents':['files'],'replan':{'agentId':'judge'},'handoffTo':['sql'],"
        "'synthesis':{'agentId':'judge','skill':'plan'}},'description':'d',"
        "'steps':[{'stepId':'a','agentId':'calc','task':'add','dependsOn':[]},"
        "{'stepId':'b','agentId':'calc','task':'add','dependsOn':['a'],"
        "'parameters':{'x':'{{results.a.text}}','y':[1,2]},'verify':{'type':'object'}},"
        "{'stepId':'c','type':'human_review','task':'well?','dependsOn':['a','b']},"
        "{'stepId':'d','agentId':'sql','task':'look','dependsOn':['b'],'gate':false}]}");
}

/* What a plan and its run hold, over its steps, when all of them wait. */
static size_t bytes_per_waiting_step(struct bench *b, const char *wait, bool distinct)
{
    enum { N = 1000 };
    struct buf json;
    buf_init(&json, LIMIT_CONTROL_BYTES);
    buf_add_cstr(&json, "{'steps':[");
    for (int i = 0; i < N; i++) {
        char step[160];
        (void)snprintf(step, sizeof step, "%s{'stepId':'s%d','dependsOn':[],'wait':{%s%d%s}}",
                       i > 0 ? "," : "", i, wait, distinct ? i + 1 : 1,
                       strchr(wait, 'g') != NULL ? "'" : "");
        buf_add_cstr(&json, step);
    }
    buf_add_cstr(&json, "]}");
    assert_int_equal(read_json(b, buf_cstr(&json)), BT_OK);
    struct plan *copy = packed(b);
    const size_t bytes = malloc_usable_size(copy) + core_run_size(copy);
    free(copy);
    buf_done(&json);
    return bytes / N;
}

/* A timer or a signal takes at most 512 bytes. When no two are the same, each has a wait and a task
 * of its own besides. */
static void a_waiting_step_takes_at_most_512_bytes(void **state)
{
    assert_in_range(bytes_per_waiting_step(*state, "'forMs':", false), 1, 512);
    assert_in_range(bytes_per_waiting_step(*state, "'forMs':", true), 1, 540);
    assert_in_range(bytes_per_waiting_step(*state, "'signal':'g", false), 1, 512);
    assert_in_range(bytes_per_waiting_step(*state, "'signal':'g", true), 1, 540);
}

static void equal_rules_are_kept_once(void **state)
{
    struct bench *b = *state;
    assert_int_equal(
        read_json(b,
                  "{'steps':[{'stepId':'a','agentId':'calc','task':'add','dependsOn':[]},"
                  "{'stepId':'w','wait':{'forMs':5},'dependsOn':[]},"
                  "{'stepId':'b','agentId':'calc','task':'take','dependsOn':[]},"
                  "{'stepId':'v','wait':{'forMs':5},'dependsOn':[]},"
                  "{'stepId':'c','agentId':'calc','task':'add','maxRetries':7,'dependsOn':[]}]}"),
        BT_OK);
    struct plan *copy = packed(b);
    assert_ptr_equal(copy->steps[0].rules, copy->steps[2].rules);
    assert_ptr_equal(copy->steps[1].rules, copy->steps[3].rules);
    assert_ptr_equal(copy->steps[1].wait, copy->steps[3].wait);
    assert_ptr_not_equal(copy->steps[0].rules, copy->steps[4].rules);
    assert_int_equal(copy->steps[4].rules->policy.max_retries, 7);
    free(copy);
}

static void equal_texts_are_kept_once(void **state)
{
    struct bench *b = *state;
    assert_int_equal(read_json(b, "{'steps':[{'stepId':'a','agentId':'calc','task':'add'},"
                                  "{'stepId':'b','agentId':'calc','task':'add'},"
                                  "{'stepId':'c','agentId':'calc','task':'take'}]}"),
                     BT_OK);
    struct plan *copy = packed(b);
    assert_ptr_equal(copy->steps[0].agent_id.ptr, copy->agents.ids[0].ptr);
    assert_ptr_equal(copy->steps[2].agent_id.ptr, copy->agents.ids[0].ptr);
    assert_ptr_equal(copy->steps[0].task.ptr, copy->steps[1].task.ptr);
    assert_true(str_is(copy->steps[2].task, "take"));
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(the_copy_says_what_the_plan_says), RULE(equal_texts_are_kept_once),
        RULE(equal_rules_are_kept_once), RULE(a_waiting_step_takes_at_most_512_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
