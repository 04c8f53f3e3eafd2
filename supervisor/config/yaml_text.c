#include "supervisor/config/yaml_text.h"

#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "protocol/base/utf8.h"

static bool starts_character(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

struct yaml_place yaml_text_place(struct str text, size_t offset)
{
    struct yaml_place place = {1, 1};

    for (size_t i = 0; i < offset && i < text.len; i++) {
        if (text.ptr[i] == '\n') {
            place.line++;
            place.column = 1;
        } else {
            place.column += starts_character(text.ptr[i]);
        }
    }
    return place;
}

size_t yaml_text_offset(struct str text, size_t line, size_t column)
{
    size_t i = 0;

    for (; line > 0 && i < text.len; i++) {
        line -= text.ptr[i] == '\n';
    }
    for (; column > 0 && i < text.len; column--) {
        for (i++; i < text.len && !starts_character(text.ptr[i]);) {
            i++;
        }
    }
    return i;
}

size_t yaml_text_valid(struct str text)
{
    size_t i = 0;

    if (utf8_valid(text.ptr, text.len)) {
        return text.len;
    }
    while (i < text.len) {
        unsigned char lead = (unsigned char)text.ptr[i];
        size_t step = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        if (step > text.len - i || !utf8_valid(text.ptr + i, step)) {
            break;
        }
        i += step;
    }
    return i;
}

/* The value of \uXXXX at `at`, or 0. */
static uint32_t u_escape(const char *at, const char *end)
{
    uint32_t v = 0;

    if (end - at < 6 || at[0] != '\\' || at[1] != 'u') {
        return 0;
    }
    for (int i = 2; i < 6; i++) {
        char c = at[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                : 16;
        if (digit == 16) {
            return 0;
        }
        v = v * 16 + digit;
    }
    return v;
}

void yaml_text_join_surrogates(struct str text, struct buf *out)
{
    const char *at = text.ptr;
    const char *end = text.ptr + text.len;
    bool quoted = false;

    while (at < end) {
        uint32_t high = quoted ? u_escape(at, end) : 0;
        uint32_t low = high >= 0xD800 && high < 0xDC00 ? u_escape(at + 6, end) : 0;
        size_t step = 1;
        if (low >= 0xDC00 && low < 0xE000) {
            buf_printf(out, "\\U%08x", 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
            at += 12;
            continue;
        }
        if (*at == '"') {
            quoted = !quoted;
        } else if (quoted && *at == '\\' && end - at > 1) {
            step = 2;
        }
        buf_add(out, at, step);
        at += step;
    }
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

static const char *skip_digits(const char *at)
{
    while (*at >= '0' && *at <= '9') {
        at++;
    }
    return at;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? and whether it has no fraction
 * (core schema, 10.3.2). */
static bool is_decimal(const char *text, bool *ret_integer)
{
    const char *at = text + (*text == '-' || *text == '+');
    const char *digits = at;

    at = skip_digits(at);
    *ret_integer = *at == '\0';
    if (*at == '.') {
        const char *after = skip_digits(at + 1);
        if (at == digits && after == at + 1) {
            return false;
        }
        at = after;
    } else if (at == digits) {
        return false;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '-' || *at == '+';
        if (skip_digits(at) == at) {
            return false;
        }
        at = skip_digits(at);
    }
    return *at == '\0';
}

/* Reads 0x1F and 0o17; false when the text is neither. */
static bool read_based(const char *text, double *ret)
{
    int base = text[0] != '0' ? 0 : text[1] == 'x' ? 16 : text[1] == 'o' ? 8 : 0;
    const char *digits = base == 16 ? "0123456789abcdefABCDEF" : "01234567";

    if (base == 0 || text[2] == '\0' || text[2 + strspn(text + 2, digits)] != '\0') {
        return false;
    }
    *ret = (double)strtoull(text + 2, NULL,
                            base); /* too large becomes UINT64_MAX, which is rejected as well */
    return true;
}

static enum bt_code plain_number(const char *text, bool *ret_is_number, double *ret,
                                 const char **ret_why)
{
    const char *bare = text + (*text == '-' || *text == '+');
    bool integer = true;

    *ret_is_number = true;
    if (is_one_of(bare, ".inf", ".Inf", ".INF") || is_one_of(text, ".nan", ".NaN", ".NAN")) {
        *ret_why = "a number that is not finite; JSON has none";
        return BT_INVALID;
    }
    if (!read_based(text, ret)) {
        if (!is_decimal(text, &integer)) {
            *ret_is_number = false;
            return BT_OK;
        }
        *ret = strtod(text, NULL);
    }
    if (integer && bare[0] == '0' && bare[1] >= '0' && bare[1] <= '9') {
        *ret_why = "YAML 1.1 and 1.2 read this number differently; write it without the leading 0, "
                   "as 0o17, or in "
                   "quotes";
        return BT_INVALID;
    }
    if (!isfinite(*ret) || (integer && fabs(*ret) >= 9007199254740992.0)) {
        *ret_why = "the number is too large; write it in quotes if it is text";
        return BT_INVALID;
    }
    return BT_OK;
}

enum bt_code yaml_scalar(const char *text, bool plain, struct cJSON **ret, const char **ret_why)
{
    cJSON *v;
    double number = 0;
    bool is_number = false;

    if (plain) {
        enum bt_code code = plain_number(text, &is_number, &number, ret_why);
        if (code != BT_OK) {
            return code;
        }
    }
    if (is_number) {
        v = cJSON_CreateNumber(number);
    } else if (plain && (text[0] == '\0' || strcmp(text, "~") == 0 ||
                         is_one_of(text, "null", "Null", "NULL"))) {
        v = cJSON_CreateNull();
    } else if (plain && is_one_of(text, "true", "True", "TRUE")) {
        v = cJSON_CreateTrue();
    } else if (plain && is_one_of(text, "false", "False", "FALSE")) {
        v = cJSON_CreateFalse();
    } else {
        v = cJSON_CreateString(text);
    }
    *ret = v;
    return v != NULL ? BT_OK : BT_NOMEM;
}
