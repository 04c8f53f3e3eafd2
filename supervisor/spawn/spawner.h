/*
 * The spawner: a single-threaded process between the daemon and its agents, the parent (and
 * subreaper) of all of them. It decides nothing: it starts, signals, kills and reaps on order, and
 * reports. It knows no nng, no journal, no policy. Because it is its own program image it can start
 * processes safely while the daemon has threads, PR_SET_PDEATHSIG is tied to its one thread, and it
 * outlives a kill -9 of the daemon for the orphan grace.
 */
#ifndef SPAWN_SPAWNER_H
#define SPAWN_SPAWNER_H

/* How a program is told to be the spawner: PROGRAM --spawner STATE_DIR LISTEN_FD ORPHAN_GRACE_MS
 * FLAGS */
#define SPAWNER_ARGUMENT "--spawner"

/* Never returns before the spawner's end. The value is the exit status: 0 = orderly, 2 = wrong
 * arguments, 1 = else. */
int spawner_main(int argc, char **argv);
#endif
