/*
 * Decides when an agent process is started, restarted and given up, in the terms of OTP
 * supervisors. A pure state machine: events come in with `now`, commands go out as data. It has no
 * processes, no clock and no ids. One struct per child.
 *
 *              start              registered
 *    STOPPED ---------> STARTING ------------> UP
 *       ^                | ^ | ^---- lost -----|  \ stop, late, kill
 *       |    clean exit, | | | crash           |   v
 *       +---- temporary -+ | v         crash   |  STOPPING --exited--> STOPPED or as after a crash
 *                          +- BACKOFF <--------+
 *                             FAILED  <-- the crash that reaches `intensity` within `period_ms`
 *                             HELD    <-- instead of both, for a member of a group (group.h)
 */
#ifndef SPAWN_POLICY_H
#define SPAWN_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"

enum policy_state {
    POLICY_STOPPED,
    POLICY_STARTING, /* asked for or running, but not registered: spawned is not ready */
    POLICY_UP,
    POLICY_BACKOFF,
    POLICY_STOPPING, /* `then` is what the end of the process will mean */
    POLICY_FAILED,   /* given up; only POLICY_ON_START leaves it */
    POLICY_HELD,     /* crashed; its group decides */
    POLICY_STATE_COUNT
};

enum policy_restart {
    POLICY_PERMANENT, /* restarted after every end */
    POLICY_TRANSIENT, /* restarted unless it exited with 0 */
    POLICY_TEMPORARY, /* never restarted */
    POLICY_RESTART_COUNT
};

enum { POLICY_INTENSITY_MAX = 32 };

struct policy_settings {
    enum policy_restart restart;
    /* crashes within period_ms after which it is given up: a crash loop is `intensity` processes */
    uint32_t intensity;
    msec period_ms;
    /* before the first restart; doubles with each crash in a row, up to backoff_max_ms */
    msec backoff_min_ms;
    msec backoff_max_ms;
    msec stable_ms; /* after this time in UP a crash starts the backoff from its minimum again */
    msec grace_ms;  /* from SIGTERM to the kill of the tree */
    /* from the spawn to REGISTER; after it the child is killed and counts as crashed */
    msec start_deadline_ms;
    /* up to this share of the backoff is left out at random: agents that died together do not come
     * back together. The same seed gives the same waits. */
    uint32_t jitter_permille;
    uint64_t seed;
    bool grouped; /* a group decides after a crash; intensity and backoff are the group's */
};

/* permanent, 5 crashes in 30 s, 100 ms to 5 s without jitter, stable after 30 s, 5 s of grace, 10 s
 * to register, in no group. */
struct policy_settings policy_defaults(void);

enum policy_event_type {
    POLICY_ON_START, /* at the daemon's start or by an operator; clears earlier crashes in FAILED */
    /* a process of an earlier daemon lives; it must register again like a new one */
    POLICY_ON_ADOPTED,
    POLICY_ON_SPAWNED,    /* the process exists */
    POLICY_ON_REGISTERED, /* the agent's REGISTER was accepted */
    /* its registration has ended (its lease is over, it left), but its process has not: it must
     * register again within grace_ms, or it is hung, is killed and counts as crashed */
    POLICY_ON_LOST,
    POLICY_ON_EXITED, /* the whole tree is gone, or the process was never created */
    POLICY_ON_DRAIN,  /* it ends its work within grace_ms, then as STOP; its end is no crash */
    POLICY_ON_STOP,   /* TERM, grace, KILL; stays stopped */
    POLICY_ON_KILL,   /* reported dead or hung: KILL at once, counts as a crash */
    POLICY_ON_TICK,   /* time has passed */
    POLICY_EVENT_COUNT
};

struct policy_event {
    enum policy_event_type type;
    msec now;
    bool clean;    /* EXITED: with status 0 */
    msec grace_ms; /* STOP: 0 = the child's own. LOST: until it counts as hung. DRAIN:
                      until it is told to end */
};

enum policy_command {
    POLICY_SPAWN,     /* start it, under a new instance id */
    POLICY_TERM,      /* SIGTERM to its main process */
    POLICY_KILL,      /* SIGKILL to the whole tree */
    POLICY_CAME_UP,   /* for events and logs, as are the next two */
    POLICY_RESTARTED, /* a later process of the child exists */
    POLICY_GAVE_UP,
    POLICY_CRASHED, /* for its group: it is HELD */
    POLICY_ENDED,   /* it ended by itself and is not restarted by its own rule */
    POLICY_COMMAND_COUNT
};

enum { POLICY_COMMANDS_MAX = 4 };

struct policy_commands {
    uint32_t n;
    enum policy_command at[POLICY_COMMANDS_MAX];
};

enum policy_then { POLICY_THEN_REST, POLICY_THEN_CRASH, POLICY_THEN_START };

/* Plain values, no pointers; initialised by policy_init. */
struct policy_child {
    struct policy_settings set;
    enum policy_state state;
    enum policy_then then; /* STOPPING: what the exit will mean */
    msec due;              /* when the next timer fires; MSEC_NEVER in a resting state */
    msec up_since;         /* UP */
    msec crash_at[POLICY_INTENSITY_MAX]; /* a ring: the latest crashes */
    uint32_t crashes;                    /* all crashes since an operator last started it */
    uint32_t streak; /* crashes since it was last stable: the exponent of the backoff */
    uint32_t spawns; /* processes asked for since policy_init */
    bool lost;       /* STARTING: its process was up before */
    bool drains;     /* STOPPING: not told to end yet */
};

/* Moves settings into their range (intensity 0 or too large, max below min). */
void policy_init(struct policy_child *child, const struct policy_settings *set);
/* Other settings for a child that may run; `grouped` stays. They count from the next event on. */
void policy_change(struct policy_child *child, const struct policy_settings *set);
/*
 * The wait before the streak-th restart in a row (>= 1): min, doubled up to max, less up to
 * jitter_permille of it. turn: another number for each wait of one seed.
 */
msec policy_backoff(msec min, msec max, uint32_t streak, uint32_t jitter_permille, uint64_t seed,
                    uint64_t turn);
/* Notes a crash in a ring of `intensity` entries (<= POLICY_INTENSITY_MAX), of which *crashes were
 * noted before. True: it is the intensity-th within the period. */
bool policy_note_crash(msec *ring, uint32_t *crashes, uint32_t intensity, msec period_ms, msec now);
/* Handles one event; clears *out first. An event that has no meaning in this state changes
 * nothing. */
void policy_handle(struct policy_child *child, const struct policy_event *ev,
                   struct policy_commands *out);
/* When to send the next TICK; MSEC_NEVER = no timer runs. */
msec policy_deadline(const struct policy_child *child);
/* Whether a process of the child exists or was asked for. */
bool policy_is_live(const struct policy_child *child);
/* "starting"; never NULL. */
const char *policy_state_name(enum policy_state state);
#endif
