/*
 * A plan done again: which of its steps keep their results, and the document of the new plan. The
 * old plan stays as it is. Pure but for the memory that the caller gives.
 */
#ifndef API_RERUN_H
#define API_RERUN_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "supervisor/core/sched/core.h"

/* Marks `from` and all that comes after it: in a chain every later step, else what depends on it,
 * directly or not. marks: plan->n_steps of them, false before. False: out of memory. */
BT_MUST_CHECK bool rerun_mark(const struct plan *plan, uint32_t from, struct arena *arena,
                              bool *marks);

/*
 * The document of a plan that does the same again, out of the canonical one: without the steps that
 * a revision did without, and without what only a revision has (numbers of revisions, grants).
 * BT_PROTOCOL when the document is none of ours.
 */
BT_MUST_CHECK enum bt_code rerun_document(struct doc canonical, struct buf *out,
                                          struct bt_error *err);

/* Whether the row goes over into the new plan, with which result. */
struct rerun_row {
    bool superseded;
    bool reuse;
    bool doubt; /* not reused, and it may have been done all the same */
    struct blob_ref result;
};

/* Which steps of rerun_document's document need not run: 1 where the row is reused. NULL: out of
 * memory. */
const uint8_t *rerun_settled(const struct rerun_row *rows, uint32_t n, struct arena *arena,
                             uint32_t *ret_n);

/* The reuse for CORE_SUBMIT: rows of the old plan, n of them, to steps of the new one, dependencies
 * first. *ret_n = how many. NULL: out of memory, or the plans do not fit. */
struct core_reuse *rerun_reuse(const struct plan *to, const struct rerun_row *rows, uint32_t n,
                               struct arena *arena, uint32_t *ret_n);
#endif
