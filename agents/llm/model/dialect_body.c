/* Builds request bodies. */
#include <stdlib.h>

#include "agents/llm/model/answer_parser.h"
#include "agents/llm/model/dialect_internal.h"
#include "agents/llm/model/schema_subset.h"

enum { SYSTEM_MAX = 4 * 1024 * 1024 };

bool put_item(cJSON *to, const char *name, cJSON *item)
{
    if (item == NULL || !cJSON_AddItemToObject(to, name, item)) {
        cJSON_Delete(item);
        return false;
    }
    return true;
}

bool put_text(cJSON *to, const char *name, const char *text)
{
    return put_item(to, name, cJSON_CreateString(text));
}

/* A server without schemas gets the schema in the prompt. Some reject JSON mode unless the prompt
 * contains "JSON". */
char *make_system(const struct dialect_request *ask)
{
    const struct llm_request *r = ask->request;
    struct buf out;
    char *schema = NULL;
    char *whole = NULL;
    size_t len = 0;
    bool ok = true;

    buf_init(&out, SYSTEM_MAX);
    buf_add_cstr(&out, r->system != NULL ? r->system : "");
    if (r->schema != NULL) {
        buf_add_cstr(&out, "\n\nAnswer with one JSON object and nothing else.");
    }
    if (r->schema != NULL && ask->output_mode != LLM_OUTPUT_MODE_SCHEMA) {
        schema = cJSON_PrintUnformatted(r->schema);
        ok = schema != NULL;
        buf_add_cstr(&out, " It must fit this JSON Schema:\n");
        buf_add_cstr(&out, ok ? schema : "");
    }
    buf_add_byte(&out, 0);
    if (ok && buf_check(&out, NULL) == BT_OK) {
        whole = (char *)buf_take(&out, &len);
    }
    cJSON_free(schema);
    buf_done(&out);
    return whole;
}

static bool put_turn(cJSON *list, const char *role, const char *text)
{
    cJSON *turn = cJSON_CreateObject();

    if (turn == NULL || !put_text(turn, "role", role) || !put_text(turn, "content", text) ||
        !cJSON_AddItemToArray(list, turn)) {
        cJSON_Delete(turn);
        return false;
    }
    return true;
}

bool put_turns(const struct dialect_request *ask, cJSON *body, bool with_system)
{
    const struct llm_request *r = ask->request;
    cJSON *list = cJSON_AddArrayToObject(body, "messages");
    char *system = with_system ? make_system(ask) : NULL;
    bool ok = list != NULL && (!with_system || system != NULL);

    if (ok && system != NULL && system[0] != 0) {
        ok = put_turn(list, "system", system);
    }
    for (uint32_t i = 0; ok && i < r->n_turns; i++) {
        ok = put_turn(list, r->turns[i].by_model ? "assistant" : "user", r->turns[i].text);
    }
    free(system);
    return ok;
}

/* ---- OpenAI ---- */

static bool openai_format(const struct dialect_request *ask, cJSON *body)
{
    const struct llm_request *r = ask->request;
    cJSON *format;
    cJSON *inner;

    if (r->schema == NULL || ask->output_mode == LLM_OUTPUT_MODE_TEXT) {
        return true;
    }
    format = cJSON_AddObjectToObject(body, "response_format");
    if (ask->output_mode == LLM_OUTPUT_MODE_OBJECT) {
        return format != NULL && put_text(format, "type", "json_object");
    }
    inner = format != NULL && put_text(format, "type", "json_schema")
                ? cJSON_AddObjectToObject(format, "json_schema")
                : NULL;
    return inner != NULL && put_text(inner, "name", r->schema_name) &&
           put_item(inner, "schema", cJSON_Duplicate(r->schema, true)) &&
           put_item(inner, "strict", cJSON_CreateBool(answer_parser_is_strict(r->schema)));
}

