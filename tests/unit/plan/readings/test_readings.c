/*
 * Rules of reading plans, kept as files beside this one: a rule in words, what is given, and what
 * comes of it: each problem, and all that the canonical document says otherwise than that of the
 * plainest plan. BATON_WRITE=1 writes what follows anew: read the difference against the rule.
 *
 *     ## A rule. The agents files, sql, calc and exec are there, and none of the rules before.
 *     > agent {card}            "'" stands for '"', as everywhere
 *     > plan {document}         as from a person
 *     > lenient {document}      as from an agent
 *     > policy {policy}         of the request, for the plans that follow
 *     > pending {"agentId", "skill"}   a plan that this one is to make, with that policy
 *     > answer {document}       its planner's answer; "trusted": a person has edited it
 *     > lint {document}         the worst case, and the warnings about the shape
 *     > start {document}        a plan with its run
 *     > step ID STATUS          in_progress, completed, failed or skipped
 *     > insert, replace, replan {change}   of the plan that was started
 *     > rerun {change}        the steps of its list "marked" are done anew
 *     > depth N               the plans that follow are bodies of steps, so deep
 *     > round STEP {child}    a child plan of a step of the last plan: "items" of a forEach,
 * "session", "time", "tokens", "micros" of its share. It is the last plan then > run the run of the
 * last plan > asks {document}       which agents it permits, and whether it waits for some > never
 * {document}      the steps that never run > words WORD...         which of them the last plan, a
 * child, gives to templates > diff                    the last two canonical documents that came of
 * all this > recipe {document}       what its check says > fill {values}           of the last
 * recipe
 */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <malloc.h>
#include <string.h>

#include "supervisor/plan/diff.h"
#include "supervisor/plan/flow/child.h"
#include "supervisor/plan/lint.h"
#include "supervisor/plan/pack.h"
#include "supervisor/plan/permit.h"
#include "supervisor/plan/reader_internal.h"
#include "supervisor/plan/recipe.h"
#include "tests/support/golden.h"
#include "tests/unit/plan/revise.h"

enum { FILE_MAX = GOLDEN_MAX };

struct rules {
    struct bench *b;
    struct run *run;
    struct buf out;
    struct doc policy, pending, recipe;
    uint32_t depth;
    struct doc last, before; /* canonical documents */
    cJSON *plain;            /* of the plainest plan */
};

/* ---- what came ---- */

static void add_problems(struct rules *r)
{
    for (uint32_t i = 0; i < r->b->problems.n; i++) {
        buf_printf(&r->out, "%s %s\n", r->b->at[i].warning ? "warning" : "error",
                   problem_of(r->b, i));
    }
    if (r->b->problems.total > r->b->problems.n) {
        buf_printf(&r->out, "%u problems\n", r->b->problems.total);
    }
}

static cJSON *json_tree(struct rules *r, struct doc doc)
{
    struct buf text;
    cJSON *tree;

    buf_init(&text, FILE_MAX);
    assert_int_equal(doc_to_json(doc, false, &text, &r->b->err), BT_OK);
    tree = cJSON_Parse(buf_cstr(&text));
    assert_non_null(tree);
    buf_done(&text);
    return tree;
}

/* The members of `all` that `plain` has otherwise; maps within them alike. Drops the others. */
static void keep_others(cJSON *all, const cJSON *plain)
{
    cJSON *next;

    for (cJSON *m = all->child; m != NULL; m = next) {
        const cJSON *usual = cJSON_GetObjectItemCaseSensitive(plain, m->string);
        next = m->next;
        if (usual != NULL && cJSON_Compare(m, usual, true)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(all, m));
        } else if (usual != NULL && cJSON_IsObject(m) && cJSON_IsObject(usual)) {
            keep_others(m, usual);
        }
    }
}

static void add_line(struct rules *r, const char *head, const cJSON *value)
{
    char *text = cJSON_PrintUnformatted(value);

    assert_non_null(text);
    buf_printf(&r->out, "%s %s\n", head, text);
    cJSON_free(text);
}

static void add_document(struct rules *r, struct doc doc)
{
    cJSON *all = json_tree(r, doc);
    const cJSON *usual = cJSON_GetObjectItemCaseSensitive(r->plain, "steps")->child;
    cJSON *steps = cJSON_DetachItemFromObjectCaseSensitive(all, "steps");
    cJSON *step;

    keep_others(all, r->plain);
    add_line(r, "plan", all);
    cJSON_ArrayForEach(step, steps)
    {
        keep_others(step, usual);
        add_line(r, "step", step);
    }
    cJSON_Delete(steps);
    cJSON_Delete(all);
}

