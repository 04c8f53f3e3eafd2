/*
 * The keyword planner at work: shared by keyword.c, which makes the plan, and keyword_route.c,
 * which finds who does one clause. Private to this folder.
 */
#ifndef PLANNER_KEYWORD_PARTS_H
#define PLANNER_KEYWORD_PARTS_H

#include "supervisor/keyword/keyword.h"
#include "supervisor/keyword/order.h"
#include "supervisor/keyword/rank.h"

struct drafter {
    const struct planner_request *request;
    struct arena *arena;
    struct planner_result *result;
    struct rank *rank;
    struct bt_error *err;
    struct order order;
    /* Per clause: */
    struct str texts[CLAUSES_MAX];
    struct str ids[CLAUSES_MAX];    /* of its step; empty when nobody can do it */
    struct str calls[CLAUSES_MAX];  /* what its skill is called by */
    uint64_t after[CLAUSES_MAX];    /* as order says, through clauses that nobody can do */
    struct doc params[CLAUSES_MAX]; /* absent for none */
    struct buf filled;              /* parameters while they are made */
};

enum bt_code keyword_nomem(struct drafter *d);
/* Into the arena, cut at a character; the text is done. */
BT_MUST_CHECK enum bt_code keyword_keep(struct drafter *d, struct buf *text, size_t cap,
                                        struct str *ret);
/* A step for the clause, or what stands in its way. */
BT_MUST_CHECK enum bt_code keyword_route(struct drafter *d, uint32_t ix);
#endif
