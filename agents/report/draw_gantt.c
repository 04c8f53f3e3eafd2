/* gantt: a bar from start to end per row; a diamond for a row without an end. */
#include <math.h>

#include "agents/report/frame.h"
#include "protocol/limits.h"

enum { ROW = 24, BAR = 14, PIXELS_A_TICK = 110, LABEL_MAX = 240, HEAD = 50 };

static double label_room(const struct chart *c)
{
    struct buf text;
    double most = 20.0;

    buf_init(&text, LIMIT_STEP_BYTES);
    for (int r = 0; r < c->table.rows_n; r++) {
        double width;
        frame_row_text(c, r, &text);
        width = svg_text_width(buf_cstr(&text));
        most = width > most ? width : most;
    }
    buf_done(&text);
    most = most < LABEL_MAX ? most : LABEL_MAX;
    return most < c->width / 3.0 ? most + 8.0 : c->width / 3.0 + 8.0;
}

static void put_value(const struct chart *c, double v, struct buf *text)
{
    char at[SCALE_TEXT];

    if (c->time) {
        scale_time_text(v, at);
    } else {
        scale_number_text(v, at);
    }
    buf_add_cstr(text, at);
}

static void draw_row(const struct chart *c, const struct frame *f, const struct scale *x, int row,
                     double room, struct buf *text, struct buf *out)
{
    const double start = chart_value(c, 0, row);
    const double end = chart_value(c, 1, row);
    const double y = f->top + row * ROW + (ROW - BAR) / 2.0;
    double left;

    frame_row_text(c, row, text);
    svg_text(out, f->left - 6.0, y + 11.0, SVG_END, room - 8.0, false, buf_cstr(text));
    if (isnan(start)) {
        return;
    }
    left = scale_place(x, start, f->left, f->right);
    buf_add_cstr(text, ": ");
    put_value(c, start, text);
    if (isnan(end)) {
        buf_add_cstr(out, "<path fill=\"#d55e00\" d=\"M");
        svg_put_number(out, left);
        buf_add_byte(out, ' ');
        svg_put_number(out, y);
        buf_add_cstr(out, "l7 7l-7 7l-7-7z\"><title>");
        svg_put_escaped(out, buf_str(text));
        buf_add_cstr(out, "</title></path>\n");
        return;
    }
    buf_add_cstr(text, " to ");
    put_value(c, end, text);
    /* What is very short still is seen. */
    svg_rect(out, left, y, fmax(scale_place(x, end, f->left, f->right) - left, 2.0), BAR,
             svg_colour(0), buf_cstr(text));
}

void chart_draw_gantt(const struct chart *c, struct buf *out)
{
    struct chart sized = *c;
    const double room = label_room(c);
    double min = 0.0;
    double max = 1.0;
    struct frame f;
    struct scale x;
    struct buf text;
    int ticks;

    sized.height = HEAD + (c->title[0] != 0 ? 24.0 : 0.0) + (c->x_title[0] != 0 ? 18.0 : 0.0) +
                   (c->table.rows_n > 0 ? c->table.rows_n : 1) * (double)ROW;
    f = frame_open(&sized, room, 24.0 + (c->x_title[0] != 0 ? 18.0 : 0.0), out);
    f.bottom = f.top + (c->table.rows_n > 0 ? c->table.rows_n : 1) * (double)ROW;
    ticks = (int)((f.right - f.left) / PIXELS_A_TICK) + 1;
    (void)chart_range(c, 0, 2, &min, &max);
    if (c->time && c->table.rows_n > 0) {
        scale_times(min, max, ticks, &x);
    } else {
        scale_numbers(min, max, ticks, &x);
    }
    frame_below(&sized, &f, &x, true, out);
    buf_init(&text, LIMIT_STEP_BYTES);
    for (int r = 0; r < c->table.rows_n; r++) {
        draw_row(&sized, &f, &x, r, room, &text, out);
    }
    buf_done(&text);
    svg_close(out);
}
