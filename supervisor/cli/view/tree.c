#include "supervisor/cli/view/tree.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/view/children.h"
#include "supervisor/cli/view/tree_node.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"

enum {
    ROWS_MIN = 8,    /* a smaller terminal gets a line for each change */
    ROWS_BESIDE = 3, /* for what is above and below the tree */
    REDRAW_MS = 50,  /* between two drawings */
    MS_CHARS = 5,    /* ".638Z" */
    DRAWING_MAX = 1 << 20
};

struct tree {
    const struct cli *cli;
    struct tree_node *nodes;
    int n;
    int drawn; /* lines of the tree that are on the terminal */
    bool live; /* redrawn in place */
    bool quiet;
    bool changed; /* since it was drawn */
    msec drawn_at;
};

static void print_node(const struct cli *cli, const struct tree_node *node, FILE *to, bool color)
{
    struct buf line;

    buf_init(&line, DRAWING_MAX);
    tree_node_line(cli, node, color, 0, &line);
    (void)fprintf(to, "%s\n", buf_cstr(&line));
    buf_done(&line);
}

struct tree *tree_new(const struct cli *cli, const struct cJSON *plan_view, bool quiet)
{
    struct tree *t = calloc(1, sizeof *t);

    if (t == NULL) {
        return NULL;
    }
    t->cli = cli;
    t->quiet = quiet;
    if (!tree_refresh(t, plan_view)) {
        free(t);
        return NULL;
    }
    return t;
}

/* The size of the terminal; false when the steps cannot be redrawn in place. */
static bool terminal_size(const struct tree *t, int *ret_rows, int *ret_columns)
{
    const char *term = getenv("TERM");
    struct winsize size;

    if (t->quiet || isatty(STDERR_FILENO) != 1 || (term != NULL && strcmp(term, "dumb") == 0) ||
        ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < ROWS_MIN) {
        return false;
    }
    *ret_rows = size.ws_row;
    *ret_columns = size.ws_col;
    return true;
}

bool tree_refresh(struct tree *t, const struct cJSON *plan_view)
{
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(plan_view, "steps");
    struct tree_node *nodes = calloc((size_t)cJSON_GetArraySize(steps) + 1, sizeof *nodes);
    const cJSON *step;
    int rows = 0;
    int columns = 0;
    int n = 0;

    if (nodes == NULL) {
        return false;
    }
    cJSON_ArrayForEach(step, steps)
    {
        tree_node_fill(&nodes[n++], step);
    }
    free(t->nodes);
    t->nodes = nodes;
    t->n = n;
    t->live = terminal_size(t, &rows, &columns);
    t->drawn = t->live ? t->drawn : 0;
    return true;
}

void tree_free(struct tree *t)
{
    if (t != NULL) {
        free(t->nodes);
        free(t);
    }
}

bool tree_waiting(const struct tree *t)
{
    for (int i = 0; i < t->n; i++) {
        if (strcmp(t->nodes[i].status, "waiting") == 0) {
            return true;
        }
    }
    return false;
}

int tree_size(const struct tree *t)
{
    return t->n;
}

/* In the order in which they are drawn when not all of them fit. */
enum rank { RANK_OPEN, RANK_FAILED, RANK_PENDING, RANK_DONE };

static enum rank rank_of(const struct tree_node *node)
{
    if (strcmp(node->status, "in_progress") == 0 || strcmp(node->status, "waiting") == 0) {
        return RANK_OPEN;
    }
    if (strcmp(node->status, "failed") == 0) {
        return RANK_FAILED;
    }
    return strcmp(node->status, "pending") == 0 ? RANK_PENDING : RANK_DONE;
}

static int count(const struct tree *t, const char *status)
{
    int n = 0;

    for (int i = 0; i < t->n; i++) {
        n += strcmp(t->nodes[i].status, status) == 0;
    }
    return n;
}

static void end_line(struct buf *out)
{
    buf_add_cstr(out, "\033[K\n");
}

