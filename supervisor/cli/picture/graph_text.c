/* A graph on a terminal: boxes and lines, or a list when it is too wide. */
#include <string.h>

#include "supervisor/cli/picture/layout_internal.h"

enum { UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8, ARMS = 16, DEPS_COLUMNS_MIN = 16 };

struct glyphs {
    const char *arms[ARMS]; /* by the directions that a line goes to */
    const char *enter;      /* where a line enters a box */
};

static const struct glyphs unicode = {
    {" ", "│", "│", "│", "─", "┘", "┐", "┤", "─", "└", "┌", "├", "─", "┴", "┬", "┼"}, "▼"};
static const struct glyphs ascii = {
    {" ", "|", "|", "|", "-", "+", "+", "+", "-", "+", "+", "+", "-", "+", "+", "+"}, "v"};

struct drawing {
    const struct layout *l;
    const struct look *look;
    const struct label *labels;
    const struct glyphs *glyphs;
    struct buf *out;
    struct buf *text; /* scratch */
    uint8_t *arms;    /* of one row */
    bool *enters;     /* by column: a line from above enters the box there */
};

/* The top (row 0) or the bottom of a box. */
static void put_border(const struct drawing *d, const struct node *node, int row)
{
    const bool leaves = row > 0 && node->n_out > 0;

    for (int c = node->x; c < node->x + node->width; c++) {
        const int side = c == node->x                     ? RIGHT
                         : c == node->x + node->width - 1 ? LEFT
                                                          : LEFT | RIGHT;
        const bool corner = side != (LEFT | RIGHT);
        const bool branch = leaves && c == node->column;
        if (row == 0 && d->enters[c] && !corner) {
            buf_add_cstr(d->out, d->glyphs->enter);
        } else {
            buf_add_cstr(
                d->out,
                d->glyphs->arms[side | (corner ? row == 0 ? DOWN : UP : 0) | (branch ? DOWN : 0)]);
        }
    }
}

static void put_text(const struct drawing *d, const struct node *node, int row)
{
    const struct label *label = &d->labels[node->step];
    const int columns = node->width - BOX_FRAME;
    const char *text = row == 1 ? label->id : label->detail;

    if (row > 2) {
        (void)layout_wrap(label->when, columns, row - 3, d->text);
        text = buf_cstr(d->text);
    }
    buf_add_cstr(d->out, d->glyphs->arms[UP | DOWN]);
    buf_add_byte(d->out, ' ');
    look_fit(text, columns, d->look->ascii, true, d->out);
    buf_add_byte(d->out, ' ');
    buf_add_cstr(d->out, d->glyphs->arms[UP | DOWN]);
}

/* Row 0 is the top border, the last of rows the bottom. */
static void put_box(const struct drawing *d, const struct node *node, int row, int rows)
{
    const char *status = d->l->graph->steps[node->step].status;

    buf_add_cstr(d->out, look_color(d->look, status));
    if (row == 0 || row == rows - 1) {
        put_border(d, node, row);
    } else {
        put_text(d, node, row);
    }
    buf_add_cstr(d->out, look_color(d->look, status)[0] != 0 ? look_color_off(d->look) : "");
}

static void put_layer(const struct drawing *d, const struct layer *layer)
{
    const struct layout *l = d->l;
    const int rows = layout_box_rows(layer);

    for (uint32_t i = 0; i < layer->n; i++) {
        const struct node *node = &l->nodes[layer->nodes[i]];
        for (uint32_t k = 0; k < node->n_in; k++) {
            d->enters[l->links[l->in[node->in_at + k]].column] = true;
        }
    }
    for (int row = 0; row < rows; row++) {
        int at = 0;
        for (uint32_t i = 0; i < layer->n; i++) {
            const struct node *node = &l->nodes[layer->nodes[i]];
            const int begin = node->bend ? node->column : node->x;
            look_blanks(d->out, begin - at);
            at = begin + (node->bend ? 1 : node->width);
            if (node->bend) {
                buf_add_cstr(d->out, d->glyphs->arms[UP | DOWN]);
            } else {
                put_box(d, node, row, rows);
            }
        }
        look_end_line(d->out);
    }
    memset(d->enters, 0, (size_t)l->width + 1);
}

/* The arms of one row between two layers. A line down wins over the tracks that it crosses. */
static void draw_row(const struct drawing *d, const struct layer *layer, int row)
{
    const struct layout *l = d->l;

    memset(d->arms, 0, (size_t)l->width + 1);
    for (uint32_t i = 0; i < layer->n_nets; i++) {
        const struct net *net = &layer->nets[i];
        for (int c = net->left; net->track == row && c <= net->right; c++) {
            d->arms[c] = (uint8_t)((c > net->left ? LEFT : 0) | (c < net->right ? RIGHT : 0));
        }
    }
    for (uint32_t i = 0; i < layer->n; i++) {
        const struct node *node = &l->nodes[layer->nodes[i]];
        const int track = d->l->nodes[layer->nodes[i]].track;
        for (uint32_t k = 0; k < node->n_out; k++) {
            const int c = l->links[node->out_at + k].column;
            if (row >= track || c == node->column) {
                d->arms[c] = row == track ? (uint8_t)(d->arms[c] | DOWN) : UP | DOWN;
            }
        }
        if (node->n_out > 0 && row <= track) {
            d->arms[node->column] =
                row == track ? (uint8_t)(d->arms[node->column] | UP) : UP | DOWN;
        }
    }
}

