/* A column of numbers that a step works on. */
#ifndef CALC_COLUMN_H
#define CALC_COLUMN_H

#include "agents/calc/order.h"
#include "baton/agent.h"

/* What to do with a cell that is no number. */
enum column_rest {
    COLUMN_SKIPS_NULLS, /* an empty one does not count; any other is an error */
    COLUMN_NEEDS_ALL,
    COLUMN_SKIPS_ALL
};

struct column {
    struct item *items; /* one per row: integers or reals; null = does not count */
    size_t n;           /* rows */
    size_t numbers;     /* items that are not null */
    bool approximate;   /* texts of several types, read as doubles: their digits may be lost */
};

/* Reads a column of a table with types. False after failing the step. column_done in every case. */
bool column_read(struct bt_step *step, const struct table *t, int column, enum column_rest rest,
                 struct column *ret);
/* Drops the items that are null. */
void column_compress(struct column *c);
/* Accepts zeroed. */
void column_done(struct column *c);
#endif
