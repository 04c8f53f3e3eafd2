/* A timeline as SVG. */
#include "supervisor/cli/picture/svg_internal.h"
#include "supervisor/cli/picture/timeline_internal.h"

enum {
    EDGE_PX = 16,
    NAME_PX = 200,
    NAME_COLUMNS = 23,
    BAR_PX = 800,
    NOTE_PX = 200,
    NOTE_COLUMNS = 23,
    TOP_PX = 64,
    ROW_PX = 22,
    LEGEND_PX = 40,
    TICKS = 10
};

static double x_of(const struct timeline *t, double ms)
{
    return EDGE_PX + NAME_PX + ms / t->length_ms * BAR_PX;
}

static void put_fitted(const char *class, const char *raw, const char *mark, int x, int y,
                       int columns, struct buf *text, struct buf *out)
{
    struct buf clean;

    buf_init(&clean, SVG_TEXT_MAX);
    buf_printf(&clean, "%s%s", mark, mark[0] != 0 ? " " : "");
    look_clean(raw, false, &clean);
    buf_clear(text);
    look_fit(buf_cstr(&clean), columns, false, false, text);
    buf_done(&clean);
    buf_printf(out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    look_xml(buf_cstr(text), out);
    buf_add_cstr(out, "</text>\n");
}

static void put_axis(const struct timeline *t, int bottom, struct buf *out)
{
    const double step = axis_step(t->length_ms, TICKS);

    for (double ms = 0; ms <= t->length_ms; ms += step) {
        const double x = x_of(t, ms);
        buf_printf(out,
                   "<path style=\"stroke:#ddd\" d=\"M%.1f %dV%d\"/><text class=\"d\" x=\"%.1f\" "
                   "y=\"%d\">",
                   x, TOP_PX - 16, bottom, x + 3, TOP_PX - 6);
        axis_time(ms, step, out);
        buf_add_cstr(out, "</text>\n");
    }
}

static void put_time(double ms, struct buf *out)
{
    if (ms < 1000) {
        buf_printf(out, "%.0f ms", ms);
    } else {
        buf_printf(out, "%.1f s", ms / 1000);
    }
}

static void put_span(const struct timeline *t, const struct timeline_span *s, struct buf *out)
{
    const double x = x_of(t, s->from);
    const double width = x_of(t, s->to) - x;

    buf_printf(out,
               "<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%d\" fill=\"%s\"><title>%s: ", x,
               TOP_PX + s->row * ROW_PX + 3, width < 1.5 ? 1.5 : width, ROW_PX - 6,
               kind_fill(s->kind), timeline_kind_name(s->kind));
    put_time(s->to - s->from, out);
    buf_add_cstr(out, ", from ");
    put_time(s->from, out);
    buf_add_cstr(out, " on</title></rect>\n");
}

static void put_legend(const struct timeline *t, int y, struct buf *out)
{
    bool used[TIMELINE_KINDS];
    int x = EDGE_PX + NAME_PX;

    kinds_used(t, used);
    for (int kind = 0; kind < TIMELINE_KINDS; kind++) {
        const char *name = timeline_kind_name((enum timeline_kind)kind);
        if (used[kind]) {
            buf_printf(out,
                       "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"14\" fill=\"%s\"/><text "
                       "x=\"%d\" y=\"%d\">%s</text>\n",
                       x, y, kind_fill((enum timeline_kind)kind), x + 20, y + 12, name);
            x += 20 + 8 * look_columns(name) + 24;
        }
    }
}

enum bt_code timeline_svg(const struct timeline *t, struct buf *out, struct bt_error *err)
{
    const int bottom = TOP_PX + (int)t->n_rows * ROW_PX;
    struct buf text;

    buf_init(&text, SVG_TEXT_MAX);
    svg_open(t->title, 2 * EDGE_PX + NAME_PX + BAR_PX + NOTE_PX, bottom + LEGEND_PX, &text, out);
    put_axis(t, bottom, out);
    for (uint32_t i = 0; i < t->n_rows; i++) {
        const struct timeline_row *row = &t->rows[i];
        const int y = TOP_PX + (int)i * ROW_PX + 15;
        put_fitted("i", row->name, look_mark(row->status, false), EDGE_PX, y, NAME_COLUMNS, &text,
                   out);
        put_fitted("d", row->note, "", EDGE_PX + NAME_PX + BAR_PX + 8, y, NOTE_COLUMNS, &text, out);
    }
    for (uint32_t i = 0; i < t->n_spans; i++) {
        put_span(t, &t->spans[i], out);
    }
    put_legend(t, bottom + 14, out);
    buf_add_cstr(out, "</svg>\n");
    buf_done(&text);
    return buf_check(out, err);
}
