/* The functions of expressions, and the statistics of a list. */
#ifndef CALC_FUNCTIONS_H
#define CALC_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/base/str.h"

/* A growing list of numbers; a zeroed one is empty. */
struct values {
    double *at;
    size_t n, cap;
};

/* False when out of memory or over EXPR_VALUES_MAX. */
bool values_add(struct values *v, double x);
void values_done(struct values *v);

/* NULL on success; otherwise what is wrong with the call. May reorder the list. */
const char *function_apply(struct str name, struct values *args, double *ret);

/* The p-th percentile (0..100) of a sorted list that is not empty, interpolated linearly. */
double percentile(const struct values *sorted, double p);
void values_sort(struct values *v);
double values_sum(const struct values *v); /* Kahan-Babuska-Neumaier summation */
double values_mean(const struct values *v);
/* Sample standard deviation; 0 for one value. */
double values_stdev(const struct values *v);
#endif
