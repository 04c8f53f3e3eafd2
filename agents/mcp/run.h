/* The agent around one server: its tools, and the handler of its skills. */
#ifndef MCP_RUN_H
#define MCP_RUN_H

#include "agents/mcp/server.h"
#include "agents/mcp/skills.h"
#include "protocol/limits.h"

enum { MCP_STATES_MAX = 64 };

/* A modern server's `requestState`, for the attempt that brings the person's answers. Kept in
 * memory: without it the server asks once more. */
struct mcp_state {
    char key[LIMIT_KEY_BYTES + 1];
    char *text;
};

struct mcp_agent {
    struct mcp_settings *settings;
    struct mcp_server server;
    struct arena arena;
    struct mcp_tool tools[LIMIT_SKILLS];
    uint32_t n_tools;
    pthread_mutex_t lock; /* guards states */
    struct mcp_state states[MCP_STATES_MAX];
    uint32_t next_state;
};

void mcp_run(struct bt_step *step, void *self);
#endif
