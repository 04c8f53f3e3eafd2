/* plan_pack: the copy equals the plan and uses none of its memory. */
#include <malloc.h>

#include "fixture.h"
#include "supervisor/core/sched/core.h"
#include "supervisor/plan/pack.h"
#include "supervisor/plan/reader_internal.h"
#include "tests/support/memory.h"

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
    struct plan *copy = plan_pack(plan, NULL);
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
    assert_int_equal(copy->n_alternatives, b->plan->n_alternatives);
    for (uint32_t i = 0; i < copy->n_alternatives; i++) {
        assert_int_equal(copy->alternatives[i], b->plan->alternatives[i]);
    }
    assert_true(plan_pack_bytes(copy) > sizeof *copy);
    buf_done(&written);
    plan_pack_drop(copy);
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
    check_says_the_same(
        *state,
        "{'goal':'all','policy':{'searchAgent':'files','replan':{'agentId':'judge','skill':'plan'},"
        "'concurrencyKey':'of the plan','overlap':'skip','priority':7},"
        "'steps':[{'stepId':'a','agentId':'files','skill':'read','task':'read it','dependsOn':[],"
        "'parameters':{'path':'x'},'concurrencyKey':'k','tools':['sql'],"
        "'gate':{'agentId':'judge','skill':'gate'},'verifyWith':{'agentId':'judge',"
        "'skill':'verify'}},"
        "{'stepId':'b','agentId':'files','skill':'read','task':'read it','dependsOn':['a'],"
        "'parameters':{'path':'x'},'concurrencyKey':'l'},"
        "{'stepId':'c','agentId':'sql','skill':'query','task':'read it','dependsOn':['a'],"
        "'parameters':{'sql':'x'},'when':{'results.a.n':1},'compensate':{'task':'undo it'}},"
        "{'stepId':'w','wait':{'signal':'go','schema':{'type':'object'},'timeoutMs':5},"
        "'dependsOn':['b']},"
        "{'stepId':'v','wait':{'until':'2027-01-31T18:00:00Z'},'dependsOn':['b']},"
        "{'stepId':'e','agentId':'calc','task':'do {{item}}','forEach':[1,2],'dependsOn':['c']},"
        "{'stepId':'f','plan':{'document':{'steps':[{'agentId':'calc','task':'add'}]}},"
        "'dependsOn':['c']}]}");
}

/* The steps of a map's child: each has its item, and all the same texts. */
static void the_steps_of_items_keep_their_items(void **state)
{
    struct bench *b = *state;
    assert_int_equal(
        read_json(b, "{'steps':[{'stepId':'a','agentId':'calc','skill':'evaluate','task':'add',"
                     "'parameters':{'expression':'1 + 1'}},"
                     "{'stepId':'b','agentId':'calc','skill':'report','task':'add'},"
                     "{'stepId':'c','agentId':'calc','skill':'report','task':'tell'}]}"),
        BT_OK);
    for (uint32_t i = 0; i < 3; i++) {
        b->plan->steps[i].item = doc_of(b, i == 2 ? "[2]" : "[1]");
        b->plan->steps[i].index = i;
    }
    b->plan->steps[1].item = b->plan->steps[0].item;
    struct plan *copy = plan_pack(b->plan, NULL);
    assert_non_null(copy);
    for (uint32_t i = 0; i < 3; i++) {
        const struct plan_step *is = &copy->steps[i];
        const struct plan_step *was = &b->plan->steps[i];
        assert_string_equal(json_of(b, is->item), i == 2 ? "[2]" : "[1]");
        assert_int_equal(is->index, i);
        assert_true(str_eq(is->skill, was->skill) && is->skill.ptr != was->skill.ptr);
        assert_true(str_eq(is->task, was->task) && is->task.ptr != was->task.ptr);
        assert_true(str_eq(is->step_id, was->step_id) && is->step_id.ptr != was->step_id.ptr);
        assert_int_equal(is->parameters.len, was->parameters.len);
        assert_true(is->parameters.ptr == NULL || is->parameters.ptr != was->parameters.ptr);
    }
    assert_ptr_equal(copy->steps[0].item.ptr, copy->steps[1].item.ptr);
    plan_pack_drop(copy);
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
    const size_t bytes = plan_pack_bytes(copy) + core_run_size(copy);
    plan_pack_drop(copy);
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
    plan_pack_drop(copy);
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
    plan_pack_drop(copy);
}

/* A packed plan that others may share. */
static struct plan *shared(struct bench *b, struct plan_shelf *shelf, const char *json)
{
    if (read_json(b, json) != BT_OK) {
        fail_msg("%s: %s", json, b->err.msg);
    }
    struct plan *own = plan_pack(b->plan, shelf);
    assert_non_null(own);
    return plan_pack_share(own, shelf);
}

static const char *const LOOK = "{'goal':'g','steps':[{'stepId':'a','agentId':'calc','task':'add',"
                                "'parameters':{'x':1},'verify':{'type':'object'}},"
                                "{'stepId':'b','agentId':'sql','task':'look'}]}";

