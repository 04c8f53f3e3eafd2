/*
 * A list of a fleet: the answers of all shards as one. A shard that does not answer is named in
 * `missingShards`. `cursor` is a vector, "S0=CURSOR;S3=CURSOR" of the shards that have more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/shard.h"
#include "protocol/client/client_internal.h"

enum { KEYS_MAX = 64, CURSOR_MAX = 64, VECTOR_BYTES = SHARDS_MAX * (CURSOR_MAX + 8) };

/* How each list is ordered when it is merged. */
static const struct order {
    const char *type, *list, *by;
    bool descending;
} orders[] = {{"plan.list", "plans", "planId", true},
              {"review.list", "reviews", "reviewId", false},
              {"session.list", "sessions", "updatedAt", true},
              {"schedule.list", "schedules", "name", false}};

struct item {
    struct doc doc;
    struct str by;
    bool descending;
};

struct merge {
    const struct order *order; /* NULL: figures, which are added up */
    struct buf answers[SHARDS_MAX];
    struct doc of[SHARDS_MAX]; /* .ptr NULL: no answer */
    uint32_t shards;
    bool asked[SHARDS_MAX]; /* a cursor may leave shards out */
    struct str keys[KEYS_MAX];
    uint32_t keys_n;
};

static int compare(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    const size_t n = x->by.len < y->by.len ? x->by.len : y->by.len;
    int order = n > 0 ? memcmp(x->by.ptr, y->by.ptr, n) : 0;

    if (order == 0) {
        order = x->by.len < y->by.len ? -1 : x->by.len > y->by.len ? 1 : 0;
    }
    return x->descending ? -order : order;
}

/* ---- what each shard is asked ---- */

/* The shard's part of the vector; false: the shard has no more. */
static bool cursor_of(struct str vector, uint32_t shard, char ret[CURSOR_MAX + 1])
{
    char mark[16];
    const size_t len = (size_t)snprintf(mark, sizeof mark, "S%u=", shard);
    const char *end = vector.ptr + vector.len;

    for (const char *at = vector.ptr; at < end;) {
        const char *stop = memchr(at, ';', (size_t)(end - at));
        const size_t n = (size_t)((stop != NULL ? stop : end) - at);
        if (n > len && memcmp(at, mark, len) == 0) {
            (void)snprintf(ret, CURSOR_MAX + 1, "%.*s", (int)(n - len), at + len);
            return true;
        }
        at += n + 1;
    }
    return false;
}

/* The fields for one shard as JSON. False: it is not asked. */
static bool fields_for(struct doc fields, uint32_t shard, struct buf *json)
{
    const struct str vector = doc_string(doc_get(fields, STR_LIT("cursor")));
    struct doc_cursor cur = doc_cursor(fields);
    struct doc_head head = {.kind = DOC_NIL};
    char cursor[CURSOR_MAX + 1] = "";
    struct buf map;
    bool ok;

    if (vector.len > 0 && !cursor_of(vector, shard, cursor)) {
        return false;
    }
    buf_init(&map, LIMIT_STEP_BYTES);
    if (doc_next(&cur, &head) && head.kind == DOC_MAP) {
        doc_put_map(&map, head.n);
    } else {
        head.n = 0;
        doc_put_map(&map, 0);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc key = doc_skip(&cur);
        const struct doc value = doc_skip(&cur);
        doc_put_doc(&map, key);
        if (vector.len > 0 && str_is(doc_string(key), "cursor")) {
            if (cursor[0] == '#') {
                doc_put_u64(&map, strtoull(cursor + 1, NULL, 10));
            } else {
                doc_put_cstr(&map, cursor);
            }
        } else {
            doc_put_doc(&map, value);
        }
    }
    ok = buf_check(&map, NULL) == BT_OK &&
         doc_to_json(doc_from_buf(&map), false, json, NULL) == BT_OK;
    (void)buf_cstr(json);
    buf_done(&map);
    return ok;
}

