/* Reviews that are open, and what was decided about the others. For this room only. */
#ifndef API_DECIDED_H
#define API_DECIDED_H

#include "supervisor/api/api.h"
#include "supervisor/events/record_codec.h"

/* The decision about a review that is not open any more; texts are in the arena. */
struct past_decision {
    bool found;
    bool is_void; /* nobody decided: a change of the plan made it void */
    bool edited;
    uint64_t digest; /* 0 = the row has none */
    struct str decision, comment, at;
    struct str by; /* user@host, as the client claims; empty without a claim */
};
/* Looks in the plan's rows, and in what this cycle has decided. */
void past_decision_find(struct engine *engine, uint64_t plan_ix, const struct review_id *id,
                        struct arena *arena, struct past_decision *ret);
/* Whether m is the same decision once more. */
bool past_decision_is(const struct past_decision *past, const struct msg_review_decide *m);
/* Of decision, comment and edit; never 0. */
uint64_t decision_digest(const struct msg_review_decide *m);

/* Reads the id; the open plan of it, or NULL. */
struct open_plan *review_plan_of(struct engine *engine, struct str review_id,
                                 struct review_id *ret);
/* Whether the review is open; *ret_step is STEP_NONE for the plan as a whole. */
bool review_find_open(const struct open_plan *p, const struct review_id *id, uint32_t *ret_step);
/* "; open: <reviewId> and 2 more", a review of the step first; nothing when none is open. */
void review_name_open(const struct open_plan *p, struct str step_id, struct buf *out);
#endif
