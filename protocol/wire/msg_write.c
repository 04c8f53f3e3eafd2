#include <inttypes.h>
#include <math.h>

#include "protocol/base/utf8.h"
#include "protocol/wire/mp_head_internal.h"
#include "protocol/wire/msg_table.h"

struct write_ctx {
    struct buf *out;
    struct bt_error *err;
};

static enum bt_code write_map(struct write_ctx *w, const struct msg_part *parts, uint32_t n,
                              const struct msg_path *path);

/* ---- which fields are written ---- */

static uint32_t count_at(const void *body, const struct msg_field *f)
{
    uint32_t n;
    memcpy(&n, (const uint8_t *)body + f->n_at, sizeof n);
    return n;
}

static bool body_is_empty(enum msg_type type, const void *body);

static bool field_is_empty(const struct msg_field *f, const void *body)
{
    static const uint64_t zero;
    const void *at = (const uint8_t *)body + f->at;

    switch (f->kind) {
    case FIELD_STR:
        return ((const struct str *)at)->len == 0;
    case FIELD_U64:
    case FIELD_I64:
    case FIELD_F64:
        return memcmp(at, &zero, sizeof zero) == 0;
    case FIELD_BOOL:
        return !*(const bool *)at;
    case FIELD_DOC:
        return ((const struct doc *)at)->ptr == NULL;
    case FIELD_SUB:
        return body_is_empty(f->part, at);
    case FIELD_LIST:
    case FIELD_STRS:
        return count_at(body, f) == 0;
    case FIELD_KIND_COUNT:
        break;
    }
    return true;
}

static bool body_is_empty(enum msg_type type, const void *body)
{
    const struct msg_desc *desc = &msg_table[type];

    for (uint32_t i = 0; i < desc->n; i++) {
        if (!field_is_empty(&desc->fields[i], body)) {
            return false;
        }
    }
    return true;
}

static bool is_written(const struct msg_desc *desc, uint32_t ix, const void *body)
{
    uint64_t has;

    memcpy(&has, body, sizeof has);
    return desc->fields[ix].required || msg_bit(has, ix) ||
           !field_is_empty(&desc->fields[ix], body);
}

/* ---- values ---- */

static enum bt_code reject(struct write_ctx *w, const struct msg_path *path, enum bt_code code,
                           const char *what)
{
    char path_text[MSG_PATH_MAX];
    return err_set(w->err, code, "%s: %s", msg_path_text(path, path_text), what);
}

static enum bt_code too_large(struct write_ctx *w, const struct msg_path *path, size_t n,
                              uint64_t max, const char *unit)
{
    char path_text[MSG_PATH_MAX];
    return err_set(w->err, BT_LIMIT, "%s: %zu %s, at most %" PRIu64, msg_path_text(path, path_text),
                   n, unit, max);
}

/* Rejects here what the peer's validator would reject, because here the field has a name. */
static enum bt_code write_str(struct write_ctx *w, const struct msg_path *path, uint64_t max,
                              struct str v)
{
    if (v.len > max) {
        return too_large(w, path, v.len, max, "bytes");
    }
    if (!utf8_valid(v.ptr, v.len) || (v.len > 0 && memchr(v.ptr, 0, v.len) != NULL)) {
        return reject(w, path, BT_INVALID, "must be UTF-8 without zero bytes");
    }
    doc_put_str(w->out, v);
    return BT_OK;
}

static enum bt_code write_u64(struct write_ctx *w, const struct msg_path *path, uint64_t max,
                              uint64_t v)
{
    char path_text[MSG_PATH_MAX];

    if (v > max) {
        return err_set(w->err, BT_INVALID,
                       "%s: expected an integer from 0 to %" PRIu64 ", got %" PRIu64,
                       msg_path_text(path, path_text), max, v);
    }
    doc_put_u64(w->out, v);
    return BT_OK;
}

/* Copies the bytes. Checking for one whole value keeps the map well formed. */
static enum bt_code write_doc(struct write_ctx *w, const struct msg_path *path, uint64_t max,
                              struct doc v)
{
    const uint8_t *end = v.ptr;

    if (v.ptr == NULL) {
        doc_put_nil(w->out);
        return BT_OK;
    }
    if (v.len > max) {
        return too_large(w, path, v.len, max, "bytes");
    }
    if (!mp_head_skip(&end, v.ptr + v.len) || end != v.ptr + v.len) {
        return reject(w, path, BT_INVALID, "must be one whole msgpack value");
    }
    doc_put_doc(w->out, v);
    return BT_OK;
}