static void note_keys(struct merge *m, struct doc answer)
{
    struct doc_cursor cur = doc_cursor(answer);
    struct doc_head head;

    if (!doc_next(&cur, &head) || head.kind != DOC_MAP) {
        return;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str key = doc_string(doc_skip(&cur));
        bool known = false;
        (void)doc_skip(&cur);
        for (uint32_t k = 0; k < m->keys_n; k++) {
            known = known || str_eq(m->keys[k], key);
        }
        if (!known && m->keys_n < KEYS_MAX) {
            m->keys[m->keys_n++] = key;
        }
    }
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
    m->asked[shard] = fields_for(fields, shard, &json);
    code = m->asked[shard] ? client_shard(c, shard, &at, err) : BT_OK;
    if (code == BT_OK && m->asked[shard]) {
        code = client_call_here(at, type, buf_cstr(&json), timeout_ms, &answer, err);
    }
    if (code == BT_OK && answer != NULL &&
        json_to_doc(str_from(answer), &client_json_limits, &m->answers[shard], err) == BT_OK) {
        m->of[shard] = doc_from_buf(&m->answers[shard]);
        note_keys(m, m->of[shard]);
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

/* ---- one answer ---- */

static struct doc first_of(const struct merge *m, struct str key)
{
    for (uint32_t i = 0; i < m->shards; i++) {
        const struct doc d = m->of[i].ptr != NULL ? doc_get(m->of[i], key) : (struct doc){NULL, 0};
        if (d.ptr != NULL) {
            return d;
        }
    }
    return (struct doc){NULL, 0};
}

static uint32_t count_items(const struct merge *m, struct str key)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->shards; i++) {
        const struct doc d = m->of[i].ptr != NULL ? doc_get(m->of[i], key) : (struct doc){NULL, 0};
        n += d.ptr != NULL && doc_head(d).kind == DOC_ARRAY ? doc_head(d).n : 0;
    }
    return n;
}

static enum bt_code put_list(const struct merge *m, struct str key, struct buf *out,
                             struct bt_error *err)
{
    const bool sorted = m->order != NULL && str_is(key, m->order->list);
    const uint32_t n = count_items(m, key);
    struct item *items = calloc(n + 1, sizeof *items);
    uint32_t at = 0;

    if (items == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a list");
    }
    for (uint32_t i = 0; i < m->shards; i++) {
        const struct doc d = m->of[i].ptr != NULL ? doc_get(m->of[i], key) : (struct doc){NULL, 0};
        struct doc_cursor cur = doc_cursor(d);
        struct doc_head head;
        if (d.ptr == NULL || !doc_next(&cur, &head) || head.kind != DOC_ARRAY) {
            continue;
        }
        for (uint32_t k = 0; k < head.n && at < n; k++) {
            items[at].doc = doc_skip(&cur);
            if (sorted) {
                items[at].by = doc_string(doc_get(items[at].doc, str_from(m->order->by)));
                items[at].descending = m->order->descending;
            }
            at++;
        }
    }
    if (sorted) {
        qsort(items, at, sizeof *items, compare);
    }
    doc_put_array(out, at);
    for (uint32_t i = 0; i < at; i++) {
        doc_put_doc(out, items[i].doc);
    }
    free(items);
    return BT_OK;
}

static void put_cursor(const struct merge *m, struct buf *out)
{
    char vector[VECTOR_BYTES + 1] = "";
    size_t n = 0;

    for (uint32_t i = 0; i < m->shards; i++) {
        const struct doc d =
            m->of[i].ptr != NULL ? doc_get(m->of[i], STR_LIT("cursor")) : (struct doc){NULL, 0};
        const char *separator = n > 0 ? ";" : "";
        if (d.ptr == NULL) {
            continue;
        }
        if (doc_head(d).kind == DOC_STR && doc_string(d).len > 0) {
            n += (size_t)snprintf(vector + n, sizeof vector - n, "%sS%u=%.*s", separator, i,
                                  STR_ARG(doc_string(d)));
        } else if (doc_head(d).kind == DOC_UINT) {
            n += (size_t)snprintf(vector + n, sizeof vector - n, "%sS%u=#%llu", separator, i,
                                  (unsigned long long)doc_head(d).u);
        }
        n = n < sizeof vector ? n : sizeof vector - 1;
    }
    doc_put_cstr(out, vector);
}