static void equal_plans_are_kept_once(void **state)
{
    struct plan_shelf shelf = {.n = 0};
    struct plan *first = shared(*state, &shelf, LOOK);
    struct plan *second = shared(*state, &shelf, LOOK);
    assert_ptr_equal(first, second);
    plan_pack_drop(first); /* the other owner still has it */
    assert_true(str_is(second->steps[1].task, "look"));
    assert_ptr_equal(shared(*state, &shelf, LOOK), second);
    plan_pack_drop(second);
    plan_pack_drop(second);
    assert_int_equal(shelf.n, 0);
    plan_shelf_done(&shelf);
}

static void plans_that_differ_anywhere_are_not_shared(void **state)
{
    static const char *const OTHERS[] = {
        "{'goal':'h','steps':[{'stepId':'a','agentId':'calc','task':'add',"
        "'parameters':{'x':1},'verify':{'type':'object'}},"
        "{'stepId':'b','agentId':'sql','task':'look'}]}",
        "{'goal':'g','steps':[{'stepId':'a','agentId':'calc','task':'add',"
        "'parameters':{'x':2},'verify':{'type':'object'}},"
        "{'stepId':'b','agentId':'sql','task':'look'}]}",
        "{'goal':'g','steps':[{'stepId':'a','agentId':'calc','task':'add',"
        "'parameters':{'x':1},'verify':{'type':'object'}},"
        "{'stepId':'b','agentId':'sql','task':'look','maxRetries':9}]}",
        "{'goal':'g','policy':{'priority':9},'steps':[{'stepId':'a','agentId':'calc','task':'add',"
        "'parameters':{'x':1},'verify':{'type':'object'}},"
        "{'stepId':'b','agentId':'sql','task':'look'}]}"};
    enum { N = sizeof OTHERS / sizeof OTHERS[0] };
    struct plan_shelf shelf = {.n = 0};
    struct plan *all[N + 1] = {shared(*state, &shelf, LOOK)};
    for (int i = 0; i < N; i++) {
        all[i + 1] = shared(*state, &shelf, OTHERS[i]);
        for (int k = 0; k <= i; k++) {
            assert_ptr_not_equal(all[i + 1], all[k]);
        }
    }
    assert_int_equal(shelf.n, N + 1);
    for (int i = 0; i <= N; i++) {
        plan_pack_drop(all[i]);
    }
    plan_shelf_done(&shelf);
}

/* The session's place is each session's own, whatever else is equal. */
static void plans_of_two_sessions_are_not_shared(void **state)
{
    struct bench *b = *state;
    struct plan_shelf shelf = {.n = 0};
    struct plan *first = shared(b, &shelf, LOOK);
    assert_int_equal(read_json(b, LOOK), BT_OK);
    struct plan *own = plan_pack(b->plan, &shelf);
    own->session = first->session + 1;
    struct plan *second = plan_pack_share(own, &shelf);
    assert_ptr_not_equal(first, second);
    plan_pack_drop(first);
    plan_pack_drop(second);
    plan_shelf_done(&shelf);
}

static void a_plan_with_concurrency_keys_is_its_owners_alone(void **state)
{
    static const char *const KEYED = "{'policy':{'concurrencyKey':'k'},'steps':["
                                     "{'stepId':'a','agentId':'calc','task':'add'}]}";
    struct plan_shelf shelf = {.n = 0};
    struct plan *first = shared(*state, &shelf, KEYED);
    struct plan *second = shared(*state, &shelf, KEYED);
    assert_int_equal(first->keys.n, 1);
    assert_ptr_not_equal(first, second);
    assert_int_equal(shelf.n, 0);
    plan_pack_drop(first);
    plan_pack_drop(second);
    plan_shelf_done(&shelf);
}

/* More plans than buckets, dropped in another order than they came. */
static void a_shelf_finds_each_of_many_plans(void **state)
{
    enum { N = 1000 };
    static struct plan *all[N];
    struct bench *b = *state;
    struct plan_shelf shelf = {.n = 0};
    char json[160];
    for (int i = 0; i < 2 * N; i++) {
        (void)snprintf(json, sizeof json,
                       "{'steps':[{'stepId':'a','agentId':'calc','task':'add %d'}]}", i % N);
        struct plan *p = shared(b, &shelf, json);
        assert_true(i < N || p == all[i % N]);
        all[i % N] = p;
    }
    assert_int_equal(shelf.n, N);
    for (int i = 0; i < 2 * N; i++) {
        plan_pack_drop(all[i * 7 % N]);
    }
    assert_int_equal(shelf.n, 0);
    plan_shelf_done(&shelf);
}

