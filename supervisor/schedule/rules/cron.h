/*
 * Lines of cron: five fields (minute, hour, day of the month, month, day of the week), or one of
 * @yearly @annually @monthly @weekly @daily @midnight @hourly. A field is a list of numbers, names
 * (jan, mon), ranges and steps: "1,15", "mon-fri", "8-18/2", "* /10" without the space. 7 is
 * Sunday, too. Pure.
 *
 * Which days: when both the day of the month and the day of the week are given (neither begins
 * with *), a day matches when one of the two does; otherwise both must match.
 */
#ifndef SCHEDULE_RULES_CRON_H
#define SCHEDULE_RULES_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/str.h"

enum cron_field { CRON_MINUTE, CRON_HOUR, CRON_DAY, CRON_MONTH, CRON_WEEKDAY, CRON_FIELDS };

/* Bit n of a field: the value n matches. */
struct cron {
    uint64_t minutes;
    uint32_t hours;
    uint32_t days;
    uint16_t months;
    uint8_t weekdays; /* bit 0: Sunday */
    bool either_day;  /* one of days and weekdays is enough */
};

enum cron_fault {
    CRON_OK,
    CRON_COUNT,      /* not five fields */
    CRON_WORD,       /* neither a number nor a name of this field */
    CRON_RANGE,      /* out of the field's range */
    CRON_BACKWARDS,  /* a range that ends before it begins */
    CRON_STEP,       /* a step of 0, or none */
    CRON_STEP_ALONE, /* 5/15: a step of one number */
    CRON_EMPTY,      /* nothing between two commas */
    CRON_QUARTZ,     /* ? L W # of other programs */
    CRON_MACRO,      /* @something */
    CRON_REBOOT,
    CRON_NEVER /* no such day, as February 30 */
};

struct cron_problem {
    enum cron_fault fault;
    enum cron_field field; /* not of COUNT, MACRO, REBOOT, NEVER */
    uint32_t at;           /* bytes before it in the line */
    uint32_t len;
    uint32_t fields; /* of COUNT: how many there are */
};

/* False: *why is the first problem. */
bool cron_parse(struct str line, struct cron *ret, struct cron_problem *why);
/* Whether the line is of every hour: its times then follow each other in real time, also over a
 * change of the hour. */
bool cron_is_hourly(const struct cron *c);
/* The first matching minute at `local` or later, in seconds of local time as if it were UTC.
 * False: there is none within 40 years. */
bool cron_next_local(const struct cron *c, int64_t local, int64_t *ret);
/* The least and the greatest number of a field, and its name. */
uint32_t cron_field_min(enum cron_field field);
uint32_t cron_field_max(enum cron_field field);
const char *cron_field_name(enum cron_field field);
#endif
