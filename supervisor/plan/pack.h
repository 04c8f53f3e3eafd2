/* A plan as the engine keeps it while it is open. */
#ifndef PLAN_PACK_H
#define PLAN_PACK_H

#include "supervisor/core/plan/plan.h"

enum { PLAN_SHELF_RULES = 256, PLAN_SHELF_TRIES = 8 };

/* What packed plans share: equal plans are kept once, and so are the rules of steps without texts
 * of their own (up to PLAN_SHELF_RULES kinds, for good). Zeroed = empty. Not thread-safe. */
struct plan_shelf {
    struct packed **buckets;
    uint32_t cap, n; /* buckets; plans */
    struct step_rules *rules[PLAN_SHELF_RULES];
};

/*
 * A copy of the plan and its texts in one allocation of the exact size; the caller gives it to
 * plan_pack_drop. policy is NULL: a run needs only the steps' policies, and plan_revise reads the
 * plan's policy from the canonical document. NULL when out of memory. shelf: where its rules may
 * be; NULL = in the copy.
 */
struct plan *plan_pack(const struct plan *plan, struct plan_shelf *shelf);
/*
 * The plan of the shelf that equals this one, which is dropped; or this one, which others may share
 * from now on. Nothing in it may be changed any more. One with concurrency keys stays as it is:
 * their places are each plan's own. Time is linear in the bytes of the plan.
 */
struct plan *plan_pack_share(struct plan *plan, struct plan_shelf *shelf);
/* Frees it when nobody shares it any more. NULL is allowed. */
void plan_pack_drop(struct plan *plan);
/* What it takes, with what is before it. */
size_t plan_pack_bytes(const struct plan *plan);
/* All plans on it must have been dropped. */
void plan_shelf_done(struct plan_shelf *shelf);
#endif
