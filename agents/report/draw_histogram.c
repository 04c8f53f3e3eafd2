/* histogram: how many values lie in each of equal ranges; the last one includes its end. */
#include <math.h>
#include <stdio.h>

#include "agents/report/frame.h"

enum { TICKS = 6, PIXELS_A_TICK = 90, BINS_CHOSEN_MAX = 50 };

struct bins {
    double from, width;
    int n;
    int counts[CHART_BINS_MAX + 1];
    int most;
};

static int count_values(const struct chart *c)
{
    int n = 0;

    for (int r = 0; r < c->table.rows_n; r++) {
        n += isnan(chart_value(c, 0, r)) ? 0 : 1;
    }
    return n;
}

/* As many ranges as asked for, else about the root of the number of values, with round ends. */
static void choose(const struct chart *c, double min, double max, struct bins *b)
{
    struct scale s;
    int wanted = (int)ceil(sqrt(count_values(c)));

    if (c->bins > 0) {
        const double span = max - min;
        scale_numbers_within(min, max, TICKS, &s);
        b->from = span > 0.0 ? min : s.min;
        b->n = c->bins;
        b->width = (span > 0.0 ? span : s.max - s.min) / c->bins;
        return;
    }
    wanted = wanted < 5 ? 5 : wanted > BINS_CHOSEN_MAX / 2 ? BINS_CHOSEN_MAX / 2 : wanted;
    scale_numbers(min, max, wanted, &s);
    b->from = s.min;
    b->width = s.n > 1 ? s.at[1] - s.at[0] : s.max - s.min;
    b->n = (int)lround((s.max - s.min) / b->width);
    b->n = b->n < 1 ? 1 : b->n > CHART_BINS_MAX ? CHART_BINS_MAX : b->n;
}

static void fill(const struct chart *c, struct bins *b)
{
    for (int r = 0; r < c->table.rows_n; r++) {
        const double v = chart_value(c, 0, r);
        int i = isnan(v) ? 0 : (int)floor((v - b->from) / b->width);
        if (isnan(v)) {
            continue;
        }
        i = i < 0 ? 0 : i >= b->n ? b->n - 1 : i;
        b->counts[i]++;
        b->most = b->counts[i] > b->most ? b->counts[i] : b->most;
    }
}

void chart_draw_histogram(const struct chart *c, struct buf *out)
{
    struct bins b = {.from = 0.0, .width = 1.0, .n = 1};
    double min = 0.0;
    double max = 1.0;
    struct frame f;
    struct scale x;
    struct scale y;

    if (chart_range(c, 0, 1, &min, &max)) {
        choose(c, min, max, &b);
        fill(c, &b);
    }
    scale_numbers(0.0, b.most > 0 ? b.most : 1.0, TICKS, &y);
    f = frame_open(c, frame_left_room(c, &y), 24.0 + (c->x_title[0] != 0 ? 18.0 : 0.0), out);
    frame_left(c, &f, &y, out);
    scale_numbers_within(b.from, b.from + b.width * b.n,
                         (int)((f.right - f.left) / PIXELS_A_TICK) + 1, &x);
    for (int i = 0; i < b.n; i++) {
        const double from = b.from + i * b.width;
        const double left = scale_place(&x, from, f.left, f.right);
        const double right = scale_place(&x, from + b.width, f.left, f.right);
        const double top = scale_place(&y, b.counts[i], f.bottom, f.top);
        char a[SCALE_TEXT];
        char z[SCALE_TEXT];
        char text[SCALE_TEXT * 3];
        scale_number_text(from, a);
        scale_number_text(from + b.width, z);
        (void)snprintf(text, sizeof text, "%s to %s: %d", a, z, b.counts[i]);
        svg_rect(out, left, top, right - left - (right - left > 3.0 ? 1.0 : 0.0), f.bottom - top,
                 svg_colour(0), text);
    }
    frame_below(c, &f, &x, false, out);
    svg_close(out);
}
