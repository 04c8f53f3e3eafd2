/* A real batond of the build, in a directory of its own, on free ports, with one agent. */
#ifndef EDGE_CLIENT_DAEMON_H
#define EDGE_CLIENT_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

struct daemon {
    char dir[64];
    pid_t pid;
};

void daemon_make(struct daemon *d);  /* the directory and the configuration */
void daemon_start(struct daemon *d); /* until it serves; each start has other ports */
void daemon_kill(struct daemon *d);  /* SIGKILL */
void daemon_stop(struct daemon *d);  /* SIGTERM, must exit 0 */
void daemon_done(struct daemon *d);  /* ends it and removes the directory */
#endif
