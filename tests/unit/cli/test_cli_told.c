/*
 * What people are shown of plans, reviews, loads and pictures: cli_told.txt has cases, each a
 * heading, a JSON document and the text that is made of it. BATON_WRITE=1 writes the texts anew:
 * read the difference against the rule that the heading names.
 *
 *     ## REVIEW 40: the rule          the form, its numbers, and what the case is about
 *     {...}                           one line
 *     the text
 */
#include <cjson/cJSON.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/picture/graph.h"
#include "supervisor/cli/picture/timeline.h"
#include "supervisor/cli/view/condition.h"
#include "supervisor/cli/view/event_line.h"
#include "supervisor/cli/view/failures.h"
#include "supervisor/cli/view/load.h"
#include "supervisor/cli/view/review.h"
#include "supervisor/cli/view/spans.h"
#include "supervisor/cli/view/tree.h"
#include "tests/support/cmocka.h"

enum { BYTES_MAX = 1 << 22, STEPS_MAX = 64, DEPS_MAX = 16 };

static const struct cli cli = {.color = false};

static const cJSON *get(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

/* ---- forms: each appends the text of a document ---- */

struct args {
    int a, b; /* the numbers of the heading */
    bool ascii, color;
};

static struct look look_of(struct args args)
{
    return (struct look){.width = args.a, .ascii = args.ascii, .color = args.color};
}

static void put_review(const cJSON *d, struct args args, struct buf *out)
{
    review_text(d, (size_t)args.a, out);
}

static void put_tables(const cJSON *d, struct args args, struct buf *out)
{
    (void)args;
    buf_add_cstr(out, review_tables(d, out) ? "" : "none\n");
}

static void put_diff(const cJSON *d, struct args args, struct buf *out)
{
    (void)args;
    buf_add_cstr(out, review_diff(d, out) ? "" : "none\n");
}

static void put_decision(const cJSON *d, struct args args, struct buf *out)
{
    (void)args;
    review_decision(d, out);
}

static void put_condition(const cJSON *d, struct args args, struct buf *out)
{
    const cJSON *c;

    (void)args;
    cJSON_ArrayForEach(c, d)
    {
        condition_words(c, out);
        buf_add_byte(out, '\n');
    }
}

static void put_events(const cJSON *d, struct args args, struct buf *out)
{
    const cJSON *e;

    (void)args;
    cJSON_ArrayForEach(e, d)
    {
        struct buf line;
        buf_init(&line, BYTES_MAX);
        event_line(e, &line);
        buf_printf(out, "%s: %s\n", event_title(e) != NULL ? event_title(e) : "(its type)",
                   buf_cstr(&line));
        buf_done(&line);
    }
}

static void add_line(void *self, const char *text)
{
    buf_printf(self, "%s\n", text);
}

static void put_failures(const cJSON *d, struct args args, struct buf *out)
{
    (void)args;
    failures_each(d, json_text(d, "why", ""), add_line, out);
}

/* steps: {id, detail, when, status, deps: [index]} */
static void put_graph(const cJSON *d, struct args args, const char *form, struct buf *out)
{
    static struct graph_step steps[STEPS_MAX];
    static uint32_t deps[STEPS_MAX][DEPS_MAX];
    const struct look look = look_of(args);
    struct graph g = {.title = json_text(d, "title", ""), .steps = steps};
    struct arena arena = {0};
    struct bt_error err;
    enum bt_code code;
    const cJSON *s;
    const cJSON *n;

    cJSON_ArrayForEach(s, get(d, "steps"))
    {
        struct graph_step *step = &steps[g.n];
        *step = (struct graph_step){.id = json_text(s, "id", ""),
                                    .detail = json_text(s, "detail", ""),
                                    .when = json_text(s, "when", NULL),
                                    .status = json_text(s, "status", ""),
                                    .deps = deps[g.n]};
        cJSON_ArrayForEach(n, get(s, "deps"))
        {
            deps[g.n][step->n_deps++] = (uint32_t)n->valuedouble;
        }
        g.n++;
    }
    code = strcmp(form, "svg") == 0       ? graph_svg(&g, &arena, out, &err)
           : strcmp(form, "dot") == 0     ? graph_dot(&g, out, &err)
           : strcmp(form, "mermaid") == 0 ? graph_mermaid(&g, out, &err)
                                          : graph_text(&g, &look, &arena, out, &err);
    if (code != BT_OK) {
        buf_printf(out, "%s\n", err.msg);
    }
    arena_done(&arena);
}

static void put_graph_text(const cJSON *d, struct args args, struct buf *out)
{
    put_graph(d, args, "text", out);
}

static void put_graph_svg(const cJSON *d, struct args args, struct buf *out)
{
    put_graph(d, args, "svg", out);
}

static void put_graph_dot(const cJSON *d, struct args args, struct buf *out)
{
    put_graph(d, args, "dot", out);
}

static void put_graph_mermaid(const cJSON *d, struct args args, struct buf *out)
{
    put_graph(d, args, "mermaid", out);
}

/* {view, chain, now, events}: each span, then the drawing. */
static void put_time(const cJSON *d, struct args args, bool svg, struct buf *out)
{
    static const char *const kinds[] = {"queued",  "waiting", "backoff", "asked",
                                        "running", "adopted", "person"};
    const struct look look = look_of(args);
    struct spans *s = spans_new(get(d, "view"), cJSON_IsTrue(get(d, "chain")));
    struct arena arena = {0};
    struct bt_error err;
    struct timeline *t;
    const cJSON *e;

    assert_non_null(s);
    cJSON_ArrayForEach(e, get(d, "events"))
    {
        spans_event(s, e);
    }
    t = spans_end(s, json_number(d, "now"));
    assert_non_null(t);
    t->title = "a plan";
    if (svg) {
        assert_int_equal(timeline_svg(t, out, &err), BT_OK);
    } else {
        for (uint32_t i = 0; i < t->n_spans; i++) {
            buf_printf(out, "%s %s %.0f-%.0f\n", t->rows[t->spans[i].row].name,
                       kinds[t->spans[i].kind], t->spans[i].from, t->spans[i].to);
        }
        assert_int_equal(timeline_text(t, &look, &arena, out, &err), BT_OK);
    }
    arena_done(&arena);
    spans_free(s);
}

static void put_timeline(const cJSON *d, struct args args, struct buf *out)
{
    put_time(d, args, false, out);
}

static void put_timeline_svg(const cJSON *d, struct args args, struct buf *out)
{
    put_time(d, args, true, out);
}

/* {takes: [{stats, now}], frame} */
static void put_load(const cJSON *d, struct args args, struct buf *out)
{
    const struct look look = look_of(args);
    struct load *l = load_new();
    const cJSON *t;

    assert_non_null(l);
    cJSON_ArrayForEach(t, get(d, "takes"))
    {
        load_take(l, get(t, "stats"), json_number(t, "now"));
    }
    load_frame(l, get(d, "frame"), &look, args.b, out);
    load_free(l);
}

/* What is printed by a function meanwhile, on stdout and on stderr. */
static FILE *before[2];
static char *printed;
static size_t printed_n;

static void capture(void)
{
    before[0] = stdout;
    before[1] = stderr;
    stdout = stderr = open_memstream(&printed, &printed_n);
    assert_non_null(stdout);
}

static void captured(struct buf *out)
{
    (void)fclose(stdout);
    stdout = before[0];
    stderr = before[1];
    buf_add(out, printed, printed_n);
    free(printed);
}

static void put_tree(const cJSON *d, struct args args, struct buf *out)
{
    capture();
    if (args.a == 0) {
        tree_print(&cli, d);
    } else {
        tree_print_in(&cli, d, args.a, args.b);
    }
    captured(out);
}

/* {view, events, waits: [view], notes, quiet}: what somebody sees who follows a plan. */
static void put_follow(const cJSON *d, struct args args, struct buf *out)
{
    const bool quiet = cJSON_IsTrue(get(d, "quiet"));
    struct tree *t = tree_new(&cli, get(d, "view"), quiet);
    const cJSON *e;

    (void)args;
    assert_non_null(t);
    capture();
    cJSON_ArrayForEach(e, get(d, "events"))
    {
        tree_event(t, e);
    }
    cJSON_ArrayForEach(e, get(d, "waits"))
    {
        tree_waits(t, e);
    }
    tree_note(t, "a note\nof %d lines", 2);
    tree_flush(t);
    (void)printf("waits: %d, steps: %d\n", tree_waiting(t), tree_size(t));
    assert_true(tree_refresh(t, get(d, "view")));
    tree_end(t);
    tree_settle(t);
    (void)printf("waits: %d\n", tree_waiting(t));
    captured(out);
    tree_free(t);
}

static void put_problems(const cJSON *d, struct args args, struct buf *out)
{
    (void)args;
    capture();
    cli_print_problems(d);
    captured(out);
}

static const struct form {
    const char *name;
    void (*put)(const cJSON *d, struct args args, struct buf *out);
} forms[] = {{"review", put_review},
             {"tables", put_tables},
             {"diff", put_diff},
             {"decision", put_decision},
             {"condition", put_condition},
             {"events", put_events},
             {"failures", put_failures},
             {"graph", put_graph_text},
             {"graph.svg", put_graph_svg},
             {"graph.dot", put_graph_dot},
             {"graph.mermaid", put_graph_mermaid},
             {"timeline", put_timeline},
             {"timeline.svg", put_timeline_svg},
             {"load", put_load},
             {"tree", put_tree},
             {"follow", put_follow},
             {"problems", put_problems}};

/* "tree 60 8 ascii: the rule" */
static void put_case(const char *heading, const cJSON *d, struct buf *out)
{
    char words[128];
    char *save;
    struct args args = {.a = 0};
    const struct form *form = NULL;
    int n = 0;

    (void)snprintf(words, sizeof words, "%.*s", (int)strcspn(heading, ":"), heading);
    for (char *w = strtok_r(words, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
            form = strcmp(forms[i].name, w) == 0 ? &forms[i] : form;
        }
        args.ascii = args.ascii || strcmp(w, "ascii") == 0;
        args.color = args.color || strcmp(w, "color") == 0;
        if (w[0] >= '0' && w[0] <= '9') {
            *(n++ == 0 ? &args.a : &args.b) = (int)strtol(w, NULL, 10);
        }
    }
    if (form == NULL) {
        fail_msg("there is no form of this name: %s", heading);
    }
    form->put(d, args, out);
}

/* ---- the file ---- */

static char *read_told(void)
{
    FILE *f = fopen(TOLD, "r");
    char *text = malloc(BYTES_MAX);
    size_t n;

    assert_non_null(f);
    assert_non_null(text);
    n = fread(text, 1, BYTES_MAX - 1, f);
    text[n] = 0;
    (void)fclose(f);
    return text;
}

static void each_case_tells_what_the_file_says(void **state)
{
    char *told = read_told();
    char *at = strstr(told, "## ");
    struct buf all;
    uint32_t bad = 0;

    (void)state;
    assert_non_null(at);
    buf_init(&all, BYTES_MAX);
    buf_add(&all, told, (size_t)(at - told));
    while (at != NULL) {
        char *end = strstr(at, "\n## ");
        char *input = strchr(at, '\n') + 1;
        char *expected = strchr(input, '\n') + 1;
        struct buf out;
        cJSON *d;
        if (end != NULL) {
            *end = 0;
        }
        expected[-1] = 0;
        input[-1] = 0;
        d = cJSON_Parse(input);
        if (d == NULL) {
            fail_msg("%s: no JSON: %s", at, input);
        }
        buf_init(&out, BYTES_MAX);
        put_case(at + 3, d, &out);
        if (strcmp(buf_cstr(&out), expected) != 0) {
            print_error("%s\n--- expected\n%s--- is\n%s", at, expected, buf_cstr(&out));
            bad++;
        }
        buf_printf(&all, "%s\n%s\n%s%s", at, input, buf_cstr(&out), end != NULL ? "\n" : "");
        buf_done(&out);
        cJSON_Delete(d);
        at = end == NULL ? NULL : end + 1;
    }
    if (getenv("BATON_WRITE") != NULL) {
        FILE *f = fopen(TOLD, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(all.at, 1, all.len, f), all.len);
        (void)fclose(f);
    } else {
        assert_int_equal(bad, 0);
    }
    buf_done(&all);
    free(told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_tells_what_the_file_says),
    };

    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