static void keep_last(struct rules *r)
{
    r->before = r->last;
    r->last = doc_copy(&r->b->arena, doc_from_buf(&r->b->normalised));
}

/* The copy that the engine keeps says the same when all that it was made of is gone. */
static void expect_same_copy(struct rules *r)
{
    const struct plan_defaults defaults = plan_defaults_builtin();
    struct arena arena = {.chunks = NULL};
    struct plan *plan = NULL;
    struct plan *copy;
    struct buf out;
    const struct doc doc = doc_copy(&arena, r->last);

    assert_int_equal(plan_read_canonical(doc, &defaults, r->b->registry, &arena, &plan, &r->b->err),
                     BT_OK);
    copy = plan_pack(plan, NULL);
    assert_non_null(copy);
    arena_done(&arena);
    copy->policy = r->b->plan->policy;
    buf_init(&out, FILE_MAX);
    assert_int_equal(plan_write(copy, &out, &r->b->err), BT_OK);
    assert_int_equal(out.len, r->last.len);
    assert_memory_equal(out.at, r->last.ptr, out.len);
    buf_done(&out);
    plan_pack_drop(copy);
}

static void add_reading(struct rules *r, enum bt_code code)
{
    add_problems(r);
    if (code != BT_OK) {
        buf_printf(&r->out, "refused: %s\n", r->b->err.msg);
        assert_int_equal(r->b->normalised.len, 0);
        return;
    }
    keep_last(r);
    add_document(r, r->last);
    buf_printf(&r->out, "order %s\n", shape(r->b, r->b->plan));
    (void)read_back(r->b);
    expect_same_copy(r);
}

/* ---- orders ---- */

static enum bt_code read_as(struct rules *r, struct plan_request *request)
{
    static struct plan_defaults defaults;
    struct bench *b = r->b;

    defaults = plan_defaults_builtin();
    request->defaults = &defaults;
    request->registry = b->registry;
    request->policy = r->policy;
    request->depth = r->depth;
    b->problems = (struct problems){.at = b->at, .cap = 100};
    buf_clear(&b->normalised);
    return plan_read_request(request, &b->arena, &b->plan, &b->problems, &b->normalised, &b->err);
}

static void pending(struct rules *r, struct doc wish)
{
    const struct plan_defaults defaults = plan_defaults_builtin();
    struct bench *b = r->b;
    const struct plan_request request = {.goal = STR_LIT("the goal"),
                                         .session_id = STR_LIT("s"),
                                         .policy = r->policy,
                                         .registry = b->registry,
                                         .defaults = &defaults};
    const struct plan_pending planner = {.agent_id = doc_string(doc_get(wish, STR_LIT("agentId"))),
                                         .skill = doc_string(doc_get(wish, STR_LIT("skill"))),
                                         .repairs = 2};
    enum bt_code code;

    b->problems = (struct problems){.at = b->at, .cap = 100};
    buf_clear(&b->normalised);
    code = plan_read_pending(&request, &planner, &b->arena, &b->plan, &b->problems, &b->normalised,
                             &b->err);
    add_reading(r, code);
    r->pending = code == BT_OK ? r->last : r->pending;
    r->policy = (struct doc){NULL, 0};
}

static void add_time(struct rules *r, const char *name, uint64_t ms)
{
    if (ms == LINT_NO_BOUND) {
        buf_printf(&r->out, " %s=none", name);
    } else {
        buf_printf(&r->out, " %s=%llu", name, (unsigned long long)ms);
    }
}

