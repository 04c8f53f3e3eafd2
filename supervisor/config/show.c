/* Lists the settings: value and origin of each. */
#include <inttypes.h>
#include <stdio.h>

#include "supervisor/config/loader.h"

static const char *const agent_members[] = {
    "agentId",  "command", "instances", "capacity", "restart", "env",
    "settings", "graceMs", "startMs",   "group",    "cwd",     "secrets",
    "user",     "paths",   "network",   "seccomp",  "limits"};
enum { SHOWN_BYTES = 128, NAME_SHOWN = 120 }; /* of NAME=***, and of the name */
enum { AGENT_MEMBERS = sizeof agent_members / sizeof agent_members[0] };

static enum bt_code add(struct loader *l, const char *key, const char *value, const char *origin)
{
    struct config_entry *e = &l->store->entries[l->store->n_entries];

    e->key = config_store_text(l->store, key);
    e->value = value;
    e->origin = config_store_text(l->store, origin);
    if (e->key == NULL || e->value == NULL || e->origin == NULL) {
        return config_no_memory(l);
    }
    l->store->n_entries++;
    return BT_OK;
}

static const char *quoted(struct config_store *h, const char *text)
{
    cJSON *v = cJSON_CreateString(text);
    const char *json = v == NULL ? NULL : config_store_json(h, v);

    cJSON_Delete(v);
    return json;
}

static enum bt_code add_setting(struct loader *l, const struct setting *s)
{
    char origin[ORIGIN_MAX];
    enum layer_kind layer;
    const cJSON *v = layers_find(l, s->key, &layer);
    char number[CONFIG_NUMBER_BYTES];

    setting_origin(l, s->key, origin);
    if (v != NULL) {
        return add(l, s->key, config_store_json(l->store, v), origin);
    }
    if (strcmp(s->key, "planner") == 0) { /* the one default that depends on others */
        return add(l, s->key, quoted(l->store, l->store->c.planner), origin);
    }
    (void)snprintf(number, sizeof number, "%.15g", s->number);
    return add(l, s->key,
               s->text != NULL ? quoted(l->store, s->text) : config_store_text(l->store, number),
               origin);
}

/* Writes NAME=VALUE as NAME=***: people copy this output. */
static const char *hidden_env(struct loader *l, const struct config_agent *a)
{
    cJSON *list = cJSON_CreateArray();
    const char *json = NULL;
    bool ok = list != NULL;

    for (const char *const *env = a->env; ok && *env != NULL; env++) {
        char shown[SHOWN_BYTES];
        size_t n = strcspn(*env, "=");
        cJSON *item;
        (void)snprintf(shown, sizeof shown, "%.*s%s", (int)(n < NAME_SHOWN ? n : NAME_SHOWN), *env,
                       (*env)[n] == '=' ? "=***" : "");
        item = cJSON_CreateString(shown);
        ok = item != NULL && cJSON_AddItemToArray(list, item);
        if (!ok) {
            cJSON_Delete(item);
        }
    }
    if (ok) {
        json = config_store_json(l->store, list);
    }
    cJSON_Delete(list);
    return json;
}

static const char *agent_default(struct loader *l, const char *member, const struct config_agent *a)
{
    char number[CONFIG_NUMBER_BYTES];

    if (strcmp(member, "restart") == 0) {
        return quoted(l->store, setting_restart_names[a->restart]);
    }
    static const char *const none[][2] = {
        {"settings", "{}"}, {"limits", "{}"},    {"secrets", "[]"},      {"cwd", "null"},
        {"user", "null"},   {"paths", "null"},   {"network", "\"any\""}, {"seccomp", "\"off\""},
        {"group", "null"},  {"startMs", "10000"}};

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        if (strcmp(member, none[i][0]) == 0) {
            return none[i][1];
        }
    }
    (void)snprintf(number, sizeof number, "%llu",
                   (unsigned long long)(strcmp(member, "graceMs") == 0 ? a->grace_ms : 1));
    return config_store_text(l->store, number);
}

