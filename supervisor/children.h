/* From the configured agents to the processes that should run: one child per instance. */
#ifndef SUPERVISOR_CHILDREN_H
#define SUPERVISOR_CHILDREN_H

#include "supervisor/config/config.h"
#include "supervisor/daemon.h"

/* Fills opt->specs and opt->agent_ids (kept until the process ends). */
BT_MUST_CHECK enum bt_code children_of_config(const struct config *c, struct daemon_options *opt,
                                              struct bt_error *err);
#endif
