/*
 * `llm`: the models of the daemon. The daemon calls none itself: it starts an agent for that, the
 * orchestrator, like any other. And `prices`.
 */
#include <stdio.h>
#include <stdlib.h>

#include "agents/llm/model/config.h"
#include "supervisor/config/loader.h"

enum { CAPACITY = 4, ENV_MAX = 160, PATH_MAX_BYTES = 8192 };

#define ORCHESTRATOR "orchestrator"

static bool is_process_setting(const char *name)
{
    return strcmp(name, "capacity") == 0 || strcmp(name, "env") == 0 ||
           strcmp(name, "agentId") == 0;
}

/* The agent's settings: all of `llm` except the settings of its process, and its id. */
static const char *settings_of(struct loader *l, const cJSON *llm)
{
    cJSON *copy = cJSON_CreateObject();
    const cJSON *v;
    const char *json = NULL;
    bool ok = copy != NULL && cJSON_AddStringToObject(copy, "agentId", ORCHESTRATOR) != NULL;

    cJSON_ArrayForEach(v, llm)
    {
        cJSON *item = ok && !is_process_setting(v->string) ? cJSON_Duplicate(v, 1) : NULL;
        if (ok && !is_process_setting(v->string) &&
            (item == NULL || !cJSON_AddItemToObject(copy, v->string, item))) {
            cJSON_Delete(item);
            ok = false;
        }
    }
    if (ok) {
        json = config_store_json(l->store, copy);
    }
    cJSON_Delete(copy);
    return json;
}

static bool add_env(const char **list, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++) {
        if (strcmp(list[i], name) == 0) {
            return true;
        }
    }
    if (*n + 1 < ENV_MAX) {
        list[(*n)++] = name;
    }
    return *n + 1 < ENV_MAX;
}

/* Its own variables; with the keys also those of its keys, which are handed over and stand in no
 * environment. */
static const char *const *env_of(struct loader *l, const cJSON *llm, bool keys)
{
    const char **list = arena_alloc(&l->store->arena, ENV_MAX * sizeof *list);
    const cJSON *v;
    size_t n = 0;

    if (list == NULL) {
        return NULL;
    }
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(llm, "env"))
    {
        (void)(cJSON_IsString(v) && add_env(list, &n, v->valuestring));
    }
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(llm, "providers"))
    {
        const cJSON *key = cJSON_GetObjectItemCaseSensitive(v, "keyEnv");
        const cJSON *credential = cJSON_GetObjectItemCaseSensitive(v, "keyCredential");
        (void)(keys && cJSON_IsString(key) && add_env(list, &n, key->valuestring));
        (void)(cJSON_IsString(credential) && add_env(list, &n, "CREDENTIALS_DIRECTORY"));
    }
    return list;
}

/* The keys that are there, as secrets; llm_keys_check says which is missing. */
static const char *const *secrets_of(struct loader *l, const cJSON *llm)
{
    const char **list = arena_alloc(&l->store->arena, ENV_MAX * sizeof *list);
    const cJSON *v;
    size_t n = 0;

    if (list == NULL) {
        return NULL;
    }
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(llm, "providers"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "keyEnv"));
        char why[CONFIG_WHY_BYTES] = "";
        const char *secret = name == NULL || strchr(name, '=') != NULL || getenv(name) == NULL
                                 ? NULL
                                 : config_secret(l, name, why);
        if (secret != NULL && n + 1 < ENV_MAX) {
            list[n++] = secret;
        }
    }
    list[n] = NULL;
    return list;
}

struct problem_target {
    struct loader *l;
    enum layer_kind layer;
};

/* The key and the origin of "/providers/0/api" of `llm`. */
static void place_of(const struct loader *l, enum layer_kind layer, const char *pointer,
                     char key[ORIGIN_MAX], char origin[ORIGIN_MAX])
{
    (void)snprintf(key, ORIGIN_MAX, "llm%.300s", pointer);
    for (char *at = key; *at != '\0'; at++) {
        *at = *at == '/' ? '.' : *at;
    }
    layer_origin(l, layer, key, origin);
    layer_key_plain(key);
}

static void report_problem(void *of, const char *pointer, const char *text)
{
    const struct problem_target *to = of;
    char key[ORIGIN_MAX];
    char origin[ORIGIN_MAX];

    place_of(to->l, to->layer, pointer, key, origin);
    config_problem(to->l, origin, "%s: %s", key, text);
}

/* Checks `llm` by the agent's own rules. False: out of memory. */
static bool check(struct loader *l, enum layer_kind layer, cJSON *llm)
{
    struct problem_target to = {l, layer};
    const struct llm_problem_sink sink = {report_problem, &to};
    struct bt_error why = {0};
    const enum bt_code code = llm_config_check(llm, &sink, &why);

    return code == BT_OK || code == BT_INVALID;
}

