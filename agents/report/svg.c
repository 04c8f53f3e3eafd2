#include "agents/report/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/utf8.h"

/* Okabe and Ito, for all kinds of colour vision. */
static const char *const COLOURS[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                      "#56b4e9", "#cc79a7", "#8c6d1f", "#555555"};

const char *svg_colour(int series)
{
    return COLOURS[(size_t)series % (sizeof COLOURS / sizeof COLOURS[0])];
}

void svg_put_number(struct buf *out, double v)
{
    char text[40];
    size_t n;

    (void)snprintf(text, sizeof text, "%.2f", fabs(v) < 0.005 ? 0.0 : v);
    n = strlen(text);
    while (text[n - 1] == '0') {
        n--;
    }
    n -= text[n - 1] == '.' ? 1 : 0;
    buf_add(out, text, n);
}

void svg_put_escaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t n;
        const uint32_t c = utf8_char(text.ptr + i, text.len - i, &n);
        if (c == '<') {
            buf_add_cstr(out, "&lt;");
        } else if (c == '>') {
            buf_add_cstr(out, "&gt;");
        } else if (c == '&') {
            buf_add_cstr(out, "&amp;");
        } else if (c == '"') {
            buf_add_cstr(out, "&quot;");
        } else if (c == '\'') {
            buf_add_cstr(out, "&#39;");
        } else if (c == '\n' || c == '\t' || c == '\r') {
            buf_add_byte(out, ' ');
        } else if (utf8_is_unsafe(c) || c == 0xfffe || c == 0xffff) {
            buf_add_cstr(out, "\xef\xbf\xbd");
        } else {
            buf_add(out, text.ptr + i, n);
        }
        i += n;
    }
}

void svg_open(struct buf *out, double width, double height, const char *title)
{
    buf_add_cstr(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"");
    svg_put_number(out, width);
    buf_add_cstr(out, "\" height=\"");
    svg_put_number(out, height);
    buf_add_cstr(out, "\" viewBox=\"0 0 ");
    svg_put_number(out, width);
    buf_add_byte(out, ' ');
    svg_put_number(out, height);
    buf_printf(out, "\" font-family=\"sans-serif\" font-size=\"%d\" fill=\"#222\">", SVG_FONT);
    if (title[0] != 0) {
        buf_add_cstr(out, "<title>");
        svg_put_escaped(out, str_from(title));
        buf_add_cstr(out, "</title>");
    }
    buf_add_cstr(out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
}

void svg_close(struct buf *out)
{
    buf_add_cstr(out, "</svg>\n");
}

static void attribute(struct buf *out, const char *name, double v)
{
    buf_printf(out, " %s=\"", name);
    svg_put_number(out, v);
    buf_add_byte(out, '"');
}

void svg_line(struct buf *out, double x1, double y1, double x2, double y2, const char *colour)
{
    buf_add_cstr(out, "<line");
    attribute(out, "x1", x1);
    attribute(out, "y1", y1);
    attribute(out, "x2", x2);
    attribute(out, "y2", y2);
    buf_printf(out, " stroke=\"%s\"/>\n", colour);
}

static void put_tooltip(struct buf *out, const char *text)
{
    buf_add_cstr(out, "<title>");
    svg_put_escaped(out, str_from(text));
    buf_add_cstr(out, "</title>");
}

void svg_rect(struct buf *out, double x, double y, double width, double height, const char *colour,
              const char *label)
{
    buf_add_cstr(out, "<rect");
    attribute(out, "x", x);
    attribute(out, "y", y);
    attribute(out, "width", width > 0.0 ? width : 0.0);
    attribute(out, "height", height > 0.0 ? height : 0.0);
    buf_printf(out, " fill=\"%s\"", colour);
    if (label == NULL) {
        buf_add_cstr(out, "/>\n");
        return;
    }
    buf_add_byte(out, '>');
    put_tooltip(out, label);
    buf_add_cstr(out, "</rect>\n");
}

/* ---- texts ---- */

/* Parts of a pixel are of SVG_FONT: wide as CJK, narrow as i, none for marks that stand over
 * others. */
static double char_width(uint32_t c)
{
    if ((c >= 0x300 && c < 0x370) || (c >= 0x5b0 && c < 0x5c8) || (c >= 0x64b && c < 0x660) ||
        (c >= 0x200b && c < 0x2010) || (c >= 0xfe00 && c < 0xfe10)) {
        return 0.0;
    }
    if ((c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) || (c >= 0xac00 && c < 0xd7a4) ||
        (c >= 0xf900 && c < 0xfb00) || (c >= 0xff00 && c < 0xff61) || c >= 0x1f000) {
        return 1.0;
    }
    if (c < 0x80 && strchr("iIl.,:;|'!jtf ", (int)c) != NULL) {
        return 0.34;
    }
    return c >= 'A' && c <= 'Z' ? 0.72 : 0.6;
}

double svg_text_width(const char *text)
{
    const size_t len = strlen(text);
    double width = 0.0;

    for (size_t i = 0; i < len;) {
        size_t n;
        width += char_width(utf8_char(text + i, len - i, &n));
        i += n;
    }
    return width * SVG_FONT;
}

/* The length of the beginning that is at most so wide. */
static size_t fitting(const char *text, double max_width)
{
    const size_t len = strlen(text);
    double width = 0.0;
    size_t i = 0;

    while (i < len) {
        size_t n;
        width += char_width(utf8_char(text + i, len - i, &n)) * SVG_FONT;
        if (width > max_width) {
            return i;
        }
        i += n;
    }
    return len;
}

void svg_text(struct buf *out, double x, double y, enum svg_anchor anchor, double max_width,
              bool turned, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    const size_t all = strlen(text);
    size_t shown = all;

    if (svg_text_width(text) > max_width) {
        shown = fitting(text, max_width - char_width(0x2026) * SVG_FONT);
    }
    buf_add_cstr(out, "<text");
    attribute(out, "x", x);
    attribute(out, "y", y);
    /* Each text has its own direction: what is written from right to left turns no neighbour. */
    buf_printf(out, " text-anchor=\"%s\" unicode-bidi=\"isolate\"", anchors[anchor]);
    if (turned) {
        buf_add_cstr(out, " transform=\"rotate(-35 ");
        svg_put_number(out, x);
        buf_add_byte(out, ' ');
        svg_put_number(out, y);
        buf_add_cstr(out, ")\"");
    }
    buf_add_byte(out, '>');
    if (shown < all) {
        put_tooltip(out, text);
    }
    svg_put_escaped(out, (struct str){text, shown});
    if (shown < all) {
        buf_add_cstr(out, "\xe2\x80\xa6");
    }
    buf_add_cstr(out, "</text>\n");
}
