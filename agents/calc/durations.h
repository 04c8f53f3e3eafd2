/* Durations as people and programs write them. Pure. */
#ifndef CALC_DURATIONS_H
#define CALC_DURATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

/* Months have no fixed length, so they are counted apart. Days are 24 hours in millis, and calendar
 * days in `days` when the text named days or weeks. */
struct duration {
    int64_t months;
    int64_t days;
    int64_t millis;
};

/*
 * Reads ISO 8601 ("P1Y2M3DT4H5M6.5S", "P2W", "-PT30M"), units ("1h 30m", "90 minutes", "2 days,
 * 3 hours and 5 s", "250 ms"; m is minutes, mo months), and clocks ("1:30" hours and minutes,
 * "1:30:05.5"). A fraction of up to three digits, not of months or years, which have no fixed
 * length. At most 9999 years. BT_INVALID.
 */
BT_MUST_CHECK enum bt_code duration_read(struct str text, struct duration *ret,
                                         struct bt_error *err);
/* Milliseconds of days and millis; false when there are months. */
bool duration_millis(const struct duration *d, int64_t *ret);
enum { DURATION_TEXT = 96 };
/* "P1DT2H3M4.5S"; "PT0S" for none; "-PT5M". Of milliseconds, days are 24 hours. */
void duration_format_iso(int64_t millis, char ret[DURATION_TEXT]);
/* "1 day 2 hours 3 minutes 4.5 seconds" */
void duration_format_words(int64_t millis, char ret[DURATION_TEXT]);
#endif
