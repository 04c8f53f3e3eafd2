/* What may be asked of the supervisor of processes. */
#ifndef DISPATCH_PROCESS_H
#define DISPATCH_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

/* Of an agent without a live instance. */
struct agent_process {
    char why[512];  /* why its last process ended, or none was started; "" = none did */
    char log[4200]; /* the file with that process's output; "" = there is none */
};

/* A process that the configuration wants. Texts are valid until the next call. */
struct process_view {
    const char *name;   /* calc#1 */
    const char *state;  /* stopped, starting, up, backoff, stopping, failed, held */
    const char *group;  /* "" = none */
    const char *doing;  /* what an order or a reload does with it: "drains"; "" = nothing */
    const char *reason; /* why its last process ended; "" = none has */
    uint32_t pid;       /* 0 = none */
    uint32_t restarts;
    bool stale; /* it runs with an earlier configuration */
};

enum process_verb { PROCESS_START, PROCESS_STOP, PROCESS_RESTART };

struct process_order {
    enum process_verb verb;
    struct str agent_id;
    struct str process; /* the one of this name; empty = all of the agent */
    bool at_once;       /* STOP, RESTART: does not wait for the work that it has */
};

enum { PROCESS_NAMES_MAX = 64, PROCESS_NAME_BYTES = 81 };

/* The processes that an order is about. */
struct process_names {
    uint32_t n;
    char at[PROCESS_NAMES_MAX][PROCESS_NAME_BYTES];
};

/* Functions of the supervisor of processes; NULL = there is none. Called within a cycle. */
struct process_hooks {
    void *of;
    /* Whether the instance runs in a process of ours. */
    bool (*is_ours)(void *of, struct str instance_id);
    /* Its end, with all that it started. */
    void (*kill)(void *of, struct str instance_id);
    /* The registration of the instance has ended; its process may live. */
    void (*lost)(void *of, struct str instance_id);
    /* What is known about the agent's processes; false: none of them is ours. */
    bool (*about)(void *of, struct str agent_id, struct agent_process *ret);
    /* The ix-th process of an agent; false: it has fewer. */
    bool (*view)(void *of, struct str agent_id, uint32_t ix, struct process_view *ret);
    /* Begins what an operator wants. BT_NOT_FOUND: there is no such process of ours. */
    enum bt_code (*order)(void *of, const struct process_order *order, struct process_names *ret,
                          struct bt_error *err);
};
#endif
