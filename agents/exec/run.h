/* A step becomes a program's run, and its end a reply. */
#ifndef EXEC_RUN_H
#define EXEC_RUN_H

#include "agents/exec/settings.h"
#include "baton/agent.h"

/* The handler of every skill; self is the struct exec_settings. Several threads may run it at the
 * same time. */
void exec_run(struct bt_step *step, void *self);
#endif
