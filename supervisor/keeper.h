/*
 * Who starts the agents of a node. Of the processes of its shards one that leads does, for all of
 * them: it has the lock of STATE/agents.lock of the node, and is connected to the spawner of that
 * directory. When it ends, another one that leads takes the lock and adopts the agents alive, as
 * the next daemon of one shard does. The others only need to know which processes live, because
 * these prove themselves by credentials of their own: STATE/agents.list of the node, a line
 * "INSTANCE AGENT" for each.
 *
 * The list may only be written by who has the lock. Loop thread.
 */
#ifndef SUPERVISOR_KEEPER_H
#define SUPERVISOR_KEEPER_H

#include <stdbool.h>
#include <sys/stat.h>

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "supervisor/auth/processes.h"

struct keeper {
    const char *dir; /* of the node; NULL: there is one shard, which starts its agents */
    int lock;        /* -1 = another one has it */
    msec look_at;    /* when to try again; MSEC_NEVER = it is ours */
    struct stat seen;
};

/* dir is borrowed. */
void keeper_init(struct keeper *k, const char *dir);
/* Whether the agents are ours to start; the first time that it is, *ret_new. */
bool keeper_take(struct keeper *k, msec now, bool *ret_new);
bool keeper_has(const struct keeper *k);
/* Before a process is started: its credential counts at every shard from now on. */
void keeper_add(const struct keeper *k, struct str instance_id, struct str agent_id);
/* Replaces the list. */
void keeper_write(const struct keeper *k, struct str lines);
/* The credentials of the processes in the list, when it is another one than at the last call.
 * *ret is allocated with calloc for the caller. False: it is the same, or cannot be read now. */
bool keeper_read(struct keeper *k, const struct process_keys *keys, struct credential **ret,
                 uint32_t *ret_n);
#endif
