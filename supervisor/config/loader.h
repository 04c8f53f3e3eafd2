/* Shared by the parts of config_load. */
#ifndef CONFIG_LOADER_H
#define CONFIG_LOADER_H

#include <cjson/cJSON.h>

#include "protocol/base/arena.h"
#include "supervisor/config/settings.h"
#include "supervisor/config/yaml.h"

enum layer_kind { LAYER_FLAGS, LAYER_ENV, LAYER_USER_FILE, LAYER_SYSTEM_FILE, LAYER_COUNT };

/* One source of settings; an absent one has no tree. The strongest comes first. */
struct layer {
    const char *file; /* set for the two files */
    cJSON *tree;
    struct yaml_marks *marks;
    bool shared; /* other users may read the file */
};

/* The result of config_load and everything that it owns. */
struct config_store {
    struct config c; /* first: config_free gets its address */
    struct arena arena;
    cJSON *trees[LAYER_COUNT];
    cJSON *empty_object; /* {} */
    struct config_entry *entries;
    uint32_t n_entries;
};

struct loader {
    const struct config_request *request;
    struct config_store *store;
    struct layer layers[LAYER_COUNT];
    struct buf *notes;
    uint32_t n_problems;
    struct bt_error *err; /* gets the first problem */
};

enum { ORIGIN_MAX = 320 };

/* Reports a problem: a line of notes, and the configuration is rejected. origin: "FILE:LINE:COL",
 * "env NAME", "flag", "default". */
void config_problem(struct loader *l, const char *origin, const char *fmt, ...) BT_PRINTF(3, 4);
/* Adds a line to notes. */
void config_warning(struct loader *l, const char *origin, const char *fmt, ...) BT_PRINTF(3, 4);
/* Sets err and returns BT_NOMEM. */
enum bt_code config_no_memory(struct loader *l);

/* Fills l->layers and checks each against the schema. Fails only for lack of memory or a missing
 * --config FILE. */
BT_MUST_CHECK enum bt_code layers_read(struct loader *l);
void layers_done(struct loader *l);
/* The value of a setting and its layer; NULL and LAYER_COUNT when the default applies. */
const cJSON *layers_find(const struct loader *l, const char *key, enum layer_kind *ret_layer);
/* The position of a key in a layer. */
void layer_origin(const struct loader *l, enum layer_kind layer, const char *key,
                  char ret[ORIGIN_MAX]);
/* Converts a key that was made of a JSON pointer to its plain form: ~1 is / and ~0 is ~. In place.
 * For output only: layer_origin needs the original key. */
void layer_key_plain(char *key);
/* The origin of a setting: its layer and position. */
void setting_origin(const struct loader *l, const char *key, char ret[ORIGIN_MAX]);

/* Reads and checks the agents (agents.c), checks rules beyond the schema (rules.c), lists the
 * settings (show.c). */
BT_MUST_CHECK enum bt_code config_agents_bind(struct loader *l);
/* Adds the orchestrator after the other agents when there is `llm`; `agents` has room for it
 * (llm.c). Then prices. */
BT_MUST_CHECK enum bt_code config_llm_bind(struct loader *l, struct config_agent *agents);
/* Checks that the orchestrator will find its keys. Call it last: it needs the state directory. */
BT_MUST_CHECK enum bt_code config_llm_keys_check(struct loader *l);
BT_MUST_CHECK enum bt_code config_prices_bind(struct loader *l);
/* keys.c */
BT_MUST_CHECK enum bt_code config_keys_bind(struct loader *l);
BT_MUST_CHECK enum bt_code config_rates_bind(struct loader *l);
/* schedules.c */
BT_MUST_CHECK enum bt_code config_schedules_bind(struct loader *l);
/* Another YAML file that the configuration names; *ret is the caller's. What is wrong with it is a
 * problem, and *ret NULL. Fails only for lack of memory. */
BT_MUST_CHECK enum bt_code layers_read_tree(struct loader *l, const char *file, cJSON **ret);
/* `groups`, and the groups that agents name (groups.c). */
BT_MUST_CHECK enum bt_code config_groups_bind(struct loader *l);
/* allowUids, allowEndpoints (peers.c). */
BT_MUST_CHECK enum bt_code config_peers_bind(struct loader *l);
/* The value of ${BATON_BIN}; NULL = no memory. */
const char *config_bin_dir(struct loader *l);
/*
 * A text of a layer with ${BATON_BIN} and ${CONFIG_DIR} replaced; a single "$" stays. NULL = no
 * memory, or *ret_why is set: another variable, or ${CONFIG_DIR} where there is no file
 * (variables.c).
 */
const char *config_expand(struct loader *l, enum layer_kind layer, const char *text,
                          const char **ret_why);
/* A value as compact JSON in which these two are replaced, and nothing else is. NULL = no memory.
 */
const char *config_expand_json(struct loader *l, enum layer_kind layer, const cJSON *v);
/* Checks the listener for other hosts and reads its paths (remote.c). */
BT_MUST_CHECK enum bt_code config_remote_bind(struct loader *l);
/* Replaces the variables of a path, which must be absolute then; "" stays. BT_NOMEM. */
BT_MUST_CHECK enum bt_code config_path_bind(struct loader *l, const char *key, const char **text);
BT_MUST_CHECK enum bt_code config_gateway_bind(struct loader *l);
void config_rules_check(struct loader *l);
BT_MUST_CHECK enum bt_code config_entries_make(struct loader *l, const char *state_origin);

/* A terminated copy in the arena, or NULL. */
const char *config_store_text(struct config_store *h, const char *text);
/* A value as compact JSON in the arena, or NULL. */
const char *config_store_json(struct config_store *h, const cJSON *v);

enum {
    CONFIG_WHY_BYTES = 256,
    CONFIG_KEY_BYTES = 96,    /* "agents.1023.instances" */
    CONFIG_NUMBER_BYTES = 32, /* a number in digits */
};

/* A member that is a number of 32 bits; the fallback for all else. */
uint32_t config_number(const cJSON *tree, const char *member, uint32_t fallback);

/* apart.c: secrets, user, paths, network, seccomp and limits of an entry of `agents`. */
BT_MUST_CHECK enum bt_code config_apart_bind(struct loader *l, enum layer_kind layer, uint32_t ix,
                                             const cJSON *tree, struct config_agent *a);
/* Refuses entries that cannot be set apart here. Call it when the state directory is known. */
void config_apart_check(struct loader *l);
/* "secret:NAME=value" of an entry of `secrets` (NAME or NAME=FILE); NULL: why says why there
 * is none; "" = there is no memory. */
const char *config_secret(struct loader *l, const char *entry, char why[CONFIG_WHY_BYTES]);
#endif
