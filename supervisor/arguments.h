/* The command line of batond. */
#ifndef SUPERVISOR_ARGUMENTS_H
#define SUPERVISOR_ARGUMENTS_H

#include "supervisor/config/config.h"

enum { FLAGS_MAX = 8 };

struct arguments {
    struct config_request request;
    struct config_flag flags[FLAGS_MAX];
    int ready_fd;
    bool was_full;          /* see daemon.h */
    uint32_t shard, shards; /* shards 0: not the process of a shard */
};

/* Exit code to leave with, after saying why, or -1 to go on. Texts are borrowed from argv. *a
 * begins zeroed, with ready_fd -1. */
int arguments_parse(int argc, char **argv, struct arguments *a);
#endif
