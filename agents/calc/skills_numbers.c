#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/calc/aggregate.h"
#include "agents/calc/calc.h"
#include "agents/calc/column.h"
#include "agents/calc/expr.h"
#include "agents/calc/functions.h"
#include "agents/calc/total.h"
#include "agents/sdk/input.h"
#include "agents/sdk/table.h"

/* In "calculate 2 + 3" the expression follows the verb. */
static const char *expression_of_task(const char *task)
{
    static const char *const verbs[] = {"calculate ", "compute ", "evaluate ",
                                        "work out ",  "what is ", "solve "};

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        size_t n = strlen(verbs[i]);
        size_t k = 0;
        while (k < n && (task[k] | 0x20) == (verbs[i][k] | 0x20)) {
            k++;
        }
        if (k == n) {
            return task + n;
        }
    }
    return task;
}

void calc_evaluate(struct bt_step *step, void *self)
{
    const char *expression = bt_step_param_string(step, "expression", NULL);
    cJSON *variables = NULL;
    cJSON *data;
    char text[64];
    struct bt_error err;
    double v = 0.0;
    enum bt_code code;

    (void)self;
    if (expression == NULL) {
        expression = expression_of_task(bt_step_task(step));
    }
    code = input_tree(step, "variables", &variables, &err);
    if (code == BT_OK) {
        code = expr_eval(expression, cJSON_IsObject(variables) ? variables : NULL, &v, &err);
    }
    cJSON_Delete(variables);
    if (code != BT_OK) {
        bt_step_fail_error(step, &err);
        return;
    }
    data = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(data, "expression", expression);
    input_reply(step, data,
                table_text(cJSON_AddNumberToObject(data, "value", v), text, sizeof text));
}

/* The rows to work on: the parameter, or the result of the step before. False after failing the
 * step. */
static bool read_table(struct bt_step *step, const char *parameter, struct table *ret)
{
    struct bt_error err;

    if (input_table(step, parameter, ret, &err) != BT_OK) {
        bt_step_fail_error(step, &err);
        return false;
    }
    return true;
}

/* The numbers of a result are the right ones, or it says that they are not. */
void calc_mark_approximate(cJSON *data, bool approximate, struct buf *text)
{
    if (approximate) {
        (void)cJSON_AddTrueToObject(data, "approximate");
        buf_add_cstr(text, "\n\n[approximate: a number has more digits than a double keeps]\n");
    }
}

/* The column that a parameter names, or the likely one. False after failing the step. */
static bool find_column(struct bt_step *step, const struct table *t, const char *parameter,
                        int likely, int *ret)
{
    const char *name = bt_step_param_string(step, parameter, NULL);

    *ret = name == NULL ? likely : table_column(t, name);
    if (*ret == TABLE_NONE) {
        bt_step_fail(step, "VALIDATION_ERROR", false, "%s: %s%s; the columns are: %s%s%s%s",
                     parameter, name == NULL ? "no column fits" : "no column is called ",
                     name == NULL ? "" : name, t->n > 0 ? t->columns[0] : "none",
                     t->n > 1 ? ", " : "", t->n > 1 ? t->columns[1] : "", t->n > 2 ? ", ..." : "");
        return false;
    }
    return true;
}

/* The distances from the first item: their spread is that of the items, and those of integers
 * beyond 2^53 are exact where the integers are not. */
static double stdev_of(const struct column *c)
{
    const struct cell *first = &c->items[0].cell;
    struct values v = {.at = malloc(c->n * sizeof *v.at), .n = c->n, .cap = c->n};
    double spread;

    for (size_t i = 0; i < c->n && v.at != NULL; i++) {
        const struct cell *x = &c->items[i].cell;
        v.at[i] = first->type == CELL_REAL
                      ? x->real
                      : (double)((total_int)x->integer - (total_int)first->integer);
    }
    if (v.at == NULL) {
        input_lost();
        return 0;
    }
    spread = values_stdev(&v);
    values_done(&v);
    return spread;
}

/* The median, the smallest value and the like. An integer beyond 2^53 that lies between two others
 * is rounded to a double. */
static void add_place(cJSON *data, const char *name, double percent, const struct column *c,
                      bool *io_approximate)
{
    const struct aggregation what = {AGGREGATE_PERCENTILE, percent, PERCENTILE_LINEAR};
    struct cell value = {.null = true};

    if (aggregate_apply(&what, c->items, c->n, &value, NULL) != BT_OK) {
        value = (struct cell){.null = true}; /* only a sum can fail */
    }
    (void)input_add(data, name, table_new_cell(&value));
    *io_approximate =
        *io_approximate || (value.type == CELL_REAL && c->items[0].cell.type == CELL_INTEGER &&
                            fabs(value.real) > (double)CELL_SAFE_INTEGER);
}

