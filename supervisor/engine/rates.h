/*
 * Concurrency keys and rates, for the core: keys as small numbers, the rules of the configuration,
 * and the starts that a rate must know after a restart (rows of the journal).
 *
 * A key's number is in use while a plan names it and while its rate remembers a start. Not
 * thread-safe: the loop thread's.
 */
#ifndef ENGINE_RATES_H
#define ENGINE_RATES_H

#include "protocol/base/map.h"
#include "supervisor/core/sched/core.h"
#include "supervisor/engine/engine.h"

enum { RATE_NAME_MAX = LIMIT_ID_BYTES + 8 };

/* The starts of an agent or a key: the core's ring, and where the next row goes. */
struct rate_ring {
    msec *starts;
    uint32_t n, place;
};

struct key_slot {
    char name[RATE_NAME_MAX]; /* plan/NAME or step/NAME */
    uint32_t len;
    uint32_t plans; /* that name it */
    uint32_t next_free;
    struct rate_ring ring;
};

struct rates {
    const struct engine_rule *rules;
    uint32_t n_rules;
    struct key_slot *keys;
    uint32_t used, free; /* used: slots that were ever given; a list through next_free */
    struct map by_name;
    struct rate_ring *agents; /* by registry index */
    uint32_t agents_max;
};

/* opt.rules hold from now on, for all that is known and that comes. */
BT_MUST_CHECK enum bt_code rates_init(struct engine *engine, struct bt_error *err);
void rates_done(struct rates *r);
/* Other rules. The starts of before count on. */
BT_MUST_CHECK enum bt_code rates_set(struct engine *engine, const struct engine_rule *rules,
                                     uint32_t n_rules, struct bt_error *err);
/* Reads the starts of before the restart. Before any plan. */
BT_MUST_CHECK enum bt_code rates_recover(struct engine *engine, struct bt_error *err);

/* After the plans: deletes starts that no rate can count. */
BT_MUST_CHECK enum bt_code rates_recovered(struct engine *engine, struct bt_error *err);

/* Fills in plan.keys.at. A child plan whose plans around it have its key needs none. BT_BUSY: too
 * many keys are in use, and the plan has none of them. */
BT_MUST_CHECK enum bt_code rates_take(struct engine *engine, struct plan *plan,
                                      struct bt_error *err);
/* The plan, or this revision of it, is gone. */
void rates_drop(struct engine *engine, const struct plan *plan);

/* Something leaves, or a plan starts: it is written down, in the batch, where a rate counts it. */
BT_MUST_CHECK enum bt_code rates_dispatched(struct engine *engine, const struct core_cmd *cmd,
                                            struct bt_error *err);
BT_MUST_CHECK enum bt_code rates_plan_started(struct engine *engine, const struct plan *plan,
                                              struct bt_error *err);
#endif
