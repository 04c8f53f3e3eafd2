/*
 * Time zones as the files of tzdata have them (TZif, RFC 9636): the changes of the offset, and the
 * rule (a TZ string of POSIX) for the time after the last one. Pure: whoever reads the file gives
 * its bytes. Seconds are of UTC since 1970 unless they are called local; local seconds are those of
 * a clock on the wall, counted as if it showed UTC.
 *
 * Own code, because libc has one zone for the whole process (TZ, tzset), and a daemon with threads
 * must not change it for each schedule.
 */
#ifndef ZONE_ZONE_H
#define ZONE_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/str.h"

enum {
    ZONE_CHANGES_MAX = 2000, /* tzdata has files of 250 */
    ZONE_BYTES_MAX = 65536
};

struct zone_change {
    int64_t at;     /* from this second on */
    int32_t offset; /* local = UTC + offset */
};

/* When in a year the offset changes. */
struct zone_date {
    enum { ZONE_MONTH_WEEK_DAY, ZONE_JULIAN, ZONE_DAY } kind;
    uint16_t month, week, day; /* ZONE_JULIAN: 1..365 without February 29; ZONE_DAY: 0..365 */
    int32_t time;              /* seconds after midnight; may be negative, or over a day */
};

struct zone {
    struct zone_change *changes; /* rising; the caller's memory */
    uint32_t n_changes;
    int32_t first; /* the offset before the first change */
    bool has_rule;
    bool has_summer;
    int32_t standard, summer; /* offsets of the rule */
    struct zone_date begins, ends;
};

/* UTC itself, which needs no file. */
extern const struct zone ZONE_UTC;

/* False: not such a file, or one with more changes than `cap`. *ret uses `changes`. */
bool zone_read(struct str bytes, struct zone_change *changes, uint32_t cap, struct zone *ret);

int32_t zone_offset(const struct zone *z, int64_t utc);
/* The first change after utc. False: there is none. */
bool zone_next_change(const struct zone *z, int64_t utc, int64_t *ret);
/* When the clock shows this. Shown twice: the first time. Never shown, because the clock was put
 * forward: the second of that change. */
int64_t zone_of_local(const struct zone *z, int64_t local);
#endif
