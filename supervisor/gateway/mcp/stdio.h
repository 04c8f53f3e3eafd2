/* MCP over stdin and stdout: a message a line, passed on to /mcp of a gateway and back. */
#ifndef GATEWAY_MCP_STDIO_H
#define GATEWAY_MCP_STDIO_H

#include "protocol/base/err.h"

/* Until stdin ends and every request is answered. Uses the gateway that the state directory names,
 * or starts one, which ends with this process. BT_UNAVAILABLE: there is none. */
BT_MUST_CHECK enum bt_code mcp_stdio(const char *state_dir, struct bt_error *err);
#endif
