#include "agents/calc/durations.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 60, SECOND = 1000, MINUTE = 60000, HOUR = 3600000, DAY = 86400000 };

static const int64_t MONTHS_MAX = 9999 * 12;
static const int64_t MILLIS_MAX = (int64_t)9999 * 366 * DAY;

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

/* Digits, and perhaps a fraction of one to three digits: thousandths. */
static bool number(struct scan *s, int64_t *ret, bool *ret_whole)
{
    const size_t from = s->at;
    int64_t n = 0;
    int64_t unit = 100;

    while (peek(s) >= '0' && peek(s) <= '9' && s->at - from < 15) {
        n = n * 10 + (s->text.ptr[s->at++] - '0');
    }
    if (s->at == from) {
        return false;
    }
    *ret = n * 1000;
    *ret_whole = true;
    if (take(s, '.') ||
        (peek(s) == ',' && s->at + 1 < s->text.len && s->text.ptr[s->at + 1] >= '0' &&
         s->text.ptr[s->at + 1] <= '9' && take(s, ','))) {
        const size_t point = s->at;
        *ret_whole = false;
        for (; peek(s) >= '0' && peek(s) <= '9' && unit > 0; unit /= 10) {
            *ret += unit * (s->text.ptr[s->at++] - '0');
        }
        return s->at > point;
    }
    return true;
}

/* What one of a unit is. */
struct unit {
    const char *names; /* words with a space after each */
    int64_t months;
    int64_t days;
    int64_t millis;
};

static const struct unit UNITS[] = {
    {"ms msec msecs millisecond milliseconds ", 0, 0, 1},
    {"s sec secs second seconds ", 0, 0, SECOND},
    {"m min mins minute minutes ", 0, 0, MINUTE},
    {"h hr hrs hour hours ", 0, 0, HOUR},
    {"d day days ", 0, 1, 0},
    {"w week weeks ", 0, 7, 0},
    {"mo month months ", 1, 0, 0},
    {"y yr yrs year years ", 12, 0, 0},
};

static const struct unit *unit_named(struct str word)
{
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
        for (const char *at = UNITS[i].names; *at != 0; at = strchr(at, ' ') + 1) {
            if (strncmp(at, word.ptr, word.len) == 0 && at[word.len] == ' ' && word.len > 0) {
                return &UNITS[i];
            }
        }
    }
    return NULL;
}

/* Adds thousandths of a unit. */
static bool add(struct duration *d, const struct unit *u, int64_t thousandths, bool whole)
{
    const int64_t n = thousandths / 1000;

    if (!whole && u->months > 0) {
        return false;
    }
    if (n > MILLIS_MAX / (u->days > 0 ? u->days * DAY : u->millis > 0 ? u->millis : DAY)) {
        return false;
    }
    d->months += n * u->months;
    if (whole) {
        d->days += n * u->days;
        d->millis += n * u->millis;
    } else {
        d->millis += thousandths * (u->days * DAY + u->millis) / 1000;
    }
    return d->months <= MONTHS_MAX && d->days * DAY + d->millis <= MILLIS_MAX;
}

/* ---- the forms ---- */

/* After the P: each letter once, in order. */
static bool read_iso(struct scan *s, struct duration *ret)
{
    static const struct {
        char letter;
        bool time;
        const char *unit;
    } parts[] = {{'Y', false, "y"}, {'M', false, "mo"}, {'W', false, "w"}, {'D', false, "d"},
                 {'H', true, "h"},  {'M', true, "m"},   {'S', true, "s"}};
    size_t next = 0;
    bool time = false;
    bool any = false;

    while (s->at < s->text.len) {
        int64_t n = 0;
        bool whole = true;
        if (!time && take(s, 'T')) {
            time = true;
            any = false;
            continue;
        }
        if (!number(s, &n, &whole)) {
            return false;
        }
        while (next < sizeof parts / sizeof parts[0] &&
               (parts[next].letter != peek(s) || parts[next].time != time)) {
            next++;
        }
        if (next == sizeof parts / sizeof parts[0] ||
            !add(ret, unit_named(str_from(parts[next].unit)), n, whole)) {
            return false;
        }
        any = true;
        next++;
        s->at++;
        if (!whole && s->at < s->text.len) {
            return false; /* only the last part may have a fraction */
        }
    }
    return any;
}

static bool read_clock(struct scan *s, struct duration *ret)
{
    int64_t part[3] = {0};
    bool whole = true;
    int n = 0;

    do {
        if (n == 3 || !whole || !number(s, &part[n], &whole)) {
            return false;
        }
        n++;
    } while (take(s, ':'));
    return n >= 2 && s->at == s->text.len && (whole || n == 3) && part[1] < 60000 &&
           part[2] < 60000 && add(ret, unit_named(STR_LIT("h")), part[0], true) &&
           add(ret, unit_named(STR_LIT("m")), part[1], true) &&
           add(ret, unit_named(STR_LIT("s")), part[2], whole);
}

