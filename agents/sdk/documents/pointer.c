#include "agents/sdk/documents/pointer.h"

/* One token of a pointer, unescaped into ret; returns what follows it. */
static const char *take_token(const char *at, char *ret, size_t cap, size_t *ret_n)
{
    size_t n = 0;

    for (; *at != 0 && *at != '/'; at++) {
        char c = *at;
        if (c == '~') {
            at++;
            c = *at == '1' ? '/' : '~';
        }
        if (n < cap) {
            ret[n++] = c;
        }
    }
    *ret_n = n;
    return at;
}

static bool index_of(const char *token, size_t n, uint32_t *ret)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++) {
        if (token[i] < '0' || token[i] > '9' || v > UINT32_MAX) {
            return false;
        }
        v = v * 10 + (uint64_t)(token[i] - '0');
    }
    *ret = (uint32_t)v;
    return n > 0 && v < UINT32_MAX && (n == 1 || token[0] != '0');
}

struct doc pointer_get(struct doc d, const char *pointer)
{
    char token[POINTER_MAX];
    size_t n;
    uint32_t ix;

    while (d.ptr != NULL && *pointer == '/') {
        pointer = take_token(pointer + 1, token, sizeof token, &n);
        if (doc_head(d).kind == DOC_ARRAY) {
            d = index_of(token, n, &ix) ? doc_at(d, ix) : (struct doc){0};
        } else {
            d = doc_get(d, (struct str){token, n});
        }
    }
    return d;
}

enum bt_code pointer_check(const char *pointer, struct bt_error *err)
{
    bool ok = pointer[0] == 0 || pointer[0] == '/';

    for (const char *p = pointer; ok && *p != 0; p++) {
        ok = *p != '~' || p[1] == '0' || p[1] == '1';
    }
    return ok && strlen(pointer) < POINTER_MAX
               ? BT_OK
               : err_set(err, BT_INVALID,
                         "'%.100s': expected a JSON pointer, as /items or /data/0/id", pointer);
}
