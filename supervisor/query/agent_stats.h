/*
 * What an agent has done, in numbers (M113): for supervisor.stats since the daemon started, for
 * plan.stats of one plan. Times are those of whole steps, from their beginning to their end.
 */
#ifndef BUS_FIGURE_H
#define BUS_FIGURE_H

#include "supervisor/core/run/record.h"

struct figure {
    uint64_t steps;  /* that it completed or failed */
    uint64_t failed; /* of them */
    uint64_t errors; /* attempts that failed */
    uint64_t total_ms, max_ms;
    uint64_t tokens;
};

/* A step ended with this agent. errors: attempts of it that failed and were not counted before. */
void figure_step(struct figure *f, bool completed, uint64_t ms, uint64_t errors, uint64_t tokens);
/* The record is about this agent. */
void figure_record(struct figure *f, const struct record *rec);
/* Failed attempts of all, 0 to 1. */
double figure_error_rate(const struct figure *f);
uint64_t figure_average_ms(const struct figure *f);
uint64_t usage_tokens(const struct usage *u);
#endif
