#include <math.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "agents/calc/calc.h"
#include "agents/calc/expr.h"
#include "agents/calc/functions.h"
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
    cJSON *tree = NULL;
    struct bt_error err;
    enum bt_code code = input_tree(step, parameter, &tree, &err);

    if (code == BT_OK && tree == NULL) {
        code = err_set(&err, BT_INVALID,
                       "%s: give the parameter, or let a step before this one make it", parameter);
    }
    if (code == BT_OK) {
        code = table_read(tree, ret, &err);
        if (code != BT_OK) {
            (void)err_wrap(&err, "%s", parameter);
        }
    }
    cJSON_Delete(tree);
    if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    }
    return code == BT_OK;
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

static bool column_values(struct bt_step *step, const struct table *t, int column,
                          struct values *ret)
{
    for (int r = 0; r < t->rows_n; r++) {
        double v;
        if (!table_number(table_cell(t, r, column), &v)) {
            bt_step_fail(step, "VALIDATION_ERROR", false, "row %d: column '%s' is no number", r + 1,
                         t->columns[column]);
            return false;
        }
        if (!values_add(ret, v)) {
            bt_step_fail(step, "VALIDATION_ERROR", false, "more than %d values, or out of memory",
                         EXPR_VALUES_MAX);
            return false;
        }
    }
    return true;
}

static void reply_statistics(struct bt_step *step, struct values *v)
{
    cJSON *data = cJSON_CreateObject();
    struct table t = {0};
    struct buf text;
    struct bt_error err;

    values_sort(v);
    (void)cJSON_AddNumberToObject(data, "count", (double)v->n);
    (void)cJSON_AddNumberToObject(data, "sum", values_sum(v));
    (void)cJSON_AddNumberToObject(data, "mean", values_mean(v));
    (void)cJSON_AddNumberToObject(data, "stdev", values_stdev(v));
    (void)cJSON_AddNumberToObject(data, "min", v->at[0]);
    (void)cJSON_AddNumberToObject(data, "p25", percentile(v, 25.0));
    (void)cJSON_AddNumberToObject(data, "median", percentile(v, 50.0));
    (void)cJSON_AddNumberToObject(data, "p75", percentile(v, 75.0));
    (void)cJSON_AddNumberToObject(data, "p90", percentile(v, 90.0));
    (void)cJSON_AddNumberToObject(data, "p99", percentile(v, 99.0));
    (void)cJSON_AddNumberToObject(data, "max", v->at[v->n - 1]);
    buf_init(&text, 65536);
    if (table_read(data, &t, &err) == BT_OK) {
        table_to_markdown(&t, 100, &text);
    }
    input_reply(step, data, buf_cstr(&text));
    buf_done(&text);
    table_done(&t);
}

void calc_statistics(struct bt_step *step, void *self)
{
    struct table t = {0};
    struct values v = {0};
    int column;

    (void)self;
    if (!read_table(step, "values", &t)) {
        return;
    }
    if (find_column(step, &t, "field", table_number_column(&t), &column) &&
        column_values(step, &t, column, &v)) {
        if (v.n == 0) {
            bt_step_fail(step, "VALIDATION_ERROR", false, "values: there are none");
        } else {
            reply_statistics(step, &v);
        }
    }
    values_done(&v);
    table_done(&t);
}

static void reply_shares(struct bt_step *step, const struct table *t, int label, int value,
                         const struct values *v)
{
    static const char *const columns[] = {"value", "percent"};
    double total = values_sum(v);
    cJSON *data = cJSON_CreateObject();
    cJSON *names = cJSON_AddArrayToObject(data, "columns");
    cJSON *rows = cJSON_AddArrayToObject(data, "rows");
    struct table shown = {0};
    struct buf text;
    struct bt_error err;

    (void)cJSON_AddItemToArray(
        names, cJSON_CreateString(label == TABLE_NONE ? "label" : t->columns[label]));
    (void)cJSON_AddItemToArray(names, cJSON_CreateString(label == TABLE_NONE || value == TABLE_NONE
                                                             ? columns[0]
                                                             : t->columns[value]));
    (void)cJSON_AddItemToArray(names, cJSON_CreateString(columns[1]));
    for (int r = 0; r < t->rows_n; r++) {
        char name[512];
        cJSON *row = cJSON_CreateArray();
        (void)snprintf(name, sizeof name, "%d", r + 1);
        if (label != TABLE_NONE) {
            (void)table_text(table_cell(t, r, label), name, sizeof name);
        }
        (void)cJSON_AddItemToArray(row, cJSON_CreateString(name));
        (void)cJSON_AddItemToArray(row, cJSON_CreateNumber(v->at[r]));
        (void)cJSON_AddItemToArray(row,
                                   cJSON_CreateNumber(round(v->at[r] / total * 1000.0) / 10.0));
        (void)cJSON_AddItemToArray(rows, row);
    }
    (void)cJSON_AddNumberToObject(data, "total", total);
    buf_init(&text, LIMIT_RESULT_BYTES);
    if (table_read(data, &shown, &err) == BT_OK) {
        table_to_markdown(&shown, 1000, &text);
    }
    input_reply(step, data, buf_cstr(&text));
    buf_done(&text);
    table_done(&shown);
}

void calc_shares(struct bt_step *step, void *self)
{
    struct table t = {0};
    struct values v = {0};
    int value;
    int label = TABLE_NONE;

    (void)self;
    if (!read_table(step, "values", &t)) {
        return;
    }
    if (find_column(step, &t, "value", table_number_column(&t), &value) &&
        column_values(step, &t, value, &v) &&
        (!bt_step_has_param(step, "label") || find_column(step, &t, "label", TABLE_NONE, &label))) {
        label = label == TABLE_NONE ? table_other_column(&t, value) : label;
        if (v.n == 0 || !(values_sum(&v) > 0.0)) {
            bt_step_fail(step, "VALIDATION_ERROR", false, "values: shares need a total above 0");
        } else {
            reply_shares(step, &t, label, value, &v);
        }
    }
    values_done(&v);
    table_done(&t);
}
