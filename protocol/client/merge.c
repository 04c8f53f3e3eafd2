/* A list of a fleet: all shards are asked, one after the other. */
#include <stdlib.h>

#include "protocol/base/shard.h"
#include "protocol/client/client_internal.h"
#include "protocol/wire/shard_merge.h"

struct merge {
    struct shard_merge one;
    struct buf answers[SHARDS_MAX];
};

/* The fields for one shard as JSON. False: it is not asked. */
static bool fields_for(struct doc fields, uint32_t shard, struct buf *json)
{
    struct buf map;
    bool ok;

    buf_init(&map, LIMIT_STEP_BYTES);
    ok = shard_fields(fields, shard, &map) && buf_check(&map, NULL) == BT_OK &&
         doc_to_json(doc_from_buf(&map), false, json, NULL) == BT_OK;
    (void)buf_cstr(json);
    buf_done(&map);
    return ok;
}

/* BT_OK also when the shard does not answer; *ret_json: its refusal. */
static enum bt_code ask(struct bt_client *c, struct merge *m, uint32_t shard, const char *type,
                        struct doc fields, uint32_t timeout_ms, char **ret_json,
                        struct bt_error *err)
{
    struct bt_client *at = NULL;
    struct buf json;
    char *answer = NULL;
    enum bt_code code;

    buf_init(&json, LIMIT_STEP_BYTES);
    m->one.asked[shard] = fields_for(fields, shard, &json);
    code = m->one.asked[shard] ? client_shard(c, shard, &at, err) : BT_OK;
    if (code == BT_OK && m->one.asked[shard]) {
        code = client_call_here(at, type, buf_cstr(&json), timeout_ms, &answer, err);
    }
    if (code == BT_OK && answer != NULL &&
        json_to_doc(str_from(answer), &client_json_limits, &m->answers[shard], err) == BT_OK) {
        shard_merge_take(&m->one, shard, doc_from_buf(&m->answers[shard]));
    }
    buf_done(&json);
    if (code == BT_UNAVAILABLE || code == BT_TIMEOUT || code == BT_BUSY || code == BT_MOVED) {
        code = BT_OK; /* it is named as missing */
    }
    if (code != BT_OK && ret_json != NULL) {
        *ret_json = answer;
    } else {
        bt_free(answer);
    }
    return code;
}

static enum bt_code write_answer(const struct merge *m, char **ret_json, struct bt_error *err)
{
    struct buf out;
    struct buf json;
    size_t len;
    enum bt_code code;

    buf_init(&out, (size_t)m->one.shards * LIMIT_STEP_BYTES);
    buf_init(&json, 8 * (size_t)m->one.shards * LIMIT_STEP_BYTES);
    code = shard_merge_write(&m->one, &out, err);
    code = code == BT_OK ? doc_to_json(doc_from_buf(&out), false, &json, err) : code;
    if (code == BT_OK && ret_json != NULL) {
        (void)buf_cstr(&json);
        *ret_json = (char *)buf_take(&json, &len);
    }
    buf_done(&out);
    buf_done(&json);
    return code;
}

enum bt_code client_merge(struct bt_client *c, uint32_t shards, const char *type, struct doc fields,
                          uint32_t timeout_ms, char **ret_json, struct bt_error *err)
{
    struct merge *m = calloc(1, sizeof *m);
    enum bt_code code = BT_OK;

    if (ret_json != NULL) {
        *ret_json = NULL;
    }
    if (m == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a list");
    }
    shard_merge_begin(&m->one, str_from(type), shards);
    for (uint32_t i = 0; i < shards; i++) {
        buf_init(&m->answers[i], json_doc_capacity(client_json_limits.bytes));
    }
    for (uint32_t i = 0; i < shards && code == BT_OK; i++) {
        code = ask(c, m, i, type, fields, timeout_ms, ret_json, err);
    }
    code = code == BT_OK ? write_answer(m, ret_json, err) : code;
    for (uint32_t i = 0; i < shards; i++) {
        buf_done(&m->answers[i]);
    }
    free(m);
    return code;
}
