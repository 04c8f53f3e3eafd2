/* Dates and date-times of ISO 8601: 2026-11-21, 2026-11-21T03:53:00.25+02:00. Pure. */
#ifndef AGENTS_CELL_DATE_H
#define AGENTS_CELL_DATE_H

#include "protocol/base/str.h"

struct cell_date {
    int year, month, day; /* 1 to 9999; 1 to 12; 1 to the month's last day */
    int hour, minute, second;
    int nanos;
    int offset_minutes; /* east of UTC */
    bool has_time;
    bool has_offset; /* Z, or +02:00, +0200, +02 */
};

/*
 * YYYY-MM-DD, then perhaps a "T" or one space with HH:MM, perhaps :SS and .fraction (1 to 9
 * digits), then perhaps an offset. The day must exist (proleptic Gregorian calendar); 24:00 and the
 * 60th second are rejected. False when the text is anything else.
 */
bool cell_date_read(struct str text, struct cell_date *ret);
/* The days of a month, 28 to 31. */
int cell_date_month_days(int year, int month);
#endif
