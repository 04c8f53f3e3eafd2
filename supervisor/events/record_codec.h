/* The codec between records of the core and rows of the journal. Only here are an event's bytes
 * made and read. The body contains all that run_apply reads, so replay needs nothing but the rows.
 */
#ifndef EVENTS_RECORD_CODEC_H
#define EVENTS_RECORD_CODEC_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/base/trace.h"
#include "registry/registry.h"
#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/aggregate.h"
#include "supervisor/core/run/context.h"
#include "supervisor/core/run/record.h"
#include "supervisor/journal/journal.h"

/* What the engine adds to a record. Texts are cut at whole UTF-8 characters, so that a frame never
 * exceeds LIMIT_EVENT_BYTES. */
struct record_extra {
    uint64_t seq; /* journal_next_seq() */
    uint64_t plan_seq;
    struct uuid event_id;
    struct uuid handoff_id;     /* HANDOFF */
    const struct plan *plan;    /* for records about a plan */
    struct uuid plan_id;        /* of that plan */
    const struct plan *revised; /* records with record_revises(): the plan that they bring; `plan`
                                   is the previous one, or the same */
    struct str by;              /* the credential on whose order it is; "" = of nobody */
    struct uuid parent;         /* PLAN_GENERATED: the plan that this one retries or forks */
    struct trace trace;         /* PLAN_GENERATED: that it belongs to; span 0 = one of its own */
    struct str preview; /* STEP_COMPLETED: text of the result; PLAN_COMPLETED: of the aggregate */
    struct str task;    /* STEP_STARTED, HANDOFF: as it is sent; .ptr NULL = as the plan has it */
    struct blob_ref state;   /* STEP_COMPLETED: the plan's state, when the step changed it */
    struct blob_ref details; /* of the failed attempt that the record is about */
    const struct context_pick *context; /* STEP_STARTED, STEP_ASSIGNED: the results in the step's
                                           context */
    uint32_t context_n;
    uint32_t context_left_out;        /* older results that are not in it */
    struct blob_ref summary;          /* PLAN_COMPLETED: the aggregate */
    struct aggregate_readers readers; /* PLAN_COMPLETED */
    const struct run *run;            /* of a record about a plan: its counts and usage */
    struct str agent_id, agent_name;  /* ABOUT_AGENT records */
    struct str version;               /* of the agent, or of the supervisor */
    uint64_t plans_recovered;
    /* PLAN_GENERATED: from the plan's document */
    struct str description, success_criteria;
    uint64_t estimated_tokens;
    /* ABOUT_SCHEDULE records; record.text is the reason */
    struct {
        struct str name, scheduled_for, until, plan_id, kind;
        uint64_t count;
    } schedule;
    /* ABOUT_SESSION records; record.text is the message */
    struct str session_id, turn_id, turn_plan_id, action, outcome;
};

/* Whether the context of x is not all that is in the step's scope. */
bool record_context_truncated(const struct record_extra *x);
/* Whether the row is public. Rows of a job are internal: they have no event base and no topic.
 * Decoding a row as the wrong kind is BT_PROTOCOL. */
bool record_row_is_public(const struct record *rec, const struct plan *plan);
/* Writes the body (event base and payload) to out and the topic to topic; both are cleared first.
 * Names of agents come from the registry's cards; agentName falls back to agentId. Internal records
 * have no topic. */
BT_MUST_CHECK enum bt_code record_encode(const struct record *rec, const struct record_extra *x,
                                         const struct registry *reg, struct buf *out,
                                         struct buf *topic, struct bt_error *err);
/* Reads a row of a plan. now_mono and now_wall re-base its time: rec.now = now_mono - (now_wall -
 * row.wall), at least 0. Indexes of agents come from the plan. BT_PROTOCOL when the body does not
 * fit (damaged, or newer). */
BT_MUST_CHECK enum bt_code record_decode(const struct journal_row *row, const struct plan *plan,
                                         struct uuid plan_id, msec now_mono, msec now_wall,
                                         struct arena *arena, struct record *ret,
                                         struct bt_error *err);

/* reviewId = planId/stepId/r<serial>; planId/r<serial> of a review of the plan as a whole. Serials
 * count the reviews of a plan from 1 on, so no two reviews have the same id. */
void review_id_format(struct uuid plan_id, struct str step_id, uint32_t serial, struct buf *out);
struct review_id {
    struct uuid plan_id;
    struct str step_id; /* empty: of the plan as a whole */
    uint32_t serial;    /* 0: of a journal without serials, planId/stepId/attempt or planId */
    uint32_t attempt;
};
/* False when the id is malformed. ret borrows from id. */
bool review_id_parse(struct str id, struct review_id *ret);
/* Appends the sentence: "Step 3 failed: <error>" (M024), "Execution timeout after <n>ms", ... rec
 * is a PLAN_COMPLETED. */
void plan_failure_reason(const struct record *rec, const struct plan *plan, struct buf *out);
/* The same for people: after a timeout with plan_timeout_hint. */
void plan_failure_text(const struct record *rec, const struct plan *plan, struct buf *out);
/* Of the error of an attempt that timed out, appends "no result after 60 s (...); set ...". The
 * error itself stays what other documents call it (M021). Nothing for other errors. */
void plan_timeout_hint(const struct step_policy *policy, struct str error, struct buf *out);
#endif
