/* What a server answers as the reply of a step. */
#ifndef MCP_CONTENT_H
#define MCP_CONTENT_H

#include "baton/agent.h"
#include "protocol/wire/doc.h"

/* tools/call: text, structured content, other content as it came; isError fails the step. */
void mcp_content_reply(struct bt_step *step, struct doc result, bool repeatable);
/* resources/read: one text is a text; anything else is the list `contents`. */
void mcp_content_resource(struct bt_step *step, struct doc result);
/* Any value as the step's data. */
void mcp_content_data(struct bt_step *step, struct doc value);
#endif
