#include <math.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "agents/calc/calc.h"
#include "agents/calc/column.h"
#include "agents/calc/counts.h"
#include "agents/calc/total.h"
#include "agents/sdk/input.h"
#include "agents/sdk/regex.h"
#include "agents/sdk/table.h"
#include "agents/sdk/whole.h"
#include "protocol/base/utf8.h"

enum { ROWS_LIMIT = 60000 }; /* three values each: a result has LIMIT_NODES of them */

static void reply_counts(struct bt_step *step, const struct counts *c, const char *label,
                         struct str counted)
{
    double limit = bt_step_param_number(step, "limit", ROWS_LIMIT);
    uint32_t most = limit >= 1 && limit < ROWS_LIMIT ? (uint32_t)limit : ROWS_LIMIT;
    struct table t = {0};
    cJSON *data;
    struct buf text;
    struct bt_error err;
    char what[256];

    if (c->n > most && !bt_step_has_param(step, "limit")) {
        bt_step_fail(step, "VALIDATION_ERROR", false,
                     "result_too_large: %u different labels, and a result holds %d; count by "
                     "something coarser, or set `limit` to get the first ones",
                     c->n, ROWS_LIMIT);
        return;
    }
    data = counts_to_tree(c, label, most);

    counted.len = counted.len > 0 ? utf8_cut(counted.ptr, counted.len, sizeof what - 1) : 0;
    (void)snprintf(what, sizeof what, "%.*s", (int)counted.len, counted.len > 0 ? counted.ptr : "");
    (void)cJSON_AddStringToObject(data, "counted", what[0] != 0 ? what : "everything");
    buf_init(&text, LIMIT_RESULT_BYTES);
    if (table_read(data, &t, &err) == BT_OK) {
        table_to_markdown(&t, TABLE_SHOWN_ROWS, TABLE_SHOWN_BYTES, TABLE_REST_IN_DATA, &text);
    } else if (err.code == BT_NOMEM) {
        input_lost();
    }
    if (c->n > most) {
        whole_mark(step, &text, "the first %u of %u labels; raise `limit` (at most %d)", most, c->n,
                   ROWS_LIMIT);
    }
    input_reply_buf(step, data, &text);
    buf_done(&text);
    table_done(&t);
}

/* ---- per day ---- */

struct per_day {
    struct counts counts;
    enum { PER_DAY, PER_HOUR, PER_MONTH } per;
    uint64_t dated; /* lines with a date */
};

static enum bt_code count_lines(struct per_day *k, struct str text, struct str word,
                                struct bt_error *err)
{
    struct str line;
    enum bt_code code = BT_OK;

    while (code == BT_OK && next_line(&text, &line)) {
        struct str day;
        struct str hour;
        if (!line_date(line, &day, &hour)) {
            continue;
        }
        k->dated++;
        if (word.len > 0 && !line_has_word(line, word)) {
            continue;
        }
        if (k->per == PER_DAY) {
            code = counts_add(&k->counts, day, 1, err);
        } else if (k->per == PER_MONTH) {
            code = counts_add(&k->counts, (struct str){day.ptr, 7}, 1, err);
        } else if (hour.len > 0) {
            code = counts_add(&k->counts, hour, 1, err);
        }
    }
    return code;
}

/* The unit from the parameter, else from the task's words. */
static bool read_unit(struct bt_step *step, struct per_day *k)
{
    struct str task = str_from(bt_step_task(step));
    const char *per = bt_step_param_string(step, "per", NULL);

    if (per == NULL && task_units(bt_step_task(step)) > 1) {
        bt_step_fail(step, "VALIDATION_ERROR", false,
                     "the task names more than one of day, hour and month: give each a step of its "
                     "own, or say which with the parameter per");
        return false;
    }
    if (per == NULL &&
        (line_has_word(task, STR_LIT("hour")) || line_has_word(task, STR_LIT("hourly")))) {
        per = "hour";
    } else if (per == NULL &&
               (line_has_word(task, STR_LIT("month")) || line_has_word(task, STR_LIT("monthly")))) {
        per = "month";
    }
    if (per == NULL || strcmp(per, "day") == 0) {
        k->per = PER_DAY;
    } else if (strcmp(per, "hour") == 0) {
        k->per = PER_HOUR;
    } else if (strcmp(per, "month") == 0) {
        k->per = PER_MONTH;
    } else {
        bt_step_fail(step, "VALIDATION_ERROR", false,
                     "per: expected day, hour or month, got '%.20s'", per);
        return false;
    }
    return true;
}

