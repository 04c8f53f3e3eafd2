/* Checks the settings without keys, for the program that starts the agent. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/llm/model/config.h"
#include "agents/llm/model/config_internal.h"
#include "agents/llm/model/rules.h"
#include "protocol/jsonschema/schema.h"

enum { PROBLEMS_MAX = 16 };

/* Moves "baseUrl: expected ..." to the pointer of baseUrl. */
static void report_provider(const struct llm_problem_sink *to, uint32_t ix, const char *member,
                            const char *why)
{
    const size_t n = member != NULL ? strlen(member) : 0;
    char pointer[64];

    (void)snprintf(pointer, sizeof pointer, "/providers/%u%s%s", ix, n > 0 ? "/" : "",
                   n > 0 ? member : "");
    to->report(to->of, pointer,
               n > 0 && strncmp(why, member, n) == 0 && why[n] == ':' ? why + n + 2 : why);
}

static enum bt_code report_shape(const cJSON *tree, const struct llm_problem_sink *to,
                                 struct bt_error *err)
{
    struct schema_problem problems[PROBLEMS_MAX];
    uint32_t n = 0;
    const enum bt_code code =
        llm_rules_check(LLM_RULES_SECTION, tree, problems, PROBLEMS_MAX, &n, err);

    for (uint32_t i = 0; code == BT_INVALID && i < n && i < PROBLEMS_MAX; i++) {
        to->report(to->of, problems[i].path, problems[i].message);
    }
    return code;
}

enum bt_code llm_config_check(cJSON *tree, const struct llm_problem_sink *to, struct bt_error *err)
{
    struct llm_config *c = NULL;
    const cJSON *map = NULL;
    bool wrong = false;
    enum bt_code code = report_shape(tree, to, err);

    if (code == BT_OK) {
        code = llm_config_make(tree, &c, err);
    }
    if (code != BT_OK) {
        return code;
    }
    c->rules_only = true;
    cJSON_ArrayForEach(map, cJSON_GetObjectItemCaseSensitive(tree, "providers"))
    {
        code = llm_provider_read(c, map, err);
        if (code == BT_NOMEM) {
            break;
        }
        if (code != BT_OK) {
            report_provider(to, c->n, c->member, err->msg);
            wrong = true;
        }
        c->n++;
    }
    if (code != BT_NOMEM && llm_one_recording(c, err) != BT_OK) {
        to->report(to->of, "/replay", err->msg);
        wrong = true;
    }
    c->tree = NULL; /* the caller keeps the tree */
    llm_config_free(c);
    return code == BT_NOMEM ? code : wrong ? BT_INVALID : BT_OK;
}

enum bt_code llm_keys_check(const cJSON *tree, const struct secret_view *seen, char *ret_pointer,
                            size_t cap, struct bt_error *err)
{
    const cJSON *map = NULL;
    uint32_t ix = 0;

    cJSON_ArrayForEach(map, cJSON_GetObjectItemCaseSensitive(tree, "providers"))
    {
        struct key_source from;
        enum bt_code code = llm_key_find(map, &from, err);
        if (code == BT_OK && from.name != NULL &&
            cJSON_GetObjectItemCaseSensitive(tree, "replay") == NULL) {
            code = secret_probe(seen, from.source, from.name, err);
        }
        if (code != BT_OK) {
            (void)snprintf(ret_pointer, cap, "/providers/%u/%s", ix,
                           from.member != NULL ? from.member : "");
            return code;
        }
        ix++;
    }
    return BT_OK;
}
