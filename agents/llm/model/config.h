/*
 * The providers and how to reach them: read once from settings, then constant. Also loads keys;
 * output never includes them.
 */
#ifndef LLM_CONFIG_H
#define LLM_CONFIG_H

#include "agents/llm/model/llm.h"
#include "agents/web/secret.h"

enum { LLM_PROVIDERS_MAX = 8, LLM_HEADERS_MAX = 16 };

/* Millionths of the currency per token, which is the same as the currency per million tokens. */
struct llm_price {
    double input;
    double output;
    double cached; /* of input tokens served from a cache */
};

struct llm_provider {
    const char *id;
    enum llm_dialect dialect;
    const char *url; /* complete, with the dialect's path */
    const char *model;
    const char *key;                          /* borrowed from the secrets; NULL = none */
    const char *key_header;                   /* NULL = the dialect's */
    const char *headers[LLM_HEADERS_MAX + 1]; /* "Name: value", NULL-terminated */
    const struct cJSON *extra;                /* merged over the body; or NULL */
    enum llm_output_mode output_mode;         /* the first mode to try */
    bool stream;
    bool allow_http; /* beyond loopback */
    const char *ca_file;
    const char *proxy;
    const char *unix_socket;
    msec timeout_ms; /* of one attempt */
    msec connect_ms;
    msec idle_ms;     /* longest silence */
    size_t max_bytes; /* of an answer, decompressed */
    uint32_t attempts;
    msec backoff_ms;
    msec max_wait_ms; /* longest delay before another attempt, whatever the server asks for */
    uint32_t breaker_failures;
    msec breaker_ms;
    bool priced;
    struct llm_price price;
};

struct llm_config {
    struct llm_provider providers[LLM_PROVIDERS_MAX]; /* in the order of attempts */
    uint32_t n;
    const char *record; /* a directory, or NULL */
    const char *replay; /* a directory, or NULL: no request goes over the network */
    bool rules_only;    /* checks the rules and loads no key */
    const char *member; /* the member that is being read, for the error's position */
    struct secrets secrets;
    struct arena *arena;
    struct cJSON *tree; /* owns the strings */
};

/* Reads {"providers": [...], "record", "replay"} (README). Takes the tree. With a replay it needs
 * no key. BT_INVALID names the member and what would be right. Call it before threads exist: it
 * wipes the environment variables that keys came from. The caller frees with llm_config_free. */
BT_MUST_CHECK enum bt_code llm_config_read(struct cJSON *tree, struct llm_config **ret,
                                           struct bt_error *err);
/* Receives each problem. pointer: its place ("/providers/0/api"); text: what would be right. */
struct llm_problem_sink {
    void (*report)(void *of, const char *pointer, const char *text);
    void *of;
};
/* Checks the `llm` of a daemon's configuration by the same rules, before the agent starts. Reports
 * all problems, loads no key and keeps nothing. BT_INVALID after a problem; others: BT_NOMEM and
 * the like. The caller keeps the tree. */
BT_MUST_CHECK enum bt_code llm_config_check(struct cJSON *tree, const struct llm_problem_sink *to,
                                            struct bt_error *err);
/* Checks that the agent will find its keys, for settings that have passed the rules. Reads no file,
 * only its metadata. For the first missing key, returns its pointer and an error. */
BT_MUST_CHECK enum bt_code llm_keys_check(const struct cJSON *tree, const struct secret_view *seen,
                                          char *ret_pointer, size_t cap, struct bt_error *err);
/* Accepts NULL. */
void llm_config_free(struct llm_config *c);

/* The cost of the tokens, rounded up; 0 without a price. */
uint64_t llm_cost(const struct llm_provider *p, const struct llm_usage *usage);
#endif