static void lint(struct rules *r, struct doc doc)
{
    struct bench *b = r->b;
    struct plan_lint of;

    if (read_doc(b, doc) != BT_OK) {
        add_reading(r, BT_INVALID);
        return;
    }
    assert_int_equal(plan_lint(b->plan, &b->arena, &of, &b->err), BT_OK);
    buf_add_cstr(&r->out, "worst");
    add_time(r, "plan", of.worst_ms);
    add_time(r, "path", of.path_ms);
    add_time(r, "work", of.work_ms);
    add_time(r, "undo", of.undo_ms);
    add_time(r, "tokens", of.worst_tokens);
    add_time(r, "micros", of.worst_micros);
    buf_printf(&r->out, " unestimated=%u levels=%u path:", of.unestimated, of.n_levels);
    for (uint32_t i = 0; i < of.n_path; i++) {
        buf_printf(&r->out, " %.*s", STR_ARG(b->plan->steps[of.path[i]].step_id));
    }
    for (uint32_t i = 0; i < b->plan->n_steps; i++) {
        buf_printf(&r->out, "\n  %.*s level=%u attempts=%u", STR_ARG(b->plan->steps[i].step_id),
                   of.steps[i].level, of.steps[i].attempts);
        add_time(r, "worst", of.steps[i].worst_ms);
    }
    buf_add_byte(&r->out, '\n');
    b->problems = (struct problems){.at = b->at, .cap = 100};
    assert_int_equal(plan_lint_style(b->plan, &of, b->registry, &b->arena, &b->problems, &b->err),
                     BT_OK);
    add_problems(r);
}

static void move(struct rules *r, const char *line)
{
    static const struct {
        const char *name;
        enum step_status to;
    } ends[] = {{"in_progress", STEP_IN_PROGRESS},
                {"completed", STEP_COMPLETED},
                {"failed", STEP_FAILED},
                {"skipped", STEP_SKIPPED}};
    const size_t n = strcspn(line, " ");

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (strcmp(line + n + 1, ends[i].name) == 0) {
            const uint32_t step = plan_step_find(r->b->plan, (struct str){line, n});
            if (step == UINT32_MAX) {
                fail_msg("no such step: %s", line);
            }
            move_step(r->b, r->run, step, ends[i].to);
            return;
        }
    }
    fail_msg("no status: %s", line);
}

static void change(struct rules *r, enum plan_revise_kind kind, const char *json)
{
    struct plan *next = NULL;
    const enum bt_code code = revise(r->b, r->run, kind, doc_of(r->b, json), &next);

    if (code != BT_OK) {
        add_problems(r);
        buf_printf(&r->out, "refused: %s\n", r->b->err.msg);
        return;
    }
    add_problems(r);
    keep_last(r);
    add_document(r, r->last);
    r->run = revised(r->b, r->run, kind, json);
    buf_printf(&r->out, "order %s\n", shape(r->b, r->b->plan));
}

static void rerun(struct rules *r, struct doc doc)
{
    const struct doc marked = doc_get(doc, STR_LIT("marked"));
    const struct plan *p = r->b->plan;
    uint8_t marks[100] = {0};
    struct plan *next = NULL;

    assert_true(p->n_steps <= sizeof marks);
    for (uint32_t i = 0; i < doc_head(marked).n; i++) {
        marks[plan_step_find(p, doc_string(doc_at(marked, i)))] = 1;
    }
    if (revise_marked(r->b, r->run, REVISE_RERUN, doc_get(doc, STR_LIT("steps")), marks, &next) !=
        BT_OK) {
        add_problems(r);
        buf_printf(&r->out, "refused: %s\n", r->b->err.msg);
        return;
    }
    add_problems(r);
    keep_last(r);
    add_document(r, r->last);
    (void)read_back(r->b);
    r->run = reuse_results(r->b, r->run, next);
    buf_printf(&r->out, "order %s\n", shape(r->b, r->b->plan));
}

/* ---- children ---- */

static uint64_t number_of(struct doc doc, const char *name)
{
    return doc_head(doc_get(doc, str_from(name))).u;
}

