/* bar: series side by side. stacked: one on the other, negative values downwards. */
#include <math.h>

#include "agents/report/frame.h"
#include "protocol/limits.h"

enum { TICKS = 6, TOOLTIPS_MAX = 4000 };

static void stacked_range(const struct chart *c, double *min, double *max)
{
    *min = 0.0;
    *max = 0.0;
    for (int r = 0; r < c->table.rows_n; r++) {
        double up = 0.0;
        double down = 0.0;
        for (int s = 0; s < c->n_series; s++) {
            const double v = chart_value(c, s, r);
            up += v > 0.0 ? v : 0.0;
            down += v < 0.0 ? v : 0.0;
        }
        *max = fmax(*max, up);
        *min = fmin(*min, down);
    }
}

static void bar(const struct chart *c, const struct scale *y, const struct frame *f, double x,
                double width, double from, double to, int row, int series, struct buf *text,
                struct buf *out)
{
    const double a = scale_place(y, from, f->bottom, f->top);
    const double b = scale_place(y, to, f->bottom, f->top);
    const bool tooltips = c->table.rows_n * c->n_series <= TOOLTIPS_MAX;

    svg_rect(out, x, fmin(a, b), width, fabs(a - b), svg_colour(series),
             tooltips ? frame_tooltip(c, row, series, text) : NULL);
}

static void draw_row(const struct chart *c, const struct scale *y, const struct frame *f, int row,
                     struct buf *text, struct buf *out)
{
    const double band = (f->right - f->left) / c->table.rows_n;
    const double gap = band > 4.0 ? fmin(band * 0.2, 40.0) : 0.0;
    const double left = f->left + row * band + gap / 2.0;
    const double width = band - gap;
    double up = 0.0;
    double down = 0.0;

    for (int s = 0; s < c->n_series; s++) {
        const double v = chart_value(c, s, row);
        if (isnan(v)) {
            continue;
        }
        if (c->kind == CHART_BAR) {
            bar(c, y, f, left + s * width / c->n_series, width / c->n_series, 0.0, v, row, s, text,
                out);
        } else {
            double *base = v < 0.0 ? &down : &up;
            bar(c, y, f, left, width, *base, *base + v, row, s, text, out);
            *base += v;
        }
    }
}

void chart_draw_bars(const struct chart *c, struct buf *out)
{
    double min = 0.0;
    double max = 0.0;
    struct frame_bottom below;
    struct frame f;
    struct scale y;
    struct buf text;

    if (c->kind == CHART_STACKED) {
        stacked_range(c, &min, &max);
    } else if (chart_range(c, 0, c->n_series, &min, &max)) {
        min = fmin(min, 0.0);
        max = fmax(max, 0.0);
    }
    scale_numbers(min, min == max ? min + 1.0 : max, TICKS, &y);
    below = frame_rows(c, (c->width - 40.0 - frame_left_room(c, &y)) /
                              (c->table.rows_n > 0 ? c->table.rows_n : 1));
    f = frame_open(c, frame_left_room(c, &y), below.room, out);
    frame_left(c, &f, &y, out);
    buf_init(&text, LIMIT_STEP_BYTES);
    for (int r = 0; r < c->table.rows_n; r++) {
        draw_row(c, &y, &f, r, &text, out);
    }
    buf_done(&text);
    frame_below_rows(c, &f, &below, out);
    svg_close(out);
}
