/* bt_submit_many: plans.submit, and each plan by itself that it leaves open. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/shard.h"
#include "protocol/client/client_internal.h"
#include "protocol/wire/shard_route.h"

enum {
    ATTEMPTS = 3,
    HEAD_BYTES = 1024,                            /* of a request, without its plans */
    FULL_BYTES = LIMIT_CONTROL_BYTES - HEAD_BYTES /* a plan that is longer goes alone */
};

/* The plans of one request, which are for one shard. */
struct group {
    struct buf plans;
    uint32_t n;
    size_t at[LIMIT_PLANS_AT_ONCE]; /* their places in the caller's list */
    struct bt_error silent;         /* why nobody answers there; BT_OK = somebody may */
};

struct many {
    struct bt_client *c;
    const struct bt_submit *plans;
    struct bt_submitted *results;
    char (*keys)[UUID_TEXT_LEN + 1]; /* for plans without */
    struct group *groups;
    uint32_t shards;
    bool one_by_one; /* the daemon knows no plans.submit */
};

static const char *key_of(const struct many *m, size_t i)
{
    return m->plans[i].client_key != NULL ? m->plans[i].client_key : m->keys[i];
}

static void submit_alone(struct many *m, size_t i)
{
    struct bt_submit s = m->plans[i];
    struct bt_submitted *r = &m->results[i];

    s.client_key = key_of(m, i);
    bt_free(r->json);
    r->json = NULL;
    if (bt_submit(m->c, &s, r->plan_id, &r->json, &r->err) == BT_OK) {
        r->err = (struct bt_error){.code = BT_OK};
    } else {
        r->plan_id[0] = 0;
    }
}

static char *as_json(struct doc d)
{
    struct buf json;
    char *text = NULL;
    size_t len;

    buf_init(&json, 8 * (size_t)LIMIT_STEP_BYTES);
    if (d.ptr != NULL && doc_to_json(d, false, &json, NULL) == BT_OK) {
        (void)buf_cstr(&json);
        text = (char *)buf_take(&json, &len);
    }
    buf_done(&json);
    return text;
}

static bool is_true(struct doc d)
{
    return d.ptr != NULL && doc_head(d).kind == DOC_BOOL && doc_head(d).b;
}

/* One answer of the list. False: the plan is to be submitted by itself. */
static bool take_one(struct doc answer, struct bt_submitted *r)
{
    const struct str id = doc_string(doc_get(answer, STR_LIT("planId")));
    const struct doc error = doc_get(answer, STR_LIT("error"));
    struct str name;
    struct str message;

    if (is_true(doc_get(answer, STR_LIT("ok"))) && id.len > 0 && id.len <= BT_ID_LEN) {
        (void)snprintf(r->plan_id, sizeof r->plan_id, "%.*s", STR_ARG(id));
        r->json = as_json(answer);
        r->err = (struct bt_error){.code = BT_OK};
        return true;
    }
    if (error.ptr == NULL) {
        return false;
    }
    name = doc_string(doc_get(error, STR_LIT("code")));
    message = doc_string(doc_get(error, STR_LIT("message")));
    r->err.code = err_code_from_name(name.ptr != NULL ? name.ptr : "", name.len);
    (void)snprintf(r->err.msg, sizeof r->err.msg, "%.*s",
                   message.ptr != NULL ? (int)message.len : 0,
                   message.ptr != NULL ? message.ptr : "");
    r->json = as_json(error);
    return r->err.code != BT_OK && r->err.code != BT_MOVED && r->err.code != BT_TIMEOUT &&
           r->err.code != BT_UNAVAILABLE;
}

/* The answers to the plans of the group, in their order. */
static enum bt_code take_answers(struct many *m, const struct group *g, struct str body, bool *open,
                                 struct bt_error *err)
{
    struct msg_plans_submit_ok ok;
    struct msg_reader r = {0};
    struct doc_cursor at;
    struct doc_head list = {.kind = DOC_NIL};
    enum bt_code code = msg_reader_init(&r, body.ptr, body.len, LIMIT_STEP_BYTES, err);

