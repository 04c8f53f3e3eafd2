#include "protocol/wire/shard_merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CURSOR_MAX = 64, VECTOR_BYTES = SHARDS_MAX * (CURSOR_MAX + 8) };

/* How each list is ordered when it is merged. */
static const struct shard_order {
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

bool shard_fields(struct doc fields, uint32_t shard, struct buf *out)
{
    const struct str vector = doc_string(doc_get(fields, STR_LIT("cursor")));
    struct doc_cursor cur = doc_cursor(fields);
    struct doc_head head = {.kind = DOC_NIL};
    char cursor[CURSOR_MAX + 1] = "";

    if (vector.len > 0 && !cursor_of(vector, shard, cursor)) {
        return false;
    }
    if (doc_next(&cur, &head) && head.kind == DOC_MAP) {
        doc_put_map(out, head.n);
    } else {
        head.n = 0;
        doc_put_map(out, 0);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc key = doc_skip(&cur);
        const struct doc value = doc_skip(&cur);
        doc_put_doc(out, key);
        if (vector.len > 0 && str_is(doc_string(key), "cursor")) {
            if (cursor[0] == '#') {
                doc_put_u64(out, strtoull(cursor + 1, NULL, 10));
            } else {
                doc_put_cstr(out, cursor);
            }
        } else {
            doc_put_doc(out, value);
        }
    }
    return true;
}

static void note_keys(struct shard_merge *m, struct doc answer)
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
        if (!known && m->keys_n < SHARD_MERGE_KEYS_MAX) {
            m->keys[m->keys_n++] = key;
        }
    }
}

void shard_merge_begin(struct shard_merge *m, struct str type, uint32_t shards)
{
    memset(m, 0, sizeof *m);
    m->shards = shards;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        m->order = str_is(type, orders[i].type) ? &orders[i] : m->order;
    }
}

void shard_merge_take(struct shard_merge *m, uint32_t shard, struct doc answer)
{
    m->of[shard] = answer;
    note_keys(m, answer);
}

/* ---- one answer ---- */

static struct doc first_of(const struct shard_merge *m, struct str key)
{
    for (uint32_t i = 0; i < m->shards; i++) {
        const struct doc d = m->of[i].ptr != NULL ? doc_get(m->of[i], key) : (struct doc){NULL, 0};
        if (d.ptr != NULL) {
            return d;
        }
    }
    return (struct doc){NULL, 0};
}

static uint32_t count_items(const struct shard_merge *m, struct str key)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->shards; i++) {
        const struct doc d = m->of[i].ptr != NULL ? doc_get(m->of[i], key) : (struct doc){NULL, 0};
        n += d.ptr != NULL && doc_head(d).kind == DOC_ARRAY ? doc_head(d).n : 0;
    }
    return n;
}

static enum bt_code put_list(const struct shard_merge *m, struct str key, struct buf *out,
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

static void put_cursor(const struct shard_merge *m, struct buf *out)
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

static uint64_t add_up(const struct shard_merge *m, struct str key)
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

static bool any_is_true(const struct shard_merge *m, struct str key)
{
    bool any = false;

    for (uint32_t i = 0; i < m->shards; i++) {
        const struct doc d = m->of[i].ptr != NULL ? doc_get(m->of[i], key) : (struct doc){NULL, 0};
        any = any || (d.ptr != NULL && doc_head(d).kind == DOC_BOOL && doc_head(d).b);
    }
    return any;
}

static enum bt_code put_member(const struct shard_merge *m, struct str key, struct buf *out,
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

enum bt_code shard_merge_write(const struct shard_merge *m, struct buf *out, struct bt_error *err)
{
    uint32_t missing = 0;
    enum bt_code code = BT_OK;

    if (m->keys_n == 0) {
        return err_set(err, BT_UNAVAILABLE, "none of the %u shards answers", (unsigned)m->shards);
    }
    doc_put_map(out, m->keys_n + 1);
    for (uint32_t i = 0; i < m->keys_n && code == BT_OK; i++) {
        code = put_member(m, m->keys[i], out, err);
    }
    for (uint32_t i = 0; i < m->shards; i++) {
        missing += m->asked[i] && m->of[i].ptr == NULL;
    }
    doc_put_cstr(out, "missingShards");
    doc_put_array(out, missing);
    for (uint32_t i = 0; i < m->shards; i++) {
        if (m->asked[i] && m->of[i].ptr == NULL) {
            doc_put_u64(out, i);
        }
    }
    return code == BT_OK ? buf_check(out, err) : code;
}
