/*
 * `switch` in a list of steps: branches, of which the first whose condition holds runs. It is only
 * another way to write `when`: reading a plan replaces it by the steps of its branches.
 *
 *   entry  = {"switch": [branch, ...]}
 *   branch = {"when": condition, "steps": [...]} | {"else": true, "steps": [...]}    else: the last
 *
 * A step of a branch runs when the condition of its branch and its own hold, and none of a branch
 * before. The steps of a branch may have switches of their own.
 */
#ifndef PLAN_FLOW_SWITCH_H
#define PLAN_FLOW_SWITCH_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

enum { SWITCH_BRANCHES_MAX = 64 }; /* of one switch; as many as a condition has tests */

/* Who reads the steps. */
struct switch_reader {
    void *self;
    /* The next step; valid as long as the arena, or the list. False: no more of them, please. */
    bool (*step)(void *self, struct doc step);
    /* What is wrong with a switch: "branch 2: ...". Its branch is left out. */
    void (*problem)(void *self, bool limit, const char *text);
};

/* Whether an entry of a list of steps is a switch. */
bool switch_is(struct doc entry);
/*
 * Gives the steps of a list in their order, those of switches with their conditions; these are made
 * in the arena. BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code switch_flatten(struct doc list, struct arena *arena,
                                          const struct switch_reader *reader, struct bt_error *err);
#endif
