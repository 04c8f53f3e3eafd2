#include <inttypes.h>
#include <string.h>

#include "protocol/wire/doc.h"
#include "protocol/wire/mp_head_internal.h"

struct doc_cursor doc_cursor(struct doc d)
{
    static const uint8_t nothing[1];
    const uint8_t *at = d.ptr == NULL ? nothing : d.ptr;
    return (struct doc_cursor){at, at + (d.ptr == NULL ? 0 : d.len)};
}

bool doc_next(struct doc_cursor *c, struct doc_head *ret)
{
    size_t len;
    if (mp_head_read(c->at, c->end, ret, &len) != HEAD_OK) {
        return false;
    }
    c->at += len;
    return true;
}

struct doc doc_skip(struct doc_cursor *c)
{
    const uint8_t *start = c->at;
    if (!mp_head_skip(&c->at, c->end)) {
        return (struct doc){NULL, 0};
    }
    return (struct doc){start, (size_t)(c->at - start)};
}

struct doc_head doc_head(struct doc d)
{
    struct doc_head h;
    size_t len;
    if (d.ptr == NULL || mp_head_read(d.ptr, d.ptr + d.len, &h, &len) != HEAD_OK) {
        h = (struct doc_head){.kind = DOC_NIL};
    }
    return h;
}

/* Most keys are short. */
struct str doc_key(struct doc_cursor *c)
{
    struct doc_head h;
    const size_t n = c->at < c->end ? *c->at & 0x1Fu : 0;
    if (c->at < c->end && *c->at >= 0xA0 && *c->at <= 0xBF && n < (size_t)(c->end - c->at)) {
        const struct str key = {(const char *)c->at + 1, n};
        c->at += 1 + n;
        return key;
    }
    return doc_next(c, &h) && h.kind == DOC_STR ? h.str : (struct str){NULL, 0};
}

struct doc doc_get(struct doc d, struct str key)
{
    struct doc_cursor c = doc_cursor(d);
    struct doc_head map;

    if (doc_next(&c, &map) && map.kind == DOC_MAP) {
        for (uint32_t i = 0; i < map.n; i++) {
            const struct str name = doc_key(&c);
            const bool found = name.ptr != NULL && str_eq(name, key);
            const struct doc value = doc_skip(&c);
            if (found || value.ptr == NULL) {
                return value;
            }
        }
    }
    return (struct doc){NULL, 0};
}

struct doc doc_at(struct doc d, uint32_t ix)
{
    struct doc_cursor c = doc_cursor(d);
    struct doc_head array;

    if (!doc_next(&c, &array) || array.kind != DOC_ARRAY || ix >= array.n) {
        return (struct doc){NULL, 0};
    }
    for (uint32_t i = 0; i < ix; i++) {
        (void)doc_skip(&c);
    }
    return doc_skip(&c);
}

/* Parses a decimal index; false for any other text. */
static bool as_index(struct str text, uint32_t *ret_ix)
{
    uint64_t v = 0;

    if (text.len == 0 || text.len > 10) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        v = v * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    *ret_ix = (uint32_t)v;
    return v < UINT32_MAX;
}

struct doc doc_path(struct doc d, struct str path)
{
    while (path.len > 0 && d.ptr != NULL) {
        const char *dot = memchr(path.ptr, '.', path.len);
        struct str part = {path.ptr, dot != NULL ? (size_t)(dot - path.ptr) : path.len};
        size_t used = part.len + (dot != NULL ? 1 : 0);
        uint32_t ix;

        if (doc_head(d).kind != DOC_ARRAY) {
            d = doc_get(d, part);
        } else {
            d = as_index(part, &ix) ? doc_at(d, ix) : (struct doc){NULL, 0};
        }
        path = (struct str){path.ptr + used, path.len - used};
    }
    return d;
}

struct str doc_string(struct doc d)
{
    struct doc_head h = doc_head(d);
    return h.kind == DOC_STR ? h.str : (struct str){NULL, 0};
}

struct doc doc_copy(struct arena *a, struct doc d)
{
    struct str copy = {NULL, 0};
    if (d.ptr != NULL) {
        copy = arena_str(a, (struct str){(const char *)d.ptr, d.len});
    }
    return (struct doc){(const uint8_t *)copy.ptr, copy.ptr == NULL ? 0 : d.len};
}

struct doc doc_from_buf(const struct buf *b)
{
    return (struct doc){b->len == 0 ? NULL : b->at, b->len};
}

/* ---- equality ---- */

enum { EQUAL_MEMBERS_MAX = 256 };

static double number_of(const struct doc_head *h)
{
    return h->kind == DOC_FLOAT ? h->f : h->kind == DOC_INT ? (double)h->i : (double)h->u;
}

static bool is_number(const struct doc_head *h)
{
    return h->kind == DOC_INT || h->kind == DOC_UINT || h->kind == DOC_FLOAT;
}

static bool scalars_equal(const struct doc_head *a, const struct doc_head *b)
{
    if (is_number(a) && is_number(b)) {
        return a->kind == b->kind && a->kind != DOC_FLOAT ? a->i == b->i && a->u == b->u
                                                          : number_of(a) == number_of(b);
    }
    if (a->kind != b->kind) {
        return false;
    }
    return a->kind == DOC_BOOL
               ? a->b == b->b
               : (a->kind != DOC_STR && a->kind != DOC_BIN) || str_eq(a->str, b->str);
}

/* Recursive: a document is at most LIMIT_DEPTH deep. */
bool doc_eq(struct doc a, struct doc b)
{
    struct doc_cursor at = doc_cursor(a);
    struct doc_cursor bt = doc_cursor(b);
    struct doc_head ah;
    struct doc_head bh;
    if (a.ptr == NULL || b.ptr == NULL) {
        return a.ptr == b.ptr;
    }
    if (!doc_next(&at, &ah) || !doc_next(&bt, &bh)) {
        return false;
    }
    if (ah.kind != DOC_ARRAY && ah.kind != DOC_MAP) {
        return scalars_equal(&ah, &bh);
    }
    if (ah.kind != bh.kind || ah.n != bh.n) {
        return false;
    }
    for (uint32_t i = 0; i < ah.n; i++) {
        struct doc other;
        if (ah.kind == DOC_MAP) {
            const struct str key = doc_string(doc_skip(&at));
            const bool same_place = str_eq(doc_string(doc_skip(&bt)), key);
            other = doc_skip(&bt);
            if (!same_place) {
                other = ah.n <= EQUAL_MEMBERS_MAX ? doc_get(b, key) : (struct doc){NULL, 0};
            }
        } else {
            other = doc_skip(&bt);
        }
        if (other.ptr == NULL || !doc_eq(doc_skip(&at), other)) {
            return false;
        }
    }
    return true;
}

uint32_t doc_refs(const void *map, size_t len, uint64_t *ret, uint32_t max)
{
    struct doc_cursor c = doc_cursor((struct doc){map, len});
    struct doc_head head;
    struct doc_head key;
    uint32_t n = 0;

    if (!doc_next(&c, &head) || head.kind != DOC_MAP) {
        return 0;
    }
    for (uint32_t i = 0; i < head.n && n < max && doc_next(&c, &key); i++) {
        const struct doc value = doc_skip(&c);
        const struct str name = key.kind == DOC_STR ? key.str : (struct str){"", 0};
        if (name.len > 3 && memcmp(name.ptr + name.len - 3, "Ref", 3) == 0 && value.ptr != NULL &&
            doc_head(value).kind == DOC_UINT && doc_head(value).u > 0) {
            ret[n++] = doc_head(value).u;
        }
    }
    return n;
}
