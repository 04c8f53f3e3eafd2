/* JSON strings: the first pass measures and checks, the second one writes. */
#include "protocol/base/utf8.h"
#include "protocol/wire/json_scan_internal.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the value of the four hex digits at `at`, or -1. */
static int32_t hex4(const struct json_scan *s, size_t at)
{
    int32_t v = 0;

    if (at > s->text.len || s->text.len - at < 4) {
        return -1;
    }
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit(s->text.ptr[at + i]);
        if (digit < 0) {
            return -1;
        }
        v = v * 16 + digit;
    }
    return v;
}

static size_t utf8_len(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static size_t utf8_put(uint32_t c, uint8_t *to)
{
    static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t n = utf8_len(c);

    for (size_t i = n; i-- > 1;) {
        to[i] = (uint8_t)(0x80u | (c & 0x3Fu));
        c >>= 6;
    }
    to[0] = (uint8_t)(lead[n] | c);
    return n;
}

/* Reads a \u escape at `at`, or a pair of them for code points above U+FFFF. *ret_used is its
 * length. */
static enum bt_code read_unicode(struct json_scan *s, size_t at, uint32_t *ret, size_t *ret_used)
{
    int32_t high = hex4(s, at + 2);
    int32_t low = -1;

    if (high < 0) {
        return json_error(s, at, BT_INVALID, "\\u needs four hex digits");
    }
    if (high == 0) {
        return json_error(s, at, BT_INVALID, "\\u0000 is not allowed: strings hold no zero byte");
    }
    if (high < 0xD800 || high > 0xDFFF) {
        *ret = (uint32_t)high;
        *ret_used = 6;
        return BT_OK;
    }
    if (high <= 0xDBFF && at + 7 < s->text.len && s->text.ptr[at + 6] == '\\' &&
        s->text.ptr[at + 7] == 'u') {
        low = hex4(s, at + 8);
    }
    if (low < 0xDC00 || low > 0xDFFF) {
        return json_error(s, at, BT_INVALID, "half of a surrogate pair: no such character");
    }
    *ret = 0x10000u + (((uint32_t)high - 0xD800u) << 10) + ((uint32_t)low - 0xDC00u);
    *ret_used = 12;
    return BT_OK;
}

/* Reads the escape at `at`, which is the backslash. */
static enum bt_code read_escape(struct json_scan *s, size_t at, uint32_t *ret, size_t *ret_used)
{
    static const char names[] = "\"\\/bfnrt";
    static const char means[] = "\"\\/\b\f\n\r\t";
    const char *found;

    if (at + 1 >= s->text.len) {
        return json_error(s, at, BT_INVALID, "the text ends inside a string");
    }
    if (s->text.ptr[at + 1] == 'u') {
        return read_unicode(s, at, ret, ret_used);
    }
    found = memchr(names, s->text.ptr[at + 1], sizeof names - 1);
    if (found == NULL) {
        return json_error(s, at, BT_INVALID,
                          "no such escape; known: \\\" \\\\ \\/ \\b \\f \\n \\r "
                          "\\t \\u");
    }
    *ret = (uint32_t)means[found - names];
    *ret_used = 2;
    return BT_OK;
}

struct measure {
    size_t end; /* of the text: the closing quote */
    size_t len; /* of the string */
    bool plain; /* no escapes */
};

static enum bt_code measure(struct json_scan *s, struct measure *ret)
{
    size_t start = s->at + 1;
    size_t i = start;

    *ret = (struct measure){.plain = true};
    for (; i < s->text.len && s->text.ptr[i] != '"';) {
        unsigned char c = (unsigned char)s->text.ptr[i];
        uint32_t ch;
        size_t used;
        enum bt_code code;

        if (c < 0x20) {
            return json_error(s, i, BT_INVALID,
                              "control character 0x%02X in a string; write it as an escape", c);
        }
        if (c != '\\') {
            ret->len++;
            i++;
            continue;
        }
        code = read_escape(s, i, &ch, &used);
        if (code != BT_OK) {
            return code;
        }
        ret->plain = false;
        ret->len += utf8_len(ch);
        i += used;
    }
    if (i >= s->text.len) {
        return json_error(s, s->at, BT_INVALID, "a string that starts here has no end");
    }
    if (!utf8_valid(s->text.ptr + start, i - start)) {
        return json_error(s, s->at, BT_INVALID, "the string that starts here is not UTF-8");
    }
    ret->end = i;
    return BT_OK;
}

static void write_unescaped(struct json_scan *s, const struct measure *m)
{
    uint8_t *to = buf_reserve(s->out, m->len);
    size_t n = 0;

    for (size_t i = s->at + 1; to != NULL && i < m->end;) {
        uint32_t ch = 0;
        size_t used = 1;
        if (s->text.ptr[i] != '\\') {
            to[n++] = (uint8_t)s->text.ptr[i++];
            continue;
        }
        if (read_escape(s, i, &ch, &used) != BT_OK) {
            return; /* cannot happen: measure() has read it */
        }
        n += utf8_put(ch, to + n);
        i += used;
    }
    s->out->len += n;
}

enum bt_code json_scan_string(struct json_scan *s)
{
    struct measure m;
    enum bt_code code = measure(s, &m);

    if (code != BT_OK) {
        return code;
    }
    if (m.plain) {
        doc_put_str(s->out, (struct str){s->text.ptr + s->at + 1, m.len});
    } else {
        doc_put_str_head(s->out, m.len);
        write_unescaped(s, &m);
    }
    s->at = m.end + 1;
    return BT_OK;
}
