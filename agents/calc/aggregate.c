#include "agents/calc/aggregate.h"

#include <math.h>
#include <stdlib.h>

#include "agents/calc/total.h"

enum aggregate aggregate_from_name(const char *name)
{
    static const char *const names[] = {"count", "sum",    "min",       "max",
                                        "mean",  "median", "percentile"};

    for (int i = 0; i < AGGREGATE_UNKNOWN; i++) {
        if (strcmp(name, names[i]) == 0) {
            return (enum aggregate)i;
        }
    }
    return strcmp(name, "avg") == 0 ? AGGREGATE_MEAN : AGGREGATE_UNKNOWN;
}

/* ---- sums ---- */

static enum bt_code put_real(double v, struct cell *ret, struct bt_error *err)
{
    *ret = (struct cell){.type = CELL_REAL, .real = v};
    return isfinite(v) ? BT_OK
                       : err_set(err, BT_LIMIT, "the sum is larger than a double holds; scale it");
}

static enum bt_code sum(const struct item *items, size_t n, struct cell *ret, struct bt_error *err)
{
    const struct total t = total_of(items, n);

    if (t.real) {
        return put_real(t.value, ret, err);
    }
    if (t.whole < INT64_MIN || t.whole > INT64_MAX) {
        return err_set(err, BT_LIMIT,
                       "the sum of these integers is over 64 bits; set types to real to get it "
                       "rounded");
    }
    *ret = (struct cell){.type = CELL_INTEGER, .integer = (int64_t)t.whole};
    return BT_OK;
}

static enum bt_code mean(const struct item *items, size_t n, struct cell *ret, struct bt_error *err)
{
    const struct total t = total_of(items, n);

    return put_real(total_mean(&t, n), ret, err);
}

/* ---- places ---- */

static int by_value(const void *a, const void *b)
{
    return item_compare(a, b);
}

/* The value `part` (0 to 1) of the way from a to b. */
static struct cell between(const struct item *a, const struct item *b, double part)
{
    if (part <= 0.0 || item_compare(a, b) == 0) {
        return a->cell;
    }
    if (a->cell.type == CELL_INTEGER && part == 0.5) {
        /* Halves of integers stay exact: (a + b) / 2 without overflow. */
        const int64_t x = a->cell.integer;
        const int64_t y = b->cell.integer;
        if (((x ^ y) & 1) == 0) {
            return (struct cell){.type = CELL_INTEGER, .integer = (x & y) + (x ^ y) / 2};
        }
    }
    return (struct cell){.type = CELL_REAL,
                         .real = item_number(a) * (1.0 - part) + item_number(b) * part};
}

static struct cell percentile_of(struct item *items, size_t n, double p,
                                 enum percentile_method method)
{
    double place = p * (double)(n - 1) / 100.0;
    size_t below = (size_t)floor(place);

    qsort(items, n, sizeof *items, by_value);
    if (method == PERCENTILE_NEAREST) {
        double rank = ceil(p * (double)n / 100.0);
        return items[rank < 1.0 ? 0 : (size_t)rank - 1].cell;
    }
    return below + 1 >= n ? items[n - 1].cell
                          : between(&items[below], &items[below + 1], place - (double)below);
}

static struct cell extreme(const struct item *items, size_t n, int sign)
{
    const struct item *best = &items[0];

    for (size_t i = 1; i < n; i++) {
        best = item_compare(&items[i], best) * sign > 0 ? &items[i] : best;
    }
    return best->cell;
}

enum bt_code aggregate_apply(const struct aggregation *a, struct item *items, size_t n,
                             struct cell *ret, struct bt_error *err)
{
    if (a->function == AGGREGATE_COUNT) {
        *ret = (struct cell){.type = CELL_INTEGER, .integer = (int64_t)n};
        return BT_OK;
    }
    if (n == 0) {
        *ret = (struct cell){.null = true};
        return BT_OK;
    }
    switch (a->function) {
    case AGGREGATE_SUM:
        return sum(items, n, ret, err);
    case AGGREGATE_MEAN:
        return mean(items, n, ret, err);
    case AGGREGATE_MIN:
        *ret = extreme(items, n, -1);
        break;
    case AGGREGATE_MAX:
        *ret = extreme(items, n, 1);
        break;
    case AGGREGATE_MEDIAN:
        *ret = percentile_of(items, n, 50.0, PERCENTILE_LINEAR);
        break;
    case AGGREGATE_PERCENTILE:
        *ret = percentile_of(items, n, a->percent, a->method);
        break;
    case AGGREGATE_COUNT:
    case AGGREGATE_UNKNOWN:
        break;
    }
    return BT_OK;
}
