#include <strings.h>

#include "agents/http/settings.h"

static bool is_token(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == 0 || strchr("!#$%&'*+-.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return name.len > 0 && name.len < 128;
}

enum bt_code http_header_check(struct str name, struct str value, struct bt_error *err)
{
    static const char *const ours[] = {"host",       "content-length",     "transfer-encoding",
                                       "connection", "accept-encoding",    "expect",
                                       "te",         "proxy-connection",   "upgrade",
                                       "trailer",    "proxy-authorization"};

    if (!is_token(name)) {
        return err_set(err, BT_INVALID, "'%.*s' is no name of a header",
                       name.len > 100 ? 100 : (int)name.len, name.ptr);
    }
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        if (name.len == strlen(ours[i]) && strncasecmp(name.ptr, ours[i], name.len) == 0) {
            return err_set(err, BT_INVALID, "the header %.*s is the client's own", STR_ARG(name));
        }
    }
    for (size_t i = 0; i < value.len; i++) {
        if ((uint8_t)value.ptr[i] < ' ' || value.ptr[i] == 0x7f) {
            return err_set(
                err, BT_INVALID,
                "the header %.*s: no line break and no control character may stand in it",
                STR_ARG(name));
        }
    }
    return BT_OK;
}
