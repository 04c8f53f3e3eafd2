#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "protocol/base/utf8.h"
#include "protocol/wire/mp_validate.h"
#include "protocol/wire/msg_table.h"

enum {
    ARENA_MAX = 64 * 1024 * 1024, /* LIMIT_NODES of the largest list elements need less */
    DESCRIPTION_MAX = 80
};

#define DOUBLE_INTEGER_MAX                                                                         \
    9007199254740992.0 /* 2^53: up to here a float names exactly one integer */

struct read_ctx {
    struct arena *arena;
    struct bt_error *err;
};

static enum bt_code read_map(struct read_ctx *r, struct doc_cursor *c, enum msg_type type,
                             const struct msg_path *path, void *ret_body);

/* ---- errors ---- */

/* Describes the value for people: 'abc', 7, null, a list of 3. */
static void describe(const struct doc_head *h, char ret[DESCRIPTION_MAX])
{
    switch (h->kind) {
    case DOC_NIL:
        (void)snprintf(ret, DESCRIPTION_MAX, "null");
        break;
    case DOC_BOOL:
        (void)snprintf(ret, DESCRIPTION_MAX, "%s", h->b ? "true" : "false");
        break;
    case DOC_INT:
        (void)snprintf(ret, DESCRIPTION_MAX, "%" PRId64, h->i);
        break;
    case DOC_UINT:
        (void)snprintf(ret, DESCRIPTION_MAX, "%" PRIu64, h->u);
        break;
    case DOC_FLOAT:
        (void)snprintf(ret, DESCRIPTION_MAX, "%.17g", h->f);
        break;
    case DOC_STR:
        (void)snprintf(ret, DESCRIPTION_MAX, "'%.*s'%s", (int)utf8_cut(h->str.ptr, h->str.len, 40),
                       h->str.ptr, h->str.len > 40 ? "..." : "");
        break;
    case DOC_BIN:
        (void)snprintf(ret, DESCRIPTION_MAX, "%zu bytes of bin", h->str.len);
        break;
    case DOC_ARRAY:
        (void)snprintf(ret, DESCRIPTION_MAX, "a list of %" PRIu32, h->n);
        break;
    case DOC_MAP:
        (void)snprintf(ret, DESCRIPTION_MAX, "a map of %" PRIu32, h->n);
        break;
    }
}

static enum bt_code wrong_type(struct read_ctx *r, const struct msg_path *path,
                               const char *expected, const struct doc_head *got)
{
    char path_text[MSG_PATH_MAX];
    char description[DESCRIPTION_MAX];

    describe(got, description);
    return err_set(r->err, BT_INVALID, "%s: expected %s, got %s", msg_path_text(path, path_text),
                   expected, description);
}

static enum bt_code too_large(struct read_ctx *r, const struct msg_path *path, size_t n,
                              uint64_t max, const char *unit)
{
    char path_text[MSG_PATH_MAX];
    return err_set(r->err, BT_LIMIT, "%s: %zu %s, at most %" PRIu64, msg_path_text(path, path_text),
                   n, unit, max);
}

static enum bt_code out_of_memory(struct read_ctx *r, const struct msg_path *path)
{
    char path_text[MSG_PATH_MAX];
    return err_set(r->err, BT_NOMEM, "%s: out of memory", msg_path_text(path, path_text));
}

/* ---- values ---- */

static enum bt_code read_str(struct read_ctx *r, const struct msg_path *path, uint64_t max,
                             const struct doc_head *h, struct str *ret)
{
    if (h->kind != DOC_STR) {
        return wrong_type(r, path, "a string", h);
    }
    if (h->str.len > max) {
        return too_large(r, path, h->str.len, max, "bytes");
    }
    *ret = h->str;
    return BT_OK;
}

/* Many languages send 1.0 for 1, so a whole float up to 2^53 counts as an integer. */
static void float_to_int(struct doc_head *h)
{
    if (h->kind != DOC_FLOAT || floor(h->f) != h->f || fabs(h->f) > DOUBLE_INTEGER_MAX) {
        return;
    }
    h->kind = h->f < 0 ? DOC_INT : DOC_UINT;
    h->i = h->f < 0 ? (int64_t)h->f : 0;
    h->u = h->f < 0 ? 0 : (uint64_t)h->f;
}

