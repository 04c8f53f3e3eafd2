/* The skills of the calc agent: numbers, lists, counts, dates. They read only the step and have no
 * effects. */
#ifndef CALC_CALC_H
#define CALC_CALC_H

#include "baton/agent.h"
#include "protocol/base/buf.h"

struct cJSON;

extern const struct bt_skill calc_skills[];
extern const size_t calc_skill_count;

/* skills_numbers.c */
void calc_evaluate(struct bt_step *step, void *self);
void calc_statistics(struct bt_step *step, void *self);
void calc_shares(struct bt_step *step, void *self);
/* Adds approximate: true, and a line to the text, when it is so. */
void calc_mark_approximate(struct cJSON *data, bool approximate, struct buf *text);
/* skills_counts.c */
void calc_count_by(struct bt_step *step, void *self);
void calc_count_per_day(struct bt_step *step, void *self);
void calc_busiest(struct bt_step *step, void *self);
/* skills_rows.c */
void calc_sort(struct bt_step *step, void *self);
void calc_group(struct bt_step *step, void *self);
void calc_percentiles(struct bt_step *step, void *self);
/* skills_dates.c */
void calc_now(struct bt_step *step, void *self);
void calc_date(struct bt_step *step, void *self);
#endif
