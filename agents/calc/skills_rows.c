/* Skills over rows: sort, group, percentiles. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/calc/aggregate.h"
#include "agents/calc/calc.h"
#include "agents/sdk/input.h"
#include "agents/sdk/whole.h"
#include "protocol/limits.h"

enum { CALCULATIONS_MAX = 32, VALUES_MAX = LIMIT_NODES - 10000, PERCENTS_MAX = 100 };

/* ---- parameters ---- */

/* The members that are not rows. */
static enum bt_code read_params(struct bt_step *step, cJSON **ret, struct bt_error *err)
{
    static const char *const names[] = {"by", "calculate", "percents"};
    enum bt_code code = BT_OK;

    *ret = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof names / sizeof names[0] && code == BT_OK; i++) {
        struct doc d = step->req.parameters.ptr == NULL
                           ? (struct doc){0}
                           : doc_get(step->req.parameters, str_from(names[i]));
        cJSON *tree = NULL;
        if (d.ptr != NULL) {
            code = doc_to_cjson(d, &tree, err);
            if (code == BT_OK && !input_add(*ret, names[i], tree)) {
                code = err_set(err, BT_NOMEM, "out of memory for %s", names[i]);
            }
        }
    }
    return code == BT_OK && *ret == NULL ? err_set(err, BT_NOMEM, "out of memory") : code;
}

static enum bt_code no_column(const struct table *t, const char *where, const char *name,
                              struct bt_error *err)
{
    return err_set(err, BT_INVALID, "%s: there is no column '%.80s'; the columns are: %s%s%s%s",
                   where, name, t->n > 0 ? t->columns[0] : "none", t->n > 1 ? ", " : "",
                   t->n > 1 ? t->columns[1] : "", t->n > 2 ? ", ..." : "");
}

static const char *text_of(const cJSON *object, const char *member)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, member);

    return cJSON_IsString(value) ? value->valuestring : NULL;
}

/* "amount", or {field, order, per}. */
static enum bt_code read_key(const struct table *t, const cJSON *tree, struct key *ret,
                             struct bt_error *err)
{
    const char *name = cJSON_IsString(tree) ? tree->valuestring : text_of(tree, "field");
    const char *order = text_of(tree, "order");

    if (name == NULL) {
        return err_set(err, BT_INVALID,
                       "by: expected a column, or {\"field\": \"amount\", \"order\": \"desc\"}");
    }
    if (order != NULL && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0) {
        return err_set(err, BT_INVALID, "by: order is asc or desc, not '%.20s'", order);
    }
    ret->column = table_column(t, name);
    ret->descending = order != NULL && strcmp(order, "desc") == 0;
    ret->per = text_of(tree, "per");
    return ret->column == TABLE_NONE ? no_column(t, "by", name, err) : key_read(t, ret, err);
}

static enum bt_code read_keys(const struct table *t, const cJSON *params, struct key *keys,
                              int *ret_n, struct bt_error *err)
{
    const cJSON *by = cJSON_GetObjectItemCaseSensitive(params, "by");
    const cJSON *one = cJSON_IsArray(by) ? by->child : by;
    enum bt_code code = BT_OK;

    for (*ret_n = 0; one != NULL && code == BT_OK; one = cJSON_IsArray(by) ? one->next : NULL) {
        if (*ret_n == KEYS_MAX) {
            return err_set(err, BT_LIMIT, "by: at most %d columns", KEYS_MAX);
        }
        code = read_key(t, one, &keys[(*ret_n)++], err);
    }
    return code;
}

static void keys_done(struct key *keys, int n)
{
    for (int i = 0; i < n; i++) {
        free(keys[i].items);
    }
}

/* ---- replies ---- */

/* {columns, types, rows, rowCount, truncated, ...}: the first `limit` rows of the table. */
static enum bt_code put_table(const struct table *t, int rows_n, const char *method,
                              struct buf *out, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    doc_put_map(out, method == NULL ? 5 : 6);
    if (method != NULL) {
        doc_put_cstr(out, "method");
        doc_put_cstr(out, method);
    }
    doc_put_cstr(out, "columns");
    doc_put_array(out, (uint32_t)t->n);
    for (int i = 0; i < t->n; i++) {
        doc_put_cstr(out, t->columns[i]);
    }
    table_put_types(t, out);
    doc_put_cstr(out, "rowCount");
    doc_put_u64(out, (uint64_t)rows_n);
    doc_put_cstr(out, "truncated");
    doc_put_bool(out, rows_n < t->rows_n);
    doc_put_cstr(out, "rows");
    doc_put_array(out, (uint32_t)rows_n);
    for (int r = 0; r < rows_n && code == BT_OK; r++) {
        code = cjson_to_doc(t->rows[r], out, err);
    }
    return code == BT_OK ? buf_check(out, err) : code;
}