static const char *const *command_of(struct loader *l)
{
    const char **command = arena_alloc(&l->store->arena, 2 * sizeof *command);
    const char *bin = config_bin_dir(l);
    char path[PATH_MAX_BYTES];

    if (command == NULL || bin == NULL) {
        return NULL;
    }
    (void)snprintf(path, sizeof path, "%s/baton-agent-llm", bin);
    command[0] = config_store_text(l->store, path);
    return command[0] != NULL ? command : NULL;
}

enum bt_code config_llm_bind(struct loader *l, struct config_agent *agents)
{
    enum layer_kind layer;
    const cJSON *llm = layers_find(l, "llm", &layer);
    const cJSON *capacity = cJSON_GetObjectItemCaseSensitive(llm, "capacity");
    struct config_agent *a = &agents[l->store->c.n_agents];
    char origin[ORIGIN_MAX];

    if (!cJSON_IsObject(llm)) {
        return BT_OK;
    }
    if (!check(l, layer, (cJSON *)(uintptr_t)llm)) {
        return config_no_memory(l);
    }
    for (uint32_t i = 0; i < l->store->c.n_agents; i++) {
        if (strcmp(agents[i].agent_id, ORCHESTRATOR) == 0) {
            layer_origin(l, layer, "llm", origin);
            config_problem(l, origin,
                           "llm: starts the agent \"" ORCHESTRATOR
                           "\", but agents has one of that name; leave one of them out");
            return BT_OK;
        }
    }
    *a = (struct config_agent){.agent_id = ORCHESTRATOR,
                               .command = command_of(l),
                               .env = env_of(l, llm, false),
                               .handover = secrets_of(l, llm),
                               .instances = {.min = 1, .max = 1},
                               .start_ms = 10000,
                               .capacity = cJSON_IsNumber(capacity) && capacity->valuedouble >= 1 &&
                                                   capacity->valuedouble <= 64
                                               ? (uint32_t)capacity->valuedouble
                                               : CAPACITY,
                               .restart = POLICY_PERMANENT,
                               .grace_ms = l->store->c.policy.shutdown_grace_ms,
                               .settings = llm,
                               .settings_json = settings_of(l, llm)};
    if (a->command == NULL || a->env == NULL || a->handover == NULL || a->settings_json == NULL) {
        return config_no_memory(l);
    }
    l->store->c.n_agents++;
    if (layers_find(l, "planner", &layer) == NULL) {
        l->store->c.planner = "llm"; /* goals go to the model that is there */
    }
    return BT_OK;
}

/* A missing key may come after the daemon's start, so it is not a mistake of the file. */
enum bt_code config_llm_keys_check(struct loader *l)
{
    struct config_store *h = l->store;
    enum layer_kind layer;
    const cJSON *llm = layers_find(l, "llm", &layer);
    struct config_agent *a = NULL;
    char pointer[ORIGIN_MAX];
    char key[ORIGIN_MAX];
    char origin[ORIGIN_MAX];
    char text[sizeof((struct bt_error *)0)->msg + ORIGIN_MAX];
    struct bt_error why;

    if (!cJSON_IsObject(llm) || h->c.n_agents == 0) {
        return BT_OK;
    }
    a = (struct config_agent *)(uintptr_t)&h->c.agents[h->c.n_agents - 1];
    const struct secret_view seen = {.env = env_of(l, llm, true), .cwd = h->c.state_dir};
    if (llm_keys_check(llm, &seen, pointer, sizeof pointer, &why) == BT_OK) {
        return BT_OK;
    }
    place_of(l, layer, pointer, key, origin);
    (void)snprintf(text, sizeof text, "%s: %s", key, why.msg);
    a->held_back = config_store_text(h, text);
    config_warning(l, origin, "%s; the agent \"" ORCHESTRATOR "\" %s", text,
                   l->request->check_only ? "would not be started from this environment"
                                          : "is not started without it");
    return a->held_back != NULL ? BT_OK : config_no_memory(l);
}

static double number(const cJSON *map, const char *name, double fallback)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(map, name);

    return cJSON_IsNumber(v) && v->valuedouble >= 0 ? v->valuedouble : fallback;
}

enum bt_code config_prices_bind(struct loader *l)
{
    enum layer_kind layer;
    const cJSON *list = layers_find(l, "prices", &layer);
    const size_t n = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    struct config_price *prices = arena_alloc(&l->store->arena, (n + 1) * sizeof *prices);
    const cJSON *v;
    uint32_t at = 0;

    if (prices == NULL) {
        return config_no_memory(l);
    }
    cJSON_ArrayForEach(v, list)
    {
        const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "agentId"));
        if (id != NULL && at < n) {
            const double input = number(v, "input", 0);
            prices[at++] = (struct config_price){.agent_id = id,
                                                 .input = input,
                                                 .output = number(v, "output", 0),
                                                 .cached = number(v, "cached", input)};
        }
    }
    l->store->c.prices = prices;
    l->store->c.n_prices = at;
    return BT_OK;
}
