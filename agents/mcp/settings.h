/* The settings of the mcp agent: one MCP server, and which of its tools become skills. */
#ifndef MCP_SETTINGS_H
#define MCP_SETTINGS_H

#include "agents/sdk/settings/fields.h"
#include "agents/web/web.h"
#include "baton/agent.h"
#include "protocol/base/arena.h"

enum { MCP_LIST_MAX = 64, MCP_MESSAGE_MAX = 16 * 1024 * 1024 };

struct mcp_settings {
    struct arena arena;
    struct secrets secrets;
    const char *agent_id;        /* NULL = not given */
    const char *const *command;  /* a server over stdio; NULL = url */
    const char *const *env;      /* "NAME=value"; or NULL */
    const char *const *pass_env; /* names taken from the agent's environment; or NULL */
    const char *cwd;             /* NULL = the agent's directory */
    const char *url;             /* a server over Streamable HTTP; NULL = command */
    struct doc headers;          /* of every request: name → text */
    const char *bearer;          /* borrowed from the secrets; NULL = none */
    struct web_policy policy;
    const char *const *tools; /* globs; NULL = all */
    struct doc effects;       /* glob → none, idempotent, unsafe; over what tools say */
    uint64_t timeout_ms;      /* of one call */
};

/* Reads the settings' JSON. BT_INVALID names the member and what would be right. The caller
 * frees. */
BT_MUST_CHECK enum bt_code mcp_settings_read(const char *json, struct mcp_settings **ret,
                                             struct bt_error *err);
/* Wipes secrets. Accepts NULL. */
void mcp_settings_free(struct mcp_settings *s);
/* Whether a tool becomes a skill. */
bool mcp_settings_want(const struct mcp_settings *s, struct str tool);
#endif
