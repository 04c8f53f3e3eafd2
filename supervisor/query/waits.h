/*
 * What plan.get adds about progress: why a step does not move, as a sentence, and which steps
 * decide when the plan ends. Pure but for the memory that the caller gives.
 */
#ifndef QUERY_WAITS_H
#define QUERY_WAITS_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "supervisor/core/sched/core.h"

/* How an agent stands. */
struct wait_agent {
    uint32_t instances, lanes, lanes_up, busy;
    bool enabled, draining;
    struct str failure; /* why no process of it is started any more; empty = one may come */
};

/* Names that a sentence about waiting may need; those that do not apply are empty. */
struct wait_names {
    struct str agent_id;
    struct str step_id; /* the first dependency that is open */
    struct str review_id;
    struct str signal; /* WAIT_SIGNAL: its name */
    struct str holder; /* WAIT_KEY: the id of the plan that has it; empty = steps have it */
    struct str until;  /* the wall time of the wait's end */
    const struct wait_agent *agent; /* WAIT_AGENT, WAIT_LANE; NULL = not known */
    struct str there;               /* WAIT_AGENT: other agents, "a, b"; empty = none is there */
    uint32_t more;                  /* WAIT_PERSON: reviews beside the one that is named */
    bool is_loop;                   /* WAIT_BACKOFF: what follows is a round, no attempt */
};

/* "waiting for agent calc: 0 instances; there are: files, sql". Nothing for WAIT_NOTHING. */
void wait_sentence(const struct step_wait *w, const struct wait_names *names, struct buf *out);

/*
 * The longest way through the plan: of all chains of dependencies the one whose steps took, or have
 * taken so far, the most time together; where nothing ran yet, the one with the most steps. ms: by
 * step, 0 = did not begin. Superseded steps are left out. Appends at most max step indexes to ret,
 * in order of execution (of a longer way the last ones), and returns how many. O(steps + edges).
 * UINT32_MAX: out of memory.
 */
uint32_t critical_path(const struct plan *plan, const uint64_t *ms, struct arena *arena,
                       uint32_t *ret, uint32_t max);
#endif
