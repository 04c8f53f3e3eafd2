#include "protocol/wire/base64.h"

/* The value of a digit, or -1. */
static int digit_of(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

enum bt_code json_read_base64(struct str text, struct buf *out, struct bt_error *err)
{
    size_t pad = 0;

    while (pad < 2 && pad < text.len && text.ptr[text.len - 1 - pad] == '=') {
        pad++;
    }
    if (text.len % 4 != 0) {
        return err_set(err, BT_INVALID, "not base64");
    }
    for (size_t i = 0; i < text.len; i += 4) {
        uint8_t bytes[3];
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            const bool padding = i + k >= text.len - pad;
            const int d = padding ? 0 : digit_of(text.ptr[i + k]);
            if (d < 0) {
                return err_set(err, BT_INVALID, "not base64");
            }
            v = v << 6 | (uint32_t)d;
        }
        bytes[0] = (uint8_t)(v >> 16);
        bytes[1] = (uint8_t)(v >> 8);
        bytes[2] = (uint8_t)v;
        buf_add(out, bytes, i + 4 == text.len ? 3 - pad : 3);
    }
    return buf_check(out, err);
}
