#include "agents/calc/total.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum {
    DIGITS_MAX = 17, /* of a double in its shortest form */
    SPAN_MAX = 30,   /* between the first digit and the last of all decimals: with a list's length
                        below 128 bits */
    TEXT_MAX = 64
};

/* m * 10^e; m does not end with 0 unless it is 0. */
struct decimal {
    int64_t m;
    int e;
    int digits;
};

/* The shortest decimal that is read as this double. */
static struct decimal decimal_of(double v)
{
    struct decimal d = {0, 0, 0};
    char text[TEXT_MAX];
    int precision = 14;

    do {
        (void)snprintf(text, sizeof text, "%.*e", precision, v);
    } while (++precision < DIGITS_MAX && strtod(text, NULL) != v);
    for (const char *p = text; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9') {
            d.m = d.m * 10 + (*p - '0');
            d.digits++;
        }
    }
    d.e = (int)strtol(strchr(text, 'e') + 1, NULL, 10) - (d.digits - 1);
    while (d.m != 0 && d.m % 10 == 0) {
        d.m /= 10;
        d.e++;
        d.digits--;
    }
    d.m = text[0] == '-' ? -d.m : d.m;
    return d;
}

/* The digits of an integer, backwards from the end of the text; returns where they begin. */
static char *digits_of(total_int v, char text[TEXT_MAX])
{
    char *at = text + TEXT_MAX - 1;
    const bool negative = v < 0;

    *at = 0;
    do {
        const int digit = (int)(v % 10);
        *--at = (char)('0' + (digit < 0 ? -digit : digit));
        v /= 10;
    } while (v != 0);
    if (negative) {
        *--at = '-';
    }
    return at;
}

/* The double next to v * 10^e, and whether it is written as just that. */
static void take_decimal(total_int v, int e, struct total *ret)
{
    char digits[TEXT_MAX];
    char text[2 * TEXT_MAX];
    struct decimal d;

    while (v != 0 && v % 10 == 0) {
        v /= 10;
        e++;
    }
    (void)snprintf(text, sizeof text, "%se%d", digits_of(v, digits), e);
    ret->value = strtod(text, NULL);
    d = isfinite(ret->value) ? decimal_of(ret->value) : (struct decimal){0, 0, 0};
    ret->approximate = d.m != v || (v != 0 && d.e != e);
}

/* False: the digits do not fit, or there is no memory for them. */
static bool add_decimals(const struct item *items, size_t n, struct total *ret)
{
    struct decimal *all = malloc((n + 1) * sizeof *all);
    total_int sum = 0;
    size_t k = 0;
    int low = 0;
    int high = 0;

    for (size_t i = 0; i < n && all != NULL; i++) {
        const struct decimal d = decimal_of(items[i].cell.real);
        if (items[i].cell.null || d.m == 0) {
            continue;
        }
        low = k == 0 || d.e < low ? d.e : low;
        high = k == 0 || d.e + d.digits > high ? d.e + d.digits : high;
        all[k++] = d;
    }
    const bool fits = all != NULL && high - low <= SPAN_MAX;
    for (size_t i = 0; i < k && fits; i++) {
        total_int v = all[i].m;
        for (int e = all[i].e; e > low; e--) {
            v *= 10;
        }
        sum += v;
    }
    free(all);
    if (fits) {
        take_decimal(sum, low, ret);
    }
    return fits;
}

static double add_doubles(const struct item *items, size_t n)
{
    double total = 0.0;
    double lost = 0.0;

    for (size_t i = 0; i < n; i++) {
        const double v = items[i].cell.null ? 0.0 : items[i].cell.real;
        const double next = total + v;
        lost += fabs(total) >= fabs(v) ? (total - next) + v : (v - next) + total;
        total = next;
    }
    return total + lost;
}

struct total total_of(const struct item *items, size_t n)
{
    struct total t = {.real = false};

    for (size_t i = 0; i < n; i++) {
        t.real = t.real || (!items[i].cell.null && items[i].cell.type == CELL_REAL);
        t.whole += items[i].cell.null || t.real ? 0 : items[i].cell.integer;
    }
    t.value = (double)t.whole;
    if (t.real && !add_decimals(items, n, &t)) {
        t.value = add_doubles(items, n);
        t.approximate = true;
    }
    return t;
}

double total_mean(const struct total *t, size_t n)
{
    const total_int count = (total_int)n;

    /* The quotient and the rest apart: the sum may have more digits than a double. */
    return t->real ? t->value / (double)n
                   : (double)(t->whole / count) + (double)(t->whole % count) / (double)n;
}

cJSON *total_json(const struct total *t)
{
    char digits[TEXT_MAX];

    if (t->real || (t->whole >= -CELL_SAFE_INTEGER && t->whole <= CELL_SAFE_INTEGER)) {
        return cJSON_CreateNumber(t->value);
    }
    return cJSON_CreateString(digits_of(t->whole, digits));
}
