/*
 * Schedules: plans that begin by the clock. A schedule is a rule (when), a document (what), and a
 * state that the journal keeps (how far). Each time of the rule becomes one plan with the clientKey
 * schedule/NAME/TIME, in the same commit as the event and the state: once, also over a crash.
 *
 * One thread; every call but schedules_new lies within a cycle of the engine. A failure of the
 * journal goes to engine_fail.
 */
#ifndef SCHEDULE_SCHEDULES_H
#define SCHEDULE_SCHEDULES_H

#include "supervisor/engine/engine.h"
#include "supervisor/engine/schedule_key.h"
#include "supervisor/engine/submission.h"

struct schedules;
struct schedule; /* valid until the next call that changes schedules */

enum { SCHEDULES_MAX = 200000, SCHEDULE_BACKFILL_MAX = 1000 };

BT_MUST_CHECK enum bt_code schedules_new(struct engine *engine, struct schedules **ret,
                                         struct bt_error *err);
void schedules_free(struct schedules *s);
/* In the first cycle, after the open plans were recovered: reads all of the journal. */
BT_MUST_CHECK enum bt_code schedules_load(struct schedules *s, struct bt_error *err);

/* A schedule that an import wrote into the journal. */
BT_MUST_CHECK enum bt_code schedules_adopt(struct schedules *s, struct str name,
                                           struct bt_error *err);

/* What the configuration declares, from the next cycle on: what is new or changed is put, what was
 * declared before and is no more is deleted, and schedules of clients stay. The texts are borrowed.
 * json: the body of a schedule.put. */
struct schedule_declared {
    const char *name;
    const char *json;
};
BT_MUST_CHECK enum bt_code schedules_declare(struct schedules *s,
                                             const struct schedule_declared *list, uint32_t n,
                                             struct bt_error *err);

/* Fires and skips what is due; at most 64 plans a call. Not while the engine stalls or drains. */
void schedules_cycle(struct schedules *s);
/* When schedules_cycle has work again, on the monotonic clock; MSEC_NEVER = nothing is due. */
msec schedules_deadline(const struct schedules *s, msec mono, msec wall);
/* Of every plan that ends, before the commit of its end. */
BT_MUST_CHECK enum bt_code schedules_plan_ended(struct schedules *s, struct str plan_id,
                                                enum plan_status status, struct bt_error *err);

/* ---- one of them ---- */
/* NULL: there is none that the sender of the request in hand may see. */
struct schedule *schedules_find(struct schedules *s, struct str name);
struct str schedule_name(const struct schedule *p);
/* As it is stored. */
struct str schedule_owner(const struct schedule *p);
/* Adds or replaces it; d is for its plan, and has the problems. *ret_existing: nothing changed.
 * BT_INVALID, BT_CONFLICT, BT_LIMIT, BT_NOMEM. Other codes are failures of the journal. */
BT_MUST_CHECK enum bt_code schedules_put(struct schedules *s, const struct msg_schedule_put *m,
                                         struct submission *d, struct msg_schedule_put_ok *ret,
                                         struct arena *arena, struct bt_error *err);
/* Fills *ret; strings are in the arena. next: how many times to come. */
BT_MUST_CHECK enum bt_code schedules_view(struct schedules *s, const struct schedule *p,
                                          uint32_t next, bool document, struct arena *arena,
                                          struct msg_schedule_view *ret, struct bt_error *err);
/* Declared schedules that were not put, and why, for who asks; at most max. Returns how many. The
 * texts are valid until the next declaration. */
uint32_t schedules_refused(const struct schedules *s, struct msg_schedule_refused *ret,
                           uint32_t max);
/* The next schedules after the number, in their order; at most max > 0. */
uint32_t schedules_page(struct schedules *s, uint64_t after, struct schedule **ret, uint32_t max);
uint64_t schedule_number(const struct schedule *p);

BT_MUST_CHECK enum bt_code schedules_pause(struct schedules *s, struct schedule *p,
                                           struct str reason, struct bt_error *err);
BT_MUST_CHECK enum bt_code schedules_resume(struct schedules *s, struct schedule *p,
                                            struct bt_error *err);
BT_MUST_CHECK enum bt_code schedules_delete(struct schedules *s, struct schedule *p,
                                            struct bt_error *err);
/* BT_CONFLICT: a plan of it is open. On BT_INVALID d has the problems. */
BT_MUST_CHECK enum bt_code schedules_trigger(struct schedules *s, struct schedule *p,
                                             struct str client_key, struct submission *d,
                                             char ret_id[UUID_TEXT_LEN + 1], bool *ret_existing,
                                             struct bt_error *err);
/* BT_INVALID, BT_LIMIT, BT_CONFLICT: another backfill is not over. */
BT_MUST_CHECK enum bt_code schedules_backfill(struct schedules *s, struct schedule *p,
                                              const struct msg_schedule_backfill *m,
                                              struct msg_schedule_backfill_ok *ret,
                                              struct arena *arena, struct bt_error *err);
const char *schedule_status(const struct schedule *p);
uint32_t schedule_open_plans(const struct schedule *p);
#endif
