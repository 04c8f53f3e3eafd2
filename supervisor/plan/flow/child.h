/*
 * Child plans of a step: maps (`forEach`), loops (`repeat`) and sub-plans (`plan`). A step keeps
 * how its children are made (struct plan_step.child), a child what it is of (struct plan.child).
 *
 *   step.child = {kind: "forEach", list, as, maxItems, onItemFailure, body}
 *              | {kind: "repeat", until | while, max, delayMs, onMax, body}
 *              | {kind: "plan", document, inputs}
 *   child      = {kind, of, step, attempt, round, depth, as, items, previous}   in the document
 *
 * body is the canonical document of the steps of one item or round. A map's child has its steps
 * once per item: "<stepId>[0]", "<stepId>[1]", ... They are made again whenever the document is
 * read, so the journal keeps the steps once and the items once.
 */
#ifndef PLAN_FLOW_CHILD_H
#define PLAN_FLOW_CHILD_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "supervisor/core/plan/plan.h"

enum {
    CHILD_DEPTH_MAX = 8,       /* child plans in each other */
    CHILD_ITEMS = 1000,        /* the default of maxItems */
    CHILD_ITEMS_MAX = 10000,   /* as many as a plan may have steps */
    CHILD_ROUNDS_MAX = 100000, /* each round is a plan of its own */
    CHILD_INDEX_BYTES = 6,     /* "[9999]" */
    CHILD_WORD_BYTES = 32,     /* of the name of an item */
    CHILD_WORDS_MAX = 4 + CHILD_DEPTH_MAX
};

/* How the children of a step are made; borrows its document. */
struct child_step {
    enum child_kind kind;
    struct doc list; /* MAP: a list, or a text that is one template */
    struct str name; /* of the item; "" = only `item` */
    uint32_t max_items;
    bool goes_on;         /* MAP: an item that fails does not end the others */
    struct doc condition; /* LOOP */
    bool is_while;
    struct doc body;     /* MAP, LOOP */
    struct doc document; /* SUB: a plan or a recipe */
    struct doc inputs;
};
/* "forEach", "repeat", "plan"; "" = of no children. */
const char *child_kind_name(enum child_kind kind);
/* False when the step has no children. */
bool child_step_read(struct doc child, struct child_step *ret);
struct loop_policy child_loop(struct doc child);

/* `child` of a document; ret->kind CHILD_OF_NONE when there is none. *ret_items: of a map whose
 * steps are not in the document yet; absent = they are. */
void child_of_read(struct doc child, struct child_of *ret, struct doc *ret_items);
/* Appends it as the value of `child`. items absent: without them. */
void child_of_write(const struct child_of *of, struct doc items, struct buf *out);

/* What a child may spend, and how long it may take; 0 = no limit. */
struct child_share {
    msec time_ms;
    uint64_t tokens, micros;
};
/* Appends the document of a child plan: the body of a map or a loop, with what it is of. */
BT_MUST_CHECK enum bt_code child_document(const struct child_step *step, const struct child_of *of,
                                          struct doc items, struct str session_id,
                                          const struct child_share *share, struct buf *out,
                                          struct bt_error *err);
/* Whether the word is one that this child gives to templates: item, index, its `as`, iteration,
 * previous. */
bool child_gives(const struct child_of *of, struct str word);
#endif
