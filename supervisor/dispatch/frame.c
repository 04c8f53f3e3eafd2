#include "supervisor/dispatch/frame.h"

#include <stdint.h>

/* The bytes of the line break at `at`, of those that Unicode names; 0 = there is none. */
static size_t break_at(struct str s, size_t at)
{
    const uint8_t *c = (const uint8_t *)s.ptr + at;
    const size_t left = s.len - at;

    switch (c[0]) {
    case '\r':
        return left > 1 && c[1] == '\n' ? 2 : 1;
    case '\n':
    case '\v':
    case '\f':
        return 1;
    case 0xC2: /* NEL */
        return left > 1 && c[1] == 0x85 ? 2 : 0;
    case 0xE2: /* line and paragraph separator */
        return left > 2 && c[1] == 0x80 && (c[2] == 0xA8 || c[2] == 0xA9) ? 3 : 0;
    default:
        return 0;
    }
}

static void add(struct buf *out, struct str text, bool one_line)
{
    size_t from = 0;

    for (size_t at = 0; at < text.len;) {
        const size_t n = break_at(text, at);
        if (n > 0) {
            buf_add(out, text.ptr + from, (one_line ? at : at + n) - from);
            buf_add_cstr(out, one_line ? " " : "  ");
            from = at + n;
        }
        at += n > 0 ? n : 1;
    }
    buf_add(out, text.ptr + from, text.len - from);
}

void frame_add(struct buf *out, struct str text)
{
    if (text.len > 0) {
        add(out, text, false);
    }
}

void frame_add_line(struct buf *out, struct str text)
{
    if (text.len > 0) {
        add(out, text, true);
    }
}
