/* Points where a build for tests can be made to die, fail, wait or lose something.
 *
 * In builds for tests (BATON_CHECKED: dev, tsan, fuzz) each FAILPOINT counts its hits, and the
 * environment chooses what happens:
 *
 *     BATON_FAILPOINT=17:kill                the 17th hit of all points
 *     BATON_FAILPOINT=commit@3:after,40:kill the third commit, and the 40th hit
 *     BATON_FAILPOINT_LOG=FILE               the name of each hit is appended, one a line
 *
 * kill: SIGKILL before the act. delay: 300 ms before it. error: the act is not done and fails.
 * drop: it is not done and succeeds. after: it is done and fails. A site that cannot do one of the
 * last three goes on as if there was none. Elsewhere FAILPOINT is a constant and costs
 * nothing. Only the loop thread has points. */
#ifndef BATON_PROTOCOL_BASE_FAILPOINT_H
#define BATON_PROTOCOL_BASE_FAILPOINT_H

enum failpoint { FAILPOINT_NONE, FAILPOINT_ERROR, FAILPOINT_DROP, FAILPOINT_AFTER };

#ifdef BATON_CHECKED
#define BATON_FAILPOINTS
enum failpoint failpoint_hit(const char *name);
#define FAILPOINT(name) failpoint_hit(name)
#else
#define FAILPOINT(name) FAILPOINT_NONE
#endif

#endif
