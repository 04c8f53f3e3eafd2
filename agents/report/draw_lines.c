/* line: a line per series; a row without a value is a gap. */
#include <math.h>

#include "agents/report/frame.h"
#include "protocol/limits.h"

enum { TICKS = 6, DOTS_MAX = 60, PIXELS_A_TICK = 110 };

static double place(const struct chart *c, const struct frame *f, const struct scale *x, int at,
                    int row)
{
    const double band = (f->right - f->left) / c->table.rows_n;

    return x == NULL ? f->left + (at + 0.5) * band : scale_place(x, c->x[row], f->left, f->right);
}

/* A value between two gaps is a dot, or it would not be seen; few values all are. */
static void draw_dots(const struct chart *c, const struct frame *f, const struct scale *x,
                      const struct scale *y, int series, struct buf *out)
{
    const int n = c->table.rows_n;
    struct buf text;

    buf_init(&text, LIMIT_STEP_BYTES);
    for (int i = 0; i < n; i++) {
        const int r = (int)c->rows[i];
        const double v = chart_value(c, series, r);
        const bool alone = (i == 0 || isnan(chart_value(c, series, (int)c->rows[i - 1]))) &&
                           (i + 1 == n || isnan(chart_value(c, series, (int)c->rows[i + 1])));
        if (isnan(v) || (n > DOTS_MAX && !alone)) {
            continue;
        }
        buf_add_cstr(out, "<circle r=\"3\" cx=\"");
        svg_put_number(out, place(c, f, x, i, r));
        buf_add_cstr(out, "\" cy=\"");
        svg_put_number(out, scale_place(y, v, f->bottom, f->top));
        buf_printf(out, "\" fill=\"%s\"><title>", svg_colour(series));
        svg_put_escaped(out, str_from(frame_tooltip(c, r, series, &text)));
        buf_add_cstr(out, "</title></circle>\n");
    }
    buf_done(&text);
}

static void draw_line(const struct chart *c, const struct frame *f, const struct scale *x,
                      const struct scale *y, int series, struct buf *out)
{
    bool pen = false;

    buf_printf(
        out,
        "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" stroke-linejoin=\"round\" d=\"",
        svg_colour(series));
    for (int i = 0; i < c->table.rows_n; i++) {
        const int r = (int)c->rows[i];
        const double v = chart_value(c, series, r);
        if (!isnan(v)) {
            buf_add_byte(out, pen ? 'L' : 'M');
            svg_put_number(out, place(c, f, x, i, r));
            buf_add_byte(out, ' ');
            svg_put_number(out, scale_place(y, v, f->bottom, f->top));
        }
        pen = !isnan(v);
    }
    buf_add_cstr(out, "\"/>\n");
    draw_dots(c, f, x, y, series, out);
}

static void x_axis(const struct chart *c, double width, struct scale *ret)
{
    const int ticks = width > 2.0 * PIXELS_A_TICK ? (int)(width / PIXELS_A_TICK) : 2;
    double min = c->x[c->rows[0]];
    double max = c->x[c->rows[c->table.rows_n - 1]];

    if (c->time) {
        scale_times(min, max, ticks, ret);
    } else {
        scale_numbers_within(min, max, ticks, ret);
    }
}

void chart_draw_lines(const struct chart *c, struct buf *out)
{
    const bool continuous = c->x != NULL && c->table.rows_n > 0;
    double min = 0.0;
    double max = 1.0;
    struct frame_bottom below;
    struct frame f;
    struct scale x;
    struct scale y;

    (void)chart_range(c, 0, c->n_series, &min, &max);
    scale_numbers(min, max, TICKS, &y);
    below = frame_rows(c, (c->width - 40.0 - frame_left_room(c, &y)) /
                              (c->table.rows_n > 0 ? c->table.rows_n : 1));
    if (continuous) {
        below.room = 24.0 + (c->x_title[0] != 0 ? 18.0 : 0.0);
    }
    f = frame_open(c, frame_left_room(c, &y), below.room, out);
    frame_left(c, &f, &y, out);
    if (continuous) {
        x_axis(c, f.right - f.left, &x);
        frame_below(c, &f, &x, false, out);
    } else {
        frame_below_rows(c, &f, &below, out);
    }
    for (int s = 0; s < c->n_series; s++) {
        draw_line(c, &f, continuous ? &x : NULL, &y, s, out);
    }
    svg_close(out);
}
