/* What the files of this room share. */
#ifndef RETENTION_RETENTION_INTERNAL_H
#define RETENTION_RETENTION_INTERNAL_H

#include "protocol/base/arena.h"
#include "protocol/base/map.h"
#include "supervisor/retention/retention.h"

enum { SLICE_PLANS = 16 /* plans that one slice looks at */ };

enum phase {
    PHASE_IDLE,
    PHASE_AGES,
    PHASE_SESSIONS,
    PHASE_EVENTS,
    PHASE_GONE,
    PHASE_UNUSED,
    PHASE_BYTES
};

struct ended {
    uint64_t ix;
    struct uuid id;
    msec created, ended;
    bool ok; /* it has completed */
    bool job;
    bool importing; /* a plan of another journal is being taken over */
};

/* How far the plans inside one plan were looked for; it may take more than one slice. */
struct job_search {
    uint64_t of_ix; /* 0 = no search */
    char of[UUID_TEXT_LEN + 1];
    msec created; /* of that plan */
    msec at_wall;
    uint64_t at_ix;
    uint32_t deleted, before; /* in all; when the search began at the first plan again */
    bool more;                /* the last call has left some */
    struct map known;         /* those that went */
    struct arena arena;
};

struct retention {
    struct retention_options opt;
    struct retention_hooks hooks;
    struct journal *journal;
    enum phase phase;
    bool pending; /* something is to be swept */
    bool started; /* imports that the last daemon did not finish are gone */
    bool too_big; /* reported */
    msec due;
    msec next_wall; /* when the next plan is over its age; MSEC_NEVER = not known */
    msec at_wall;   /* how far the pass over ended plans has come */
    uint64_t at_ix;
    uint64_t unused_at, unused_to; /* blobs that are looked at in this pass */
    uint64_t unused_next;          /* and in the next: they are old enough then */
    msec unused_due;
    struct retention_copy copy;
    struct ended list[SLICE_PLANS];
    uint32_t n;
    struct job_search search;
};

/* jobs.c: deletes the plans inside the plan. BT_BUSY: there are more than one slice deletes, which
 * another call goes on with, or the last attempts of one are not over. */
BT_MUST_CHECK enum bt_code retention_delete_jobs(struct retention *r, const struct ended *p,
                                                 struct str why, msec wall, uint32_t *ret_jobs,
                                                 struct bt_error *err);
void retention_search_done(struct job_search *s);

/* copy.c: the next pages of the copy that runs. One that fails is no failure of the journal. */
void retention_copy_slice(struct retention *r);
#endif