static enum bt_code reply_table(struct bt_step *step, struct table *t, const char *method,
                                struct bt_error *err)
{
    const bool limited = bt_step_has_param(step, "limit");
    const double limit = bt_step_param_number(step, "limit", (double)t->rows_n);
    const int all = t->rows_n;
    const int rows_n = limited && limit < (double)all ? (int)limit : all;
    struct buf doc;
    struct buf json;
    struct buf text;
    enum bt_code code = BT_OK;

    buf_init(&doc, (size_t)LIMIT_RESULT_BYTES * 2);
    buf_init(&json, (size_t)LIMIT_STEP_BYTES * 4);
    buf_init(&text, LIMIT_RESULT_BYTES);
    if ((int64_t)rows_n * (t->n + 1) > VALUES_MAX) {
        code = err_set(err, BT_LIMIT,
                       "result_too_large: %d rows of %d columns, and a result holds %d values; "
                       "take fewer columns, or set `limit` to get the first rows",
                       rows_n, t->n, VALUES_MAX);
    }
    if (code == BT_OK) {
        code = put_table(t, rows_n, method, &doc, err);
    }
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&doc), false, &json, err);
    }
    if (code == BT_OK) {
        t->rows_n = rows_n;
        table_to_markdown(t, TABLE_SHOWN_ROWS, TABLE_SHOWN_BYTES, TABLE_REST_IN_DATA, &text);
        t->rows_n = all;
        if (rows_n < all) {
            whole_mark(step, &text, "the first %d of %d rows; raise `limit`", rows_n, all);
        }
        code = buf_check(&text, err);
    }
    code = code == BT_OK ? input_check_lost(err) : code;
    if (code == BT_OK) {
        bt_step_reply_json(step, (const char *)json.at, json.len);
        bt_step_reply_bytes(step, buf_cstr(&text), text.len);
    }
    buf_done(&doc);
    buf_done(&json);
    buf_done(&text);
    return code;
}

/* ---- sort ---- */

static enum bt_code sort(struct bt_step *step, struct table *t, const struct key *keys, int n,
                         struct bt_error *err)
{
    int *order = order_rows(t->rows_n, keys, n);
    struct cJSON **rows = malloc(((size_t)t->rows_n + 1) * sizeof *rows);

    if (order == NULL || rows == NULL) {
        free(order);
        free(rows);
        return err_set(err, BT_NOMEM, "out of memory for the rows");
    }
    for (int i = 0; i < t->rows_n; i++) {
        rows[i] = t->rows[order[i]];
    }
    free(order);
    free(t->rows);
    t->rows = rows;
    return reply_table(step, t, NULL, err);
}

void calc_sort(struct bt_step *step, void *self)
{
    struct key keys[KEYS_MAX] = {0};
    struct table t = {0};
    cJSON *params = NULL;
    struct bt_error err;
    int n = 0;
    enum bt_code code = input_table(step, "values", &t, &err);

    (void)self;
    if (code == BT_OK) {
        code = read_params(step, &params, &err);
    }
    if (code == BT_OK) {
        code = read_keys(&t, params, keys, &n, &err);
    }
    if (code == BT_OK && n == 0) {
        code = err_set(&err, BT_INVALID, "by: expected at least one column");
    }
    if (code == BT_OK) {
        code = sort(step, &t, keys, n, &err);
    }
    if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    }
    keys_done(keys, n);
    cJSON_Delete(params);
    table_done(&t);
}

/* ---- group ---- */

struct calculation {
    struct aggregation what;
    struct key source; /* its items; column TABLE_NONE = the rows themselves */
    enum cell_type type;
    bool typed; /* a value has set the type */
};

struct grouping {
    struct table *t;
    struct key keys[KEYS_MAX];
    int keys_n;
    struct calculation of[CALCULATIONS_MAX];
    int n;
    struct item *scratch;
    struct table out;
};

static enum bt_code add_result_column(struct grouping *g, const char *name, struct bt_error *err)
{
    return table_column(&g->out, name) != TABLE_NONE
               ? err_set(err, BT_INVALID,
                         "two columns of the result are called '%.80s'; name one by \"as\"", name)
               : table_add_column(&g->out, name, err);
}