static enum bt_code write_list(struct write_ctx *w, const struct msg_path *path,
                               const struct msg_field *f, const void *body)
{
    uint32_t n = count_at(body, f);
    const uint8_t *items;
    enum bt_code code = BT_OK;

    memcpy(&items, (const uint8_t *)body + f->at, sizeof items);
    if (n > f->list_max) {
        return too_large(w, path, n, f->list_max, "elements");
    }
    doc_put_array(w->out, n);
    for (uint32_t i = 0; code == BT_OK && i < n; i++) {
        struct msg_path at = {path, {NULL, 0}, i};
        if (f->kind == FIELD_STRS) {
            code = write_str(w, &at, f->max, ((const struct str *)(const void *)items)[i]);
        } else {
            struct msg_part part = {f->part, items + msg_table[f->part].size * i};
            code = write_map(w, &part, 1, &at);
        }
    }
    return code;
}

static enum bt_code write_field(struct write_ctx *w, const struct msg_path *path,
                                const struct msg_field *f, const void *body)
{
    const void *at = (const uint8_t *)body + f->at;

    switch (f->kind) {
    case FIELD_STR:
        return write_str(w, path, f->max, *(const struct str *)at);
    case FIELD_U64:
        return write_u64(w, path, f->max, *(const uint64_t *)at);
    case FIELD_I64:
        doc_put_i64(w->out, *(const int64_t *)at);
        break;
    case FIELD_F64:
        if (!isfinite(*(const double *)at)) {
            return reject(w, path, BT_INVALID, "must be a finite number");
        }
        doc_put_f64(w->out, *(const double *)at);
        break;
    case FIELD_BOOL:
        doc_put_bool(w->out, *(const bool *)at);
        break;
    case FIELD_DOC:
        return write_doc(w, path, f->max, *(const struct doc *)at);
    case FIELD_SUB:
        return write_map(w, &(struct msg_part){f->part, at}, 1, path);
    case FIELD_LIST:
    case FIELD_STRS:
        return write_list(w, path, f, body);
    case FIELD_KIND_COUNT:
        return reject(w, path, BT_INTERNAL, "a field of no known kind");
    }
    return BT_OK;
}

/* ---- maps ---- */

static enum bt_code write_map(struct write_ctx *w, const struct msg_part *parts, uint32_t n,
                              const struct msg_path *path)
{
    uint32_t count = 0;

    for (uint32_t p = 0; p < n; p++) {
        for (uint32_t i = 0; i < msg_table[parts[p].type].n; i++) {
            count += is_written(&msg_table[parts[p].type], i, parts[p].body);
        }
    }
    doc_put_map(w->out, count);
    for (uint32_t p = 0; p < n; p++) {
        const struct msg_desc *desc = &msg_table[parts[p].type];
        for (uint32_t i = 0; i < desc->n; i++) {
            struct msg_path at = {path, desc->fields[i].name, 0};
            enum bt_code code;
            if (!is_written(desc, i, parts[p].body)) {
                continue;
            }
            doc_put_str(w->out, desc->fields[i].name);
            code = write_field(w, &at, &desc->fields[i], parts[p].body);
            if (code != BT_OK) {
                return code;
            }
        }
    }
    return BT_OK;
}

static enum bt_code write_msgpack(struct buf *out, const struct msg_part *parts, uint32_t n,
                                  struct bt_error *err)
{
    struct write_ctx w = {out, err};
    enum bt_code code = write_map(&w, parts, n, NULL);
    return code == BT_OK ? buf_check(out, err) : code;
}

enum bt_code msg_write(struct buf *out, enum wire_form form, const struct msg_part *parts,
                       uint32_t n, struct bt_error *err)
{
    size_t start = out->len;
    struct buf binary;
    enum bt_code code;

    if (form == WIRE_MSGPACK) {
        code = write_msgpack(out, parts, n, err);
    } else {
        buf_init(&binary, json_doc_capacity(out->max));
        code = write_msgpack(&binary, parts, n, err);
        if (code == BT_OK) {
            code = doc_to_json(doc_from_buf(&binary), false, out, err);
        }
        buf_done(&binary);
    }
    if (code != BT_OK) {
        buf_truncate(out, start);
    }
    return code;
}
