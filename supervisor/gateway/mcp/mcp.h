/*
 * A server of the Model Context Protocol at /mcp: tools that run and look at plans, the skills of
 * agents as tools, plans as resources. It keeps no sessions: a session id only has what the client
 * can do, and the id of a question has the review that it is about. Both eras: 2026-07-28, and the
 * versions with a handshake up to 2025-11-25. One thread.
 */
#ifndef GATEWAY_MCP_H
#define GATEWAY_MCP_H

struct http;

/* POST /mcp. */
void mcp_serve(struct http *h);
#endif