bool openai_body(const struct dialect_request *ask, cJSON *body)
{
    const char *max =
        (ask->quirks & DIALECT_OTHER_MAX_TOKENS) != 0 ? "max_completion_tokens" : "max_tokens";
    bool ok = put_turns(ask, body, true) &&
              put_item(body, max, cJSON_CreateNumber((double)ask->request->max_tokens)) &&
              openai_format(ask, body);

    if (ok && ask->request->temperature >= 0 && (ask->quirks & DIALECT_NO_TEMPERATURE) == 0) {
        ok = put_item(body, "temperature", cJSON_CreateNumber(ask->request->temperature));
    }
    if (ok && ask->stream && (ask->quirks & DIALECT_NO_STREAM_OPTIONS) == 0) {
        cJSON *options = cJSON_AddObjectToObject(body, "stream_options");
        ok = options != NULL && put_item(options, "include_usage", cJSON_CreateTrue());
    }
    return ok;
}

/* ---- Anthropic ---- */

bool anthropic_body(const struct dialect_request *ask, cJSON *body)
{
    const struct llm_request *r = ask->request;
    char *system = make_system(ask);
    bool ok = system != NULL &&
              put_item(body, "max_tokens", cJSON_CreateNumber((double)r->max_tokens)) &&
              (system[0] == 0 || put_text(body, "system", system)) && put_turns(ask, body, false);

    if (ok && r->temperature >= 0 && (ask->quirks & DIALECT_NO_TEMPERATURE) == 0) {
        ok = put_item(body, "temperature", cJSON_CreateNumber(r->temperature));
    }
    if (ok && r->schema != NULL && ask->output_mode == LLM_OUTPUT_MODE_SCHEMA) {
        cJSON *config = cJSON_AddObjectToObject(body, "output_config");
        cJSON *format = config == NULL ? NULL : cJSON_AddObjectToObject(config, "format");
        ok = format != NULL && put_text(format, "type", "json_schema") &&
             put_item(format, "schema", schema_subset(r->schema));
    }
    free(system);
    return ok;
}

/* ---- Ollama ---- */

bool ollama_body(const struct dialect_request *ask, cJSON *body)
{
    const struct llm_request *r = ask->request;
    cJSON *options = cJSON_AddObjectToObject(body, "options");
    bool ok = options != NULL && put_turns(ask, body, true) &&
              put_item(options, "num_predict", cJSON_CreateNumber((double)r->max_tokens));

    if (ok && r->temperature >= 0 && (ask->quirks & DIALECT_NO_TEMPERATURE) == 0) {
        ok = put_item(options, "temperature", cJSON_CreateNumber(r->temperature));
    }
    if (ok && r->schema != NULL && ask->output_mode == LLM_OUTPUT_MODE_SCHEMA) {
        ok = put_item(body, "format", cJSON_Duplicate(r->schema, true));
    } else if (ok && r->schema != NULL && ask->output_mode == LLM_OUTPUT_MODE_OBJECT) {
        ok = put_text(body, "format", "json");
    }
    return ok;
}

/* ---- all dialects ---- */

/* The configuration's members override the others. */
static bool merge_extra(cJSON *body, const cJSON *extra)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, extra)
    {
        cJSON_DeleteItemFromObjectCaseSensitive(body, item->string);
        if (!put_item(body, item->string, cJSON_Duplicate(item, true))) {
            return false;
        }
    }
    return true;
}

enum bt_code dialect_body(enum llm_dialect d, const struct dialect_request *ask, struct buf *out,
                          struct bt_error *err)
{
    static bool (*const makers[])(const struct dialect_request *, cJSON *) = {
        [LLM_OPENAI] = openai_body, [LLM_ANTHROPIC] = anthropic_body, [LLM_OLLAMA] = ollama_body};
    struct dialect_request own = *ask;
    cJSON *body = cJSON_CreateObject();
    char *json = NULL;
    bool ok;

    own.output_mode = dialect_output_mode_for(d, ask->output_mode, ask->request->schema);
    ok = body != NULL && put_text(body, "model", ask->model) && makers[d](&own, body) &&
         put_item(body, "stream", cJSON_CreateBool(ask->stream)) &&
         (ask->extra == NULL || merge_extra(body, ask->extra));

    if (ok) {
        json = cJSON_PrintUnformatted(body);
    }
    cJSON_Delete(body);
    if (json == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a request to a model");
    }
    buf_add_cstr(out, json);
    cJSON_free(json);
    return buf_check(out, err);
}
