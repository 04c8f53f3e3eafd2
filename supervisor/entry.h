/* The program batond as one call. */
#ifndef SUPERVISOR_ENTRY_H
#define SUPERVISOR_ENTRY_H

/* Reads the command line and the configuration, then is a daemon, a node of a fleet or a spawner
 * until that ends. Returns the exit code (daemon.h). Once a process, before any thread exists. */
int batond_entry(int argc, char **argv);
#endif
