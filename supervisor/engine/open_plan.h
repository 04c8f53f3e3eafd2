/*
 * An open plan: everything it owns, by the slot of its run. Plans are found by run, by id, by
 * session, and one after the other. A pointer is valid until the next feed.
 */
#ifndef ENGINE_OPEN_PLAN_H
#define ENGINE_OPEN_PLAN_H

#include "protocol/base/buf.h"
#include "protocol/base/map.h"
#include "protocol/base/trace.h"
#include "protocol/wire/doc.h"
#include "supervisor/core/sched/core.h"
#include "supervisor/engine/signals.h"
#include "supervisor/engine/step_notes.h"

struct engine;
struct journal_plan;

/* What a plan that is a job knows of it. */
struct job {
    enum job_kind kind;
    uint32_t attempt;             /* of asking the planner; filled in at its end */
    uint32_t text_attempt;        /* attempt whose text was passed on last; 0 = none yet */
    char of[LIMIT_ID_BYTES + 1];  /* the plan, or the session, that it is for */
    char turn[UUID_TEXT_LEN + 1]; /* CONVERSE: the turn; SUMMARY: the last message in it */
};

/* Where a plan comes from. */
struct plan_origin {
    struct uuid parent; /* of a retry or a fork; nil = none. Known until it is in the rows */
    struct uuid reuse;  /* a retry of this plan: what its maps have done is not done again; nil =
                           none.  Not known any more after a restart */
    struct trace trace; /* that it belongs to; span 0: one of its own, its id */
};

/* What few open plans have. All zero: it has nothing of it. */
struct open_plan_more {
    struct plan_origin origin; /* zero: of no other plan, in no other trace */
    struct blob_ref state;     /* what its agents left for later steps; id 0: nothing */
    struct blob_ref document;  /* of the newest revision; id 0: the one in the plan's row */
    struct signals signals;
    struct str failure;    /* the whole error that it will have failed with; own memory */
    uint32_t told_percent; /* of a child plan: what its parent knows of it */
    /* Of one that was rebuilt to look at it: the plan that it is a child of; else NULL. */
    const struct open_plan *within;
};

struct open_plan {
    uint64_t run;      /* 0 = free */
    uint64_t ix;       /* the journal's number */
    uint64_t plan_seq; /* of the last public record */
    struct uuid plan_id;
    char id[UUID_TEXT_LEN + 1];
    char *owner;       /* the credential whose plan it is; NULL = the token; own memory */
    struct plan *plan; /* plan_pack's; equal plans may share it */
    void *block;
    struct step_notes notes;
    struct open_plan_more *more; /* open_plan_more reads it; NULL: nothing of it */
    uint32_t session;            /* its session slot, or SESSION_SLOT_NONE */
    bool undo_waits;             /* what undoes it cannot be made yet */
    struct job *job;             /* NULL: this plan is none */
    uint64_t asked;              /* the run of the job that it waits for; 0 = none */
};

/* Of a plan's document: NULL when it is no job; free() it. *ret_ok false: out of memory. */
struct job *job_of_document(struct doc document, bool *ret_ok);

/* The credential whose plan it is; "" = the token. */
static inline struct str open_plan_owner(const struct open_plan *p)
{
    return p->owner != NULL ? str_from(p->owner) : (struct str){"", 0};
}
/* What it has of it; never NULL. */
const struct open_plan_more *open_plan_more(const struct open_plan *p);
/* The same, to be changed. Aborts when out of memory: half a cycle cannot be taken back. */
struct open_plan_more *open_plan_more_change(struct open_plan *p);
/* The plan that it retries, as far as is known; nil = none. */
static inline struct uuid open_plan_reuse(const struct open_plan *p)
{
    return open_plan_more(p)->origin.reuse;
}
/* Sets the owner, a copy. False: out of memory. */
BT_MUST_CHECK bool open_plan_own(struct open_plan *p, struct str owner);
/* The trace that it belongs to; the span is that of the plan itself. */
void open_plan_trace(const struct open_plan *p, struct trace *ret);

/* ---- finding one; NULL when there is none ---- */
struct open_plan *open_plan_of_run(struct engine *engine, uint64_t run);
struct open_plan *open_plan_by_id(struct engine *engine, struct str id);
/* The plan, not job and not ended, that is open in the session; the newest of several. */
struct open_plan *open_plan_of_session(struct engine *engine, struct str session_id);
/* The same without dry runs, which are in nobody's way. */
struct open_plan *open_plan_running_in(struct engine *engine, struct str session_id);
/* open_plan_of_session for many sessions in one pass: ret[i] is that of the session with the value
 * i, and must be NULL before. */
void open_plans_of_sessions(struct engine *engine, const struct map *sessions,
                            struct open_plan **ret);
/* The one after `p` in the order of slots, jobs included; the first when p is NULL. */
struct open_plan *open_plan_next(struct engine *engine, const struct open_plan *p);

/* ---- texts and decisions of one ---- */
/* The sentence about its end that begins with the text, or the text when it is no longer. */
struct str open_plan_failure(const struct open_plan *p, struct str text);
/* What the agent asks of a person; empty when it gives no text. */
struct str open_plan_prompt(const struct open_plan *p, uint32_t step);
/* The task of a step as it was sent: the values of its templates, cut with a mark when they are
 * long. A task without templates is as the plan has it. `into` is cleared and holds the text. */
struct str open_plan_step_task(struct engine *engine, const struct open_plan *p, uint32_t step,
                               struct buf *into);
/* What a person decides about the plan as a whole. */
enum review_kind open_plan_review(const struct open_plan *p);
/* The plan waits for the job with this run; 0 = for none any more. Room is kept for the job that
 * each plan may need. */
void open_plan_await_job(struct engine *engine, struct open_plan *p, uint64_t run);

/* ---- making one ---- */
/* A plan of the journal as it ended, to look at it; open_plan_done in every case. */
BT_MUST_CHECK enum bt_code open_plan_rebuild(struct engine *engine, const struct journal_plan *row,
                                             struct open_plan *ret, struct bt_error *err);
/* Zeroed memory for the plan's run; NULL when out of memory. */
void *open_plan_block(const struct plan *plan);
void open_plan_done(struct open_plan *p);

/* A new revision of an open plan on its way into the core: see engine_revise. */
struct new_revision {
    struct plan *plan; /* plan_pack's */
    void *block;
    struct blob_ref document;
    struct buf text; /* the document itself, until it has been handed over; may be empty */
};
void new_revision_done(struct new_revision *r);
#endif
