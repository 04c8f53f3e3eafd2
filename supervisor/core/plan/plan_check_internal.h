/* Declarations shared by plan_check.c, plan_cycle.c, plan_guess.c and plan_template.c. */
#ifndef CORE_PLAN_CHECK_INTERNAL_H
#define CORE_PLAN_CHECK_INTERNAL_H

#include "supervisor/core/plan/plan_check.h"

struct plan_checker {
    struct plan_check_input *in;
    const struct plan *plan;
    struct problems *out;
    uint32_t *table; /* step ids to indexes; open addressing, table_n places */
    uint32_t table_n;
    uint32_t *mark;   /* n_steps, zero between uses */
    uint32_t *list;   /* n_steps: a queue or a stack */
    uint32_t *open;   /* n_steps: dependencies that are not removed yet */
    uint32_t *rev_at; /* n_steps + 1: where the dependents of a step begin in rev */
    uint32_t *rev;    /* n_edges */
    uint64_t visits;  /* edges visited for templates so far */
    uint32_t offers;  /* names compared for guesses so far */
};

/* Adds a problem with the field and the parts, given as str. */
#define CHECK_PUT(k, category, step, field, ...)                                                   \
    problem_put((k)->out, (category), false, &(k)->plan->steps[step], (step), (field),             \
                (const struct str[]){__VA_ARGS__},                                                 \
                sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

/* Index of the step with that id, or UINT32_MAX. */
uint32_t plan_check_find(const struct plan_checker *k, struct str id);
/* What was perhaps meant by an unknown name; empty when nothing is near. */
struct str plan_guess_step(struct plan_checker *k, uint32_t step, struct str name);
struct str plan_guess_agent(struct plan_checker *k, struct str name);
/* Of the skills on the card; NULL = of those of all agents. */
struct str plan_guess_skill(struct plan_checker *k, const struct msg_card *card, struct str name);
void plan_check_cycles(struct plan_checker *k);
void plan_check_templates(struct plan_checker *k);

/* The decimal digits of n at the end of buf (21 bytes). */
struct str plan_check_number(char *buf, uint64_t n);
#endif
