/*
 * Which models there are and how they are reached: read once from settings, then constant. Keys are
 * read here, too, and are never part of what is printed.
 */
#ifndef LLM_CONFIG_H
#define LLM_CONFIG_H

#include "agents/llm/model/llm.h"
#include "agents/llm/model/secret.h"

enum { LLM_PROVIDERS_MAX = 8, LLM_HEADERS_MAX = 16 };

/* Millionths of the currency per token, which is the same as the currency per million tokens. */
struct llm_price {
    double input;
    double output;
    double cached; /* of input tokens that a cache served */
};

struct llm_provider {
    const char *id;
    enum llm_dialect dialect;
    const char *url; /* the whole of it, with the dialect's path */
    const char *model;
    const char *key;                          /* borrowed from the secrets; NULL = none */
    const char *key_header;                   /* NULL = the dialect's */
    const char *headers[LLM_HEADERS_MAX + 1]; /* "Name: value", NULL-terminated */
    const struct cJSON *extra;                /* laid over the body; or NULL */
    enum llm_output_mode output_mode;         /* where the ladder begins */
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
    msec max_wait_ms; /* before another attempt, whatever the server asks for */
    uint32_t breaker_failures;
    msec breaker_ms;
    bool priced;
    struct llm_price price;
};

struct llm_config {
    struct llm_provider providers[LLM_PROVIDERS_MAX]; /* in the order in which they are tried */
    uint32_t n;
    const char *record; /* a directory, or NULL */
    const char *replay; /* a directory, or NULL: nothing goes over the network */
    bool rules_only;    /* no key is loaded */
    const char *member; /* the member that is being read, for who tells what is wrong with it */
    struct secrets secrets;
    struct arena *arena;
    struct cJSON *tree; /* what the strings are borrowed from */
};

/* Reads {"providers": [...], "record", "replay"} (README). Takes the tree. With a replay no key is
 * looked for. BT_INVALID names the member and what would be right. Before threads exist: wipes the
 * environment variables that keys came from. The caller frees with llm_config_free. */
BT_MUST_CHECK enum bt_code llm_config_read(struct cJSON *tree, struct llm_config **ret,
                                           struct bt_error *err);
/* Told of each problem; pointer: where it is ("/providers/0/api"), text: what would be right. */
struct llm_problem_sink {
    void (*report)(void *of, const char *pointer, const char *text);
    void *of;
};
/* The same rules for the `llm` of a daemon's configuration, before the agent is started: all
 * problems are told, no key is looked for, nothing is kept. BT_INVALID after a problem; others:
 * BT_NOMEM and the like. The tree stays the caller's. */
BT_MUST_CHECK enum bt_code llm_config_check(struct cJSON *tree, const struct llm_problem_sink *to,
                                            struct bt_error *err);
/* Whether the agent will find its keys, of settings that have passed the rules: nothing is read but
 * what the system says of a file. The first that is missing: its pointer, and err says why. */
BT_MUST_CHECK enum bt_code llm_keys_check(const struct cJSON *tree, const struct secret_view *seen,
                                          char *ret_pointer, size_t cap, struct bt_error *err);
/* Accepts NULL. */
void llm_config_free(struct llm_config *c);

/* What so many tokens cost, rounded up; 0 without a price. */
uint64_t llm_cost(const struct llm_provider *p, const struct llm_usage *usage);
#endif
