/* Shared by serve.c (messages), tools.c, call.c (what a tool does), run.c (plans that are followed)
 * and resources.c. */
#ifndef GATEWAY_MCP_INTERNAL_H
#define GATEWAY_MCP_INTERNAL_H

#include "supervisor/gateway/http.h"
#include "supervisor/gateway/json.h"
#include "supervisor/gateway/mcp/mcp.h"

#define MCP_MODERN "2026-07-28"
#define MCP_LEGACY "2025-11-25"

enum {
    RPC_PARSE = -32700,
    RPC_REQUEST = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603
};

/* One request; the docs point into message. */
struct mcp {
    struct http *h;
    struct buf message;
    struct doc id, params;
    struct str method;
    bool modern;
    bool elicits;                        /* the client shows forms to its user */
    char step_agent[65], step_skill[65]; /* of a tool that is a skill */
};

/* ---- serve.c: answers ---- */

/* Opens {"jsonrpc", "id", "result": {: the caller writes members, then mcp_end. */
void mcp_begin(const struct mcp *m, struct buf *out);
void mcp_end(struct buf *out);
/* Members of results that clients may keep: they may not. */
void mcp_no_cache(const struct mcp *m, struct buf *out);
/* The request is answered with what is in h->out; it may wait. */
void mcp_answer(const struct mcp *m);
void mcp_refuse(const struct mcp *m, int code, const char *message);
void mcp_error(struct buf *out, struct doc id, int code, struct str message);
/* Asks the daemon; the request waits, or is refused. `done` gets the mcp. */
void mcp_ask(struct mcp *m, enum msg_type type, enum msg_type answer, bool reads, struct doc fields,
             call_done *done);
/* The member of params; absent: .ptr NULL. */
struct doc mcp_param(const struct mcp *m, const char *name);

/* ---- tools.c ---- */

struct mcp_tool {
    const char *name, *title, *description, *schema, *annotations;
    const char *route; /* the request of the wire */
    bool runs;         /* a plan, which is followed */
};
const struct mcp_tool *mcp_tool_find(struct str name);
void mcp_list_tools(struct mcp *m);
/* Whether this is the tool of a skill of that agent. */
bool mcp_is_skill(struct str tool, struct str agent, struct str skill);

/* ---- call.c ---- */

void mcp_call_tool(struct mcp *m);
/* content and isError of a refusal of the daemon. */
void mcp_put_problem(struct buf *out, const struct problem *p);
void mcp_put_text(struct buf *out, struct str text);

/* ---- recipes.c ---- */

/* Elements of the list of tools. */
void mcp_put_recipes(const struct mcp *m, struct buf *out);
/* Runs the recipe whose tool is called; `done` gets the answer of plan.submit. False: there is no
 * such recipe. */
bool mcp_run_recipe(struct mcp *m, call_done *done);

/* ---- run.c ---- */

/* Follows a plan from this event on; the answer is its result. */
void mcp_follow(struct mcp *m, struct str plan_id, uint64_t from_seq);
/* What a person answered to a question by its id: the decision. */
void mcp_take_decision(struct mcp *m, struct str id, struct doc response, call_done *done);
/* The client does not want the answer to this request any more. */
void mcp_cancel(const struct mcp *m, struct doc request_id);

/* ---- resources.c ---- */

void mcp_list_resources(struct mcp *m);
void mcp_list_templates(struct mcp *m);
void mcp_read_resource(struct mcp *m);
#endif
