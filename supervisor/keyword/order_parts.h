/* The list of clauses while it grows. Private to this folder. */
#ifndef PLANNER_ORDER_PARTS_H
#define PLANNER_ORDER_PARTS_H

#include "supervisor/keyword/order.h"

/* How the next clause stands to those before it. */
enum link {
    LINK_THEN,   /* after all that were side by side last */
    LINK_BESIDE, /* beside the last one */
    LINK_AFTER   /* after one of them alone */
};

struct builder {
    const struct verbs *verbs;
    struct arena *arena;
    struct clause *at;
    uint32_t n;
    enum link link;
    uint32_t ref;            /* LINK_AFTER: which */
    uint64_t base, frontier; /* what the last group follows; those of which nothing depends yet */
    bool full, oom;
};

enum refers { REFERS_TO_NOTHING, REFERS_TO_ALL, REFERS_TO_ONE };

void builder_link(struct builder *b, enum link link);
void builder_link_after(struct builder *b, uint32_t ref);
/* One thing after the other: split at "and" where something to do begins. */
void builder_sequence(struct builder *b, struct str text);
/* The things of the text side by side; `joins`: a single one stands beside the last clause. */
void builder_beside(struct builder *b, struct str text, bool joins);
/* A clause that says what cannot be planned. */
void builder_unsaid(struct builder *b, struct str text, enum unsaid_kind kind, struct str words);
/* The things of the text, one after the other, between clause `ref` and what that follows. */
void builder_insert(struct builder *b, uint32_t ref, struct str text);
/* What the text means of what was said before: all of it ("that"), one thing (the last whose words
 * it has), or something new. */
enum refers builder_refer(const struct builder *b, struct str text, uint32_t *ret_ref);
#endif
