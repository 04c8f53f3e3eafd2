/* policy.agents: which agents a plan may use, as globs. */
#ifndef PLAN_PERMIT_H
#define PLAN_PERMIT_H

#include "protocol/wire/doc.h"

/* Whether a glob of the list (or the one text) fits the id. An absent list permits every agent. "*"
 * stands for any characters, "?" for one. */
bool plan_permits(struct doc globs, struct str agent_id);

/* The globs of a canonical document, or of a map of policy fields; absent = every agent. */
struct doc plan_permitted_of(struct doc document);

/* policy.waitForAgents of the same: the plan may use agents that are not there. */
bool plan_waits_for_agents(struct doc document);
#endif