static enum bt_code read_percent(const cJSON *tree, struct calculation *c, struct bt_error *err)
{
    const cJSON *percent = cJSON_GetObjectItemCaseSensitive(tree, "percent");
    const char *method = text_of(tree, "method");

    c->what.percent = cJSON_IsNumber(percent) ? percent->valuedouble : -1.0;
    if (c->what.function == AGGREGATE_PERCENTILE &&
        !(c->what.percent >= 0.0 && c->what.percent <= 100.0)) {
        return err_set(err, BT_INVALID, "calculate: percentile needs a percent from 0 to 100");
    }
    if (method != NULL && strcmp(method, "linear") != 0 && strcmp(method, "nearest") != 0) {
        return err_set(err, BT_INVALID, "method: expected linear or nearest, got '%.20s'", method);
    }
    c->what.method =
        method != NULL && strcmp(method, "nearest") == 0 ? PERCENTILE_NEAREST : PERCENTILE_LINEAR;
    return BT_OK;
}

/* All but count, min and max need numbers; a column without values has none and passes. */
static bool has_numbers(const struct calculation *c, const struct table *t)
{
    bool any = false;

    for (int r = 0; r < t->rows_n && !any; r++) {
        any = !c->source.items[r].cell.null;
    }
    return !any || cell_type_is_number(t->type[c->source.column]);
}

static enum bt_code read_source(struct grouping *g, const char *field, struct calculation *c,
                                struct bt_error *err)
{
    enum bt_code code = BT_OK;

    c->source.column = field == NULL ? TABLE_NONE : table_column(g->t, field);
    if (field == NULL) {
        return c->what.function == AGGREGATE_COUNT
                   ? BT_OK
                   : err_set(err, BT_INVALID, "calculate: name the column by \"field\"");
    }
    if (c->source.column == TABLE_NONE) {
        return no_column(g->t, "calculate", field, err);
    }
    code = key_read(g->t, &c->source, err);
    if (code == BT_OK && c->what.function != AGGREGATE_COUNT && c->what.function != AGGREGATE_MIN &&
        c->what.function != AGGREGATE_MAX && !has_numbers(c, g->t)) {
        return err_set(err, BT_INVALID,
                       "calculate: column '%.80s' has the type %s, and this needs numbers", field,
                       cell_type_name(g->t->type[c->source.column]));
    }
    return code;
}

/* {function, field, percent, method, as}, or "count". */
static enum bt_code read_calculation(struct grouping *g, const cJSON *tree, struct bt_error *err)
{
    struct calculation *c = &g->of[g->n];
    const char *name = cJSON_IsString(tree) ? tree->valuestring : text_of(tree, "function");
    const char *field = text_of(tree, "field");
    const char *as = text_of(tree, "as");
    char made[256];
    enum bt_code code;

    if (g->n == CALCULATIONS_MAX) {
        return err_set(err, BT_LIMIT, "calculate: at most %d", CALCULATIONS_MAX);
    }
    g->n++;
    c->source.column = TABLE_NONE;
    c->what.function = name == NULL ? AGGREGATE_UNKNOWN : aggregate_from_name(name);
    if (c->what.function == AGGREGATE_UNKNOWN) {
        return err_set(err, BT_INVALID,
                       "calculate: expected a function: count, sum, min, max, mean, median or "
                       "percentile");
    }
    code = read_percent(tree, c, err);
    if (code == BT_OK) {
        code = read_source(g, field, c, err);
    }
    if (c->what.function == AGGREGATE_PERCENTILE) {
        (void)snprintf(made, sizeof made, "p%.15g_%.200s", c->what.percent, field);
    } else {
        (void)snprintf(made, sizeof made, "%s%s%.200s", name, field == NULL ? "" : "_",
                       field == NULL ? "" : field);
    }
    return code == BT_OK ? add_result_column(g, as != NULL ? as : made, err) : code;
}

static enum bt_code read_group(struct grouping *g, const cJSON *params, struct bt_error *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(params, "calculate");
    const cJSON *one = cJSON_IsArray(list) ? list->child : list;
    enum bt_code code = read_keys(g->t, params, g->keys, &g->keys_n, err);

    for (int i = 0; i < g->keys_n && code == BT_OK; i++) {
        code = add_result_column(g, g->t->columns[g->keys[i].column], err);
        g->out.type[i] = g->keys[i].per == NULL               ? g->t->type[g->keys[i].column]
                         : strcmp(g->keys[i].per, "day") == 0 ? CELL_DATE
                                                              : CELL_TEXT;
    }
    if (one == NULL && code == BT_OK) {
        cJSON *count = cJSON_CreateString("count");
        code = count == NULL ? err_set(err, BT_NOMEM, "out of memory")
                             : read_calculation(g, count, err);
        cJSON_Delete(count);
    }
    for (; one != NULL && code == BT_OK; one = cJSON_IsArray(list) ? one->next : NULL) {
        code = read_calculation(g, one, err);
    }
    return code;
}