    code = code == BT_OK ? msg_read_answer(&r, MSG_plans_submit_ok, &ok, NULL, err) : code;
    if (code == BT_OK) {
        at = doc_cursor(ok.answers);
        if (!doc_next(&at, &list) || list.kind != DOC_ARRAY || list.n != g->n) {
            code = err_set(err, BT_PROTOCOL, "the answer to plans.submit is not one for each plan");
        }
    }
    for (uint32_t i = 0; code == BT_OK && i < g->n; i++) {
        open[i] = !take_one(doc_skip(&at), &m->results[g->at[i]]);
    }
    msg_reader_done(&r);
    return code;
}

/* Where the plans of a shard go: of one shard always to c. */
static enum bt_code client_of(struct many *m, uint32_t shard, struct bt_client **ret,
                              struct bt_error *err)
{
    *ret = m->c;
    return m->shards > 1 ? client_shard(m->c, shard, ret, err) : BT_OK;
}

static enum bt_code ask(struct many *m, uint32_t shard, const struct buf *fields, bool *open,
                        struct bt_error *err)
{
    struct link_msg *msg = NULL;
    struct bt_client *to;
    struct str body;
    enum bt_code code = client_of(m, shard, &to, err);

    if (code == BT_OK) {
        code = client_ask(to, "plans.submit", doc_from_buf(fields), m->c->timeout_ms, &msg, &body,
                          err);
    }
    if (code == BT_OK) {
        code = take_answers(m, &m->groups[shard], body, open, err);
    }
    if (msg != NULL) {
        link_msg_free(msg);
    }
    return code;
}

/* The keys make a repeated request safe. */
static enum bt_code ask_again(struct many *m, uint32_t shard, const struct buf *fields, bool *open,
                              struct bt_error *err)
{
    enum bt_code code = BT_TIMEOUT;

    for (int i = 0; i < ATTEMPTS && (code == BT_TIMEOUT || code == BT_UNAVAILABLE); i++) {
        code = ask(m, shard, fields, open, err);
    }
    return code;
}

static bool is_silent(enum bt_code code)
{
    return code == BT_TIMEOUT || code == BT_UNAVAILABLE;
}

/* The request for all of the group. *ret_alone: each of its plans may be right by itself. */
static enum bt_code submit_group(struct many *m, uint32_t shard, bool *open, bool *ret_alone,
                                 struct bt_error *err)
{
    const struct group *g = &m->groups[shard];
    struct buf fields;
    enum bt_code code;

    *ret_alone = m->one_by_one || g->n == 1;
    if (*ret_alone) {
        return BT_OK;
    }
    buf_init(&fields, LIMIT_STEP_BYTES);
    doc_put_map(&fields, 1);
    doc_put_cstr(&fields, "plans");
    doc_put_array(&fields, g->n);
    buf_add(&fields, g->plans.at, g->plans.len);
    code = buf_check(&fields, err);
    code = code == BT_OK ? ask_again(m, shard, &fields, open, err) : code;
    buf_done(&fields);
    m->one_by_one = code == BT_INVALID && strstr(err->msg, "unknown request type") != NULL;
    *ret_alone = code == BT_INVALID || code == BT_LIMIT; /* together too much, or too deep */
    return *ret_alone ? BT_OK : code;
}

/* Submits what the group has, and empties it. Where nobody answered, nobody is asked again: each
 * of many plans would wait as long. */