static void reply_statistics(struct bt_step *step, const struct column *c, const struct total *sum)
{
    static const struct {
        const char *name;
        double percent;
    } places[] = {{"min", 0.0},  {"p25", 25.0}, {"median", 50.0}, {"p75", 75.0},
                  {"p90", 90.0}, {"p99", 99.0}, {"max", 100.0}};
    bool approximate = c->approximate || sum->approximate;
    cJSON *data = cJSON_CreateObject();
    struct table t = {0};
    struct buf text;
    struct bt_error err;

    (void)cJSON_AddNumberToObject(data, "count", (double)c->n);
    (void)input_add(data, "sum", total_json(sum));
    (void)cJSON_AddNumberToObject(data, "mean", total_mean(sum, c->n));
    (void)cJSON_AddNumberToObject(data, "stdev", stdev_of(c));
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        add_place(data, places[i].name, places[i].percent, c, &approximate);
    }
    buf_init(&text, 65536);
    if (table_read(data, &t, &err) == BT_OK) {
        table_to_markdown(&t, TABLE_SHOWN_ROWS, TABLE_SHOWN_BYTES, TABLE_REST_IN_DATA, &text);
    } else if (err.code == BT_NOMEM) {
        input_lost();
    }
    calc_mark_approximate(data, approximate, &text);
    input_reply_buf(step, data, &text);
    buf_done(&text);
    table_done(&t);
}

void calc_statistics(struct bt_step *step, void *self)
{
    struct table t = {0};
    struct column c = {0};
    int column;

    (void)self;
    if (!read_table(step, "values", &t)) {
        return;
    }
    if (find_column(step, &t, "field", table_number_column(&t), &column) &&
        column_read(step, &t, column, COLUMN_SKIPS_NULLS, &c)) {
        const struct total sum = total_of(c.items, c.n);
        column_compress(&c);
        if (c.n == 0) {
            bt_step_fail(step, "VALIDATION_ERROR", false, "values: there are none");
        } else if (!isfinite(sum.value)) {
            bt_step_fail(step, "VALIDATION_ERROR", false,
                         "values: the sum is larger than a double holds; scale them");
        } else {
            reply_statistics(step, &c, &sum);
        }
    }
    column_done(&c);
    table_done(&t);
}

static void reply_shares(struct bt_step *step, const struct table *t, int label, int value,
                         const struct column *v, const struct total *total)
{
    static const char *const columns[] = {"value", "percent"};
    cJSON *data = cJSON_CreateObject();
    cJSON *names = cJSON_AddArrayToObject(data, "columns");
    cJSON *rows = cJSON_AddArrayToObject(data, "rows");
    struct table shown = {0};
    struct buf name;
    struct buf text;
    struct bt_error err;

    buf_init(&name, LIMIT_RESULT_BYTES);
    (void)input_add(names, NULL,
                    cJSON_CreateString(label == TABLE_NONE ? "label" : t->columns[label]));
    (void)input_add(names, NULL,
                    cJSON_CreateString(label == TABLE_NONE || value == TABLE_NONE
                                           ? columns[0]
                                           : t->columns[value]));
    (void)input_add(names, NULL, cJSON_CreateString(columns[1]));
    for (int r = 0; r < t->rows_n; r++) {
        cJSON *row = cJSON_CreateArray();
        buf_clear(&name);
        if (label != TABLE_NONE) {
            table_put_text(table_cell(t, r, label), &name);
        } else {
            buf_printf(&name, "%d", r + 1);
        }
        if (name.bad != BT_OK) {
            input_lost();
        }
        (void)input_add(row, NULL, cJSON_CreateString(buf_cstr(&name)));
        (void)input_add(row, NULL, table_new_cell(&v->items[r].cell));
        (void)input_add(
            row, NULL,
            cJSON_CreateNumber(round(item_number(&v->items[r]) / total->value * 1000.0) / 10.0));
        (void)input_add(rows, NULL, row);
    }
    (void)input_add(data, "total", total_json(total));
    buf_init(&text, LIMIT_RESULT_BYTES);
    if (table_read(data, &shown, &err) == BT_OK) {
        table_to_markdown(&shown, TABLE_SHOWN_ROWS, TABLE_SHOWN_BYTES, TABLE_REST_IN_DATA, &text);
    } else if (err.code == BT_NOMEM) {
        input_lost();
    }
    calc_mark_approximate(data, v->approximate || total->approximate, &text);
    input_reply_buf(step, data, &text);
    buf_done(&name);
    buf_done(&text);
    table_done(&shown);
}

void calc_shares(struct bt_step *step, void *self)
{
    struct table t = {0};
    struct column v = {0};
    int value;
    int label = TABLE_NONE;

    (void)self;
    if (!read_table(step, "values", &t)) {
        return;
    }
    if (find_column(step, &t, "value", table_number_column(&t), &value) &&
        column_read(step, &t, value, COLUMN_NEEDS_ALL, &v) &&
        (!bt_step_has_param(step, "label") || find_column(step, &t, "label", TABLE_NONE, &label))) {
        const struct total total = total_of(v.items, v.n);
        label = label == TABLE_NONE ? table_other_column(&t, value) : label;
        if (v.n == 0 || !(total.value > 0.0)) {
            bt_step_fail(step, "VALIDATION_ERROR", false, "values: shares need a total above 0");
        } else {
            reply_shares(step, &t, label, value, &v, &total);
        }
    }
    column_done(&v);
    table_done(&t);
}
