#include "agents/calc/dates.h"

#include <stdio.h>
#include <string.h>

enum { DAY_S = 86400, YEAR_MAX = 9999 };

/* Days since 1970-01-01. Howard Hinnant's days_from_civil (public domain):
 * https://howardhinnant.github.io/date_algorithms.html */
static int64_t days_from(int64_t y, int64_t m, int64_t d)
{
    int64_t era;
    int64_t year_of_era;
    int64_t day_of_year;

    y -= m <= 2;
    era = (y >= 0 ? y : y - 399) / 400;
    year_of_era = y - era * 400;
    day_of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

static void civil_from(int64_t days, int64_t *y, int64_t *m, int64_t *d)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;

    *d = doy - (153 * mp + 2) / 5 + 1;
    *m = mp + (mp < 10 ? 3 : -9);
    *y = yoe + era * 400 + (*m <= 2);
}

static int64_t month_days(int64_t y, int64_t m)
{
    return cell_date_month_days((int)y, (int)m);
}

struct date date_of(const struct cell_date *d)
{
    int64_t day = (int64_t)d->hour * 3600 + d->minute * 60 + d->second;

    return (struct date){.seconds = days_from(d->year, d->month, d->day) * DAY_S + day -
                                    (int64_t)d->offset_minutes * 60,
                         .has_time = d->has_time};
}

enum bt_code date_parse(const char *text, struct date *ret, struct bt_error *err)
{
    struct cell_date d;

    if (!cell_date_read(str_from(text), &d)) {
        return err_set(err, BT_INVALID,
                       "'%.40s': expected a date such as 2026-11-21 or 2026-11-21T03:53:00Z", text);
    }
    *ret = date_of(&d);
    return BT_OK;
}

/* ISO 8601: the week belongs to the year of its Thursday; week 1 is that of the first Thursday. */
static void week_label(const struct cell_date *d, char *ret, size_t size)
{
    int64_t day = days_from(d->year, d->month, d->day);
    int64_t weekday = ((day + 3) % 7 + 7) % 7; /* Monday = 0; 1970-01-01 was a Thursday */
    int64_t thursday = day - weekday + 3;
    int64_t y;
    int64_t m;
    int64_t of_month;

    civil_from(thursday, &y, &m, &of_month);
    (void)snprintf(ret, size, "%04d-W%02d", (int)y, (int)((thursday - days_from(y, 1, 1)) / 7 + 1));
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

static int64_t day_of(struct date d, int64_t *ret_rest)
{
    int64_t rest = d.seconds % DAY_S;

    rest += rest < 0 ? DAY_S : 0;
    *ret_rest = rest;
    return (d.seconds - rest) / DAY_S;
}

void date_format(struct date d, char ret[DATE_TEXT])
{
    int64_t rest;
    int64_t y;
    int64_t m;
    int64_t day;

    civil_from(day_of(d, &rest), &y, &m, &day);
    if (d.has_time) {
        (void)snprintf(ret, DATE_TEXT, "%04d-%02d-%02dT%02d:%02d:%02dZ", (int)y, (int)m, (int)day,
                       (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
    } else {
        (void)snprintf(ret, DATE_TEXT, "%04d-%02d-%02d", (int)y, (int)m, (int)day);
    }
}

const char *date_weekday(struct date d)
{
    static const char *const names[] = {
        "Thursday", "Friday",  "Saturday", "Sunday",
        "Monday",   "Tuesday", "Wednesday"}; /* 1970-01-01 was a Thursday */
    int64_t rest;
    int64_t day = day_of(d, &rest) % 7;

    return names[day < 0 ? day + 7 : day];
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

static bool add_months(struct date d, int64_t months, struct date *ret)
{
    int64_t rest;
    int64_t y;
    int64_t m;
    int64_t day;

    civil_from(day_of(d, &rest), &y, &m, &day);
    m += months - 1;
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
    day = day > month_days(y, m) ? month_days(y, m) : day;
    *ret = (struct date){days_from(y, m, day) * DAY_S + rest, d.has_time};
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
        ok = ok && sum.seconds >= days_from(1, 1, 1) * DAY_S &&
             sum.seconds < days_from(YEAR_MAX + 1, 1, 1) * DAY_S;
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
