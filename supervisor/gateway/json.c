#include "supervisor/gateway/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A value follows: the comma before it, when something was before. */
static void next(struct buf *out)
{
    const uint8_t last = out->len > 0 ? out->at[out->len - 1] : '[';

    if (last != '{' && last != '[' && last != ':' && last != '\n' && last != ' ') {
        buf_add_byte(out, ',');
    }
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
