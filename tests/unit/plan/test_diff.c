/* The differences between two plan documents. */
#include "revise.h"
#include "supervisor/plan/diff.h"

static struct plan_diff compared(struct bench *b, struct doc before, struct doc after)
{
    struct plan_diff diff;
    if (plan_diff(before, after, &b->arena, &diff, &b->err) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    return diff;
}

static const char *text_of(struct bench *b, const struct plan_diff *diff)
{
    struct buf out;
    buf_init(&out, LIMIT_CONTROL_BYTES);
    plan_diff_text(diff, &out);
    assert_int_equal(out.bad, BT_OK);
    const struct str text = arena_str(&b->arena, buf_str(&out));
    buf_done(&out);
    return text.ptr;
}

static const char *diff_json(struct bench *b, const char *before, const char *after)
{
    const struct plan_diff diff = compared(b, doc_of(b, before), doc_of(b, after));
    return text_of(b, &diff);
}

static struct doc canonical(struct bench *b, const char *json)
{
    if (read_json(b, json) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    return doc_copy(&b->arena, doc_from_buf(&b->normalised));
}

static void equal_plans_have_no_difference(void **state)
{
    struct bench *b = *state;
    assert_string_equal(diff_json(b, "{'goal':'g','steps':[{'stepId':'a','task':'t'}]}",
                                  "{'steps':[{'task':'t','stepId':'a'}],'goal':'g'}"),
                        "");
    assert_string_equal(
        diff_json(b, "{'policy':{'backoff':{'multiplier':2,'jitter':0.0}},'steps':[]}",
                  "{'policy':{'backoff':{'multiplier':2.0,'jitter':0}},'steps':[]}"),
        "");
    assert_string_equal(diff_json(b, "{'policy':{'backoff':{'multiplier':2}},'steps':[]}",
                                  "{'policy':{'backoff':{'multiplier':2.5}},'steps':[]}"),
                        "~ policy.backoff.multiplier: 2 -> 2.5\n");
    /* With dependsOn, the order of steps has no meaning. */
    assert_string_equal(
        diff_json(b,
                  "{'steps':[{'stepId':'a','dependsOn':[]},{'stepId':'b','dependsOn':[]},"
                  "{'stepId':'c','dependsOn':['a','b']}]}",
                  "{'steps':[{'stepId':'b','dependsOn':[]},{'stepId':'a','dependsOn':[]},"
                  "{'stepId':'c','dependsOn':['b','a']}]}"),
        "");
}

static void each_change_has_its_line(void **state)
{
    struct bench *b = *state;
    assert_string_equal(
        diff_json(b,
                  "{'goal':'old','policy':{'maxRetries':2,'replan':{'maxTotal':5}},'grants':['x'],"
                  "'steps':[{'stepId':'a','agentId':'files','skill':'read','task':'read it',"
                  "'dependsOn':[],'parameters':{'path':'x','n':1}},{'stepId':'b','agentId':'calc',"
                  "'task':'count it','dependsOn':['a']}]}",
                  "{'goal':'new','policy':{'maxRetries':3,'replan':{'maxTotal':1}},'grants':['y'],"
                  "'steps':[{'stepId':'a','agentId':'files','skill':'grep','task':'read it',"
                  "'dependsOn':[],'parameters':{'path':'y','m':[1]}},{'stepId':'c','type':"
                  "'human_review','task':'well?','dependsOn':['a']}]}"),
        "~ goal: \"old\" -> \"new\"\n"
        "~ policy.maxRetries: 2 -> 3\n"
        "~ policy.replan.maxTotal: 5 -> 1\n"
        "~ grants: + y - x\n"
        "- step b (calc): count it\n"
        "~ step a: skill: \"read\" -> \"grep\"\n"
        "~ step a: parameters.path: \"x\" -> \"y\"\n"
        "~ step a: parameters.n: 1 -> nothing\n"
        "~ step a: parameters.m: nothing -> [1]\n"
        "+ step c (human_review): well?\n");
}

static void moved_edges_are_told_by_name(void **state)
{
    struct bench *b = *state;
    assert_string_equal(
        diff_json(b, "{'steps':[{'stepId':'a','dependsOn':[]},{'stepId':'b','dependsOn':['a']}]}",
                  "{'steps':[{'stepId':'a','dependsOn':['b']},{'stepId':'b','dependsOn':[]}]}"),
        "~ step a: dependsOn: + b\n~ step b: dependsOn: - a\n");
    /* In a chain the order is the dependencies. */
    assert_string_equal(diff_json(b, "{'steps':[{'stepId':'a'},{'stepId':'b'},{'stepId':'c'}]}",
                                  "{'steps':[{'stepId':'a'},{'stepId':'c'},{'stepId':'b'}]}"),
                        "~ step b: dependsOn: + c - a\n~ step c: dependsOn: + a - b\n");
}

/* A revised chain is a graph; that alone is no difference. */
static void a_revision_shows_what_was_revised_and_nothing_else(void **state)
{
    struct bench *b = *state;
    struct plan *next = NULL;
    add_house(b);
    struct run *run = start_run(b, "{'steps':[{'stepId':'a','agentId':'calc','task':'do the first "
                                   "thing now'},{'stepId':'b','agentId':'calc','task':'do the "
                                   "second thing'},{'stepId':'c','agentId':'calc','task':'do the "
                                   "third thing'}]}");
    const struct doc before = doc_copy(&b->arena, doc_from_buf(&b->normalised));
    assert_int_equal(revise(b, run, REVISE_INSERT,
                            doc_of(b, "{'afterStepId':'a','beforeStepId':'b','steps':[{'stepId':"
                                      "'x','agentId':'sql','task':'do one thing more'}]}"),
                            &next),
                     BT_OK);
    struct plan_diff diff = compared(b, before, doc_from_buf(&b->normalised));
    assert_string_equal(text_of(b, &diff), "~ grants: + sql\n"
                                           "~ step b: dependsOn: + x\n"
                                           "+ step x (sql): do one thing more\n");
    assert_int_equal(revise(b, run, REVISE_REPLACE,
                            doc_of(b, "{'stepId':'c','steps':[{'stepId':'c','agentId':'calc',"
                                      "'task':'do the last thing'}]}"),
                            &next),
                     BT_OK);
    diff = compared(b, before, doc_from_buf(&b->normalised));
    assert_string_equal(text_of(b, &diff), "~ step c: task: \"do the third thing\" -> \"do the "
                                           "last thing\"\n");
}

static void canonical_documents_differ_only_in_what_was_said(void **state)
{
    struct bench *b = *state;
    add_house(b);
    const struct doc before =
        canonical(b, "{'steps':[{'stepId':'a','agentId':'calc','task':'do something worth it'}]}");
    const struct doc after =
        canonical(b, "{'policy':{'synthesis':{'agentId':'exec','skill':'run'}},'description':'d',"
                     "'steps':[{'stepId':'a','agentId':'calc','task':'do something worth it',"
                     "'maxRetries':7}]}");
    const struct plan_diff diff = compared(b, before, after);
    assert_string_equal(text_of(b, &diff),
                        "~ policy.synthesis: \"concat\" -> {\"agentId\":\"exec\",\"skill\":"
                        "\"run\",\"timeoutMs\":60000,\"maxRetries\":1}\n"
                        "~ description: nothing -> \"d\"\n"
                        "~ step a: maxRetries: nothing -> 7\n");
}

static void the_document_form_says_the_same(void **state)
{
    struct bench *b = *state;
    struct buf out;
    const struct plan_diff diff =
        compared(b, doc_of(b, "{'goal':'g','steps':[{'stepId':'a','task':'t'},{'stepId':'b'}]}"),
                 doc_of(b, "{'goal':'g','steps':[{'stepId':'a','task':'u'},{'stepId':'c'}]}"));
    buf_init(&out, LIMIT_CONTROL_BYTES);
    plan_diff_doc(&diff, &out);
    assert_string_equal(json_of(b, doc_from_buf(&out)),
                        "[{'change':'removed','stepId':'b','before':{'stepId':'b'}},"
                        "{'change':'changed','stepId':'a','field':'task','before':'t','after':'u'},"
                        "{'change':'added','stepId':'c','after':{'stepId':'c'}}]");
    buf_done(&out);
}

static void what_is_no_plan_is_refused_and_values_cannot_break_lines(void **state)
{
    struct bench *b = *state;
    struct plan_diff diff;
    static const char *const bad[] = {"7", "{}", "{'steps':7}", "[]", "null"};
    const struct doc good = doc_of(b, "{'steps':[]}");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(plan_diff(doc_of(b, bad[i]), good, &b->arena, &diff, &b->err), BT_INVALID);
        assert_int_equal(plan_diff(good, doc_of(b, bad[i]), &b->arena, &diff, &b->err), BT_INVALID);
    }
    assert_string_equal(diff_json(b, "{'steps':[]}",
                                  "{'steps':[{'stepId':'a\\n+ step b','task':"
                                  "'x\\u001b[2J\\ny'}]}"),
                        "+ step a + step b: x [2J y\n");
    assert_string_equal(
        diff_json(b, "{'x\\ny':1,'steps':[7,7,[],{}]}", "{'steps':[{'stepId':{}}]}"),
        "~ x y: 1 -> nothing\n");
}

static void a_large_difference_is_bounded(void **state)
{
    struct bench *b = *state;
    struct buf before;
    struct buf after;
    const uint32_t n = 10000;
    buf_init(&before, LIMIT_STEP_BYTES);
    buf_init(&after, LIMIT_STEP_BYTES);
    for (int side = 0; side < 2; side++) {
        struct buf *out = side == 0 ? &before : &after;
        doc_put_map(out, 1);
        doc_put_cstr(out, "steps");
        doc_put_array(out, n);
        for (uint32_t i = 0; i < n; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "s%u", i);
            doc_put_map(out, 3);
            doc_put_cstr(out, "stepId");
            doc_put_cstr(out, id);
            doc_put_cstr(out, "task");
            doc_put_cstr(out, side == 0 ? "t" : "u");
            doc_put_cstr(out, "skill");
            doc_put_cstr(out, side == 0 ? "t" : "u");
        }
    }
    const struct plan_diff diff = compared(b, doc_from_buf(&before), doc_from_buf(&after));
    assert_int_equal(diff.n, PLAN_DIFF_MAX);
    assert_int_equal(diff.left_out, 2 * n - PLAN_DIFF_MAX);
    assert_non_null(strstr(text_of(b, &diff), "and 10000 more\n"));
    buf_done(&before);
    buf_done(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(equal_plans_have_no_difference),
        RULE(each_change_has_its_line),
        RULE(moved_edges_are_told_by_name),
        RULE(a_revision_shows_what_was_revised_and_nothing_else),
        RULE(canonical_documents_differ_only_in_what_was_said),
        RULE(the_document_form_says_the_same),
        RULE(what_is_no_plan_is_refused_and_values_cannot_break_lines),
        RULE(a_large_difference_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
