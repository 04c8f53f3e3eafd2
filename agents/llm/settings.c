#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/llm/llm_agent.h"
#include "agents/llm/model/rules.h"
#include "protocol/wire/doc.h"

enum { MAX_TOKENS = 4096, DATA_BYTES = 128 * 1024 };

static const char *text(const cJSON *map, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(map, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static double number(const cJSON *map, const char *name, double fallback)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(map, name);
    return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

/* Moves the client's members out of the tree and starts the client. */
static enum bt_code start_client(struct llm_agent *a, struct bt_error *err)
{
    static const char *const theirs[] = {"providers", "record", "replay"};
    cJSON *tree = cJSON_CreateObject();
    struct llm_config *config = NULL;
    enum bt_code code;

    for (size_t i = 0; tree != NULL && i < sizeof theirs / sizeof theirs[0]; i++) {
        cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(a->tree, theirs[i]);
        if (item != NULL && !cJSON_AddItemToObject(tree, theirs[i], item)) {
            cJSON_Delete(item);
            cJSON_Delete(tree);
            tree = NULL;
        }
    }
    if (tree == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the settings");
    }
    code = llm_config_read(tree, &config, err);
    return code == BT_OK ? llm_client_new(config, &a->client, err) : code;
}

enum bt_code llm_agent_new(const char *settings_json, struct llm_agent **ret, struct bt_error *err)
{
    struct llm_agent *a = calloc(1, sizeof *a);
    enum bt_code code;

    if (a == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the settings");
    }
    code = json_parse(str_from(settings_json), &a->tree, err);
    if (code == BT_OK) {
        code = llm_rules_require(LLM_RULES_AGENT, a->tree, err);
    }
    if (code == BT_OK) {
        a->agent_id = text(a->tree, "agentId");
        a->system = text(a->tree, "system");
        a->max_tokens = (uint64_t)number(a->tree, "maxTokens", MAX_TOKENS);
        a->temperature = number(a->tree, "temperature", -1);
        a->data_bytes = (size_t)number(a->tree, "dataBytes", DATA_BYTES);
        code = start_client(a, err);
    }
    if (code != BT_OK) {
        llm_agent_free(a);
        return code;
    }
    *ret = a;
    return BT_OK;
}

void llm_agent_free(struct llm_agent *a)
{
    if (a != NULL) {
        llm_client_free(a->client);
        cJSON_Delete(a->tree);
        free(a);
    }
}