/* Logs write "install" for "installs": tries the singular first, then the word as written. */
static enum bt_code count_subject(struct bt_step *step, struct per_day *k, struct str text,
                                  struct str *ret_word, struct bt_error *err)
{
    const char *given = bt_step_param_string(step, "contains", NULL);
    struct str word = given != NULL ? str_from(given) : task_subject(bt_step_task(step), false);
    enum bt_code code;

    if (given == NULL && task_has_subjects(bt_step_task(step))) {
        return err_set(err, BT_INVALID,
                       "the task names more than one thing to count, beside '%.*s' too: give each "
                       "a step of its own, or say which with the parameter contains",
                       (int)word.len, word.ptr);
    }
    code = count_lines(k, text, word, err);
    if (code == BT_OK && given == NULL && word.len > 0 && k->counts.total == 0) {
        word = task_subject(bt_step_task(step), true);
        k->dated = 0;
        code = count_lines(k, text, word, err);
    }
    if (code == BT_OK && k->counts.total == 0) {
        return err_set(
            err, BT_NOT_FOUND,
            k->dated == 0
                ? "no line has a date such as 2026-11-21%.*s"
                : "no dated line has the word '%.*s'; say which with the parameter contains",
            k->dated == 0 ? 0 : (int)word.len, word.len > 0 ? word.ptr : "");
    }
    *ret_word = word;
    return code;
}

void calc_count_per_day(struct bt_step *step, void *self)
{
    static const char *const labels[] = {
        [PER_DAY] = "day", [PER_HOUR] = "hour", [PER_MONTH] = "month"};
    const char *text = input_text(step, "text");
    struct per_day k = {.per = PER_DAY};
    struct str word = {NULL, 0};
    struct bt_error err;

    (void)self;
    if (text == NULL || text[0] == 0) {
        bt_step_fail(step, "VALIDATION_ERROR", false,
                     "text: there is none; give it, or let a step before this one read it (a "
                     "result over 1.5 MiB is not "
                     "handed on whole: filter it first)");
        return;
    }
    if (!read_unit(step, &k)) {
        return;
    }
    if (count_subject(step, &k, str_from(text), &word, &err) != BT_OK) {
        bt_step_fail_error(step, &err);
    } else {
        counts_sort_by_label(&k.counts);
        reply_counts(step, &k.counts, labels[k.per], word);
    }
    counts_done(&k.counts);
}

/* ---- by a field or a pattern ---- */

static enum bt_code count_pattern(struct counts *c, struct str text, const char *pattern,
                                  struct bt_error *err)
{
    struct regex *re = NULL;
    struct str line;
    enum bt_code code = regex_new(str_from(pattern), false, &re, err);

    while (code == BT_OK && next_line(&text, &line)) {
        bool found;
        code = regex_find(re, line, &found, err);
        if (code == BT_OK && found) {
            code = counts_add(c, regex_group(re, regex_groups(re) > 0 ? 1 : 0), 1, err);
        }
    }
    regex_free(re);
    return code;
}

static enum bt_code count_field(struct counts *c, struct bt_step *step, const char *field,
                                struct bt_error *err)
{
    struct buf text;
    struct table t = {0};
    enum bt_code code = input_table(step, "items", &t, err);
    int column = TABLE_NONE;

    buf_init(&text, LIMIT_RESULT_BYTES);
    if (code == BT_OK) {
        column = field != NULL ? table_column(&t, field) : t.n > 0 ? 0 : TABLE_NONE;
        if (column == TABLE_NONE) {
            code = err_set(err, BT_INVALID, "field '%.80s': the rows have no such column",
                           field == NULL ? "" : field);
        }
    }
    for (int r = 0; r < t.rows_n && code == BT_OK; r++) {
        buf_clear(&text);
        table_put_text(table_cell(&t, r, column), &text);
        code = counts_add(c, buf_str(&text), 1, err);
    }
    buf_done(&text);
    table_done(&t);
    return code;
}