/* A column has the type of its values; integers beside reals are reals. */
static void take_type(struct calculation *c, const struct cell *value)
{
    if (!value->null) {
        c->type = c->typed && c->type != value->type ? CELL_REAL : value->type;
        c->typed = true;
    }
}

static enum bt_code calculate(struct grouping *g, struct calculation *c, const int *rows, int n,
                              cJSON *out, struct bt_error *err)
{
    struct cell value;
    size_t items = 0;
    enum bt_code code;

    for (int i = 0; i < n; i++) {
        if (c->source.column == TABLE_NONE) {
            items++;
        } else if (!c->source.items[rows[i]].cell.null) {
            g->scratch[items++] = c->source.items[rows[i]];
        }
    }
    code = aggregate_apply(&c->what, g->scratch, items, &value, err);
    if (code != BT_OK) {
        return err_wrap(err, "column '%.80s'", g->t->columns[c->source.column]);
    }
    take_type(c, &value);
    return cJSON_AddItemToArray(out, table_new_cell(&value))
               ? BT_OK
               : err_set(err, BT_NOMEM, "out of memory for the groups");
}

/* One row of the result for the rows of one group. */
static enum bt_code add_group(struct grouping *g, const int *rows, int n, struct bt_error *err)
{
    cJSON *out = cJSON_CreateArray();
    enum bt_code code =
        out == NULL ? err_set(err, BT_NOMEM, "out of memory for the groups") : BT_OK;

    for (int i = 0; i < g->keys_n && code == BT_OK; i++) {
        const struct key *key = &g->keys[i];
        const cJSON *cell = table_cell(g->t, rows[0], key->column);
        cJSON *made = key->per != NULL ? table_new_cell(&key->items[rows[0]].cell)
                                       : cJSON_Duplicate(cell, true);
        code = cJSON_AddItemToArray(out, made) ? BT_OK
                                               : err_set(err, BT_NOMEM, "out of memory for a key");
    }
    for (int i = 0; i < g->n && code == BT_OK; i++) {
        code = calculate(g, &g->of[i], rows, n, out, err);
    }
    if (code != BT_OK) {
        cJSON_Delete(out);
        return code;
    }
    return table_add_row(&g->out, out, err);
}

static enum bt_code group(struct grouping *g, struct bt_error *err)
{
    int *rows = order_rows(g->t->rows_n, g->keys, g->keys_n);
    enum bt_code code = BT_OK;
    int first = 0;

    g->scratch = malloc(((size_t)g->t->rows_n + 1) * sizeof *g->scratch);
    if (rows == NULL || g->scratch == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for the groups");
    }
    for (int i = 1; i <= g->t->rows_n && code == BT_OK; i++) {
        if (i == g->t->rows_n || order_compare(g->keys, g->keys_n, rows[first], rows[i]) != 0) {
            code = add_group(g, rows + first, i - first, err);
            first = i;
        }
    }
    if (code == BT_OK && g->t->rows_n == 0 && g->keys_n == 0) {
        code = add_group(g, rows, 0, err); /* without keys there is one group, also of no rows */
    }
    for (int i = 0; i < g->n; i++) {
        g->out.type[g->keys_n + i] = g->of[i].typed ? g->of[i].type : CELL_TEXT;
    }
    free(rows);
    free(g->scratch);
    return code;
}

static void grouping_done(struct grouping *g)
{
    keys_done(g->keys, g->keys_n);
    for (int i = 0; i < g->n; i++) {
        free(g->of[i].source.items);
    }
    table_done(&g->out);
}

void calc_group(struct bt_step *step, void *self)
{
    struct grouping *g = calloc(1, sizeof *g);
    struct table t = {0};
    cJSON *params = NULL;
    struct bt_error err;
    enum bt_code code = g == NULL ? err_set(&err, BT_NOMEM, "out of memory for the groups")
                                  : input_table(step, "values", &t, &err);

    (void)self;
    if (code == BT_OK) {
        code = read_params(step, &params, &err);
    }
    if (code == BT_OK) {
        g->t = &t;
        code = read_group(g, params, &err);
    }
    if (code == BT_OK) {
        code = group(g, &err);
    }
    if (code == BT_OK) {
        code = reply_table(step, &g->out, NULL, &err);
    }
    if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    }
    if (g != NULL) {
        grouping_done(g);
    }
    free(g);
    cJSON_Delete(params);
    table_done(&t);
}

