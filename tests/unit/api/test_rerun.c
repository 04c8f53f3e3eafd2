/* A plan done again: what runs again, what the new document says, what is reused in which order. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/api/rerun.h"
#include "tests/support/memory.h"

/* Steps a, b, c, ... with edges "ab" = b depends on a. */
struct graph {
    struct plan plan;
    struct plan_step steps[8];
    uint32_t deps[16], dependents[16];
};

static void draw(struct graph *g, uint32_t n, const char *edges)
{
    *g = (struct graph){.plan = {.n_steps = n, .chain = edges == NULL}};
    g->plan.steps = g->steps;
    g->plan.deps = g->deps;
    g->plan.dependents = g->dependents;
    for (uint32_t i = 0; i < n && edges != NULL; i++) {
        g->steps[i].deps_at = g->plan.n_edges;
        for (const char *e = edges; *e != 0; e += e[2] == 0 ? 2 : 3) {
            if (e[1] == (char)('a' + (int)i)) {
                g->deps[g->plan.n_edges++] = (uint32_t)(e[0] - 'a');
                g->steps[i].deps_n++;
            }
        }
    }
    if (edges != NULL) {
        plan_link(&g->plan);
    }
}

static void marked(const struct graph *g, uint32_t from, const char *expected)
{
    struct arena arena = {0};
    bool marks[8] = {false};
    char text[9] = {0};
    size_t n = 0;

    assert_true(rerun_mark(&g->plan, from, &arena, marks));
    for (uint32_t i = 0; i < g->plan.n_steps; i++) {
        if (marks[i]) {
            text[n++] = (char)('a' + (int)i);
        }
    }
    assert_string_equal(text, expected);
    arena_done(&arena);
}

static void what_depends_on_the_step_runs_again_and_nothing_else(void **state)
{
    struct graph g;

    (void)state;
    draw(&g, 6, "ab ac bd cd ef");
    marked(&g, 0, "abcd");
    marked(&g, 1, "bd");
    marked(&g, 3, "d");
    marked(&g, 4, "ef");
    draw(&g, 4, NULL);
    marked(&g, 1, "bcd");
    marked(&g, 3, "d");
}

static void document_loses_what_only_a_revision_has(void **state)
{
    static const char canonical[] =
        "{\"goal\":\"g\",\"revision\":3,\"policy\":{\"maxRetries\":1},\"grants\":[\"x\"],"
        "\"steps\":[{\"stepId\":\"a\",\"dependsOn\":[]},"
        "{\"stepId\":\"b\",\"superseded\":true,\"dependsOn\":[\"a\"]},"
        "{\"stepId\":\"b\",\"revision\":2,\"dependsOn\":[\"a\",\"b@1\"],\"afterAnyEnd\":true,"
        "\"parameters\":{\"revision\":7,\"grants\":1}}]}";
    static const char expected[] = "{\"goal\":\"g\",\"policy\":{\"maxRetries\":1},"
                                   "\"steps\":[{\"stepId\":\"a\",\"dependsOn\":[]},"
                                   "{\"stepId\":\"b\",\"dependsOn\":[\"a\"],\"afterAnyEnd\":true,"
                                   "\"parameters\":{\"revision\":7,\"grants\":1}}]}";
    struct buf doc;
    struct buf out;
    struct buf json;
    struct bt_error err;

    (void)state;
    buf_init(&doc, 10000);
    buf_init(&out, 10000);
    buf_init(&json, 10000);
    assert_int_equal(json_to_doc(str_from(canonical), NULL, &doc, &err), BT_OK);
    assert_int_equal(rerun_document(doc_from_buf(&doc), &out, &err), BT_OK);
    assert_int_equal(doc_to_json(doc_from_buf(&out), false, &json, &err), BT_OK);
    assert_string_equal(buf_cstr(&json), expected);
    buf_clear(&doc);
    buf_clear(&out);
    doc_put_u64(&doc, 7);
    assert_int_equal(rerun_document(doc_from_buf(&doc), &out, &err), BT_PROTOCOL);
    buf_done(&doc);
    buf_done(&out);
    buf_done(&json);
}

