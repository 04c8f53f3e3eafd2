/*
 * Between a record of the core and a row of the journal: the one place where an event's bytes are
 * made, and read back for replay. What run_apply needs is always in the body, so that replay needs
 * nothing but the rows.
 */
#ifndef EVENTS_RECORD_CODEC_H
#define EVENTS_RECORD_CODEC_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "registry/registry.h"
#include "supervisor/core/plan/plan.h"
#include "supervisor/core/run/record.h"
#include "supervisor/journal/journal.h"

/* What the edge adds to a record. Texts are cut on UTF-8 boundaries so that a frame never passes
 * LIMIT_EVENT_BYTES. */
struct record_extra {
    uint64_t seq; /* journal_next_seq() */
    uint64_t plan_seq;
    struct uuid event_id;
    struct uuid handoff_id;     /* HANDOFF */
    const struct plan *plan;    /* records about a plan */
    const struct plan *revised; /* PLAN_MODIFIED, REPLAN_FINISHED with record_revises(): the plan
                                   that they bring; `plan` is then the one before, or it, too */
    struct uuid parent;         /* PLAN_GENERATED: the plan that this one is a retry or fork of */
    struct str preview; /* STEP_COMPLETED: text of the result; PLAN_COMPLETED: of the aggregate */
    struct blob_ref summary;         /* PLAN_COMPLETED: the aggregate */
    const struct run *run;           /* counts and usage, of all records about a plan */
    struct str agent_id, agent_name; /* ABOUT_AGENT records */
    struct str version;              /* of the agent, or of the supervisor */
    uint64_t plans_recovered;
    /* PLAN_GENERATED: what the plan's document says of itself */
    struct str description, success_criteria;
    uint64_t estimated_tokens;
    /* ABOUT_SESSION records; the message is the record's text */
    struct str session_id, turn_id, turn_plan_id, action;
};

/* Public records of a plan that is a job are internal ones (BT_PROTOCOL to read them
 * otherwise): no base, no topic. */
bool record_row_is_public(const struct record *rec, const struct plan *plan);
/* Appends the body (event base + payload) to out and the topic to topic (both cleared first). Names
 * of agents come from the registry's cards (agentName falls back to agentId). Internal records have
 * no topic. */
BT_MUST_CHECK enum bt_code record_encode(const struct record *rec, const struct record_extra *x,
                                         const struct registry *reg, struct buf *out,
                                         struct buf *topic, struct bt_error *err);
/*
 * Reads a row of a plan back. now_mono/now_wall re-base its time: rec.now = now_mono - (now_wall -
 * row.wall), not below zero. agent indexes come from the plan's steps. BT_PROTOCOL when the body
 * does not fit (damaged, newer).
 */
BT_MUST_CHECK enum bt_code record_decode(const struct journal_row *row, const struct plan *plan,
                                         msec now_mono, msec now_wall, struct arena *arena,
                                         struct record *ret, struct bt_error *err);

/* reviewId = planId/stepId/attempt, and the planId alone (no step id, attempt not looked at) for
 * the sign-off: needs no table. */
void review_id_format(struct uuid plan_id, struct str step_id, uint32_t attempt, struct buf *out);
/* False when it is not one. The sign-off has an empty step id and attempt 0. */
bool review_id_parse(struct str id, struct uuid *ret_plan, struct str *ret_step_id,
                     uint32_t *ret_attempt);
/* "Step 3 failed: <error>" (M024), "Execution timeout after <n>ms", ... into out. */
void plan_failure_reason(const struct record *rec, const struct plan *plan, struct buf *out);
#endif
