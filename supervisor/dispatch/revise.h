/* New revisions of open plans, made of a replanner's answer or a person's change. */
#ifndef DISPATCH_REVISE_H
#define DISPATCH_REVISE_H

#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"
#include "supervisor/plan/revise.h"

/* A change of a plan: its new steps, and where they go. Empty ids are those of the document. */
struct revise_change {
    enum plan_revise_kind kind;
    const uint8_t *again; /* AGAIN */
    struct doc steps;
    struct str after, before, step;
};

/*
 * Makes the revision that follows p's, with its block, and stores its document in this cycle.
 * *problems: the caller's list. BT_INVALID: problems say why, err names the first. BT_LIMIT,
 * BT_NOMEM. BT_IO is the journal's failure: engine_fail was called. The revision is the caller's,
 * for engine_revise; new_revision_done in every case.
 */
BT_MUST_CHECK enum bt_code revise_make(struct engine *engine, const struct open_plan *p,
                                       const struct revise_change *change,
                                       struct problems *problems, struct new_revision *ret,
                                       struct blob_ref *ret_document, struct bt_error *err);
/*
 * Makes the plan that p, which has no steps yet, was waiting for, out of its planner's answer (or,
 * `trusted`, a person's document). Otherwise as above; *ret_document is its own document.
 */
BT_MUST_CHECK enum bt_code revise_planned(struct engine *engine, const struct open_plan *p,
                                          struct doc answer, bool trusted,
                                          struct problems *problems, struct new_revision *ret,
                                          struct blob_ref *ret_document, struct bt_error *err);
/* Writes a change out of the plan's newest document. */
typedef void revise_compose_fn(const struct open_plan *p, const uint8_t *again, uint32_t n,
                               struct doc document, struct buf *out);
/* The revision in which the n rows marked in `again`, all of them over, are done once more by the
 * steps that `compose` writes. Otherwise as revise_make. */
BT_MUST_CHECK enum bt_code revise_again(struct engine *engine, const struct open_plan *p,
                                        const uint8_t *again, uint32_t n,
                                        revise_compose_fn *compose, struct problems *problems,
                                        struct new_revision *ret, struct blob_ref *ret_document,
                                        struct bt_error *err);
/* The errors as one text: at most so many of them, and how many more there are. */
void revise_problems(const struct problems *p, uint32_t most, struct buf *text);
/* The warnings in the same way: what was normalised. */
void revise_remarks(const struct problems *p, uint32_t most, struct buf *text);
#endif
