/*
 * The spawner: a single-threaded process between the daemon and its agents, and the parent (and
 * subreaper) of all of them. It makes no decisions: it starts, signals, kills and reaps on order,
 * and reports. It uses no nng, no journal and no policy. As a program image of its own it can fork
 * safely while the daemon has threads. PR_SET_PDEATHSIG of the agents is tied to its one thread. It
 * survives a kill -9 of the daemon for the orphan grace.
 */
#ifndef SPAWN_SPAWNER_H
#define SPAWN_SPAWNER_H

/* The first argument of a spawner: PROGRAM --spawner STATE_DIR LISTEN_FD ORPHAN_GRACE_MS FLAGS */
#define SPAWNER_ARGUMENT "--spawner"

/* FLAGS, as a decimal number. The others are the enum log_level up to which it logs. */
enum { SPAWNER_NO_CGROUP = 1, SPAWNER_LOG_JOURNAL = 2, SPAWNER_LOG_LEVEL = 4 };

/* Returns at the spawner's end. The value is the exit status: 0 = orderly, 2 = wrong arguments, 1 =
 * other errors. */
int spawner_main(int argc, char **argv);
#endif
