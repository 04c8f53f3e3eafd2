/* What may be asked of the supervisor of processes. */
#ifndef DISPATCH_PROCESS_H
#define DISPATCH_PROCESS_H

#include <stdbool.h>

#include "protocol/base/str.h"

/* Of an agent without a live instance. */
struct agent_process {
    char why[512];  /* why its last process ended, or none was started; "" = none did */
    char log[4200]; /* the file with that process's output; "" = there is none */
};

/* Functions of the supervisor of processes; NULL = there is none. Called within a cycle. */
struct process_hooks {
    void *of;
    /* Whether the instance runs in a process of ours. */
    bool (*is_ours)(void *of, struct str instance_id);
    /* Its end, with all that it started. */
    void (*kill)(void *of, struct str instance_id);
    /* What is known about the agent's processes; false: none of them is ours. */
    bool (*about)(void *of, struct str agent_id, struct agent_process *ret);
};
#endif
