/* `groups`: agents that are supervised together, and which agents name them. */
#include <stdio.h>

#include "supervisor/config/loader.h"

static void problem(struct loader *l, enum layer_kind layer, const char *key, const char *text)
{
    char origin[ORIGIN_MAX];

    layer_origin(l, layer, key, origin);
    config_problem(l, origin, "%s: %s", key, text);
}

static const char *text(const cJSON *tree, const char *member)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, member));
}

static void bind(struct loader *l, const cJSON *tree, struct config_group *g)
{
    const struct config_restart *restart = &l->store->c.policy.restart;
    const char *name = text(tree, "name");
    const char *escalate = text(tree, "escalate");

    *g = (struct config_group){
        .name = name != NULL ? name : "",
        .strategy = (enum group_strategy)setting_choice(setting_strategy_names,
                                                        text(tree, "strategy"), GROUP_ONE_FOR_ONE),
        .intensity = config_number(tree, "intensity", restart->intensity),
        .period_ms = config_number(tree, "periodMs", (uint32_t)restart->period_ms),
        .fatal = escalate != NULL && strcmp(escalate, "daemon") == 0};
}

static bool is_group(const struct config *c, const char *name)
{
    for (uint32_t i = 0; i < c->n_groups; i++) {
        if (strcmp(c->groups[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void check_agents(struct loader *l)
{
    const struct config *c = &l->store->c;
    enum layer_kind layer;
    char key[CONFIG_KEY_BYTES];

    (void)layers_find(l, "agents", &layer);
    for (uint32_t i = 0; i < c->n_agents; i++) {
        const struct config_agent *a = &c->agents[i];

        if (a->group == NULL) {
            continue;
        }
        (void)snprintf(key, sizeof key, "agents.%u.group", i);
        if (!is_group(c, a->group)) {
            problem(l, layer, key, "there is no group of this name in `groups`");
        } else if (a->instances.min != a->instances.max) {
            problem(l, layer, key,
                    "an agent of a group has a fixed number of instances: give one, or take it "
                    "out of the group");
        }
    }
}

enum bt_code config_groups_bind(struct loader *l)
{
    struct config *c = &l->store->c;
    enum layer_kind layer;
    const cJSON *list = layers_find(l, "groups", &layer);
    const size_t n = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    struct config_group *groups = arena_alloc(&l->store->arena, (n + 1) * sizeof *groups);
    const cJSON *v;

    if (groups == NULL) {
        return config_no_memory(l);
    }
    c->groups = groups;
    cJSON_ArrayForEach(v, list)
    {
        char key[CONFIG_KEY_BYTES];

        if (c->n_groups == n) {
            break;
        }
        bind(l, v, &groups[c->n_groups]);
        (void)snprintf(key, sizeof key, "groups.%u.name", c->n_groups);
        if (groups[c->n_groups].name[0] != 0 && is_group(c, groups[c->n_groups].name)) {
            problem(l, layer, key, "stands here twice");
        }
        c->n_groups++;
    }
    check_agents(l);
    return BT_OK;
}
