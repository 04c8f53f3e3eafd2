/*
 * Which plan a job or a child plan is inside of. A child plan has jobs and child plans of its own.
 */
#ifndef PLAN_FLOW_INSIDE_H
#define PLAN_FLOW_INSIDE_H

#include "protocol/base/uuid.h"
#include "protocol/wire/doc.h"

/* The plan, or session, that a canonical document was made for; borrows from it. "" = none. */
struct str plan_around_of(struct doc document);

struct inside {
    void *self;
    /* The canonical document of a plan, valid until the next call. False: it is not there. */
    bool (*document)(void *self, struct uuid plan_id, struct doc *ret);
    /* Whether this is the plan in question, or a plan that is known to be inside it. */
    bool (*is_known)(void *self, struct str plan_id);
};

/* Whether the plan lies within the one in question, however deep; false for that one itself. */
bool plan_is_inside(struct uuid plan_id, const struct inside *in);
#endif