static void put_tracks(const struct drawing *d, const struct layer *layer)
{
    const int rows = layer->tracks > 0 ? layer->tracks : 1;

    for (int row = 0; row < rows; row++) {
        draw_row(d, layer, row);
        for (int c = 0; c < d->l->width; c++) {
            buf_add_cstr(d->out, d->glyphs->arms[d->arms[c]]);
        }
        look_end_line(d->out);
    }
}

static enum bt_code put_drawing(const struct layout *l, const struct look *look,
                                const struct label *labels, struct buf *out, struct bt_error *err)
{
    const size_t columns = (size_t)l->width + 1;
    struct buf text;
    const struct drawing d = {.l = l,
                              .look = look,
                              .labels = labels,
                              .glyphs = look->ascii ? &ascii : &unicode,
                              .out = out,
                              .text = &text,
                              .arms = arena_alloc(l->arena, columns),
                              .enters = arena_alloc(l->arena, columns * sizeof(bool))};

    if (d.arms == NULL || d.enters == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the drawing");
    }
    buf_init(&text, LABEL_BYTES_MAX);
    for (uint32_t i = 0; i < l->n_layers; i++) {
        put_layer(&d, &l->layers[i]);
        if (i + 1 < l->n_layers) {
            put_tracks(&d, &l->layers[i]);
        }
    }
    buf_done(&text);
    return buf_check(out, err);
}

/* "<- a, b": as many as fit, then how many more. */
static void put_deps(const struct graph *g, const struct graph_step *step, const struct look *look,
                     int columns, struct buf *text, struct buf *out)
{
    int left = columns - 3;

    buf_add_cstr(out, look->ascii ? " <-" : " ←");
    left -= look->ascii;
    for (uint32_t i = 0; i < step->n_deps; i++) {
        const bool last = i + 1 == step->n_deps;
        buf_clear(text);
        look_clean(g->steps[step->deps[i]].id, look->ascii, text);
        buf_add_cstr(text, last ? "" : ",");
        const int n = look_columns(buf_cstr(text)) + 1;
        const int rest = last ? 0 : 14; /* " and 9999 more" */
        if (n + rest > left && i > 0) {
            buf_printf(out, " and %u more", step->n_deps - i);
            return;
        }
        buf_add_byte(out, ' ');
        look_fit(buf_cstr(text), left - rest > 2 ? left - rest - 1 : 1, look->ascii, false, out);
        left -= n;
    }
}

/* One line per step: its layer, its id, its detail, what it depends on; its condition below it. */
static enum bt_code put_list(const struct layout *l, const struct look *look,
                             const struct label *labels, struct buf *out, struct bt_error *err)
{
    const struct graph *g = l->graph;
    const int room = look->width > 40 ? look->width - 8 : 32;
    int id = 1;
    int detail = 0;
    struct buf text;

    buf_init(&text, LABEL_BYTES_MAX);
    for (uint32_t i = 0; i < g->n; i++) {
        const int a = look_columns(labels[i].id);
        const int b = look_columns(labels[i].detail);
        id = a > id ? a : id;
        detail = b > detail ? b : detail;
    }
    id = id > room * 2 / 5 ? room * 2 / 5 : id;
    detail = detail > room / 5 ? room / 5 : detail;
    for (uint32_t i = 0; i < l->n_layers; i++) {
        for (uint32_t k = 0; k < l->layers[i].n; k++) {
            const uint32_t step = l->layers[i].nodes[k];
            const char *color = look_color(look, g->steps[step].status);
            if (k == 0) {
                buf_printf(out, "%5u  ", i + 1);
            } else {
                look_blanks(out, 7);
            }
            buf_add_cstr(out, color);
            look_fit(labels[step].id, id, look->ascii, true, out);
            buf_add_cstr(out, color[0] != 0 ? look_color_off(look) : "");
            if (detail > 0) {
                buf_add_byte(out, ' ');
                look_fit(labels[step].detail, detail, look->ascii, true, out);
            }
            if (g->steps[step].n_deps > 0) {
                put_deps(g, &g->steps[step], look, room - id - detail - 1, &text, out);
            }
            look_end_line(out);
            if (labels[step].when[0] != 0) {
                look_blanks(out, 9);
                look_fit(labels[step].when, room, look->ascii, false, out);
                look_end_line(out);
            }
        }
    }
    buf_done(&text);
    return buf_check(out, err);
}

enum bt_code graph_text(const struct graph *g, const struct look *look, struct arena *arena,
                        struct buf *out, struct bt_error *err)
{
    struct label *labels = layout_labels(g, look->ascii, arena);
    struct layout l;
    bool fits = true;
    enum bt_code code;

    if (labels == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the drawing");
    }
    code = layout_make(g, labels, look->width, arena, &l, &fits, err);
    if (code != BT_OK) {
        return code;
    }
    if (fits) {
        return put_drawing(&l, look, labels, out, err);
    }
    buf_printf(out, "too wide to draw in %d columns: it needs %d; as a list, layer by layer:\n",
               look->width, l.needed);
    return put_list(&l, look, labels, out, err);
}
