#include "agents/sdk/input.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

/* ---- memory ---- */

/*
 * A tree that a handler builds member by member is not whole when an allocation of cJSON has failed
 * on the way. The thread remembers it until the next reply, so that no handler has to ask after
 * each member.
 */
static _Thread_local bool lost;

void input_lost(void)
{
    lost = true;
}

enum bt_code input_check_lost(struct bt_error *err)
{
    const bool was = lost;

    lost = false;
    return was ? err_set(err, BT_NOMEM, "out of memory for the result") : BT_OK;
}

static void *tree_malloc(size_t n)
{
    void *at = malloc(n);

    lost |= at == NULL;
    return at;
}

/* Before any thread: the hooks are cJSON's for the whole program. */
__attribute__((constructor)) static void watch_trees(void)
{
    cJSON_Hooks hooks = {tree_malloc, free};

    cJSON_InitHooks(&hooks);
}

/* ---- input ---- */

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

static enum bt_code parse(struct str json, cJSON **ret, struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, json_doc_capacity(json.len));
    code = json_to_doc(json, NULL, &doc, err);
    if (code == BT_OK) {
        code = doc_to_cjson_digits(doc_from_buf(&doc), ret, err);
    }
    buf_done(&doc);
    return code;
}

/* A string may contain JSON that a command printed. Any other string stays a string. */
static void read_string(cJSON **tree)
{
    const char *text = cJSON_IsString(*tree) ? (*tree)->valuestring : NULL;
    cJSON *inner = NULL;

    if (text == NULL || (text[0] != '{' && text[0] != '[')) {
        return;
    }
    if (parse(str_from(text), &inner, NULL) == BT_OK) {
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
        code = doc_to_cjson_digits(d, ret, err);
    } else if (bt_step_dependency_count(step) > 0) {
        json = bt_step_dependency_json(step, newest(step));
        code = json == NULL ? err_set(err, BT_NOMEM, "out of memory")
                            : parse(str_from(json), ret, err);
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

enum bt_code input_table(struct bt_step *step, const char *path, struct table *ret,
                         struct bt_error *err)
{
    cJSON *tree = NULL;
    enum bt_code code = input_tree(step, path, &tree, err);

    *ret = (struct table){0};
    if (code == BT_OK && tree == NULL) {
        code = err_set(err, BT_INVALID, "give the rows, or let a step before this one make them");
    }
    if (code == BT_OK) {
        code = table_read(tree, ret, err);
    }
    if (code == BT_OK) {
        code = input_types(step, ret, err);
    }
    cJSON_Delete(tree);
    if (code != BT_OK) {
        table_done(ret);
        return err_wrap(err, "%s", path);
    }
    return BT_OK;
}

enum bt_code input_types(struct bt_step *step, struct table *t, struct bt_error *err)
{
    struct doc types = step->req.parameters.ptr == NULL
                           ? (struct doc){0}
                           : doc_get(step->req.parameters, STR_LIT("types"));
    enum bt_code code = table_declare(t, types, err);

    return code == BT_OK ? table_set_types(t, err) : code;
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
    struct buf json;
    struct bt_error err;
    enum bt_code code;

    buf_init(&json, (size_t)LIMIT_STEP_BYTES * 4);
    code = input_check_lost(&err);
    if (code == BT_OK) {
        code = data == NULL ? err_set(&err, BT_NOMEM, "out of memory for the result")
                            : cjson_to_json(data, &json, &err);
    }
    if (code == BT_NOMEM) {
        step_lose(step, "the result");
    } else if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    } else {
        bt_step_reply_json(step, (const char *)json.at, json.len);
        if (text != NULL && step->reply.outcome == REPLY_COMPLETED) {
            bt_step_reply_bytes(step, text, strlen(text));
        }
    }
    buf_done(&json);
    cJSON_Delete(data);
}

void input_reply_buf(struct bt_step *step, cJSON *data, struct buf *text)
{
    struct bt_error err;

    if (buf_check(text, &err) == BT_OK) {
        input_reply(step, data, buf_cstr(text));
        return;
    }
    lost = false; /* it is said now */
    cJSON_Delete(data);
    if (err.code == BT_NOMEM) {
        step_lose(step, "the text of the result");
    } else {
        bt_step_fail_error(step, &err);
    }
}

bool input_add(cJSON *to, const char *name, cJSON *item)
{
    const bool added = item != NULL && (name != NULL ? cJSON_AddItemToObject(to, name, item)
                                                     : cJSON_AddItemToArray(to, item));

    if (!added) {
        cJSON_Delete(item);
        lost = true;
    }
    return added;
}
