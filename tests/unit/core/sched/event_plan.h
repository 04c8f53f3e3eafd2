/* The plan that an event brings, wherever its type has it. */
#ifndef TESTS_EVENT_PLAN_H
#define TESTS_EVENT_PLAN_H

#include <stddef.h>

#include "supervisor/core/sched/core_event.h"

/* NULL: events of this type bring no plan in the place of another. */
static inline struct core_new_plan *event_plan(struct core_event *ev)
{
    switch ((unsigned)core_ev_member(ev->type)) {
    case CORE_EV_revise:
        return &CORE_EV(ev, revise)->next;
    case CORE_EV_result:
        return &CORE_EV(ev, result)->next;
    case CORE_EV_decide:
        return &CORE_EV(ev, decide)->next;
    case CORE_EV_planned:
        return &CORE_EV(ev, planned)->next;
    default:
        return NULL;
    }
}

/* The document of that plan; for types that bring one. */
static inline struct blob_ref event_document(const struct core_event *ev)
{
    struct core_event copy = *ev;
    return event_plan(&copy)->document;
}

/* The block that comes with the event; NULL: none does. */
static inline void *event_block(struct core_event *ev)
{
    const struct core_new_plan *next = event_plan(ev);
    return ev->type == CORE_SUBMIT    ? CORE_EV(ev, submit)->block
           : ev->type == CORE_RECOVER ? CORE_EV(ev, recover)->block
           : next != NULL             ? next->block
                                      : NULL;
}
#endif
