/* What a review showed when it was decided, and what was decided. For this room and the daemon. */
#ifndef API_SHOWN_H
#define API_SHOWN_H

#include "supervisor/api/review_view.h"

/* Stores what the open review shows, for the row of its decision. step: STEP_NONE = the plan as a
 * whole. What is too large is not kept, and *ret stays as it is. Fails only when the journal does.
 * A hook of the engine. */
BT_MUST_CHECK enum bt_code review_shown(struct engine *engine, const struct open_plan *p,
                                        uint32_t step, struct blob_ref *ret, struct bt_error *err);
/* Fills ret with a review that is not open any more, of an open or an ended plan. False: there is
 * none of that id. */
bool review_past(struct review_room *room, const struct review_id *id, struct str review_id,
                 struct msg_review_view *ret);
#endif
