/* The state of this room. For this room only. */
#ifndef DISPATCH_INTERNAL_H
#define DISPATCH_INTERNAL_H

#include "protocol/base/map.h"
#include "supervisor/dispatch/cards.h"
#include "supervisor/dispatch/dispatch.h"
#include "supervisor/dispatch/lanes.h"

struct job_note;
struct trunk;

struct dispatch {
    struct link *link;
    struct process_hooks processes;
    session_job_fn *session_job_over;
    struct lane_instance **instances; /* by registry slot */
    uint32_t instances_max;
    uint32_t lanes_n;         /* of all of them */
    struct map session_keys;  /* of the instances -> slot */
    uint32_t key_twins;       /* instances whose key another one has in the map */
    struct agent_card *cards; /* by agent index */
    struct job_note *notes;   /* of jobs, of this cycle: see job.c */
    uint32_t notes_n, notes_cap;
    struct arena assignment;  /* of the step being sent */
    struct buf message;       /* the one being sent */
    struct trunk *trunks_due; /* to flush: see trunk.c */
    uint64_t sent;            /* steps and questions */
};

/* A step, or a question about one, goes out. */
void dispatch_step(struct engine *engine, const struct core_cmd *cmd);
#endif