static enum bt_code read_number(struct read_ctx *r, const struct msg_path *path,
                                const struct msg_field *f, struct doc_head *h, void *ret)
{
    char expected[64];

    if (f->kind == FIELD_F64) {
        double v = h->kind == DOC_FLOAT ? h->f : h->kind == DOC_INT ? (double)h->i : (double)h->u;
        if (h->kind != DOC_FLOAT && h->kind != DOC_INT && h->kind != DOC_UINT) {
            return wrong_type(r, path, "a number", h);
        }
        memcpy(ret, &v, sizeof v);
        return BT_OK;
    }
    float_to_int(h);
    if (f->kind == FIELD_U64) {
        if (h->kind != DOC_UINT || h->u > f->max) {
            (void)snprintf(expected, sizeof expected, "an integer from 0 to %" PRIu64, f->max);
            if (f->max == UINT64_MAX) { /* nobody means that number */
                (void)snprintf(expected, sizeof expected, "an integer from 0 on");
            }
            return wrong_type(r, path, expected, h);
        }
        memcpy(ret, &h->u, sizeof h->u);
        return BT_OK;
    }
    if (h->kind == DOC_UINT && h->u <= INT64_MAX) {
        h->i = (int64_t)h->u;
    } else if (h->kind != DOC_INT) {
        return wrong_type(r, path, "an integer of 64 bits with sign", h);
    }
    memcpy(ret, &h->i, sizeof h->i);
    return BT_OK;
}

static enum bt_code read_bool(struct read_ctx *r, const struct msg_path *path,
                              const struct doc_head *h, bool *ret)
{
    if (h->kind != DOC_BOOL) {
        return wrong_type(r, path, "true or false", h);
    }
    *ret = h->b;
    return BT_OK;
}

/* Reads the elements of a LIST or STRS; the cursor is at the first. */
static enum bt_code read_list(struct read_ctx *r, struct doc_cursor *c, const struct msg_path *path,
                              const struct msg_field *f, const struct doc_head *h, uint8_t *body)
{
    size_t size = f->kind == FIELD_STRS ? sizeof(struct str) : msg_table[f->part].size;
    uint8_t *items;

    if (h->kind != DOC_ARRAY) {
        return wrong_type(r, path, "a list", h);
    }
    if (h->n > f->list_max) {
        return too_large(r, path, h->n, f->list_max, "elements");
    }
    items = arena_alloc(r->arena, size * h->n);
    if (items == NULL) {
        return out_of_memory(r, path);
    }
    for (uint32_t i = 0; i < h->n; i++) {
        struct msg_path at = {path, {NULL, 0}, i};
        struct doc_head item = {.kind = DOC_NIL};
        void *to = items + size * i;
        enum bt_code code;
        if (f->kind == FIELD_LIST) {
            code = read_map(r, c, f->part, &at, to);
        } else {
            (void)doc_next(c, &item);
            code = read_str(r, &at, f->max, &item, to);
        }
        if (code != BT_OK) {
            return code;
        }
    }
    memcpy(body + f->at, &items, sizeof items);
    memcpy(body + f->n_at, &h->n, sizeof h->n);
    return BT_OK;
}

static enum bt_code read_doc(struct read_ctx *r, struct doc_cursor *c, const struct msg_path *path,
                             const struct msg_field *f, struct doc *ret)
{
    struct doc d = doc_skip(c);

    if (d.len > f->max) {
        return too_large(r, path, d.len, f->max, "bytes");
    }
    *ret = d;
    return BT_OK;
}

/* Reads the value of one known field. */
static enum bt_code read_field(struct read_ctx *r, struct doc_cursor *c,
                               const struct msg_path *path, const struct msg_field *f,
                               uint8_t *body)
{
    void *to = body + f->at;
    struct doc_head h = {.kind = DOC_NIL};

    if (f->kind == FIELD_DOC) {
        return read_doc(r, c, path, f, to);
    }
    if (f->kind == FIELD_SUB) {
        return read_map(r, c, f->part, path, to);
    }
    (void)doc_next(c, &h);
    switch (f->kind) {
    case FIELD_STR:
        return read_str(r, path, f->max, &h, to);
    case FIELD_U64:
    case FIELD_I64:
    case FIELD_F64:
        return read_number(r, path, f, &h, to);
    case FIELD_BOOL:
        return read_bool(r, path, &h, to);
    case FIELD_LIST:
    case FIELD_STRS:
        return read_list(r, c, path, f, &h, body);
    case FIELD_DOC:
    case FIELD_SUB:
    case FIELD_KIND_COUNT:
        break;
    }
    return err_set(r->err, BT_INTERNAL, "a field of no known kind");
}

/* ---- maps ---- */

/* Peers mostly send the fields in our order, so the search starts after the last match. */
static uint32_t find_field(const struct msg_desc *desc, uint32_t from, struct str name)
{
    for (uint32_t i = 0; i < desc->n; i++) {
        uint32_t ix = from + i < desc->n ? from + i : from + i - desc->n;
        if (str_eq(desc->fields[ix].name, name)) {
            return ix;
        }
    }
    return desc->n;
}

