/* The agents of the configuration: the strongest file with the key `agents` gives the whole
 * list. */
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/config/loader.h"

/* An entry of `agents` while it is read into struct config. */
struct agent_entry {
    const cJSON *tree;
    enum layer_kind layer;
    uint32_t ix;
};

static void entry_problem(struct loader *l, const struct agent_entry *r, const char *member,
                          const char *text)
{
    char key[CONFIG_KEY_BYTES];
    char origin[ORIGIN_MAX];

    (void)snprintf(key, sizeof key, "agents.%u.%s", r->ix, member);
    layer_origin(l, r->layer, key, origin);
    config_problem(l, origin, "%s: %s", key, text);
}

/* A text with its variables; the problem with one is reported, and the text is then empty. NULL =
 * no memory. */
static const char *expand(struct loader *l, const struct agent_entry *r, const char *member,
                          const char *text)
{
    const char *why = NULL;
    const char *result = config_expand(l, r->layer, text, &why);

    if (why != NULL) {
        entry_problem(l, r, member, why);
        return "";
    }
    return result;
}

/* The texts of an array, NULL-terminated; values of env entries stay as they are. */
static const char *const *texts(struct loader *l, const struct agent_entry *r, const char *member,
                                bool expanded)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(r->tree, member);
    size_t n = cJSON_IsArray(array) ? (size_t)cJSON_GetArraySize(array) : 0;
    const char **list = arena_alloc(&l->store->arena, (n + 1) * sizeof *list);
    const cJSON *v = n == 0 ? NULL : array->child;

    if (list == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < n; v = v->next) {
        const char *text = cJSON_IsString(v) ? v->valuestring : "";
        list[i] = expanded ? expand(l, r, member, text) : text;
        if (list[i++] == NULL) {
            return NULL;
        }
    }
    return list;
}

/* A number, or {min, max, queue, upMs, downMs}. */
static struct config_instances instances(struct loader *l, const struct agent_entry *r)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(r->tree, "instances");
    struct config_instances ret;

    if (!cJSON_IsObject(v)) {
        const uint32_t n = config_number(r->tree, "instances", 1);
        return (struct config_instances){.min = n, .max = n};
    }
    ret = (struct config_instances){.min = config_number(v, "min", 1),
                                    .max = config_number(v, "max", 1),
                                    .queue = config_number(v, "queue", 1),
                                    .up_ms = config_number(v, "upMs", 1000),
                                    .down_ms = config_number(v, "downMs", 60000)};
    if (ret.max < ret.min) {
        entry_problem(l, r, "instances", "max must be at least min");
        ret.max = ret.min;
    }
    return ret;
}

static enum bt_code bind(struct loader *l, const struct agent_entry *r, struct config_agent *a)
{
    const cJSON *settings_tree = cJSON_GetObjectItemCaseSensitive(r->tree, "settings");
    const char *cwd = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r->tree, "cwd"));
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r->tree, "agentId"));
    const char *restart =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r->tree, "restart"));

    a->agent_id = id != NULL ? id : "";
    a->command = texts(l, r, "command", true);
    a->env = texts(l, r, "env", false);
    a->cwd = cwd == NULL ? NULL : expand(l, r, "cwd", cwd);
    a->instances = instances(l, r);
    a->start_ms = config_number(r->tree, "startMs", 10000);
    a->group = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r->tree, "group"));
    a->capacity = config_number(r->tree, "capacity", 1);
    a->restart =
        (enum policy_restart)setting_choice(setting_restart_names, restart, POLICY_PERMANENT);
    a->grace_ms = config_number(r->tree, "graceMs", (uint32_t)l->store->c.policy.shutdown_grace_ms);
    a->settings = cJSON_IsObject(settings_tree) ? settings_tree : l->store->empty_object;
    a->settings_json = config_expand_json(l, r->layer, a->settings);
    if (a->command == NULL || a->env == NULL || a->settings_json == NULL ||
        (cwd != NULL && a->cwd == NULL)) {
        return config_no_memory(l);
    }
    return BT_OK;
}

static void check_id(struct loader *l, const struct agent_entry *r,
                     const struct config_agent *agents)
{
    const char *id = agents[r->ix].agent_id;

    if (strcmp(id, "supervisor") == 0) { /* the sender of every first handoff */
        entry_problem(l, r, "agentId", "\"supervisor\" is the name of the supervisor itself");
    }
    if (strcmp(id, "baton-gateway") == 0) {
        entry_problem(l, r, "agentId", "\"baton-gateway\" is the process of `gateway`");
    }
    for (uint32_t i = 0; i < r->ix && id[0] != '\0'; i++) {
        if (strcmp(agents[i].agent_id, id) == 0) {
            entry_problem(l, r, "agentId",
                          "stands here twice; raise instances to run several of one agent");
            return;
        }
    }
}

/* Secrets belong in the environment or in a file of their own. */
static void check_secrets(struct loader *l, const struct agent_entry *r,
                          const struct config_agent *a)
{
    const struct layer *layer = &l->layers[r->layer];

    for (const char *const *env = a->env; layer->shared && *env != NULL; env++) {
        if (strchr(*env, '=') != NULL) {
            config_warning(
                l, layer->file,
                "others may read this file, and it sets variables of agent %.64s; if one is a "
                "secret, write "
                "only its name (the daemon's own value is passed on) or run chmod 600 %s",
                a->agent_id, layer->file);
            return;
        }
    }
}

static void check_counts(struct loader *l, const struct agent_entry *last)
{
    const struct config *c = &l->store->c;
    char origin[ORIGIN_MAX];
    uint64_t instances = 0;

    for (uint32_t i = 0; i < c->n_agents; i++) {
        instances += c->agents[i].instances.max;
    }
    layer_origin(l, last->layer, "agents", origin);
    if (c->n_agents > c->limits.max_agents) {
        config_problem(l, origin, "agents: %u of them, but limits.maxAgents is %u", c->n_agents,
                       c->limits.max_agents);
    }
    if (instances > LIMIT_PROCESSES) {
        config_problem(l, origin,
                       "agents: %llu instances in all, but the daemon starts at most %d processes; "
                       "others may connect by themselves",
                       (unsigned long long)instances, LIMIT_PROCESSES);
    } else if (instances > c->limits.max_instances) {
        config_problem(l, origin, "agents: %llu instances in all, but limits.maxInstances is %u",
                       (unsigned long long)instances, c->limits.max_instances);
    }
}

enum bt_code config_agents_bind(struct loader *l)
{
    struct agent_entry r = {.ix = 0};
    const cJSON *list = layers_find(l, "agents", &r.layer);
    size_t n = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    struct config_agent *agents = arena_alloc(&l->store->arena, (n + 2) * sizeof *agents);
    const cJSON *v = n == 0 ? NULL : list->child;
    enum bt_code code = BT_OK;

    if (agents == NULL) {
        return config_no_memory(l);
    }
    for (; code == BT_OK && v != NULL; v = v->next, r.ix++) {
        r.tree = v;
        code = bind(l, &r, &agents[r.ix]);
        if (code == BT_OK) {
            code = config_apart_bind(l, r.layer, r.ix, v, &agents[r.ix]);
        }
        if (code == BT_OK) {
            check_id(l, &r, agents);
            check_secrets(l, &r, &agents[r.ix]);
        }
    }
    if (code == BT_OK) {
        l->store->c.agents = agents;
        l->store->c.n_agents = (uint32_t)n;
        code = config_llm_bind(l, agents);
    }
    if (code == BT_OK && n > 0) {
        check_counts(l, &r);
    }
    return code;
}
