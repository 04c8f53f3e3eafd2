/* The answer of plan.lint as tables, on stdout. */
#ifndef CLI_LINT_H
#define CLI_LINT_H

struct cJSON;

/* Its problems and routes are not printed: they go to stderr. */
void lint_print(const struct cJSON *answer);
#endif
