/* Moments as people write them, in a time zone; and how a moment looks in one. Pure. */
#ifndef CALC_MOMENTS_H
#define CALC_MOMENTS_H

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/zone/zone.h"

struct moment {
    int64_t seconds; /* since 1970-01-01T00:00:00Z, of the years 1 to 9999 */
    uint32_t millis;
    bool has_time;
    bool skipped;  /* the clock of the zone never shows this time: the second of the change */
    bool repeated; /* the clock shows it twice: the first time */
};

/*
 * Reads "2026-11-21", "2026-11-21T03:53:00.25+02:00", "Sat, 21 Nov 2026 03:53:00 GMT" (of mail and
 * HTTP), seconds (9 digits or more) or (from 100,000,000,000 on) milliseconds since 1970, "now",
 * "today", "tomorrow" and "yesterday" (midnight in the zone). Without an offset it is the clock of
 * the zone. BT_INVALID.
 */
BT_MUST_CHECK enum bt_code moment_read(struct str text, const struct zone *zone, msec now,
                                       struct moment *ret, struct bt_error *err);
/* The moment whose clock in the zone shows `local` (seconds as if it were UTC). */
struct moment moment_of_local(const struct zone *zone, int64_t local);
enum { MOMENT_TEXT = 48 };
/* "2026-11-21T03:53:00.250Z" */
void moment_format_utc(const struct moment *m, char ret[MOMENT_TEXT]);
/* "2026-11-21T04:53:00+01:00"; milliseconds when there are any. */
void moment_format_local(const struct moment *m, const struct zone *zone, char ret[MOMENT_TEXT]);
/* "+01:00" */
void moment_format_offset(int32_t offset, char ret[MOMENT_TEXT]);
#endif
