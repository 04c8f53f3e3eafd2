/* The policy numbers of a plan and of its steps. Private to this folder. */
#ifndef PLANNER_PLAN_POLICY_H
#define PLANNER_PLAN_POLICY_H

#include "supervisor/planner/fields.h"
#include "supervisor/planner/plan_read.h"

/* Longest timeout or delay: 2^31 - 1 ms, 24.8 days. What is longer was not meant. */
#define POLICY_MS_MAX 2147483647u

struct plan_policy {
    struct step_policy
        step; /* of a step that says nothing; effects are the card's (see plan_read.c) */
    bool scope_given;
    bool concurrency_given;
    uint32_t max_concurrency;
    msec plan_timeout_ms;
    uint32_t context_budget;
    uint32_t context_result;
};

/* Names already reported, for the tables of one plan. */
struct policy_said {
    uint64_t policy, backoff;
    uint32_t unknown;
};

void plan_policy_init(struct plan_policy *p, const struct plan_defaults *defaults);
/* Reads a `policy` map over *io, field by field. */
void plan_policy_read(struct doc policy, struct problems *problems, struct policy_said *said,
                      struct plan_policy *io);

/* The values that plan and step share. Each leaves *io alone when the value is absent or wrong. */
void policy_on_failure(const struct place *at, const char *field, struct doc v,
                       enum on_failure *io);
void policy_retries(const struct place *at, const char *field, struct doc v, uint32_t *io);
void policy_timeout(const struct place *at, const char *field, struct doc v, msec *io);
void policy_scope(const struct place *at, const char *field, struct doc v, enum context_scope *io,
                  bool *given);
void policy_backoff(const struct place *at, struct doc v, struct policy_said *said,
                    struct backoff *io);
#endif
