/*
 * What is different between two plan documents: two revisions of one plan, or a plan before and
 * after somebody edited it. Pure: documents in, a list of changes out.
 *
 * Steps are matched by their ids; superseded rows are left out, so a step that a later revision
 * does without is removed, and one that came in its place under the same id is changed. A chain
 * (no dependsOn anywhere) is compared as what it means: each step after the end of the one before.
 * What is equal but for the order of the steps, of a map's members or of a list of dependencies is
 * equal. Documents should be canonical (plan_read*, plan_revise); others are compared as they
 * stand.
 */
#ifndef PLAN_DIFF_H
#define PLAN_DIFF_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

enum plan_change_kind { PLAN_CHANGE_ADDED, PLAN_CHANGE_REMOVED, PLAN_CHANGE_CHANGED };
enum {
    PLAN_DIFF_MAX = 10000,
    PLAN_DIFF_NAMES_MAX = 2000 /* longer lists of names are compared as they stand */
};

/* One difference. A step that was added or removed: field is empty, before or after the step. */
struct plan_difference {
    enum plan_change_kind kind;
    struct str step_id;       /* empty: of the plan itself */
    struct str field;         /* "task", "parameters.path", "policy.maxRetries", "dependsOn" */
    struct doc before, after; /* absent where there was or is nothing */
};

struct plan_diff {
    struct plan_difference *at; /* the plan's own first, then steps: removed, changed, added */
    uint32_t n;
    uint32_t left_out; /* beyond PLAN_DIFF_MAX */
};

/* Borrows of both documents; the rest lives in the arena. BT_INVALID: one is no map with steps. */
BT_MUST_CHECK enum bt_code plan_diff(struct doc before, struct doc after, struct arena *arena,
                                     struct plan_diff *ret, struct bt_error *err);
/*
 * Appends one line for each change, values cut and free of control characters:
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
