/* The work of config_load, shared by its parts. Private to this room. */
#ifndef CONFIG_LOADER_H
#define CONFIG_LOADER_H

#include <cjson/cJSON.h>

#include "protocol/base/arena.h"
#include "supervisor/config/settings.h"
#include "supervisor/config/yaml.h"

enum layer_kind { LAYER_FLAGS, LAYER_ENV, LAYER_USER_FILE, LAYER_SYSTEM_FILE, LAYER_COUNT };

/* One source of settings; an absent one has no tree. The strongest comes first. */
struct layer {
    const char *file; /* of the two files */
    cJSON *tree;
    struct yaml_marks *marks;
    bool shared; /* other users may read the file */
};

/* What config_load returns, and what it owns. */
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
    struct bt_error *err; /* holds the first problem */
};

enum { ORIGIN_MAX = 320 };

/* A line of notes and a reason to refuse. origin: "FILE:LINE:COL", "env NAME", "flag", "default".
 */
void config_problem(struct loader *l, const char *origin, const char *fmt, ...) BT_PRINTF(3, 4);
/* A line of notes. */
void config_warning(struct loader *l, const char *origin, const char *fmt, ...) BT_PRINTF(3, 4);
/* Sets err and returns BT_NOMEM. */
enum bt_code config_no_memory(struct loader *l);

/* Fills l->layers and checks each against the schema. Fails only for lack of memory or a --config
 * FILE that is missing. */
BT_MUST_CHECK enum bt_code layers_read(struct loader *l);
void layers_done(struct loader *l);
/* The value of a setting and the layer that gave it; NULL and LAYER_COUNT when the default holds.
 */
const cJSON *layers_find(const struct loader *l, const char *key, enum layer_kind *ret_layer);
/* Where a key of a layer stands. */
void layer_origin(const struct loader *l, enum layer_kind layer, const char *key,
                  char ret[ORIGIN_MAX]);
/* The key of a place, made of a JSON pointer, as people write it: ~1 is / and ~0 is ~. In place;
 * only for showing: layer_origin wants the key as it was. */
void layer_key_plain(char *key);
/* The origin of a setting, by both. */
void setting_origin(const struct loader *l, const char *key, char ret[ORIGIN_MAX]);

/* Binds and checks agents (agents.c), checks what no schema can say (rules.c), keeps the story
 * (show.c). */
BT_MUST_CHECK enum bt_code config_agents_bind(struct loader *l);
/* The orchestrator, when there is `llm`: an agent more, behind the others, for which there is room
 * (llm.c). And prices. */
BT_MUST_CHECK enum bt_code config_llm_bind(struct loader *l, struct config_agent *agents);
/* When all else is right and the state directory is known: whether the orchestrator will find its
 * keys. */
BT_MUST_CHECK enum bt_code config_llm_keys_check(struct loader *l);
BT_MUST_CHECK enum bt_code config_prices_bind(struct loader *l);
/* What ${BATON_BIN} stands for; NULL = no memory. */
const char *config_bin_dir(struct loader *l);
void config_rules_check(struct loader *l);
BT_MUST_CHECK enum bt_code config_entries_make(struct loader *l, const char *state_origin);

/* Terminated copy in the arena, or NULL. */
const char *config_store_text(struct config_store *h, const char *text);
/* A value as compact JSON in the arena, or NULL. */
const char *config_store_json(struct config_store *h, const cJSON *v);
#endif
