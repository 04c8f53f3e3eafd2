/* What the files of the record codec share. */
#ifndef JOURNAL_RECORD_INTERNAL_H
#define JOURNAL_RECORD_INTERNAL_H

#include "protocol/base/clock.h"
#include "protocol/wire/msg.h"
#include "supervisor/core/run.h"
#include "supervisor/journal/record_codec.h"

enum {
    STEPS_SHOWN = 64,   /* of a plan_generated; more do not fit a frame anyway */
    TEXT_ROOM = 2048,   /* what a free text may have at first; halved until the frame fits */
    TEXTS_PER_EVENT = 3 /* free texts of one event that may need repair */
};

/* The state of one record_encode. */
struct encoding {
    const struct record *rec;
    const struct record_extra *x;
    const struct registry *reg;
    size_t room;         /* bytes that a free text may have */
    uint32_t steps_room; /* steps that plan_generated may list */
    struct arena repaired;
    struct buf made;   /* a sentence made here */
    struct buf review; /* a review id */
    char instance[UUID_TEXT_LEN + 1];
    char handoff[UUID_TEXT_LEN + 1];
    struct msg_ev_step_summary steps[STEPS_SHOWN];
};

union payload {
    struct msg_ev_plan_generated generated;
    struct msg_ev_plan_started started;
    struct msg_ev_plan_step_started step_started;
    struct msg_ev_agent_handoff handoff;
    struct msg_ev_plan_step_progress progress;
    struct msg_ev_plan_step_retry retry;
    struct msg_ev_plan_step_waiting waiting;
    struct msg_ev_review_decided decided;
    struct msg_ev_plan_step_completed step_completed;
    struct msg_ev_plan_cancelling cancelling;
    struct msg_ev_plan_completed completed;
    struct msg_ev_agent agent;
    struct msg_ev_system system;
    struct msg_rec_step step;
};

/* s cut to cap and to the room, and made good UTF-8 when it is not: a bad text must not stop the
 * journal. */
struct str record_cut(struct encoding *e, struct str s, size_t cap);
/* The card's name, or the id. */
struct str record_agent_name(const struct encoding *e, uint32_t agent, struct str id);
/* Fills the payload of a record; MSG_TYPE_COUNT when the record does not fit the plan. */
enum msg_type record_payload(struct encoding *e, union payload *p);

void record_topic(const struct record *rec, const struct record_extra *x, struct str from,
                  struct str to, struct buf *topic);
/* from_agent of a handoff as text. */
struct str record_from_id(const struct encoding *e);
#endif
