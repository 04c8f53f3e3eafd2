#include <inttypes.h>
#include <math.h>

#include "protocol/wire/doc.h"
#include "protocol/wire/json_number_internal.h"
#include "protocol/wire/mp_head_internal.h"

struct json_write_frame {
    uint64_t left; /* values to come; in a map an even number means a key is next */
    bool is_map;
    bool started;
};

struct json_writer {
    struct buf *out;
    bool pretty;
    uint32_t depth;
    struct json_write_frame frames[WIRE_DEPTH_MAX];
};

static void put_escape(struct buf *out, char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char named[] = "\"\\bfnrt";
    const char *found = memchr(plain, c, sizeof plain - 1);

    if (found != NULL) {
        buf_add_byte(out, '\\');
        buf_add_byte(out, (uint8_t)named[found - plain]);
    } else {
        buf_printf(out, "\\u%04X", (unsigned)(unsigned char)c);
    }
}

static void put_string(struct buf *out, struct str s)
{
    size_t from = 0;

    buf_add_byte(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20 || c == '"' || c == '\\') {
            buf_add(out, s.ptr + from, i - from);
            put_escape(out, s.ptr[i]);
            from = i + 1;
        }
    }
    buf_add(out, s.ptr + from, s.len - from);
    buf_add_byte(out, '"');
}

void json_put_base64(struct buf *out, struct str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = (const uint8_t *)bytes.ptr;

    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
        uint32_t v = (uint32_t)p[i] << 16;
        char quad[4] = {0, 0, '=', '='};
        if (n > 1) {
            v |= (uint32_t)p[i + 1] << 8;
            quad[2] = digits[v >> 6 & 63];
        }
        if (n > 2) {
            v |= p[i + 2];
            quad[2] = digits[v >> 6 & 63];
            quad[3] = digits[v & 63];
        }
        quad[0] = digits[v >> 18];
        quad[1] = digits[v >> 12 & 63];
        buf_add(out, quad, sizeof quad);
    }
}

static void put_scalar(struct buf *out, const struct doc_head *h)
{
    char number[JSON_FLOAT_MAX];

    switch (h->kind) {
    case DOC_NIL:
        buf_add_cstr(out, "null");
        break;
    case DOC_BOOL:
        buf_add_cstr(out, h->b ? "true" : "false");
        break;
    case DOC_INT:
        buf_printf(out, "%" PRId64, h->i);
        break;
    case DOC_UINT:
        buf_printf(out, "%" PRIu64, h->u);
        break;
    case DOC_FLOAT:
        buf_add(out, number, json_print_float(h->f, number));
        break;
    case DOC_STR:
        put_string(out, h->str);
        break;
    case DOC_BIN:
        buf_add_byte(out, '"');
        json_put_base64(out, h->str);
        buf_add_byte(out, '"');
        break;
    case DOC_ARRAY:
        buf_add_cstr(out, "[]");
        break;
    case DOC_MAP:
        buf_add_cstr(out, "{}");
        break;
    }
}

static void new_line(struct json_writer *w)
{
    if (w->pretty) {
        buf_add_byte(w->out, '\n');
        for (uint32_t i = 0; i < w->depth; i++) {
            buf_add(w->out, "  ", 2);
        }
    }
}

/* Writes the separator between the previous value and this one. */
static void put_separator(struct json_writer *w)
{
    struct json_write_frame *f = w->depth > 0 ? &w->frames[w->depth - 1] : NULL;

    if (f == NULL) {
        return;
    }
    if (f->is_map && f->left % 2 == 1) {
        buf_add_cstr(w->out, w->pretty ? ": " : ":");
    } else {
        if (f->started) {
            buf_add_byte(w->out, ',');
        }
        new_line(w);
    }
    f->started = true;
    f->left--;
}

static enum bt_code put_value(struct json_writer *w, const struct doc_head *h, struct bt_error *err)
{
    struct json_write_frame *f = w->depth > 0 ? &w->frames[w->depth - 1] : NULL;

    if (f != NULL && f->is_map && f->left % 2 == 0 && h->kind != DOC_STR) {
        return err_set(err, BT_INVALID, "the key of a map is no string: it has no JSON form");
    }
    if (h->kind == DOC_FLOAT && !isfinite(h->f)) {
        return err_set(err, BT_INVALID, "a number that is not finite has no JSON form");
    }
    put_separator(w);
    if (mp_head_children(h) == 0) {
        put_scalar(w->out, h);
    } else if (w->depth == WIRE_DEPTH_MAX) {
        return err_set(err, BT_LIMIT, "nested deeper than %d", WIRE_DEPTH_MAX);
    } else {
        buf_add_byte(w->out, h->kind == DOC_MAP ? '{' : '[');
        w->frames[w->depth++] =
            (struct json_write_frame){mp_head_children(h), h->kind == DOC_MAP, false};
    }
    while (w->depth > 0 && w->frames[w->depth - 1].left == 0) {
        w->depth--;
        new_line(w);
        buf_add_byte(w->out, w->frames[w->depth].is_map ? '}' : ']');
    }
    return BT_OK;
}

enum bt_code doc_to_json(struct doc d, bool pretty, struct buf *out, struct bt_error *err)
{
    struct json_writer w = {.out = out, .pretty = pretty};
    struct doc_cursor c = doc_cursor(d);
    size_t start = out->len;
    enum bt_code code;

    do {
        struct doc_head h;
        if (!doc_next(&c, &h)) {
            code = err_set(err, BT_INVALID, "the document ends too early");
        } else {
            code = put_value(&w, &h, err);
        }
        if (code == BT_OK) {
            code = buf_check(out, err);
        }
    } while (code == BT_OK && w.depth > 0);
    if (code != BT_OK) {
        buf_truncate(out, start);
    }
    return code;
}

enum bt_code doc_to_text(struct doc d, struct buf *out, struct bt_error *err)
{
    struct doc_head h = doc_head(d);

    if (h.kind != DOC_STR) {
        return doc_to_json(d, false, out, err);
    }
    buf_add_str(out, h.str);
    return buf_check(out, err);
}
