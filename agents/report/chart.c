#include "agents/report/chart.h"

#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/cells/cell_date.h"
#include "agents/report/scale.h"
#include "protocol/zone/civil.h"

enum { WIDTH = 800, HEIGHT = 400, SIDE_MIN = 200, SIDE_MAX = 4000, SHOWN = 60 };

static const char *const KINDS[] = {"bar", "line", "stacked", "histogram", "gantt"};

static const cJSON *member(const cJSON *spec, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(spec, name);

    return cJSON_IsNull(v) ? NULL : v;
}

static enum bt_code read_text(const cJSON *spec, const char *name, const char **ret,
                              struct bt_error *err)
{
    const cJSON *v = member(spec, name);

    *ret = cJSON_IsString(v) ? v->valuestring : "";
    return v == NULL || cJSON_IsString(v) ? BT_OK
                                          : err_set(err, BT_INVALID, "%s: expected a text", name);
}

static enum bt_code read_size(const cJSON *spec, const char *name, double min, double max,
                              double *ret, struct bt_error *err)
{
    const cJSON *v = member(spec, name);

    if (v == NULL) {
        return BT_OK;
    }
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= min && v->valuedouble <= max)) {
        return err_set(err, BT_INVALID, "%s: expected a number from %g to %g", name, min, max);
    }
    *ret = floor(v->valuedouble);
    return BT_OK;
}

static enum bt_code read_kind(const cJSON *spec, enum chart_kind *ret, struct bt_error *err)
{
    const cJSON *v = member(spec, "kind");

    for (int i = 0; cJSON_IsString(v) && i < (int)(sizeof KINDS / sizeof KINDS[0]); i++) {
        if (strcmp(v->valuestring, KINDS[i]) == 0) {
            *ret = (enum chart_kind)i;
            return BT_OK;
        }
    }
    return err_set(err, BT_INVALID, "kind: expected bar, line, stacked, histogram or gantt");
}

/* ---- columns ---- */

static enum bt_code find_column(const struct chart *c, const cJSON *name, const char *member_name,
                                int *ret, struct bt_error *err)
{
    *ret = cJSON_IsString(name) ? table_column(&c->table, name->valuestring) : TABLE_NONE;
    if (*ret != TABLE_NONE) {
        return BT_OK;
    }
    return err_set(err, BT_INVALID, "%s: '%.*s' is no column of the rows; the first is '%.*s'",
                   member_name, SHOWN, cJSON_IsString(name) ? name->valuestring : "?", SHOWN,
                   c->table.n > 0 ? c->table.columns[0] : "");
}

static enum bt_code add_series(struct chart *c, int column, struct bt_error *err)
{
    if (c->n_series == CHART_SERIES_MAX) {
        return err_set(err, BT_LIMIT,
                       "series: more than %d; name those to draw, or let calc.group make fewer",
                       CHART_SERIES_MAX);
    }
    c->series[c->n_series++] = column;
    return BT_OK;
}

static bool is_axis(const struct chart *c, int column)
{
    return c->table.type[column] == CELL_DATE || cell_type_is_number(c->table.type[column]);
}

/* The label of bars is the first column that has no numbers; of lines the first column. */
static enum bt_code choose_label(const cJSON *spec, struct chart *c, struct bt_error *err)
{
    const cJSON *name = member(spec, "label");

    c->label = TABLE_NONE;
    if (name != NULL && c->table.n > 0) {
        return find_column(c, name, "label", &c->label, err);
    }
    for (int i = 0; i < c->table.n && c->label == TABLE_NONE; i++) {
        const bool fits = c->kind == CHART_LINE    ? c->table.n > 1
                          : c->kind == CHART_GANTT ? !is_axis(c, i)
                                                   : !cell_type_is_number(c->table.type[i]);
        c->label = fits ? i : TABLE_NONE;
    }
    return BT_OK;
}

static enum bt_code choose_series(const cJSON *spec, struct chart *c, struct bt_error *err)
{
    const cJSON *named = member(spec, "series");
    const cJSON *one;
    enum bt_code code = BT_OK;
    int column;

    if (cJSON_IsArray(named) && c->table.n > 0) {
        cJSON_ArrayForEach(one, named)
        {
            code = code == BT_OK ? find_column(c, one, "series", &column, err) : code;
            code = code == BT_OK ? add_series(c, column, err) : code;
        }
    } else if (named != NULL && c->table.n > 0) {
        code = find_column(c, named, "series", &column, err);
        code = code == BT_OK ? add_series(c, column, err) : code;
    } else if (c->kind == CHART_HISTOGRAM) {
        column = table_number_column(&c->table);
        code = column != TABLE_NONE ? add_series(c, column, err) : BT_OK;
    } else {
        for (int i = 0; i < c->table.n && code == BT_OK; i++) {
            if (i != c->label && cell_type_is_number(c->table.type[i])) {
                code = add_series(c, i, err);
            }
        }
    }
    if (code == BT_OK && c->n_series == 0 && c->table.rows_n > 0) {
        return err_set(err, BT_INVALID, "series: the rows have no column of numbers to draw");
    }
    if (code == BT_OK && c->kind == CHART_HISTOGRAM && c->n_series > 1) {
        return err_set(err, BT_INVALID, "series: a histogram has one");
    }
    return code;
}

