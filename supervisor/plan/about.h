/*
 * What a plan says about itself for people and for those who answer out of it: it changes nothing
 * about how the plan runs. Kept in the canonical document alone; struct plan has none of it.
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

/* Empty, absent or 0: not said. */
struct plan_about {
    struct str description;
    struct str reasoning;
    struct str total_time;       /* "two minutes": words, never read as a number */
    struct doc success_criteria; /* a list of strings */
    struct doc constraints;      /* a list of strings */
    uint64_t tokens, steps;      /* estimates */
};

/* Out of a canonical document (plan_read*, plan_revise), whose bytes it borrows. */
void plan_about_of(struct doc document, struct plan_about *ret);
/* The list as one text for people, its items joined by "; "; at most cap bytes of it, whole
 * characters. */
void plan_about_join(struct doc list, size_t cap, struct buf *out);
#endif
