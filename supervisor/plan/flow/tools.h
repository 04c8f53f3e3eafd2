/*
 * `tools` of a step: what its agent may call while it does the step.
 *
 *   tools = [ "<agent>" | "<agent>/<skill>" | {tool: "...", approval: bool} ]
 *
 * Without it the agent may call every skill of the agents that the plan may use. The most exact
 * entry wins: "<agent>/<skill>" before "<agent>"; of two alike the one with an approval.
 */
#ifndef PLAN_FLOW_TOOLS_H
#define PLAN_FLOW_TOOLS_H

#include <stdbool.h>

#include "protocol/base/str.h"
#include "protocol/wire/doc.h"

/* Whether the list permits the skill; *ret_approval: a person approves each call of it. */
bool plan_tool_permitted(struct doc tools, struct str agent_id, struct str skill,
                         bool *ret_approval);
/* The name in an entry ("agent" or "agent/skill"), and whether it wants an approval. */
struct str plan_tool_entry(struct doc entry, bool *ret_approval);
/* The parts of a name; an empty skill: all of the agent's. False when it is none. */
bool plan_tool_split(struct str tool, struct str *agent, struct str *skill);
#endif
