/*
 * Compares two plan documents: two revisions of one plan, or a plan before and after an edit. Pure.
 *
 * Steps are matched by id. Superseded entries are left out, so a step that a revision supersedes is
 * "removed", and a new step under the same id is "changed". A chain (no dependsOn) is compared by
 * its meaning: each step after the end of the one before. The order of steps, of map members and of
 * dependencies makes no difference. Documents should be canonical (plan_read*, plan_revise); others
 * are compared as they are.
 */
#ifndef PLAN_DIFF_H
#define PLAN_DIFF_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

enum plan_change_kind { PLAN_CHANGE_ADDED, PLAN_CHANGE_REMOVED, PLAN_CHANGE_CHANGED };
enum {
    PLAN_DIFF_MAX = 10000,
    PLAN_DIFF_NAMES_MAX = 2000 /* longer lists of names are compared by their bytes */
};

/*
 * One difference. For a step that was added or removed, field is empty and before or after is the
 * step.
 */
struct plan_difference {
    enum plan_change_kind kind;
    struct str step_id;       /* empty: of the plan */
    struct str field;         /* "task", "parameters.path", "policy.maxRetries", "dependsOn" */
    struct doc before, after; /* absent where there is no value */
};

struct plan_diff {
    struct plan_difference *at; /* of the plan first, then steps: removed, changed, added */
    uint32_t n;
    uint32_t left_out; /* differences after PLAN_DIFF_MAX */
};

/*
 * Borrows both documents; the rest is allocated in the arena. BT_INVALID: a document is no map with
 * steps. BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code plan_diff(struct doc before, struct doc after, struct arena *arena,
                                     struct plan_diff *ret, struct bt_error *err);
/*
 * Appends one line per difference; values are cut and have no control characters:
 *   ~ policy.maxRetries: 2 -> 3
 *   - step old (files.read): read the log
 *   ~ step count: dependsOn: + load - rows
 *   + step report (files.render): render the report
 * Nothing when there is no difference.
 */
void plan_diff_text(const struct plan_diff *diff, struct buf *out);
/* Appends a list of {change: "added" | "removed" | "changed", stepId?, field?, before?, after?}. */
void plan_diff_doc(const struct plan_diff *diff, struct buf *out);
#endif
