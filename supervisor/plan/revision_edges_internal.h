/* One revision while it is being composed. Private to plan_revise.c and plan_weave.c. */
#ifndef PLAN_REVISION_EDGES_INTERNAL_H
#define PLAN_REVISION_EDGES_INTERNAL_H

#include "protocol/base/map.h"
#include "supervisor/plan/reader_internal.h"
#include "supervisor/plan/revise.h"

/* A dependency that the document does not name; rows of one step form a list. */
struct added_edge {
    uint32_t dep;
    uint32_t next;
};

struct revision_edges {
    const struct plan_revise_request *request;
    struct plan_reader *r; /* r->plan: old rows, then new ones; r->first: the first new one */
    uint8_t *settled;      /* per row: begun or over; 0 for new ones */
    uint32_t after, before, replaced; /* rows; UINT32_MAX = none */
    uint8_t *reused;                  /* per row */
    struct map ids;            /* of the rows that are not superseded; of two with one id either */
    uint32_t *last_added;      /* per entry: the last of its list in `added`; UINT32_MAX = none */
    struct buf added;          /* struct added_edge */
    uint32_t *sources, *sinks; /* the first and the last new ones */
    uint32_t n_sources, n_sinks;
    uint32_t *mark;     /* per row: scratch, stamped */
    uint32_t *list;     /* per row: scratch */
    struct buf names;   /* struct str per edge: the result */
    struct buf entries; /* uint32_t per edge, where the name has no .ptr */
};

/*
 * After the steps were read and old rows were marked as superseded: finds the dependencies of all
 * rows, writes them to names and rows and into the steps' deps_at and deps_n, plan->n_edges.
 * Problems for steps that have begun and would have to wait again.
 */
BT_MUST_CHECK enum bt_code revision_edges_find(struct revision_edges *w);
/* Whether the steps that the plan still has are a chain, in whatever form. */
bool revision_edges_is_ordered(const struct revision_edges *w);
void revision_edges_done(struct revision_edges *w);
#endif
