#include "supervisor/engine/plan_state.h"

#include "protocol/base/log.h"
#include "protocol/base/map.h"

/* Patches that were checked together can be applied one after the other. */
enum { STATE_ROOM = 16 * LIMIT_STATE_BYTES };

struct members {
    struct doc *keys, *values;
    bool *used;
    struct map by_key;
    uint32_t n;
};

static bool is_map(struct doc d)
{
    return d.ptr != NULL && doc_head(d).kind == DOC_MAP;
}

static bool is_nil(struct doc d)
{
    return doc_head(d).kind == DOC_NIL;
}

static bool read_members(struct doc map, struct arena *arena, struct members *ret)
{
    struct doc_cursor at = doc_cursor(map);
    struct doc_head head;
    bool ok;

    (void)doc_next(&at, &head);
    *ret = (struct members){.n = head.n};
    ret->keys = arena_alloc(arena, (head.n + 1u) * sizeof *ret->keys);
    ret->values = arena_alloc(arena, (head.n + 1u) * sizeof *ret->values);
    ret->used = arena_alloc(arena, (head.n + 1u) * sizeof *ret->used);
    ok = ret->keys != NULL && ret->values != NULL && ret->used != NULL;
    for (uint32_t i = 0; i < ret->n && ok; i++) {
        ret->keys[i] = doc_skip(&at);
        ret->values[i] = doc_skip(&at);
        ok = map_put(&ret->by_key, doc_string(ret->keys[i]), i) == BT_OK;
    }
    return ok;
}

static bool merge(struct doc target, struct doc patch, struct arena *arena, struct buf *out);

/* A member of the patch, applied to what the target has of that name (.ptr NULL: nothing). */
static bool put_patched(struct doc key, struct doc old, struct doc value, struct arena *arena,
                        struct buf *out)
{
    doc_put_doc(out, key);
    if (is_map(value)) {
        return merge(old, value, arena, out);
    }
    doc_put_doc(out, value);
    return true;
}

/* Appends the merged map. Depth is bounded: both documents were validated. */
static bool merge(struct doc target, struct doc patch, struct arena *arena, struct buf *out)
{
    static const uint8_t empty[] = {0x80};
    const struct doc old = is_map(target) ? target : (struct doc){empty, sizeof empty};
    struct members of;
    struct members by;
    uint32_t n = 0;
    bool ok = read_members(old, arena, &of);

    ok = read_members(patch, arena, &by) && ok;
    for (uint32_t i = 0; i < of.n && ok; i++) {
        const uint32_t k = map_get(&by.by_key, doc_string(of.keys[i]));
        n += k == MAP_NONE || !is_nil(by.values[k]);
    }
    for (uint32_t k = 0; k < by.n && ok; k++) {
        by.used[k] = map_get(&of.by_key, doc_string(by.keys[k])) != MAP_NONE;
        n += !by.used[k] && !is_nil(by.values[k]);
    }
    doc_put_map(out, n);
    for (uint32_t i = 0; i < of.n && ok; i++) {
        const uint32_t k = map_get(&by.by_key, doc_string(of.keys[i]));
        if (k == MAP_NONE) {
            doc_put_doc(out, of.keys[i]);
            doc_put_doc(out, of.values[i]);
        } else if (!is_nil(by.values[k])) {
            ok = put_patched(of.keys[i], of.values[i], by.values[k], arena, out);
        }
    }
    for (uint32_t k = 0; k < by.n && ok; k++) {
        if (!by.used[k] && !is_nil(by.values[k])) {
            ok = put_patched(by.keys[k], (struct doc){NULL, 0}, by.values[k], arena, out);
        }
    }
    map_done(&of.by_key);
    map_done(&by.by_key);
    return ok;
}

enum bt_code plan_state_merge(struct doc state, struct doc patch, struct buf *out,
                              struct bt_error *err)
{
    struct arena arena = {.chunks = NULL};
    const bool ok = merge(state, patch, &arena, out);

    arena_done(&arena);
    return ok ? buf_check(out, err) : err_set(err, BT_NOMEM, "out of memory for a plan's state");
}

/* The plan's state with the patch, in *out. */
static enum bt_code merged(struct engine *engine, const struct open_plan *p, struct doc patch,
                           struct buf *out, struct bt_error *err)
{
    struct arena arena = {.chunks = NULL};
    struct doc state = {NULL, 0};
    struct doc own = doc_copy(&arena, patch); /* the cache may move it */
    enum bt_code code = own.ptr == NULL
                            ? err_set(err, BT_NOMEM, "out of memory for a state")
                            : engine_result_doc(engine, open_plan_more(p)->state, &state, err);

    if (code == BT_OK) {
        code = plan_state_merge(state, own, out, err);
    }
    arena_done(&arena);
    return code;
}

enum bt_code plan_state_check(struct engine *engine, const struct open_plan *p, struct doc patch,
                              struct bt_error *err)
{
    struct buf out;
    enum bt_code code;

    if (!is_map(patch)) {
        return err_set(err, BT_INVALID, "state: expected a map, a merge patch of the plan's state");
    }
    buf_init(&out, STATE_ROOM + LIMIT_STATE_BYTES);
    code = merged(engine, p, patch, &out, err);
    if (code == BT_OK && out.len > LIMIT_STATE_BYTES) {
        code = err_set(err, BT_LIMIT,
                       "state_too_large: the plan's state would have %zu bytes, at most %d; remove "
                       "members with null, or return data in the result",
                       out.len, LIMIT_STATE_BYTES);
    }
    buf_done(&out);
    return code;
}

enum bt_code plan_state_apply(struct engine *engine, struct open_plan *p, struct blob_ref result,
                              struct blob_ref *ret, struct bt_error *err)
{
    struct blob_ref stored = {0};
    struct doc patch = {NULL, 0};
    struct doc doc;
    struct buf out;
    enum bt_code code = engine_result_doc(engine, result, &doc, err);

    *ret = stored;
    if (code != BT_OK || !is_map(patch = doc_get(doc, STR_LIT("state")))) {
        return BT_OK; /* a damaged result is not the state's to report */
    }
    buf_init(&out, STATE_ROOM);
    if (merged(engine, p, patch, &out, err) != BT_OK) {
        log_err("plan.state", "plan=%s %s", p->id, err->msg);
    } else {
        code = engine_result_store(engine, &out, &stored, err);
    }
    if (code == BT_OK && stored.id != 0) {
        open_plan_more_change(p)->state = stored;
        *ret = stored;
    }
    buf_done(&out);
    return code;
}
