/*
 * The structure of JSON. The reader is iterative: depth costs a frame in an array, no C stack. A
 * container's head is written when its end is known. Until then five bytes are reserved, and the
 * content moves up when the head needs fewer.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "protocol/wire/json_scan_internal.h"
#include "protocol/wire/unique_keys_internal.h"

enum { HEAD_BYTES_MAX = 5 };

enum bt_code json_error(struct json_scan *s, size_t at, enum bt_code code, const char *fmt, ...)
{
    char what[BT_ERROR_MSG_MAX];
    size_t line = 1;
    size_t column = 1;
    va_list args;

    for (size_t i = 0; i < at && i < s->text.len; i++) {
        if (s->text.ptr[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)s->text.ptr[i] & 0xC0) != 0x80) {
            column++; /* counts characters, as editors do */
        }
    }
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return err_set(s->err, code, "line %zu column %zu: %s", line, column, what);
}

static enum bt_code expected(struct json_scan *s, const char *what)
{
    int c = json_peek(s);

    if (c < 0) {
        return json_error(s, s->at, BT_INVALID, "the text ends here; expected %s", what);
    }
    if (c < 0x20 || c >= 0x7F) {
        return json_error(s, s->at, BT_INVALID, "expected %s, got byte 0x%02X", what, (unsigned)c);
    }
    return json_error(s, s->at, BT_INVALID, "expected %s, got '%c'", what, c);
}

static void skip_space(struct json_scan *s)
{
    int c = json_peek(s);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        s->at++;
        c = json_peek(s);
    }
}

static enum bt_code count_node(struct json_scan *s)
{
    if (++s->nodes > s->limits.nodes) {
        return json_error(s, s->at, BT_LIMIT, "more than %" PRIu32 " values", s->limits.nodes);
    }
    return BT_OK;
}

static enum bt_code scan_literal(struct json_scan *s)
{
    struct str rest = {s->text.ptr + s->at, s->text.len - s->at};

    if (rest.len >= 4 && memcmp(rest.ptr, "null", 4) == 0) {
        doc_put_nil(s->out);
        s->at += 4;
    } else if (rest.len >= 4 && memcmp(rest.ptr, "true", 4) == 0) {
        doc_put_bool(s->out, true);
        s->at += 4;
    } else if (rest.len >= 5 && memcmp(rest.ptr, "false", 5) == 0) {
        doc_put_bool(s->out, false);
        s->at += 5;
    } else {
        return expected(s, "a JSON value");
    }
    return BT_OK;
}

static enum bt_code scan_scalar(struct json_scan *s)
{
    int c = json_peek(s);

    if (c == '"') {
        return json_scan_string(s);
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        return json_scan_number(s);
    }
    return scan_literal(s);
}

static enum bt_code scan_key(struct json_scan *s)
{
    enum bt_code code = count_node(s);

    if (code != BT_OK) {
        return code;
    }
    if (json_peek(s) != '"') {
        return expected(s, "a key in double quotes");
    }
    code = json_scan_string(s);
    if (code != BT_OK) {
        return code;
    }
    skip_space(s);
    if (json_peek(s) != ':') {
        return expected(s, "':'");
    }
    s->at++;
    skip_space(s);
    return BT_OK;
}

static enum bt_code open_container(struct json_scan *s)
{
    struct json_frame f = {.start = s->at, .mp_head_at = s->out->len};

    if (s->depth >= s->limits.depth) {
        return json_error(s, s->at, BT_LIMIT, "nested deeper than %" PRIu32, s->limits.depth);
    }
    f.is_map = json_peek(s) == '{';
    buf_add(s->out, "\0\0\0\0\0", HEAD_BYTES_MAX);
    s->frames[s->depth++] = f;
    s->at++;
    return BT_OK;
}

/* Returns the offset of key number `ordinal` in the object at `start`, which is well formed. */
static size_t find_key(const struct json_scan *s, size_t start, uint32_t ordinal)
{
    bool in_string = false;
    bool key_next = true;
    uint32_t depth = 0;

    for (size_t i = start; i < s->text.len; i++) {
        char c = s->text.ptr[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            if (depth == 1 && key_next && ordinal-- == 0) {
                return i;
            }
            key_next = false;
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == ',' && depth == 1) {
            key_next = true;
        }
    }
    return start;
}

static enum bt_code check_keys(struct json_scan *s, const struct json_frame *f)
{
    const uint8_t *first = s->out->at + f->mp_head_at + HEAD_BYTES_MAX;
    struct unique_keys_duplicate found;

    switch (unique_keys_check(first, s->out->at + s->out->len, f->n, &found)) {
    case KEYS_UNIQUE:
        break;
    case KEYS_DUPLICATE:
        return json_error(s, find_key(s, f->start, found.ordinal), BT_INVALID,
                          "the key '%.*s' is there twice",
                          (int)utf8_cut(found.key.ptr, found.key.len, 64), found.key.ptr);
    case KEYS_COLLIDING:
        return json_error(s, f->start, BT_LIMIT,
                          "too many keys of this object collide in a hash table");
    }
    return BT_OK;
}

