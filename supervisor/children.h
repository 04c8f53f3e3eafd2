/* From the configuration to what should run: one child per process of an agent, groups, and who may
 * connect. */
#ifndef SUPERVISOR_CHILDREN_H
#define SUPERVISOR_CHILDREN_H

#include "supervisor/config/config.h"
#include "supervisor/daemon.h"

/* Processes of one agent at most; the schema of the configuration has the same number. */
enum { CHILDREN_PER_AGENT = 64 };

/* The name of a process: "calc#1". number: 1 to CHILDREN_PER_AGENT. */
void child_name(const char *agent_id, uint32_t number, char ret[SPAWN_NAME_MAX + 1]);
/* Its number; 0 = the name is not of this agent. */
uint32_t child_number(const char *name, const char *agent_id);
/* The spec of a process of the agent with this index. Texts are borrowed from c and name. */
struct spawn_spec child_spec(const struct config *c, uint32_t agent, uint32_t number,
                             const char *name);
#define CHILD_GATEWAY "baton-gateway" /* the name of the process with the HTTP API: no agent */
/* Its spec, when c->gateway.command is not NULL. */
struct spawn_spec child_gateway_spec(const struct config *c);
/* Returns how many; texts are borrowed. */
size_t child_groups(const struct config *c, struct spawn_group_spec ret[SPAWN_GROUPS_MAX]);

/* Fills in what the engine and the link get from the configuration (kept until the process ends):
 * prices, users, endpoints. */
BT_MUST_CHECK enum bt_code children_of_config(const struct config *c, struct daemon_options *opt,
                                              struct bt_error *err);
/* Prices and endpoints alone, after a reload; kept until the process ends. */
BT_MUST_CHECK enum bt_code children_prices(const struct config *c, struct token_price **ret,
                                           struct bt_error *err);
/* The same for concurrency keys and rates. */
BT_MUST_CHECK enum bt_code children_rules(const struct config *c, struct engine_rule **ret,
                                          uint32_t *ret_n, struct bt_error *err);
#endif
