/* Vectors of texts from an OpenAI-compatible endpoint: POST {model, input: [...]}. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/rag/rag.h"
#include "agents/sdk/input.h"
#include "protocol/wire/doc.h"

enum { ANSWER_MAX = 64 * 1024 * 1024, CALL_MS = 60000, KEY_LINE = SECRET_BYTES_MAX + 64 };

static bool is_cancelled(void *step)
{
    return bt_step_cancelled(step);
}

static enum bt_code make_body(const struct rag *r, const struct str *texts, size_t n,
                              struct buf *out, struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, ANSWER_MAX);
    doc_put_map(&doc, 2);
    doc_put_cstr(&doc, "model");
    doc_put_cstr(&doc, r->embeddings.model);
    doc_put_cstr(&doc, "input");
    doc_put_array(&doc, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        doc_put_str(&doc, texts[i]);
    }
    code = buf_check(&doc, err);
    code = code == BT_OK ? doc_to_json(doc_from_buf(&doc), false, out, err) : code;
    buf_done(&doc);
    return code;
}

/* A vector into `at`, made to length 1. */
static bool read_vector(const cJSON *list, float *at, uint32_t dimensions)
{
    const cJSON *one;
    double length = 0.0;
    uint32_t i = 0;

    cJSON_ArrayForEach(one, list)
    {
        if (!cJSON_IsNumber(one) || i == dimensions || !isfinite(one->valuedouble)) {
            return false;
        }
        length += one->valuedouble * one->valuedouble;
        at[i++] = (float)one->valuedouble;
    }
    if (i != dimensions || !(length > 0.0) || !isfinite(length)) {
        return false;
    }
    for (i = 0; i < dimensions; i++) {
        at[i] = (float)(at[i] / sqrt(length));
    }
    return true;
}

/* No vector stands there yet. */
static bool is_zero(const float *at, uint32_t dimensions)
{
    uint32_t i = 0;

    while (i < dimensions && at[i] == 0.0f) {
        i++;
    }
    return i == dimensions;
}

static enum bt_code read_answer(const cJSON *tree, size_t n, float **ret, uint32_t *ret_dimensions,
                                struct bt_error *err)
{
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(tree, "data");
    const cJSON *item;
    const int dimensions = cJSON_GetArraySize(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(data, 0), "embedding"));
    size_t seen = 0;

    if (!cJSON_IsArray(data) || (size_t)cJSON_GetArraySize(data) != n || dimensions < 1 ||
        dimensions > RAG_DIMENSIONS_MAX) {
        return err_set(err, BT_INVALID,
                       "the answer has no list `data` of %zu vectors of 1 to %d numbers", n,
                       RAG_DIMENSIONS_MAX);
    }
    *ret = calloc(n * (size_t)dimensions, sizeof **ret);
    if (*ret == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for vectors");
    }
    cJSON_ArrayForEach(item, data)
    {
        const cJSON *index = cJSON_GetObjectItemCaseSensitive(item, "index");
        const size_t at =
            cJSON_IsNumber(index) && index->valuedouble >= 0.0 && index->valuedouble < (double)n
                ? (size_t)index->valuedouble
                : seen;
        float *vector = *ret + at * (size_t)dimensions;
        if (!is_zero(vector, (uint32_t)dimensions)) {
            return err_set(err, BT_INVALID, "two vectors have the index %zu", at);
        }
        if (!read_vector(cJSON_GetObjectItemCaseSensitive(item, "embedding"), vector,
                         (uint32_t)dimensions)) {
            return err_set(err, BT_INVALID, "data[%zu] is no vector of %d finite numbers", seen,
                           dimensions);
        }
        seen++;
    }
    *ret_dimensions = (uint32_t)dimensions;
    return BT_OK;
}

static enum bt_code check_status(const struct rag *r, struct web_response *answer,
                                 struct bt_error *err)
{
    const long status = answer->status;

    if (status == 200) {
        return BT_OK;
    }
    secrets_redact(&r->embeddings.secrets, &answer->body);
    return err_set(err,
                   status == 429 || status >= 500   ? BT_UNAVAILABLE
                   : status == 401 || status == 403 ? BT_UNAUTHORIZED
                                                    : BT_INVALID,
                   "status %ld: %.200s", status, buf_cstr(&answer->body));
}

static enum bt_code call(const struct rag *r, struct bt_step *step, const struct buf *body,
                         struct web_response *answer, struct bt_error *err)
{
    const uint64_t left = bt_step_time_left_ms(step);
    const char *const headers[] = {"Content-Type: application/json", "Accept: application/json",
                                   NULL};
    char line[KEY_LINE] = "";
    const char *const secret[] = {r->embeddings.key != NULL ? line : NULL, NULL};
    const struct web_request request = {.method = "POST",
                                        .url = r->embeddings.url,
                                        .headers = headers,
                                        .secret_headers = secret,
                                        .body = {(const char *)body->at, body->len},
                                        .timeout_ms = left < CALL_MS ? left : CALL_MS,
                                        .max_bytes = ANSWER_MAX,
                                        .cancelled = is_cancelled,
                                        .self = step};
    enum bt_code code;

    (void)snprintf(line, sizeof line, "Authorization: Bearer %s",
                   r->embeddings.key != NULL ? r->embeddings.key : "");
    code = web_call(&r->embeddings.policy, &request, answer, err);
    explicit_bzero(line, sizeof line);
    return code == BT_OK ? check_status(r, answer, err) : code;
}

enum bt_code rag_embed(const struct rag *r, struct bt_step *step, const struct str *texts, size_t n,
                       float **ret, uint32_t *ret_dimensions, struct bt_error *err)
{
    struct web_response answer = {.status = 0};
    cJSON *tree = NULL;
    struct buf body;
    enum bt_code code;

    *ret = NULL;
    buf_init(&body, ANSWER_MAX);
    code = make_body(r, texts, n, &body, err);
    code = code == BT_OK ? call(r, step, &body, &answer, err) : code;
    if (code == BT_OK) {
        tree = cJSON_ParseWithLength((const char *)answer.body.at, answer.body.len);
        code =
            tree != NULL ? read_answer(tree, n, ret, ret_dimensions, err) : input_check_lost(err);
        code = tree == NULL && code == BT_OK ? err_set(err, BT_INVALID, "the answer is no JSON")
                                             : code;
    }
    if (code != BT_OK) {
        free(*ret);
        *ret = NULL;
        (void)err_wrap(err, "embeddings");
        secrets_redact_error(&r->embeddings.secrets, err);
    }
    cJSON_Delete(tree);
    web_response_done(&answer);
    buf_done(&body);
    return code;
}