static enum bt_code add_agent(struct loader *l, enum layer_kind layer, const cJSON *agent_entry,
                              uint32_t ix)
{
    const struct config_agent *a = &l->store->c.agents[ix];
    enum bt_code code = BT_OK;

    for (size_t i = 0; code == BT_OK && i < AGENT_MEMBERS; i++) {
        const char *member = agent_members[i];
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(agent_entry, member);
        char origin[ORIGIN_MAX] = "default";
        char key[CONFIG_KEY_BYTES];
        const char *value;
        (void)snprintf(key, sizeof key, "agents.%u.%s", ix, member);
        if (v != NULL) {
            layer_origin(l, layer, key, origin);
        }
        if (strcmp(member, "env") == 0) {
            value = hidden_env(l, a);
        } else {
            value = v != NULL ? config_store_json(l->store, v) : agent_default(l, member, a);
        }
        code = add(l, key, value, origin);
    }
    return code;
}

/* `groups` is one entry, when there are any. */
static enum bt_code add_groups(struct loader *l)
{
    enum layer_kind layer;
    const cJSON *groups = layers_find(l, "groups", &layer);
    char origin[ORIGIN_MAX];

    if (!cJSON_IsArray(groups) || l->store->c.n_groups == 0) {
        return BT_OK;
    }
    layer_origin(l, layer, "groups", origin);
    return add(l, "groups", config_store_json(l->store, groups), origin);
}

enum bt_code config_entries_make(struct loader *l, const char *state_origin)
{
    struct config_store *h = l->store;
    enum layer_kind layer;
    const cJSON *entries = layers_find(l, "agents", &layer);
    enum bt_code code;
    uint32_t n;
    uint32_t ix = 0;
    const struct setting *table = settings_table(&n);
    const cJSON *agent_entry;

    h->entries =
        arena_alloc(&h->arena, (2 + n + h->c.n_agents * AGENT_MEMBERS) * sizeof *h->entries);
    if (h->entries == NULL) {
        return config_no_memory(l);
    }
    code = add(l, "state", quoted(h, h->c.state_dir), state_origin);
    for (uint32_t i = 0; code == BT_OK && i < n; i++) {
        code = add_setting(l, &table[i]);
    }
    if (code == BT_OK) {
        code = add_groups(l);
    }
    cJSON_ArrayForEach(agent_entry, entries)
    {
        if (code == BT_OK) {
            code = add_agent(l, layer, agent_entry, ix++);
        }
    }
    return code;
}

void config_show(const struct config *c, bool with_origin, struct buf *out)
{
    uint32_t n;
    const struct config_entry *entries = config_entries(c, &n);

    for (uint32_t i = 0; i < n; i++) {
        if (with_origin) {
            buf_printf(out, "%-28s = %-24s # %s\n", entries[i].key, entries[i].value,
                       entries[i].origin);
        } else {
            buf_printf(out, "%-28s = %s\n", entries[i].key, entries[i].value);
        }
    }
}

/* Of this host, not of its fleet. */
static bool is_of_host(const char *key)
{
    static const char *const begins[] = {"listen.",   "log.",     "state", "fleet.node",
                                         "fleet.url", "gateway.", "allow"};

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        if (strncmp(key, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    return false;
}

void config_hash(const struct config *c, char ret[CONFIG_HASH_LEN + 1])
{
    uint32_t n = 0;
    const struct config_entry *e = config_entries(c, &n);
    uint64_t hash = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (!is_of_host(e[i].key)) {
            hash = hash * 31 + str_hash(str_from(e[i].key));
            hash = hash * 31 + str_hash(str_from(e[i].value));
        }
    }
    (void)snprintf(ret, CONFIG_HASH_LEN + 1, "%016" PRIx64, hash);
}
