/* One step of a tree: what its line says. */
#ifndef CLI_TREE_NODE_H
#define CLI_TREE_NODE_H

#include <stdio.h>

#include "protocol/base/buf.h"
#include "supervisor/cli/common/cli.h"

struct cJSON;

enum { NODE_TASK_BYTES = 256, NODE_NOTE_MAX = 256 };

struct tree_node {
    char step_id[65];
    char agent[65];
    char task[NODE_TASK_BYTES];
    char status[16];
    char note[NODE_NOTE_MAX];
    char kind[16];     /* forEach, repeat, plan: a child plan does it; "" = an agent */
    char children[96]; /* how far that plan is: "2 of 3, 1 failed" */
    int attempt;       /* the newest one; 0 = none has begun */
    int turns;         /* that its agent has had: each is an attempt too, but not tried again */
    double percent;    /* of the attempt, as its agent reported it; negative = not known */
    bool wait_shown;   /* the note is a wait, and was printed */
};

/* From a step of plan.get. */
void tree_node_fill(struct tree_node *node, const struct cJSON *step);
/* Applies an event to its step; false when nothing visible changes. */
bool tree_node_update(struct tree_node *node, const char *type, const struct cJSON *event);
/* Appends the line without its end: at most `columns` columns of a terminal; 0 = any number, with a
 * short task. */
void tree_node_line(const struct cli *cli, const struct tree_node *node, bool color, int columns,
                    struct buf *out);
/* Appends text, cut to `columns` columns with "…", 0 = any number. */
void tree_put_cut(struct buf *out, const char *text, int columns);
#endif
