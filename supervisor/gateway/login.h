/*
 * The log-in of a page, in two halves: a cookie that scripts cannot read, and a key that the page
 * keeps and sends as a header. The cookie is what the person logged in with (a token, ID:KEY) and
 * when that ends, sealed with a key made of both the page's half and the gateway's key. A cookie
 * goes to every port of a host, also to another program's: alone it opens nothing. Nor does the
 * half of the page. The gateway keeps neither, so a log-in survives its restart.
 */
#ifndef GATEWAY_LOGIN_H
#define GATEWAY_LOGIN_H

#include "protocol/auth/mac.h"
#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

enum {
    LOGIN_HALF_BYTES = 16,
    LOGIN_BEARER_MAX = 200,
    LOGIN_COOKIE_MAX = 2 * (12 + 8 + LOGIN_BEARER_MAX + 16), /* hexadecimal */
    LOGIN_MS = 12 * 3600 * 1000
};

struct login {
    uint8_t key[AUTH_KEY_BYTES];
};

#define LOGIN_FILE "gateway.key"

/* Reads STATE/gateway.key, or makes it: 32 bytes, for its owner alone. */
BT_MUST_CHECK enum bt_code login_open(const char *state_dir, struct login *ret,
                                      struct bt_error *err);
/* Appends the cookie's value to ret_cookie (at least LOGIN_COOKIE_MAX). `until` is wall-clock time.
 * False: the bearer is longer than LOGIN_BEARER_MAX, or the system refused random bytes. */
BT_MUST_CHECK bool login_seal(const struct login *l, struct str bearer, msec until,
                              char ret_half[2 * LOGIN_HALF_BYTES + 1], struct buf *ret_cookie);
/* Appends the bearer. False: the halves do not belong together, or its time is over at `now`. */
BT_MUST_CHECK bool login_unseal(const struct login *l, struct str half, struct str cookie, msec now,
                                struct buf *ret_bearer);
/* The value of the cookie of this name in a header Cookie; empty: it is not there. */
struct str login_cookie_find(struct str header, const char *name);
#endif
