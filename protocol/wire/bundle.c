#include "protocol/wire/bundle.h"

#include <string.h>

enum { VERSION = 1, COUNT_AT = 2, ROW_KEPT_BYTES = 1024 * 1024 };

static void put(uint8_t *at, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(number >> (8 * (bytes - 1 - i)));
    }
}

static uint64_t get(const uint8_t *at, unsigned bytes)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < bytes; i++) {
        number = number << 8 | at[i];
    }
    return number;
}

void bundle_put(struct buf *b, uint64_t tag, struct str body)
{
    uint8_t head[BUNDLE_ITEM_BYTES];

    put(head, body.len, 4);
    put(head + 4, tag, 8);
    buf_add(b, head, sizeof head);
    buf_add_str(b, body);
}

void bundle_begin(struct buf *b)
{
    static const uint8_t head[BUNDLE_HEAD_BYTES] = {BUNDLE_MARK, VERSION};

    buf_clear(b);
    buf_add(b, head, sizeof head);
}

bool bundle_add(struct buf *b, uint32_t max, uint64_t tag, struct str body)
{
    const size_t before = b->len;
    uint32_t count;

    if (b->bad != BT_OK) {
        return false;
    }
    count = (uint32_t)get(b->at + COUNT_AT, 2);
    if (count >= max || count >= BUNDLE_ITEMS_MAX ||
        (count > 0 && before + BUNDLE_ITEM_BYTES + body.len > BUNDLE_FULL_BYTES)) {
        return false;
    }
    bundle_put(b, tag, body);
    if (b->bad != BT_OK) {
        return false;
    }
    put(b->at + COUNT_AT, count + 1, 2);
    return true;
}

size_t bundle_take(struct buf *out, uint32_t max, struct str row)
{
    struct bundle_reader r = bundle_items(row);
    size_t taken = 0;
    struct str body;
    uint64_t tag;

    bundle_begin(out);
    while (bundle_next(&r, &tag, &body) && bundle_add(out, max, tag, body)) {
        taken += BUNDLE_ITEM_BYTES + body.len;
    }
    return taken;
}

void bundle_drop(struct buf *row, size_t n)
{
    const size_t left = row->len - n;

    if (left > 0) {
        memmove(row->at, row->at + n, left);
    }
    buf_truncate(row, left);
    if (left == 0 && row->cap > ROW_KEPT_BYTES) {
        buf_done(row);
    }
}

bool bundle_is(struct str bytes)
{
    return bytes.len > 0 && (uint8_t)bytes.ptr[0] == BUNDLE_MARK;
}

/* Walks over the bodies. */
static enum bt_code check_items(const struct bundle_reader *r, struct bt_error *err)
{
    const uint8_t *at = r->at;

    for (uint32_t i = 0; i < r->left; i++) {
        const size_t left = (size_t)(r->end - at);
        uint64_t len = left >= BUNDLE_ITEM_BYTES ? get(at, 4) : 0;
        if (left < BUNDLE_ITEM_BYTES || len > left - BUNDLE_ITEM_BYTES) {
            return err_set(err, BT_PROTOCOL, "bundle: cut in body %u of %u", i + 1, r->left);
        }
        at += BUNDLE_ITEM_BYTES + len;
    }
    return at == r->end ? BT_OK
                        : err_set(err, BT_PROTOCOL, "bundle: %zu bytes after its %u bodies",
                                  (size_t)(r->end - at), r->left);
}

enum bt_code bundle_open(struct bundle_reader *ret, struct str bytes, struct bt_error *err)
{
    const uint8_t *at = (const uint8_t *)bytes.ptr;

    *ret = (struct bundle_reader){0};
    if (!bundle_is(bytes) || bytes.len < BUNDLE_HEAD_BYTES) {
        return err_set(err, BT_PROTOCOL, "bundle: expected 0x%X and a head of %d bytes",
                       BUNDLE_MARK, BUNDLE_HEAD_BYTES);
    }
    if (at[1] != VERSION) {
        return err_set(err, BT_PROTOCOL, "bundle: version %u is not known; expected %d", at[1],
                       VERSION);
    }
    ret->at = at + BUNDLE_HEAD_BYTES;
    ret->end = at + bytes.len;
    ret->left = (uint32_t)get(at + COUNT_AT, 2);
    if (ret->left > BUNDLE_ITEMS_MAX) {
        return err_set(err, BT_PROTOCOL, "bundle: %u bodies; at most %d", ret->left,
                       BUNDLE_ITEMS_MAX);
    }
    return check_items(ret, err);
}

struct bundle_reader bundle_items(struct str row)
{
    const uint8_t *at = (const uint8_t *)row.ptr;

    return (struct bundle_reader){.at = at, .end = at + row.len, .left = UINT32_MAX};
}

bool bundle_next(struct bundle_reader *r, uint64_t *ret_tag, struct str *ret_body)
{
    size_t len;

    if (r->left == 0 || r->at == r->end) {
        return false;
    }
    len = (size_t)get(r->at, 4);
    *ret_tag = get(r->at + 4, 8);
    *ret_body = (struct str){(const char *)r->at + BUNDLE_ITEM_BYTES, len};
    r->at += BUNDLE_ITEM_BYTES + len;
    r->left--;
    return true;
}
