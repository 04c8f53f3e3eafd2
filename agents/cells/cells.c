#include "agents/cells/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agents/cells/cell_date.h"

/* ---- names ---- */

static const char *const names[CELL_TYPE_COUNT] = {[CELL_TEXT] = "text",
                                                   [CELL_INTEGER] = "integer",
                                                   [CELL_REAL] = "real",
                                                   [CELL_BOOLEAN] = "boolean",
                                                   [CELL_DATE] = "date"};

const char *cell_type_name(enum cell_type type)
{
    return names[type];
}

bool cell_type_from_name(struct str name, enum cell_type *ret)
{
    for (int i = 0; i < CELL_TYPE_COUNT; i++) {
        if (str_is(name, names[i])) {
            *ret = (enum cell_type)i;
            return true;
        }
    }
    return false;
}

const char *cell_type_expects(enum cell_type type)
{
    static const char *const expects[CELL_TYPE_COUNT] = {
        [CELL_TEXT] = "a text",
        [CELL_INTEGER] = "a whole number of 64 bits",
        [CELL_REAL] = "a finite decimal number",
        [CELL_BOOLEAN] = "true or false",
        [CELL_DATE] = "a date such as 2026-11-21 or 2026-11-21T03:53:00Z"};

    return expects[type];
}

bool cell_type_is_number(enum cell_type type)
{
    return type == CELL_INTEGER || type == CELL_REAL;
}

/* ---- numbers ---- */

/* The parts of a number's text. */
struct number {
    struct str whole;    /* digits before the point; may be empty when there is a fraction */
    struct str fraction; /* digits after it */
    bool negative;
    bool plus; /* it begins with "+" */
    bool point, exponent;
    bool bare_point; /* a point without digits after it */
};

static struct str take_digits(struct str *s)
{
    struct str digits = {s->ptr, 0};

    while (digits.len < s->len && s->ptr[digits.len] >= '0' && s->ptr[digits.len] <= '9') {
        digits.len++;
    }
    s->ptr += digits.len;
    s->len -= digits.len;
    return digits;
}

static bool take(struct str *s, char c)
{
    bool has = s->len > 0 && s->ptr[0] == c;

    s->ptr += has;
    s->len -= has;
    return has;
}

/* [+-]?digits[.digits][e[+-]digits], with digits before or after the point. */
static bool split_number(struct str s, struct number *ret)
{
    struct number n = {.whole = {NULL, 0}};

    if (s.len == 0 || s.len > CELL_NUMBER_MAX) {
        return false;
    }
    n.negative = take(&s, '-');
    n.plus = !n.negative && take(&s, '+');
    n.whole = take_digits(&s);
    n.point = take(&s, '.');
    if (n.point) {
        n.fraction = take_digits(&s);
        n.bare_point = n.fraction.len == 0;
    }
    if (n.whole.len + n.fraction.len == 0) {
        return false;
    }
    n.exponent = take(&s, 'e') || take(&s, 'E');
    if (n.exponent) {
        if (!take(&s, '-')) {
            (void)take(&s, '+');
        }
        if (take_digits(&s).len == 0) {
            return false;
        }
    }
    *ret = n;
    return s.len == 0;
}

/* The form that counts as a number without being declared one. */
static bool is_plain(const struct number *n)
{
    return !n->plus && !n->bare_point && (n->whole.len < 2 || n->whole.ptr[0] != '0');
}

