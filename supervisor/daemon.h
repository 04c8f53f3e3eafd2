/*
 * The shell around the core: one loop thread, one wait, the cycle. See ARCHITECTURE.md.
 *
 *     take up to N events from the inbox -> core_handle each -> append every record in ONE journal
 * commit
 *     -> perform the actions in order -> publish the events
 */
#ifndef SUPERVISOR_DAEMON_H
#define SUPERVISOR_DAEMON_H

#include "supervisor/artifacts/sweep.h"
#include "supervisor/engine/engine.h"
#include "supervisor/processes.h"
#include "supervisor/reload.h"
#include "supervisor/retention/retention.h"
#include "supervisor/spawn/spawn.h"

/* A journal that several daemons share: one leads, the others wait. */
struct daemon_fleet {
    const char *url;  /* "" = none */
    const char *node; /* the name of this one; "" = the host's */
    uint32_t lease_ms;
    uint32_t shard, shards; /* shards 0 = there is one */
    const char *config;     /* hash of the configuration */
    const char *node_dir;   /* where the credentials are; NULL = the state directory */
};

struct daemon_options {
    struct engine_options engine;
    struct daemon_fleet fleet;
    const struct config *config; /* of the start; outlives the daemon */
    struct sweep_options artifacts;
    struct retention_options retention;
    uint64_t ballast_bytes;
    const uint32_t *allow_uids; /* users whose processes may connect, beside ours and root's */
    uint32_t n_allow_uids;
    uint32_t n_followers; /* the first ones may subscribe, too; the others are those of agents */
    uint32_t inbox;       /* messages between the transport's threads and the loop */
    struct reload *reload;
    bool was_full; /* the daemon before it had no room for a commit */
    int ready_fd;  /* gets "ready\n" when requests are served; -1 = none */
};

/* Set in the environment of a daemon that replaced itself: its --ready-fd was used up by the one
 * before. */
#define DAEMON_REPLACED "BATON_REPLACED"
/* Its value when a commit had no room. */
#define DAEMON_REPLACED_FULL "full"

/* Exit codes of batond. */
enum {
    EXIT_STOPPED = 0,
    EXIT_FAILURE_TO_START = 1,
    EXIT_USAGE = 2,
    EXIT_LOCKED = 3,
    EXIT_ESCALATED = 70, /* a group with `escalate: daemon` gave up */
    EXIT_JOURNAL_DEAD = 75
};

/*
 * Runs until SIGTERM, SIGINT or supervisor.drain, then drains and returns the exit code; the caller
 * leaves with _exit (never closing nng under traffic). Call before any thread exists. argv is for
 * replacing itself when nng has wedged.
 */
int daemon_run(const struct daemon_options *opt, char **argv);
#endif
