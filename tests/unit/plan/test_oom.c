/*
 * The i-th allocation and all later ones fail, for every i: BT_NOMEM or a correct answer, and no
 * leak (ASan). malloc of the code under test goes through the linker's --wrap, cJSON's through its
 * hooks.
 */
#include <cjson/cJSON.h>

#include "revise.h"
#include "supervisor/keyword/planner.h"
#include "supervisor/plan/diff.h"
#include "supervisor/plan/expand.h"
#include "supervisor/plan/lint.h"
#include "supervisor/plan/pack.h"
#include "supervisor/plan/recipe.h"
#include "tests/support/memory.h"

/* The call that is tested; its document was made before memory ran out. */
struct trial {
    struct bench *b;
    struct doc doc, values;
    struct run *run;
    struct arena arena;
    struct buf out;
};

typedef enum bt_code (*trial_fn)(struct trial *t);

static enum bt_code try_read(struct trial *t)
{
    const struct plan_defaults defaults = plan_defaults_builtin();
    struct plan *plan;
    t->b->problems = (struct problems){.at = t->b->at, .cap = 100};
    return plan_read(t->doc, &defaults, t->b->registry, &t->arena, &plan, &t->b->problems, &t->out,
                     &t->b->err);
}

static enum bt_code try_goal(struct trial *t)
{
    struct planner_result r;
    const struct planner_request request = {
        .goal =
            STR_LIT("read both a.log and b.log, then count the installs per day and bake a "
                    "cake, meanwhile list /etc; if it rains, stay; then report the busiest day"),
        .allow_unrouted = true,
        .registry = t->b->registry};
    return planner_plan(&request, &t->arena, &r, &t->b->err);
}

static enum bt_code resolve(struct str step_id, struct doc *ret, void *self, struct bt_error *err)
{
    const struct trial *t = self;
    (void)step_id;
    (void)err;
    *ret = t->values;
    return BT_OK;
}

static enum bt_code try_expand(struct trial *t)
{
    return expand_params(t->doc, resolve, NULL, t, &t->out, &t->b->err);
}

static enum bt_code try_recipe(struct trial *t)
{
    return recipe_fill(t->doc, t->values, &t->out, &t->b->err);
}

/* Described, checked, and compared with the original. */
static enum bt_code try_recipe_check(struct trial *t)
{
    struct recipe_about about;
    struct plan_diff diff;
    t->b->problems = (struct problems){.at = t->b->at, .cap = 100};
    enum bt_code code = recipe_describe(t->doc, &t->arena, &about, &t->b->err);
    code = code == BT_OK ? recipe_check(t->doc, t->b->registry, &t->b->problems, &t->b->err) : code;
    code = code == BT_OK ? plan_diff(t->doc, t->values, &t->arena, &diff, &t->b->err) : code;
    if (code == BT_OK) {
        plan_diff_text(&diff, &t->out);
        plan_diff_doc(&diff, &t->out);
        code = buf_check(&t->out, &t->b->err);
    }
    return code;
}

/* Every answer but BT_NOMEM is the one with memory: expected. */
static void sweep_doc(struct bench *b, trial_fn fn, struct doc d, struct doc v,
                      enum bt_code expected)
{
    long i = 0;
    for (;; i++) {
        const long before = memory_pieces;
        struct trial t = {.b = b, .doc = d, .values = v, .run = b->run};
        buf_init(&t.out, LIMIT_STEP_BYTES);
        memory_left = i;
        const enum bt_code code = fn(&t);
        const bool ran_out = memory_left == 0;
        memory_left = -1;
        buf_done(&t.out);
        arena_done(&t.arena);
        if (memory_pieces != before) {
            fail_msg("allocation %ld: %ld pieces stay: %s", i, memory_pieces - before,
                     json_of(b, d));
        }
        if (!ran_out) {
            assert_int_equal(code, expected);
            break;
        }
        if (code != BT_NOMEM && code != expected) {
            fail_msg("allocation %ld: %s: %s: %s", i, bt_code_name(code), b->err.msg,
                     json_of(b, d));
        }
        assert_true(i < 1000);
    }
    assert_true(i > 0);
}

static void sweep(struct bench *b, trial_fn fn, const char *doc, const char *values)
{
    sweep_doc(b, fn, doc_of(b, doc), doc_of(b, values), BT_OK);
}

