#include "protocol/zone/zone.h"

#include "protocol/zone/civil.h"

enum {
    HEADER = 44,
    OFFSET_MAX = 26 * 3600, /* of RFC 9636, with room */
    TIMES_MAX = 167 * 3600,
    RULE_MAX = 128
};

const struct zone ZONE_UTC = {.changes = 0, .n_changes = 0, .first = 0};

/* ---- the file ---- */

static uint32_t be32(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static int64_t be64(const char *p)
{
    return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4));
}

struct counts {
    uint32_t isut, isstd, leap, time, type, chars;
};

/* A header at *io_at; false: it is none, or its block does not fit. *io_at is behind the header,
 * *ret_end behind the block. */
static bool read_header(struct str b, size_t *io_at, uint32_t time_size, struct counts *ret,
                        size_t *ret_end)
{
    const char *p = b.ptr + *io_at;
    uint64_t size;

    if (b.len - *io_at < HEADER || memcmp(p, "TZif", 4) != 0) {
        return false;
    }
    *ret = (struct counts){be32(p + 20), be32(p + 24), be32(p + 28),
                           be32(p + 32), be32(p + 36), be32(p + 40)};
    *io_at += HEADER;
    size = (uint64_t)ret->time * (time_size + 1) + (uint64_t)ret->type * 6 + ret->chars +
           (uint64_t)ret->leap * (time_size + 4) + ret->isstd + ret->isut;
    if (ret->type == 0 || ret->type > 256 || size > b.len - *io_at) {
        return false;
    }
    *ret_end = *io_at + (size_t)size;
    return true;
}

static bool offset_of_type(const char *types, uint32_t type, int32_t *ret)
{
    *ret = (int32_t)be32(types + (size_t)type * 6);
    return *ret >= -OFFSET_MAX && *ret <= OFFSET_MAX;
}

static bool read_block(struct str b, size_t at, const struct counts *n, uint32_t cap,
                       struct zone *ret)
{
    const char *times = b.ptr + at;
    const char *which = times + (size_t)n->time * 8;
    const char *types = which + n->time;

    if (n->time > cap || !offset_of_type(types, 0, &ret->first)) {
        return false;
    }
    for (uint32_t i = 0; i < n->time; i++) {
        const uint32_t type = (unsigned char)which[i];
        struct zone_change *c = &ret->changes[i];
        c->at = be64(times + (size_t)i * 8);
        if (type >= n->type || !offset_of_type(types, type, &c->offset) ||
            (i > 0 && c->at <= ret->changes[i - 1].at)) {
            return false;
        }
    }
    ret->n_changes = n->time;
    return true;
}

/* ---- the rule at its end ---- */

struct rule {
    struct str text;
    size_t at;
};

static char peek(const struct rule *r)
{
    return r->at < r->text.len ? r->text.ptr[r->at] : 0;
}

