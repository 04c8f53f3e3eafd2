/* An engine over the memory journal whose upward hooks do nothing, or count. */
#ifndef TEST_ENGINE_FIXTURE_H
#define TEST_ENGINE_FIXTURE_H

#include "supervisor/engine/engine.h"

struct engine_world {
    struct journal *journal;
    struct link *link;
    struct engine *engine;
    struct arena arena;
};

/* What the journal was asked to read since engine_world_open: plans and blobs. */
extern uint32_t engine_world_reads;
/* Called for plan_ended; NULL = nothing. */
extern enum bt_code (*engine_world_plan_ended)(struct engine *engine, const struct open_plan *p,
                                               const struct record *rec, struct str summary,
                                               struct bt_error *err);

void engine_world_open(struct engine_world *w);
void engine_world_close(struct engine_world *w);
/* Submits the plan ("'" for '"') in a cycle that is not ended; its id in ret_id. */
void engine_world_submit(struct engine_world *w, const char *json, char ret_id[UUID_TEXT_LEN + 1]);
#endif
