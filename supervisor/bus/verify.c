#include "supervisor/bus/verify.h"

#include <cjson/cJSON.h>

#include "protocol/schema/schema.h"

enum { PROBLEMS_TOLD = 3 };

static enum bt_code subject(const struct msg_result *result, cJSON **ret, struct bt_error *err)
{
    struct buf text;
    enum bt_code code;

    if (result->data.ptr != NULL) {
        return doc_to_cjson(result->data, ret, err);
    }
    buf_init(&text, LIMIT_STEP_BYTES);
    doc_put_str(&text, result->text);
    code = buf_check(&text, err);
    if (code == BT_OK) {
        code = doc_to_cjson(doc_from_buf(&text), ret, err);
    }
    buf_done(&text);
    return code;
}

bool verify_result(struct doc schema, const struct msg_result *result, struct buf *diagnosis)
{
    struct schema_problem problems[PROBLEMS_TOLD];
    struct schema *compiled = NULL;
    cJSON *rules = NULL;
    cJSON *value = NULL;
    uint32_t n = 0;
    struct bt_error err;
    enum bt_code code = doc_to_cjson(schema, &rules, &err);

    if (code == BT_OK) {
        code = schema_compile(rules, &compiled, &err);
    }
    if (code == BT_OK) {
        code = subject(result, &value, &err);
    }
    if (code == BT_OK) {
        code = schema_check(compiled, value, problems, PROBLEMS_TOLD, &n, &err);
    }
    if (code != BT_OK) {
        buf_add_cstr(diagnosis, "verify: ");
        for (uint32_t i = 0; i < n && i < PROBLEMS_TOLD; i++) {
            buf_printf(diagnosis, "%s%s %s", i > 0 ? "; " : "",
                       problems[i].path[0] != 0 ? problems[i].path : "the result",
                       problems[i].message);
        }
        if (n == 0) {
            buf_add_cstr(diagnosis, err.msg);
        }
    }
    schema_free(compiled);
    cJSON_Delete(rules);
    cJSON_Delete(value);
    return code == BT_OK;
}
