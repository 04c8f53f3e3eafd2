#include "protocol/base/uuid.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_dash_at(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

void uuid_format(struct uuid id, char ret[UUID_TEXT_LEN + 1])
{
    static const char digits[] = "0123456789ABCDEF";
    size_t at = 0;

    for (size_t i = 0; i < sizeof id.b; i++) {
        if (is_dash_at(at)) {
            ret[at++] = '-';
        }
        ret[at++] = digits[id.b[i] >> 4];
        ret[at++] = digits[id.b[i] & 15];
    }
    ret[at] = 0;
}

bool uuid_parse(struct str text, struct uuid *ret_id)
{
    struct uuid id;
    size_t n = 0;

    if (text.len != UUID_TEXT_LEN) {
        return false;
    }
    for (size_t i = 0; i < UUID_TEXT_LEN;) {
        int high;
        int low;
        if (is_dash_at(i)) {
            if (text.ptr[i++] != '-') {
                return false;
            }
            continue;
        }
        high = hex_value(text.ptr[i]);
        low = hex_value(text.ptr[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        id.b[n++] = (uint8_t)(high * 16 + low);
        i += 2;
    }
    *ret_id = id;
    return true;
}
