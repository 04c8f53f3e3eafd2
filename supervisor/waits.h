/*
 * What the scheduler gave to the threads of this process but its first: the first two numbers of
 * /proc/self/task/TID/schedstat (Linux, Documentation/scheduler/sched-stats.rst), in ns. Where the
 * kernel does not keep them, they have not run and waited for nothing.
 */
#ifndef SUPERVISOR_WAITS_H
#define SUPERVISOR_WAITS_H

#include <stdint.h>

#include "protocol/base/msec.h"

enum { WAITS_MAX = 64 }; /* threads; the daemon has about 20 */

struct waits {
    uint64_t reaper_ran_ns; /* nng's thread that closes pipes; 0 = there is none of its name */
    uint32_t n;
    struct thread_wait {
        long tid;
        uint64_t ns;
    } at[WAITS_MAX];
};

void waits_read(struct waits *ret);
/*
 * What they waited between two readings, in sum: nng closes a
 * pipe by turns of its threads, each of which may wait. A thread that is new waited since `from`.
 */
msec waits_between(const struct waits *from, const struct waits *to);
#endif
