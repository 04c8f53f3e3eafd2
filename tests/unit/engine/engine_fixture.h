/* An engine over the memory journal whose upward hooks do nothing, or count. */
#ifndef TEST_ENGINE_FIXTURE_H
#define TEST_ENGINE_FIXTURE_H

#include "supervisor/engine/submission.h"

struct engine_world {
    struct journal *journal;
    struct link *link;
    struct engine *engine;
    struct arena arena;
};

/* What the journal was asked to read since engine_world_open: plans and blobs. */
extern uint32_t engine_world_reads;
/* Whether jobs may be asked for. */
extern bool engine_world_jobs;
/* Called for plan_ended; NULL = nothing. */
extern enum bt_code (*engine_world_plan_ended)(struct engine *engine, const struct open_plan *p,
                                               const struct record *rec, struct str summary,
                                               size_t not_done, struct bt_error *err);

/* Called for the event of a lane; NULL = there must be none. */
extern void (*engine_world_on_lane)(const struct link_event *ev);

/* Over this journal, which it closes; wall: the time of its first cycle, which has begun. */
void engine_world_open_on(struct engine_world *w, struct journal *journal, msec wall);
void engine_world_open(struct engine_world *w);
/* kill -9, and a new engine over the same journal; its first cycle has begun. */
void engine_world_restart(struct engine_world *w);
void engine_world_close(struct engine_world *w);
/* JSON ("'" for '"') as a document. */
struct doc engine_world_doc(struct engine_world *w, const char *json);
/* Submits it in a cycle that is not ended; its id in ret_id. */
void engine_world_submit(struct engine_world *w, const struct submit_request *request,
                         char ret_id[UUID_TEXT_LEN + 1]);
#endif
