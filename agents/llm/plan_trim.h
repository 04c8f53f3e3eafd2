/*
 * What a plan of a model may say. Policies, approvals, retries, checks, budgets, grants and
 * revisions are not the model's: such members are taken out, at every place where the reader of
 * plans (also by an alias) would take them. What is kept may still be wrong: whoever reads the plan
 * says so. Pure but for the heap.
 */
#ifndef LLM_AGENT_PLAN_TRIM_H
#define LLM_AGENT_PLAN_TRIM_H

struct cJSON;

/* Works in place, on whatever JSON it is. */
void plan_trim(struct cJSON *plan);
#endif
