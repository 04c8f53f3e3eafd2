/*
 * The steps whose results make up the plan's answer (M080, strategy concat), and the exact texts
 * around them. This module chooses steps; the caller loads the bytes and joins them. Pure.
 *
 *   - no result: AGGREGATE_NOTHING; for a dry run or a cancelled plan its own text
 * (aggregate_nothing)
 *   - one result: that text alone, whatever was skipped
 *   - more: AGGREGATE_HEAD task AGGREGATE_HEAD_END text-or-AGGREGATE_SKIPPED for each part, in plan
 *     order, AGGREGATE_BETWEEN between them; failed and cancelled steps are left out
 *
 * An empty result counts as none: the caller stores no blob for it (id 0 or len 0).
 */
#ifndef CORE_AGGREGATE_H
#define CORE_AGGREGATE_H

#include <stdint.h>

#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/run.h"

#define AGGREGATE_NOTHING "I wasn't able to complete the plan due to errors."
#define AGGREGATE_DRY_RUN "Nothing was run: it was a dry run."
#define AGGREGATE_CANCELLED "The plan was cancelled before it had a result."
#define AGGREGATE_HEAD "**"
#define AGGREGATE_HEAD_END "**\n"
#define AGGREGATE_SKIPPED "_Skipped_"
#define AGGREGATE_BETWEEN "\n\n---\n\n"

enum aggregate_form { AGGREGATE_FORM_NOTHING, AGGREGATE_FORM_RAW, AGGREGATE_FORM_SECTIONS };
enum aggregate_kind { AGGREGATE_PART_RESULT, AGGREGATE_PART_SKIPPED };

struct aggregate_part {
    uint32_t step;
    enum aggregate_kind kind;
    struct blob_ref result; /* of AGGREGATE_PART_RESULT */
};

struct aggregate_choice {
    enum aggregate_form form;
    uint32_t n; /* parts written: 0, 1, or all */
};

/* parts has room for plan->n_steps entries. */
struct aggregate_choice aggregate_choose(const struct plan *plan, const struct run *run,
                                         struct aggregate_part *parts);
/* The text of AGGREGATE_FORM_NOTHING for a plan that ends with this status. */
struct str aggregate_nothing(const struct plan *plan, enum plan_status end);
#endif
