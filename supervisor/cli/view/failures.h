/* The failed steps of a plan, each with its reason. */
#ifndef CLI_FAILURES_H
#define CLI_FAILURES_H

struct cJSON;

typedef void failures_line(void *self, const char *text);

/*
 * Calls line with "step 2 (load) failed: no such file" for each failed step of a plan's view but
 * the one that `why`, the plan's failureReason, names. The text is one line, safe for a terminal.
 */
void failures_each(const struct cJSON *view, const char *why, failures_line *line, void *self);
#endif
