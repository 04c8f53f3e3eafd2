/*
 * The three HTTP APIs of models: builds bodies from a request, reads answers from bodies. Pure
 * except for the heap: no clock, no socket, no file. Memory is bounded by the cap of
 * dialect_answer_init, whatever the bytes are.
 */
#ifndef LLM_DIALECT_H
#define LLM_DIALECT_H

#include "agents/llm/model/llm.h"
#include "protocol/wire/doc.h"

/* What a server was found to reject. */
enum dialect_quirk {
    DIALECT_NO_STREAM_OPTIONS = 1u << 0,
    DIALECT_OTHER_MAX_TOKENS = 1u << 1, /* max_completion_tokens for max_tokens */
    DIALECT_NO_TEMPERATURE = 1u << 2
};

struct dialect_request {
    const struct llm_request *request;
    const char *model;
    const struct cJSON *extra; /* members to merge over the body; or NULL */
    enum llm_output_mode output_mode;
    unsigned quirks;
    bool stream;
};

/* "openai", "anthropic", "ollama"; LLM_DIALECT_COUNT when it is none of them. */
enum llm_dialect dialect_from_name(struct str name);
const char *dialect_name(enum llm_dialect d);
/* The path after the base URL. */
const char *dialect_path(enum llm_dialect d);
/* The name of the header with the key, and the prefix of the key in it. */
const char *dialect_key_header(enum llm_dialect d, const char **ret_prefix);
/* The first output mode that the dialect has, from `output_mode` downwards. */
enum llm_output_mode dialect_output_mode(enum llm_dialect d, enum llm_output_mode output_mode);

/* The same for one schema: a dialect may not support every schema. */
enum llm_output_mode dialect_output_mode_for(enum llm_dialect d, enum llm_output_mode output_mode,
                                             const struct cJSON *schema);

/* Appends the JSON body. */
BT_MUST_CHECK enum bt_code dialect_body(enum llm_dialect d, const struct dialect_request *ask,
                                        struct buf *out, struct bt_error *err);

/* An answer as received so far. */
struct dialect_answer {
    enum llm_dialect dialect;
    struct buf text;
    struct buf tool;    /* arguments of the first tool call */
    struct buf refusal; /* the model's refusal */
    struct buf error;   /* the message of an error object; not yet redacted */
    char model[LLM_NAME_MAX];
    struct llm_usage usage;
    enum llm_finish finish;
    bool tool_called;
    bool done;   /* the server marked the end */
    bool failed; /* an error object was received, perhaps mid-stream */
};

void dialect_answer_init(struct dialect_answer *a, enum llm_dialect d, size_t max_bytes);
void dialect_answer_done(struct dialect_answer *a);
/* Reads one JSON value of the server: a whole body, or a chunk of a stream. Skips unknown members.
 * BT_LIMIT over the cap. */
BT_MUST_CHECK enum bt_code dialect_read(struct dialect_answer *a, struct doc value, bool chunk,
                                        struct bt_error *err);
/* Appends the message of an error body, in any form that servers use, to a->error. */
void dialect_read_error(struct dialect_answer *a, struct doc value);

/* Makes a server's JSON fit for the strict reader: removes a BOM; bad UTF-8, \u0000 and halves of
 * surrogate pairs become U+FFFD. Appends msgpack. */
BT_MUST_CHECK enum bt_code dialect_json(struct str json, size_t max_bytes, struct buf *out,
                                        struct bt_error *err);
#endif
