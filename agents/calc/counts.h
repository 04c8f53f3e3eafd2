/* Counts things by a label. Labels are copied. */
#ifndef CALC_COUNTS_H
#define CALC_COUNTS_H

#include "protocol/base/arena.h"
#include "protocol/base/err.h"
#include "protocol/base/map.h"

struct cJSON;

enum { COUNTS_LABELS_MAX = 100000 };

struct count {
    struct str label;
    uint64_t n;
};

struct counts {
    struct arena arena;
    struct map index;
    struct count *at;
    uint32_t n, cap;
    uint64_t total;
};

void counts_done(struct counts *c); /* accepts zeroed; idempotent */
BT_MUST_CHECK enum bt_code counts_add(struct counts *c, struct str label, uint64_t n,
                                      struct bt_error *err);
/* By count, the largest first; equal counts by label. */
void counts_sort_by_size(struct counts *c);
void counts_sort_by_label(struct counts *c);
/* {columns: [label_name, "count"], rows, total, labels}; at most `limit` rows. NULL when out of
 * memory. */
struct cJSON *counts_to_tree(const struct counts *c, const char *label_name, uint32_t limit);

/* Whether the line contains the word as a whole (no letter, digit, '_' or '-' beside it), ignoring
 * case. */
bool line_has_word(struct str line, struct str word);
/* The next line of the text, without its end; false when there are no more. */
bool next_line(struct str *text, struct str *ret_line);
/*
 * The word that a task counts: "count the installs per day" gives "install" (or "installs", when
 * `as_written`). Stop words are skipped: words that describe how to count. {NULL, 0} when no word
 * is left: then every line counts.
 */
struct str task_subject(const char *task, bool as_written);
/* Whether the task names a second word beside it: "the installs and upgrades". */
bool task_has_subjects(const char *task);
/* How many of day, hour and month the task names: "per day and per month". The "day" of "per hour
 * of the day" does not count. */
unsigned task_units(const char *task);
/* The date of a line: the first YYYY-MM-DD in it, and the two digits of the hour after it. False
 * when there is none. */
bool line_date(struct str line, struct str *ret_day, struct str *ret_hour);
#endif
