/* The skills of the calc agent: numbers, lists, counts, dates. They read only the step and have no
 * effects. */
#ifndef CALC_CALC_H
#define CALC_CALC_H

#include "agents/calc/moments.h"
#include "baton/agent.h"
#include "protocol/base/buf.h"
#include "protocol/zone/zones.h"

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
/* skills_times.c */
void calc_now(struct bt_step *step, void *self);
void calc_time(struct bt_step *step, void *self);
void calc_duration(struct bt_step *step, void *self);
/* The parameter `zone`, UTC when missing. *ret and *ret_name live as long as zones. */
BT_MUST_CHECK enum bt_code calc_zone(struct bt_step *step, struct zones *zones,
                                     const struct zone **ret, const char **ret_name,
                                     struct bt_error *err);
/* A parameter that is a moment; now when it is missing. */
BT_MUST_CHECK enum bt_code calc_moment(struct bt_step *step, const char *parameter,
                                       const struct zone *zone, struct moment *ret,
                                       struct bt_error *err);
/* skills_dates.c */
void calc_date(struct bt_step *step, void *self);
#endif
