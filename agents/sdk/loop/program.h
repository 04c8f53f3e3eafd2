/* The program around an agent's definition (agent.c): what bt_agent_main and bt_agent_open share.
 */
#ifndef SDK_LOOP_PROGRAM_H
#define SDK_LOOP_PROGRAM_H

#include "agents/sdk/card.h"
#include "agents/sdk/options.h"

struct program {
    const struct bt_agent_def *def;
    struct options opt;
    struct card card;
    void *self;
    bool made; /* init() has succeeded: done() follows */
};

/* Reads arguments and environment, and calls init(); or prints what --help, --version and --card
 * ask for. opt.mode says which. shards: it may go on in several processes, one for each shard. The
 * caller ends *p, also after a failure. */
BT_MUST_CHECK enum bt_code program_begin(struct program *p, const struct bt_agent_def *def,
                                         int argc, char **argv, bool shards, struct bt_error *err);
/* Calls done() and frees what it has. */
void program_end(struct program *p);
uint32_t program_capacity(const struct program *p);
#endif
