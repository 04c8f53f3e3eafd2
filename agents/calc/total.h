/*
 * The sum of numbers. Integers are added in 128 bits, which hold the sum of every list that a step
 * can have. Reals are added as the decimals that they are written as: 0.1 + 0.2 is 0.3. When 128
 * bits do not hold all their digits, doubles are added with Neumaier's compensation instead.
 */
#ifndef CALC_TOTAL_H
#define CALC_TOTAL_H

#include "agents/calc/order.h"

__extension__ typedef __int128 total_int;

struct total {
    bool real;        /* of reals; then `whole` is 0 */
    bool approximate; /* a double does not hold the sum, or it was added in doubles */
    total_int whole;
    double value; /* the nearest double */
};

/* Of numbers of one type; null items do not count. Allocates while it runs; out of memory costs
 * exactness, never the sum. */
struct total total_of(const struct item *items, size_t n);
/* The mean of n numbers that amount to it. */
double total_mean(const struct total *t, size_t n);
/* A number; of an integer beyond 2^53 a text of its digits. NULL when out of memory. */
struct cJSON *total_json(const struct total *t);
#endif
