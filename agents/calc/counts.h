/* Counting things by a label. Labels are copied. */
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
/* By count, the largest first; equal ones by label. */
void counts_sort_by_size(struct counts *c);
void counts_sort_by_label(struct counts *c);
/* {columns: [label_name, "count"], rows, total, labels}; at most `limit` rows. NULL when out of
 * memory. */
struct cJSON *counts_to_tree(const struct counts *c, const char *label_name, uint32_t limit);

/* Whether the line holds the word as a whole (no letter, digit, '_' or '-' beside it), letter case
 * aside. */
bool line_has_word(struct str line, struct str word);
/* The next line of the text, without its end; false when there are no more. */
bool next_line(struct str *text, struct str *ret_line);
/*
 * The word that a task in words counts: "count the installs per day" gives "install" (or
 * "installs", when `as_written`). Words that say how, not what, are passed over. {NULL, 0} when
 * nothing is left: everything is counted.
 */
struct str task_subject(const char *task, bool as_written);
/* Whether it names another one beside it: "the installs and upgrades". */
bool task_has_subjects(const char *task);
/* How many of day, hour and month the task wants counts for: "per day and per month". The "day" of
 * "per hour of the day" is none. */
unsigned task_units(const char *task);
/* The date of a line: the first YYYY-MM-DD in it, and the two digits of the hour after it. False
 * when there is none. */
bool line_date(struct str line, struct str *ret_day, struct str *ret_hour);
#endif
