/* The rig from inside: rig.c makes events happen, rig_trace.c tells what came of them. */
#ifndef TESTS_RIG_INTERNAL_H
#define TESTS_RIG_INTERNAL_H

#include "tests/unit/core/sched/rig.h"

enum {
    PLANS_MAX = 16,
    RECORDS_MAX = 4096,
    TRACE_MAX = 64 * 1024,
    INSTANCES_MAX = 32,
    REVISIONS_MAX = 16,
    TEXTS_MAX = 4096,
    RIG_KEYS = 4,
    RIG_RING = 64,
    RIG_STARTS = 1024
};

/* The rule of a key or an agent, and all its starts. */
struct rig_rate {
    bool given;
    uint32_t max, n;
    struct core_rate rate;
    msec ring[RIG_RING];
    msec starts[RIG_STARTS];
};

struct rig_plan {
    struct plan *plan; /* the revision that is in force */
    struct plan *revisions[REVISIONS_MAX];
    uint32_t n_revisions;
    void *block;
    void *old_block;    /* until CMD_REVISED */
    struct run *shadow; /* replayed from the records alone */
    uint64_t handle;    /* 0 = over */
    struct record *records;
    uint32_t n_records;
    char texts[TEXTS_MAX]; /* that records bring and a run keeps */
    size_t texts_n;
};

/* Where a step's latest attempt or question went. */
struct sent {
    uint32_t slot, lane, attempt;
    enum step_phase phase;
    uint64_t epoch;
};

struct rig {
    struct core_config config;
    struct core *core;
    void *core_mem;
    msec now;
    msec clock; /* by how much the wall clock was set; may wrap */
    struct rig_plan plans[PLANS_MAX];
    uint32_t n_plans;
    struct sent sent[PLANS_MAX][64];
    struct commands out;
    struct core_cmd *cmds;
    char trace[TRACE_MAX];
    size_t trace_len;
    struct rig_rate keys[RIG_KEYS], agent_rates[16];
    uint64_t epoch_of[INSTANCES_MAX];
    uint32_t slot_of[INSTANCES_MAX];
};

struct rig_plan *rig_plan_of(const struct rig *r, uint64_t handle);
_Noreturn void rig_stop(const struct rig *r, const char *what, const char *more);
/* Which of the plan's revisions is in force before its record k. */
uint32_t rig_revision_in_force(const struct rig_plan *p, uint32_t k);
/* The run that the first n records make, in a block of its own. */
struct run *rig_replay(struct rig *r, const struct rig_plan *p, uint32_t n);
/* The event with the plan, a block and a document. What the core does not take over is freed. */
void rig_offer(struct rig *r, uint64_t handle, struct core_event ev, const char *text,
               uint32_t revision);
/* rig_trace.c */
void rig_say_command(struct rig *r, const struct core_cmd *cmd);
#endif