static uint64_t add_up(const struct merge *m, struct str key)
{
    const bool longest = str_is(key, "longestCycleUs");
    uint64_t sum = 0;

    for (uint32_t i = 0; i < m->shards; i++) {
        const struct doc d = m->of[i].ptr != NULL ? doc_get(m->of[i], key) : (struct doc){NULL, 0};
        const uint64_t v = d.ptr != NULL && doc_head(d).kind == DOC_UINT ? doc_head(d).u : 0;
        sum = longest ? (v > sum ? v : sum) : sum + v;
    }
    return sum;
}

static bool any_is_true(const struct merge *m, struct str key)
{
    bool any = false;

    for (uint32_t i = 0; i < m->shards; i++) {
        const struct doc d = m->of[i].ptr != NULL ? doc_get(m->of[i], key) : (struct doc){NULL, 0};
        any = any || (d.ptr != NULL && doc_head(d).kind == DOC_BOOL && doc_head(d).b);
    }
    return any;
}

static enum bt_code put_member(const struct merge *m, struct str key, struct buf *out,
                               struct bt_error *err)
{
    const struct doc first = first_of(m, key);
    enum bt_code code = BT_OK;

    doc_put_str(out, key);
    if (str_is(key, "cursor")) {
        put_cursor(m, out);
    } else if (doc_head(first).kind == DOC_ARRAY) {
        code = put_list(m, key, out, err);
    } else if (doc_head(first).kind == DOC_UINT && !str_is(key, "v")) {
        doc_put_u64(out, add_up(m, key));
    } else if (doc_head(first).kind == DOC_BOOL && !str_is(key, "ok")) {
        doc_put_bool(out, any_is_true(m, key));
    } else {
        doc_put_doc(out, first);
    }
    return code;
}

static enum bt_code write_answer(const struct merge *m, char **ret_json, struct bt_error *err)
{
    struct buf out;
    struct buf json;
    uint32_t missing = 0;
    size_t len;
    enum bt_code code = BT_OK;

    buf_init(&out, (size_t)m->shards * LIMIT_STEP_BYTES);
    buf_init(&json, 8 * (size_t)m->shards * LIMIT_STEP_BYTES);
    doc_put_map(&out, m->keys_n + 1);
    for (uint32_t i = 0; i < m->keys_n && code == BT_OK; i++) {
        code = put_member(m, m->keys[i], &out, err);
    }
    for (uint32_t i = 0; i < m->shards; i++) {
        missing += m->asked[i] && m->of[i].ptr == NULL;
    }
    doc_put_cstr(&out, "missingShards");
    doc_put_array(&out, missing);
    for (uint32_t i = 0; i < m->shards; i++) {
        if (m->asked[i] && m->of[i].ptr == NULL) {
            doc_put_u64(&out, i);
        }
    }
    code = code == BT_OK ? buf_check(&out, err) : code;
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
    m->shards = shards;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        m->order = strcmp(orders[i].type, type) == 0 ? &orders[i] : m->order;
    }
    for (uint32_t i = 0; i < shards; i++) {
        buf_init(&m->answers[i], json_doc_capacity(client_json_limits.bytes));
    }
    for (uint32_t i = 0; i < shards && code == BT_OK; i++) {
        code = ask(c, m, i, type, fields, timeout_ms, ret_json, err);
    }
    if (code == BT_OK && m->keys_n == 0) {
        code = err_set(err, BT_UNAVAILABLE, "none of the %u shards answers", shards);
    }
    code = code == BT_OK ? write_answer(m, ret_json, err) : code;
    for (uint32_t i = 0; i < shards; i++) {
        buf_done(&m->answers[i]);
    }
    free(m);
    return code;
}
