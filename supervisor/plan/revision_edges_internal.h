/* The dependencies of one revision while it is made. Private to revise.c and revision_edges.c. */
#ifndef PLAN_REVISION_EDGES_INTERNAL_H
#define PLAN_REVISION_EDGES_INTERNAL_H

#include "protocol/base/map.h"
#include "supervisor/plan/reader_internal.h"
#include "supervisor/plan/revise.h"

enum { REUSED_BY_NAME = 1 };

/* A dependency that the document does not name. Those of one entry form a list. */
struct added_edge {
    uint32_t dep;
    uint32_t next;
};

struct revision_edges {
    const struct plan_revise_request *request;
    struct plan_reader *r; /* r->plan: old entries, then new ones; r->first: the first new one */
    uint8_t *settled;      /* per entry: begun or over; 0 for new ones */
    uint32_t after, before, replaced; /* entries; UINT32_MAX = none */
    uint8_t *reused;                  /* per entry: REUSED_BY_NAME, or 0 */
    uint32_t left_out;                /* new steps that are completed ones */
    struct map ids;       /* of the entries that are not superseded; of two with one id either */
    uint32_t *last_added; /* per entry: the last of its list in `added`; UINT32_MAX = none */
    struct buf added;     /* struct added_edge */
    uint32_t *sources, *sinks; /* the first and the last new ones */
    uint32_t n_sources, n_sinks;
    uint32_t *mark;     /* per entry: scratch, stamped */
    uint32_t *list;     /* per entry: scratch */
    struct buf names;   /* struct str per edge: the result */
    struct buf entries; /* uint32_t per edge, where the name has no .ptr */
};

/*
 * Finds the dependencies of all entries, after the steps were read and old entries marked as
 * superseded. Writes them to names and entries, and sets the steps' deps_at and deps_n and
 * plan->n_edges. Reports steps that have begun and would have to wait again. BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code revision_edges_find(struct revision_edges *w);
/* Leaves out the new steps of a replan that have completed already, and has a
 * person approve those that repeat an unsafe one. After the steps were read. BT_NOMEM. */
BT_MUST_CHECK enum bt_code revision_repeats_settle(struct revision_edges *w);
/* Whether the steps that are not superseded form a chain, in whatever form. */
bool revision_edges_is_ordered(const struct revision_edges *w);
void revision_edges_done(struct revision_edges *w);
#endif
