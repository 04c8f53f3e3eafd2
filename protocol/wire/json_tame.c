#include "protocol/wire/json_tame.h"

#include <stdio.h>
#include <string.h>

#include "protocol/base/utf8.h"

static bool may_be_unsafe(uint8_t c)
{
    return c == 0x7F || c >= 0xC2;
}

static size_t put_escape(char *to, uint32_t c)
{
    char text[16];
    int n;

    if (c > 0xFFFF) {
        c -= 0x10000;
        n = snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xD800 + (c >> 10)),
                     (unsigned)(0xDC00 + (c & 0x3FF)));
    } else {
        n = snprintf(text, sizeof text, "\\u%04x", (unsigned)c);
    }
    memcpy(to, text, (size_t)n);
    return (size_t)n;
}

static bool is_unsafe(uint32_t c)
{
    return c >= 0x7F && c != 0xFFFD && utf8_is_unsafe(c);
}

/* By how much the escapes are longer than their characters. */
static size_t more_for(const char *text, size_t len)
{
    size_t more = 0;
    size_t n;

    for (size_t i = 0; i < len; i += n) {
        const uint32_t c = utf8_char(text + i, len - i, &n);
        more += is_unsafe(c) ? (c > 0xFFFF ? 12 : 6) - n : 0;
    }
    return more;
}

void json_tame(struct buf *out, size_t from)
{
    size_t first = from;
    size_t len, more, n;
    char *from_at, *to;

    while (first < out->len && !may_be_unsafe(out->at[first])) {
        first++;
    }
    len = out->len > first ? out->len - first : 0;
    more = len > 0 ? more_for((const char *)out->at + first, len) : 0;
    if (more == 0 || buf_reserve(out, more) == NULL) {
        return;
    }
    to = (char *)out->at + first;
    from_at = to + more;
    memmove(from_at, to, len); /* what is read stays ahead of what is written */
    for (size_t i = 0; i < len; i += n) {
        const uint32_t c = utf8_char(from_at + i, len - i, &n);
        if (is_unsafe(c)) {
            to += put_escape(to, c);
        } else {
            memmove(to, from_at + i, n);
            to += n;
        }
    }
    out->len += more;
}
