/*
 * Child plans: made, paused, resumed and cancelled as the core asks, in the cycle that asks, and so
 * in the same commit; the end of one is reported to its parent in the cycle that records it. The
 * key of a child is that of its step, attempt and round, so there is never a second one.
 */
#ifndef ENGINE_CHILDREN_H
#define ENGINE_CHILDREN_H

#include "supervisor/core/sched/core.h"
#include "supervisor/engine/open_plan.h"
#include "supervisor/plan/flow/child.h"

struct engine;

/* What is to be done for a step: a command of the core, or (CMD_RECORD) the end or the progress of
 * its child, which `ev` brings. */
struct child_task {
    enum core_cmd_type type;
    uint64_t run;
    uint32_t step, attempt, round;
    struct str text;      /* of the cycle */
    struct uuid parent;   /* CMD_RECORD */
    struct core_event ev; /* CMD_RECORD */
    bool waited;          /* CMD_CHILD: for room */
};

/* Children that wait for room, those at one depth first come, first served. */
struct child_wait {
    struct child_task *at;
    uint32_t head, n, cap; /* n entries from head on */
};
/*
 * Whether there is room for a child at this depth (1 = of a plan that is no child). Each depth has
 * one place more than the one above it: children that wait for children of their own never hold all
 * the room, so the deepest of them always goes on.
 */
bool child_has_room(const struct engine *engine, uint32_t depth);

/* Keeps a command of the core until engine_children_act. */
void engine_child_command(struct engine *engine, const struct core_cmd *cmd);
/* A record of a child plan was written: its parent is told of the progress or the end. summary: the
 * answer of a plan that has ended. Fails only when the journal does. */
BT_MUST_CHECK enum bt_code engine_child_record(struct engine *engine, struct open_plan *child,
                                               const struct record *rec, struct str summary,
                                               struct bt_error *err);
bool engine_children_wait(const struct engine *engine);
void engine_children_act(struct engine *engine);
/* After a recovery: children that nobody waits for are cancelled. */
void engine_children_recovered(struct engine *engine);
void engine_children_done(struct engine *engine);

/* child_start.c: makes the child plan of the step. BT_INVALID, BT_LIMIT: what is wrong with the
 * step; BT_BUSY: no room; BT_NOT_FOUND: nothing is to be done, and ev->as.child is the answer. */
BT_MUST_CHECK enum bt_code child_start(struct engine *engine, const struct open_plan *p,
                                       const struct child_task *task, struct core_event *ev,
                                       struct bt_error *err);
/* The key of the child of the step, attempt and round. */
enum { CHILD_KEY_MAX = 96 };
void child_key(const struct open_plan *p, const struct child_task *task, char ret[CHILD_KEY_MAX]);
/* ---- undo.c: the plan that undoes another ---- */
/* CMD_COMPENSATE: makes it, unless it is there. It waits until the child plans of p are over. */
void engine_undo_start(struct engine *engine, struct open_plan *p);
/* Its end as an event of the plan that it undoes. */
struct core_event engine_undo_event(const struct open_plan *undo, const struct record *rec);
/* A plan has ended: what waited for it is tried again. */
void engine_undo_retry(struct engine *engine);
/* The id of the plan that undoes the plan; false when there is none. */
bool engine_undo_plan(struct engine *engine, struct str plan_id, char ret[UUID_TEXT_LEN + 1]);

/* child_end.c: the answer of a child that has ended. */
BT_MUST_CHECK enum bt_code child_answer(struct engine *engine, const struct open_plan *child,
                                        const struct record *rec, struct str summary,
                                        struct core_event *ev, struct bt_error *err);
#endif
