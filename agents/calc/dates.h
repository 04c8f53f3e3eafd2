/* Dates and times of day in UTC, proleptic Gregorian, without the C library's time zone. Pure. */
#ifndef CALC_DATES_H
#define CALC_DATES_H

#include <stdint.h>

#include "agents/cells/cell_date.h"
#include "protocol/base/err.h"

struct date {
    int64_t seconds; /* since 1970-01-01T00:00:00Z */
    bool has_time;
};

enum { DATE_TEXT = 40 };

/* The moment of a date; without an offset it is UTC. A fraction is dropped. */
struct date date_of(const struct cell_date *d);
enum { DATE_BUCKET = 16 };
/*
 * The label of the day, ISO week, month, quarter or year that a date lies in: 2026-11-21, 2026-W47,
 * 2026-11, 2026-Q4, 2026. It is the calendar of the value: UTC, or its own offset when it has one.
 * False for another word. Within one unit the labels sort as the dates do.
 */
bool date_bucket(const struct cell_date *d, const char *per, char ret[DATE_BUCKET]);
/* A date alone, or with its time: "2026-11-21" or "2026-11-21T03:53:00Z". */
void date_format(struct date d, char ret[DATE_TEXT]);
/* "Saturday" */
const char *date_weekday(struct date d);
/* unit: seconds, minutes, hours, days, weeks, months, years. A day beyond the end of the month
 * becomes its last day (31 Jan + 1 month = 28 or 29 Feb). */
BT_MUST_CHECK enum bt_code date_add(struct date d, int64_t amount, const char *unit,
                                    struct date *ret, struct bt_error *err);
/* Days, weeks, months and years go by the clock on the wall, shorter units by real time. */
bool date_unit_is_calendar(const char *unit);
/* b - a in the unit: seconds to weeks. */
BT_MUST_CHECK enum bt_code date_diff(struct date a, struct date b, const char *unit, double *ret,
                                     struct bt_error *err);
#endif
