/* Declarations shared by the files of the codec. */
#ifndef EVENTS_RECORD_INTERNAL_H
#define EVENTS_RECORD_INTERNAL_H

#include "protocol/base/clock.h"
#include "protocol/wire/msg.h"
#include "supervisor/core/run/run.h"
#include "supervisor/events/record_codec.h"

enum {
    CUTS_SHOWN = 8,       /* entries of a list of cut results */
    STEPS_SHOWN = 64,     /* entries of a list of new steps; more do not fit a frame */
    MISSING_SHOWN = 32,   /* entries of a gate's list */
    NOT_WHOLE_SHOWN = 16, /* entries of a list of steps of which something is not whole */
    TEXT_ROOM = 2048,     /* bytes of a free text at first; halved until the frame fits */
    LONG_ROOM = 1024,     /* of a condition, a progress, what was normalised */
    REASON_ROOM = 512,    /* of a goal, a comment, a reason for the plan */
    NOTE_ROOM = 256       /* of an agent or the supervisor */
};

static const struct str no_text = {NULL, 0};

/* The state of one record_encode. */
struct encoding {
    const struct record *rec;
    const struct record_extra *x;
    const struct registry *reg;
    size_t room;         /* bytes that a free text may use */
    uint32_t steps_room; /* steps that may be listed */
    struct arena repaired;
    struct buf made;   /* a sentence that the encoder makes */
    struct buf hint;   /* what is to be done about a timeout */
    struct buf review; /* a review id */
    char instance[UUID_TEXT_LEN + 1];
    char process[UUID_TEXT_LEN + 1];
    char id[UUID_TEXT_LEN + 1];    /* of a handoff, or of the parent plan */
    char until[CLOCK_ISO_LEN + 1]; /* the end of a pause */
    char traceparent[TRACEPARENT_LEN + 1];
    struct msg_ev_step_summary steps[STEPS_SHOWN];
    struct str missing[MISSING_SHOWN];
    struct msg_ev_context_cut cuts[CUTS_SHOWN];
    struct str not_whole[NOT_WHOLE_SHOWN];
    struct str readers[NOT_WHOLE_SHOWN];
};

/* The message of every codec of record.def. */
union payload {
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    struct msg_##message codec;
#define RECORD_ALSO(name, wire, is_public, about, member, scope, message, codec, sentence)
#include "supervisor/core/run/record.def"
};

/* Fills the payload of one type of record and returns its message type. */
typedef enum msg_type record_put(struct encoding *e, union payload *p);

/* s cut to cap and to the room. Invalid UTF-8 is repaired: a bad text must not stop the journal. */
struct str record_cut(struct encoding *e, struct str s, size_t cap);
/* s cut to the room alone: TEXT_ROOM bytes at most. */
struct str record_text(struct encoding *e, struct str s);
/* The id of an agent of the plan; empty for none. */
struct str record_agent_id(const struct encoding *e, uint32_t agent);
/* The name on the agent's card, or the id. */
struct str record_agent_name(const struct encoding *e, uint32_t agent, struct str id);
/* from_agent of a handoff as text. */
struct str record_from_id(const struct encoding *e);
const struct plan_step *record_step(const struct encoding *e);
struct str record_instance(struct encoding *e, struct uuid instance); /* empty for nil */
struct str record_process(struct encoding *e, struct uuid process);   /* empty for nil */
struct str record_class(enum err_class class);                        /* empty for none */
struct str record_review(struct encoding *e, uint32_t serial);        /* the id of a review */
/* Of an attempt that timed out: "no result after 60 s (...); set ...". The error itself stays what
 * other documents call it (M021). Empty for other failures. */
struct str record_timeout_hint(struct encoding *e, const struct plan_step *step);
struct msg_usage record_usage(const struct usage *u);
struct str record_until(struct encoding *e, msec delay_ms); /* the wall time after the delay */
/* Lists the steps of plan that came with revision `since` or later, as many as fit. *ret_all is
 * their number; *ret_cut: something is missing. */
uint32_t record_list_steps(struct encoding *e, const struct plan *plan, uint32_t since,
                           uint32_t *ret_all, bool *ret_cut);
/* Fills the payload of a record. MSG_TYPE_COUNT when the record does not fit the plan. */
enum msg_type record_payload(struct encoding *e, union payload *p);

void record_topic(const struct record *rec, const struct record_extra *x, struct str from,
                  struct str to, struct buf *topic);

#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    record_put event_encode_##codec;
#include "supervisor/core/run/record.def"

/* ---- back ---- */

struct decoding {
    const struct journal_row *row;
    const struct plan *plan;
    struct uuid plan_id;
    struct record *rec;
    bool fits; /* false: a value is unknown or out of range */
};

/* Reads the payload of one type of record. */
typedef void record_get(struct decoding *d, const union payload *p);

void record_expect(struct decoding *d, bool ok);
/* Sets the record's step, and its agent from the plan. */
void event_decode_step(struct decoding *d, uint64_t ix, struct str step_id);
/* Sets the agent of that id, which must be one of the plan's; an empty id keeps the step's. Called
 * after event_decode_step. */
void event_decode_agent(struct decoding *d, struct str agent_id);
/* The agent that handed over; the supervisor when the plan has no such agent. */
uint32_t event_decode_from(const struct decoding *d, struct str from);
/* The serial in the id of a review of the record's plan and step; 0 for an id without one. */
uint32_t event_decode_review(struct decoding *d, struct str review_id);
struct uuid event_decode_instance(struct decoding *d, struct str id); /* empty = nil */
enum err_class event_decode_class(struct decoding *d, struct str name);
enum step_phase event_decode_phase(struct decoding *d, struct str name); /* empty = execute */
void event_decode_usage(struct decoding *d, const struct msg_usage *u);

#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    record_get event_decode_##codec;
#include "supervisor/core/run/record.def"
enum plan_failure record_failure(struct decoding *d, struct str name);
#endif
