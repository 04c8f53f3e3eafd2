#include "agents/report/frame.h"

#include <cjson/cJSON.h>

#include "protocol/limits.h"

enum {
    EDGE = 12,
    LINE = 18,
    LEGEND_TEXT = 160, /* pixels of a name */
    LABEL_TEXT = 130,  /* pixels of a turned label */
    TICK = 5
};

#define AXIS "#888"
#define GRID "#e4e4e4"

void frame_row_text(const struct chart *c, int row, struct buf *ret)
{
    buf_clear(ret);
    if (c->label == TABLE_NONE) {
        buf_printf(ret, "%d", row + 1);
    } else {
        table_put_text(table_cell(&c->table, row, c->label), ret);
    }
}

const char *frame_tooltip(const struct chart *c, int row, int series, struct buf *text)
{
    frame_row_text(c, row, text);
    buf_printf(text, ", %s: ", c->table.columns[c->series[series]]);
    table_put_text(table_cell(&c->table, row, c->series[series]), text);
    return buf_cstr(text);
}

static double widest_label(const struct chart *c)
{
    struct buf text;
    double most = 0.0;

    buf_init(&text, LIMIT_STEP_BYTES);
    for (int r = 0; r < c->table.rows_n; r++) {
        double width;
        frame_row_text(c, r, &text);
        width = svg_text_width(buf_cstr(&text));
        most = width > most ? width : most;
    }
    buf_done(&text);
    return most;
}

struct frame_bottom frame_rows(const struct chart *c, double band)
{
    struct frame_bottom b = {.turned = false, .room = LINE + TICK};
    const double widest = widest_label(c);
    const double shown = widest < LABEL_TEXT ? widest : LABEL_TEXT;

    if (widest > band - 4.0 && c->table.rows_n > 1) {
        b.turned = true;
        b.room = shown * 0.574 + LINE; /* the sine of 35 degrees */
    }
    b.room += c->x_title[0] != 0 ? LINE : 0.0;
    return b;
}

double frame_left_room(const struct chart *c, const struct scale *y)
{
    double most = 0.0;

    for (int i = 0; i < y->n; i++) {
        const double width = svg_text_width(y->text[i]);
        most = width > most ? width : most;
    }
    return most + TICK + 4.0 + (c->y_title[0] != 0 ? LINE : 0.0);
}

/* Names with their colours, in as many lines as they need. Returns the y below them. */
static double legend(const struct chart *c, double left, double y, struct buf *out)
{
    double x = left;

    for (int s = 0; s < c->n_series; s++) {
        const char *name = c->table.columns[c->series[s]];
        const double width = svg_text_width(name);
        const double shown = width < LEGEND_TEXT ? width : LEGEND_TEXT;
        if (x > left && x + shown + 34.0 > c->width - EDGE) {
            x = left;
            y += LINE;
        }
        svg_rect(out, x, y + 2.0, 11.0, 11.0, svg_colour(s), NULL);
        svg_text(out, x + 16.0, y + 12.0, SVG_START, LEGEND_TEXT, false, name);
        x += shown + 34.0;
    }
    return y + LINE + 4.0;
}

struct frame frame_open(const struct chart *c, double left_room, double bottom_room,
                        struct buf *out)
{
    struct frame f = {.left = EDGE + left_room, .top = EDGE, .right = c->width - EDGE - 8.0};

    svg_open(out, c->width, c->height, c->title);
    if (c->title[0] != 0) {
        buf_add_cstr(out, "<g font-weight=\"bold\">");
        svg_text(out, EDGE, f.top + 12.0, SVG_START, c->width - 2.0 * EDGE, false, c->title);
        buf_add_cstr(out, "</g>\n");
        f.top += LINE + 6.0;
    }
    if (c->n_series > 1 && c->kind != CHART_GANTT) {
        f.top = legend(c, f.left, f.top, out);
    }
    f.bottom = c->height - EDGE - bottom_room;
    f.bottom = f.bottom < f.top + 20.0 ? f.top + 20.0 : f.bottom;
    if (c->table.rows_n == 0) {
        svg_text(out, (f.left + f.right) / 2.0, (f.top + f.bottom) / 2.0, SVG_MIDDLE,
                 f.right - f.left, false, "no data");
    }
    return f;
}