/* Draws the steps of a rank, at most `room` lines; when they are more, the last line counts the
 * rest. Returns the number of lines. */
static int draw_rank(const struct tree *t, enum rank rank, const char *rest, int room, int columns,
                     struct buf *out)
{
    int all = 0;
    int lines = 0;

    for (int i = 0; i < t->n; i++) {
        all += rank_of(&t->nodes[i]) == rank;
    }
    for (int i = 0; i < t->n && lines < room; i++) {
        if (rank_of(&t->nodes[i]) != rank) {
            continue;
        }
        if (lines == room - 1 && all > room) {
            buf_printf(out, "%s %d more %s", cli_mark(t->nodes[i].status), all - lines, rest);
        } else {
            tree_node_line(t->cli, &t->nodes[i], true, columns, out);
        }
        end_line(out);
        lines++;
    }
    return lines;
}

/* "✓ 120 of 600 done, 3 skipped": the steps that are over. */
static int draw_done(const struct tree *t, int columns, struct buf *out)
{
    static const struct {
        const char *status, *name;
    } others[] = {{"failed", "failed"}, {"skipped", "skipped"}, {"cancelled", "cancelled"}};
    char text[160];
    int used = snprintf(text, sizeof text, " %d of %d done", count(t, "completed"), t->n);

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const int n = count(t, others[i].status);
        if (n > 0) {
            used += snprintf(text + used, sizeof text - (size_t)used, ", %d %s", n, others[i].name);
        }
    }
    buf_printf(out, "%s%s%s", cli_color(t->cli, "completed"), cli_mark("completed"),
               cli_color_off(t->cli));
    tree_put_cut(out, text, columns > 1 ? columns - 1 : 0);
    end_line(out);
    return 1;
}

/* All steps when they fit; else those that are over as one line, then what runs, what failed, and
 * what is to come. Returns the number of lines. */
static int draw(const struct tree *t, int rows, int columns, struct buf *out)
{
    int room = rows - ROWS_BESIDE;
    int lines = 1;

    if (t->n <= room) {
        for (int i = 0; i < t->n; i++) {
            tree_node_line(t->cli, &t->nodes[i], true, columns, out);
            end_line(out);
        }
        return t->n;
    }
    (void)draw_done(t, columns, out);
    /* A line each for what failed and what is to come. */
    lines += draw_rank(t, RANK_OPEN, "are open", room - 3, columns, out);
    lines += draw_rank(t, RANK_FAILED, "failed", room - lines - 1, columns, out);
    lines += draw_rank(t, RANK_PENDING, "to come", room - lines, columns, out);
    return lines;
}

static void redraw(struct tree *t)
{
    struct buf out;
    int rows = ROWS_MIN;
    int columns = 0;

    (void)terminal_size(t, &rows, &columns);
    buf_init(&out, DRAWING_MAX);
    if (t->drawn > 0) {
        buf_printf(&out, "\033[%dA", t->drawn);
    }
    t->drawn = draw(t, rows, columns, &out);
    buf_add_cstr(&out, "\033[J"); /* the drawing before may have been longer */
    (void)fputs(buf_cstr(&out), stderr);
    (void)fflush(stderr);
    buf_done(&out);
    t->changed = false;
    t->drawn_at = clock_mono_ms();
}

/* Draws soon: not each of many changes. */
static void change(struct tree *t)
{
    t->changed = true;
    if (clock_mono_ms() - t->drawn_at >= REDRAW_MS) {
        redraw(t);
    }
}

void tree_flush(struct tree *t)
{
    if (t->live && t->changed) {
        redraw(t);
    }
}

void tree_end(struct tree *t)
{
    for (int i = 0; i < t->n; i++) {
        struct tree_node *node = &t->nodes[i];
        if (strcmp(node->status, "pending") == 0) {
            (void)snprintf(node->status, sizeof node->status, "cancelled");
            (void)snprintf(node->note, sizeof node->note, "not begun");
            t->changed = true;
        }
    }
    tree_flush(t);
}

