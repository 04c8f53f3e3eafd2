/*
 * Removes members that a model's plan must not set: policies, approvals, retries, checks, budgets,
 * grants, revisions. It removes them at every place, and under every alias, where the reader of
 * plans accepts them. Control flow stays: what the supervisor knows it runs, and what it does not
 * know it refuses in words. The plan may still be wrong: its reader reports that. Pure except for
 * the heap.
 */
#ifndef LLM_AGENT_PLAN_TRIM_H
#define LLM_AGENT_PLAN_TRIM_H

struct cJSON;

/* Works in place, on any JSON. */
void plan_trim(struct cJSON *plan);

/* The same for a list of steps alone; NULL is none. */
void plan_trim_steps(struct cJSON *steps);
#endif
