/*
 * What became of a plan, read from its rows in the journal: the same for a running plan and for one
 * that ended last year.
 */
#ifndef QUERY_PROJECTION_H
#define QUERY_PROJECTION_H

#include "protocol/base/arena.h"
#include "protocol/wire/msg.h"
#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/record.h"
#include "supervisor/plan/about.h"
#include "supervisor/plan/read.h"

struct engine;
struct journal_row;
struct kept_projection;
struct projections;

/* The document of a revision. */
struct projection_revision {
    uint64_t revision;
    struct blob_ref document;
};

enum { CHILD_ID_BYTES = 36 };

/* How far the newest child plan of a step is; plan_id "" = none was told of. */
struct projection_children {
    char plan_id[CHILD_ID_BYTES + 1];
    uint32_t round; /* from 0 on */
    uint32_t items, steps, over, completed, failed;
};

/* What the view of a step lacks. Wall times; 0 = that did not happen. */
struct projection_step {
    struct blob_ref result;
    struct blob_ref details; /* of the newest attempt that failed */
    struct str task;         /* as it was sent; empty before */
    struct usage usage;      /* of all its attempts and of what was asked about it */
    msec began, first_attempt, ended;
    uint32_t failed_attempts;
    uint64_t last_failed; /* the attempt that was counted last, and 1 */
    struct projection_children children;
    uint32_t turns; /* of its agent's calls */
    bool calls;     /* a child plan does them */
};

struct projection {
    struct arena arena;
    struct kept_projection *kept; /* that it was read from; NULL = it is what rows are applied to */
    struct projections *owner;    /* of it */
    struct doc document;          /* of the newest revision, canonical */
    struct plan *plan;            /* made of it; plan_id and revision are set */
    struct plan_about about;      /* likewise */
    struct plan_job job;
    struct msg_plan_view view;     /* steps filled in */
    struct projection_step *steps; /* view.steps_n of them */
    uint32_t steps_cap;            /* of view.steps and steps */
    struct blob_ref revised;       /* the document of the newest revision, when there was one */
    struct projection_revision *revisions; /* with a document of their own, in order */
    uint32_t revisions_n, revisions_cap;
    struct blob_ref summary; /* the aggregated result */
    struct blob_ref state;   /* the plan's state; id 0 = none */
    struct usage planning, replanning, synthesis,
        total; /* total: of the rows; 0 until the plan has ended */
    struct msg_handoff_record *handoffs;
    uint32_t handoffs_n, handoffs_cap;
    struct str failure_text; /* view.failure_reason, with the hint of a timeout */
    uint32_t paused;         /* bit per enum pause_reason */
    msec created, started, ended_at, updated;
    uint64_t last_seq;
    enum job_kind phase; /* what an agent is asked for the whole plan; JOB_NONE = nothing */
    bool ended;
    bool handoffs_cut; /* there were more than are kept */
};

/*
 * BT_NOT_FOUND "No state found for <id>"; BT_IO when the journal is damaged there. projection_done
 * in every case. All but what the caller allocates in ret->arena is kept for later reads: the steps
 * are not to be written to, and are valid until projection_done.
 */
BT_MUST_CHECK enum bt_code projection_read(struct engine *engine, struct str plan_id,
                                           struct projection *ret, struct bt_error *err);
void projection_done(struct projection *s);
/* Gives the caller's own copy of the steps from `from` to `to`, to write to; the others in
 * it are not to be read. The cards of the agents are filled in. False when out of memory. */
bool projection_own_steps(struct engine *engine, struct projection *s, uint32_t from, uint32_t to);
struct history;
/* Of a projection that was read; not to be written to. */
const struct history *projection_history(const struct projection *s);

/*
 * Reads on for about budget_us; *ret_ready: projection_read has little left to do. *ret_long: the
 * steps of a large plan were laid out, which is a cycle's work. Whatever it finds wrong it leaves
 * to projection_read.
 */
void projection_prepare(struct engine *engine, struct str plan_id, uint64_t budget_us,
                        bool *ret_ready, bool *ret_long);

/* ---- what is kept between reads: of open plans, and of those that ended last ---- */
BT_MUST_CHECK enum bt_code projections_new(struct projections **ret, struct bt_error *err);
void projections_free(struct projections *all);

/* ---- for this room and its tests ---- */
/* A dry run that is over: its steps were never to begin. */
bool projection_is_planned(const struct projection *s);
/* Frees what projection_apply was called with. */
void projection_free(struct projection *s);
/* The document of the newest revision becomes s->plan, both in `arena`. */
BT_MUST_CHECK enum bt_code projection_load_plan(struct engine *engine, struct projection *s,
                                                struct doc submitted, struct arena *arena,
                                                struct bt_error *err);
/* The steps as planned, over what the rows of `rows` left of them, into `arena`. */
BT_MUST_CHECK enum bt_code projection_lay_out(struct projection *s, const struct projection *rows,
                                              struct arena *arena, struct bt_error *err);
/* projection_rows.c: one row more. */
BT_MUST_CHECK enum bt_code projection_apply(struct projection *s, struct arena *scratch,
                                            const struct journal_row *row, struct bt_error *err);
/* Makes room for n steps; false when out of memory. */
bool projection_make_room(struct projection *s, uint32_t n);
struct str projection_keep(struct projection *s, struct str text);
/* A kept "error; hint", or the error alone without a hint. */
struct str projection_error(struct projection *s, struct str error, struct str hint);
/* A time as text; "" for 0. */
struct str projection_iso(struct projection *s, msec wall);
#endif
