#include "protocol/wire/mp_head_internal.h"

/* What the bytes 0xC0..0xDF open: the kind, and how many bytes of number follow. */
enum shape {
    S_NIL,
    S_RESERVED,
    S_BOOL,
    S_BIN,
    S_EXT,
    S_FLOAT,
    S_UINT,
    S_INT,
    S_STR,
    S_ARRAY,
    S_MAP
};

static const struct {
    uint8_t shape;
    uint8_t arg;
} shapes[32] = {
    [0x00] = {S_NIL, 0},   [0x01] = {S_RESERVED, 0}, [0x02] = {S_BOOL, 0},  [0x03] = {S_BOOL, 0},
    [0x04] = {S_BIN, 1},   [0x05] = {S_BIN, 2},      [0x06] = {S_BIN, 4},   [0x07] = {S_EXT, 1},
    [0x08] = {S_EXT, 2},   [0x09] = {S_EXT, 4},      [0x0A] = {S_FLOAT, 4}, [0x0B] = {S_FLOAT, 8},
    [0x0C] = {S_UINT, 1},  [0x0D] = {S_UINT, 2},     [0x0E] = {S_UINT, 4},  [0x0F] = {S_UINT, 8},
    [0x10] = {S_INT, 1},   [0x11] = {S_INT, 2},      [0x12] = {S_INT, 4},   [0x13] = {S_INT, 8},
    [0x14] = {S_EXT, 1},   [0x15] = {S_EXT, 1},      [0x16] = {S_EXT, 1},   [0x17] = {S_EXT, 1},
    [0x18] = {S_EXT, 1},   [0x19] = {S_STR, 1},      [0x1A] = {S_STR, 2},   [0x1B] = {S_STR, 4},
    [0x1C] = {S_ARRAY, 2}, [0x1D] = {S_ARRAY, 4},    [0x1E] = {S_MAP, 2},   [0x1F] = {S_MAP, 4},
};

static uint64_t big_endian(const uint8_t *at, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        v = v << 8 | at[i];
    }
    return v;
}

static double as_float(uint64_t bits, size_t n)
{
    double wide;
    float narrow;
    uint32_t low = (uint32_t)bits;

    if (n == 4) {
        memcpy(&narrow, &low, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* A two's complement number of n bytes; a number >= 0 becomes DOC_UINT whatever it was written as.
 */
static void set_int(struct doc_head *h, uint64_t bits, size_t n)
{
    uint64_t sign = (uint64_t)1 << (8 * n - 1);

    if ((bits & sign) == 0) {
        h->kind = DOC_UINT;
        h->u = bits;
        return;
    }
    h->kind = DOC_INT;
    h->i = (int64_t)(bits | ~(sign | (sign - 1))); /* the sign, carried to 64 bits */
}

static enum mp_head_error set_bytes(const uint8_t *at, const uint8_t *end, enum doc_kind kind,
                                    uint64_t n, struct doc_head *h, size_t *ret_len)
{
    if (n > (uint64_t)(end - at) - *ret_len) {
        return HEAD_TRUNCATED;
    }
    h->kind = kind;
    h->str = (struct str){(const char *)at + *ret_len, (size_t)n};
    *ret_len += (size_t)n;
    return HEAD_OK;
}

static enum mp_head_error read_sized(const uint8_t *at, const uint8_t *end, struct doc_head *h,
                                     size_t *ret_len)
{
    enum shape shape = (enum shape)shapes[at[0] - 0xC0].shape;
    size_t arg = shapes[at[0] - 0xC0].arg;
    uint64_t v;

    if (shape == S_EXT || shape == S_RESERVED) {
        return shape == S_EXT ? HEAD_EXT : HEAD_RESERVED;
    }
    if ((size_t)(end - at) < 1 + arg) {
        return HEAD_TRUNCATED;
    }
    v = big_endian(at + 1, arg);
    *ret_len = 1 + arg;
    switch (shape) {
    case S_BOOL:
        h->kind = DOC_BOOL;
        h->b = at[0] == 0xC3;
        break;
    case S_BIN:
        return set_bytes(at, end, DOC_BIN, v, h, ret_len);
    case S_STR:
        return set_bytes(at, end, DOC_STR, v, h, ret_len);
    case S_FLOAT:
        h->kind = DOC_FLOAT;
        h->f = as_float(v, arg);
        break;
    case S_UINT:
        h->kind = DOC_UINT;
        h->u = v;
        break;
    case S_INT:
        set_int(h, v, arg);
        break;
    case S_ARRAY:
    case S_MAP:
        h->kind = shape == S_ARRAY ? DOC_ARRAY : DOC_MAP;
        h->n = (uint32_t)v;
        break;
    case S_NIL:
    case S_EXT:
    case S_RESERVED:
        break;
    }
    return HEAD_OK;
}

enum mp_head_error mp_head_read(const uint8_t *at, const uint8_t *end, struct doc_head *ret,
                                size_t *ret_len)
{
    uint8_t b;

    if (at == end) {
        return HEAD_TRUNCATED;
    }
    b = at[0];
    *ret = (struct doc_head){.kind = DOC_NIL};
    *ret_len = 1;
    if (b <= 0x7F) {
        ret->kind = DOC_UINT;
        ret->u = b;
    } else if (b <= 0x8F) {
        ret->kind = DOC_MAP;
        ret->n = b & 0x0Fu;
    } else if (b <= 0x9F) {
        ret->kind = DOC_ARRAY;
        ret->n = b & 0x0Fu;
    } else if (b <= 0xBF) {
        return set_bytes(at, end, DOC_STR, b & 0x1Fu, ret, ret_len);
    } else if (b >= 0xE0) {
        ret->kind = DOC_INT;
        ret->i = (int64_t)b - 256;
    } else {
        return read_sized(at, end, ret, ret_len);
    }
    return HEAD_OK;
}

uint64_t mp_head_children(const struct doc_head *h)
{
    if (h->kind == DOC_ARRAY) {
        return h->n;
    }
    return h->kind == DOC_MAP ? (uint64_t)h->n * 2 : 0;
}

bool mp_head_skip(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *p = *at;
    uint64_t left = 1;

    while (left > 0) {
        struct doc_head h;
        size_t len;
        if (mp_head_read(p, end, &h, &len) != HEAD_OK) {
            return false;
        }
        p += len;
        left += mp_head_children(&h) - 1;
    }
    *at = p;
    return true;
}
