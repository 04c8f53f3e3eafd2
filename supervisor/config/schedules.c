/* `schedules`: plans that begin by the clock. Here names, files and the line of cron; the room of
 * schedules reads the rest, as it reads a request. */
#include <stdio.h>
#include <string.h>

#include "supervisor/config/loader.h"
#include "supervisor/schedule/cron_text.h"

static void problem(struct loader *l, enum layer_kind layer, uint32_t ix, const char *member,
                    const char *text)
{
    char key[CONFIG_KEY_BYTES];
    char origin[ORIGIN_MAX];

    (void)snprintf(key, sizeof key, "schedules.%u.%s", ix, member);
    layer_origin(l, layer, key, origin);
    config_problem(l, origin, "%s: %s", key, text);
}

/* A line of cron that cannot be read would be said only in the daemon's log, once it runs. */
static void check_cron(struct loader *l, enum layer_kind layer, uint32_t ix, const cJSON *v)
{
    const char *line = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "cron"));
    struct cron cron;
    struct cron_problem why;
    struct bt_error err;

    if (line != NULL && !cron_parse(str_from(line), &cron, &why)) {
        (void)cron_error(str_from(line), &why, &err);
        problem(l, layer, ix, "cron", err.msg + strlen("cron: "));
    }
}

/* The document of the file as `plan`, in the place of `recipe`. */
static enum bt_code read_recipe(struct loader *l, enum layer_kind layer, uint32_t ix, cJSON *v)
{
    const char *recipe = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "recipe"));
    const char *why = NULL;
    const char *file;
    cJSON *tree = NULL;
    enum bt_code code;

    if (recipe == NULL) {
        return BT_OK;
    }
    if (cJSON_GetObjectItemCaseSensitive(v, "plan") != NULL) {
        problem(l, layer, ix, "recipe", "expected either it or plan");
        return BT_OK;
    }
    file = config_expand(l, layer, recipe, &why);
    if (file == NULL && why == NULL) {
        return config_no_memory(l);
    }
    if (file == NULL || file[0] != '/') {
        problem(l, layer, ix, "recipe",
                why != NULL ? why
                            : "expected the absolute path of a file; ${CONFIG_DIR} is the "
                              "directory of this one");
        return BT_OK;
    }
    code = layers_read_tree(l, file, &tree);
    if (code != BT_OK || tree == NULL) {
        return code;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(v, "recipe");
    if (!cJSON_AddItemToObject(v, "plan", tree)) {
        cJSON_Delete(tree);
        return config_no_memory(l);
    }
    return BT_OK;
}

static enum bt_code bind(struct loader *l, enum layer_kind layer, uint32_t ix, const cJSON *v,
                         struct config_schedule *ret)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "name"));
    cJSON *copy = cJSON_Duplicate(v, true);
    enum bt_code code = copy == NULL ? config_no_memory(l) : read_recipe(l, layer, ix, copy);

    check_cron(l, layer, ix, v);
    if (code == BT_OK) {
        *ret = (struct config_schedule){.name = name != NULL ? name : "",
                                        .json = config_store_json(l->store, copy)};
        code = ret->json == NULL ? config_no_memory(l) : BT_OK;
    }
    cJSON_Delete(copy);
    return code;
}

enum bt_code config_schedules_bind(struct loader *l)
{
    struct config *c = &l->store->c;
    enum layer_kind layer;
    const cJSON *list = layers_find(l, "schedules", &layer);
    const size_t n = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    struct config_schedule *schedules = arena_alloc(&l->store->arena, (n + 1) * sizeof *schedules);
    const cJSON *v = n == 0 ? NULL : list->child;
    enum bt_code code = schedules == NULL ? config_no_memory(l) : BT_OK;

    for (uint32_t i = 0; code == BT_OK && i < n; v = v->next, i++) {
        code = bind(l, layer, i, v, &schedules[i]);
        for (uint32_t k = 0; code == BT_OK && k < i; k++) {
            if (strcmp(schedules[k].name, schedules[i].name) == 0) {
                problem(l, layer, i, "name", "stands here twice");
                break;
            }
        }
    }
    c->schedules = schedules;
    c->n_schedules = code == BT_OK ? (uint32_t)n : 0;
    return code;
}
