#include "agents/calc/moments.h"

#include <stdio.h>

#include "agents/calc/dates.h"
#include "protocol/zone/civil.h"

enum { SHOWN = 60, DIGITS_MIN = 9, DIGITS_MAX = 15 }; /* 2026 is a year, and not its seconds */

static const int64_t MILLIS_FROM = 100000000000; /* as seconds this is the year 5138 */

static int64_t first_second(void)
{
    return civil_days(1, 1, 1) * SECONDS_A_DAY;
}

static int64_t end_second(void)
{
    return civil_days(10000, 1, 1) * SECONDS_A_DAY;
}

struct moment moment_of_local(const struct zone *zone, int64_t local)
{
    struct moment m = {.seconds = zone_of_local(zone, local), .has_time = true};
    int64_t change;

    m.skipped = m.seconds + zone_offset(zone, m.seconds) != local;
    if (!m.skipped && zone_next_change(zone, m.seconds, &change)) {
        m.repeated =
            local - zone_offset(zone, change) >= change && change - m.seconds < SECONDS_A_DAY;
    }
    return m;
}

/* ---- the forms ---- */

static bool read_iso(struct str text, const struct zone *zone, struct moment *ret)
{
    struct cell_date d;

    if (!cell_date_read(text, &d)) {
        return false;
    }
    if (d.has_offset) {
        *ret = (struct moment){.seconds = date_of(&d).seconds};
    } else {
        *ret = moment_of_local(zone, date_of(&d).seconds);
    }
    ret->has_time = d.has_time;
    ret->millis = (uint32_t)(d.nanos / 1000000);
    return true;
}

static bool read_unix(struct str text, struct moment *ret)
{
    const bool minus = text.len > 0 && text.ptr[0] == '-';
    int64_t n = 0;

    if (text.len < (minus ? 1u : 0u) + DIGITS_MIN || text.len > (minus ? 1u : 0u) + DIGITS_MAX) {
        return false;
    }
    for (size_t i = minus ? 1 : 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        n = n * 10 + (text.ptr[i] - '0');
    }
    *ret = (struct moment){.seconds = n, .has_time = true};
    if (n >= MILLIS_FROM) {
        *ret = (struct moment){.seconds = n / 1000, .millis = (uint32_t)(n % 1000), true};
    }
    if (minus) {
        ret->seconds = -ret->seconds - (ret->millis > 0 ? 1 : 0);
        ret->millis = ret->millis > 0 ? 1000 - ret->millis : 0;
    }
    return ret->seconds >= first_second() && ret->seconds < end_second();
}

static bool read_word(struct str text, const struct zone *zone, msec now, struct moment *ret)
{
    static const struct {
        const char *word;
        int days;
    } words[] = {{"today", 0}, {"tomorrow", 1}, {"yesterday", -1}};
    const int64_t at = (int64_t)(now / 1000);

    if (str_is(text, "now")) {
        *ret = (struct moment){.seconds = at, .millis = (uint32_t)(now % 1000), .has_time = true};
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (str_is(text, words[i].word)) {
            const int64_t day = civil_day_of(at + zone_offset(zone, at)) + words[i].days;
            *ret = moment_of_local(zone, day * SECONDS_A_DAY);
            ret->has_time = false;
            return true;
        }
    }
    return false;
}

struct scan {
    struct str text;
    size_t at;
};

static bool take(struct scan *s, char c)
{
    const bool is = s->at < s->text.len && s->text.ptr[s->at] == c;

    s->at += is ? 1 : 0;
    return is;
}

/* From `least` to `most` digits. */
static bool digits(struct scan *s, uint32_t least, uint32_t most, uint32_t *ret)
{
    uint32_t n = 0;

    *ret = 0;
    while (n < most && s->at < s->text.len && s->text.ptr[s->at] >= '0' &&
           s->text.ptr[s->at] <= '9') {
        *ret = *ret * 10 + (uint32_t)(s->text.ptr[s->at++] - '0');
        n++;
    }
    return n >= least;
}