/* ---- percentiles ---- */

static enum bt_code add_percentile(struct table *out, struct item *items, size_t n, double percent,
                                   enum percentile_method method, struct bt_error *err)
{
    const struct aggregation what = {AGGREGATE_PERCENTILE, percent, method};
    cJSON *row = cJSON_CreateArray();
    struct cell value;
    enum bt_code code = aggregate_apply(&what, items, n, &value, err);

    if (code != BT_OK) {
        cJSON_Delete(row);
        return code;
    }
    out->type[1] = value.type == CELL_REAL || out->rows_n == 0 ? value.type : out->type[1];
    (void)input_add(row, NULL, cJSON_CreateNumber(percent));
    (void)input_add(row, NULL, table_new_cell(&value));
    return table_add_row(out, row, err);
}

static enum bt_code percentiles(const cJSON *list, struct key *source, size_t n,
                                enum percentile_method method, struct table *out,
                                struct bt_error *err)
{
    static const double usual[] = {25, 50, 75, 90, 95, 99};
    const cJSON *one;
    enum bt_code code = table_add_column(out, "percent", err);

    code = code == BT_OK ? table_add_column(out, "value", err) : code;
    out->type[0] = CELL_REAL;
    for (size_t i = 0; list == NULL && i < sizeof usual / sizeof usual[0] && code == BT_OK; i++) {
        code = add_percentile(out, source->items, n, usual[i], method, err);
    }
    cJSON_ArrayForEach(one, list)
    {
        if (code == BT_OK && (!cJSON_IsNumber(one) || !(one->valuedouble >= 0.0) ||
                              one->valuedouble > 100.0 || out->rows_n == PERCENTS_MAX)) {
            code = err_set(err, BT_INVALID, "percents: expected at most %d numbers from 0 to 100",
                           PERCENTS_MAX);
        }
        if (code == BT_OK) {
            code = add_percentile(out, source->items, n, one->valuedouble, method, err);
        }
    }
    return code;
}

/* The numbers of the column, without its nulls. */
static enum bt_code read_numbers(struct bt_step *step, const struct table *t, struct key *ret,
                                 size_t *ret_n, struct bt_error *err)
{
    const char *field = bt_step_param_string(step, "field", NULL);
    enum bt_code code;

    ret->column = field != NULL ? table_column(t, field) : table_number_column(t);
    if (ret->column == TABLE_NONE || !cell_type_is_number(t->type[ret->column])) {
        return err_set(err, BT_INVALID, "field: there is no column of numbers%s%.80s",
                       field == NULL ? "" : " called ", field == NULL ? "" : field);
    }
    code = key_read(t, ret, err);
    for (int r = 0; r < t->rows_n && code == BT_OK; r++) {
        if (!ret->items[r].cell.null) {
            ret->items[(*ret_n)++] = ret->items[r];
        }
    }
    return code;
}

void calc_percentiles(struct bt_step *step, void *self)
{
    const char *method = bt_step_param_string(step, "method", "linear");
    const bool nearest = strcmp(method, "nearest") == 0;
    struct key source = {0};
    struct table t = {0};
    struct table out = {0};
    cJSON *params = NULL;
    struct bt_error err;
    size_t n = 0;
    enum bt_code code = input_table(step, "values", &t, &err);

    (void)self;
    if (code == BT_OK && !nearest && strcmp(method, "linear") != 0) {
        code = err_set(&err, BT_INVALID, "method: expected linear or nearest, got '%.20s'", method);
    }
    if (code == BT_OK) {
        code = read_params(step, &params, &err);
    }
    if (code == BT_OK) {
        code = read_numbers(step, &t, &source, &n, &err);
    }
    if (code == BT_OK) {
        code = percentiles(cJSON_GetObjectItemCaseSensitive(params, "percents"), &source, n,
                           nearest ? PERCENTILE_NEAREST : PERCENTILE_LINEAR, &out, &err);
    }
    if (code == BT_OK) {
        code = reply_table(step, &out, method, &err);
    }
    if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    }
    free(source.items);
    cJSON_Delete(params);
    table_done(&out);
    table_done(&t);
}