static void reading_a_plan_survives_every_failing_allocation(void **state)
{
    struct bench *b = *state;
    add_house(b);
    sweep(b, try_read,
          "{'goal':'g','steps':[{'id':1,'skill':'read','parameters':{'path':'{{results.2.x}}'},"
          "'verify':{'type':'object'},'dependsOn':[2]},{'id':2,'agent':'calc','task':'do something "
          "worth doing','parameters':{'a':'{{x}}'}}],'description':'d','successCriteria':'s',"
          "'constraints':['c'],'policy':{'synthesis':{'agentId':'exec','skill':'run'}},'reasoning':"
          "'r'}",
          "1");
}

/* A pending plan, and then its answer. */
static enum bt_code try_pending(struct trial *t)
{
    static const struct str constraint[] = {{"stay local", 10}};
    const struct plan_defaults defaults = plan_defaults_builtin();
    struct plan_request request = {.goal = STR_LIT("add two numbers"),
                                   .policy = t->values,
                                   .constraints = constraint,
                                   .n_constraints = 1,
                                   .defaults = &defaults,
                                   .registry = t->b->registry};
    const struct plan_pending planner = {.agent_id = STR_LIT("exec"), .skill = STR_LIT("run")};
    struct plan *plan;
    t->b->problems = (struct problems){.at = t->b->at, .cap = 100};
    enum bt_code code = plan_read_pending(&request, &planner, &t->arena, &plan, &t->b->problems,
                                          &t->out, &t->b->err);
    if (code == BT_OK) {
        request.pending = doc_copy(&t->arena, doc_from_buf(&t->out));
        request.plan = t->doc;
        buf_clear(&t->out);
        code = request.pending.ptr == NULL
                   ? BT_NOMEM
                   : plan_read_request(&request, &t->arena, &plan, &t->b->problems, &t->out,
                                       &t->b->err);
    }
    return code;
}

static void planning_survives_every_failing_allocation(void **state)
{
    struct bench *b = *state;
    add_house(b);
    sweep(b, try_pending, "{'steps':[{'agent':'calc','task':'do something worth doing'}]}",
          "{'synthesis':{'agentId':'exec','skill':'run'}}");
}

/* The plan is b->plan; its run has not begun. */
static enum bt_code try_revise(struct trial *t)
{
    struct plan *next;
    const struct plan_revise_request request = {.kind = REVISE_REPLACE,
                                                .change = t->doc,
                                                .plan = t->b->plan,
                                                .run = t->run,
                                                .registry = t->b->registry,
                                                .revision = 2};
    t->b->problems = (struct problems){.at = t->b->at, .cap = 100};
    return plan_revise(&request, &t->arena, &next, &t->b->problems, &t->out, &t->b->err);
}

static void revising_a_plan_survives_every_failing_allocation(void **state)
{
    struct bench *b = *state;
    add_house(b);
    b->run = start_run(b, "{'steps':[{'skill':'read','parameters':{'path':'x'}},{'stepId':'b',"
                          "'agent':'calc'," TASK "},{'agent':'sql','skill':'query'," TASK
                          ",'parameters':{'sql':'{{results.b}}'}}]}");
    sweep(b, try_revise,
          "{'stepId':'b','steps':[{'stepId':'b','skill':'grep','parameters':{'path':'x','pattern':"
          "'{{results.step-1}}'},'gate':'exec','fallbackAgents':['files']},"
          "{'agent':'calc'," TASK ",'dependsOn':['b']}]}",
          "1");
}

static enum bt_code try_pack(struct trial *t)
{
    struct plan *copy = plan_pack(t->b->plan, NULL);
    const enum bt_code code = copy != NULL ? BT_OK : BT_NOMEM;

    if (copy != NULL) {
        plan_pack_drop(copy);
    }
    return code;
}

static void packing_a_plan_survives_every_failing_allocation(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'steps':[{'agentId':'calc'," TASK ",'parameters':{'x':1}}]}"),
                     BT_OK);
    sweep(b, try_pack, "1", "1");
}

static void planning_a_goal_survives_every_failing_allocation(void **state)
{
    struct bench *b = *state;
    add_house(b);
    sweep(b, try_goal, "1", "1");
}

