#include "agents/cells/cell_date.h"

int cell_date_month_days(int year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes exactly n digits. */
static bool take_number(struct str *s, size_t n, int *ret)
{
    int v = 0;

    if (s->len < n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(s->ptr[i])) {
            return false;
        }
        v = v * 10 + (s->ptr[i] - '0');
    }
    s->ptr += n;
    s->len -= n;
    *ret = v;
    return true;
}

static bool take(struct str *s, char c)
{
    bool has = s->len > 0 && s->ptr[0] == c;

    s->ptr += has;
    s->len -= has;
    return has;
}

static bool read_day(struct str *s, struct cell_date *d)
{
    return take_number(s, 4, &d->year) && take(s, '-') && take_number(s, 2, &d->month) &&
           take(s, '-') && take_number(s, 2, &d->day) && d->year >= 1 && d->month >= 1 &&
           d->month <= 12 && d->day >= 1 && d->day <= cell_date_month_days(d->year, d->month);
}

static bool read_fraction(struct str *s, struct cell_date *d)
{
    int scale = 100000000;
    int n = 0;

    while (n < 9 && s->len > 0 && is_digit(s->ptr[0])) {
        d->nanos += (s->ptr[0] - '0') * scale;
        scale /= 10;
        n++;
        s->ptr++;
        s->len--;
    }
    return n > 0;
}

static bool read_time(struct str *s, struct cell_date *d)
{
    d->has_time = true;
    if (!take_number(s, 2, &d->hour) || !take(s, ':') || !take_number(s, 2, &d->minute)) {
        return false;
    }
    if (take(s, ':') &&
        (!take_number(s, 2, &d->second) || (take(s, '.') && !read_fraction(s, d)))) {
        return false;
    }
    return d->hour <= 23 && d->minute <= 59 && d->second <= 59;
}

static bool read_offset(struct str *s, struct cell_date *d)
{
    bool west = s->ptr[0] == '-';
    int hours = 0;
    int minutes = 0;

    d->has_offset = true;
    if (take(s, 'Z')) {
        return true;
    }
    if ((!take(s, '+') && !take(s, '-')) || !take_number(s, 2, &hours)) {
        return false;
    }
    if (s->len > 0) {
        (void)take(s, ':');
        if (!take_number(s, 2, &minutes)) {
            return false;
        }
    }
    d->offset_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
    return hours <= 14 && minutes <= 59; /* UTC+14 is the farthest zone */
}

bool cell_date_read(struct str text, struct cell_date *ret)
{
    struct cell_date d = {0};
    struct str s = text;

    if (!read_day(&s, &d)) {
        return false;
    }
    if (s.len > 0 && ((!take(&s, 'T') && !take(&s, ' ')) || !read_time(&s, &d))) {
        return false;
    }
    if (s.len > 0 && (!read_offset(&s, &d) || s.len > 0)) {
        return false;
    }
    *ret = d;
    return true;
}
