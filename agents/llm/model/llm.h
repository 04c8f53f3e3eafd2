/*
 * The request to a language model and its reply: plain values, the same for every dialect.
 * Independent of plans, steps and the daemon.
 */
#ifndef LLM_LLM_H
#define LLM_LLM_H

#include <stdbool.h>

#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

struct cJSON;

enum llm_dialect { LLM_OPENAI, LLM_ANTHROPIC, LLM_OLLAMA, LLM_DIALECT_COUNT };

/* How the answer's structure is enforced, the strongest first. */
enum llm_output_mode {
    LLM_OUTPUT_MODE_SCHEMA, /* the server enforces the schema */
    LLM_OUTPUT_MODE_OBJECT, /* the server enforces JSON, the prompt contains the schema */
    LLM_OUTPUT_MODE_TEXT,   /* only the prompt asks for it */
    LLM_OUTPUT_MODE_COUNT
};

enum llm_finish {
    LLM_FINISH_UNKNOWN,
    LLM_FINISH_STOP,
    LLM_FINISH_LENGTH, /* the answer is cut off */
    LLM_FINISH_REFUSAL,
    LLM_FINISH_TOOLS,
    LLM_FINISH_COUNT
};

enum { LLM_TURNS_MAX = 16, LLM_NAME_MAX = 128, LLM_TOKENS_SANE = 100000000 };

/* One turn of the conversation. User turns and answers alternate; the first is the user's. */
struct llm_turn {
    const char *text; /* UTF-8 */
    bool by_model;
};

struct llm_request {
    const char *system; /* NULL = none */
    const struct llm_turn *turns;
    uint32_t n_turns;
    const struct cJSON *schema; /* NULL = any text */
    const char *schema_name;    /* [A-Za-z0-9_-], at most 64 bytes; required with a schema */
    /* Top-level members that the schema requires, as servers demand, but the reader does not.
     * NULL-terminated. May be NULL. */
    const char *const *optional;
    /* The reader takes no notice of top-level members that the schema does not have. */
    bool extra;
    /* Checks what a schema cannot express; BT_INVALID with a sentence for the model. May be
     * NULL. */
    enum bt_code (*check)(void *self, const struct cJSON *value, struct bt_error *err);
    /* The caller judges the answer: no repair turn. reply.json is the one JSON value of the answer,
     * or NULL when there is none. */
    bool as_is;
    /* Receives the answer as it is generated: pieces of the final reply.text, without reasoning
     * and keys. A body that is not streamed is one piece. reset (the piece is then empty):
     * earlier pieces are void, because the request is repeated, or they were reasoning. When the
     * call fails, all pieces are void. Called on the calling thread, within llm_complete. May be
     * NULL. */
    void (*on_text)(void *self, bool reset, struct str piece);
    uint64_t max_tokens;      /* of the answer; at least 1 */
    double temperature;       /* below 0 = the model's default */
    msec deadline;            /* for the whole call, retries included */
    bool (*stop)(void *self); /* polled while waiting, on the calling thread; may be NULL */
    void *self;
};

struct llm_usage {
    uint64_t input; /* tokens; cached ones included */
    uint64_t output;
    uint64_t cached;
    bool known; /* false: estimates, because the server sent no usage or an implausible one */
};

struct llm_reply {
    struct buf text;        /* cleaned: UTF-8, no reasoning, no secrets */
    struct cJSON *json;     /* with a schema: the value that fits it */
    struct llm_usage usage; /* of all attempts with an answer */
    uint64_t cost_micros;   /* by the provider's price table */
    char provider[LLM_NAME_MAX];
    char model[LLM_NAME_MAX];      /* as the server reported it */
    char request_id[LLM_NAME_MAX]; /* of the server; or "" */
    enum llm_finish finish;
    enum llm_output_mode output_mode;
    /* Of a failure: when the server accepts the next request; without any request (calls 0), when a
     * breaker allows one. MSEC_NEVER = unknown. */
    msec retry_after_ms;
    uint32_t calls;   /* HTTP requests that were made */
    uint32_t repairs; /* turns that reported a mistake to the model */
    msec took_ms;
};

#endif