void frame_left(const struct chart *c, const struct frame *f, const struct scale *y,
                struct buf *out)
{
    for (int i = 0; i < y->n; i++) {
        const double at = scale_place(y, y->at[i], f->bottom, f->top);
        svg_line(out, f->left, at, f->right, at, y->at[i] == 0.0 ? AXIS : GRID);
        svg_text(out, f->left - TICK, at + 4.0, SVG_END, f->left, false, y->text[i]);
    }
    svg_line(out, f->left, f->top, f->left, f->bottom, AXIS);
    if (c->y_title[0] != 0) {
        const double middle = (f->top + f->bottom) / 2.0;
        buf_add_cstr(out, "<g transform=\"rotate(-90 ");
        svg_put_number(out, EDGE + 8.0);
        buf_add_byte(out, ' ');
        svg_put_number(out, middle);
        buf_add_cstr(out, ")\">");
        svg_text(out, EDGE + 8.0, middle, SVG_MIDDLE, f->bottom - f->top, false, c->y_title);
        buf_add_cstr(out, "</g>\n");
    }
}

static void below_title(const struct chart *c, const struct frame *f, struct buf *out)
{
    svg_line(out, f->left, f->bottom, f->right, f->bottom, AXIS);
    if (c->x_title[0] != 0) {
        svg_text(out, (f->left + f->right) / 2.0, c->height - EDGE, SVG_MIDDLE, f->right - f->left,
                 false, c->x_title);
    }
}

void frame_below(const struct chart *c, const struct frame *f, const struct scale *x, bool grid,
                 struct buf *out)
{
    double free_from = 0.0;

    for (int i = 0; i < x->n; i++) {
        const double at = scale_place(x, x->at[i], f->left, f->right);
        const double half = svg_text_width(x->text[i]) / 2.0;
        double middle = at;
        svg_line(out, at, grid ? f->top : f->bottom, at, f->bottom + TICK, grid ? GRID : AXIS);
        middle = middle + half > c->width - 2.0 ? c->width - 2.0 - half : middle;
        if (middle - half >= free_from) { /* a text that would stand on another is left out */
            svg_text(out, middle, f->bottom + TICK + 13.0, SVG_MIDDLE, half * 2.0 + 2.0, false,
                     x->text[i]);
            free_from = middle + half + 6.0;
        }
    }
    below_title(c, f, out);
}

void frame_below_rows(const struct chart *c, const struct frame *f, const struct frame_bottom *b,
                      struct buf *out)
{
    const int n = c->table.rows_n;
    const double band = n > 0 ? (f->right - f->left) / n : 0.0;
    const double needed = b->turned ? 22.0 : 1.0; /* pixels from one turned text to the next */
    const int each = band > 0.0 && band < needed ? (int)(needed / band) + 1 : 1;
    struct buf text;

    buf_init(&text, LIMIT_STEP_BYTES);
    for (int r = 0; r < n; r += each) {
        const double x = f->left + (r + 0.5) * band;
        frame_row_text(c, r, &text);
        if (b->turned) {
            /* The first texts would leave the picture on the left. */
            const double room = (x - 2.0) / 0.82;
            svg_text(out, x + 4.0, f->bottom + TICK + 9.0, SVG_END,
                     room < LABEL_TEXT ? room : LABEL_TEXT, true, buf_cstr(&text));
        } else {
            svg_text(out, x, f->bottom + TICK + 12.0, SVG_MIDDLE,
                     n == 1 ? f->right - f->left : band, false, buf_cstr(&text));
        }
    }
    buf_done(&text);
    below_title(c, f, out);
}
