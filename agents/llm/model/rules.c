#include "agents/llm/model/rules.h"

#include <cjson/cJSON.h>

#include "protocol/jsonschema/schema.h"
#include "protocol/wire/doc.h"

#define TIME "{\"type\":\"integer\",\"minimum\":1,\"maximum\":3600000}"
#define NAME "{\"type\":\"string\",\"minLength\":1,\"maxLength\":128}"
#define PATH "{\"type\":\"string\",\"minLength\":1,\"maxLength\":1024}"
#define PRICE "{\"type\":\"number\",\"minimum\":0,\"maximum\":1000000}"

#define HEAD                                                                                       \
    "{\"type\":\"object\",\"required\":[\"providers\"],\"additionalProperties\":false,"            \
    "\"properties\":{"

#define CLIENT                                                                                     \
    "\"providers\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":8,\"items\":{\"type\":"         \
    "\"object\","                                                                                  \
    "\"additionalProperties\":false,\"required\":[\"api\",\"baseUrl\",\"model\"],\"properties\":{" \
    "\"id\":" NAME ",\"api\":{\"enum\":[\"openai\",\"anthropic\",\"ollama\"]},\"baseUrl\":" PATH   \
    ",\"model\":" NAME ",\"keyEnv\":" NAME ",\"keyFile\":" PATH ",\"keyCredential\":" NAME         \
    ",\"keyHeader\":" NAME ",\"structured\":{\"enum\":[\"schema\",\"object\",\"text\"]},"          \
    "\"stream\":{\"type\":\"boolean\"},\"allowHttp\":{\"type\":\"boolean\"},"                      \
    "\"headers\":{\"type\":\"object\",\"maxProperties\":12,\"additionalProperties\":{"             \
    "\"type\":\"string\",\"maxLength\":1024}},\"body\":{\"type\":\"object\"},"                     \
    "\"caFile\":" PATH ",\"proxy\":" PATH ",\"unixSocket\":" PATH ",\"timeoutMs\":" TIME           \
    ",\"connectTimeoutMs\":" TIME ",\"idleTimeoutMs\":" TIME ",\"backoffMs\":" TIME                \
    ",\"maxWaitMs\":" TIME ",\"attempts\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10},"    \
    "\"maxBytes\":{\"type\":\"integer\",\"minimum\":1024,\"maximum\":67108864},"                   \
    "\"breaker\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"             \
    "\"failures\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000},\"cooldownMs\":" TIME      \
    "}},"                                                                                          \
    "\"price\":{\"type\":\"object\",\"additionalProperties\":false,"                               \
    "\"required\":[\"input\",\"output\"],\"properties\":{\"input\":" PRICE ",\"output\":" PRICE    \
    ",\"cached\":" PRICE "}}}}},\"record\":" PATH ",\"replay\":" PATH

#define AGENT                                                                                      \
    ",\"system\":{\"type\":\"string\",\"maxLength\":65536},"                                       \
    "\"maxTokens\":{\"type\":\"integer\",\"minimum\":16,\"maximum\":1000000},"                     \
    "\"temperature\":{\"type\":\"number\",\"minimum\":0,\"maximum\":2},"                           \
    "\"dataBytes\":{\"type\":\"integer\",\"minimum\":1024,\"maximum\":4194304}"

static const char *const rules[] = {
    [LLM_RULES_CLIENT] = HEAD CLIENT "}}",
    [LLM_RULES_AGENT] = HEAD CLIENT AGENT ",\"agentId\":{\"type\":\"string\"}}}",
    /* the configuration's own schema checks these two */
    [LLM_RULES_SECTION] = HEAD CLIENT AGENT ",\"capacity\":{},\"env\":{}}}",
};

enum bt_code llm_rules_check(enum llm_rules which, const cJSON *tree, struct schema_problem *at,
                             uint32_t max, uint32_t *ret_n, struct bt_error *err)
{
    struct schema *schema = NULL;
    cJSON *json = NULL;
    enum bt_code code = json_parse(str_from(rules[which]), &json, err);

    if (code == BT_OK) {
        code = schema_compile(json, &schema, err);
    }
    if (code == BT_OK) {
        code = schema_check(schema, tree, at, max, ret_n, err);
    }
    schema_free(schema);
    cJSON_Delete(json);
    return code;
}

enum bt_code llm_rules_require(enum llm_rules which, const cJSON *tree, struct bt_error *err)
{
    struct schema_problem problem[1];
    uint32_t n = 0;
    enum bt_code code = llm_rules_check(which, tree, problem, 1, &n, err);

    return code == BT_INVALID
               ? err_set(err, BT_INVALID, "%s: %s", problem[0].path, problem[0].message)
               : code;
}
