/* Tools of a server as skills. */
#ifndef MCP_SKILLS_H
#define MCP_SKILLS_H

#include "agents/mcp/settings.h"

/* The parameter that carries what a person answered to the server's questions. */
#define MCP_ANSWERS "mcp_answers"
/* Skills that every server with resources has. */
#define MCP_SKILL_RESOURCES "mcp.resources"
#define MCP_SKILL_READ "mcp.read"

struct mcp_tool {
    const char *skill; /* the skill's id */
    const char *tool;  /* the tool's name */
    bool unsafe;
};

/* A tool as a skill, in the arena. BT_INVALID names what does not fit a card. */
BT_MUST_CHECK enum bt_code mcp_skill_make(const struct mcp_settings *s, struct arena *a,
                                          struct doc tool, struct bt_skill *ret_skill,
                                          struct mcp_tool *ret_tool, struct bt_error *err);
#endif
