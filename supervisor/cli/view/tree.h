/*
 * The steps of a running plan, on stderr: on a terminal one line per step, redrawn in place; when
 * they do not fit, those that are over are one line, and what is open comes before what is to come.
 * Elsewhere one line per change.
 */
#ifndef CLI_TREE_H
#define CLI_TREE_H

#include "supervisor/cli/common/cli.h"

struct cJSON;
struct tree;

/* plan_view: the answer of plan.get with steps, borrowed for the call. NULL when out of memory. */
struct tree *tree_new(const struct cli *cli, const struct cJSON *plan_view, bool quiet);
void tree_free(struct tree *t);
/* Applies one event of the plan. */
void tree_event(struct tree *t, const struct cJSON *event);
/* Replaces the steps after a revision. False when out of memory. */
bool tree_refresh(struct tree *t, const struct cJSON *plan_view);
/* A line about the whole plan: on a terminal above the steps. Prints nothing when quiet. */
void tree_note(struct tree *t, const char *fmt, ...) BT_PRINTF(2, 3);
/* Takes from a newer view what the steps wait for. */
void tree_waits(struct tree *t, const struct cJSON *plan_view);
/* The plan has ended: what has not begun never will. */
void tree_end(struct tree *t);
/* Draws what has changed since the last drawing. */
void tree_flush(struct tree *t);
/* The drawn lines stay; later output comes below. */
void tree_settle(struct tree *t);
/* The number of steps. */
int tree_size(const struct tree *t);
/* Prints the steps of a plan view on stdout. */
void tree_print(const struct cli *cli, const struct cJSON *plan_view);
/* The same on a terminal: collapsed to `rows` lines of at most `columns` characters. */
void tree_print_in(const struct cli *cli, const struct cJSON *plan_view, int columns, int rows);
/* Whether a step waits for a person. */
bool tree_waiting(const struct tree *t);
#endif
