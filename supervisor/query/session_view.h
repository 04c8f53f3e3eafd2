/* What of a session is shown: its messages to people, their context to agents. */
#ifndef QUERY_SESSION_VIEW_H
#define QUERY_SESSION_VIEW_H

#include "protocol/base/arena.h"
#include "supervisor/engine/engine.h"

enum {
    SESSION_TEXT_MAX = 8192,     /* of a person's message */
    SESSION_NEWEST = 20,         /* M072: messages that agents see */
    SESSION_CONTEXT_MAX = 65536, /* bytes of texts that agents see */
    SESSION_SUMMARY_MAX = 16384
};

struct session_messages {
    struct arena *arena;
    struct journal_message *at; /* oldest first; strings in the arena */
    uint32_t n;
};

/* The newest before `before` (0 = all), at most limit. BT_NOT_FOUND: there is no such session. */
BT_MUST_CHECK enum bt_code session_messages(struct engine *engine, struct str session_id,
                                            uint64_t before, uint32_t limit, struct arena *arena,
                                            struct session_messages *ret, struct bt_error *err);
struct session_context {
    struct doc messages; /* [{role, text, timestamp}], oldest first; absent when there are none */
    struct str summary;  /* of those before; at its end how many are left out */
    uint64_t left_out;   /* messages that are in neither */
};

/* M072: for agents. Texts of messages together are at most SESSION_CONTEXT_MAX. */
BT_MUST_CHECK enum bt_code session_context_of(struct engine *engine, struct str session_id,
                                              uint64_t before, struct arena *arena,
                                              struct session_context *ret, struct bt_error *err);
/* The text of the summary; empty when there is none, or it cannot be read. */
struct str session_summary(struct engine *engine, const struct journal_session *s,
                           struct arena *arena);
#endif