static bool take(struct rule *r, char c)
{
    if (peek(r) != c) {
        return false;
    }
    r->at++;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool read_name(struct rule *r)
{
    const size_t from = r->at;

    if (take(r, '<')) {
        while (peek(r) != 0 && peek(r) != '>') {
            r->at++;
        }
        return take(r, '>');
    }
    while (is_letter(peek(r))) {
        r->at++;
    }
    return r->at > from;
}

static bool read_number(struct rule *r, int32_t max, int32_t *ret)
{
    const size_t from = r->at;

    *ret = 0;
    while (is_digit(peek(r)) && *ret <= max) {
        *ret = *ret * 10 + (peek(r) - '0');
        r->at++;
    }
    return r->at > from && *ret <= max;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool read_time(struct rule *r, int32_t *ret)
{
    const bool minus = peek(r) == '-';
    int32_t part = 0;

    if (peek(r) == '-' || peek(r) == '+') {
        r->at++;
    }
    if (!read_number(r, TIMES_MAX / 3600, &part)) {
        return false;
    }
    *ret = part * 3600;
    for (int32_t unit = 60; unit > 0 && take(r, ':'); unit /= 60) {
        if (!read_number(r, 59, &part)) {
            return false;
        }
        *ret += part * unit;
    }
    *ret = minus ? -*ret : *ret;
    return true;
}

static bool read_date(struct rule *r, struct zone_date *ret)
{
    int32_t n[3] = {0, 0, 0};

    *ret = (struct zone_date){.time = 2 * 3600};
    if (!take(r, ',')) {
        return false;
    }
    if (take(r, 'M')) {
        if (!read_number(r, 12, &n[0]) || !take(r, '.') || !read_number(r, 5, &n[1]) ||
            !take(r, '.') || !read_number(r, 6, &n[2]) || n[0] == 0 || n[1] == 0) {
            return false;
        }
        ret->kind = ZONE_MONTH_WEEK_DAY;
        ret->month = (uint16_t)n[0];
        ret->week = (uint16_t)n[1];
        ret->day = (uint16_t)n[2];
    } else {
        ret->kind = take(r, 'J') ? ZONE_JULIAN : ZONE_DAY;
        if (!read_number(r, 365, &n[0]) || (ret->kind == ZONE_JULIAN && n[0] == 0)) {
            return false;
        }
        ret->day = (uint16_t)n[0];
    }
    return !take(r, '/') || read_time(r, &ret->time);
}

/* "CET-1CEST,M3.5.0,M10.5.0/3": the sign is that of POSIX, west is positive. Empty: no rule. */
static bool read_rule(struct str text, struct zone *z)
{
    struct rule r = {.text = text};
    int32_t west = 0;

    if (text.len == 0) {
        return true;
    }
    if (text.len > RULE_MAX || !read_name(&r) || !read_time(&r, &west)) {
        return false;
    }
    z->has_rule = true;
    z->standard = -west;
    if (r.at == text.len) {
        return z->standard >= -OFFSET_MAX && z->standard <= OFFSET_MAX;
    }
    z->has_summer = true;
    z->summer = z->standard + 3600;
    if (!read_name(&r)) {
        return false;
    }
    if (peek(&r) != ',') {
        if (!read_time(&r, &west)) {
            return false;
        }
        z->summer = -west;
    }
    return read_date(&r, &z->begins) && read_date(&r, &z->ends) && r.at == text.len &&
           z->standard >= -OFFSET_MAX && z->standard <= OFFSET_MAX && z->summer >= -OFFSET_MAX &&
           z->summer <= OFFSET_MAX;
}

bool zone_read(struct str b, struct zone_change *changes, uint32_t cap, struct zone *ret)
{
    struct counts n;
    size_t at = 0;
    size_t end = 0;
    size_t last;

    *ret = (struct zone){.changes = changes};
    /* The first block has times of 32 bits; files without a second one are those of version 1. */
    if (b.len > ZONE_BYTES_MAX || !read_header(b, &at, 4, &n, &end) || b.ptr[4] < '2') {
        return false;
    }
    at = end;
    if (!read_header(b, &at, 8, &n, &end) || !read_block(b, at, &n, cap, ret)) {
        return false;
    }
    if (end >= b.len || b.ptr[end] != '\n') {
        return false;
    }
    for (last = end + 1; last < b.len && b.ptr[last] != '\n'; last++) {
    }
    return last < b.len && read_rule((struct str){b.ptr + end + 1, last - end - 1}, ret);
}

/* ---- asking ---- */

/* Local seconds of the date in this year. */
static int64_t date_in(const struct zone_date *d, int64_t year)
{
    int64_t day;

    if (d->kind == ZONE_MONTH_WEEK_DAY) {
        const int64_t first = civil_days(year, d->month, 1);
        uint32_t of_month = (d->day + 7 - civil_weekday(first)) % 7 + (uint32_t)(d->week - 1) * 7;
        while (of_month >= civil_month_days(year, d->month)) {
            of_month -= 7;
        }
        day = first + of_month;
    } else {
        day = civil_days(year, 1, 1) + d->day;
        if (d->kind == ZONE_JULIAN) {
            day -= d->day < 60 || !civil_is_leap(year) ? 1 : 0;
        }
    }
    return day * SECONDS_A_DAY + d->time;
}

static int64_t year_of(int64_t local)
{
    return civil_of_days(civil_day_of(local)).year;
}

static int32_t rule_offset(const struct zone *z, int64_t utc)
{
    const int64_t year = year_of(utc + z->standard);
    int64_t begins;
    int64_t ends;
    bool summer;

    if (!z->has_summer) {
        return z->standard;
    }
    begins = date_in(&z->begins, year) - z->standard;
    ends = date_in(&z->ends, year) - z->summer;
    summer = begins < ends ? utc >= begins && utc < ends : utc >= begins || utc < ends;
    return summer ? z->summer : z->standard;
}

/* How many changes are at utc or before. */
static uint32_t changes_until(const struct zone *z, int64_t utc)
{
    uint32_t lo = 0;
    uint32_t hi = z->n_changes;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (z->changes[mid].at <= utc) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

int32_t zone_offset(const struct zone *z, int64_t utc)
{
    const uint32_t n = changes_until(z, utc);

    if (n == z->n_changes && z->has_rule) {
        return rule_offset(z, utc);
    }
    return n == 0 ? z->first : z->changes[n - 1].offset;
}

bool zone_next_change(const struct zone *z, int64_t utc, int64_t *ret)
{
    const uint32_t n = changes_until(z, utc);
    int64_t year;
    bool found = false;

    if (n < z->n_changes) {
        *ret = z->changes[n].at;
        return true;
    }
    if (!z->has_rule || !z->has_summer) {
        return false;
    }
    year = year_of(utc + z->standard);
    for (int64_t y = year - 1; y <= year + 1; y++) {
        const int64_t at[2] = {date_in(&z->begins, y) - z->standard,
                               date_in(&z->ends, y) - z->summer};
        for (int i = 0; i < 2; i++) {
            if (at[i] > utc && (!found || at[i] < *ret)) {
                *ret = at[i];
                found = true;
            }
        }
    }
    return found;
}

int64_t zone_of_local(const struct zone *z, int64_t local)
{
    int64_t from = local - OFFSET_MAX; /* no clock is further away */
    int64_t gap = 0;
    bool in_gap = false;
    int64_t to = 0;

    for (;;) {
        const int32_t offset = zone_offset(z, from);
        const int64_t utc = local - offset;
        const bool more = zone_next_change(z, from, &to);
        if (utc >= from && (!more || utc < to)) {
            return utc;
        }
        if (!more || to > local + OFFSET_MAX) {
            return in_gap ? gap : utc;
        }
        /* shown before the change if it had not come, and not after it */
        if (!in_gap && utc >= to && local - zone_offset(z, to) < to) {
            gap = to;
            in_gap = true;
        }
        from = to;
    }
}
