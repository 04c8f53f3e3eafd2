/* Keeps other processes of the same user out of this one: its environment, memory and descriptors.
 */
#ifndef BASE_HIDE_H
#define BASE_HIDE_H

/* Marks the process as not dumpable, until the next exec: /proc/PID/environ, mem, fd and ptrace are
 * root's alone, and it leaves no core file. For a debugger or a core file the variable
 * BATON_DUMPABLE=1 leaves it as it is. Call it first in main. */
void hide_process(void);
#endif
