#include "agents/llm/json_prompt.h"

#include <cjson/cJSON.h>

#include "protocol/base/assert.h"
#include "protocol/wire/doc.h"

void json_prompt_init(struct json_prompt *q)
{
    *q = (struct json_prompt){.ok = true};
    prompt_init(&q->p);
}

void json_prompt_done(struct json_prompt *q)
{
    prompt_done(&q->p);
    for (uint32_t i = 0; i < q->n; i++) {
        cJSON_free(q->texts[i]);
    }
    q->n = 0;
}

void json_prompt_text(struct json_prompt *q, const char *from, char *text)
{
    ASSERT(q->n < JSON_PROMPT_TEXTS);
    q->ok = q->ok && text != NULL;
    prompt_data(&q->p, from, text);
    q->texts[q->n++] = text;
}

void json_prompt_data(struct json_prompt *q, const char *from, const cJSON *value)
{
    bool empty = cJSON_IsArray(value) && value->child == NULL;

    if (value == NULL || cJSON_IsNull(value) || empty) {
        return;
    }
    if (cJSON_IsString(value)) {
        prompt_data(&q->p, from, value->valuestring);
    } else {
        json_prompt_text(q, from, cjson_print(value, false, NULL));
    }
}

void json_prompt_drop_times(cJSON *list)
{
    static const char *const names[] = {"timestamp", "at", "atMs", "createdAt"};
    cJSON *item = NULL;

    cJSON_ArrayForEach(item, list)
    {
        for (size_t i = 0; cJSON_IsObject(item) && i < sizeof names / sizeof names[0]; i++) {
            cJSON_DeleteItemFromObjectCaseSensitive(item, names[i]);
        }
    }
}
