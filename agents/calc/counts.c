#include "agents/calc/counts.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/sdk/input.h"

void counts_done(struct counts *c)
{
    map_done(&c->index);
    arena_done(&c->arena);
    free(c->at);
    *c = (struct counts){0};
}

static bool grow(struct counts *c)
{
    uint32_t cap = c->cap == 0 ? 64 : c->cap * 2;
    struct count *grown = realloc(c->at, cap * sizeof *grown);

    if (grown == NULL) {
        return false;
    }
    c->at = grown;
    c->cap = cap;
    return true;
}

enum bt_code counts_add(struct counts *c, struct str label, uint64_t n, struct bt_error *err)
{
    uint32_t ix = map_get(&c->index, label);

    c->total += n;
    if (ix != MAP_NONE) {
        c->at[ix].n += n;
        return BT_OK;
    }
    if (c->n == COUNTS_LABELS_MAX) {
        return err_set(err, BT_LIMIT, "more than %d different labels; count by something coarser",
                       COUNTS_LABELS_MAX);
    }
    label = arena_str(&c->arena, label);
    if (label.ptr == NULL || (c->n == c->cap && !grow(c)) ||
        map_put(&c->index, label, c->n) != BT_OK) {
        return err_set(err, BT_NOMEM, "out of memory for counts");
    }
    c->at[c->n++] = (struct count){label, n};
    return BT_OK;
}