static void child_round(struct rules *r, const char *line)
{
    static struct plan_defaults defaults;
    struct bench *b = r->b;
    const size_t n = strcspn(line, " ");
    const struct doc wish = doc_of(b, line + n + 1);
    const uint32_t step = plan_step_find(b->plan, (struct str){line, n});
    const struct child_share share = {number_of(wish, "time"), number_of(wish, "tokens"),
                                      number_of(wish, "micros")};
    struct child_step how;
    struct child_of of;
    struct doc items;
    struct buf text;

    defaults = plan_defaults_builtin();
    child_of_read(wish, &of, &items);
    if (step == UINT32_MAX || !child_step_read(b->plan->steps[step].rules->child, &how)) {
        buf_add_cstr(&r->out, "no children\n");
        return;
    }
    buf_init(&text, FILE_MAX);
    assert_int_equal(child_document(&how, &of, items, doc_string(doc_get(wish, STR_LIT("session"))),
                                    &share, &text, &b->err),
                     BT_OK);
    if (plan_read_canonical(doc_copy(&b->arena, doc_from_buf(&text)), &defaults, b->registry,
                            &b->arena, &b->plan, &b->err) != BT_OK) {
        buf_printf(&r->out, "refused: %s\n", b->err.msg);
    } else {
        buf_printf(&r->out, "= %s\n", json_of(b, doc_from_buf(&text)));
        buf_clear(&b->normalised);
        assert_int_equal(plan_write(b->plan, &b->normalised, &b->err), BT_OK);
        keep_last(r);
        add_document(r, r->last);
        buf_printf(&r->out, "order %s\n", shape(b, b->plan));
    }
    buf_done(&text);
}

static void words(struct rules *r, const char *line)
{
    while (*line != 0) {
        const size_t n = strcspn(line, " ");
        buf_printf(&r->out, "%.*s: %s\n", (int)n, line,
                   child_gives(&r->b->plan->child, (struct str){line, n}) ? "given" : "not given");
        line += n + (line[n] == ' ');
    }
}

static void asks(struct rules *r, struct doc doc)
{
    const struct doc permitted = plan_permitted_of(doc);

    buf_printf(&r->out, "permits %s, %s\n",
               permitted.ptr == NULL ? "all" : json_of(r->b, permitted),
               plan_waits_for_agents(doc) ? "waits" : "does not wait");
}

static void never(struct rules *r, struct doc doc)
{
    struct bench *b = r->b;

    if (read_doc(b, doc) != BT_OK) {
        add_reading(r, BT_INVALID);
        return;
    }
    b->problems = (struct problems){.at = b->at, .cap = 100};
    assert_int_equal(plan_lint_never(b->plan, &b->arena, &b->problems, &b->err), BT_OK);
    add_problems(r);
}

static void diff(struct rules *r)
{
    struct plan_diff of;

    if (plan_diff(r->before, r->last, &r->b->arena, &of, &r->b->err) != BT_OK) {
        fail_msg("%s", r->b->err.msg);
    }
    plan_diff_text(&of, &r->out);
}

static void recipe(struct rules *r, struct doc doc)
{
    struct bench *b = r->b;
    struct recipe_about about;
    enum bt_code code;

    b->problems = (struct problems){.at = b->at, .cap = 100};
    code = recipe_check(doc, b->registry, &b->problems, &b->err);
    add_problems(r);
    buf_printf(&r->out, "%s%s\n",
               code == BT_OK ? "valid" : "refused: ", code == BT_OK ? "" : b->err.msg);
    r->recipe = doc;
    if (recipe_describe(doc, &b->arena, &about, &b->err) != BT_OK) {
        buf_printf(&r->out, "no recipe: %s\n", b->err.msg);
        return;
    }
    buf_printf(&r->out, "recipe name=%.*s title=%.*s description=%.*s steps=%u\n",
               STR_ARG(about.name), STR_ARG(about.title), STR_ARG(about.description),
               about.n_steps);
    for (uint32_t i = 0; i < about.n_inputs; i++) {
        const struct recipe_input *in = &about.inputs[i];
        buf_printf(&r->out, "input %.*s: %.*s%s%s%s %.*s\n", STR_ARG(in->name), STR_ARG(in->type),
                   in->required ? ", required" : "", in->default_value.ptr != NULL ? ", " : "",
                   in->default_value.ptr != NULL ? json_of(b, in->default_value) : "",
                   STR_ARG(in->description));
    }
}

static void fill(struct rules *r, struct doc values)
{
    struct buf filled;

    buf_init(&filled, FILE_MAX);
    if (recipe_fill(r->recipe, values, &filled, &r->b->err) != BT_OK) {
        buf_printf(&r->out, "refused: %s\n", r->b->err.msg);
    } else {
        buf_printf(&r->out, "= %s\n", json_of(r->b, doc_from_buf(&filled)));
    }
    buf_done(&filled);
}

