/* The process of a server over stdio: what stdio.c and stdio_start.c share. */
#ifndef MCP_STDIO_INTERNAL_H
#define MCP_STDIO_INTERNAL_H

#include <sys/types.h>

#include "agents/mcp/server.h"

struct mcp_process {
    struct mcp_server *server;
    pid_t pid;
    int in;  /* our end of its standard input; does not block */
    int out; /* our end of its standard output */
    pthread_t reader;
    pthread_mutex_t write_lock; /* a line is written whole */
    pthread_mutex_t lock;       /* guards alive and waiting */
    pthread_cond_t answered;    /* monotonic */
    bool alive;
    struct mcp_call *waiting;
};

/* Starts the program of the settings in a session of its own, with two pipes. */
BT_MUST_CHECK enum bt_code process_spawn(const struct mcp_settings *settings, pid_t *ret_pid,
                                         int *ret_in, int *ret_out, struct bt_error *err);
/* Closes its standard input, and ends its process group when it is still there after a second.
 * Reaps it. */
void process_end(pid_t pid, int *in);
#endif
