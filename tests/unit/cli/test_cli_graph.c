/* Drawings of plans: golden ones, and properties of random ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/cli/picture/layout_internal.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

enum { STEPS_MAX = 40, BYTES_MAX = 1 << 22, ROUNDS = 3000, GRID_MAX = 1000 };

struct plan {
    struct graph_step steps[STEPS_MAX];
    uint32_t deps[STEPS_MAX][STEPS_MAX];
    char ids[STEPS_MAX][16];
    struct graph graph;
};

/* edges: "0-2 1-2": a step, and one that depends on it. */
static struct plan *plan_of(uint32_t n, const char *edges)
{
    struct plan *p = calloc(1, sizeof *p);

    assert_non_null(p);
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(p->ids[i], sizeof p->ids[i], "s%u", i);
        p->steps[i] = (struct graph_step){
            .id = p->ids[i], .detail = "calc", .status = "", .deps = p->deps[i]};
    }
    for (const char *at = edges; *at != 0; at += strspn(at, " ")) {
        char *end;
        const unsigned long from = strtoul(at, &end, 10);
        const unsigned long to = strtoul(end + 1, &end, 10);
        p->deps[to][p->steps[to].n_deps++] = (uint32_t)from;
        at = end;
    }
    p->graph = (struct graph){.title = "a plan", .steps = p->steps, .n = n};
    return p;
}

/* The drawing; free with free(). */
static char *drawn(const struct graph *g, const struct look *look)
{
    struct arena arena = {0};
    struct buf out;
    struct bt_error err;
    char *text;
    size_t len;

    buf_init(&out, BYTES_MAX);
    assert_int_equal(graph_text(g, look, &arena, &out, &err), BT_OK);
    (void)buf_cstr(&out);
    text = (char *)buf_take(&out, &len);
    arena_done(&arena);
    return text;
}

static void assert_drawn(uint32_t n, const char *edges, const struct look *look,
                         const char *expected)
{
    struct plan *p = plan_of(n, edges);
    char *text = drawn(&p->graph, look);

    assert_string_equal(text, expected);
    free(text);
    free(p);
}

static const struct look plain = {.width = 80};
static const struct look narrow = {.width = 20};

static void a_step_is_a_box_and_a_dependency_a_line(void **state)
{
    (void)state;
    assert_drawn(1, "", &plain,
                 "┌──────┐\n"
                 "│ s0   │\n"
                 "│ calc │\n"
                 "└──────┘\n");
    assert_drawn(2, "0-1", &plain,
                 "┌──────┐\n"
                 "│ s0   │\n"
                 "│ calc │\n"
                 "└───┬──┘\n"
                 "    │\n"
                 "┌───▼──┐\n"
                 "│ s1   │\n"
                 "│ calc │\n"
                 "└──────┘\n");
}

/* The condition has as many lines as it needs, at most WHEN_ROWS; the other boxes of its layer are
 * as high. */
static void a_condition_stands_in_its_box(void **state)
{
    struct plan *p = plan_of(2, "");
    char *text;

    (void)state;
    p->steps[1].when = "a.rowCount >= 5 and < 7 or b.rowCount = 12345678";
    text = drawn(&p->graph, &plain);
    assert_string_equal(text, "┌──────┐ ┌────────────────────────────┐\n"
                              "│ s0   │ │ s1                         │\n"
                              "│ calc │ │ calc                       │\n"
                              "│      │ │ if a.rowCount >= 5 and < 7 │\n"
                              "│      │ │ or b.rowCount = 12345678   │\n"
                              "└──────┘ └────────────────────────────┘\n");
    free(text);
    text = drawn(&p->graph, &(struct look){.width = 24, .ascii = true});
    assert_string_equal(text, "+------+ +-------------+\n"
                              "| s0   | | s1          |\n"
                              "| calc | | calc        |\n"
                              "|      | | if          |\n"
                              "|      | | a.rowCount  |\n"
                              "|      | | >= 5 and <~ |\n"
                              "+------+ +-------------+\n");
    free(text);
    free(p);
}

