#include "protocol/wire/mp_head_internal.h"

/* The formats of the bytes 0xC0..0xDF: the kind, and the number of length or value bytes that
 * follow. */
enum format {
    FORMAT_NIL,
    FORMAT_RESERVED,
    FORMAT_BOOL,
    FORMAT_BIN,
    FORMAT_EXT,
    FORMAT_FLOAT,
    FORMAT_UINT,
    FORMAT_INT,
    FORMAT_STR,
    FORMAT_ARRAY,
    FORMAT_MAP
};

static const struct {
    uint8_t format;
    uint8_t arg;
} formats[32] = {
    [0x00] = {FORMAT_NIL, 0},  [0x01] = {FORMAT_RESERVED, 0}, [0x02] = {FORMAT_BOOL, 0},
    [0x03] = {FORMAT_BOOL, 0}, [0x04] = {FORMAT_BIN, 1},      [0x05] = {FORMAT_BIN, 2},
    [0x06] = {FORMAT_BIN, 4},  [0x07] = {FORMAT_EXT, 1},      [0x08] = {FORMAT_EXT, 2},
    [0x09] = {FORMAT_EXT, 4},  [0x0A] = {FORMAT_FLOAT, 4},    [0x0B] = {FORMAT_FLOAT, 8},
    [0x0C] = {FORMAT_UINT, 1}, [0x0D] = {FORMAT_UINT, 2},     [0x0E] = {FORMAT_UINT, 4},
    [0x0F] = {FORMAT_UINT, 8}, [0x10] = {FORMAT_INT, 1},      [0x11] = {FORMAT_INT, 2},
    [0x12] = {FORMAT_INT, 4},  [0x13] = {FORMAT_INT, 8},      [0x14] = {FORMAT_EXT, 1},
    [0x15] = {FORMAT_EXT, 1},  [0x16] = {FORMAT_EXT, 1},      [0x17] = {FORMAT_EXT, 1},
    [0x18] = {FORMAT_EXT, 1},  [0x19] = {FORMAT_STR, 1},      [0x1A] = {FORMAT_STR, 2},
    [0x1B] = {FORMAT_STR, 4},  [0x1C] = {FORMAT_ARRAY, 2},    [0x1D] = {FORMAT_ARRAY, 4},
    [0x1E] = {FORMAT_MAP, 2},  [0x1F] = {FORMAT_MAP, 4},
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

/* Decodes a two's complement number of n bytes. A number >= 0 becomes DOC_UINT in any encoding. */
static void set_int(struct doc_head *h, uint64_t bits, size_t n)
{
    uint64_t sign = (uint64_t)1 << (8 * n - 1);

    if ((bits & sign) == 0) {
        h->kind = DOC_UINT;
        h->u = bits;
        return;
    }
    h->kind = DOC_INT;
    h->i = (int64_t)(bits | ~(sign | (sign - 1))); /* extends the sign to 64 bits */
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
    enum format format = (enum format)formats[at[0] - 0xC0].format;
    size_t arg = formats[at[0] - 0xC0].arg;
    uint64_t v;

    if (format == FORMAT_EXT || format == FORMAT_RESERVED) {
        return format == FORMAT_EXT ? HEAD_EXT : HEAD_RESERVED;
    }
    if ((size_t)(end - at) < 1 + arg) {
        return HEAD_TRUNCATED;
    }
    v = big_endian(at + 1, arg);
    *ret_len = 1 + arg;
    switch (format) {
    case FORMAT_BOOL:
        h->kind = DOC_BOOL;
        h->b = at[0] == 0xC3;
        break;
    case FORMAT_BIN:
        return set_bytes(at, end, DOC_BIN, v, h, ret_len);
    case FORMAT_STR:
        return set_bytes(at, end, DOC_STR, v, h, ret_len);
    case FORMAT_FLOAT:
        h->kind = DOC_FLOAT;
        h->f = as_float(v, arg);
        break;
    case FORMAT_UINT:
        h->kind = DOC_UINT;
        h->u = v;
        break;
    case FORMAT_INT:
        set_int(h, v, arg);
        break;
    case FORMAT_ARRAY:
    case FORMAT_MAP:
        h->kind = format == FORMAT_ARRAY ? DOC_ARRAY : DOC_MAP;
        h->n = (uint32_t)v;
        break;
    case FORMAT_NIL:
    case FORMAT_EXT:
    case FORMAT_RESERVED:
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

/* The bytes of a small number, a constant or a short text, which are most values; 0: it is another.
 */
static size_t small_len(uint8_t b)
{
    if (b <= 0x7F || b >= 0xE0 || b == 0xC0 || b == 0xC2 || b == 0xC3) {
        return 1;
    }
    return b >= 0xA0 && b <= 0xBF ? 1u + (b & 0x1Fu) : 0;
}

bool mp_head_skip(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *p = *at;
    uint64_t left = 1;

    while (left > 0) {
        struct doc_head h;
        size_t len = p < end ? small_len(*p) : 0;
        if (len > 0 && len <= (size_t)(end - p)) {
            p += len;
            left--;
            continue;
        }
        if (mp_head_read(p, end, &h, &len) != HEAD_OK) {
            return false;
        }
        p += len;
        left += mp_head_children(&h) - 1;
    }
    *at = p;
    return true;
}
