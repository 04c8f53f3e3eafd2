#include "protocol/zone/stamp.h"

#include <stdio.h>

#include "protocol/zone/civil.h"

struct scan {
    struct str text;
    size_t at;
};

static char peek(const struct scan *s)
{
    return s->at < s->text.len ? s->text.ptr[s->at] : 0;
}

static bool take(struct scan *s, char c)
{
    if (peek(s) != c) {
        return false;
    }
    s->at++;
    return true;
}

/* Exactly n digits, and a number up to max. */
static bool digits(struct scan *s, uint32_t n, uint32_t max, uint32_t *ret)
{
    *ret = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (peek(s) < '0' || peek(s) > '9') {
            return false;
        }
        *ret = *ret * 10 + (uint32_t)(peek(s) - '0');
        s->at++;
    }
    return *ret <= max;
}

static bool read_date(struct scan *s, int64_t *ret_days)
{
    uint32_t year = 0;
    uint32_t month = 0;
    uint32_t day = 0;

    if (!digits(s, 4, 9999, &year) || !take(s, '-') || !digits(s, 2, 12, &month) || month == 0 ||
        !take(s, '-') || !digits(s, 2, 31, &day) || day == 0 || year < 1970 ||
        day > civil_month_days(year, month)) {
        return false;
    }
    *ret_days = civil_days(year, month, day);
    return true;
}

static bool read_clock(struct scan *s, uint32_t *ret_seconds, uint32_t *ret_ms)
{
    uint32_t hour = 0;
    uint32_t minute = 0;
    uint32_t second = 0;
    uint32_t unit = 100;

    if (!digits(s, 2, 23, &hour) || !take(s, ':') || !digits(s, 2, 59, &minute) ||
        (take(s, ':') && !digits(s, 2, 59, &second))) {
        return false;
    }
    if (take(s, '.')) {
        if (peek(s) < '0' || peek(s) > '9') {
            return false;
        }
        for (; peek(s) >= '0' && peek(s) <= '9'; s->at++, unit /= 10) {
            *ret_ms += unit * (uint32_t)(peek(s) - '0');
        }
    }
    *ret_seconds = hour * 3600 + minute * 60 + second;
    return true;
}

/* Z, +hh:mm or nothing. */
static bool read_offset(struct scan *s, bool *ret_has, int32_t *ret)
{
    const bool minus = peek(s) == '-';
    uint32_t hour = 0;
    uint32_t minute = 0;

    *ret_has = peek(s) != 0;
    if (peek(s) == 0 || take(s, 'Z') || take(s, 'z')) {
        return true;
    }
    if ((!take(s, '+') && !take(s, '-')) || !digits(s, 2, 23, &hour)) {
        return false;
    }
    (void)take(s, ':');
    if (!digits(s, 2, 59, &minute)) {
        return false;
    }
    *ret = (int32_t)(hour * 3600 + minute * 60) * (minus ? -1 : 1);
    return true;
}

enum bt_code stamp_read(struct str text, const struct zone *zone, msec *ret, struct bt_error *err)
{
    struct scan s = {.text = str_trimmed(text)};
    int64_t days = 0;
    uint32_t seconds = 0;
    uint32_t ms = 0;
    int32_t offset = 0;
    int64_t at;
    bool has_offset = false;
    bool ok = read_date(&s, &days);

    if (ok && (take(&s, 'T') || take(&s, 't') || take(&s, ' '))) {
        ok = read_clock(&s, &seconds, &ms) && read_offset(&s, &has_offset, &offset);
    }
    if (!ok || s.at != s.text.len) {
        return err_set(err, BT_INVALID,
                       "'%.*s' is no time: expected one such as 2026-11-30T03:00, "
                       "2026-11-30T03:00:00+01:00 or 2026-11-30T02:00:00Z",
                       text.len > STAMP_MAX ? STAMP_MAX : (int)text.len, text.ptr);
    }
    at = days * SECONDS_A_DAY + seconds;
    at = has_offset ? at - offset : zone_of_local(zone, at);
    *ret = at < 0 ? 0 : (msec)at * 1000 + ms;
    return BT_OK;
}

void stamp_write(const struct zone *zone, msec at, char ret[STAMP_MAX])
{
    const int64_t seconds = (int64_t)(at / 1000);
    const int32_t offset = zone_offset(zone, seconds);
    const int64_t local = seconds + offset;
    const int64_t day = civil_day_of(local);
    const uint32_t of_day = (uint32_t)(local - day * SECONDS_A_DAY);
    const struct civil date = civil_of_days(day);
    const int32_t away = offset < 0 ? -offset : offset;
    char ms[8] = "";
    char tail[16] = "Z";

    if (at % 1000 != 0) {
        (void)snprintf(ms, sizeof ms, ".%03u", (unsigned)(at % 1000));
    }
    if (zone != &ZONE_UTC) {
        (void)snprintf(tail, sizeof tail, "%c%02d:%02d", offset < 0 ? '-' : '+', away / 3600 % 100,
                       away / 60 % 60);
    }
    (void)snprintf(ret, STAMP_MAX, "%04d-%02u-%02uT%02u:%02u:%02u%s%s", (int)(date.year % 10000),
                   date.month, date.day, of_day / 3600, of_day / 60 % 60, of_day % 60, ms, tail);
}
