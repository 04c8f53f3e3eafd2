#include "agents/sdk/input.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

static size_t newest(const struct bt_step *step)
{
    return bt_step_dependency_count(step) - 1;
}

const char *input_text(struct bt_step *step, const char *path)
{
    const char *text = bt_step_param_string(step, path, NULL);

    if (text == NULL && bt_step_has_param(step, path)) {
        text = bt_step_params_json(step, path);
    }
    if (text == NULL && bt_step_dependency_count(step) > 0) {
        text = bt_step_dependency_text(step, newest(step));
    }
    return text;
}

/* A string may contain JSON that a command printed. Any other string stays a string. */
static void read_string(cJSON **tree)
{
    const char *text = cJSON_IsString(*tree) ? (*tree)->valuestring : NULL;
    cJSON *inner = NULL;

    if (text == NULL || (text[0] != '{' && text[0] != '[')) {
        return;
    }
    if (json_parse(str_from(text), &inner, NULL) == BT_OK) {
        cJSON_Delete(*tree);
        *tree = inner;
    }
}

enum bt_code input_tree(struct bt_step *step, const char *path, cJSON **ret, struct bt_error *err)
{
    struct doc d = step->req.parameters.ptr != NULL ? doc_path(step->req.parameters, str_from(path))
                                                    : (struct doc){0};
    const char *json = NULL;
    enum bt_code code = BT_OK;

    *ret = NULL;
    if (d.ptr != NULL) {
        code = doc_to_cjson(d, ret, err);
    } else if (bt_step_dependency_count(step) > 0) {
        json = bt_step_dependency_json(step, newest(step));
        code = json == NULL ? err_set(err, BT_NOMEM, "out of memory")
                            : json_parse(str_from(json), ret, err);
    }
    if (code == BT_OK && *ret != NULL && d.ptr == NULL && cJSON_IsNull(*ret)) {
        cJSON_Delete(*ret);
        *ret = NULL;
    }
    if (code == BT_OK && *ret != NULL) {
        read_string(ret);
    }
    return code;
}

enum bt_code input_parameters(struct bt_step *step, cJSON **ret, struct bt_error *err)
{
    if (step->req.parameters.ptr == NULL) {
        *ret = cJSON_CreateObject();
        return *ret == NULL ? err_set(err, BT_NOMEM, "out of memory") : BT_OK;
    }
    return doc_to_cjson(step->req.parameters, ret, err);
}

void input_reply(struct bt_step *step, cJSON *data, const char *text)
{
    char *json = data == NULL ? NULL : cJSON_PrintUnformatted(data);

    if (json == NULL) {
        bt_step_fail(step, "SERVICE_UNAVAILABLE", true, "out of memory for the result");
    } else {
        bt_step_reply_json(step, json, strlen(json));
        if (text != NULL && step->reply.outcome == REPLY_COMPLETED) {
            bt_step_reply_bytes(step, text, strlen(text));
        }
    }
    cJSON_free(json);
    cJSON_Delete(data);
}
