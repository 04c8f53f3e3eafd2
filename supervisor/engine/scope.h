/*
 * What the texts and conditions of a step may name: results of its plan and, in a child plan of a
 * map or a loop, those of its parents; the item, the round. A sub-plan knows nothing of its parent.
 */
#ifndef ENGINE_SCOPE_H
#define ENGINE_SCOPE_H

#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"
#include "supervisor/plan/flow/child.h"

/* The step that the id means, seen from a step of p, and its plan. UINT32_MAX: none. Of the steps
 * of an item those of the same item come first. */
uint32_t scope_find(struct engine *engine, const struct open_plan *p, uint32_t step, struct str id,
                    const struct open_plan **ret);
/* Its result; BT_INVALID: there is no such step, or it has not completed. */
BT_MUST_CHECK enum bt_code scope_result(struct engine *engine, const struct open_plan *p,
                                        uint32_t step, struct str id, struct doc *ret,
                                        struct bt_error *err);

/* The first words of templates beside results: item, index, ... */
struct scope_words {
    struct str at[3 * CHILD_DEPTH_MAX];
};
/* Fills them in for a step of p; how many. They live as long as the plans. */
uint32_t scope_words(struct engine *engine, const struct open_plan *p, uint32_t step,
                     struct scope_words *ret);
/* The whole value of a word; nil or .ptr NULL: it has none. Valid until the next call. */
BT_MUST_CHECK enum bt_code scope_value(struct engine *engine, const struct open_plan *p,
                                       uint32_t step, struct str word, struct doc *ret,
                                       struct bt_error *err);
#endif
