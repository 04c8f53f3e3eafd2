/*
 * What a group of cells amounts to. Integers are exact: a sum that 64 bits do not hold is an error,
 * not a rounded number. Of reals it is the double next to their exact sum (total.h).
 */
#ifndef CALC_AGGREGATE_H
#define CALC_AGGREGATE_H

#include "agents/calc/order.h"

enum aggregate {
    AGGREGATE_COUNT,
    AGGREGATE_SUM,
    AGGREGATE_MIN,
    AGGREGATE_MAX,
    AGGREGATE_MEAN,
    AGGREGATE_MEDIAN,
    AGGREGATE_PERCENTILE,
    AGGREGATE_UNKNOWN
};

/*
 * How a percentile lies between two values. LINEAR: interpolated at the place p (n - 1) / 100 of
 * the sorted values, counted from 0: type 7 of Hyndman and Fan, "Sample Quantiles in Statistical
 * Packages" (1996), as in R, NumPy and Excel's PERCENTILE.INC. NEAREST: the smallest value that at
 * least p per cent of the values do not exceed; always one of the values.
 */
enum percentile_method { PERCENTILE_LINEAR, PERCENTILE_NEAREST };

struct aggregation {
    enum aggregate function;
    double percent;
    enum percentile_method method;
};

/* count, sum, min, max, mean (or avg), median, percentile. */
enum aggregate aggregate_from_name(const char *name);
/* The items are not null and of one type; all but count, min and max need numbers. Sorts them when
 * the function needs it. Without items the value is null, and a count 0. BT_LIMIT: the sum does not
 * fit. */
BT_MUST_CHECK enum bt_code aggregate_apply(const struct aggregation *a, struct item *items,
                                           size_t n, struct cell *ret, struct bt_error *err);
#endif
