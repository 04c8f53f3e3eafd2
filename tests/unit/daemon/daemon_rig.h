/*
 * batond in one process of a test: its journal is in a directory, its link in memory, the test is
 * the spawner, and has the time. Each case is a child process, which tells what it does: which
 * rooms it calls (all of them with `cycles`), what it logs, orders and answers.
 */
#ifndef UNIT_DAEMON_DAEMON_RIG_H
#define UNIT_DAEMON_DAEMON_RIG_H

#include "supervisor/daemon_internal.h"
#include "supervisor/journal/port.h"
#include "tests/support/house/fake_link.h"
#include "tests/unit/spawn/spawn_rig.h"

struct daemon_case {
    const char *title;
    const char *yaml;  /* its configuration; NULL = empty */
    const char *args;  /* of the command line, after the state and the configuration */
    const char *full;  /* of the environment: what a daemon before it says; NULL = nothing */
    void (*at)(int n); /* in its n-th wait, from 1; NULL = SIGTERM comes in the first one */
    void (*before)(void);
    bool starts;       /* tells its start, */
    bool cycles;       /* and the calls of each cycle */
    bool lives;        /* a process that is told to end does not, by itself */
    bool waits;        /* tells how long it waits */
    const char *fails; /* this function does, */
    int fails_at;      /* at this call, from 1; 0 = the first */
    enum bt_code with; /* BT_OK = BT_INTERNAL */
    bool all_fail;     /* and from then on */
};

enum { RIG_DUE = 6 };

/* Of the child. */
struct daemon_world {
    const struct daemon_case *is;
    struct daemon *d; /* NULL until its rooms are opened */
    msec now;
    int waits;
    int calls;    /* of the one that fails */
    msec late_ms; /* that the next wait takes longer */
    /* In the hands of the test. */
    int room; /* enum journal_room; -1: what the journal has */
    bool stalled, behind, full, foreign, standby_stops, other_owner;
    msec due[RIG_DUE]; /* of engine, spawner, roster, schedules, files, retention; 0 = as it is */
    msec canary_age;
    uint64_t reaper_ns, waited_ms;
    msec excused;
    uint32_t events; /* taken from the link in this cycle */
    msec event_ms;   /* that each takes */
    struct journal_rewound rewound;
    bool (*meanwhile)(void *self);
    void *meanwhile_self;
    struct retention_hooks retention;
    char instance[UUID_TEXT_LEN + 1]; /* of the process that was ordered last */
    char plan[64];                    /* of the last answer that names one */
    uint32_t answers, requests;
    int ready[2];
    int signals_fd, credentials_fd; /* -1: not opened */
};
extern struct daemon_world dw;

/* Runs the case; adds what it told. */
void daemon_tell(const struct daemon_case *is, struct buf *out);
/* From within: one line of it. */
void daemon_note(const char *fmt, ...) BT_PRINTF(1, 2);
/* What was told so far is not. */
void daemon_forget(void);
/* Tells what the spawner was told to do. */
void daemon_orders(void);
/* A request arrives, with the token; fields with "'" for '"'. */
void daemon_ask(const char *type, const char *fields);
/* The spawner reports. */
void daemon_report(enum packet_type type, const char *instance, pid_t pid, int status);
/* Ends the child when it is false. */
#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            daemon_note("BROKEN %s:%d", __FILE__, __LINE__);                                       \
            _Exit(96);                                                                             \
        }                                                                                          \
    } while (0)
#endif
