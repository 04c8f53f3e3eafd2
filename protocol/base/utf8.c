#include "protocol/base/utf8.h"

#include <stdint.h>
#include <string.h>

/* Returns the length of the sequence at p (1 to 4), or 0 when it is not valid UTF-8. */
static size_t sequence(const uint8_t *p, size_t left)
{
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    size_t n;

    if (p[0] < 0x80) {
        return 1;
    }
    if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        n = 2;
    } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        n = 3;
        low = p[0] == 0xE0 ? 0xA0 : 0x80;
        high = p[0] == 0xED ? 0x9F : 0xBF;
    } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        n = 4;
        low = p[0] == 0xF0 ? 0x90 : 0x80;
        high = p[0] == 0xF4 ? 0x8F : 0xBF;
    } else {
        return 0;
    }
    if (left < n || p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return n;
}

size_t utf8_prefix(const char *bytes, size_t len)
{
    const uint8_t *p = (const uint8_t *)bytes;
    size_t i = 0;

    while (i < len) {
        uint64_t word;
        size_t n;
        if (len - i >= 8) { /* eight ASCII bytes at a time */
            memcpy(&word, p + i, 8);
            if ((word & 0x8080808080808080u) == 0) {
                i += 8;
                continue;
            }
        }
        n = sequence(p + i, len - i);
        if (n == 0) {
            return i;
        }
        i += n;
    }
    return len;
}

bool utf8_valid(const char *bytes, size_t len)
{
    return utf8_prefix(bytes, len) == len;
}

size_t utf8_cut(const char *bytes, size_t len, size_t max)
{
    if (len <= max) {
        return len;
    }
    while (max > 0 && ((uint8_t)bytes[max] & 0xC0) == 0x80) {
        max--;
    }
    return max;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

size_t utf8_cut_words(const char *bytes, size_t len, size_t max)
{
    const size_t whole = utf8_cut(bytes, len, max);
    size_t n = whole;

    if (n == len) {
        return n;
    }
    while (n > whole / 2 && !is_blank(bytes[n])) {
        n--;
    }
    n = is_blank(bytes[n]) ? n : whole;
    while (n > 0 && is_blank(bytes[n - 1])) {
        n--;
    }
    return n;
}

uint32_t utf8_char(const char *bytes, size_t len, size_t *ret_len)
{
    const unsigned char *p = (const unsigned char *)bytes;
    const size_t n = *p < 0x80 ? 1 : *p < 0xE0 ? 2 : *p < 0xF0 ? 3 : 4;
    uint32_t c = n == 1 ? *p : *p & (0x7Fu >> n);

    *ret_len = n;
    if (n > len || !utf8_valid(bytes, n)) {
        *ret_len = 1;
        return 0xFFFD;
    }
    for (size_t i = 1; i < n; i++) {
        c = c << 6 | (p[i] & 0x3Fu);
    }
    return c;
}

bool utf8_is_unsafe(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {{0x7F, 0x9F},      {0xAD, 0xAD},     {0x034F, 0x034F}, {0x061C, 0x061C},
                  {0x115F, 0x1160},  {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200F},
                  {0x2028, 0x202E},  {0x2060, 0x206F}, {0x3164, 0x3164}, {0xFE00, 0xFE0F},
                  {0xFEFF, 0xFEFF},  {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x1D173, 0x1D17A},
                  {0xE0000, 0xE0FFF}};

    for (size_t i = 0; c >= 0x7F && i < sizeof ranges / sizeof ranges[0]; i++) {
        if (c >= ranges[i].from && c <= ranges[i].to) {
            return true;
        }
    }
    return c < 0x20 && c != '\n' && c != '\t';
}

void utf8_scrub(char *text)
{
    size_t n;

    for (size_t left = strlen(text); left > 0; left -= n, text += n) {
        const uint32_t c = utf8_char(text, left, &n);
        const bool joins = c == 0x200C || c == 0x200D || (c >= 0xFE00 && c <= 0xFE0F);
        if (utf8_is_unsafe(c) && !joins) {
            memset(text, '?', n);
        }
    }
}
