#include "supervisor/gateway/incoming/incoming.h"

enum { PART_MAX = 256, INDEX_DIGITS = 9 };

bool pointer_ok(struct str pointer)
{
    if (pointer.len > 0 && pointer.ptr[0] != '/') {
        return false;
    }
    for (size_t i = 0; i < pointer.len; i++) {
        if (pointer.ptr[i] == '~' &&
            (i + 1 == pointer.len || (pointer.ptr[i + 1] != '0' && pointer.ptr[i + 1] != '1'))) {
            return false;
        }
    }
    return true;
}

/* The part without its escapes. False: it is longer than any name here. */
static bool unescape(struct str part, char ret[PART_MAX], size_t *ret_n)
{
    size_t n = 0;

    for (size_t i = 0; i < part.len; i++) {
        char c = part.ptr[i];
        if (n == PART_MAX) {
            return false;
        }
        if (c == '~' && i + 1 < part.len) {
            c = part.ptr[++i] == '1' ? '/' : '~';
        }
        ret[n++] = c;
    }
    *ret_n = n;
    return true;
}

/* "0", or digits that begin with another one. */
static bool read_index(const char *at, size_t n, uint32_t *ret)
{
    *ret = 0;
    if (n == 0 || n > INDEX_DIGITS || (n > 1 && at[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (at[i] < '0' || at[i] > '9') {
            return false;
        }
        *ret = *ret * 10 + (uint32_t)(at[i] - '0');
    }
    return true;
}

struct doc pointer_find(struct doc d, struct str pointer)
{
    static const struct doc none = {.ptr = NULL};

    if (!pointer_ok(pointer)) {
        return none;
    }
    while (pointer.len > 0 && d.ptr != NULL) {
        const char *slash = memchr(pointer.ptr + 1, '/', pointer.len - 1);
        const size_t n = (slash == NULL ? pointer.len : (size_t)(slash - pointer.ptr)) - 1;
        char part[PART_MAX];
        size_t len;
        uint32_t ix;
        if (!unescape((struct str){pointer.ptr + 1, n}, part, &len)) {
            return none;
        }
        if (doc_head(d).kind == DOC_ARRAY) {
            d = read_index(part, len, &ix) ? doc_at(d, ix) : none;
        } else {
            d = doc_get(d, (struct str){part, len});
        }
        pointer = (struct str){pointer.ptr + n + 1, pointer.len - n - 1};
    }
    return d;
}
