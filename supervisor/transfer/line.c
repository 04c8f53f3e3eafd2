/* One line: members with a name and a value, written and read. */
#include <string.h>

#include "protocol/wire/base64.h"
#include "supervisor/transfer/transfer_internal.h"

void line_begin(struct line *l, const char *kind)
{
    buf_init(&l->members, LINE_MAX);
    l->n = 0;
    line_text(l, "kind", str_from(kind));
}

void line_text(struct line *l, const char *key, struct str v)
{
    if (v.len > 0) {
        doc_put_cstr(&l->members, key);
        doc_put_str(&l->members, v);
        l->n++;
    }
}

void line_number(struct line *l, const char *key, uint64_t v)
{
    if (v > 0) {
        doc_put_cstr(&l->members, key);
        doc_put_u64(&l->members, v);
        l->n++;
    }
}

void line_bytes(struct line *l, const char *key, const void *bytes, size_t len)
{
    if (len > 0) {
        doc_put_cstr(&l->members, key);
        doc_put_bin(&l->members, bytes, len);
        l->n++;
    }
}

void line_uuid(struct line *l, const char *key, struct uuid v)
{
    char text[UUID_TEXT_LEN + 1];

    if (!uuid_is_nil(v)) {
        uuid_format(v, text);
        line_text(l, key, str_from(text));
    }
}

void line_doc(struct line *l, const char *key, struct doc v)
{
    doc_put_cstr(&l->members, key);
    doc_put_doc(&l->members, v);
    l->n++;
}

enum bt_code line_end(struct line *l, struct buf *out, struct bt_error *err)
{
    struct buf map;
    enum bt_code code = buf_check(&l->members, err);

    buf_init(&map, LINE_MAX);
    doc_put_map(&map, l->n);
    buf_add(&map, l->members.at, l->members.len);
    if (code == BT_OK) {
        code = buf_check(&map, err);
    }
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&map), false, out, err);
    }
    if (code == BT_OK) {
        buf_add_byte(out, '\n');
        code = buf_check(out, err);
    }
    buf_done(&map);
    buf_done(&l->members);
    return code;
}

/* ---- reading ---- */

struct str line_get_text(struct doc line, const char *key)
{
    const struct str v = doc_string(doc_get(line, str_from(key)));

    return v.ptr == NULL ? (struct str){"", 0} : v;
}

uint64_t line_get_number(struct doc line, const char *key)
{
    const struct doc v = doc_get(line, str_from(key));
    const struct doc_head head = v.ptr != NULL ? doc_head(v) : (struct doc_head){.kind = DOC_NIL};

    return head.kind == DOC_UINT ? head.u : 0;
}

bool line_get_uuid(struct doc line, const char *key, struct uuid *ret)
{
    const struct str text = line_get_text(line, key);

    *ret = (struct uuid){{0}};
    return text.len == 0 || uuid_parse(text, ret);
}

enum bt_code line_get_bytes(struct doc line, const char *key, struct buf *out, struct bt_error *err)
{
    return json_read_base64(line_get_text(line, key), out, err) == BT_OK ? BT_OK
                                                                         : err_wrap(err, "%s", key);
}

/* ---- bodies ---- */

static bool is_ref(struct str name)
{
    return name.len > 3 && memcmp(name.ptr + name.len - 3, "Ref", 3) == 0;
}

/* The place of an id in a rising list, from 1 on; 0 = it is not there. */
static uint64_t place_of(uint64_t id, const uint64_t *ids, uint32_t n)
{
    uint32_t from = 0;
    uint32_t to = n;

    while (from < to) {
        const uint32_t mid = from + (to - from) / 2;
        if (ids[mid] < id) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    return from < n && ids[from] == id ? from + 1 : 0;
}

/* The value when it is the number of a blob: a number over 0. */
static uint64_t ref_of(struct str name, struct doc value)
{
    const struct doc_head head = doc_head(value);

    return is_ref(name) && head.kind == DOC_UINT ? head.u : 0;
}

enum bt_code body_to_line(struct str body, const uint64_t *ids, uint32_t n, struct buf *out,
                          struct bt_error *err)
{
    const struct doc whole = {(const uint8_t *)body.ptr, body.len};
    const bool has_seq = doc_get(whole, STR_LIT("seq")).ptr != NULL;
    struct doc_cursor c = doc_cursor(whole);
    struct doc_head head;
    struct doc_head key;

    if (!doc_next(&c, &head) || head.kind != DOC_MAP) {
        return err_set(err, BT_IO, "a row has no map");
    }
    doc_put_map(out, head.n - (has_seq ? 1 : 0));
    for (uint32_t i = 0; i < head.n && doc_next(&c, &key); i++) {
        const struct doc value = doc_skip(&c);
        uint64_t ref;
        if (key.kind != DOC_STR || value.ptr == NULL) {
            return err_set(err, BT_IO, "a row has a member without a name");
        }
        if (str_is(key.str, "seq")) {
            continue;
        }
        doc_put_str(out, key.str);
        ref = ref_of(key.str, value);
        if (ref == 0) {
            doc_put_doc(out, value);
            continue;
        }
        ref = place_of(ref, ids, n);
        if (ref == 0) {
            return err_set(err, BT_IO, "a row names a result that is not noted");
        }
        doc_put_u64(out, ref);
    }
    return buf_check(out, err);
}

enum bt_code body_from_line(struct doc body, uint64_t seq, const uint64_t *ids, uint32_t n,
                            struct buf *out, uint64_t refs[JOURNAL_ROW_BLOBS], uint32_t *ret_refs,
                            struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(body);
    struct doc_head head;
    struct doc_head key;

    *ret_refs = 0;
    if (body.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "event: expected an object");
    }
    doc_put_map(out, head.n + (seq > 0 ? 1 : 0));
    if (seq > 0) {
        doc_put_cstr(out, "seq");
        doc_put_u64(out, seq);
    }
    for (uint32_t i = 0; i < head.n && doc_next(&c, &key); i++) {
        const struct doc value = doc_skip(&c);
        const uint64_t ref = ref_of(key.str, value);
        if (str_is(key.str, "seq")) {
            return err_set(err, BT_INVALID, "event: seq is the journal's own");
        }
        doc_put_str(out, key.str);
        if (ref == 0) {
            doc_put_doc(out, value);
            continue;
        }
        if (ref > n || *ret_refs == JOURNAL_ROW_BLOBS) {
            return err_set(err, BT_INVALID, "event: %.*s names a result that was not given",
                           STR_ARG(key.str));
        }
        refs[(*ret_refs)++] = ids[ref - 1];
        doc_put_u64(out, ids[ref - 1]);
    }
    return buf_check(out, err);
}