/* Rules without texts are one for all plans; kinds beyond the shelf's room are each plan's own. */
static void plans_that_differ_share_their_plain_rules(void **state)
{
    enum { N = PLAN_SHELF_RULES + 44 };
    static struct plan *all[N];
    struct bench *b = *state;
    struct plan_shelf shelf = {.n = 0};
    char json[160];
    uint32_t kept = 0;
    struct plan *first =
        shared(b, &shelf, "{'steps':[{'stepId':'a','agentId':'calc','task':'add'}]}");
    struct plan *second =
        shared(b, &shelf, "{'steps':[{'stepId':'b','agentId':'calc','task':'take'}]}");
    assert_ptr_equal(first->steps[0].rules, second->steps[0].rules);
    for (int i = 0; i < N; i++) {
        (void)snprintf(json, sizeof json,
                       "{'steps':[{'stepId':'a','agentId':'calc','task':'add','timeoutMs':%d}]}",
                       5000 + i);
        all[i] = shared(b, &shelf, json);
        assert_int_equal(all[i]->steps[0].rules->policy.timeout_ms, 5000 + i);
    }
    for (uint32_t i = 0; i < PLAN_SHELF_RULES; i++) {
        kept += shelf.rules[i] != NULL ? 1 : 0;
    }
    assert_in_range(kept, PLAN_SHELF_RULES / 2, PLAN_SHELF_RULES);
    plan_pack_drop(first);
    plan_pack_drop(second);
    for (int i = 0; i < N; i++) {
        plan_pack_drop(all[i]);
    }
    plan_shelf_done(&shelf);
}

static void nothing_of_a_shelf_stays(void **state)
{
    enum { N = 100, SHARERS = 3 };
    struct bench *b = *state;
    struct plan_shelf shelf = {.n = 0};
    struct plan *all[N][SHARERS];
    assert_int_equal(read_json(b, "{'steps':[{'stepId':'a','agentId':'calc','task':'add'}]}"),
                     BT_OK);
    const long before = memory_pieces;
    for (uint32_t i = 0; i < N; i++) {
        b->plan->steps[0].rules->policy.timeout_ms = i;
        for (uint32_t k = 0; k < SHARERS; k++) {
            all[i][k] = plan_pack(b->plan, &shelf);
            assert_non_null(all[i][k]);
            all[i][k] = plan_pack_share(all[i][k], &shelf);
            assert_ptr_equal(all[i][k], all[i][0]);
        }
    }
    for (uint32_t k = 0; k < SHARERS; k++) { /* the last one still has it */
        for (uint32_t i = 0; i < N; i++) {
            assert_true(str_is(all[i][k]->steps[0].task, "add"));
            plan_pack_drop(all[i][k]);
        }
        assert_int_equal(shelf.n, k + 1 < SHARERS ? N : 0);
    }
    plan_pack_drop(NULL);
    plan_shelf_done(&shelf);
    assert_int_equal(memory_pieces, before);
}

/* Their texts lie in the memory of the plan, which goes with it. */
static void rules_with_texts_are_each_plans_own(void **state)
{
    static const char *const rules[] = {"'gate':{'agentId':'judge','skill':'gate'}",
                                        "'gate':'judge'",
                                        "'verifyWith':{'agentId':'judge','skill':'verify'}",
                                        "'verifyWith':'judge'",
                                        "'verify':{'type':'object'}",
                                        "'tools':['sql']",
                                        "'compensate':{'agentId':'sql','task':'undo'}"};
    struct bench *b = *state;
    char json[256];

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct plan_shelf shelf = {.n = 0};
        struct plan *two[2];
        for (int k = 0; k < 2; k++) {
            (void)snprintf(json, sizeof json,
                           "{'steps':[{'stepId':'a%d','agentId':'calc','task':'add',%s}]}", k,
                           rules[i]);
            two[k] = shared(b, &shelf, json);
        }
        assert_ptr_not_equal(two[0]->steps[0].rules, two[1]->steps[0].rules);
        for (uint32_t k = 0; k < PLAN_SHELF_RULES; k++) {
            assert_null(shelf.rules[k]);
        }
        plan_pack_drop(two[0]);
        plan_pack_drop(two[1]);
        plan_shelf_done(&shelf);
    }
}

int main(void)
{
    (void)mallopt(M_PERTURB, 0xa5); /* what was freed reads as something else */
    const struct CMUnitTest tests[] = {RULE(the_copy_says_what_the_plan_says),
                                       RULE(the_steps_of_items_keep_their_items),
                                       RULE(nothing_of_a_shelf_stays),
                                       RULE(equal_texts_are_kept_once),
                                       RULE(equal_rules_are_kept_once),
                                       RULE(a_waiting_step_takes_at_most_512_bytes),
                                       RULE(equal_plans_are_kept_once),
                                       RULE(plans_that_differ_anywhere_are_not_shared),
                                       RULE(plans_of_two_sessions_are_not_shared),
                                       RULE(a_shelf_finds_each_of_many_plans),
                                       RULE(a_plan_with_concurrency_keys_is_its_owners_alone),
                                       RULE(plans_that_differ_share_their_plain_rules),
                                       RULE(rules_with_texts_are_each_plans_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
