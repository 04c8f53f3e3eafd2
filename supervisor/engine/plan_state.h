/*
 * The state of a plan: a map that its agents leave for later steps. A step that completes may bring
 * a merge patch (RFC 7396) for it; patches are applied in the order in which steps complete. The
 * state is a blob, and plan_step_completed has its number, so a restart finds it again.
 */
#ifndef ENGINE_PLAN_STATE_H
#define ENGINE_PLAN_STATE_H

#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"

/* The state with the patch applied; state.ptr NULL: {}. Both are maps. Pure but for memory. */
BT_MUST_CHECK enum bt_code plan_state_merge(struct doc state, struct doc patch, struct buf *out,
                                            struct bt_error *err);
/* BT_INVALID when the patch is no map, BT_LIMIT when the state would be larger than it may be. */
BT_MUST_CHECK enum bt_code plan_state_check(struct engine *engine, const struct open_plan *p,
                                            struct doc patch, struct bt_error *err);
/* Applies what the stored result of a completed step brings. *ret: the state when it has changed.
 */
BT_MUST_CHECK enum bt_code plan_state_apply(struct engine *engine, struct open_plan *p,
                                            struct blob_ref result, struct blob_ref *ret,
                                            struct bt_error *err);
#endif
