/* Messages of JSON-RPC 2.0 as MCP has them. Documents are borrowed from their bytes. */
#ifndef MCP_MESSAGE_H
#define MCP_MESSAGE_H

#include "protocol/wire/doc.h"

#define MCP_MODERN "2026-07-28"
#define MCP_LEGACY "2025-11-25"

enum mcp_kind { MCP_BAD, MCP_RESULT, MCP_ERROR, MCP_REQUEST, MCP_NOTE };

struct mcp_message {
    enum mcp_kind kind;
    struct doc id;     /* of a request, as it came */
    uint64_t id_u64;   /* of an answer to us; 0 = none of ours */
    struct str method; /* of a request or a note */
    struct doc body;   /* result, error or params; .ptr NULL = none */
};

/* Reads a message; MCP_BAD when it is none. */
struct mcp_message mcp_message_read(struct doc d);
/* A message as one line of JSON without a line break. params .ptr NULL = none. id 0 = a note. */
BT_MUST_CHECK enum bt_code mcp_message_write(uint64_t id, const char *method, struct doc params,
                                             struct buf *out, struct bt_error *err);
/* The answer to a request of the server: a result, or an error when code is not 0. */
BT_MUST_CHECK enum bt_code mcp_message_answer(struct doc id, struct doc result, int code,
                                              const char *text, struct buf *out,
                                              struct bt_error *err);
/* Our parameters with `_meta`: what a modern server needs in each request, and a token of progress
 * (0 = none). `members` has the other pairs, without a head. */
void mcp_message_params(bool modern, uint64_t progress, const char *traceparent,
                        const struct buf *members, uint32_t n_members, struct buf *out);
#endif
