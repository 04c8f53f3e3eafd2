/*
 * What is asked of a language model, and what came back: plain values, the same for every dialect.
 * Knows nothing of plans, steps or the daemon: an agent uses it as the daemon does.
 */
#ifndef LLM_LLM_H
#define LLM_LLM_H

#include <stdbool.h>

#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

struct cJSON;

enum llm_dialect { LLM_OPENAI, LLM_ANTHROPIC, LLM_OLLAMA, LLM_DIALECT_COUNT };

/* How the answer's form is asked for, the strongest first. */
enum llm_output_mode {
    LLM_OUTPUT_MODE_SCHEMA, /* the server holds the model to the schema */
    LLM_OUTPUT_MODE_OBJECT, /* the server holds it to JSON, the prompt names the schema */
    LLM_OUTPUT_MODE_TEXT,   /* only the prompt asks */
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

/* One turn of the conversation; user turns and answers alternate, the first is the user's. */
struct llm_turn {
    const char *text; /* UTF-8 */
    bool by_model;
};

struct llm_request {
    const char *system; /* NULL = none */
    const struct llm_turn *turns;
    uint32_t n_turns;
    const struct cJSON *schema; /* NULL = any text will do */
    const char *schema_name;    /* [A-Za-z0-9_-], at most 64 bytes; needed with a schema */
    /* Members that the schema requires of the whole (servers want that), and the reader does not;
     * ends with NULL. May be NULL. */
    const char *const *optional;
    /* What no schema can say; BT_INVALID with a sentence for the model. May be NULL. */
    enum bt_code (*check)(void *self, const struct cJSON *value, struct bt_error *err);
    /* The schema is only asked for, the caller judges: no repair turn, reply.json is the one JSON
     * value of the answer, or NULL when there is none. */
    bool as_is;
    /* The answer while it comes, for who watches: pieces of what will be reply.text, without
     * reasoning and keys; a body that comes whole is one piece. anew (the piece is empty then):
     * what came before is void, because the answer is asked for again, or was reasoning. When the
     * call fails, all is void. Called by the asking thread, within llm_complete. May be NULL. */
    void (*on_text)(void *self, bool reset, struct str piece);
    uint64_t max_tokens;      /* of the answer; at least 1 */
    double temperature;       /* below 0 = the model's own */
    msec deadline;            /* for everything, retries included */
    bool (*stop)(void *self); /* polled while waiting, by the asking thread; may be NULL */
    void *self;
};

struct llm_usage {
    uint64_t input; /* tokens; cached ones included */
    uint64_t output;
    uint64_t cached;
    bool known; /* false: the server did not say, or said nonsense; then these are estimates */
};

struct llm_reply {
    struct buf text;        /* cleaned: UTF-8, no reasoning, no secrets */
    struct cJSON *json;     /* with a schema: the value that fits it */
    struct llm_usage usage; /* of all attempts whose answer came */
    uint64_t cost_micros;   /* by the provider's price table */
    char provider[LLM_NAME_MAX];
    char model[LLM_NAME_MAX];      /* as the server named it */
    char request_id[LLM_NAME_MAX]; /* the server's; or "" */
    enum llm_finish finish;
    enum llm_output_mode output_mode;
    /* A failure: when a server wants to be asked again, or, when none was asked (calls 0), when a
     * breaker will let one be; MSEC_NEVER = not known. */
    msec retry_after_ms;
    uint32_t calls;   /* HTTP requests that were made */
    uint32_t repairs; /* turns in which the model was told what was wrong */
    msec took_ms;
};

#endif
