/*
 * What a plan document contains for people and for answering agents. It does not change how the
 * plan runs. Only the canonical document has it; struct plan does not.
 */
#ifndef PLAN_ABOUT_H
#define PLAN_ABOUT_H

#include <stdint.h>

#include "protocol/wire/doc.h"

enum {
    ABOUT_TEXT_MAX = 4096, /* description and reasoning: longer ones are cut */
    ABOUT_TIME_MAX = 128,
    ABOUT_LIST_MAX = 32, /* constraints, success criteria */
    ABOUT_ITEM_MAX = 1024
};

/* A missing member is empty, absent or 0. */
struct plan_about {
    struct str description;
    struct str reasoning;
    struct str total_time;       /* a duration in words, not interpreted */
    struct doc success_criteria; /* a list of strings */
    struct doc constraints;      /* a list of strings */
    uint64_t tokens, steps;      /* estimates */
};

/* Reads them from a canonical document (plan_read*, plan_revise). Borrows its bytes. */
void plan_about_of(struct doc document, struct plan_about *ret);
/* Appends the items of the list, joined by "; ": at most cap bytes, whole characters. */
void plan_about_join(struct doc list, size_t cap, struct buf *out);
#endif
