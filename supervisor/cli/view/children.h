/* Steps that child plans do, and tasks whose templates are not filled in, for people. Pure. */
#ifndef CLI_CHILDREN_H
#define CLI_CHILDREN_H

#include <stddef.h>

struct cJSON;

/*
 * How far the child plan is, by `children` of a step (step_children of messages.def), or by the
 * data of its plan_step_progress: "2 of 3, 1 failed", "2 items, 3 of 4 steps", "3
 * rounds" (that have begun), "3 rounds, 1 of 2 steps". "" as long as nothing has begun.
 */
void children_words(const char *kind, const struct cJSON *children, char *ret, size_t cap);
/* 0 to 100 of a map or a sub-plan; negative: a loop, whose rounds nobody knows, or nothing yet. */
double children_percent(const char *kind, const struct cJSON *children);
/* How many turns with calls the agent of a step of plan.get has had; 0 for other steps. */
int children_turns(const struct cJSON *step);
/* What a step of plan.get waits for; NULL = nothing. One that a child plan does works. */
const struct cJSON *children_wait(const struct cJSON *step);
/* A task as one line, in which "{{results.a.n}}" is "<a.n>"; cut after a word and with "…". */
void children_task(char *to, size_t cap, const char *task);
#endif
