/* Points where a build for tests can be made to die, fail, wait or lose something.
 *
 * In builds for tests (BATON_CHECKED: dev, tsan, fuzz) each FAILPOINT counts its hits, and the
 * environment chooses what happens:
 *
 *     BATON_FAILPOINT=17:kill                the 17th hit of all points
 *     BATON_FAILPOINT=commit@3:after,40:kill the third commit, and the 40th hit
 *     BATON_FAILPOINT=apply=PLAN_ID:11       a signal, where the input of that plan is applied
 *     BATON_FAILPOINT_LOG=FILE               the name of each hit is appended, one a line
 *
 * kill: SIGKILL before the act. stop: SIGSTOP before it; who continues the process chooses what
 * happens next. delay: 300 ms before it. error: the act is not done and fails. drop: it is not done
 * and succeeds. after: it is done and fails. A site that cannot do one of the last three goes on as
 * if there was none. Elsewhere FAILPOINT is a constant and costs nothing. Only the loop thread has
 * points.
 *
 * FAILPOINT_OF is a point of one plan: apply, recover, perform. It is not counted. Its action is
 * the number of a signal that the process raises; 11 is a real fault. */
#ifndef BATON_PROTOCOL_BASE_FAILPOINT_H
#define BATON_PROTOCOL_BASE_FAILPOINT_H

#include "protocol/base/uuid.h"

enum failpoint { FAILPOINT_NONE, FAILPOINT_ERROR, FAILPOINT_DROP, FAILPOINT_AFTER };

#ifdef BATON_CHECKED
#define BATON_FAILPOINTS
enum failpoint failpoint_hit(const char *name);
void failpoint_of(const char *name, struct uuid plan);
#define FAILPOINT(name) failpoint_hit(name)
#define FAILPOINT_OF(name, plan) failpoint_of(name, plan)
#else
#define FAILPOINT(name) FAILPOINT_NONE
#define FAILPOINT_OF(name, plan) (void)(plan)
#endif

#endif