static bool whole_value(const struct number *n, int64_t *ret)
{
    uint64_t limit = n->negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t v = 0;

    if (n->point || n->exponent) {
        return false;
    }
    for (size_t i = 0; i < n->whole.len; i++) {
        uint64_t digit = (uint64_t)(n->whole.ptr[i] - '0');
        if (v > (limit - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    *ret = n->negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

bool cell_integer(struct str text, int64_t *ret)
{
    struct number n;

    return split_number(text, &n) && is_plain(&n) && whole_value(&n, ret);
}

/* Copies the digits from the first one that is not zero to the last one that is not zero. Returns
 * how many; 0 for zero. */
static size_t significant(struct str whole, struct str fraction, char *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < whole.len + fraction.len; i++) {
        char c = i < whole.len ? whole.ptr[i] : fraction.ptr[i - whole.len];
        if (n > 0 || c != '0') {
            ret[n++] = c;
        }
    }
    while (n > 0 && ret[n - 1] == '0') {
        n--;
    }
    return n;
}

/* Whether the double, printed with as many digits as the text has, is the text's number again. */
static bool keeps_digits(const struct number *n, double v)
{
    char want[CELL_NUMBER_MAX + 1];
    char printed[CELL_NUMBER_MAX + 16];
    char got[CELL_NUMBER_MAX + 16];
    size_t digits = significant(n->whole, n->fraction, want);
    struct str left;
    struct str first;
    struct str rest = {NULL, 0};

    if (digits == 0) {
        return true;
    }
    if (digits <= 15 && fabs(v) > 1e-300) { /* what IEEE 754 doubles promise: DBL_DIG */
        return true;
    }
    (void)snprintf(printed, sizeof printed, "%.*e", (int)digits - 1, fabs(v));
    left = str_from(printed);
    first = take_digits(&left);
    if (take(&left, '.')) {
        rest = take_digits(&left);
    }
    return significant(first, rest, got) == digits && memcmp(want, got, digits) == 0;
}

/* The text was split: strtod reads all of it. */
static bool real_value(struct str text, double *ret)
{
    char copy[CELL_NUMBER_MAX + 1];

    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    *ret = strtod(copy, NULL);
    return isfinite(*ret);
}

/* ---- one cell ---- */

static enum cell_kind number_kind(struct str text)
{
    struct number n;
    int64_t whole = 0;
    double real = 0.0;

    if (!split_number(text, &n) || !is_plain(&n)) {
        return CELL_KIND_TEXT;
    }
    if (whole_value(&n, &whole)) {
        bool safe = whole >= -CELL_SAFE_INTEGER && whole <= CELL_SAFE_INTEGER;
        return safe ? CELL_KIND_INTEGER : CELL_KIND_BIG;
    }
    return (n.point || n.exponent) && real_value(text, &real) && keeps_digits(&n, real)
               ? CELL_KIND_REAL
               : CELL_KIND_TEXT;
}

enum cell_kind cell_kind_of(struct str text)
{
    struct cell_date date;

    if (text.len == 0) {
        return CELL_KIND_NULL;
    }
    if (text.ptr[0] == '-' || text.ptr[0] == '.' || (text.ptr[0] >= '0' && text.ptr[0] <= '9')) {
        return cell_date_read(text, &date) ? CELL_KIND_DATE : number_kind(text);
    }
    return str_is(text, "true") || str_is(text, "false") ? CELL_KIND_BOOLEAN : CELL_KIND_TEXT;
}

enum cell_kind cell_kind_of_number(double v)
{
    return floor(v) == v && fabs(v) <= (double)CELL_SAFE_INTEGER ? CELL_KIND_INTEGER
                                                                 : CELL_KIND_REAL;
}

/* ---- a column ---- */

void cell_column_see_kind(struct cell_column *c, enum cell_kind kind)
{
    c->seen |= 1u << kind;
}

void cell_column_see(struct cell_column *c, struct str text)
{
    /* A column with a text stays a text: the other cells need no look. */
    if ((c->seen & 1u << CELL_KIND_TEXT) == 0) {
        cell_column_see_kind(c, cell_kind_of(text));
    }
}

enum cell_type cell_column_type(const struct cell_column *c)
{
    const unsigned whole = 1u << CELL_KIND_INTEGER;
    const unsigned big = 1u << CELL_KIND_BIG;
    const unsigned real = 1u << CELL_KIND_REAL;
    unsigned seen = c->seen & ~(1u << CELL_KIND_NULL);

    if (seen == 0) {
        return CELL_TEXT;
    }
    if ((seen & ~(whole | big)) == 0) {
        return CELL_INTEGER;
    }
    if ((seen & ~(whole | real)) == 0) { /* an integer beyond 2^53 would lose digits: text */
        return CELL_REAL;
    }
    return seen == 1u << CELL_KIND_BOOLEAN ? CELL_BOOLEAN
           : seen == 1u << CELL_KIND_DATE  ? CELL_DATE
                                           : CELL_TEXT;
}

/* ---- values ---- */

bool cell_read(enum cell_type type, bool declared, struct str text, struct cell *ret)
{
    struct number n;
    struct cell_date date;

    *ret = (struct cell){.type = type, .text = text};
    ret->null = text.len == 0 && !(declared && type == CELL_TEXT);
    if (ret->null || type == CELL_TEXT) {
        return true;
    }
    if (type == CELL_BOOLEAN) {
        ret->boolean = str_is(text, "true");
        return ret->boolean || str_is(text, "false");
    }
    if (type == CELL_DATE) {
        return cell_date_read(text, &date);
    }
    if (!split_number(text, &n) || (!declared && !is_plain(&n))) {
        return false;
    }
    return type == CELL_INTEGER ? whole_value(&n, &ret->integer) : real_value(text, &ret->real);
}