void tree_settle(struct tree *t)
{
    tree_flush(t);
    t->drawn = 0;
}

void tree_note(struct tree *t, const char *fmt, ...)
{
    char text[1024];
    char line[1024];
    va_list args;

    if (t->quiet) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli_one_line(line, sizeof line, text);
    if (t->live && t->drawn > 0) {
        (void)fprintf(stderr, "\033[%dA\033[J", t->drawn);
    }
    (void)fprintf(stderr, "%s\n", line);
    if (t->live && t->drawn > 0) {
        t->drawn = 0;
        redraw(t);
    }
}

void tree_event(struct tree *t, const struct cJSON *event)
{
    const cJSON *index = cJSON_GetObjectItemCaseSensitive(event, "stepIndex");
    const char *type = json_text(event, "type", "");
    struct tree_node *node;

    if (!cJSON_IsNumber(index) || index->valuedouble < 0 || index->valuedouble >= t->n) {
        return;
    }
    node = &t->nodes[(int)index->valuedouble];
    if (!tree_node_update(node, type, event) || t->quiet) {
        return;
    }
    if (t->live) {
        change(t);
    } else if (strcmp(type, "plan_step_progress") != 0) {
        print_node(t->cli, node, stderr, true);
    }
}

/* The daemon computes the time for each answer again: its milliseconds are no news. */
static bool is_same_wait(const char *a, const char *b)
{
    const size_t n = strlen(a);

    return n == strlen(b) && strncmp(a, b, n > MS_CHARS ? n - MS_CHARS : n) == 0;
}

/* On a terminal each wait; elsewhere those that are news: not the order of the plan. */
static bool is_shown(const struct tree *t, const char *kind)
{
    static const char *const in_order[] = {"dependency", "concurrency", "review"};

    for (size_t i = 0; !t->live && i < sizeof in_order / sizeof in_order[0]; i++) {
        if (strcmp(in_order[i], kind) == 0) {
            return false;
        }
    }
    return kind[0] != 0 && strcmp(kind, "review") != 0;
}

void tree_waits(struct tree *t, const struct cJSON *plan_view)
{
    const cJSON *step;

    cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(plan_view, "steps"))
    {
        const cJSON *wait = children_wait(step);
        const double index = json_number(step, "stepIndex");
        char local[2 * NODE_NOTE_MAX];
        char note[NODE_NOTE_MAX];
        struct tree_node *node;
        if (wait == NULL || index >= t->n || !is_shown(t, json_text(wait, "kind", ""))) {
            continue;
        }
        node = &t->nodes[(int)index];
        cli_times_in(local, sizeof local, json_text(wait, "text", ""));
        cli_cut_line(note, sizeof note, local);
        if (node->wait_shown && is_same_wait(note, node->note)) {
            continue;
        }
        node->wait_shown = true;
        (void)snprintf(node->note, sizeof node->note, "%s", note);
        if (t->live) {
            change(t);
        } else if (!t->quiet) {
            print_node(t->cli, node, stderr, true);
        }
    }
}

void tree_print(const struct cli *cli, const struct cJSON *plan_view)
{
    const cJSON *step;

    cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(plan_view, "steps"))
    {
        struct tree_node node = {{0}};
        tree_node_fill(&node, step);
        print_node(cli, &node, stdout, cli_on_terminal());
    }
}

void tree_print_in(const struct cli *cli, const struct cJSON *plan_view, int columns, int rows)
{
    struct tree *t = tree_new(cli, plan_view, true);
    struct buf out;

    if (t == NULL) {
        cli_error("out of memory");
        return;
    }
    buf_init(&out, DRAWING_MAX);
    (void)draw(t, (rows > ROWS_MIN ? rows : ROWS_MIN) + ROWS_BESIDE, columns, &out);
    (void)fputs(buf_cstr(&out), stdout);
    buf_done(&out);
    tree_free(t);
}
