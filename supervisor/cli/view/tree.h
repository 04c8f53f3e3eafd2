/*
 * A plan as it runs, on stderr: on a terminal one line per step that changes in place, elsewhere
 * one line per change.
 */
#ifndef CLI_TREE_H
#define CLI_TREE_H

#include "supervisor/cli/common/cli.h"

struct cJSON;
struct tree;

/* plan_view: the answer of plan.get with steps (borrowed for the call). NULL when out of memory. */
struct tree *tree_new(const struct cli *cli, const struct cJSON *plan_view, bool quiet);
void tree_free(struct tree *t);
/* Takes one event of the plan. */
void tree_event(struct tree *t, const struct cJSON *event);
/* The plan has other steps now: as tree_new, in the same place. False when out of memory. */
bool tree_refresh(struct tree *t, const struct cJSON *plan_view);
/* A line about the plan as a whole: on a terminal above the steps. Nothing when quiet. */
void tree_note(struct tree *t, const char *fmt, ...) BT_PRINTF(2, 3);
/* What is drawn stays as it is; what follows is drawn below. */
void tree_settle(struct tree *t);
/* How many steps it has. */
int tree_size(const struct tree *t);
/* Prints the steps of a plan view once, on stdout. */
void tree_print(const struct cli *cli, const struct cJSON *plan_view);
/* A step waits for a person. */
bool tree_waiting(const struct tree *t);
#endif
