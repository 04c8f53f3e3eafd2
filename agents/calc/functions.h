/* The functions of expressions, and the statistics of a list. */
#ifndef CALC_FUNCTIONS_H
#define CALC_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/base/str.h"

/* A growing list of numbers; zeroed is empty. */
struct values {
    double *at;
    size_t n, cap;
};

/* False when out of memory or over EXPR_VALUES_MAX. */
bool values_add(struct values *v, double x);
void values_done(struct values *v);

/* NULL when it worked; otherwise what is wrong with the call. The list may be reordered. */
const char *function_apply(struct str name, struct values *args, double *ret);

/* The p-th percentile (0..100) of a sorted list that is not empty, interpolated linearly. */
double percentile(const struct values *sorted, double p);
void values_sort(struct values *v);
double values_sum(const struct values *v); /* Kahan-Neumaier */
double values_mean(const struct values *v);
/* Sample standard deviation; 0 for one value. */
double values_stdev(const struct values *v);
#endif
