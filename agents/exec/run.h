/* Runs the command of a step and replies with its result. */
#ifndef EXEC_RUN_H
#define EXEC_RUN_H

#include "agents/exec/settings.h"
#include "baton/agent.h"

/* The handler of every skill; self is the struct exec_settings. Thread-safe. */
void exec_run(struct bt_step *step, void *self);
#endif