static void a_long_edge_goes_around_the_boxes_of_the_layers_between(void **state)
{
    (void)state;
    assert_drawn(3, "0-1 0-2 1-2", &plain,
                 "   ┌──────┐\n"
                 "   │ s0   │\n"
                 "   │ calc │\n"
                 "   └───┬──┘\n"
                 "    ┌──┴──┐\n"
                 "┌───▼──┐  │\n"
                 "│ s1   │  │\n"
                 "│ calc │  │\n"
                 "└───┬──┘  │\n"
                 "    │  ┌──┘\n"
                 "   ┌▼──▼──┐\n"
                 "   │ s2   │\n"
                 "   │ calc │\n"
                 "   └──────┘\n");
}

static void a_line_that_crosses_another_goes_over_it_and_only_a_branch_is_a_cross(void **state)
{
    const struct look ascii = {.width = 80, .ascii = true};

    (void)state;
    assert_drawn(4, "0-2 0-3 1-2 1-3", &ascii,
                 "+------+ +------+\n"
                 "| s0   | | s1   |\n"
                 "| calc | | calc |\n"
                 "+---+--+ +---+--+\n"
                 "    +------+ |\n"
                 "    | +----|-+\n"
                 "+---v-v+ +-v-v--+\n"
                 "| s2   | | s3   |\n"
                 "| calc | | calc |\n"
                 "+------+ +------+\n");
}

static void the_order_in_a_layer_avoids_crossings(void **state)
{
    (void)state;
    assert_drawn(6, "0-5 1-4 2-3", &plain,
                 "┌──────┐ ┌──────┐ ┌──────┐\n"
                 "│ s0   │ │ s1   │ │ s2   │\n"
                 "│ calc │ │ calc │ │ calc │\n"
                 "└───┬──┘ └───┬──┘ └───┬──┘\n"
                 "    │        │        │\n"
                 "┌───▼──┐ ┌───▼──┐ ┌───▼──┐\n"
                 "│ s5   │ │ s4   │ │ s3   │\n"
                 "│ calc │ │ calc │ │ calc │\n"
                 "└──────┘ └──────┘ └──────┘\n");
}

static void a_plan_too_wide_for_the_terminal_is_a_list_that_gives_the_reason(void **state)
{
    (void)state;
    assert_drawn(4, "0-1 0-2 0-3", &narrow,
                 "too wide to draw in 20 columns: it needs 26; as a list, layer by layer:\n"
                 "    1  s0 calc\n"
                 "    2  s1 calc ← s0\n"
                 "       s2 calc ← s0\n"
                 "       s3 calc ← s0\n");
    /* Columns, also when some names are longer. */
    assert_drawn(11, "0-1 0-2 0-3 0-4 0-5 0-6 0-7 0-8 0-9 0-10", &narrow,
                 "too wide to draw in 20 columns: it needs 89; as a list, layer by layer:\n"
                 "    1  s0  calc\n"
                 "    2  s1  calc ← s0\n"
                 "       s2  calc ← s0\n"
                 "       s3  calc ← s0\n"
                 "       s4  calc ← s0\n"
                 "       s5  calc ← s0\n"
                 "       s6  calc ← s0\n"
                 "       s7  calc ← s0\n"
                 "       s8  calc ← s0\n"
                 "       s9  calc ← s0\n"
                 "       s10 calc ← s0\n");
}

/* ---- the property: what is drawn is the plan ---- */

struct grid {
    uint32_t rows;
    int columns[GRID_MAX]; /* of each row */
    const char *cells[GRID_MAX][256];
};

