/* Days and dates of the proleptic Gregorian calendar. Pure. The algorithms are Howard Hinnant's:
 * https://howardhinnant.github.io/date_algorithms.html */
#ifndef ZONE_CIVIL_H
#define ZONE_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

enum { SECONDS_A_DAY = 86400 };

struct civil {
    int64_t year;
    uint32_t month; /* 1..12 */
    uint32_t day;   /* 1..31 */
};

/* Days since 1970-01-01. */
static inline int64_t civil_days(int64_t year, uint32_t month, uint32_t day)
{
    const int64_t y = year - (month <= 2 ? 1 : 0);
    const int64_t era = (y >= 0 ? y : y - 399) / 400;
    const int64_t of_era = y - era * 400;
    const int64_t of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static inline struct civil civil_of_days(int64_t days)
{
    const int64_t z = days + 719468;
    const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    const int64_t of_era = z - era * 146097;
    const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const int64_t mp = (5 * of_year + 2) / 153;
    const uint32_t month = (uint32_t)(mp < 10 ? mp + 3 : mp - 9);

    return (struct civil){.year = year + era * 400 + (month <= 2 ? 1 : 0),
                          .month = month,
                          .day = (uint32_t)(of_year - (153 * mp + 2) / 5 + 1)};
}

/* 0 = Sunday. */
static inline uint32_t civil_weekday(int64_t days)
{
    return (uint32_t)((days % 7 + 11) % 7);
}

static inline bool civil_is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static inline uint32_t civil_month_days(int64_t year, uint32_t month)
{
    static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return month == 2 && civil_is_leap(year) ? 29 : days[month - 1];
}

/* Rounds to the day before for times before 1970. */
static inline int64_t civil_day_of(int64_t seconds)
{
    const int64_t day = seconds / SECONDS_A_DAY;

    return seconds % SECONDS_A_DAY < 0 ? day - 1 : day;
}
#endif
