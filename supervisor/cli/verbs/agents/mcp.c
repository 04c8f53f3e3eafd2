/* mcp: baton-gateway as a server of MCP over stdin and stdout. */
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/verbs/agents/gateway.h"
#include "supervisor/cli/verbs/verbs.h"

enum cli_exit verb_mcp(struct cli *cli)
{
    const char *state = cli_state_dir(cli);

    if (state == NULL) {
        return CLI_INTERNAL;
    }
    gateway_become(state, "--mcp");
    cli_error("baton-gateway did not start: it is not beside this program; it is built where "
              "libmicrohttpd is there");
    return CLI_INTERNAL;
}
