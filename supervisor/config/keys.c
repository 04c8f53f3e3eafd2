/* `keys`: places and rates of concurrency keys. `rates`: how often agents may be asked. */
#include <stdio.h>

#include "supervisor/config/loader.h"

static void problem(struct loader *l, enum layer_kind layer, const char *list, uint32_t ix,
                    const char *member, const char *text)
{
    char key[CONFIG_KEY_BYTES];
    char origin[ORIGIN_MAX];

    (void)snprintf(key, sizeof key, "%s.%u.%s", list, ix, member);
    layer_origin(l, layer, key, origin);
    config_problem(l, origin, "%s: %s", key, text);
}

static const char *text(const cJSON *tree, const char *member)
{
    const char *v = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, member));

    return v != NULL ? v : "";
}

enum bt_code config_keys_bind(struct loader *l)
{
    struct config *c = &l->store->c;
    enum layer_kind layer;
    const cJSON *list = layers_find(l, "keys", &layer);
    const size_t n = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    struct config_key *keys = arena_alloc(&l->store->arena, (n + 1) * sizeof *keys);
    const cJSON *v = n == 0 ? NULL : list->child;

    if (keys == NULL) {
        return config_no_memory(l);
    }
    for (uint32_t i = 0; i < n; v = v->next, i++) {
        const cJSON *rate = cJSON_GetObjectItemCaseSensitive(v, "rate");
        keys[i] = (struct config_key){.key = text(v, "key"),
                                      .max = config_number(v, "max", 1),
                                      .n = config_number(rate, "n", 0),
                                      .per_ms = config_number(rate, "perMs", 0)};
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(keys[k].key, keys[i].key) == 0) {
                problem(l, layer, "keys", i, "key", "stands here twice");
                break;
            }
        }
    }
    c->keys = keys;
    c->n_keys = (uint32_t)n;
    return BT_OK;
}

enum bt_code config_rates_bind(struct loader *l)
{
    struct config *c = &l->store->c;
    enum layer_kind layer;
    const cJSON *list = layers_find(l, "rates", &layer);
    const size_t n = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    struct config_rate *rates = arena_alloc(&l->store->arena, (n + 1) * sizeof *rates);
    const cJSON *v = n == 0 ? NULL : list->child;

    if (rates == NULL) {
        return config_no_memory(l);
    }
    for (uint32_t i = 0; i < n; v = v->next, i++) {
        rates[i] = (struct config_rate){.agent_id = text(v, "agentId"),
                                        .n = config_number(v, "n", 0),
                                        .per_ms = config_number(v, "perMs", 0)};
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(rates[k].agent_id, rates[i].agent_id) == 0) {
                problem(l, layer, "rates", i, "agentId", "stands here twice");
                break;
            }
        }
    }
    c->rates = rates;
    c->n_rates = (uint32_t)n;
    return BT_OK;
}