static void obey(struct rules *r, const char *line)
{
    const size_t n = strcspn(line, " ");
    const struct str order = {line, n};
    const char *rest = line + n + (line[n] == ' ');
    struct bench *b = r->b;

    if (str_is(order, "agent")) {
        add_agent(b, rest);
    } else if (str_is(order, "plan") || str_is(order, "lenient")) {
        add_reading(r, read_as(r, &(struct plan_request){.plan = doc_of(b, rest),
                                                         .lenient = str_is(order, "lenient")}));
    } else if (str_is(order, "answer") || str_is(order, "trusted")) {
        add_reading(r, read_as(r, &(struct plan_request){.plan = doc_of(b, rest),
                                                         .pending = r->pending,
                                                         .trusted = str_is(order, "trusted")}));
    } else if (str_is(order, "policy")) {
        r->policy = doc_of(b, rest);
    } else if (str_is(order, "pending")) {
        pending(r, doc_of(b, rest));
    } else if (str_is(order, "lint")) {
        lint(r, doc_of(b, rest));
    } else if (str_is(order, "start")) {
        r->run = start_run(b, rest);
        keep_last(r);
    } else if (str_is(order, "step")) {
        move(r, rest);
    } else if (str_is(order, "insert")) {
        change(r, REVISE_INSERT, rest);
    } else if (str_is(order, "replace")) {
        change(r, REVISE_REPLACE, rest);
    } else if (str_is(order, "replan")) {
        change(r, REVISE_REPLAN, rest);
    } else if (str_is(order, "rerun")) {
        rerun(r, doc_of(b, rest));
    } else if (str_is(order, "depth")) {
        r->depth = (uint32_t)strtoul(rest, NULL, 10);
    } else if (str_is(order, "round")) {
        child_round(r, rest);
    } else if (str_is(order, "run")) {
        r->run = begin_run(b);
    } else if (str_is(order, "asks")) {
        asks(r, doc_of(b, rest));
    } else if (str_is(order, "never")) {
        never(r, doc_of(b, rest));
    } else if (str_is(order, "words")) {
        words(r, rest);
    } else if (str_is(order, "diff")) {
        diff(r);
    } else if (str_is(order, "recipe")) {
        recipe(r, doc_of(b, rest));
    } else if (str_is(order, "fill")) {
        fill(r, doc_of(b, rest));
    } else {
        fail_msg("no order: %s", line);
    }
}

/* ---- files ---- */

static void begin_rule(struct rules *r)
{
    void *state = NULL;

    assert_int_equal(bench_setup(&state), 0);
    *r = (struct rules){.b = state, .out = r->out};
    add_house(r->b);
    assert_int_equal(read_json(r->b, "{'goal':'g','steps':[{'stepId':'-','agentId':'calc',"
                                     "'task':'do something worth doing'}]}"),
                     BT_OK);
    r->plain = json_tree(r, doc_from_buf(&r->b->normalised));
}

static void end_rule(struct rules *r)
{
    void *state = r->b;

    if (r->b != NULL) {
        cJSON_Delete(r->plain);
        (void)bench_teardown(&state);
        r->b = NULL;
    }
}

/* The file as it would be written now. */
static void replay(struct rules *r, const char *text)
{
    char *copy = strdup(text);

    assert_non_null(copy);
    for (char *line = copy; line != NULL && *line != 0;) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end = 0;
        }
        if (line[0] == '#') {
            buf_printf(&r->out, "%s%s\n", r->out.len > 0 ? "\n" : "", line);
            end_rule(r);
            begin_rule(r);
        } else if (strncmp(line, "> ", 2) == 0) {
            buf_printf(&r->out, "%s\n", line);
            obey(r, line + 2);
        }
        line = end == NULL ? NULL : end + 1;
    }
    end_rule(r);
    free(copy);
}

static void each_rule_holds(void **state)
{
    DIR *dir = opendir(READINGS);
    uint32_t files = 0;

    (void)state;
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        struct rules r = {.run = NULL};
        char path[1000];
        char *text;
        if (strstr(e->d_name, ".txt") == NULL || strcmp(e->d_name, "CMakeLists.txt") == 0) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", READINGS, e->d_name);
        text = golden_read(path);
        buf_init(&r.out, FILE_MAX);
        replay(&r, text);
        files++;
        golden_keep(path, text, buf_cstr(&r.out));
        buf_done(&r.out);
        free(text);
    }
    assert_int_equal(closedir(dir), 0);
    assert_true(files >= 3);
}

int main(void)
{
    (void)mallopt(M_PERTURB, 0xa5); /* what was freed reads as something else */
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_rule_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
