/*
 * The steps whose results make up the plan's answer (M080, strategy concat), and the exact texts
 * around them. This module chooses steps; the caller loads the bytes and joins them. Pure.
 *
 *   - no result: AGGREGATE_NOTHING; for a dry run or a cancelled plan its own text
 * (aggregate_nothing)
 *   - one result: that text alone, whatever was skipped
 *   - more: AGGREGATE_HEAD task AGGREGATE_HEAD_END text-or-AGGREGATE_SKIPPED for each part, in plan
 *     order, AGGREGATE_BETWEEN between them; failed and cancelled steps are left out
 *   - of a partial plan, a synthesizer's answer included: then AGGREGATE_BETWEEN,
 *     AGGREGATE_NOT_DONE and a line for each step that was not done (M029); of a plan with steps
 *     that gave or read something not whole: AGGREGATE_NOT_WHOLE and a line for each of these
 *
 * An empty result counts as none: the caller stores no blob for it (id 0 or len 0).
 */
#ifndef CORE_AGGREGATE_H
#define CORE_AGGREGATE_H

#include <stdint.h>

#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/run.h"

#define AGGREGATE_NOTHING "I wasn't able to complete the plan due to errors."
#define AGGREGATE_BYPASSED "Nothing had to be done: no condition of a step was true."
#define AGGREGATE_EMPTY "All steps were done; none of them gave a text."
#define AGGREGATE_DRY_RUN "Nothing was run: it was a dry run."
#define AGGREGATE_CANCELLED "The plan was cancelled before it had a result."
#define AGGREGATE_HEAD "**"
#define AGGREGATE_HEAD_END "**\n"
#define AGGREGATE_SKIPPED "_Skipped_"
#define AGGREGATE_BETWEEN "\n\n---\n\n"
#define AGGREGATE_NOT_DONE "**Not done**"
#define AGGREGATE_NOT_WHOLE "**Not whole**"

enum { AGGREGATE_NAMED_MAX = 20 }; /* steps that a list at the end names; more are counted */

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
struct str aggregate_nothing(const struct plan *plan, const struct run *run, enum plan_status end);
/* The steps that were not done, in plan order, at most max of them; returns how many there are. A
 * completed step with an empty result was done; superseded steps do not count. */
uint32_t aggregate_not_done(const struct plan *plan, const struct run *run, uint32_t *steps,
                            uint32_t max);
/* What of a step is not whole. */
enum {
    AGGREGATE_RESULT = 1, /* the result of a completed step */
    AGGREGATE_CONTEXT = 2 /* what its last attempt read of the results before it */
};

struct aggregate_lack {
    uint32_t step;
    unsigned what; /* of AGGREGATE_RESULT and AGGREGATE_CONTEXT */
};

/* Steps whose last attempt read only a part, ascending. The run does not know them. */
struct aggregate_readers {
    const uint32_t *at;
    uint32_t n;
};

/* The steps of which something in the mask `what` is not whole, in plan order, at most max of them;
 * returns how many there are. Superseded steps do not count. */
uint32_t aggregate_not_whole(const struct plan *plan, const struct run *run,
                             const struct aggregate_readers *readers, unsigned what,
                             struct aggregate_lack *ret, uint32_t max);
/* How such a step ended: "failed", "was skipped", "did not begin", ... */
struct str aggregate_ended_how(const struct run_step *step);
#endif
