#include "supervisor/gateway/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/utf8.h"

/* A value follows: the comma before it, when something was before. */
static void next(struct buf *out)
{
    const uint8_t last = out->len > 0 ? out->at[out->len - 1] : '[';

    if (last != '{' && last != '[' && last != ':' && last != '\n' && last != ' ') {
        buf_add_byte(out, ',');
    }
}

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
        n = snprintf(text, sizeof text, "\\u%04X\\u%04X", (unsigned)(0xD800 + (c >> 10)),
                     (unsigned)(0xDC00 + (c & 0x3FF)));
    } else {
        n = snprintf(text, sizeof text, "\\u%04X", (unsigned)c);
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

void json_open(struct buf *out, char bracket)
{
    next(out);
    buf_add_byte(out, (uint8_t)bracket);
}

void json_close(struct buf *out, char bracket)
{
    buf_add_byte(out, (uint8_t)bracket);
}

void json_str(struct buf *out, struct str text)
{
    size_t from;

    next(out);
    from = out->len;
    buf_add_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        const uint8_t c = (uint8_t)text.ptr[i];
        if (c == '"' || c == '\\') {
            buf_add_byte(out, '\\');
            buf_add_byte(out, c);
        } else if (c == '\n') {
            buf_add_cstr(out, "\\n");
        } else if (c < 0x20) {
            buf_printf(out, "\\u%04x", c);
        } else {
            buf_add_byte(out, c);
        }
    }
    buf_add_byte(out, '"');
    json_tame(out, from);
}

void json_cstr(struct buf *out, const char *text)
{
    json_str(out, str_from(text));
}

void json_key(struct buf *out, const char *name)
{
    json_cstr(out, name);
    buf_add_byte(out, ':');
}

void json_u64(struct buf *out, uint64_t v)
{
    next(out);
    buf_printf(out, "%" PRIu64, v);
}

void json_bool(struct buf *out, bool v)
{
    next(out);
    buf_add_cstr(out, v ? "true" : "false");
}

void json_doc(struct buf *out, struct doc d)
{
    size_t from;

    next(out);
    from = out->len;
    if (d.ptr == NULL || doc_to_json(d, false, out, NULL) != BT_OK) {
        buf_add_cstr(out, "null");
    }
    json_tame(out, from);
}

void json_raw(struct buf *out, const char *json)
{
    next(out);
    buf_add_cstr(out, json);
}

void json_member(struct buf *out, const char *name, struct str text)
{
    if (text.len > 0) {
        json_key(out, name);
        json_str(out, text);
    }
}
