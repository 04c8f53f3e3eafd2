/*
 * A small world around one core: one plan of at most four steps, one agent with two instances of
 * one lane each, and a shell that reports what could happen to them. Everything that changes lies
 * in a few blocks that are copied as bytes, so that any state can be left and entered again.
 */
#ifndef TESTS_EXPLORE_WORLD_H
#define TESTS_EXPLORE_WORLD_H

#include "supervisor/core/core_internal.h"

enum { WORLD_STEPS = 4, WORLD_INSTANCES = 2, WORLD_EVENTS_MAX = 160 };

/* How often a path may do what would make it endless. */
struct budget {
    uint32_t registrations; /* beyond the first of each instance */
    uint32_t restarts;      /* of the daemon */
    uint32_t losses;        /* requests lost, sent or not */
    uint32_t strays;        /* results and states that nobody waits for */
    uint32_t silences;      /* time passing without heartbeats */
    uint32_t waits;         /* a step asking for an approval */
    bool cancel;
};

struct request {
    bool out;
    uint32_t slot, lane, step, attempt;
    uint64_t epoch;
};

/* What the records told about a step, kept apart from the run as a second opinion. */
struct told {
    uint8_t started, completed, granted;
    uint8_t executions; /* attempts that left and may have run */
    uint8_t attempts;   /* STEP_STARTED and STEP_ASSIGNED with a new attempt */
    uint8_t status;     /* after the last event */
};

/* One instance as the shell sees it. */
struct body {
    uint64_t epoch; /* 0 = not registered */
    bool control, lane;
    struct request now; /* out on its lane */
    struct request
        old; /* was out when it registered again or went: only LOST can still be said of it */
};

struct situation {
    msec now;
    uint64_t handle;
    bool over;
    struct budget left;
    struct body bodies[WORLD_INSTANCES];
    struct told told[WORLD_STEPS];
};

enum world_kind {
    WORLD_TICK,
    WORLD_SILENT_TICK,
    WORLD_RESULT,
    WORLD_LOST,
    WORLD_LOST_OLD,
    WORLD_STRAY,
    WORLD_STATE,
    WORLD_REGISTER,
    WORLD_LANE_UP,
    WORLD_CONTROL_UP,
    WORLD_GONE,
    WORLD_CANCEL,
    WORLD_DECIDE,
    WORLD_RESTART,
    WORLD_KIND_COUNT
};

struct world_event {
    enum world_kind kind;
    uint8_t body, step, attempt, variant;
};

struct world {
    const char *text; /* of the plan */
    struct plan *plan;
    struct core_config config;
    struct core *core;
    void *block;
    struct run *shadow; /* from the records alone */
    struct situation at;
    struct commands out;
    struct world_event doing;
    size_t snapshot_bytes;
    uint64_t seen[WORLD_KIND_COUNT];
    uint64_t moves[STEP_STATUS_COUNT][STEP_STATUS_COUNT];
};

struct world *world_new(const char *plan, const struct budget *budget);
void world_free(struct world *w);
void world_save(const struct world *w, unsigned char *snapshot);
void world_load(struct world *w, const unsigned char *snapshot);
/* What can happen next. Returns the number. */
uint32_t world_events(const struct world *w, struct world_event *ret);
/* Lets it happen. False when a rule was broken; *ret_why says which. */
bool world_do(struct world *w, const struct world_event *ev, const char **ret_why);
/* Equal for states that differ only in the time of day and in counters that decide nothing. */
uint64_t world_hash(const struct world *w);
void world_event_text(const struct world *w, const struct world_event *ev, char *buf, size_t size);
/* ---- world_rules.c ---- */
/* Reads the commands of one event: the shell's side of them, and the rules of their order. */
bool world_take(struct world *w, const char **ret_why);
#endif
