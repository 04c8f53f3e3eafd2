/* Members of parameters that the skill's inputSchema does not name. Private to this folder. */
#ifndef PLAN_PARAMETERS_INTERNAL_H
#define PLAN_PARAMETERS_INTERNAL_H

#include "supervisor/plan/fields_internal.h"

struct cJSON;

enum { PARAMETERS_MISSING_MAX = 8, PARAMETERS_PATH_BYTES = 96 };

/* Of one plan. */
struct parameters_check {
    struct location at; /* of the step */
    struct fields_unknown *unknown;
    uint64_t comparisons; /* the work so far; it is bounded */
    /* Of the last value: required members that were reported as guesses, "parameters.path". */
    char missing[PARAMETERS_MISSING_MAX][PARAMETERS_PATH_BYTES];
    uint32_t n_missing;
};

/* Reports each member of the value that its schema does not name, with a guess. */
void parameters_check_names(struct parameters_check *k, const struct cJSON *schema,
                            const struct cJSON *value);
/* Whether that member ("parameters.path") was reported as the guess for an unknown one. */
bool parameters_is_reported(const struct parameters_check *k, const char *path);
#endif
