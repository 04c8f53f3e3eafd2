/* Texts, marks and colours of pictures. */
#include "supervisor/cli/picture/look.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

static const struct style {
    const char *status;
    const char *mark, *ascii;
    const char *color;
    const char *fill, *stroke;
} styles[] = {
    {"completed", "✓", "+", "\033[32m", "#dcf5e1", "#2c8a46"},
    {"failed", "✗", "x", "\033[31m", "#fde0de", "#c0392b"},
    {"in_progress", "▸", ">", "\033[36m", "#d8f1f7", "#1d7f96"},
    {"running", "▸", ">", "\033[36m", "#d8f1f7", "#1d7f96"},
    {"waiting", "?", "?", "\033[35m", "#f3e1f7", "#8e44ad"},
    {"skipped", "-", "-", "\033[33m", "#fdf3d0", "#a07a10"},
    {"cancelled", "-", "-", "\033[33m", "#fdf3d0", "#a07a10"},
    {"pending", "·", ".", "", "#f4f4f4", "#777777"},
    {"", " ", " ", "", "#f4f4f4", "#555555"},
};
enum { STYLES = sizeof styles / sizeof styles[0] };

static const struct style *style_of(const char *status)
{
    for (size_t i = 0; i < STYLES; i++) {
        if (strcmp(styles[i].status, status) == 0) {
            return &styles[i];
        }
    }
    return &styles[STYLES - 1];
}

void look_blanks(struct buf *out, int n)
{
    for (; n > 0; n--) {
        buf_add_byte(out, ' ');
    }
}

void look_end_line(struct buf *out)
{
    while (out->len > 0 && out->at[out->len - 1] == ' ') {
        buf_truncate(out, out->len - 1);
    }
    buf_add_byte(out, '\n');
}

const char *look_mark(const char *status, bool ascii)
{
    return ascii ? style_of(status)->ascii : style_of(status)->mark;
}

const char *look_color(const struct look *look, const char *status)
{
    return look->color ? style_of(status)->color : "";
}

const char *look_color_off(const struct look *look)
{
    return look->color ? "\033[0m" : "";
}

const char *look_fill(const char *status)
{
    return style_of(status)->fill;
}

const char *look_stroke(const char *status)
{
    return style_of(status)->stroke;
}

/* Reads one character of UTF-8; returns its bytes, 0 at the end, and 1 with *ret 0xFFFD for a byte
 * that is none. */
static size_t next(const char *text, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = *p == 0     ? 0
                     : *p < 0x80 ? 1
                     : *p < 0xC0 ? 0
                     : *p < 0xE0 ? 2
                     : *p < 0xF0 ? 3
                     : *p < 0xF8 ? 4
                                 : 0;
    uint32_t c = n == 2 ? *p & 0x1Fu : n == 3 ? *p & 0x0Fu : n == 4 ? *p & 0x07u : *p;

    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            *ret = 0xFFFD;
            return 1;
        }
        c = c << 6 | (p[i] & 0x3Fu);
    }
    if (*p != 0 &&
        (n == 0 || (n > 1 && c < least[n]) || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))) {
        *ret = 0xFFFD;
        return 1;
    }
    *ret = c;
    return n;
}

/* The table of the C library, whatever the user's locale; without it one column per character. */
static int width_of(uint32_t c)
{
    static locale_t utf8;
    locale_t before;
    int n;

    if (c >= 0x20 && c < 0x7F) {
        return 1;
    }
    if (utf8 == (locale_t)0) {
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    }
    if (utf8 == (locale_t)0) {
        return c < 0x20 || (c >= 0x7F && c < 0xA0) ? -1 : 1;
    }
    before = uselocale(utf8);
    n = wcwidth((wchar_t)c);
    (void)uselocale(before);
    return n;
}

int look_columns(const char *text)
{
    int columns = 0;
    uint32_t c;

    for (size_t n; (n = next(text, &c)) > 0; text += n) {
        const int w = width_of(c);
        columns += w > 0 ? w : 0;
    }
    return columns;
}

/* Characters that terminals draw in different widths. */
static bool is_left_out(uint32_t c)
{
    return c == 0xAD || (c >= 0x200B && c <= 0x200D) || (c >= 0x2060 && c <= 0x2064) ||
           (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF || (c >= 0x1F3FB && c <= 0x1F3FF) ||
           (c >= 0xE0000 && c <= 0xE0FFF);
}

/* Characters that change the direction of text, or end a line. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F || c == 0x61C ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

void look_clean(const char *text, bool ascii, struct buf *out)
{
    uint32_t c;

    for (size_t n; (n = next(text, &c)) > 0; text += n) {
        if (c == '\n' || c == '\t') {
            buf_add_byte(out, ' ');
        } else if (is_left_out(c)) {
            continue;
        } else if (is_control(c) || c == 0xFFFD || width_of(c) < 0 || (ascii && c >= 0x7F)) {
            buf_add_byte(out, '?');
        } else {
            buf_add(out, text, n);
        }
    }
}

void look_fit(const char *clean, int columns, bool ascii, bool pad, struct buf *out)
{
    const bool whole = look_columns(clean) <= columns;
    const int room = whole ? columns : columns - 1;
    int used = 0;
    uint32_t c;

    for (size_t n; (n = next(clean, &c)) > 0; clean += n) {
        const int w = width_of(c) > 0 ? width_of(c) : 0;
        if (used + w > room) {
            break;
        }
        buf_add(out, clean, n);
        used += w;
    }
    if (!whole) {
        buf_add_cstr(out, ascii ? "~" : "…");
        used++;
    }
    for (; pad && used < columns; used++) {
        buf_add_byte(out, ' ');
    }
}

void look_xml(const char *clean, struct buf *out)
{
    for (; *clean != 0; clean++) {
        switch (*clean) {
        case '&':
            buf_add_cstr(out, "&amp;");
            break;
        case '<':
            buf_add_cstr(out, "&lt;");
            break;
        case '>':
            buf_add_cstr(out, "&gt;");
            break;
        case '"':
            buf_add_cstr(out, "&quot;");
            break;
        default:
            buf_add_byte(out, (uint8_t)*clean);
        }
    }
}
