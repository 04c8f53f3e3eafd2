/*
 * Places where a test makes the daemon end, in builds with sanitizers (the dev build):
 *
 *   BATON_CRASHPOINT="PLACE PLAN_ID SIGNAL"    the signal's number; PLACE is apply, recover,
 * perform
 */
#ifndef ENGINE_CRASHPOINT_H
#define ENGINE_CRASHPOINT_H

#include "protocol/base/uuid.h"

#ifdef BATON_CRASHPOINTS
/* Raises the signal when the variable names this place and plan. */
void crashpoint(const char *place, struct uuid plan);
#else
static inline void crashpoint(const char *place, struct uuid plan)
{
    (void)place;
    (void)plan;
}
#endif
#endif