/* Writes the shortest head into the reserved bytes and moves the content up to it. */
static void write_head(struct buf *out, const struct json_frame *f)
{
    uint8_t head[2 * HEAD_BYTES_MAX];
    uint8_t *base = out->at + f->mp_head_at;
    uint32_t n = f->n;
    size_t len = n < 16 ? 1 : n < 65536 ? 3 : 5;

    head[0] = f->is_map ? 0xDF : 0xDD;
    if (n < 16) {
        head[0] = (uint8_t)((f->is_map ? 0x80u : 0x90u) | n);
    } else if (n < 65536) {
        head[0] = f->is_map ? 0xDE : 0xDC;
    }
    for (size_t i = 1; i < len; i++) {
        head[i] = (uint8_t)(n >> (8 * (len - 1 - i)));
    }
    memcpy(base, head, len);
    memmove(base + len, base + HEAD_BYTES_MAX, out->len - f->mp_head_at - HEAD_BYTES_MAX);
    buf_truncate(out, out->len - HEAD_BYTES_MAX + len);
}

static enum bt_code close_container(struct json_scan *s)
{
    const struct json_frame *f = &s->frames[--s->depth];
    enum bt_code code = buf_check(s->out, s->err);

    s->at++;
    if (code == BT_OK && f->is_map) {
        code = check_keys(s, f);
    }
    if (code == BT_OK) {
        write_head(s->out, f);
    }
    return code;
}

/* Reads up to and including one scalar or empty container, which completes a value. */
static enum bt_code scan_value(struct json_scan *s)
{
    for (;;) {
        struct json_frame *f;
        enum bt_code code = count_node(s);
        int c = json_peek(s);

        if (code != BT_OK) {
            return code;
        }
        if (c != '{' && c != '[') {
            return scan_scalar(s);
        }
        code = open_container(s);
        if (code != BT_OK) {
            return code;
        }
        skip_space(s);
        f = &s->frames[s->depth - 1];
        if (json_peek(s) == (f->is_map ? '}' : ']')) {
            return close_container(s);
        }
        f->n = 1;
        code = f->is_map ? scan_key(s) : BT_OK;
        if (code != BT_OK) {
            return code;
        }
    }
}

/* Closes the containers that end after a value. Stops at the next value or, at depth 0, after the
 * document. */
static enum bt_code scan_after_value(struct json_scan *s)
{
    while (s->depth > 0) {
        struct json_frame *f = &s->frames[s->depth - 1];
        enum bt_code code;

        skip_space(s);
        if (json_peek(s) == (f->is_map ? '}' : ']')) {
            code = close_container(s);
            if (code != BT_OK) {
                return code;
            }
            continue;
        }
        if (json_peek(s) != ',') {
            return expected(s, f->is_map ? "',' or '}'" : "',' or ']'");
        }
        s->at++;
        skip_space(s);
        f->n++;
        return f->is_map ? scan_key(s) : BT_OK;
    }
    return BT_OK;
}

static enum bt_code scan_document(struct json_scan *s)
{
    enum bt_code code;

    if (s->text.len > s->limits.bytes) {
        return err_set(s->err, BT_LIMIT, "%zu bytes of JSON, at most %zu", s->text.len,
                       s->limits.bytes);
    }
    if (s->text.len >= 3 && memcmp(s->text.ptr, "\xEF\xBB\xBF", 3) == 0) {
        return json_error(s, 0, BT_INVALID, "a byte order mark is not allowed in JSON");
    }
    skip_space(s);
    do {
        code = scan_value(s);
        if (code == BT_OK) {
            code = scan_after_value(s);
        }
        if (code == BT_OK) {
            code = buf_check(s->out, s->err);
        }
        if (code != BT_OK) {
            return code;
        }
    } while (s->depth > 0);
    skip_space(s);
    return s->at == s->text.len ? BT_OK : expected(s, "the end of the text");
}

enum bt_code json_to_doc(struct str json, const struct json_limits *limits, struct buf *out,
                         struct bt_error *err)
{
    struct json_scan s = {.text = json, .out = out, .err = err};
    size_t start = out->len;
    enum bt_code code;

    s.limits =
        limits != NULL ? *limits : (struct json_limits){LIMIT_STEP_BYTES, LIMIT_DEPTH, LIMIT_NODES};
    if (s.limits.depth > WIRE_DEPTH_MAX) {
        s.limits.depth = WIRE_DEPTH_MAX;
    }
    if (json.len >= UINT32_MAX / 4) {
        return err_set(err, BT_LIMIT, "%zu bytes of JSON are more than any body may have",
                       json.len);
    }
    code = scan_document(&s);
    if (code != BT_OK) {
        buf_truncate(out, start);
    }
    return code;
}