static void skip_between(struct scan *s)
{
    while (peek(s) == ' ' || peek(s) == ',') {
        s->at++;
    }
    if (s->text.len - s->at > 4 && memcmp(s->text.ptr + s->at, "and ", 4) == 0) {
        s->at += 4;
    }
}

static bool read_units(struct scan *s, struct duration *ret)
{
    bool any = false;

    while (s->at < s->text.len) {
        const struct unit *u;
        struct str word;
        int64_t n = 0;
        bool whole = true;
        if (!number(s, &n, &whole)) {
            return false;
        }
        (void)take(s, ' ');
        word.ptr = s->text.ptr + s->at;
        while (peek(s) >= 'a' && peek(s) <= 'z') {
            s->at++;
        }
        word.len = (size_t)(s->text.ptr + s->at - word.ptr);
        u = unit_named(word);
        if (u == NULL || !add(ret, u, n, whole)) {
            return false;
        }
        any = true;
        skip_between(s);
    }
    return any;
}

enum bt_code duration_read(struct str text, struct duration *ret, struct bt_error *err)
{
    struct scan s = {.text = str_trimmed(text)};
    const bool minus = take(&s, '-');
    bool ok;

    *ret = (struct duration){0};
    if (take(&s, 'P')) {
        ok = read_iso(&s, ret);
    } else if (memchr(s.text.ptr, ':', s.text.len) != NULL) {
        ok = read_clock(&s, ret);
    } else {
        ok = read_units(&s, ret);
    }
    if (!ok) {
        return err_set(err, BT_INVALID,
                       "'%.*s' is no duration: expected one such as PT1H30M, 1h 30m, 90 minutes, "
                       "1:30:00 or 2 days, at most 9999 years, without fractions of months",
                       s.text.len > SHOWN ? SHOWN : (int)s.text.len, s.text.ptr);
    }
    if (minus) {
        *ret = (struct duration){-ret->months, -ret->days, -ret->millis};
    }
    return BT_OK;
}

bool duration_millis(const struct duration *d, int64_t *ret)
{
    *ret = d->days * DAY + d->millis;
    return d->months == 0;
}

/* ---- texts ---- */

struct parts {
    int64_t days;
    int hours, minutes, seconds, millis;
};

static struct parts split(int64_t millis)
{
    const int64_t n = millis < 0 ? -millis : millis;

    return (struct parts){n / DAY, (int)(n % DAY / HOUR), (int)(n % HOUR / MINUTE),
                          (int)(n % MINUTE / SECOND), (int)(n % SECOND)};
}

/* "4", "4.5" */
static void seconds_text(const struct parts *p, char *ret, size_t size)
{
    size_t n;

    (void)snprintf(ret, size, "%d.%03d", p->seconds, p->millis);
    n = strlen(ret);
    while (ret[n - 1] == '0') {
        ret[--n] = 0;
    }
    ret[ret[n - 1] == '.' ? n - 1 : n] = 0;
}

void duration_format_iso(int64_t millis, char ret[DURATION_TEXT])
{
    const struct parts p = split(millis);
    char seconds[16];
    size_t n = 0;

    seconds_text(&p, seconds, sizeof seconds);
    n += (size_t)snprintf(ret + n, DURATION_TEXT - n, "%sP", millis < 0 ? "-" : "");
    if (p.days > 0) {
        n += (size_t)snprintf(ret + n, DURATION_TEXT - n, "%lldD", (long long)p.days);
    }
    if (p.hours + p.minutes + p.seconds + p.millis > 0 || p.days == 0) {
        n += (size_t)snprintf(ret + n, DURATION_TEXT - n, "T");
    }
    if (p.hours > 0) {
        n += (size_t)snprintf(ret + n, DURATION_TEXT - n, "%dH", p.hours);
    }
    if (p.minutes > 0) {
        n += (size_t)snprintf(ret + n, DURATION_TEXT - n, "%dM", p.minutes);
    }
    if (p.seconds + p.millis > 0 || millis == 0) {
        (void)snprintf(ret + n, DURATION_TEXT - n, "%sS", seconds);
    }
}

void duration_format_words(int64_t millis, char ret[DURATION_TEXT])
{
    const struct parts p = split(millis);
    const struct {
        int64_t n;
        const char *name;
    } whole[] = {{p.days, "day"}, {p.hours, "hour"}, {p.minutes, "minute"}};
    char seconds[16];
    size_t n = (size_t)snprintf(ret, DURATION_TEXT, "%s", millis < 0 ? "minus " : "");
    const size_t start = n;

    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        if (whole[i].n > 0) {
            n += (size_t)snprintf(ret + n, DURATION_TEXT - n, "%s%lld %s%s", n > start ? " " : "",
                                  (long long)whole[i].n, whole[i].name, whole[i].n == 1 ? "" : "s");
        }
    }
    seconds_text(&p, seconds, sizeof seconds);
    if (p.seconds + p.millis > 0 || n == start) {
        (void)snprintf(ret + n, DURATION_TEXT - n, "%s%s second%s", n > start ? " " : "", seconds,
                       p.seconds == 1 && p.millis == 0 ? "" : "s");
    }
}
