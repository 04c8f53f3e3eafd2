/* The revisions of an open plan: their documents read back from the journal, and what the engine
 * keeps of one. */
#ifndef ENGINE_REVISION_H
#define ENGINE_REVISION_H

#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"

/* The document of the plan's newest revision, in the arena. */
BT_MUST_CHECK enum bt_code revision_document(struct engine *engine, const struct open_plan *p,
                                             struct arena *arena, struct doc *ret,
                                             struct bt_error *err);
/* The newest revision again, with the policy, which a packed plan has not; in the arena. */
BT_MUST_CHECK enum bt_code revision_plan(struct engine *engine, const struct open_plan *p,
                                         struct arena *arena, struct plan **ret,
                                         struct bt_error *err);
/* Packs the plan, with an empty block, and stores its document in this cycle; *document moves into
 * the revision. BT_NOMEM; BT_IO is the journal's failure: engine_fail was called. */
BT_MUST_CHECK enum bt_code revision_keep(struct engine *engine, const struct plan *plan,
                                         struct buf *document, struct new_revision *ret,
                                         struct bt_error *err);
/* At a recovery: the revision whose document a record names, with an empty block. */
BT_MUST_CHECK enum bt_code revision_read(struct engine *engine, const struct open_plan *p,
                                         struct blob_ref document, struct new_revision *ret,
                                         struct bt_error *err);
#endif