static size_t glyph_bytes(const char *p)
{
    const unsigned char c = (unsigned char)*p;
    return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

static void read_grid(const char *text, struct grid *g)
{
    memset(g, 0, sizeof *g);
    for (const char *p = text; *p != 0;) {
        if (*p == '\n') {
            g->rows++;
            p++;
            continue;
        }
        assert_true(g->rows < GRID_MAX && g->columns[g->rows] < 256);
        g->cells[g->rows][g->columns[g->rows]++] = p;
        p += glyph_bytes(p);
    }
}

enum { NORTH = 1, SOUTH = 2, WEST = 4, EAST = 8 };

/* The directions of a line's character; 0 for others. */
static int arms(const struct grid *g, uint32_t row, int column)
{
    static const struct {
        const char *glyph;
        int arms;
    } all[] = {{"│", NORTH | SOUTH},
               {"─", WEST | EAST},
               {"┘", NORTH | WEST},
               {"└", NORTH | EAST},
               {"┐", SOUTH | WEST},
               {"┌", SOUTH | EAST},
               {"├", NORTH | SOUTH | EAST},
               {"┤", NORTH | SOUTH | WEST},
               {"┬", SOUTH | WEST | EAST},
               {"┴", NORTH | WEST | EAST},
               {"┼", NORTH | SOUTH | WEST | EAST}};

    assert_true(row < g->rows && column >= 0 && column < g->columns[row]);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strncmp(all[i].glyph, g->cells[row][column], strlen(all[i].glyph)) == 0) {
            return all[i].arms;
        }
    }
    return 0;
}

struct tracing {
    const struct grid *grid;
    const struct layout *l;
    uint32_t tops[STEPS_MAX]; /* the first row of each layer */
    bool *reached;            /* by step */
};

/* Notes the box whose top has this cell. */
static void reach(const struct tracing *t, uint32_t row, int column)
{
    for (uint32_t i = 0; i < t->l->graph->n; i++) {
        const struct node *node = &t->l->nodes[i];
        if (t->tops[node->layer] == row && column > node->x && column < node->x + node->width - 1) {
            assert_false(t->reached[i]); /* one line only */
            t->reached[i] = true;
            return;
        }
    }
    fail_msg("row %u, column %d: a line enters no box", row, column);
}

/* Follows a line as a person does, from the cell that it goes to in direction `to`. */
static void trace(const struct tracing *t, uint32_t row, int column, int to)
{
    static const int back[] = {[NORTH] = SOUTH, [SOUTH] = NORTH, [WEST] = EAST, [EAST] = WEST};
    int here;

    if (to == SOUTH && strncmp(t->grid->cells[row][column], "▼", 3) == 0) {
        reach(t, row, column);
        return;
    }
    here = arms(t->grid, row, column);
    if (here == (NORTH | SOUTH) && (to == WEST || to == EAST)) {
        here = WEST | EAST; /* it goes under the line that it crosses */
    }
    assert_true((here & back[to]) != 0);
    for (int next = NORTH; next <= EAST; next *= 2) {
        if (next != back[to] && (here & next) != 0) {
            trace(t, row + (next == SOUTH) - (next == NORTH),
                  column + (next == EAST) - (next == WEST), next);
        }
    }
}

static void check_edges(const struct layout *l, const struct grid *grid)
{
    bool reached[STEPS_MAX];
    struct tracing t = {.grid = grid, .l = l, .reached = reached};

    for (uint32_t i = 1; i < l->n_layers; i++) {
        t.tops[i] = t.tops[i - 1] + BOX_ROWS +
                    (uint32_t)(l->layers[i - 1].tracks > 0 ? l->layers[i - 1].tracks : 1);
    }
    for (uint32_t i = 0; i < l->graph->n; i++) {
        memset(reached, 0, sizeof reached);
        if (l->nodes[i].n_out > 0) {
            trace(&t, t.tops[l->nodes[i].layer] + BOX_ROWS, l->nodes[i].column, SOUTH);
        }
        for (uint32_t k = 0; k < l->graph->n; k++) {
            bool wanted = false;
            for (uint32_t d = 0; d < l->graph->steps[k].n_deps; d++) {
                wanted = wanted || l->graph->steps[k].deps[d] == i;
            }
            assert_int_equal(reached[k], wanted);
        }
    }
}

