/* Prints the answer of plan.lint as tables on stdout. */
#ifndef CLI_LINT_H
#define CLI_LINT_H

struct cJSON;

/* Without its problems and routes, which go to stderr. */
void lint_print(const struct cJSON *answer);
#endif
