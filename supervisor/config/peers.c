/* Who may connect on this machine, and where agents may listen, beyond the defaults. */
#include "supervisor/config/loader.h"

static const cJSON *list_of(const struct loader *l, const char *key, size_t *ret_n)
{
    enum layer_kind layer;
    const cJSON *list = layers_find(l, key, &layer);

    *ret_n = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    return list;
}

enum bt_code config_peers_bind(struct loader *l)
{
    struct config *c = &l->store->c;
    size_t n_uids;
    size_t n_endpoints;
    const cJSON *uids = list_of(l, "allowUids", &n_uids);
    const cJSON *endpoints = list_of(l, "allowEndpoints", &n_endpoints);
    uint32_t *users = arena_alloc(&l->store->arena, (n_uids + 1) * sizeof *users);
    const char **urls = arena_alloc(&l->store->arena, (n_endpoints + 1) * sizeof *urls);
    const cJSON *v;

    if (users == NULL || urls == NULL) {
        return config_no_memory(l);
    }
    cJSON_ArrayForEach(v, uids)
    {
        if (cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble < UINT32_MAX) {
            users[c->n_allow_uids++] = (uint32_t)v->valuedouble;
        }
    }
    cJSON_ArrayForEach(v, endpoints)
    {
        if (cJSON_IsString(v)) {
            urls[c->n_allow_endpoints++] = v->valuestring;
        }
    }
    c->allow_uids = users;
    c->allow_endpoints = urls;
    return BT_OK;
}