static enum bt_code check_required(struct read_ctx *r, const struct msg_desc *desc, uint64_t has,
                                   const struct msg_path *path)
{
    static const char *const names[FIELD_KIND_COUNT] = {
        [FIELD_STR] = "a string",
        [FIELD_U64] = "an integer",
        [FIELD_I64] = "an integer",
        [FIELD_F64] = "a number",
        [FIELD_BOOL] = "true or false",
        [FIELD_DOC] = "a value",
        [FIELD_SUB] = "a map",
        [FIELD_LIST] = "a list",
        [FIELD_STRS] = "a list of strings",
    };

    for (uint32_t i = 0; i < desc->n; i++) {
        if (desc->fields[i].required && !msg_bit(has, i)) {
            struct msg_path at = {path, desc->fields[i].name, 0};
            char path_text[MSG_PATH_MAX];
            return err_set(r->err, BT_INVALID, "%s: missing; expected %s",
                           msg_path_text(&at, path_text), names[desc->fields[i].kind]);
        }
    }
    return BT_OK;
}

/* ret_body is zeroed. null for an optional field is the same as no field. */
static enum bt_code read_map(struct read_ctx *r, struct doc_cursor *c, enum msg_type type,
                             const struct msg_path *path, void *ret_body)
{
    const struct msg_desc *desc = &msg_table[type];
    struct doc_head map = {.kind = DOC_NIL};
    uint64_t has = 0;
    uint32_t next = 0;

    (void)doc_next(c, &map);
    if (map.kind != DOC_MAP) {
        return wrong_type(r, path, "a map", &map);
    }
    for (uint32_t i = 0; i < map.n; i++) {
        struct doc_head key = {.kind = DOC_NIL};
        struct msg_path at = {path, {NULL, 0}, 0};
        enum bt_code code;
        uint32_t ix;

        (void)doc_next(c, &key);
        ix = find_field(desc, next, key.str);
        if (ix == desc->n || (!desc->fields[ix].required && c->at < c->end && *c->at == 0xC0)) {
            (void)doc_skip(c);
            continue;
        }
        at.name = desc->fields[ix].name;
        code = read_field(r, c, &at, &desc->fields[ix], ret_body);
        if (code != BT_OK) {
            return code;
        }
        has |= UINT64_C(1) << ix;
        next = ix + 1;
    }
    memcpy(ret_body, &has, sizeof has);
    return check_required(r, desc, has, path);
}

enum bt_code msg_read_doc(struct arena *arena, struct doc doc, enum msg_type type, void *ret_body,
                          struct bt_error *err)
{
    struct read_ctx r = {arena, err};
    struct doc_cursor c = doc_cursor(doc);
    struct msg_path top = {NULL, STR_LIT("body"), 0};
    struct doc_head h = doc_head(doc);

    memset(ret_body, 0, msg_table[type].size);
    if (h.kind != DOC_MAP) {
        return wrong_type(&r, &top, "a map", &h);
    }
    return read_map(&r, &c, type, NULL, ret_body);
}

enum bt_code msg_read(struct msg_reader *r, enum msg_type type, void *ret_body,
                      struct bt_error *err)
{
    return msg_read_doc(&r->arena, (struct doc){r->body, r->len}, type, ret_body, err);
}

/* ---- the reader ---- */

static enum bt_code convert_json(struct msg_reader *r, struct str json, struct bt_error *err)
{
    struct json_limits limits = {json.len, LIMIT_DEPTH, LIMIT_NODES};
    enum bt_code code;

    buf_init(&r->converted, json_doc_capacity(json.len));
    code = json_to_doc(json, &limits, &r->converted, err);
    if (code == BT_OK) {
        r->body = r->converted.at;
        r->len = r->converted.len;
    }
    return code;
}

enum bt_code msg_reader_init(struct msg_reader *ret, const void *bytes, size_t len,
                             size_t max_bytes, struct bt_error *err)
{
    const uint8_t *at = bytes;
    enum bt_code code;

    *ret = (struct msg_reader){.form = len > 0 && at[0] == '{' ? WIRE_JSON : WIRE_MSGPACK,
                               .arena = {.max = ARENA_MAX}};
    if (len > max_bytes) {
        return err_set(err, BT_LIMIT, "a body of %zu bytes, at most %zu", len, max_bytes);
    }
    if (ret->form == WIRE_JSON) {
        code = convert_json(ret, (struct str){bytes, len}, err);
    } else {
        code = mp_validate(bytes, len, NULL, err);
        ret->body = at;
        ret->len = len;
    }
    if (code == BT_OK && doc_head((struct doc){ret->body, ret->len}).kind != DOC_MAP) {
        code = err_set(err, BT_INVALID,
                       "a body must be one msgpack map, or a JSON object with '{' first");
    }
    if (code != BT_OK) {
        msg_reader_done(ret);
    }
    return code;
}

void msg_reader_done(struct msg_reader *r)
{
    if (r != NULL) {
        arena_done(&r->arena);
        buf_done(&r->converted);
        r->body = NULL;
        r->len = 0;
    }
}
