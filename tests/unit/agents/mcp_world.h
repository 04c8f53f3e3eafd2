/* The mcp agent against a server of the test: the service of its process (service.h) over HTTP, or
 * a script of the shell over stdio. */
#ifndef TEST_MCP_WORLD_H
#define TEST_MCP_WORLD_H

#include "agents/mcp/run.h"
#include "tests/unit/agents/service.h"
#include "tests/unit/agents/steps.h"

/* Where the era of a server is found first, for service_raw and scripts: texts of service_text. */
#define MCP_IS_MODERN "{'jsonrpc':'2.0','id':1,'result':{'supportedVersions':['" MCP_MODERN "']}}"
#define MCP_IS_LEGACY "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'unknown'}}"
#define MCP_HELLO                                                                                  \
    "{'jsonrpc':'2.0','id':2,'result':{'protocolVersion':'" MCP_LEGACY "','capabilities':{}}}"

/* An agent with settings (members, in the form of service_text) and the tools "work" (unsafe) and
 * "read" (not); its server is not started. mcp_drop stops it and frees all. */
struct mcp_agent *mcp_use(const char *members);
void mcp_drop(void);
enum bt_code mcp_connect(struct bt_error *err);
/* Over HTTP, connected; modern or legacy with the session "s1". What it asked is forgotten. */
void mcp_http(bool modern, const char *members);
/* Over stdio, connected: a script of the shell that begins after the handshake. Its function r
 * reads a line and keeps it, s writes one with '"' for "~" and the id of the last
 * request for "@". */
void mcp_stdio(bool modern, const char *script, const char *members);
struct mcp_agent *mcp_used(void);
/* The script is gone: it cannot be started again. */
void mcp_lose(void);
/* What a script of mcp_stdio has read, a line each, without the handshake. */
const char *mcp_heard(void);
/* Runs the tool; parameters in the form of service_text. */
const char *mcp_do(const char *skill, const char *parameters);
void mcp_says(const char *reply, const char *part);
/* The next answer over HTTP, in the form of service_text. Requests are numbered: those of the
 * handshake are 1, and of a legacy server 2. */
void mcp_next(const char *message);
int mcp_start(void **state);
int mcp_stop(void **state);
int mcp_begin(void **state);
#endif
