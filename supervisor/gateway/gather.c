/* A request that is for all shards: each is asked, and their answers become one. */
#include <stdlib.h>

#include "protocol/wire/shard_merge.h"
#include "supervisor/gateway/upstream_internal.h"

enum { PART_MS = 3000 }; /* for the answer of a shard; then it is missing */

struct part {
    struct gather *of;
    struct call *call; /* NULL: it has answered, or is not asked */
    struct buf answer;
};

struct gather {
    struct call head; /* what the caller abandons; in no queue */
    struct shard_merge one;
    struct part parts[SHARDS_MAX];
    uint32_t left;
    bool failed;
};

static void gather_free(struct gather *g)
{
    for (uint32_t i = 0; i < g->one.shards; i++) {
        buf_done(&g->parts[i].answer);
    }
    free(g);
}

static void finish(struct gather *g)
{
    struct reply r = {.ok = true};
    struct bt_error err;
    struct buf whole;
    enum bt_code code;

    buf_init(&whole, (size_t)g->one.shards * LIMIT_STEP_BYTES);
    if (g->head.done != NULL && !g->failed) {
        code = shard_merge_write(&g->one, &whole, &err);
        r.ok = code == BT_OK;
        r.body = doc_from_buf(&whole);
        r.problem = (struct problem){.code = code,
                                     .message = str_from(code == BT_OK ? "" : err.msg),
                                     .retry_after_ms = err_code_wait_ms(code)};
        g->head.done(g->head.self, &r);
    }
    buf_done(&whole);
    gather_free(g);
}

static bool is_missing(enum bt_code code)
{
    return code == BT_UNAVAILABLE || code == BT_TIMEOUT || code == BT_BUSY || code == BT_MOVED;
}

static void on_part(void *self, const struct reply *reply)
{
    struct part *p = self;
    struct gather *g = p->of;

    p->call = NULL;
    if (reply->ok) {
        buf_add(&p->answer, reply->body.ptr, reply->body.len);
        if (buf_check(&p->answer, NULL) == BT_OK) {
            shard_merge_take(&g->one, (uint32_t)(p - g->parts), doc_from_buf(&p->answer));
        }
    } else if (!is_missing(reply->problem.code) && !g->failed) {
        g->failed = true; /* as one shard refuses it, all do */
        if (g->head.done != NULL) {
            g->head.done(g->head.self, reply);
        }
    }
    if (--g->left == 0) {
        finish(g);
    }
}

void gather_abandon(struct gather *g)
{
    g->head.done = NULL;
}

/* BT_OK also when it is missing. */
static enum bt_code ask(struct gather *g, struct caller *c, uint32_t shard,
                        const struct call_spec *spec, msec now, struct bt_error *err)
{
    struct part *p = &g->parts[shard];
    struct call_spec one = *spec;
    struct buf fields;
    enum bt_code code = BT_OK;

    buf_init(&fields, LIMIT_STEP_BYTES);
    g->one.asked[shard] = shard_fields(spec->fields, shard, &fields);
    if (g->one.asked[shard]) {
        one.fields = doc_from_buf(&fields);
        one.to_shard = shard + 1;
        one.within_ms = PART_MS;
        one.done = on_part;
        one.self = p;
        code = caller_call(c, &one, now, &p->call, err);
        g->left += p->call != NULL;
    }
    buf_done(&fields);
    return is_missing(code) ? BT_OK : code;
}

enum bt_code gather_call(struct caller *c, const struct call_spec *spec, msec now,
                         struct call **ret, struct bt_error *err)
{
    const uint32_t shards = c->up->fleet.shards;
    struct gather *g = calloc(1, sizeof *g);
    enum bt_code code = BT_OK;

    *ret = NULL;
    if (g == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a request");
    }
    shard_merge_begin(&g->one, str_from(msg_wire_type(spec->type)), shards);
    g->head = (struct call){.of = c, .gather = g, .done = spec->done, .self = spec->self};
    for (uint32_t i = 0; i < shards; i++) {
        g->parts[i].of = g;
        buf_init(&g->parts[i].answer, LIMIT_STEP_BYTES);
    }
    for (uint32_t i = 0; i < shards && code == BT_OK; i++) {
        code = ask(g, c, i, spec, now, err);
    }
    if (code == BT_OK && g->left == 0) {
        code = err_set(err, BT_UNAVAILABLE, "none of the %u shards can be asked now",
                       (unsigned)shards);
    }
    if (code == BT_OK) {
        *ret = &g->head;
        return BT_OK;
    }
    g->head.done = NULL;
    g->failed = true;
    if (g->left == 0) {
        gather_free(g); /* else the last answer frees it */
    }
    return code;
}
