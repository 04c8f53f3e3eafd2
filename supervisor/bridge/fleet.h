/*
 * A fleet of several shards: a process of this program for each, because one that fails, waits or
 * is killed then holds up no other. They end with this one, also when it is killed. One thread.
 */
#ifndef BRIDGE_FLEET_H
#define BRIDGE_FLEET_H

#include "supervisor/bridge/options.h"

/* Runs `argv --shard N/SHARDS` for each until all have ended (--once), or one has or stop_fd, a
 * signalfd of the signals to end, became readable: then it ends the others. Returns the exit code:
 * the first one that is not 0. SIGCHLD must be blocked. */
int fleet_run(const struct options *o, char **argv, uint32_t shards, int stop_fd);
#endif
