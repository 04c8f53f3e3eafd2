#include "supervisor/schedule/rules/cron.h"

#include "protocol/zone/civil.h"

enum { YEARS_AHEAD = 40, NUMBER_MAX = 1000 };

static const struct {
    const char *name;
    uint8_t min, max;
} FIELDS[CRON_FIELDS] = {
    [CRON_MINUTE] = {"minute", 0, 59},          [CRON_HOUR] = {"hour", 0, 23},
    [CRON_DAY] = {"day of the month", 1, 31},   [CRON_MONTH] = {"month", 1, 12},
    [CRON_WEEKDAY] = {"day of the week", 0, 7},
};

static const char MONTHS[] = "janfebmaraprmayjunjulaugsepoctnovdec";
static const char WEEKDAYS[] = "sunmontuewedthufrisat";

static const struct {
    const char *name, *line;
} MACROS[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

uint32_t cron_field_min(enum cron_field field)
{
    return FIELDS[field].min;
}

uint32_t cron_field_max(enum cron_field field)
{
    return FIELDS[field].max;
}

const char *cron_field_name(enum cron_field field)
{
    return FIELDS[field].name;
}

/* ---- reading ---- */

struct reader {
    struct str line;
    size_t at;
    struct cron_problem *why;
    enum cron_field field;
};

static bool fails(struct reader *r, enum cron_fault fault, size_t from, size_t to)
{
    *r->why = (struct cron_problem){
        .fault = fault, .field = r->field, .at = (uint32_t)from, .len = (uint32_t)(to - from)};
    return false;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static char peek(const struct reader *r)
{
    return r->at < r->line.len ? r->line.ptr[r->at] : ' ';
}

/* The number of a name in a table of names of three letters; from `first`. */
static bool named(struct str word, const char *names, uint32_t first, uint32_t *ret)
{
    for (uint32_t i = 0; word.len == 3 && names[i * 3] != 0; i++) {
        if (lower(word.ptr[0]) == names[i * 3] && lower(word.ptr[1]) == names[i * 3 + 1] &&
            lower(word.ptr[2]) == names[i * 3 + 2]) {
            *ret = first + i;
            return true;
        }
    }
    return false;
}

/* One number or name. */
static bool read_value(struct reader *r, uint32_t *ret)
{
    const size_t from = r->at;
    uint32_t n = 0;
    bool digits = true;
    struct str word;

    while (!is_blank(peek(r)) && peek(r) != ',' && peek(r) != '-' && peek(r) != '/') {
        const char c = peek(r);
        digits = digits && is_digit(c);
        n = digits && n < NUMBER_MAX ? n * 10 + (uint32_t)(c - '0') : n;
        r->at++;
    }
    word = (struct str){r->line.ptr + from, r->at - from};
    if (word.len == 0) {
        return fails(r, CRON_EMPTY, from, from);
    }
    if (!digits) {
        if ((r->field == CRON_MONTH && named(word, MONTHS, 1, ret)) ||
            (r->field == CRON_WEEKDAY && named(word, WEEKDAYS, 0, ret))) {
            return true;
        }
        for (size_t i = 0; i < word.len; i++) {
            const char c = word.ptr[i];
            if (c == '?' || c == '#' ||
                ((c == 'L' || c == 'W') && (i == 0 || is_digit(word.ptr[0])) &&
                 i + 1 == word.len)) {
                return fails(r, CRON_QUARTZ, from, r->at);
            }
        }
        return fails(r, CRON_WORD, from, r->at);
    }
    if (n < FIELDS[r->field].min || n > FIELDS[r->field].max) {
        return fails(r, CRON_RANGE, from, r->at);
    }
    *ret = n;
    return true;
}

static bool read_step(struct reader *r, uint32_t *ret)
{
    const size_t from = r->at;
    uint32_t n = 0;

    while (is_digit(peek(r)) && n < NUMBER_MAX) {
        n = n * 10 + (uint32_t)(peek(r) - '0');
        r->at++;
    }
    if (n == 0 || n > FIELDS[r->field].max || (!is_blank(peek(r)) && peek(r) != ',')) {
        while (!is_blank(peek(r)) && peek(r) != ',') {
            r->at++;
        }
        return fails(r, CRON_STEP, from, r->at);
    }
    *ret = n;
    return true;
}

/* One item of a list: a value, a range, or *; perhaps with a step. */
static bool read_item(struct reader *r, uint64_t *io_bits)
{
    const size_t from = r->at;
    uint32_t first = FIELDS[r->field].min;
    uint32_t last = r->field == CRON_WEEKDAY ? 6 : FIELDS[r->field].max;
    uint32_t step = 1;
    bool alone = false;

    if (peek(r) == '*') {
        r->at++;
    } else {
        if (!read_value(r, &first)) {
            return false;
        }
        last = first;
        alone = peek(r) != '-';
        if (!alone) {
            r->at++;
            if (!read_value(r, &last)) {
                return false;
            }
            /* sat-sun: Sunday is 7 at the end of a range */
            last = r->field == CRON_WEEKDAY && last == 0 && first > 0 ? 7 : last;
            if (last < first) {
                return fails(r, CRON_BACKWARDS, from, r->at);
            }
        }
    }
    if (peek(r) == '/') {
        if (alone) {
            while (!is_blank(peek(r)) && peek(r) != ',') {
                r->at++;
            }
            return fails(r, CRON_STEP_ALONE, from, r->at);
        }
        r->at++;
        if (!read_step(r, &step)) {
            return false;
        }
    }
    if (!is_blank(peek(r)) && peek(r) != ',') {
        while (!is_blank(peek(r)) && peek(r) != ',') {
            r->at++;
        }
        return fails(r, CRON_WORD, from, r->at);
    }
    for (uint32_t n = first; n <= last; n += step) {
        *io_bits |= UINT64_C(1) << (r->field == CRON_WEEKDAY ? n % 7 : n);
    }
    return true;
}

static bool read_field(struct reader *r, uint64_t *ret_bits, bool *ret_star)
{
    *ret_bits = 0;
    *ret_star = peek(r) == '*';
    for (;;) {
        if (!read_item(r, ret_bits)) {
            return false;
        }
        if (peek(r) != ',') {
            return true;
        }
        r->at++;
    }
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->line.len && is_blank(peek(r))) {
        r->at++;
    }
}

static uint32_t count_fields(struct str line)
{
    uint32_t n = 0;

    for (size_t i = 0; i < line.len; i++) {
        n += !is_blank(line.ptr[i]) && (i == 0 || is_blank(line.ptr[i - 1]));
    }
    return n;
}

static bool same_word(struct str word, const char *name)
{
    size_t i = 0;

    while (i < word.len && name[i] != 0 && lower(word.ptr[i]) == name[i]) {
        i++;
    }
    return i == word.len && name[i] == 0;
}

static bool read_fields(struct reader *r, struct cron *ret)
{
    uint64_t bits[CRON_FIELDS];
    bool star[CRON_FIELDS];
    int64_t first;
    const uint32_t n = count_fields(r->line);

    if (n != CRON_FIELDS) {
        (void)fails(r, CRON_COUNT, 0, r->line.len);
        r->why->fields = n;
        return false;
    }
    for (uint32_t i = 0; i < CRON_FIELDS; i++) {
        skip_blanks(r);
        r->field = (enum cron_field)i;
        if (!read_field(r, &bits[i], &star[i])) {
            return false;
        }
    }
    *ret = (struct cron){.minutes = bits[CRON_MINUTE],
                         .hours = (uint32_t)bits[CRON_HOUR],
                         .days = (uint32_t)bits[CRON_DAY],
                         .months = (uint16_t)bits[CRON_MONTH],
                         .weekdays = (uint8_t)bits[CRON_WEEKDAY],
                         .either_day = !star[CRON_DAY] && !star[CRON_WEEKDAY]};
    return cron_next_local(ret, 0, &first) ? true : fails(r, CRON_NEVER, 0, r->line.len);
}

bool cron_parse(struct str line, struct cron *ret, struct cron_problem *why)
{
    struct reader r = {.line = line, .why = why};
    struct str word = str_trimmed(line);

    *why = (struct cron_problem){.fault = CRON_OK};
    *ret = (struct cron){.minutes = 0};
    if (word.len == 0 || word.ptr[0] != '@') {
        return read_fields(&r, ret);
    }
    for (size_t i = 0; i < sizeof MACROS / sizeof MACROS[0]; i++) {
        if (same_word(word, MACROS[i].name)) {
            r.line = str_from(MACROS[i].line);
            return read_fields(&r, ret);
        }
    }
    return fails(&r, same_word(word, "@reboot") ? CRON_REBOOT : CRON_MACRO,
                 (size_t)(word.ptr - line.ptr), (size_t)(word.ptr - line.ptr) + word.len);
}

/* ---- matching ---- */

bool cron_is_hourly(const struct cron *c)
{
    return c->hours == (1u << 24) - 1;
}

static bool day_matches(const struct cron *c, const struct civil *date, int64_t day)
{
    const bool of_month = (c->days >> date->day & 1) != 0;
    const bool of_week = (c->weekdays >> civil_weekday(day) & 1) != 0;

    return (c->months >> date->month & 1) != 0 &&
           (c->either_day ? of_month || of_week : of_month && of_week);
}

/* The first set bit at n or later; false: none below `end`. */
static bool next_bit(uint64_t bits, uint32_t n, uint32_t end, uint32_t *ret)
{
    while (n < end && (bits >> n & 1) == 0) {
        n++;
    }
    *ret = n;
    return n < end;
}

bool cron_next_local(const struct cron *c, int64_t local, int64_t *ret)
{
    int64_t day = civil_day_of(local);
    const int64_t end = day + (int64_t)YEARS_AHEAD * 366;
    uint32_t second = (uint32_t)(local - day * SECONDS_A_DAY);
    uint32_t minute = (second + 59) / 60; /* of the day */

    while (day < end) {
        const struct civil date = civil_of_days(day);
        uint32_t hour;
        uint32_t m;
        if ((c->months >> date.month & 1) == 0) {
            day += civil_month_days(date.year, date.month) - date.day + 1;
            minute = 0;
            continue;
        }
        if (minute < 1440 && day_matches(c, &date, day)) {
            hour = minute / 60;
            if ((c->hours >> hour & 1) != 0 && next_bit(c->minutes, minute % 60, 60, &m)) {
                *ret = day * SECONDS_A_DAY + (int64_t)hour * 3600 + (int64_t)m * 60;
                return true;
            }
            if (next_bit(c->hours, hour + 1, 24, &hour)) {
                (void)next_bit(c->minutes, 0, 60, &m);
                *ret = day * SECONDS_A_DAY + (int64_t)hour * 3600 + (int64_t)m * 60;
                return true;
            }
        }
        day++;
        minute = 0;
    }
    return false;
}
