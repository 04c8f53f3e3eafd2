/*
 * What became of a plan, read from its rows in the journal: the same for a running plan and for one
 * that ended last year. Everything lives in the projection's arena.
 */
#ifndef QUERY_PROJECTION_H
#define QUERY_PROJECTION_H

#include "protocol/base/arena.h"
#include "protocol/wire/msg.h"
#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/record.h"

struct engine;
struct journal_row;

/* What the view of a step lacks. Wall times; 0 = that did not happen. */
struct projection_step {
    struct blob_ref result;
    struct blob_ref details; /* of the newest attempt that failed */
    struct str task;         /* as it was sent; empty before */
    struct usage usage;      /* of all its attempts and of what was asked about it */
    msec began, first_attempt, ended;
    uint32_t failed_attempts;
};

struct projection {
    struct arena arena;
    struct doc document;           /* of the newest revision, canonical */
    struct plan *plan;             /* made of it; plan_id and revision are set */
    struct msg_plan_view view;     /* steps filled in */
    struct projection_step *steps; /* view.steps_n of them */
    uint32_t steps_cap;            /* of view.steps and steps */
    struct blob_ref revised;       /* the document of the newest revision, when there was one */
    struct blob_ref summary;       /* the aggregated result */
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

/* BT_NOT_FOUND "No state found for <id>"; BT_IO when the journal is damaged there. projection_done
 * in every case. */
BT_MUST_CHECK enum bt_code projection_read(struct engine *engine, struct str plan_id,
                                           struct projection *ret, struct bt_error *err);
/* The same; `also` sees each row after it was applied. It returns false when it is out of
 * memory. */
typedef bool (*projection_row_fn)(struct projection *s, const struct journal_row *row, void *self);
BT_MUST_CHECK enum bt_code projection_read_also(struct engine *engine, struct str plan_id,
                                                struct projection *ret, projection_row_fn also,
                                                void *self, struct bt_error *err);
void projection_done(struct projection *s);

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