static void check_boxes(const struct layout *l)
{
    for (uint32_t i = 0; i < l->n_layers; i++) {
        for (uint32_t k = 0; k < l->layers[i].n; k++) {
            const struct node *node = &l->nodes[l->layers[i].nodes[k]];
            assert_true(node->x >= 0 && node->x + node->width <= l->width);
            if (k > 0) {
                const struct node *left = &l->nodes[l->layers[i].nodes[k - 1]];
                assert_true(left->x + left->width + GAP <= node->x);
            }
        }
    }
}

static struct plan *random_plan(struct rng *rng)
{
    const uint32_t n = 1 + rng_below(rng, rng_below(rng, 2) == 0 ? 8 : STEPS_MAX);
    const uint32_t density = 1 + rng_below(rng, 12);
    struct plan *p = plan_of(n, "");

    for (uint32_t i = 1; i < n; i++) {
        for (uint32_t k = 0; k < i && p->steps[i].n_deps + 1 < STEPS_MAX; k++) {
            for (uint32_t twice = 0; twice < 2 && rng_below(rng, n) * 2 < density; twice++) {
                p->deps[i][p->steps[i].n_deps] = k;
                p->steps[i].n_deps += p->steps[i].n_deps + 1 < STEPS_MAX;
            }
        }
    }
    return p;
}

/* Whether it was drawn; else it is a list. */
static bool check_random(struct rng *rng, struct grid *grid)
{
    struct plan *p = random_plan(rng);
    const struct look look = {.width = 20 + (int)rng_below(rng, 220)};
    struct arena arena = {0};
    struct label *labels = layout_labels(&p->graph, false, &arena);
    char *text = drawn(&p->graph, &look);
    struct layout l;
    struct bt_error err;
    bool fits = false;

    assert_int_equal(layout_make(&p->graph, labels, look.width, &arena, &l, &fits, &err), BT_OK);
    read_grid(text, grid);
    if (fits) {
        check_boxes(&l);
        for (uint32_t i = 0; i < grid->rows; i++) {
            assert_true(grid->columns[i] <= look.width);
        }
        check_edges(&l, grid);
    } else {
        assert_int_equal(grid->rows, p->graph.n + 1);
        assert_true(l.needed > look.width);
    }
    arena_done(&arena);
    free(text);
    free(p);
    return fits;
}

static void random_plans_are_drawn_without_overlap_and_with_every_edge(void **state)
{
    struct rng rng = rng_seeded("graph");
    struct grid *grid = malloc(sizeof *grid);
    int drawings = 0;

    (void)state;
    assert_non_null(grid);
    for (int i = 0; i < ROUNDS; i++) {
        drawings += check_random(&rng, grid);
    }
    assert_true(drawings > ROUNDS / 4 && drawings < ROUNDS);
    free(grid);
}

/* ---- names ---- */

