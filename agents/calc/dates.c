#include "agents/calc/dates.h"

#include <stdio.h>
#include <string.h>

#include "protocol/zone/civil.h"

enum { DAY_S = SECONDS_A_DAY, YEAR_MAX = 9999 };

struct date date_of(const struct cell_date *d)
{
    int64_t day = (int64_t)d->hour * 3600 + d->minute * 60 + d->second;

    return (struct date){.seconds =
                             civil_days(d->year, (uint32_t)d->month, (uint32_t)d->day) * DAY_S +
                             day - (int64_t)d->offset_minutes * 60,
                         .has_time = d->has_time};
}

/* ISO 8601: the week belongs to the year of its Thursday; week 1 is that of the first Thursday. */
static void week_label(const struct cell_date *d, char *ret, size_t size)
{
    const int64_t day = civil_days(d->year, (uint32_t)d->month, (uint32_t)d->day);
    const int64_t thursday = day - (civil_weekday(day) + 6) % 7 + 3;
    const int64_t y = civil_of_days(thursday).year;

    (void)snprintf(ret, size, "%04d-W%02d", (int)y,
                   (int)((thursday - civil_days(y, 1, 1)) / 7 + 1));
}

bool date_bucket(const struct cell_date *d, const char *per, char ret[DATE_BUCKET])
{
    if (strcmp(per, "day") == 0) {
        (void)snprintf(ret, DATE_BUCKET, "%04d-%02d-%02d", d->year, d->month, d->day);
    } else if (strcmp(per, "week") == 0) {
        week_label(d, ret, DATE_BUCKET);
    } else if (strcmp(per, "month") == 0) {
        (void)snprintf(ret, DATE_BUCKET, "%04d-%02d", d->year, d->month);
    } else if (strcmp(per, "quarter") == 0) {
        (void)snprintf(ret, DATE_BUCKET, "%04d-Q%d", d->year, (d->month + 2) / 3);
    } else if (strcmp(per, "year") == 0) {
        (void)snprintf(ret, DATE_BUCKET, "%04d", d->year);
    } else {
        return false;
    }
    return true;
}

void date_format(struct date d, char ret[DATE_TEXT])
{
    const int64_t day = civil_day_of(d.seconds);
    const int rest = (int)(d.seconds - day * DAY_S);
    const struct civil c = civil_of_days(day);

    if (d.has_time) {
        (void)snprintf(ret, DATE_TEXT, "%04d-%02u-%02uT%02d:%02d:%02dZ", (int)c.year, c.month,
                       c.day, rest / 3600, rest / 60 % 60, rest % 60);
    } else {
        (void)snprintf(ret, DATE_TEXT, "%04d-%02u-%02u", (int)c.year, c.month, c.day);
    }
}

const char *date_weekday(struct date d)
{
    static const char *const names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};

    return names[civil_weekday(civil_day_of(d.seconds))];
}

/* Seconds of a unit; 0 for months, -1 for years, INT64_MIN when it is unknown. "day" and "days" are
 * the same. */
static int64_t unit_seconds(const char *unit)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"second", 1},       {"minute", 60}, {"hour", 3600}, {"day", DAY_S},
                 {"week", 7 * DAY_S}, {"month", 0},   {"year", -1}};
    size_t n = strlen(unit);

    n -= n > 1 && unit[n - 1] == 's';
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strlen(units[i].name) == n && strncmp(units[i].name, unit, n) == 0) {
            return units[i].seconds;
        }
    }
    return INT64_MIN;
}

bool date_unit_is_calendar(const char *unit)
{
    const int64_t each = unit_seconds(unit);

    return each != INT64_MIN && (each <= 0 || each >= DAY_S);
}

static bool add_months(struct date d, int64_t months, struct date *ret)
{
    const int64_t days = civil_day_of(d.seconds);
    const struct civil c = civil_of_days(days);
    int64_t y = c.year;
    int64_t m = (int64_t)c.month + months - 1;
    uint32_t last;

    y += m / 12;
    m %= 12;
    if (m < 0) {
        m += 12;
        y--;
    }
    m++;
    if (y < 1 || y > YEAR_MAX) {
        return false;
    }
    last = civil_month_days(y, (uint32_t)m);
    *ret = (struct date){civil_days(y, (uint32_t)m, c.day > last ? last : c.day) * DAY_S +
                             d.seconds - days * DAY_S,
                         d.has_time};
    return true;
}

enum bt_code date_add(struct date d, int64_t amount, const char *unit, struct date *ret,
                      struct bt_error *err)
{
    const int64_t far = (int64_t)YEAR_MAX * 366 * DAY_S;
    int64_t each = unit_seconds(unit);
    struct date sum = d;
    bool ok;

    if (each == INT64_MIN) {
        return err_set(
            err, BT_INVALID,
            "unit '%.20s': expected seconds, minutes, hours, days, weeks, months or years", unit);
    }
    ok = amount > -far && amount < far;
    if (ok && each <= 0) {
        ok = amount > -YEAR_MAX * 12 && amount < YEAR_MAX * 12 &&
             add_months(d, each == 0 ? amount : amount * 12, &sum);
    } else if (ok) {
        ok = amount <= far / each && amount >= -(far / each);
        sum.seconds = ok ? d.seconds + amount * each : d.seconds;
        sum.has_time = d.has_time || each < DAY_S;
        ok = ok && sum.seconds >= civil_days(1, 1, 1) * DAY_S &&
             sum.seconds < civil_days(YEAR_MAX + 1, 1, 1) * DAY_S;
    }
    if (!ok) {
        return err_set(err, BT_INVALID, "the result is not between the years 1 and %d", YEAR_MAX);
    }
    *ret = sum;
    return BT_OK;
}

enum bt_code date_diff(struct date a, struct date b, const char *unit, double *ret,
                       struct bt_error *err)
{
    int64_t each = unit_seconds(unit);

    if (each <= 0) {
        return err_set(err, BT_INVALID,
                       "unit '%.20s': expected seconds, minutes, hours, days or weeks", unit);
    }
    *ret = (double)(b.seconds - a.seconds) / (double)each;
    return BT_OK;
}
