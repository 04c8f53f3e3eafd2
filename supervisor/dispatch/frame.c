#include "supervisor/dispatch/frame.h"

#include <string.h>

/* The bytes of the line break at `at`, of those that Unicode names; 0 = there is none. */
static size_t break_at(struct str s, size_t at)
{
    static const char *const breaks[] = {"\r\n", "\n",       "\r",           "\v",
                                         "\f",   "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"};

    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        const size_t n = strlen(breaks[i]);
        if (n <= s.len - at && memcmp(s.ptr + at, breaks[i], n) == 0) {
            return n;
        }
    }
    return 0;
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
