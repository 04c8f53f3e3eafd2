#include "supervisor/gateway/uri.h"

#include "protocol/base/utf8.h"

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Appends the decoded bytes; `what` is for the sentence. */
static enum bt_code decode(struct uri *u, struct str raw, const char *what, bool plus,
                           struct str *ret, struct bt_error *err)
{
    char *to = u->text + u->used;
    size_t n = 0;

    if (raw.len > sizeof u->text - u->used) {
        return err_set(err, BT_LIMIT, "the address has more than %d bytes", URI_BYTES_MAX);
    }
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.ptr[i];
        if (c == '%') {
            if (raw.len - i < 3 || digit_of(raw.ptr[i + 1]) < 0 || digit_of(raw.ptr[i + 2]) < 0) {
                return err_set(err, BT_INVALID,
                               "%s: a percent sign needs two hexadecimal digits after it", what);
            }
            c = (char)(digit_of(raw.ptr[i + 1]) * 16 + digit_of(raw.ptr[i + 2]));
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c == 0) {
            return err_set(err, BT_INVALID, "%s: a zero byte (%%00) is no part of a text", what);
        }
        to[n++] = c;
    }
    if (!utf8_valid(to, n)) {
        return err_set(err, BT_INVALID, "%s: its decoded bytes are not UTF-8", what);
    }
    u->used += n;
    *ret = (struct str){to, n};
    return BT_OK;
}

/* Up to the byte, which is skipped; *rest is what follows it. */
static struct str cut(struct str *rest, char at)
{
    const char *end = rest->len > 0 ? memchr(rest->ptr, at, rest->len) : NULL;
    const struct str head = {rest->ptr, end == NULL ? rest->len : (size_t)(end - rest->ptr)};

    *rest = end == NULL ? (struct str){rest->ptr + rest->len, 0}
                        : (struct str){end + 1, rest->len - head.len - 1};
    return head;
}

static enum bt_code parse_path(struct uri *u, struct str path, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    path = (struct str){path.ptr + 1, path.len - 1}; /* it begins with a slash */
    if (path.len == 0) {
        return BT_OK;
    }
    for (bool more = true; code == BT_OK && more;) {
        struct str *to = &u->segments[u->segments_n];
        more = memchr(path.ptr, '/', path.len) != NULL;
        if (u->segments_n == URI_SEGMENTS_MAX) {
            return err_set(err, BT_NOT_FOUND, "no path has more than %d parts", URI_SEGMENTS_MAX);
        }
        code = decode(u, cut(&path, '/'), "path", false, to, err);
        if (code == BT_OK && (to->len == 0 || str_is(*to, ".") || str_is(*to, ".."))) {
            code = err_set(err, BT_INVALID,
                           "path: an empty part, \".\" and \"..\" are no names; write each part "
                           "between single slashes, and none at the end");
        }
        u->segments_n++;
        if (more && path.len == 0 && code == BT_OK) {
            code = err_set(err, BT_INVALID, "path: there is nothing after the last slash");
        }
    }
    return code;
}

static enum bt_code parse_query(struct uri *u, struct str query, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    while (code == BT_OK && query.len > 0) {
        struct str value = cut(&query, '&');
        struct uri_param *to = &u->params[u->params_n];
        struct str name;
        if (value.len == 0) {
            continue;
        }
        if (u->params_n == URI_PARAMS_MAX) {
            return err_set(err, BT_LIMIT, "the query has more than %d parameters", URI_PARAMS_MAX);
        }
        name = cut(&value, '=');
        code = decode(u, name, "query", true, &to->name, err);
        if (code == BT_OK) {
            code = decode(u, value, "query", true, &to->value, err);
        }
        u->params_n++;
    }
    return code;
}

/* The absolute form; the caller compares the authority with the hosts that it answers for. */
static bool skip_scheme(struct str *raw, const char *scheme)
{
    const size_t n = strlen(scheme);

    if (raw->len < n || strncmp(raw->ptr, scheme, n) != 0) {
        return false;
    }
    *raw = (struct str){raw->ptr + n, raw->len - n};
    return true;
}

enum bt_code uri_parse(struct str raw, struct uri *ret, struct bt_error *err)
{
    struct str path;
    enum bt_code code;

    ret->authority = (struct str){NULL, 0};
    ret->segments_n = ret->params_n = 0;
    ret->used = 0;
    if (raw.len > URI_BYTES_MAX) {
        return err_set(err, BT_LIMIT, "the address has more than %d bytes", URI_BYTES_MAX);
    }
    for (size_t i = 0; i < raw.len; i++) {
        if ((unsigned char)raw.ptr[i] <= ' ' || (unsigned char)raw.ptr[i] >= 0x7f ||
            raw.ptr[i] == '#') {
            return err_set(err, BT_INVALID,
                           "the address has a byte that must be written with a percent sign");
        }
    }
    if (skip_scheme(&raw, "http://") || skip_scheme(&raw, "https://")) {
        const size_t n = raw.len;
        while (ret->authority.len < n && raw.ptr[ret->authority.len] != '/' &&
               raw.ptr[ret->authority.len] != '?') {
            ret->authority.len++;
        }
        ret->authority.ptr = raw.ptr;
        raw = (struct str){raw.ptr + ret->authority.len, n - ret->authority.len};
    }
    if (raw.len == 0 || raw.ptr[0] != '/') {
        return err_set(err, BT_INVALID, "the address must begin with a slash");
    }
    path = cut(&raw, '?');
    code = parse_path(ret, path, err);
    return code == BT_OK ? parse_query(ret, raw, err) : code;
}
