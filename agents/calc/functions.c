#include "agents/calc/functions.h"

#include <math.h>
#include <stdlib.h>

#include "agents/calc/expr.h"

bool values_add(struct values *v, double x)
{
    if (v->n == EXPR_VALUES_MAX) {
        return false;
    }
    if (v->n == v->cap) {
        size_t cap = v->cap == 0 ? 16 : v->cap * 2;
        double *grown = realloc(v->at, cap * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        v->at = grown;
        v->cap = cap;
    }
    v->at[v->n++] = x;
    return true;
}

void values_done(struct values *v)
{
    free(v->at);
    *v = (struct values){0};
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void values_sort(struct values *v)
{
    if (v->n > 1) {
        qsort(v->at, v->n, sizeof *v->at, by_size);
    }
}

double values_sum(const struct values *v)
{
    double total = 0.0;
    double lost = 0.0;

    for (size_t i = 0; i < v->n; i++) {
        double next = total + v->at[i];
        lost +=
            fabs(total) >= fabs(v->at[i]) ? (total - next) + v->at[i] : (v->at[i] - next) + total;
        total = next;
    }
    return total + lost;
}

double values_mean(const struct values *v)
{
    return values_sum(v) / (double)v->n;
}

double values_stdev(const struct values *v)
{
    double mean = values_mean(v);
    double scale = 0.0; /* keeps the squares of large and of tiny distances finite */
    double squares = 0.0;

    for (size_t i = 0; i < v->n; i++) {
        scale = fmax(scale, fabs(v->at[i] - mean));
    }
    for (size_t i = 0; i < v->n && scale > 0.0; i++) {
        squares += (v->at[i] - mean) / scale * ((v->at[i] - mean) / scale);
    }
    return v->n < 2 ? 0.0 : scale * sqrt(squares / (double)(v->n - 1));
}

double percentile(const struct values *sorted, double p)
{
    double place = p * (double)(sorted->n - 1) / 100.0;
    size_t below = (size_t)floor(place);
    double part = place - (double)below;

    if (below + 1 >= sorted->n) {
        return sorted->at[sorted->n - 1];
    }
    return sorted->at[below] + part * (sorted->at[below + 1] - sorted->at[below]);
}

/* ---- of lists ---- */

static const char *f_min(struct values *v, double *ret)
{
    values_sort(v);
    *ret = v->at[0];
    return NULL;
}

static const char *f_max(struct values *v, double *ret)
{
    values_sort(v);
    *ret = v->at[v->n - 1];
    return NULL;
}

static const char *f_sum(struct values *v, double *ret)
{
    *ret = values_sum(v);
    return NULL;
}

static const char *f_mean(struct values *v, double *ret)
{
    *ret = values_mean(v);
    return NULL;
}

static const char *f_median(struct values *v, double *ret)
{
    values_sort(v);
    *ret = percentile(v, 50.0);
    return NULL;
}

static const char *f_stdev(struct values *v, double *ret)
{
    *ret = values_stdev(v);
    return NULL;
}

static const char *f_count(struct values *v, double *ret)
{
    *ret = (double)v->n;
    return NULL;
}

/* percentile(p, values...) */
static const char *f_percentile(struct values *v, double *ret)
{
    double p = v->at[0];
    struct values rest = {v->at + 1, v->n - 1, v->n - 1};

    if (p < 0.0 || p > 100.0) {
        return "percentile: the first argument is the percentage, 0 to 100";
    }
    values_sort(&rest);
    *ret = percentile(&rest, p);
    return NULL;
}

/* ---- of numbers ---- */

static const char *f_round(struct values *v, double *ret)
{
    double digits = v->n > 1 ? v->at[1] : 0.0;
    double scale;

    if (digits != floor(digits) || digits < -15.0 || digits > 15.0) {
        return "round: the second argument is a number of digits, -15 to 15";
    }
    scale = pow(10.0, digits);
    *ret = round(v->at[0] * scale) / scale;
    return NULL;
}

static const char *f_abs(struct values *v, double *ret)
{
    *ret = fabs(v->at[0]);
    return NULL;
}

static const char *f_floor(struct values *v, double *ret)
{
    *ret = floor(v->at[0]);
    return NULL;
}

static const char *f_ceil(struct values *v, double *ret)
{
    *ret = ceil(v->at[0]);
    return NULL;
}

static const char *f_sqrt(struct values *v, double *ret)
{
    *ret = sqrt(v->at[0]);
    return v->at[0] < 0.0 ? "sqrt: of a negative number" : NULL;
}

static const char *f_ln(struct values *v, double *ret)
{
    *ret = log(v->at[0]);
    return v->at[0] <= 0.0 ? "ln: of a number that is not positive" : NULL;
}

static const char *f_log(struct values *v, double *ret)
{
    bool has_base = v->n > 1;

    if (v->at[0] <= 0.0 || (has_base && (v->at[1] <= 0.0 || v->at[1] == 1.0))) {
        return "log: of a number or to a base that is not positive";
    }
    *ret = has_base ? log(v->at[0]) / log(v->at[1]) : log10(v->at[0]);
    return NULL;
}

static const char *f_exp(struct values *v, double *ret)
{
    *ret = exp(v->at[0]);
    return NULL;
}

static const struct {
    const char *name;
    size_t least, most;
    const char *(*run)(struct values *v, double *ret);
} functions[] = {
    {"min", 1, EXPR_VALUES_MAX, f_min},
    {"max", 1, EXPR_VALUES_MAX, f_max},
    {"sum", 0, EXPR_VALUES_MAX, f_sum},
    {"mean", 1, EXPR_VALUES_MAX, f_mean},
    {"avg", 1, EXPR_VALUES_MAX, f_mean},
    {"median", 1, EXPR_VALUES_MAX, f_median},
    {"stdev", 1, EXPR_VALUES_MAX, f_stdev},
    {"count", 0, EXPR_VALUES_MAX, f_count},
    {"percentile", 2, EXPR_VALUES_MAX, f_percentile},
    {"round", 1, 2, f_round},
    {"abs", 1, 1, f_abs},
    {"floor", 1, 1, f_floor},
    {"ceil", 1, 1, f_ceil},
    {"sqrt", 1, 1, f_sqrt},
    {"ln", 1, 1, f_ln},
    {"log", 1, 2, f_log},
    {"exp", 1, 1, f_exp},
};

const char *function_apply(struct str name, struct values *args, double *ret)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (!str_is(name, functions[i].name)) {
            continue;
        }
        if (args->n < functions[i].least) {
            return "this function needs more values";
        }
        if (args->n > functions[i].most) {
            return "this function takes fewer values";
        }
        return functions[i].run(args, ret);
    }
    return "no function of this name; there are min, max, sum, mean, median, stdev, count, "
           "percentile, round, abs, "
           "floor, ceil, sqrt, ln, log, exp";
}