/* start and end, by name, or the first two columns of dates or numbers. */
static enum bt_code choose_span(const cJSON *spec, struct chart *c, struct bt_error *err)
{
    static const char *const names[] = {"start", "end"};
    int next = 0;

    for (int i = 0; i < 2 && c->table.rows_n > 0; i++) {
        const cJSON *name = member(spec, names[i]);
        int column = TABLE_NONE;
        if (name != NULL) {
            const enum bt_code code = find_column(c, name, names[i], &column, err);
            if (code != BT_OK) {
                return code;
            }
        } else {
            while (next < c->table.n && (next == c->label || !is_axis(c, next))) {
                next++;
            }
            column = next < c->table.n ? next++ : TABLE_NONE;
        }
        if (column == TABLE_NONE) {
            return err_set(err, BT_INVALID,
                           "%s: the rows have no column of dates or numbers for it", names[i]);
        }
        c->series[c->n_series++] = column;
    }
    if (c->n_series == 2) {
        c->time = c->table.type[c->series[0]] == CELL_DATE;
    }
    return BT_OK;
}

/* ---- values ---- */

static double seconds_of(const struct cell_date *d)
{
    return (double)(civil_days(d->year, (uint32_t)d->month, (uint32_t)d->day) * SECONDS_A_DAY +
                    (int64_t)d->hour * 3600 + (int64_t)d->minute * 60 + d->second -
                    (int64_t)d->offset_minutes * 60);
}

/* NAN for an empty cell. */
static enum bt_code read_value(const struct chart *c, int row, int column, bool time, double *ret,
                               struct bt_error *err)
{
    const cJSON *cell = table_cell(&c->table, row, column);
    char shown[SHOWN];
    struct cell_date d;

    *ret = NAN;
    if (cell == NULL || cJSON_IsNull(cell) || (cJSON_IsString(cell) && cell->valuestring[0] == 0)) {
        return BT_OK;
    }
    if (time && cJSON_IsString(cell) && cell_date_read(str_from(cell->valuestring), &d)) {
        *ret = seconds_of(&d);
        return BT_OK;
    }
    if (!time && table_number(cell, ret) && isfinite(*ret)) {
        return BT_OK;
    }
    return err_set(err, BT_INVALID, "row %d, column '%.*s': '%s' is no %s", row + 1, SHOWN,
                   c->table.columns[column], table_text(cell, shown, sizeof shown),
                   time ? "date" : "finite number");
}

static enum bt_code check_span(const struct chart *c, int row, struct bt_error *err)
{
    const double start = chart_value(c, 0, row);
    const double end = chart_value(c, 1, row);

    if (isnan(start) && !isnan(end)) {
        return err_set(err, BT_INVALID, "row %d has an end and no start", row + 1);
    }
    if (end < start) {
        return err_set(err, BT_INVALID, "row %d ends before it starts", row + 1);
    }
    return BT_OK;
}

static enum bt_code read_values(struct chart *c, struct bt_error *err)
{
    const size_t rows = (size_t)c->table.rows_n;

    c->v = calloc((size_t)c->n_series * rows + 1, sizeof *c->v);
    c->rows = calloc(rows + 1, sizeof *c->rows);
    if (c->v == NULL || c->rows == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %zu values", rows);
    }
    for (int r = 0; r < c->table.rows_n; r++) {
        enum bt_code code = BT_OK;
        c->rows[r] = (uint32_t)r;
        for (int s = 0; s < c->n_series && code == BT_OK; s++) {
            code = read_value(c, r, c->series[s], c->kind == CHART_GANTT && c->time,
                              &c->v[(size_t)s * rows + (size_t)r], err);
        }
        code = code == BT_OK && c->kind == CHART_GANTT ? check_span(c, r, err) : code;
        if (code != BT_OK) {
            return code;
        }
    }
    return BT_OK;
}

static int by_x(const void *a, const void *b, void *x)
{
    const uint32_t i = *(const uint32_t *)a;
    const uint32_t j = *(const uint32_t *)b;
    const double *at = x;

    return at[i] != at[j] ? (at[i] > at[j]) - (at[i] < at[j]) : (i > j) - (i < j);
}