static void filling_templates_survives_every_failing_allocation(void **state)
{
    struct bench *b = *state;
    sweep(b, try_expand, "{'a':'{{results.x}}','b':['n {{results.x.y}}']}", "{'data':{'y':[1]}}");
    sweep(b, try_recipe,
          "{'inputs':{'type':'object','properties':{'f':{'type':'string','default':'z'}}},"
          "'steps':['{{inputs.f}} {{inputs.g}}']}",
          "{'g':'y'}");
}

static void checking_a_recipe_survives_every_failing_allocation(void **state)
{
    struct bench *b = *state;
    add_house(b);
    sweep(b, try_recipe_check,
          "{'recipe':{'name':'r','description':'d'},'inputs':{'type':'object','properties':{"
          "'f':{'type':'string','default':'x'},'how':{'enum':['a','b'],'default':'a'}}},"
          "'steps':[{'stepId':'a','agentId':'files','skill':'read','task':'read {{inputs.f}} "
          "{{inputs.how}}','parameters':{'path':'{{inputs.f}}'}},{'stepId':'b','agentId':'calc',"
          "'task':'do something worth doing'}]}",
          "{'steps':[{'stepId':'b','dependsOn':['c']},{'stepId':'c'}]}");
}

/* A document of readings/: read, and when it is valid looked at and packed. */
static enum bt_code try_rule(struct trial *t)
{
    const struct plan_defaults defaults = plan_defaults_builtin();
    const struct plan_request request = {
        .plan = t->doc, .defaults = &defaults, .registry = t->b->registry};
    struct problem at[100];
    struct problems problems = {.at = at, .cap = 100};
    struct plan_lint lint;
    struct plan *plan = NULL;
    struct plan *copy;
    enum bt_code code =
        plan_read_request(&request, &t->arena, &plan, &problems, &t->out, &t->b->err);

    if (code != BT_OK) {
        return code;
    }
    code = plan_lint(plan, &t->arena, &lint, &t->b->err);
    if (code == BT_OK) {
        code = plan_lint_style(plan, &lint, t->b->registry, &t->arena, &problems, &t->b->err);
    }
    copy = code == BT_OK ? plan_pack(plan, NULL) : NULL;
    code = code == BT_OK && copy == NULL ? BT_NOMEM : code;
    plan_pack_drop(copy);
    return code;
}

static void each_document_of_the_rules_is_read_as_with_memory_or_not_at_all(void **state)
{
    static const char *const files[] = {"steps", "documents", "bodies", "bounds"};
    struct bench *b = *state;
    char path[1000];
    static char line[100000];
    uint32_t n = 0;

    add_house(b);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s.txt", READINGS, files[i]);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        while (fgets(line, sizeof line, f) != NULL) {
            const char *json = strncmp(line, "> plan {", 8) == 0   ? line + 7
                               : strncmp(line, "> lint {", 8) == 0 ? line + 7
                                                                   : NULL;
            if (json == NULL) {
                continue;
            }
            n++;
            const struct doc doc = doc_of(b, json);
            struct trial t = {.b = b, .doc = doc};
            buf_init(&t.out, LIMIT_STEP_BYTES);
            const enum bt_code expected = try_rule(&t);
            buf_done(&t.out);
            arena_done(&t.arena);
            sweep_doc(b, try_rule, doc, (struct doc){NULL, 0}, expected);
        }
        assert_int_equal(fclose(f), 0);
    }
    assert_true(n > 100);
}

int main(void)
{
    cJSON_Hooks hooks = {malloc, free};
    const struct CMUnitTest tests[] = {
        RULE(reading_a_plan_survives_every_failing_allocation),
        RULE(planning_survives_every_failing_allocation),
        RULE(revising_a_plan_survives_every_failing_allocation),
        RULE(packing_a_plan_survives_every_failing_allocation),
        RULE(planning_a_goal_survives_every_failing_allocation),
        RULE(filling_templates_survives_every_failing_allocation),
        RULE(checking_a_recipe_survives_every_failing_allocation),
        RULE(each_document_of_the_rules_is_read_as_with_memory_or_not_at_all),
    };
    memory_for_good = true;
    cJSON_InitHooks(&hooks);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