static void assert_clean(const char *raw, bool ascii, const char *expected)
{
    struct buf out;

    buf_init(&out, 1024);
    look_clean(raw, ascii, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
}

static void names_become_one_line_of_known_width(void **state)
{
    (void)state;
    assert_clean("a\x1b[31mb\x7f\xc2\x9b"
                 "c\n\td",
                 false, "a?[31mb??c  d");
    assert_clean("\xff\xc0\xaf"
                 "a\xe2\x82",
                 false, "???a??");
    assert_clean("x\u202ey\u2066z\u2028", false, "x?y?z?");
    assert_clean("\U0001F468\u200D\U0001F469\uFE0F \U0001F44D\U0001F3FD", false,
                 "\U0001F468\U0001F469 \U0001F44D");
    assert_clean("größe 計画", true, "gr??e ??");
    assert_int_equal(look_columns("größe"), 5);
    assert_int_equal(look_columns("計画"), 4);
    assert_int_equal(look_columns("e\u0301"), 1);
    assert_int_equal(look_columns("\U0001F468"), 2);
}

static void assert_fit(const char *clean, int columns, bool ascii, bool pad, const char *expected)
{
    struct buf out;

    buf_init(&out, 1024);
    look_fit(clean, columns, ascii, pad, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
}

static void a_cut_name_ends_with_a_mark_and_cuts_no_character(void **state)
{
    (void)state;
    assert_fit("abcdef", 6, false, true, "abcdef");
    assert_fit("abcdefg", 6, false, true, "abcde…");
    assert_fit("abcdefg", 6, true, true, "abcde~");
    assert_fit("計画計画", 6, false, true, "計画… ");
    assert_fit("計画計画", 8, false, true, "計画計画");
    assert_fit("計", 1, false, true, "…");
    assert_fit("e\u0301e\u0301e\u0301", 2, false, false, "e\u0301…");
    assert_fit("ab", 4, false, true, "ab  ");
}

static void check_markup(const struct graph *g,
                         enum bt_code (*form)(const struct graph *, struct buf *,
                                              struct bt_error *),
                         const char *expected)
{
    struct buf out;
    struct bt_error err;

    buf_init(&out, BYTES_MAX);
    assert_int_equal(form(g, &out, &err), BT_OK);
    if (strstr(buf_cstr(&out), expected) == NULL) {
        fail_msg("no '%s' in\n%s", expected, buf_cstr(&out));
    }
    buf_done(&out);
}

static void hostile_names_are_escaped_in_each_form(void **state)
{
    struct plan *p = plan_of(2, "0-1");
    struct arena arena = {0};
    struct buf out;
    struct bt_error err;

    (void)state;
    p->steps[0].id = "a\"];b\\N&lt;</text>\x1b";
    p->steps[0].status = "failed";
    p->steps[1].id = "1. `x` #quot; - <b>";
    check_markup(&p->graph, graph_dot, "s1 [label=\"a\\\"];b\\\\N&amp;lt;</text>?\\ncalc\"");
    check_markup(&p->graph, graph_dot, "  s1 -> s2;\n");
    check_markup(&p->graph, graph_mermaid,
                 "s1[\"a#34;#93;#59;b#92;N#38;lt#59;#60;/text#62;#63;<br/>calc\"]\n");
    check_markup(&p->graph, graph_mermaid,
                 "s2[\"1#46; #96;x#96; #35;quot#59; #45; #60;b#62;<br/>calc\"]\n");
    check_markup(&p->graph, graph_mermaid, "  s1 --> s2\n");
    check_markup(&p->graph, graph_mermaid, "  class s1 failed\n");
    buf_init(&out, BYTES_MAX);
    assert_int_equal(graph_svg(&p->graph, &arena, &out, &err), BT_OK);
    assert_non_null(strstr(buf_cstr(&out), ">✗ a&quot;];b\\N&amp;lt;&lt;/text&gt;?</text>"));
    buf_done(&out);
    arena_done(&arena);
    free(p);
}

static void a_circle_is_an_error_and_no_endless_loop(void **state)
{
    struct plan *p = plan_of(3, "0-1 1-2 2-1");
    struct arena arena = {0};
    struct buf out;
    struct bt_error err;

    (void)state;
    buf_init(&out, BYTES_MAX);
    assert_int_equal(graph_text(&p->graph, &plain, &arena, &out, &err), BT_INVALID);
    assert_int_equal(graph_svg(&p->graph, &arena, &out, &err), BT_INVALID);
    buf_done(&out);
    arena_done(&arena);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_a_box_and_a_dependency_a_line),
        cmocka_unit_test(a_condition_stands_in_its_box),
        cmocka_unit_test(a_long_edge_goes_around_the_boxes_of_the_layers_between),
        cmocka_unit_test(a_line_that_crosses_another_goes_over_it_and_only_a_branch_is_a_cross),
        cmocka_unit_test(the_order_in_a_layer_avoids_crossings),
        cmocka_unit_test(a_plan_too_wide_for_the_terminal_is_a_list_that_gives_the_reason),
        cmocka_unit_test(random_plans_are_drawn_without_overlap_and_with_every_edge),
        cmocka_unit_test(names_become_one_line_of_known_width),
        cmocka_unit_test(a_cut_name_ends_with_a_mark_and_cuts_no_character),
        cmocka_unit_test(hostile_names_are_escaped_in_each_form),
        cmocka_unit_test(a_circle_is_an_error_and_no_endless_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