/* A line goes along its numbers or dates, in their order. */
static enum bt_code read_x(struct chart *c, struct bt_error *err)
{
    if (c->kind != CHART_LINE || c->label == TABLE_NONE || !is_axis(c, c->label)) {
        return BT_OK;
    }
    c->time = c->table.type[c->label] == CELL_DATE;
    c->x = calloc((size_t)c->table.rows_n + 1, sizeof *c->x);
    if (c->x == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a chart");
    }
    for (int r = 0; r < c->table.rows_n; r++) {
        enum bt_code code = read_value(c, r, c->label, c->time, &c->x[r], err);
        if (code == BT_OK && isnan(c->x[r])) {
            code = err_set(err, BT_INVALID, "row %d, column '%.*s' is empty: a line needs a place",
                           r + 1, SHOWN, c->table.columns[c->label]);
        }
        if (code != BT_OK) {
            return code;
        }
    }
    qsort_r(c->rows, (size_t)c->table.rows_n, sizeof *c->rows, by_x, c->x);
    return BT_OK;
}

/* ---- all ---- */

static enum bt_code read_form(const cJSON *spec, struct chart *c, struct bt_error *err)
{
    double bins = 0.0;
    enum bt_code code = read_kind(spec, &c->kind, err);

    code = code == BT_OK ? read_text(spec, "title", &c->title, err) : code;
    code = code == BT_OK ? read_text(spec, "xTitle", &c->x_title, err) : code;
    code = code == BT_OK ? read_text(spec, "yTitle", &c->y_title, err) : code;
    code = code == BT_OK ? read_size(spec, "width", SIDE_MIN, SIDE_MAX, &c->width, err) : code;
    code = code == BT_OK ? read_size(spec, "height", SIDE_MIN, SIDE_MAX, &c->height, err) : code;
    code = code == BT_OK ? read_size(spec, "bins", 1.0, CHART_BINS_MAX, &bins, err) : code;
    c->bins = (int)bins;
    return code;
}

enum bt_code chart_read(const cJSON *spec, const cJSON *values, struct chart *ret,
                        struct bt_error *err)
{
    struct chart *c = ret;
    enum bt_code code;

    *c =
        (struct chart){.title = "", .x_title = "", .y_title = "", .width = WIDTH, .height = HEIGHT};
    code = read_form(spec, c, err);
    if (code != BT_OK) {
        return code;
    }
    code = table_read(values, &c->table, err);
    code = code == BT_OK ? table_set_types(&c->table, err) : code;
    if (code != BT_OK) {
        return err_wrap(err, "values");
    }
    if (c->table.rows_n > (c->kind == CHART_GANTT ? CHART_TASKS_MAX : CHART_ROWS_MAX)) {
        return err_set(err, BT_LIMIT,
                       "values: %d rows, and a %s chart shows at most %d: let calc.group "
                       "make fewer",
                       c->table.rows_n, KINDS[c->kind],
                       c->kind == CHART_GANTT ? CHART_TASKS_MAX : CHART_ROWS_MAX);
    }
    code = choose_label(spec, c, err);
    if (code == BT_OK) {
        code = c->kind == CHART_GANTT ? choose_span(spec, c, err) : choose_series(spec, c, err);
    }
    code = code == BT_OK ? read_values(c, err) : code;
    return code == BT_OK ? read_x(c, err) : code;
}

void chart_done(struct chart *c)
{
    table_done(&c->table);
    free(c->v);
    free(c->x);
    free(c->rows);
    *c = (struct chart){0};
}

bool chart_range(const struct chart *c, int from, int to, double *ret_min, double *ret_max)
{
    bool any = false;

    for (int s = from; s < to && s < c->n_series; s++) {
        for (int r = 0; r < c->table.rows_n; r++) {
            const double v = chart_value(c, s, r);
            if (!isnan(v)) {
                *ret_min = any && *ret_min < v ? *ret_min : v;
                *ret_max = any && *ret_max > v ? *ret_max : v;
                any = true;
            }
        }
    }
    return any;
}

void chart_draw(struct chart *c, struct buf *out)
{
    switch (c->kind) {
    case CHART_BAR:
    case CHART_STACKED:
        chart_draw_bars(c, out);
        break;
    case CHART_LINE:
        chart_draw_lines(c, out);
        break;
    case CHART_HISTOGRAM:
        chart_draw_histogram(c, out);
        break;
    case CHART_GANTT:
        chart_draw_gantt(c, out);
        break;
    }
}

void chart_describe(const struct chart *c, struct buf *out)
{
    char a[SCALE_TEXT];
    char z[SCALE_TEXT];
    double min = 0.0;
    double max = 0.0;

    buf_printf(out, "%s chart of %d rows", KINDS[c->kind], c->table.rows_n);
    if (c->kind != CHART_GANTT && c->n_series > 1) {
        buf_printf(out, ", %d series", c->n_series);
    }
    if (chart_range(c, 0, c->n_series, &min, &max)) {
        if (c->time && c->kind == CHART_GANTT) {
            scale_time_text(min, a);
            scale_time_text(max, z);
        } else {
            scale_number_text(min, a);
            scale_number_text(max, z);
        }
        buf_printf(out, ": %s to %s", a, z);
    }
}
