/* The outcome of a plan as data for a prompt. Pure except for the heap. */
#ifndef LLM_AGENT_PLAN_REPORT_H
#define LLM_AGENT_PLAN_REPORT_H

#include <stddef.h>

struct cJSON;

struct plan_report_counts {
    unsigned all, completed, failed;
};

/* The steps as JSON, one per line. Results over their share of the room are cut and marked. Changes
 * the steps. The caller frees with cJSON_free; NULL = out of memory. */
char *plan_report_steps(struct cJSON *steps, size_t room, struct plan_report_counts *ret);
/* Writes "*Plan completed in 12.3 seconds across a, b.*" from {status, durationMs, agents}; without
 * agents, those of its steps. */
void plan_report_last_line(const struct cJSON *plan, char *ret, size_t room);
#endif
