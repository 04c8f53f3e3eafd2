/* JSON numbers, both ways. A number without fraction and exponent is an integer, exact in 64 bits.
 */
#include "protocol/wire/json_number_internal.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/wire/json_scan_internal.h"

enum { NUMBER_MAX = 512 };

/*
 * strtod and printf follow the thread's locale, and a program with libbaton may use a decimal
 * comma. newlocale("C") returns a constant of the C library. If it fails, the current locale stays.
 */
static locale_t enter_c_locale(locale_t *ret_old)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *ret_old = c != (locale_t)0 ? uselocale(c) : (locale_t)0;
    return c;
}

static void leave_c_locale(locale_t c, locale_t old)
{
    if (c != (locale_t)0) {
        (void)uselocale(old);
        freelocale(c);
    }
}

static double parse_float(const char *text)
{
    locale_t old;
    locale_t c = enter_c_locale(&old);
    double v = strtod(text, NULL);

    leave_c_locale(c, old);
    return v;
}

size_t json_print_float(double v, char ret[JSON_FLOAT_MAX])
{
    locale_t old;
    locale_t c = enter_c_locale(&old);
    int n = 0;

    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(ret, JSON_FLOAT_MAX - 2, "%.*g", digits, v);
        if (strtod(ret, NULL) == v) {
            break;
        }
    }
    leave_c_locale(c, old);
    if (strpbrk(ret, ".e") == NULL) { /* keeps it a float for the next reader */
        memcpy(ret + n, ".0", 3);
        n += 2;
    }
    return (size_t)n;
}

static size_t digits_from(const struct json_scan *s, size_t at)
{
    size_t end = at;
    while (end < s->text.len && s->text.ptr[end] >= '0' && s->text.ptr[end] <= '9') {
        end++;
    }
    return end;
}

/* Finds the end of the number at s->at by the grammar of RFC 8259. *ret_whole = no fraction and no
 * exponent. */
static enum bt_code number_end(struct json_scan *s, size_t *ret_end, bool *ret_whole)
{
    const char *t = s->text.ptr;
    size_t int_at = s->at + (t[s->at] == '-');
    size_t at = digits_from(s, int_at);
    size_t from;

    if (at == int_at) {
        return json_error(s, s->at, BT_INVALID, "a number needs a digit after '-'");
    }
    if (t[int_at] == '0' && at > int_at + 1) {
        return json_error(s, s->at, BT_INVALID, "a number must not start with a zero");
    }
    *ret_whole = true;
    if (at < s->text.len && t[at] == '.') {
        from = at + 1;
        at = digits_from(s, from);
        *ret_whole = false;
        if (at == from) {
            return json_error(s, s->at, BT_INVALID, "a number needs a digit after '.'");
        }
    }
    if (at < s->text.len && (t[at] == 'e' || t[at] == 'E')) {
        from = at + 1;
        from += from < s->text.len && (t[from] == '+' || t[from] == '-');
        at = digits_from(s, from);
        *ret_whole = false;
        if (at == from) {
            return json_error(s, s->at, BT_INVALID, "a number needs a digit after 'e'");
        }
    }
    *ret_end = at;
    return BT_OK;
}

static enum bt_code put_integer(struct json_scan *s, size_t end)
{
    bool negative = s->text.ptr[s->at] == '-';
    uint64_t max = negative ? (uint64_t)1 << 63 : UINT64_MAX;
    uint64_t v = 0;

    for (size_t i = s->at + negative; i < end; i++) {
        uint64_t digit = (uint64_t)(s->text.ptr[i] - '0');
        if (v > (max - digit) / 10) {
            return json_error(s, s->at, BT_INVALID,
                              "the integer does not fit in 64 bits; send it as a string");
        }
        v = v * 10 + digit;
    }
    if (!negative || v == 0) {
        doc_put_u64(s->out, v);
    } else {
        doc_put_i64(s->out, -(int64_t)(v - 1) - 1);
    }
    return BT_OK;
}

enum bt_code json_scan_number(struct json_scan *s)
{
    char text[NUMBER_MAX + 1];
    size_t end = 0;
    bool whole = false;
    double v;
    enum bt_code code = number_end(s, &end, &whole);

    if (code != BT_OK) {
        return code;
    }
    if (whole) {
        code = put_integer(s, end);
        s->at = end;
        return code;
    }
    if (end - s->at > NUMBER_MAX) {
        return json_error(s, s->at, BT_LIMIT, "a number of more than %d characters", NUMBER_MAX);
    }
    memcpy(text, s->text.ptr + s->at, end - s->at);
    text[end - s->at] = 0;
    v = parse_float(text);
    if (!isfinite(v)) {
        return json_error(s, s->at, BT_INVALID, "the number is too large for a 64-bit float");
    }
    doc_put_f64(s->out, v);
    s->at = end;
    return BT_OK;
}