static int label_order(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = memcmp(a.ptr, b.ptr, n);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_label(const void *a, const void *b)
{
    return label_order(((const struct count *)a)->label, ((const struct count *)b)->label);
}

static int by_size(const void *a, const void *b)
{
    const struct count *x = a;
    const struct count *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : label_order(x->label, y->label);
}

void counts_sort_by_size(struct counts *c)
{
    if (c->n > 1) {
        qsort(c->at, c->n, sizeof *c->at, by_size);
    }
    map_done(&c->index); /* the labels have moved */
}

void counts_sort_by_label(struct counts *c)
{
    if (c->n > 1) {
        qsort(c->at, c->n, sizeof *c->at, by_label);
    }
    map_done(&c->index);
}

static cJSON *label_string(struct str label)
{
    char small[256];
    char *text = label.len < sizeof small ? small : malloc(label.len + 1);
    cJSON *made = NULL;

    if (text != NULL) {
        memcpy(text, label.ptr, label.len);
        text[label.len] = 0;
        made = cJSON_CreateString(text);
    }
    if (text != small) {
        free(text);
    }
    return made;
}

cJSON *counts_to_tree(const struct counts *c, const char *label_name, uint32_t limit)
{
    cJSON *tree = cJSON_CreateObject();
    cJSON *columns = cJSON_AddArrayToObject(tree, "columns");
    cJSON *rows = cJSON_AddArrayToObject(tree, "rows");

    (void)input_add(columns, NULL, cJSON_CreateString(label_name));
    (void)input_add(columns, NULL, cJSON_CreateString("count"));
    for (uint32_t i = 0; i < c->n && i < limit; i++) {
        cJSON *row = cJSON_CreateArray();
        (void)input_add(row, NULL, label_string(c->at[i].label));
        (void)input_add(row, NULL, cJSON_CreateNumber((double)c->at[i].n));
        (void)input_add(rows, NULL, row);
    }
    (void)cJSON_AddNumberToObject(tree, "total", (double)c->total);
    (void)cJSON_AddNumberToObject(tree, "labels", (double)c->n);
    return tree;
}

/* ---- lines and words ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_word_char(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           (c & 0x80) != 0;
}

bool line_has_word(struct str line, struct str word)
{
    for (size_t i = 0; word.len > 0 && i + word.len <= line.len; i++) {
        size_t k = 0;
        while (k < word.len && lower(line.ptr[i + k]) == lower(word.ptr[k])) {
            k++;
        }
        if (k == word.len && (i == 0 || !is_word_char(line.ptr[i - 1])) &&
            (i + k == line.len || !is_word_char(line.ptr[i + k]))) {
            return true;
        }
    }
    return false;
}

bool next_line(struct str *text, struct str *ret_line)
{
    const char *end;

    if (text->len == 0) {
        return false;
    }
    end = memchr(text->ptr, '\n', text->len);
    ret_line->ptr = text->ptr;
    ret_line->len = end == NULL ? text->len : (size_t)(end - text->ptr);
    text->ptr += ret_line->len + (end != NULL);
    text->len -= ret_line->len + (end != NULL);
    ret_line->len -= ret_line->len > 0 && ret_line->ptr[ret_line->len - 1] == '\r';
    return true;
}

static bool word_is(struct str word, const char *lowered)
{
    size_t n = strlen(lowered);

    if (word.len != n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (lower(word.ptr[i]) != lowered[i]) {
            return false;
        }
    }
    return true;
}

static bool is_stop_word(struct str word)
{
    static const char *const words[] = {
        "count",  "counts", "counting", "counted", "number", "numbers", "how",     "many",
        "the",    "a",      "an",       "all",     "any",    "of",      "in",      "on",
        "at",     "to",     "for",      "from",    "with",   "by",      "per",     "each",
        "every",  "and",    "then",     "that",    "were",   "was",     "is",      "are",
        "there",  "it",     "its",      "them",    "this",   "these",   "those",   "happened",
        "day",    "days",   "daily",    "date",    "dates",  "hour",    "hours",   "hourly",
        "month",  "months", "monthly",  "line",    "lines",  "entry",   "entries", "event",
        "events", "log",    "logs",     "file",    "result", "results", "total",   "totals",
        "tally",  "up",     "group",    "grouped", "me",     "please"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (word_is(word, words[i])) {
            return true;
        }
    }
    return false;
}

struct str task_subject(const char *task, bool as_written)
{
    const char *p = task;

    while (*p != 0) {
        struct str word = {p, 0};
        while (is_word_char(p[word.len])) {
            word.len++;
        }
        if (word.len > 1 && !is_stop_word(word)) {
            bool plural =
                lower(word.ptr[word.len - 1]) == 's' && lower(word.ptr[word.len - 2]) != 's';
            word.len -= !as_written && plural && word.len > 2;
            return word;
        }
        p += word.len > 0 ? word.len : 1;
    }
    return (struct str){NULL, 0};
}

/* The next word at or after *p, which moves after it; length 0 at the end. */
static struct str next_word(const char **p)
{
    struct str word;

    while (**p != 0 && !is_word_char(**p)) {
        (*p)++;
    }
    word = (struct str){*p, 0};
    while (is_word_char(word.ptr[word.len])) {
        word.len++;
    }
    *p += word.len;
    return word;
}

bool task_has_subjects(const char *task)
{
    struct str first = task_subject(task, true);
    const char *p = first.len > 0 ? first.ptr + first.len : task + strlen(task);
    struct str word = next_word(&p);

    if (!word_is(word, "and") && !word_is(word, "or")) {
        return false;
    }
    word = next_word(&p);
    return word.len > 1 && !is_stop_word(word);
}

unsigned task_units(const char *task)
{
    static const char *const units[][3] = {
        {"day", "days", "daily"}, {"hour", "hours", "hourly"}, {"month", "months", "monthly"}};
    unsigned seen = 0;
    const char *p = task;
    struct str before = {task, 0};

    for (struct str word = next_word(&p); word.len > 0; before = word, word = next_word(&p)) {
        bool wanted = word_is(before, "per") || word_is(before, "each") ||
                      word_is(before, "every") || word_is(before, "by") || word_is(before, "and");
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
            bool unit = wanted && (word_is(word, units[i][0]) || word_is(word, units[i][1]));
            seen |= unit || word_is(word, units[i][2]) ? 1u << i : 0;
        }
    }
    return (seen & 1u) + (seen >> 1 & 1u) + (seen >> 2 & 1u);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool line_date(struct str line, struct str *ret_day, struct str *ret_hour)
{
    static const char shape[] = "dddd-dd-dd";

    for (size_t i = 0; i + 10 <= line.len; i++) {
        size_t k = 0;
        while (k < 10 && (shape[k] == 'd' ? is_digit(line.ptr[i + k]) : line.ptr[i + k] == '-')) {
            k++;
        }
        if (k == 10 && (i == 0 || !is_digit(line.ptr[i - 1])) &&
            (i + 10 == line.len || !is_digit(line.ptr[i + 10]))) {
            bool hour = i + 13 <= line.len &&
                        (line.ptr[i + 10] == ' ' || line.ptr[i + 10] == 'T') &&
                        is_digit(line.ptr[i + 11]) && is_digit(line.ptr[i + 12]);
            *ret_day = (struct str){line.ptr + i, 10};
            *ret_hour = hour ? (struct str){line.ptr + i + 11, 2} : (struct str){NULL, 0};
            return true;
        }
    }
    return false;
}