/* One of the words, each of three letters: its number from 0. */
static bool word_of_three(struct scan *s, const char *words, uint32_t *ret)
{
    if (s->text.len - s->at < 3) {
        return false;
    }
    for (uint32_t i = 0; words[(size_t)i * 3] != 0; i++) {
        if (memcmp(words + (size_t)i * 3, s->text.ptr + s->at, 3) == 0) {
            s->at += 3;
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool mail_zone(struct scan *s, int32_t *ret)
{
    const struct str rest = {s->text.ptr + s->at, s->text.len - s->at};
    const bool minus = rest.len > 0 && rest.ptr[0] == '-';
    uint32_t hhmm = 0;

    s->at = s->text.len;
    *ret = 0;
    if (str_is(rest, "GMT") || str_is(rest, "UTC") || str_is(rest, "UT") || str_is(rest, "Z")) {
        return true;
    }
    s->at -= rest.len;
    if ((!take(s, '+') && !take(s, '-')) || !digits(s, 4, 4, &hhmm) || s->at != s->text.len ||
        hhmm % 100 > 59 || hhmm / 100 > 23) {
        return false;
    }
    *ret = (int32_t)(hhmm / 100 * 3600 + hhmm % 100 * 60) * (minus ? -1 : 1);
    return true;
}

/* "Sat, 21 Nov 2026 03:53:00 +0100", of RFC 5322; the name of the day, the seconds and, when there
 * is no time, the zone may be missing. The name must be the day's. */
static bool read_mail(struct str text, const struct zone *zone, struct moment *ret)
{
    struct scan s = {.text = text};
    uint32_t weekday = 7;
    uint32_t part[6] = {0};
    uint32_t month = 0;
    int32_t offset = 0;
    bool ok =
        !word_of_three(&s, "SunMonTueWedThuFriSat", &weekday) || (take(&s, ',') && take(&s, ' '));
    bool timed;
    int64_t days;

    ok = ok && digits(&s, 1, 2, &part[2]) && take(&s, ' ') &&
         word_of_three(&s, "JanFebMarAprMayJunJulAugSepOctNovDec", &month) && take(&s, ' ') &&
         digits(&s, 4, 4, &part[0]) && part[0] > 0 && part[2] > 0 &&
         part[2] <= civil_month_days(part[0], month + 1);
    timed = ok && s.at < text.len;
    if (timed) {
        ok = take(&s, ' ') && digits(&s, 2, 2, &part[3]) && take(&s, ':') &&
             digits(&s, 2, 2, &part[4]) && (!take(&s, ':') || digits(&s, 2, 2, &part[5])) &&
             part[3] < 24 && part[4] < 60 && part[5] < 60;
    }
    if (!ok) {
        return false;
    }
    days = civil_days(part[0], month + 1, part[2]);
    if (weekday < 7 && civil_weekday(days) != weekday) {
        return false;
    }
    *ret = moment_of_local(zone, days * SECONDS_A_DAY + part[3] * 3600 + part[4] * 60 + part[5]);
    if (timed && take(&s, ' ')) {
        if (!mail_zone(&s, &offset)) {
            return false;
        }
        *ret = (struct moment){.seconds = days * SECONDS_A_DAY + part[3] * 3600 + part[4] * 60 +
                                          part[5] - offset};
    }
    ret->has_time = timed;
    return s.at == text.len;
}

enum bt_code moment_read(struct str text, const struct zone *zone, msec now, struct moment *ret,
                         struct bt_error *err)
{
    const struct str t = str_trimmed(text);

    if (read_iso(t, zone, ret) || read_word(t, zone, now, ret) || read_unix(t, ret) ||
        read_mail(t, zone, ret)) {
        return BT_OK;
    }
    return err_set(err, BT_INVALID,
                   "'%.*s' is no time: expected one such as 2026-11-21, 2026-11-21T03:53:00Z, "
                   "2026-11-21T04:53:00+01:00, Sat, 21 Nov 2026 03:53:00 GMT, seconds or "
                   "milliseconds since 1970, now, today, tomorrow or yesterday",
                   t.len > SHOWN ? SHOWN : (int)t.len, t.ptr);
}

/* ---- texts ---- */

static void format(int64_t local, uint32_t millis, bool always, const char *tail,
                   char ret[MOMENT_TEXT])
{
    char text[DATE_TEXT];
    char part[8] = "";

    date_format((struct date){.seconds = local, .has_time = true}, text);
    text[strlen(text) - 1] = 0; /* the Z */
    if (always || millis > 0) {
        (void)snprintf(part, sizeof part, ".%03u", millis % 1000);
    }
    (void)snprintf(ret, MOMENT_TEXT, "%s%s%s", text, part, tail);
}

void moment_format_utc(const struct moment *m, char ret[MOMENT_TEXT])
{
    format(m->seconds, m->millis, true, "Z", ret);
}

void moment_format_offset(int32_t offset, char ret[MOMENT_TEXT])
{
    const int32_t away = offset < 0 ? -offset : offset;

    if (away % 60 == 0) {
        (void)snprintf(ret, MOMENT_TEXT, "%c%02d:%02d", offset < 0 ? '-' : '+', away / 3600,
                       away / 60 % 60);
    } else { /* local mean time, of the nineteenth century */
        (void)snprintf(ret, MOMENT_TEXT, "%c%02d:%02d:%02d", offset < 0 ? '-' : '+', away / 3600,
                       away / 60 % 60, away % 60);
    }
}

void moment_format_local(const struct moment *m, const struct zone *zone, char ret[MOMENT_TEXT])
{
    const int32_t offset = zone_offset(zone, m->seconds);
    char tail[MOMENT_TEXT] = "Z";

    if (zone != &ZONE_UTC) {
        moment_format_offset(offset, tail);
    }
    format(m->seconds + offset, m->millis, false, tail, ret);
}