void calc_count_by(struct bt_step *step, void *self)
{
    const char *pattern = bt_step_param_string(step, "pattern", NULL);
    const char *field = bt_step_param_string(step, "field", NULL);
    const char *text = pattern != NULL ? input_text(step, "items") : NULL;
    struct counts c = {0};
    struct bt_error err;
    enum bt_code code;

    (void)self;
    if (pattern != NULL) {
        code = text == NULL ? err_set(&err, BT_INVALID, "items: there are none")
                            : count_pattern(&c, str_from(text), pattern, &err);
    } else {
        code = count_field(&c, step, field, &err);
    }
    if (code == BT_OK) {
        counts_sort_by_size(&c);
        reply_counts(step, &c, field != NULL ? field : "label", str_from(pattern));
    } else {
        bt_step_fail_error(step, &err);
    }
    counts_done(&c);
}

/* ---- the busiest ---- */

static void reply_busiest(struct bt_step *step, const struct table *t, int label,
                          const struct column *c)
{
    const struct total total = total_of(c->items, c->n);

    double rows = bt_step_param_number(step, "rows", 31);
    cJSON *data = cJSON_CreateObject();
    size_t best = 0;
    double percent = 0.0;
    struct buf name;
    char n[64];
    char all[64];
    struct buf text;

    for (size_t r = 1; r < c->n; r++) { /* null is after everything */
        const bool more = item_compare(&c->items[r], &c->items[best]) > 0;
        best = !c->items[r].cell.null && (more || c->items[best].cell.null) ? r : best;
    }
    if (total.value > 0.0) {
        percent = item_number(&c->items[best]) / total.value * 100.0;
    }
    buf_init(&name, LIMIT_RESULT_BYTES);
    if (label != TABLE_NONE) {
        table_put_text(table_cell(t, (int)best, label), &name);
    } else {
        buf_printf(&name, "%zu", best + 1); /* as in shares: the number of the row */
    }
    if (name.bad != BT_OK) {
        input_lost();
    }
    (void)cJSON_AddStringToObject(data, "label", buf_cstr(&name));
    (void)input_add(data, "value", table_new_cell(&c->items[best].cell));
    (void)input_add(data, "total", total_json(&total));
    (void)cJSON_AddNumberToObject(data, "percent", round(percent * 10.0) / 10.0);
    (void)table_text(cJSON_GetObjectItemCaseSensitive(data, "value"), n, sizeof n);
    (void)table_text(cJSON_GetObjectItemCaseSensitive(data, "total"), all, sizeof all);
    buf_init(&text, LIMIT_RESULT_BYTES);
    buf_printf(&text, "The busiest %s is **%s** with %s of %s",
               label == TABLE_NONE ? "row" : t->columns[label], buf_cstr(&name), n, all);
    if (total.value > 0.0) {
        buf_printf(&text, " (%.1f %%)", percent);
    }
    buf_add_cstr(&text, ".\n\n");
    table_to_markdown(t, rows >= 0 && rows < TABLE_SHOWN_ROWS ? (int)rows : TABLE_SHOWN_ROWS,
                      TABLE_SHOWN_BYTES, "the parameter rows shows more", &text);
    calc_mark_approximate(data, c->approximate || total.approximate, &text);
    input_reply_buf(step, data, &text);
    buf_done(&name);
    buf_done(&text);
}

void calc_busiest(struct bt_step *step, void *self)
{
    const char *wanted = bt_step_param_string(step, "value", NULL);
    struct table t = {0};
    struct bt_error err;
    struct column c = {0};
    int value = TABLE_NONE;
    enum bt_code code = input_table(step, "counts", &t, &err);

    (void)self;
    if (code == BT_OK) {
        value = wanted != NULL ? table_column(&t, wanted) : table_number_column(&t);
        if (value == TABLE_NONE) {
            code = err_set(&err, BT_INVALID, "counts: there is no column of numbers%s%.80s",
                           wanted == NULL ? "" : " called ", wanted == NULL ? "" : wanted);
        }
    }
    if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    } else if (column_read(step, &t, value, COLUMN_SKIPS_ALL, &c)) {
        if (c.numbers == 0) {
            bt_step_fail(step, "VALIDATION_ERROR", false, "counts: column '%.80s' has no number",
                         t.columns[value]);
        } else {
            reply_busiest(step, &t, table_other_column(&t, value), &c);
        }
    }
    column_done(&c);
    table_done(&t);
}
