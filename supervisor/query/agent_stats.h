/*
 * What an agent has done, in numbers (M113): for supervisor.stats since the daemon started, for
 * plan.stats of one plan. Times are those of whole steps, from their beginning to their end.
 */
#ifndef QUERY_FIGURE_H
#define QUERY_FIGURE_H

#include "supervisor/core/run/record.h"

struct agent_stats {
    uint64_t steps;  /* that it completed or failed */
    uint64_t failed; /* of them */
    uint64_t errors; /* attempts that failed */
    uint64_t total_ms, max_ms;
    uint64_t tokens;
};

/* A step ended with this agent. errors: attempts of it that failed and were not counted before. */
void agent_stats_step(struct agent_stats *f, bool completed, uint64_t ms, uint64_t errors,
                      uint64_t tokens);
/* The record is about this agent. */
void agent_stats_record(struct agent_stats *f, const struct record *rec);
/* Failed attempts of all, 0 to 1. */
double agent_stats_error_rate(const struct agent_stats *f);
uint64_t agent_stats_average_ms(const struct agent_stats *f);
uint64_t usage_tokens(const struct usage *u);
#endif
