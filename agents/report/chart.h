/* A chart: rows, what of them is drawn, and how. */
#ifndef REPORT_CHART_H
#define REPORT_CHART_H

#include "agents/sdk/table.h"

struct cJSON;

enum chart_kind { CHART_BAR, CHART_LINE, CHART_STACKED, CHART_HISTOGRAM, CHART_GANTT };

enum {
    CHART_SERIES_MAX = 8, /* as many as there are colours */
    CHART_ROWS_MAX = 20000,
    CHART_TASKS_MAX = 500, /* of a Gantt chart: each has a line of its own */
    CHART_BINS_MAX = 200
};

struct chart {
    enum chart_kind kind;
    const char *title, *x_title, *y_title; /* never NULL; of the spec */
    double width, height;
    int bins; /* 0 = chosen */
    struct table table;
    int label; /* a column; TABLE_NONE: rows have only their numbers */
    int series[CHART_SERIES_MAX];
    int n_series;
    double *v;      /* [series][row]; NAN = no value. Gantt: starts, then ends */
    double *x;      /* line: per row, when the label column has numbers or dates; else NULL */
    bool time;      /* x, or the values of a Gantt chart, are seconds since 1970 */
    uint32_t *rows; /* in the order of x */
};

/* Reads {kind, title, xTitle, yTitle, label, series, start, end, bins, width, height, types} and
 * the rows (any form of sdk/table.h). BT_INVALID and BT_LIMIT name the member, or row and column.
 * spec is borrowed until chart_done, which frees also after a failure. */
BT_MUST_CHECK enum bt_code chart_read(const struct cJSON *spec, const struct cJSON *values,
                                      struct chart *ret, struct bt_error *err);
/* Accepts zeroed. */
void chart_done(struct chart *c);
/* Draws it as SVG. Check the buffer. */
void chart_draw(struct chart *c, struct buf *out);
/* "bar chart of 12 rows, 2 series: 3 to 40" */
void chart_describe(const struct chart *c, struct buf *out);

static inline double chart_value(const struct chart *c, int series, int row)
{
    return c->v[(size_t)series * (size_t)c->table.rows_n + (size_t)row];
}
/* The least and the largest value of a range of series; false when there is none. */
bool chart_range(const struct chart *c, int from, int to, double *ret_min, double *ret_max);

/* draw_*.c */
void chart_draw_bars(const struct chart *c, struct buf *out); /* bar, stacked */
void chart_draw_lines(const struct chart *c, struct buf *out);
void chart_draw_histogram(const struct chart *c, struct buf *out);
void chart_draw_gantt(const struct chart *c, struct buf *out);
#endif
