/* The command line as one call: main of `baton`. */
#ifndef CLI_ENTRY_H
#define CLI_ENTRY_H

/* Reads the command line, runs the verb, prints errors and what is buffered. Returns the exit code.
 * Once a process: the form of the output, errors and the deadline are of the process. */
int cli_entry(int argc, char **argv);
#endif
