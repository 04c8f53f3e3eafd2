/*
 * Places where a test makes the daemon end, in builds with failpoints (the dev build):
 *
 *   BATON_FAILPOINT="PLACE PLAN_ID SIGNAL"    the signal's number; PLACE is apply, recover, perform
 */
#ifndef ENGINE_FAILPOINT_H
#define ENGINE_FAILPOINT_H

#include "protocol/base/uuid.h"

#ifdef BATON_FAILPOINTS
/* Raises the signal when the variable names this place and plan. */
void failpoint(const char *place, struct uuid plan);
#else
static inline void failpoint(const char *place, struct uuid plan)
{
    (void)place;
    (void)plan;
}
#endif
#endif