static void reused_steps_come_behind_those_that_they_depend_on(void **state)
{
    /* Old rows: x (superseded), a, b, c; the new plan's a, b, c with a behind b behind c. */
    const struct rerun_row rows[] = {{.superseded = true, .reuse = true},
                                     {.reuse = true, .result = {11, 1}},
                                     {.reuse = false},
                                     {.reuse = true, .result = {13, 3}}};
    struct arena arena = {0};
    struct core_reuse *reuse;
    struct graph g;
    uint32_t n;

    (void)state;
    draw(&g, 3, "cb ba");
    reuse = rerun_reuse(&g.plan, rows, 4, &arena, &n);
    assert_non_null(reuse);
    assert_int_equal(n, 2);
    assert_int_equal(reuse[0].step, 2);
    assert_int_equal(reuse[0].result.id, 13);
    assert_int_equal(reuse[1].step, 0);
    assert_int_equal(reuse[1].result.id, 11);
    assert_null(rerun_reuse(&g.plan, rows, 3, &arena, &n)); /* another number of steps */
    arena_done(&arena);
}

/* A part of a document that found no memory is no document. */
static void a_document_is_whole_or_refused(void **state)
{
    static const char canonical[] =
        "{\"goal\":\"g\",\"revision\":3,\"steps\":[{\"stepId\":\"a\",\"dependsOn\":[]},"
        "{\"stepId\":\"b\",\"dependsOn\":[\"a\"],\"task\":\"t\"},"
        "{\"stepId\":\"c\",\"task\":\"each\",\"child\":{\"kind\":\"forEach\",\"list\":[1,2],"
        "\"as\":\"x\",\"body\":{\"policy\":{\"maxConcurrency\":2},\"steps\":[{\"stepId\":\"i\","
        "\"task\":\"u\"}]}}}]}";
    static const char expected[] =
        "{\"goal\":\"g\",\"steps\":[{\"stepId\":\"a\",\"dependsOn\":[]},"
        "{\"stepId\":\"b\",\"dependsOn\":[\"a\"],\"task\":\"t\"},"
        "{\"stepId\":\"c\",\"task\":\"each\",\"forEach\":[1,2],\"as\":\"x\","
        "\"maxConcurrency\":2,\"steps\":[{\"stepId\":\"i\",\"task\":\"u\"}]}]}";
    struct bt_error err;
    struct buf json;
    struct buf doc;
    bool failed = true;

    (void)state;
    buf_init(&doc, 10000);
    assert_int_equal(json_to_doc(str_from(canonical), NULL, &doc, &err), BT_OK);
    for (long i = 0; failed; i++) {
        enum bt_code code;
        struct buf out;
        buf_init(&out, 10000);
        buf_init(&json, 10000);
        memory_left = i;
        code = rerun_document(doc_from_buf(&doc), &out, &err);
        failed = memory_left < 0;
        memory_left = -1;
        assert_true(i < 1000);
        if (failed) {
            assert_int_equal(code, BT_NOMEM);
        } else {
            assert_int_equal(code, BT_OK);
            assert_int_equal(doc_to_json(doc_from_buf(&out), false, &json, &err), BT_OK);
            assert_string_equal(buf_cstr(&json), expected);
        }
        buf_done(&json);
        buf_done(&out);
    }
    buf_done(&doc);
}

/* An arena that has no room for the numbers of the steps. */
static void without_memory_nothing_is_said(void **state)
{
    const struct rerun_row rows[] = {{.reuse = true}, {.reuse = true}};
    struct arena arena = {.max = 1};
    bool marks[2] = {false, false};
    struct graph g;
    uint32_t n;

    (void)state;
    draw(&g, 2, "ab");
    assert_false(rerun_mark(&g.plan, 0, &arena, marks));
    assert_null(rerun_settled(rows, 2, &arena, &n));
    assert_null(rerun_reuse(&g.plan, rows, 2, &arena, &n));
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_depends_on_the_step_runs_again_and_nothing_else),
        cmocka_unit_test(document_loses_what_only_a_revision_has),
        cmocka_unit_test(reused_steps_come_behind_those_that_they_depend_on),
        cmocka_unit_test(a_document_is_whole_or_refused),
        cmocka_unit_test(without_memory_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