static void flush(struct many *m, uint32_t shard)
{
    struct group *g = &m->groups[shard];
    bool open[LIMIT_PLANS_AT_ONCE] = {false};
    struct bt_error err = g->silent;
    enum bt_code code = err.code;
    bool alone = false;
    bool silent = false;

    if (code == BT_OK && g->n > 0) {
        code = submit_group(m, shard, open, &alone, &err);
    }
    if (is_silent(code)) {
        g->silent = err;
    }
    for (uint32_t i = 0; i < g->n; i++) {
        struct bt_submitted *r = &m->results[g->at[i]];
        if (code != BT_OK) {
            r->err = err;
        } else if ((alone || open[i]) && !silent) {
            submit_alone(m, g->at[i]);
            silent = is_silent(r->err.code);
            err = r->err;
        } else if (alone || open[i]) {
            bt_free(r->json);
            r->json = NULL;
            r->err = err;
        }
    }
    if (alone && silent) {
        g->silent = err;
    }
    buf_clear(&g->plans);
    g->n = 0;
}

static void add(struct many *m, size_t i)
{
    struct bt_submitted *r = &m->results[i];
    struct buf plan;
    uint32_t shard = 0;

    buf_init(&plan, LIMIT_STEP_BYTES);
    if (client_put_submit(&m->plans[i], key_of(m, i), &plan, &r->err) != BT_OK) {
        buf_done(&plan);
        return;
    }
    if (m->shards > 1) {
        const int of = shard_of_request(STR_LIT("plan.submit"), doc_from_buf(&plan), m->shards);
        shard = of >= 0 ? (uint32_t)of : 0;
    }
    if (m->groups[shard].n == LIMIT_PLANS_AT_ONCE ||
        m->groups[shard].plans.len + plan.len > FULL_BYTES) {
        flush(m, shard);
    }
    if (plan.len > FULL_BYTES && m->groups[shard].silent.code == BT_OK) {
        submit_alone(m, i);
    } else if (plan.len > FULL_BYTES) {
        r->err = m->groups[shard].silent;
    } else {
        struct group *g = &m->groups[shard];
        buf_add(&g->plans, plan.at, plan.len);
        if (buf_check(&g->plans, &r->err) == BT_OK) {
            g->at[g->n++] = i;
        } else {
            flush(m, shard);
        }
    }
    buf_done(&plan);
}

static enum bt_code many_begin(struct many *m, size_t n, struct bt_error *err)
{
    const enum bt_code code = client_shards_count(m->c, &m->shards, err);

    if (code != BT_OK) {
        return code;
    }
    m->groups = calloc(m->shards, sizeof *m->groups);
    m->keys = calloc(n, sizeof *m->keys);
    if (m->groups == NULL || m->keys == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %zu plans", n);
    }
    for (uint32_t i = 0; i < m->shards; i++) {
        buf_init(&m->groups[i].plans, FULL_BYTES);
    }
    for (size_t i = 0; i < n; i++) {
        if (m->plans[i].client_key == NULL) {
            uuid_format(uuid_new(), m->keys[i]);
        }
    }
    return BT_OK;
}

static void many_end(struct many *m)
{
    for (uint32_t i = 0; m->groups != NULL && i < m->shards; i++) {
        buf_done(&m->groups[i].plans);
    }
    free(m->groups);
    free(m->keys);
}

enum bt_code bt_submit_many(struct bt_client *c, const struct bt_submit *plans, size_t n,
                            struct bt_submitted *results, struct bt_error *err)
{
    struct many m = {.c = c, .plans = plans, .results = results, .shards = 1};
    enum bt_code code = BT_OK;

    for (size_t i = 0; i < n; i++) {
        results[i] = (struct bt_submitted){.json = NULL};
    }
    code = n > 0 ? many_begin(&m, n, err) : BT_OK;
    for (size_t i = 0; i < n; i++) {
        if (code != BT_OK) {
            (void)err_set(&results[i].err, code, "%s", err != NULL ? err->msg : "");
        } else {
            add(&m, i);
        }
    }
    for (uint32_t i = 0; n > 0 && code == BT_OK && i < m.shards; i++) {
        flush(&m, i);
    }
    many_end(&m);
    for (size_t i = 0; i < n && code == BT_OK; i++) {
        if (results[i].err.code != BT_OK) {
            code = err_set(err, results[i].err.code, "plan %zu: %s", i + 1, results[i].err.msg);
        }
    }
    return code;
}
