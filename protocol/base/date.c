#include "protocol/base/date.h"

struct reader {
    struct str text;
    size_t at;
    bool ok;
};

static char next(struct reader *r)
{
    if (r->at >= r->text.len) {
        r->ok = false;
        return '\0';
    }
    return r->text.ptr[r->at++];
}

static uint32_t number(struct reader *r, uint32_t digits)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < digits; i++) {
        const char c = next(r);
        r->ok = r->ok && c >= '0' && c <= '9';
        n = n * 10 + (uint32_t)(c - '0');
    }
    return r->ok ? n : 0;
}

static void expect(struct reader *r, char one, char other)
{
    const char c = next(r);
    r->ok = r->ok && (c == one || c == other);
}

static bool is_leap(uint32_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days since 1970-01-01. */
static uint64_t days_before(uint32_t year, uint32_t month, uint32_t day)
{
    static const uint16_t before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    const uint32_t past = year - 1;
    const uint64_t all = 365u * (uint64_t)past + past / 4 - past / 100 + past / 400;
    const uint64_t leap = month > 2 && is_leap(year) ? 1 : 0;
    return all + before[month - 1] + leap + day - 1 - 719162u /* of 1970 */;
}

static uint32_t days_of(uint32_t year, uint32_t month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year) ? 1u : 0u);
}

/* The thousandths after the point, if there is one. */
static uint32_t fraction(struct reader *r)
{
    uint32_t ms = 0;
    uint32_t unit = 100;
    if (!r->ok || r->at >= r->text.len || r->text.ptr[r->at] != '.') {
        return 0;
    }
    r->at++;
    ms = number(r, 1) * unit;
    while (r->ok && r->at < r->text.len && r->text.ptr[r->at] >= '0' && r->text.ptr[r->at] <= '9') {
        unit /= 10;
        ms += number(r, 1) * unit;
    }
    return ms;
}

/* Minutes east of UTC. */
static int32_t offset(struct reader *r)
{
    const char c = next(r);
    if (c == 'Z' || c == 'z') {
        return 0;
    }
    r->ok = r->ok && (c == '+' || c == '-');
    const uint32_t hours = number(r, 2);
    expect(r, ':', ':');
    const uint32_t minutes = number(r, 2);
    r->ok = r->ok && hours <= 23 && minutes <= 59;
    const int32_t all = (int32_t)(hours * 60 + minutes);
    return c == '-' ? -all : all;
}

bool date_read(struct str text, msec *ret)
{
    struct reader r = {.text = text, .ok = true};
    const uint32_t year = number(&r, 4);
    expect(&r, '-', '-');
    const uint32_t month = number(&r, 2);
    expect(&r, '-', '-');
    const uint32_t day = number(&r, 2);
    expect(&r, 'T', 't');
    const uint32_t hour = number(&r, 2);
    expect(&r, ':', ':');
    const uint32_t minute = number(&r, 2);
    expect(&r, ':', ':');
    const uint32_t second = number(&r, 2);
    const uint32_t ms = fraction(&r);
    const int32_t east = offset(&r);
    if (!r.ok || r.at != text.len || year < 1970 || month < 1 || month > 12 || day < 1 ||
        day > days_of(year, month) || hour > 23 || minute > 59 || second > 60) {
        return false;
    }
    const int64_t minutes = (int64_t)(days_before(year, month, day) * 1440 + hour * 60 + minute);
    if (minutes < east) {
        return false; /* before 1970 */
    }
    *ret = (msec)(minutes - east) * 60000 + second * 1000u + ms;
    return true;
}
