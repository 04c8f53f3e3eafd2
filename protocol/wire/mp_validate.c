#include "protocol/wire/mp_validate.h"

#include <inttypes.h>
#include <math.h>

#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "protocol/wire/mp_head_internal.h"
#include "protocol/wire/unique_keys_internal.h"

struct frame {
    uint64_t left;        /* values to come; in a map an even number means a key is next */
    const uint8_t *first; /* the first value inside */
    uint32_t n;
    bool is_map;
};

struct mp_validator {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
    struct mp_limits limits;
    uint32_t nodes;
    uint32_t depth;
    struct frame frames[WIRE_DEPTH_MAX];
    struct bt_error *err;
};

static enum bt_code error_at(struct mp_validator *v, enum bt_code code, const uint8_t *at,
                             const char *what)
{
    return err_set(v->err, code, "byte %zu: %s", (size_t)(at - v->start), what);
}

static enum bt_code check_head(struct mp_validator *v, struct doc_head *ret, size_t *ret_len)
{
    switch (mp_head_read(v->at, v->end, ret, ret_len)) {
    case HEAD_OK:
        break;
    case HEAD_TRUNCATED:
        return error_at(v, BT_INVALID, v->at, "the value ends after the end of the bytes");
    case HEAD_EXT:
        return error_at(v, BT_INVALID, v->at, "ext types (timestamps too) are not allowed");
    case HEAD_RESERVED:
        return error_at(v, BT_INVALID, v->at, "0xC1 is no msgpack");
    }
    if (++v->nodes > v->limits.nodes) {
        return err_set(v->err, BT_LIMIT, "byte %zu: more than %" PRIu32 " values",
                       (size_t)(v->at - v->start), v->limits.nodes);
    }
    if (ret->kind == DOC_FLOAT && !isfinite(ret->f)) {
        return error_at(v, BT_INVALID, v->at, "a number must be finite");
    }
    if (ret->kind == DOC_STR) {
        if (!utf8_valid(ret->str.ptr, ret->str.len)) {
            return error_at(v, BT_INVALID, v->at, "a string must be UTF-8; bytes go into bin");
        }
        if (ret->str.len > 0 && memchr(ret->str.ptr, 0, ret->str.len) != NULL) {
            return error_at(v, BT_INVALID, v->at,
                            "a string must not hold a zero byte; bytes go into bin");
        }
    }
    return BT_OK;
}

static enum bt_code enter(struct mp_validator *v, const struct doc_head *h)
{
    uint64_t children = mp_head_children(h);

    if (v->depth >= v->limits.depth) {
        return err_set(v->err, BT_LIMIT, "byte %zu: nested deeper than %" PRIu32,
                       (size_t)(v->at - v->start), v->limits.depth);
    }
    if (children > (uint64_t)(v->end - v->at) - 1) {
        return error_at(v, BT_INVALID, v->at, "promises more values than there are bytes");
    }
    return BT_OK;
}

/* Leaves every container whose last value was read. */
static enum bt_code leave(struct mp_validator *v)
{
    while (v->depth > 0 && v->frames[v->depth - 1].left == 0) {
        const struct frame *f = &v->frames[--v->depth];
        struct unique_keys_duplicate found;

        if (!f->is_map) {
            continue;
        }
        switch (unique_keys_check(f->first, v->at, f->n, &found)) {
        case KEYS_UNIQUE:
            break;
        case KEYS_DUPLICATE:
            return err_set(v->err, BT_INVALID, "byte %zu: the key '%.*s' is there twice",
                           (size_t)(found.at - v->start),
                           (int)utf8_cut(found.key.ptr, found.key.len, 64), found.key.ptr);
        case KEYS_COLLIDING:
            return error_at(v, BT_LIMIT, f->first,
                            "too many keys of this map collide in a hash table");
        }
    }
    return BT_OK;
}

static enum bt_code check_value(struct mp_validator *v)
{
    struct frame *f = v->depth > 0 ? &v->frames[v->depth - 1] : NULL;
    struct doc_head h;
    size_t len;
    enum bt_code code = check_head(v, &h, &len);

    if (code != BT_OK) {
        return code;
    }
    if (f != NULL && f->is_map && f->left % 2 == 0 && h.kind != DOC_STR) {
        return error_at(v, BT_INVALID, v->at, "the key of a map must be a string");
    }
    if (h.kind == DOC_ARRAY || h.kind == DOC_MAP) {
        code = enter(v, &h);
        if (code != BT_OK) {
            return code;
        }
    }
    v->at += len;
    if (f != NULL) {
        f->left--;
    }
    if (mp_head_children(&h) > 0) {
        v->frames[v->depth++] = (struct frame){mp_head_children(&h), v->at, h.n, h.kind == DOC_MAP};
    }
    return leave(v);
}

enum bt_code mp_validate(const void *bytes, size_t len, const struct mp_limits *limits,
                         struct bt_error *err)
{
    struct mp_validator v = {
        .start = bytes, .at = bytes, .end = (const uint8_t *)bytes + len, .err = err};
    enum bt_code code;

    v.limits = limits != NULL ? *limits : (struct mp_limits){LIMIT_DEPTH, LIMIT_NODES};
    if (v.limits.depth > WIRE_DEPTH_MAX) {
        v.limits.depth = WIRE_DEPTH_MAX;
    }
    if (len == 0) {
        return err_set(err, BT_INVALID, "nothing there: expected one msgpack value");
    }
    if (len >= UINT32_MAX) {
        return err_set(err, BT_LIMIT, "%zu bytes are more than any body may have", len);
    }
    do {
        code = check_value(&v);
        if (code != BT_OK) {
            return code;
        }
    } while (v.depth > 0);
    if (v.at != v.end) {
        return error_at(&v, BT_INVALID, v.at, "bytes behind the end of the value");
    }
    return BT_OK;
}
